//! `squall run FILE`: chooses by what the file is.

mod again;
pub(crate) mod agent;
pub(crate) mod fetch;
pub(crate) mod k6_env;
mod loads;
pub(crate) mod plan;
pub(crate) mod plan_file;
mod samples;
mod script;

use std::path::{Path, PathBuf};

use squall_plan::{LoadSpec, Plan};

use crate::args::RunArgs;
use crate::failure::{ExitCode, Failure};
use crate::traffic::replay;

/// What a file is, by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Steps and loads, or a PTR configuration: `.yaml`, `.yml`, `.json`.
    Plan,
    /// A k6 script: `.js`, `.mjs`, `.cjs`, `.ts`.
    Script,
    /// Recorded traffic: `.har`, `.gor`, `.squall`.
    Recording,
}

impl Kind {
    pub(crate) fn of(path: &Path) -> Option<Self> {
        let extension = path.extension()?.to_str()?.to_ascii_lowercase();
        match extension.as_str() {
            "yaml" | "yml" | "json" => Some(Self::Plan),
            "js" | "mjs" | "cjs" | "ts" => Some(Self::Script),
            "har" | "gor" | "squall" => Some(Self::Recording),
            _ => None,
        }
    }
}

/// Runs what the files describe.
pub(crate) fn run(args: &RunArgs) -> Result<ExitCode, Failure> {
    if args.files.first().is_some_and(|first| first.as_os_str() == "-") {
        return script::run(Path::new("-"), args);
    }
    if let Some(folder) = &args.again {
        return again::run(folder, &args.output);
    }
    if !args.ptr.test_config.is_empty() {
        return plan::run_ptr(&args.ptr.test_config, next_to_ptr(&args.files)?, args);
    }
    let Some(first) = args.files.first() else {
        return Err(Failure::usage("no file given", "give a file: `squall run plan.yaml`"));
    };
    match Kind::of(first) {
        Some(Kind::Plan) => plan::run(first, args),
        Some(Kind::Script) if args.kubernetes.kubernetes.is_some() => {
            let spec = args.load.spec([first.to_string_lossy()], args.output.name.as_deref());
            plan::run_on_pods(first, spec, args)
        }
        Some(Kind::Recording) if args.kubernetes.kubernetes.is_some() => {
            let name = args.output.name.clone().unwrap_or_default();
            plan::run_on_pods(first, LoadSpec { name, ..replay::spec_of(first) }, args)
        }
        Some(Kind::Script) => script::run(first, args),
        Some(Kind::Recording) => replay::run_file(first, args),
        None => Err(unknown(first)),
    }
}

/// The plan file next to `--test-config`.
fn next_to_ptr(files: &[PathBuf]) -> Result<Option<&Path>, Failure> {
    match files {
        [] => Ok(None),
        [plan] if Kind::of(plan) == Some(Kind::Plan) && !plan_file::is_ptr(plan) => Ok(Some(plan)),
        [other, ..] => {
            let message =
                format!("`{}` with `--test-config` is not a plan file, or not the only one", other.display());
            let help = "PTR files are separated by commas: `--test-config a.json,b.json plan.yaml`";
            Err(Failure::usage(message, help))
        }
    }
}

/// What running a file would do, as far as squall makes the load itself.
pub(crate) struct Planned {
    pub(crate) plan: Plan,
    /// Whether foreign tools make load, too.
    pub(crate) has_tools: bool,
}

/// Reads what would be run; nothing is sent.
pub(crate) fn planned(args: &RunArgs) -> Result<Planned, Failure> {
    let first = args.files.first().map_or_else(|| Path::new("-"), PathBuf::as_path);
    let plan = match Kind::of(first) {
        Some(Kind::Plan) => return plan::planned(first, args),
        Some(Kind::Script) => script::planned(first, args)?,
        Some(Kind::Recording) => replay::planned(first)?,
        None => return Err(unknown(first)),
    };
    Ok(Planned { plan, has_tools: false })
}

/// Shows what a script would be run with.
pub(crate) fn inspect(mut args: RunArgs) -> Result<ExitCode, Failure> {
    args.output.dry_run = true;
    match args.files.first() {
        Some(file) if file.as_os_str() == "-" || Kind::of(file) == Some(Kind::Script) => run(&args),
        _ => Err(Failure::usage("`squall inspect` takes a k6 script", "write `squall inspect script.js`")),
    }
}

fn unknown(path: &Path) -> Failure {
    let message = format!("cannot tell from the name of `{}` what kind of file it is", path.display());
    Failure::usage(
        message,
        "use .yaml or .json for plans, .js or .ts for k6 scripts, .har, .gor or .squall for recorded traffic",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_known_by_its_name() {
        for (name, kind) in [
            ("plan.yaml", Some(Kind::Plan)),
            ("a/PLAN.YML", Some(Kind::Plan)),
            ("ptr.json", Some(Kind::Plan)),
            ("test.js", Some(Kind::Script)),
            ("test.ts", Some(Kind::Script)),
            ("site.har", Some(Kind::Recording)),
            ("notes.txt", None),
            ("yaml", None),
        ] {
            assert_eq!(Kind::of(Path::new(name)), kind, "{name}");
        }
    }
}
