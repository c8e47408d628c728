//! What fuzz targets of scripts have in common.

use squall_script::{HttpSample, MetricId, Recorder, Tags};

/// Keeps nothing of what scripts record.
#[derive(Debug)]
pub struct NoRecorder;

impl Recorder for NoRecorder {
    fn add(&self, _: MetricId, _: f64, _: &Tags<'_>) {}
    fn http(&self, _: &HttpSample<'_>) {}
    fn check(&self, _: &str, _: &str, _: bool, _: &Tags<'_>) {}
    fn group(&self, _: &str) {}
}
