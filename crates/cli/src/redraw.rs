//! `squall report`: every face of a saved run again.

use squall_report::{Summary, store};

use crate::args::ReportArgs;
use crate::faces::{self, refused};
use crate::failure::{ExitCode, Failure};

/// Shows a saved run: the one named, or the newest. Ends with 0 whatever the run's own exit code was.
pub(crate) fn run(args: &ReportArgs) -> Result<ExitCode, Failure> {
    let path = match &args.run {
        Some(path) => path.clone(),
        None => faces::store(None)?.latest().map_err(|error| refused(&error))?,
    };
    let record = store::open(&path).map_err(|error| refused(&error))?;
    let folder = store::folder_of(&path).map_err(|error| refused(&error))?;
    let outputs = faces::open_outputs(&args.faces)?;
    faces::show(&record, &Summary::from(&record), &args.faces, outputs, Some(&folder))?;
    Ok(ExitCode::Ok)
}
