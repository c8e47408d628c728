//! `squall compare`: groups of runs, saved ones or made for it, held against each other.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use squall_report::page::{self, Page};
use squall_report::store;
use squall_report::studies::{ComparePage, Group, charts};
use squall_study::Options;

use super::child::Maker;
use super::{files, loads};
use crate::args::CompareArgs;
use crate::faces::refused;
use crate::failure::{ExitCode, Failure};
use crate::output;
use crate::run::Planned;

/// Ends with 3 when a group is worse than the first.
pub(crate) fn run(args: &CompareArgs) -> Result<ExitCode, Failure> {
    files::check(&args.output, FORMS)?;
    if args.run.is_empty() {
        return show(args, &saved(args)?, None);
    }
    let (names, plans) = planned(args)?;
    let maker = Maker::start()?;
    let study = files::folder(&args.output, "compare")?;
    let groups = make(args, names, &plans, (&maker, &study))?;
    // A signal may end it before each has a run.
    if groups.iter().any(|group| group.runs.is_empty()) {
        return maker.finish(ExitCode::Ok);
    }
    maker.finish(show(args, &groups, Some(&study))?)
}

fn show(args: &CompareArgs, groups: &[Group], study: Option<&Path>) -> Result<ExitCode, Failure> {
    if !args.force {
        refuse_different_loads(groups)?;
    }
    let page = ComparePage::new(groups, Options { change_min: args.change, ..Options::default() });
    let is_worse = page.is_worse();
    let text = page.text(output::stdout_style(args.output.color));
    let markdown = page.markdown();
    let page = Page::Compare(page);
    let (html, json) = (|| page::draw(&page), || page::json(&page));
    if let Some(study) = study {
        keep(study, &[("compare.html", html()), ("compare.json", json()), ("compare.md", markdown.clone())])?;
        keep(study, &charts(groups))?;
        output::note(&format!("page {}\n", study.join("compare.html").display()));
    }
    files::write(
        &args.output,
        &text,
        &[("html", &html), ("json", &json), ("markdown", &|| markdown.clone())],
    )?;
    Ok(if is_worse { ExitCode::ThresholdsFailed } else { ExitCode::Ok })
}

/// The answer stays in the study's folder in every form.
fn keep(study: &Path, files: &[(&str, String)]) -> Result<(), Failure> {
    let write = |(name, content): &(&str, String)| store::write(&study.join(name), content);
    files.iter().try_for_each(write).map_err(|error| refused(&error))
}

/// The runs that were named, in groups parted by `--`.
fn saved(args: &CompareArgs) -> Result<Vec<Group>, Failure> {
    let mut folders: Vec<Vec<PathBuf>> = vec![args.runs.clone()];
    for part in args.others.split(|word| word == "--").filter(|part| !part.is_empty()) {
        folders.push(part.iter().map(PathBuf::from).collect());
    }
    if folders.len() < 2 {
        return Err(Failure::usage(
            "a comparison needs at least two groups of runs",
            "separate the groups with `--`: `squall compare A1 A2 -- B1 B2`",
        ));
    }
    let names = names(args, folders.len())?;
    let group = |(name, folders): (String, &Vec<PathBuf>)| Ok(Group { name, runs: read(folders)? });
    let groups = names.into_iter().zip(&folders).map(group).collect::<Result<_, Failure>>()?;
    refuse_repeated(folders.iter().flatten())?;
    Ok(groups)
}

/// A run that counted twice would make the answer surer than it is.
fn refuse_repeated<'a>(paths: impl Iterator<Item = &'a PathBuf>) -> Result<(), Failure> {
    let mut seen = BTreeSet::new();
    for path in paths {
        for folder in store::runs_in(path).map_err(|error| refused(&error))? {
            if !seen.insert(folder.canonicalize().unwrap_or_else(|_| folder.clone())) {
                let message = format!("the run `{}` is given twice", folder.display());
                return Err(Failure::usage(message, "give each run once, in one group"));
            }
        }
    }
    Ok(())
}

/// A folder of runs stands for all of them.
fn read(folders: &[PathBuf]) -> Result<Vec<(String, squall_measure::RunRecord)>, Failure> {
    let mut runs = Vec::new();
    for path in folders {
        for folder in store::runs_in(path).map_err(|error| refused(&error))? {
            let record = store::open(&folder).map_err(|error| refused(&error))?;
            runs.push((short_name(&folder), record));
        }
    }
    Ok(runs)
}

fn short_name(folder: &Path) -> String {
    folder.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// The names of the groups, and the arguments of their runs, once these are known to be comparable.
fn planned(args: &CompareArgs) -> Result<(Vec<String>, Vec<Vec<String>>), Failure> {
    let names = names(args, args.run.len())?;
    let plans: Vec<Vec<String>> = args.run.iter().map(|line| plan_args(line)).collect::<Result<_, _>>()?;
    plans.iter().try_for_each(|plan| files::refuse_own(plan, &[]))?;
    let planned: Vec<Planned> = plans.iter().map(|plan| loads::planned(plan)).collect::<Result<_, _>>()?;
    loads::refuse_incomparable(&names, &planned, args.force)?;
    Ok((names, plans))
}

/// Makes the runs, one of each plan in turn, and every second round in the other order: what drifts meets all alike.
fn make(
    args: &CompareArgs,
    names: Vec<String>,
    plans: &[Vec<String>],
    (maker, study): (&Maker, &Path),
) -> Result<Vec<Group>, Failure> {
    let mut groups: Vec<Group> = names.into_iter().map(|name| Group { name, runs: Vec::new() }).collect();
    for round in 0..args.repeat {
        let mut order: Vec<usize> = (0..plans.len()).collect();
        if round % 2 == 1 {
            order.reverse();
        }
        for idx in order {
            let group = &mut groups[idx];
            output::note(&format!("round {} of {}: {}", round + 1, args.repeat, group.name));
            let made = maker.make(&plans[idx], &study.join(&group.name), &[])?;
            let Some(made) = made else { return Ok(groups) };
            group.runs.push((short_name(&made.folder), made.record));
        }
    }
    Ok(groups)
}

/// A file is run by `squall run`; anything else is flags of `squall http`.
fn plan_args(line: &str) -> Result<Vec<String>, Failure> {
    let words = files::words(line)?;
    let command = if words.first().is_some_and(|word| Path::new(word).is_file()) { "run" } else { "http" };
    Ok([vec![command.to_owned()], words].concat())
}

fn names(args: &CompareArgs, count: usize) -> Result<Vec<String>, Failure> {
    if args.names.is_empty() {
        let letters = ('a'..='z').map(String::from).chain((26..).map(|number| format!("group {number}")));
        return Ok(letters.take(count).collect());
    }
    let is_plain = |name: &String| {
        !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || " ._-".contains(c))
    };
    loads::refuse_same_name("groups", args.names.iter())?;
    if args.names.len() != count || !args.names.iter().all(is_plain) {
        let message = format!("`--names` must give {count} names of letters, digits, spaces and `._-`");
        return Err(Failure::usage(
            message,
            "one name for each group, in their order: `--names before,after`",
        ));
    }
    Ok(args.names.clone())
}

fn refuse_different_loads(groups: &[Group]) -> Result<(), Failure> {
    let runs = groups.iter().flat_map(|group| &group.runs);
    loads::refuse_different(runs.map(|(name, record)| (name, &record.plan)))
}

const FORMS: &[&str] = &["html", "json", "markdown"];
