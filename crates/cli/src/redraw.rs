//! `squall report`: every face of a saved run again, or of several as one.

use std::path::{Path, PathBuf};

use squall_measure::{NamedRun, RunRecord, merge};
use squall_report::{Error, Summary, store};

use crate::args::ReportArgs;
use crate::faces::{self, refused};
use crate::failure::{ExitCode, Failure};

/// Shows a saved run (the one named, or the newest), or several merged. Ends with 0 whatever the runs' own exit codes were.
pub(crate) fn run(args: &ReportArgs) -> Result<ExitCode, Failure> {
    let (record, folder) = match &args.runs[..] {
        [] => alone(&faces::store(None)?.latest().map_err(|error| refused(&error))?)?,
        [path] => alone(path)?,
        paths => (merged(paths)?, None),
    };
    let outputs = faces::open_outputs(&args.faces)?;
    faces::show(&record, &Summary::from(&record), &args.faces, outputs, folder.as_deref())?;
    Ok(ExitCode::Ok)
}

fn alone(path: &Path) -> Result<(RunRecord, Option<PathBuf>), Failure> {
    let opened = store::open(path).and_then(|record| Ok((record, Some(store::folder_of(path)?))));
    opened.map_err(|error| refused(&error))
}

/// All runs that the paths stand for, as one.
fn merged(paths: &[PathBuf]) -> Result<RunRecord, Failure> {
    let mut runs = Vec::new();
    for path in paths {
        runs.extend(opened(path).map_err(|error| refused(&error))?);
    }
    merge(runs).map_err(|reason| {
        let message = format!("these runs cannot be merged: {reason}");
        Failure::usage(message, "remove one of them; `squall compare` compares groups of runs")
    })
}

fn opened(path: &Path) -> Result<Vec<NamedRun>, Error> {
    let named = |folder: PathBuf| {
        let name = store::folder_of(&folder)?.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Ok(NamedRun { name, record: store::open(&folder)? })
    };
    store::runs_in(path)?.into_iter().map(named).collect()
}
