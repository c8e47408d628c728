//! `squall run --again DIR`: the same plan as a saved run's, from its record.

use std::path::Path;

use squall_measure::RunRecord;
use squall_plan::mask::MASK;
use squall_plan::{Load, What};
use squall_report::store;

use crate::args::OutputArgs;
use crate::faces::refused;
use crate::failure::{ExitCode, Failure};
use crate::http;

/// Makes the run again, under the same name unless another is given.
pub(super) fn run(folder: &Path, args: &OutputArgs) -> Result<ExitCode, Failure> {
    let mut record = store::open(folder).map_err(|error| refused(&error))?;
    if let Some(reason) = not_repeatable(&record) {
        let message = format!("`{}` cannot be repeated from its record: {reason}", folder.display());
        return Err(Failure::usage(message, "run its plan file or its command line again"));
    }
    if let Some(name) = &args.name {
        record.plan.name.clone_from(name);
    }
    http::make(&record.plan, args, None)
}

/// A record has the plan of one machine, without its secrets.
fn not_repeatable(record: &RunRecord) -> Option<&'static str> {
    let is_temporary =
        |load: &Load| matches!(&load.what, What::Replay(replay) if replay.recording.starts_with("/proc"));
    let plan = serde_json::to_string(&record.plan).unwrap_or_default();
    if !record.parts.is_empty() || !record.tools.is_empty() {
        Some("it had several steps or machines")
    } else if plan.contains(MASK) || plan.contains("bytes left out)") {
        Some("credentials and bodies are not saved")
    } else if record.plan.loads.iter().any(is_temporary) {
        // What is played of other formats than squall's own, or of a part.
        Some("its recording was a temporary file")
    } else {
        None
    }
}
