//! `squall runs`: the saved runs of a place.

use std::path::{Path, PathBuf};

use squall_measure::RunRecord;
use squall_report::page::{self, Page};
use squall_report::store::{self, Store};
use squall_report::studies::{IndexPage, ListedRun};
use squall_report::{Error, Summary};

use crate::args::RunsArgs;
use crate::faces::{self, refused};
use crate::failure::{ExitCode, Failure};
use crate::output;

/// Lists them, the newest first. Runs of other versions are reported and left out.
pub(crate) fn run(args: &RunsArgs) -> Result<ExitCode, Failure> {
    let store = match &args.place {
        Some(place) if !place.is_dir() => {
            return Err(Failure::usage(
                format!("`{}` is not a folder", place.display()),
                "give the folder used with `--results`",
            ));
        }
        Some(place) => Store::at(place),
        None => faces::store(None)?,
    };
    let folders = store.list().map_err(|error| refused(&error))?;
    let mut runs = Vec::new();
    for folder in folders.iter().rev() {
        match store::open(folder) {
            Ok(record) if is_wanted(args, &record) => runs.push(listed(args, folder, &record)),
            Ok(_) => {}
            Err(error) => warn(args, &error),
        }
        if runs.len() == args.last as usize {
            break;
        }
    }
    show(args, runs)
}

fn is_wanted(args: &RunsArgs, record: &RunRecord) -> bool {
    let verdict = format!("{:?}", record.verdict.status).to_lowercase();
    let is_missed = record.thresholds.iter().any(|rule| !rule.ok);
    args.name.as_ref().is_none_or(|name| record.plan.name.contains(name.as_str()))
        && args.verdict.as_ref().is_none_or(|wanted| *wanted == verdict)
        && (!args.missed || is_missed)
}

fn listed(args: &RunsArgs, folder: &Path, record: &RunRecord) -> ListedRun {
    let mut run = ListedRun::new(folder, &Summary::from(record));
    if let Some(page) = &args.html {
        run.href = href(folder, page);
    }
    run
}

/// Relative where the page lies next to the runs, so that both can be moved together.
fn href(folder: &Path, page: &Path) -> String {
    let full = |path: &Path| std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let parent: PathBuf = page
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty())
        .unwrap_or_else(|| Path::new("."))
        .to_owned();
    let folder = full(folder);
    let relative = folder.strip_prefix(full(&parent)).unwrap_or(&folder);
    relative.join(store::PAGE_FILE).display().to_string()
}

fn show(args: &RunsArgs, runs: Vec<ListedRun>) -> Result<ExitCode, Failure> {
    if args.folders {
        let folders: String = runs.iter().map(|run| format!("{}\n", run.folder.display())).collect();
        output::plain(&folders)?;
        return Ok(ExitCode::Ok);
    }
    let page = IndexPage { title: "Saved runs".to_owned(), runs };
    let text = if page.runs.is_empty() {
        "no such run\n".to_owned()
    } else {
        page.text(output::stdout_style(args.color), output::stdout_width())
    };
    if let Some(path) = &args.html {
        store::write(path, &page::draw(&Page::Index(page))).map_err(|error| refused(&error))?;
    }
    output::result(&text)?;
    Ok(ExitCode::Ok)
}

fn warn(args: &RunsArgs, error: &Error) {
    output::warning(args.color, &error.to_string());
}
