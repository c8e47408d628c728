//! Arbitrary bytes as a value of Alt-Svc: nothing panics, and an announcement is written, read back and found after others the same.

#![no_main]

use libfuzzer_sys::fuzz_target;
use squall_wire::alt_svc::{Alternative, Announcement, parse};

fuzz_target!(|value: &[u8]| {
    let announced = parse(value);
    // Empty elements of a list say nothing, and `clear` stands alone.
    let is_clear = value.trim_ascii() == b"clear";
    let after = |before: &[u8]| parse(&[before, value].concat());
    assert_eq!(after(b" ,, "), if is_clear { None } else { announced.clone() });
    if let Some(Announcement::Http3(alternative)) = announced {
        assert!(alternative.port > 0);
        assert_eq!(parse(text(&alternative).as_bytes()), Some(Announcement::Http3(alternative.clone())));
        assert_eq!(after(b"h2=\":1\", "), Some(Announcement::Http3(alternative)));
    }
});

fn text(alternative: &Alternative) -> String {
    let Alternative { host, port, max_age_s } = alternative;
    let host = host.as_deref().unwrap_or_default();
    assert!(host.len() <= 253, "a name of the DNS");
    format!("h3=\"{host}:{port}\"; ma={max_age_s}")
}
