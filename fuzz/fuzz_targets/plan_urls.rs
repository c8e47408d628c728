//! Arbitrary text as a URL, as a method, and as a file of URLs: nothing panics, errors point into the text, and what is accepted
//! can be requested.

#![no_main]

use libfuzzer_sys::fuzz_target;
use squall_fuzz::{accepted, check_error};
use squall_plan::urls::{Target, is_token, parse_list, parse_method, parse_target};

fuzz_target!(|text: &str| {
    if let Some(target) = accepted(text, parse_target(text)) {
        check_target(&target);
    }
    if let Some(method) = accepted(text, parse_method(text)) {
        assert!(is_token(&method));
    }
    match parse_list(text) {
        Ok(targets) => {
            assert!(!targets.is_empty());
            targets.iter().for_each(check_target);
        }
        Err(error) => {
            let line = text.trim_start_matches('\u{feff}').lines().nth(error.line - 1);
            check_error(line.unwrap_or_default(), &error.error);
        }
    }
});

fn check_target(target: &Target) {
    let url = &target.url;
    assert!(matches!(url.scheme(), "http" | "https"));
    assert!(url.has_host() && url.port_or_known_default().is_some());
    assert!(url.username().is_empty() && url.password().is_none() && url.fragment().is_none(), "{url}");
    assert!(target.method.as_deref().is_none_or(is_token));
    assert_eq!(parse_target(url.as_str()).map(|it| it.url).as_ref(), Ok(url));
}
