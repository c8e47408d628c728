//! Words and bytes for a shell: what is written is read back by a reader of POSIX quoting, byte for byte.

#![no_main]

use libfuzzer_sys::fuzz_target;
use squall_plan::shell::{printf_bytes, printf_format, quoted};

/// POSIX 2.2.2: between single quotes every character stands for itself; outside of them a backslash takes the next one.
fn unquoted(text: &str) -> Option<String> {
    let (mut word, mut chars, mut is_within) = (String::new(), text.chars(), false);
    while let Some(c) = chars.next() {
        match (is_within, c) {
            (_, '\'') => is_within = !is_within,
            (false, '\\') => word.push(chars.next()?),
            (false, _) => return None,
            (true, c) => word.push(c),
        }
    }
    (!is_within).then_some(word)
}

fuzz_target!(|bytes: &[u8]| {
    let format = printf_format(bytes);
    assert!(format.bytes().all(|byte| (b' '..=b'~').contains(&byte)));
    let inner = unquoted(&format).expect("one word");
    assert_eq!(printf_bytes(&inner).as_deref(), Some(bytes));
    let text = String::from_utf8_lossy(bytes);
    assert_eq!(unquoted(&quoted(&text)).as_deref(), Some(&*text));
    let _ = printf_bytes(&text);
});
