//! `squall capacity`: the highest rate that still meets the objectives.

use std::path::Path;

use squall_measure::{RunRecord, Status, StoppedBy, Threshold};
use squall_plan::units::DurationText;
use squall_report::page::{self, Page};
use squall_report::store;
use squall_report::studies::{CapacityPage, Probe, answer_words};
use squall_report::units;
use squall_study::capacity::{Answer, Config, Outcome, Search, Step};

use super::child::Maker;
use super::watch::Watch;
use super::{files, loads};
use crate::args::CapacityArgs;
use crate::faces::refused;
use crate::failure::{ExitCode, Failure};
use crate::output;

/// Probes until the search has an answer.
pub(crate) fn run(args: &CapacityArgs) -> Result<ExitCode, Failure> {
    files::check(&args.runs.output, FORMS)?;
    files::refuse_own(
        &args.runs.rest,
        &[
            ("-d", "--duration", "write `--probe TIME`"),
            ("-n", "--requests", "use `--probe TIME`: rate and duration determine the number of requests"),
            ("-r", "--rate", "write `--start RATE` and `--max RATE`"),
            ("", "--threshold", "write `--slo RULES`"),
        ],
    )?;
    if args.start > args.max {
        let message =
            format!("`--start` ({}) is above `--max` ({})", units::rate(args.start), units::rate(args.max));
        return Err(Failure::usage(message, "choose a start rate below the maximum"));
    }
    Watch::check(&args.runs.watch)?;
    let planned = loads::planned(&at_rate(args, args.start)).map_err(|failure| Failure {
        message: failure.message.replace("`--threshold <RULE>`", "`--slo <RULES>`"),
        ..failure
    })?;
    let rules: Vec<Threshold> = objectives(args).filter_map(|rule| rule.parse().ok()).collect();
    if rules.is_empty() {
        let help = "write what a rate must meet, such as `--slo 'p(99)<200,errors<0.1%'`";
        return Err(Failure::usage("`--slo` gives no objective, so every rate would meet it", help));
    }
    rules.iter().try_for_each(|rule| loads::refuse_pointless(rule, &planned.plan))?;
    rules.iter().try_for_each(|rule| refuse_too_few(args, rule))?;
    let maker = Maker::start()?;
    let study = files::folder(&args.runs.output, "capacity")?;
    let (answer, probes) = search(args, &maker, &study)?;
    if probes.is_empty() {
        return maker.finish(ExitCode::Ok);
    }
    output::note(&format!("\n{}", answer_words(answer)));
    let page = CapacityPage::new("Capacity".to_owned(), args.slo.clone(), answer, probes);
    maker.finish(show(args, page, &study)?)
}

fn search(args: &CapacityArgs, maker: &Maker, study: &Path) -> Result<(Answer, Vec<Probe>), Failure> {
    let config = Config {
        start_per_s: args.start,
        rate_max_per_s: args.max,
        resolution: 1.0 + args.resolution,
        probe_count_max: args.probes,
    };
    let mut search = Search::new(config);
    let mut probes: Vec<Probe> = Vec::new();
    loop {
        let (rate_per_s, stage) = match search.step() {
            Step::Done(answer) => return Ok((answer, probes)),
            Step::Probe { rate_per_s, stage } => (rate_per_s, stage),
        };
        if !probes.is_empty() && !maker.pause(args.runs.pause) {
            return Ok((search.stop(), probes));
        }
        let made = maker.make(&at_rate(args, rate_per_s), &study.join("runs"), &args.runs.watch)?;
        let Some(made) = made else { return Ok((search.stop(), probes)) };
        let outcome = outcome(&made.record);
        search.tell(outcome);
        output::note(&format!("probe {}: {} {}", probes.len() + 1, units::rate(rate_per_s), words(outcome)));
        probes.push(Probe::new(
            rate_per_s,
            stage,
            outcome,
            &made.record,
            files::page_of(&made.folder, study),
        ));
    }
}

/// A generator that was not fit cannot say that the server is not; but a target that cannot be reached has failed.
fn outcome(record: &RunRecord) -> Outcome {
    match record.verdict.status {
        _ if record.stopped_by == StoppedBy::Unreachable => Outcome::Fails,
        Status::Invalid => Outcome::Void,
        _ if record.thresholds.iter().all(|rule| rule.ok) => Outcome::Holds,
        _ => Outcome::Fails,
    }
}

fn words(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Holds => "met",
        Outcome::Fails => "missed",
        Outcome::Void => "did not count: the generator did not keep up",
    }
}

fn at_rate(args: &CapacityArgs, rate_per_s: f64) -> Vec<String> {
    let mut all = vec![
        "http".to_owned(),
        "--rate".to_owned(),
        format!("{rate_per_s:.1}"),
        "--duration".to_owned(),
        DurationText(args.probe).to_string(),
    ];
    for rule in objectives(args) {
        all.extend(["--threshold".to_owned(), rule.to_owned()]);
    }
    all.extend(args.runs.rest.iter().cloned());
    all
}

/// A percentile of fewer requests than it parts is their maximum.
fn refuse_too_few(args: &CapacityArgs, rule: &Threshold) -> Result<(), Failure> {
    let share: f64 = rule.quantile().map_or(1.0, |q| 1.0 - q);
    let count = args.start * args.probe.as_secs_f64();
    if share <= 0.0 || count * share > 1.0 - 1e-6 {
        return Ok(());
    }
    let message = format!("a first probe of {count:.0} requests is too small for `{}`", rule.text());
    let help = format!(
        "it takes {:.0} requests or more: write a longer `--probe`, or a higher `--start`",
        (1.0 / share).round()
    );
    Err(Failure::usage(message, help))
}

fn objectives(args: &CapacityArgs) -> impl Iterator<Item = &str> {
    args.slo.split(',').map(str::trim).filter(|rule| !rule.is_empty())
}

fn show(args: &CapacityArgs, page: CapacityPage, study: &Path) -> Result<ExitCode, Failure> {
    let text = page.text(output::stdout_style(args.runs.output.color));
    let code =
        if page.low.is_some() || page.high.is_some() { ExitCode::Ok } else { ExitCode::GeneratorOverloaded };
    let page = Page::Capacity(page);
    let (html, json) = (page::draw(&page), page::json(&page));
    for (name, content) in [("capacity.html", &html), ("capacity.json", &json)] {
        store::write(&study.join(name), content).map_err(|error| refused(&error))?;
    }
    output::note(&format!("page {}\n", study.join("capacity.html").display()));
    files::write(&args.runs.output, &text, &[("html", &|| html.clone()), ("json", &|| json.clone())])?;
    Ok(code)
}

const FORMS: &[&str] = &["html", "json"];
