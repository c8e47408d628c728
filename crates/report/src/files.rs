//! The names of the files of a saved run.

/// The name of the file that makes a folder a saved run.
pub const RECORD_FILE: &str = "run.json";

pub(crate) const SUMMARY_FILE: &str = "summary.json";
pub(crate) const TEXT_FILE: &str = "summary.txt";
pub(crate) const PLAN_FILE: &str = "plan.json";

/// The name of the page.
pub const PAGE_FILE: &str = "report.html";
