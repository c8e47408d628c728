//! `squall sweep`: the same load at rising levels.

use std::path::Path;

use squall_plan::When;
use squall_report::page::{self, Page};
use squall_report::store;
use squall_report::studies::{LevelRun, SweepLine, SweepPage};

use super::child::Maker;
use super::watch::Watch;
use super::{files, loads};
use crate::args::{Levels, SweepArgs};
use crate::faces::refused;
use crate::failure::{ExitCode, Failure};
use crate::output;
use crate::run::Planned;

/// A variant of the load.
struct Variant {
    name: String,
    args: Vec<String>,
    watched: Vec<String>,
}

/// What rises.
struct Axis<'a> {
    flag: &'static str,
    name: &'static str,
    levels: &'a [f64],
}

/// Runs every variant at every level; levels rise, and the variants take turns within each.
pub(crate) fn run(args: &SweepArgs) -> Result<ExitCode, Failure> {
    files::check(&args.runs.output, FORMS)?;
    let axis = axis(args);
    let own = if args.rates.is_some() {
        ("-r", "--rate", "write `--rates LIST`")
    } else {
        ("-c", "--connections", "write `--connections LIST`")
    };
    files::refuse_own(&args.runs.rest, &[own])?;
    let variants = variants(args)?;
    loads::refuse_same_name("variants", variants.iter().map(|variant| &variant.name))?;
    let mut plans = Vec::new();
    for variant in &variants {
        files::refuse_own(&variant.args, &[own])?;
        Watch::check(&variant.watched)?;
        plans.push(loads::planned(&at_level(variant, &axis, axis.levels[0]))?);
    }
    refuse_two_models(&variants, &plans)?;
    if axis.flag == "--connections" {
        refuse_too_few(&axis, &plans)?;
    }
    let maker = Maker::start()?;
    let study = files::folder(&args.runs.output, "sweep")?;
    let lines = make(args, &axis, &variants, (&maker, &study))?;
    if lines.is_empty() {
        return maker.finish(ExitCode::Ok);
    }
    let page = SweepPage::new(format!("Sweep over {}", axis.name), axis.name, lines);
    maker.finish(show(args, page, &study)?)
}

fn axis(args: &SweepArgs) -> Axis<'_> {
    match (&args.connections, &args.rates) {
        (Some(Levels(levels)), _) => Axis { flag: "--connections", name: "connections", levels },
        (None, Some(Levels(levels))) => Axis { flag: "--rate", name: "requests/s asked", levels },
        (None, None) => Axis { flag: "--connections", name: "connections", levels: &[] },
    }
}

fn variants(args: &SweepArgs) -> Result<Vec<Variant>, Failure> {
    let watched = |name: &str| -> Vec<String> {
        let of = |watch: &String| match watch.split_once('=') {
            Some((variant, process)) => (variant == name).then(|| process.to_owned()),
            None => Some(watch.clone()),
        };
        args.runs.watch.iter().filter_map(of).collect()
    };
    let variant = |name: &str, more: Vec<String>| Variant {
        name: name.to_owned(),
        args: [vec!["http".to_owned()], args.runs.rest.clone(), more].concat(),
        watched: watched(name),
    };
    if args.line.is_empty() {
        refuse_unknown(&args.runs.watch, &["load"])?;
        return Ok(vec![variant("load", Vec::new())]);
    }
    let parse = |line: &String| {
        let (name, flags) =
            line.split_once(':').filter(|(name, _)| !name.trim().is_empty()).ok_or_else(|| {
                Failure::usage(
                    format!("`{line}` is not a variant"),
                    "write `--line 'NAME: FLAGS'`, such as `--line 'new connections: --no-keepalive'`",
                )
            })?;
        Ok(variant(name.trim(), files::words(flags)?))
    };
    let variants = args.line.iter().map(parse).collect::<Result<Vec<Variant>, Failure>>()?;
    refuse_unknown(
        &args.runs.watch,
        &variants.iter().map(|variant| variant.name.as_str()).collect::<Vec<_>>(),
    )?;
    Ok(variants)
}

/// Fewer requests than connections leave some connections out: the level would not be what it is called.
fn refuse_too_few(axis: &Axis<'_>, plans: &[Planned]) -> Result<(), Failure> {
    let highest = axis.levels.iter().copied().fold(0.0, f64::max);
    let counts = plans.iter().flat_map(|planned| &planned.plan.loads).filter_map(|load| load.stop.count);
    match counts.min().filter(|count| (*count as f64) < highest) {
        None => Ok(()),
        Some(count) => Err(Failure::usage(
            format!("`-n {count}` is less than the {highest} connections of the highest level"),
            "write a larger `-n`, or a duration: `-d 10s`",
        )),
    }
}

/// Latencies of the open and the closed model count from different moments: one chart of both would mislead.
fn refuse_two_models(variants: &[Variant], plans: &[Planned]) -> Result<(), Failure> {
    let is_open =
        |planned: &Planned| planned.plan.loads.iter().any(|load| matches!(load.when, When::Open { .. }));
    let of_model = |open: bool| variants.iter().zip(plans).find(|(_, planned)| is_open(planned) == open);
    let (Some((open, _)), Some((closed, _))) = (of_model(true), of_model(false)) else { return Ok(()) };
    let message = format!(
        "`{}` has a schedule and `{}` does not, so their latencies are not comparable",
        open.name, closed.name
    );
    Err(Failure::usage(message, "give all variants `--rate`, or none"))
}

/// `--watch VARIANT=NAME` of a variant that is not there would watch nothing.
fn refuse_unknown(watch: &[String], variants: &[&str]) -> Result<(), Failure> {
    let named = watch.iter().filter_map(|watch| Some(watch.split_once('=')?.0));
    match named.into_iter().find(|name| !variants.contains(name)) {
        None => Ok(()),
        Some(name) => Err(Failure::usage(
            format!("`{name}` is not a variant of this sweep, so `--watch {name}=…` would monitor nothing"),
            format!("variants are: {}", variants.join(", ")),
        )),
    }
}

fn at_level(variant: &Variant, axis: &Axis<'_>, level: f64) -> Vec<String> {
    let mut args = variant.args.clone();
    args.insert(1, axis.flag.to_owned());
    args.insert(2, level.to_string());
    args
}

/// The lines of those variants that have a run: a signal may end the sweep before others have one.
fn make(
    args: &SweepArgs,
    axis: &Axis<'_>,
    variants: &[Variant],
    (maker, study): (&Maker, &Path),
) -> Result<Vec<SweepLine>, Failure> {
    let mut runs: Vec<Vec<LevelRun>> = variants.iter().map(|_| Vec::new()).collect();
    let all = axis.levels.iter().flat_map(|level| (0..variants.len()).map(move |idx| (*level, idx)));
    let whole = axis.levels.len() * variants.len();
    for (number, (level, variant_idx)) in all.enumerate() {
        let variant = &variants[variant_idx];
        if number > 0 && !maker.pause(args.runs.pause) {
            break;
        }
        output::note(&format!("run {} of {whole}: {} at {level} {}", number + 1, variant.name, axis.name));
        let made = maker.make(&at_level(variant, axis, level), &study.join("runs"), &variant.watched)?;
        let Some(made) = made else { break };
        runs[variant_idx].push(LevelRun::new(level, &made.record, files::page_of(&made.folder, study)));
    }
    let made = variants.iter().zip(runs).filter(|(_, runs)| !runs.is_empty());
    Ok(made.map(|(variant, runs)| SweepLine::new(variant.name.clone(), runs, axis.name)).collect())
}

/// The answer stays in the study's folder in every form; what was asked for beyond that follows.
fn show(args: &SweepArgs, page: SweepPage, study: &Path) -> Result<ExitCode, Failure> {
    let (text, csv, charts) =
        (page.text(output::stdout_style(args.runs.output.color)), page.csv(), page.charts());
    let page = Page::Sweep(page);
    let (html, json) = (page::draw(&page), page::json(&page));
    let mut kept = vec![
        ("sweep.html".to_owned(), html.clone()),
        ("sweep.json".to_owned(), json.clone()),
        ("sweep.csv".to_owned(), csv.clone()),
    ];
    kept.extend(charts);
    for (name, content) in kept {
        store::write(&study.join(name), &content).map_err(|error| refused(&error))?;
    }
    output::note(&format!("page {}\n", study.join("sweep.html").display()));
    files::write(
        &args.runs.output,
        &text,
        &[("html", &|| html.clone()), ("json", &|| json.clone()), ("csv", &|| csv.clone())],
    )?;
    Ok(ExitCode::Ok)
}

const FORMS: &[&str] = &["html", "json", "csv"];
