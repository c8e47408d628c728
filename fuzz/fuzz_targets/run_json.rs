//! A saved run that somebody has written: it is refused, or read and written the same again.

#![no_main]

use libfuzzer_sys::fuzz_target;
use squall_measure::RunRecord;

fuzz_target!(|bytes: &[u8]| {
    let Ok(record) = serde_json::from_slice::<RunRecord>(bytes) else { return };
    let written = serde_json::to_vec(&record).expect("what was read can be written");
    let again: RunRecord = serde_json::from_slice(&written).expect("what was written can be read");
    assert_eq!(serde_json::to_vec(&again).expect("it can be written again"), written);
});
