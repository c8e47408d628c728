//! Arbitrary bytes as a .squall file.

#![no_main]

use libfuzzer_sys::fuzz_target;
use squall_traffic::Format;

fuzz_target!(|bytes: &[u8]| squall_fuzz::traffic::read(Format::Squall, bytes));
