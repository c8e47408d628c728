//! Arbitrary text as the pattern of an access log, and a log for it: nothing panics, errors point into the text.

#![no_main]

use libfuzzer_sys::fuzz_target;
use squall_traffic::read::open_bytes;
use squall_traffic::{Format, LogPattern, ReadOptions};

fuzz_target!(|input: (&str, &[u8])| {
    let (pattern, log) = input;
    let Ok(log_pattern) = pattern.parse::<LogPattern>() else { return };
    let options = ReadOptions { log_pattern: Some(log_pattern), ..ReadOptions::default() };
    let Ok(mut source) = open_bytes(Format::AccessLog, log.to_vec(), &options) else { return };
    while source.next().is_ok_and(|record| record.is_some()) {}
});
