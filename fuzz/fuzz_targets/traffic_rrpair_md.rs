//! Arbitrary bytes as RRPair as markdown.

#![no_main]

use libfuzzer_sys::fuzz_target;
use squall_traffic::Format;

fuzz_target!(|bytes: &[u8]| squall_fuzz::traffic::read(Format::RrpairText, bytes));
