//! What the runs of a study would do, read before the first of them: what could not be compared is not made.

use std::collections::BTreeSet;
use std::path::Path;

use squall_measure::Threshold;
use squall_plan::Plan;
use squall_study::mismatch;
use url::{Host, Url};

use super::child;
use crate::args::Command;
use crate::failure::Failure;
use crate::load;
use crate::run::{self, Planned};
use crate::usage::{self, Request};

/// What running these arguments would do.
pub(crate) fn planned(args: &[String]) -> Result<Planned, Failure> {
    child::check(args)?;
    let argv = std::iter::once("squall").chain(args.iter().map(String::as_str)).map(Into::into);
    match usage::parse(argv)? {
        Request::Do(Command::Http(args)) => {
            refuse_file(&args.urls)?;
            Ok(Planned { plan: load::http_plan(&args.spec())?, has_tools: false })
        }
        Request::Do(Command::Run(args)) => run::planned(&args),
        _ => Err(Failure::usage(
            format!("`squall {}` is not a run", args.join(" ")),
            "give flags of `squall http`, or a file for `squall run`",
        )),
    }
}

/// A file among the URLs would be taken for a host.
fn refuse_file(urls: &[String]) -> Result<(), Failure> {
    match urls.iter().find(|url| run::Kind::of(Path::new(url)).is_some() && Path::new(url).is_file()) {
        None => Ok(()),
        Some(file) => Err(Failure::usage(
            format!("`{file}` is a file, not a URL"),
            "sweep and capacity only run `squall http`; `squall compare --run` also accepts files",
        )),
    }
}

/// Refuses groups whose runs could not be held against each other. `is_forced`: different loads are meant.
pub(crate) fn refuse_incomparable(
    names: &[String],
    groups: &[Planned],
    is_forced: bool,
) -> Result<(), Failure> {
    let mut named = names.iter().zip(groups);
    if let Some((name, _)) = named.find(|(_, group)| group.has_tools && group.plan.loads.is_empty()) {
        let message = format!(
            "the load `{name}` is generated only by external tools, so squall has no measurements of it"
        );
        return Err(Failure::usage(message, "compare loads that squall generates itself"));
    }
    if is_forced {
        return Ok(());
    }
    refuse_different(names.iter().zip(groups).map(|(name, group)| (name, &group.plan)))
}

/// Refuses what is not the load that the first one is.
pub(crate) fn refuse_different<'a>(
    mut named: impl Iterator<Item = (&'a String, &'a Plan)>,
) -> Result<(), Failure> {
    let Some((first_name, first)) = named.next() else { return Ok(()) };
    for (name, plan) in named {
        if let Some(mismatch) = mismatch(first, plan) {
            return Err(Failure::usage(
                format!("`{first_name}` and `{name}` cannot be compared: {mismatch}"),
                "compare runs of the same load, or add `--force` if that difference is intended",
            ));
        }
    }
    Ok(())
}

/// Refuses two of one name. `what`: whose names they are, such as `groups`.
pub(crate) fn refuse_same_name<'a>(
    what: &str,
    names: impl Iterator<Item = &'a String>,
) -> Result<(), Failure> {
    let mut known = BTreeSet::new();
    match names.into_iter().find(|name| !known.insert(name.as_str())) {
        None => Ok(()),
        Some(name) => {
            Err(Failure::usage(format!("two {what} are called `{name}`"), "give each a unique name"))
        }
    }
}

/// Refuses an objective that says nothing about how much a load can grow: of what the load does not have, or of the load itself.
pub(crate) fn refuse_pointless(rule: &Threshold, plan: &Plan) -> Result<(), Failure> {
    let text = rule.text();
    if rule.wants_load() {
        let message =
            format!("`{text}` is missed at every low rate, but capacity looks for the highest rate");
        let help = "give objectives that fail under too much load, such as `p(99)<200,errors<0.1%`";
        return Err(Failure::usage(message, help));
    }
    let has = |is_it: fn(&Url) -> bool| urls(plan).any(is_it);
    let (lacks, help) = match rule.metric() {
        "tls_handshaking" if !has(|url| url.scheme() == "https") => {
            ("no request uses TLS", "give an `https` URL, or another objective")
        }
        "looking_up" if !has(|url| matches!(url.host(), Some(Host::Domain(_)))) => {
            ("no name needs to be resolved", "give a URL with a host name, or another objective")
        }
        _ => return Ok(()),
    };
    Err(Failure::usage(format!("`{text}` could never be met: {lacks}"), help))
}

fn urls(plan: &Plan) -> impl Iterator<Item = &Url> {
    let requests = plan.loads.iter().filter_map(|load| Some(&load.what.http()?.requests));
    requests.flatten().map(|request| &request.url)
}
