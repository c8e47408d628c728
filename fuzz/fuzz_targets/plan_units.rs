//! Arbitrary text as every kind of number with a unit: nothing panics, errors point into the text, and what is accepted is sane.

#![no_main]

use libfuzzer_sys::fuzz_target;
use squall_fuzz::accepted;
use squall_plan::limits::DURATION_MAX;
use squall_plan::units::{
    DurationText, parse_count, parse_duration, parse_ramp, parse_rate, parse_size, parse_weight,
};

fuzz_target!(|text: &str| {
    if let Some(duration) = accepted(text, parse_duration(text)) {
        assert!(duration <= DURATION_MAX);
        assert_eq!(parse_duration(&DurationText(duration).to_string()), Ok(duration));
    }
    if let Some(bytes) = accepted(text, parse_size(text)) {
        assert_eq!(parse_size(&bytes.to_string()), Ok(bytes));
    }
    if let Some(count) = accepted(text, parse_count(text)) {
        assert_eq!(parse_count(&count.to_string()), Ok(count));
    }
    if let Some(per_s) = accepted(text, parse_rate(text)) {
        assert!(per_s.is_finite() && per_s >= 0.0);
    }
    accepted(text, parse_weight(text));
    if let Some(ramp) = accepted(text, parse_ramp(text)) {
        assert!(!ramp.stages.is_empty());
        assert!(ramp.profile(0.0).max().is_finite());
    }
});
