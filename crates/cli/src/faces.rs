//! Everything that shows and keeps a run: opened before the first packet, so that a wrong path costs no run.
//!
//! What goes wrong at the end is a warning: a full disk costs the file, not the summary.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use squall_measure::RunRecord;
use squall_plan::Plan;
use squall_report::store::{RunFolder, Store};
use squall_report::{Error, OutputSpec, Outputs, Summary, terminal};

use crate::args::{FaceArgs, OutputArgs};
use crate::failure::Failure;
use crate::output;

/// Where a run's results go.
pub(crate) struct Faces<'a> {
    args: &'a FaceArgs,
    outputs: Outputs,
    kept: Option<Kept>,
}

/// Where a run is saved.
struct Kept {
    store: Store,
    folder: RunFolder,
}

impl<'a> Faces<'a> {
    /// Opens every output, and makes the folder of the run. `plan`: with its secrets masked.
    pub(crate) fn open(args: &'a OutputArgs, plan: &Plan) -> Result<Self, Failure> {
        Self::open_with(args, plan, &args.faces.outputs())
    }

    /// The same with some of the outputs: someone else writes the others.
    pub(crate) fn open_with(
        args: &'a OutputArgs,
        plan: &Plan,
        specs: &[OutputSpec],
    ) -> Result<Self, Failure> {
        let outputs = open_specs(specs)?;
        let store = (!args.no_save).then(|| store(args.results.as_deref())).transpose()?;
        let kept = store.map(|store| Kept::create(store, plan)).transpose()?;
        Ok(Self { args: &args.faces, outputs, kept })
    }

    /// The run's folder.
    pub(crate) fn folder(&self) -> Option<&Path> {
        self.kept.as_ref().map(|kept| kept.folder.path())
    }

    /// Saves the run and shows it; `is_silent`: someone else shows the summary.
    pub(crate) fn finish_quietly(self, record: &RunRecord, is_silent: bool) -> Result<(), Failure> {
        let silenced = FaceArgs { quiet: if is_silent { 2 } else { self.args.quiet }, ..self.args.clone() };
        Faces { args: &silenced, outputs: self.outputs, kept: self.kept }.finish(record)
    }

    /// Saves the run and shows it.
    pub(crate) fn finish(mut self, record: &RunRecord) -> Result<(), Failure> {
        let summary = Summary::from(record);
        let is_saved = self.kept.as_mut().is_some_and(|kept| kept.save(record, &summary, self.args));
        let folder: Option<PathBuf> = self.folder().filter(|_| is_saved).map(Path::to_owned);
        show(record, &summary, self.args, self.outputs, folder.as_deref())
    }
}

impl Kept {
    fn create(store: Store, plan: &Plan) -> Result<Self, Failure> {
        let folder = store.create(SystemTime::now(), plan).map_err(|error| refused(&error))?;
        Ok(Self { store, folder })
    }

    /// Whether all of it could be written; what could not is a warning.
    fn save(&mut self, record: &RunRecord, summary: &Summary, args: &FaceArgs) -> bool {
        let filled = self.folder.fill(record, summary);
        let is_filled = filled.is_ok();
        if let Err(error) = filled.and_then(|()| self.store.prune()) {
            output::warning(args.color, &error.to_string());
        }
        is_filled
    }
}

/// The place of saved runs: the one named, or the user's.
pub(crate) fn store(named: Option<&Path>) -> Result<Store, Failure> {
    match named {
        Some(path) => Ok(Store::at(path)),
        None => Store::of_user(|name| std::env::var_os(name)).map_err(|error| refused(&error)),
    }
}

/// Opens what `--out` and `--json` name.
pub(crate) fn open_outputs(args: &FaceArgs) -> Result<Outputs, Failure> {
    open_specs(&args.outputs())
}

fn open_specs(specs: &[OutputSpec]) -> Result<Outputs, Failure> {
    if specs.iter().filter(|spec| spec.path.is_none()).count() > 1 {
        return Err(Failure::usage("only one result can be written to stdout", "write the others to files"));
    }
    Outputs::create(specs).map_err(|error| refused(&error))
}

/// Writes the outputs, and the summary unless one of them is stdout.
pub(crate) fn show(
    record: &RunRecord,
    summary: &Summary,
    args: &FaceArgs,
    mut outputs: Outputs,
    folder: Option<&Path>,
) -> Result<(), Failure> {
    let mut stdout = Vec::new();
    for error in outputs.write(record, summary, &mut stdout) {
        output::warning(args.color, &error.to_string());
    }
    if !outputs.uses_stdout() {
        let text = terminal::draw(summary, folder, output::stdout_style(args.color));
        stdout.extend_from_slice(quieted(&text, args.quiet).as_bytes());
    }
    output::bytes(&stdout)
}

/// With `--quiet`, only the first line: the verdict. Twice: nothing.
fn quieted(text: &str, quiet: u8) -> &str {
    match quiet {
        0 => text,
        1 => text.split_inclusive('\n').find(|line| !line.trim().is_empty()).unwrap_or_default(),
        _ => "",
    }
}

/// A result that cannot be written or read, before anything was sent.
pub(crate) fn refused(error: &Error) -> Failure {
    Failure::usage(error.to_string(), error.help().unwrap_or("check the path and its permissions"))
}
