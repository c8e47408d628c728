//! Arbitrary text as a threshold: nothing panics, errors point into the text, and what is accepted can be judged, reads the same again,
//! and is not met where there was no sample.

#![no_main]

use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use squall_fuzz::accepted;
use squall_measure::{Snapshot, Threshold};

fuzz_target!(|text: &str| {
    let Some(threshold) = accepted(text, text.parse::<Threshold>()) else { return };
    assert_eq!(threshold.text().parse::<Threshold>().as_ref(), Ok(&threshold));
    EMPTY_RUN.with(|total| {
        let result = threshold.evaluate(total, Duration::from_secs(1));
        assert!(result.limit.is_finite());
        assert!(result.actual.is_some() || !result.ok);
    });
});

thread_local! {
    static EMPTY_RUN: Snapshot = Snapshot::new(1, true);
}
