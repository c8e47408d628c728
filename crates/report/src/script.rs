//! What the terminal says about scripts in addition to their requests: iterations and checks.

use squall_plan::{Load, What, When};

use crate::summary::{Script, Summary, most_at_once, rate_per_s};
use crate::text::clean;
use crate::units;

/// `1 234 done   61.7/s   2 dropped   at most 50 virtual users`
pub(crate) fn iteration_facts(summary: &Summary, done: u64) -> Vec<String> {
    let mut facts =
        vec![format!("{} done", units::count(done)), units::rate(rate_per_s(done, summary.duration_s))];
    let dropped = summary.totals.iterations_dropped.filter(|count| *count > 0);
    facts.extend(dropped.map(|count| format!("{} dropped", units::count(count))));
    facts.push(format!("up to {}", units::counted(user_count(summary), "virtual user")));
    facts
}

/// The most virtual users at once.
fn user_count(summary: &Summary) -> u64 {
    let span = |load: &Load| match (&load.what, &load.when) {
        (What::Script(_), When::Closed { connections, .. }) => {
            summary.span_of(load, connections.max().round() as u64)
        }
        _ => None,
    };
    most_at_once(&summary.plan.loads.iter().filter_map(span).collect::<Vec<_>>())
}

/// `99.2 % passed   1 230 of 1 240   status is 200: 10 failed`
pub(crate) fn check_facts(script: &Script) -> Vec<String> {
    let passes: u64 = script.checks.iter().map(|check| check.passes).sum();
    let made = passes + script.fails();
    if made == 0 {
        return Vec::new();
    }
    let mut facts = vec![
        format!("{} passed", units::percent(passes as f64 / made as f64)),
        format!("{} of {}", units::count(passes), units::count(made)),
    ];
    let failed: Vec<_> = script.checks.iter().filter(|check| check.fails > 0).collect();
    let shown = failed.iter().take(FAILED_COUNT_SHOWN);
    facts.extend(shown.map(|check| format!("{}: {} failed", clean(&check.name), units::count(check.fails))));
    if failed.len() > FAILED_COUNT_SHOWN {
        facts.push(format!("and {} more", failed.len() - FAILED_COUNT_SHOWN));
    }
    facts
}

/// Checks that failed which are named; all are in the JSON.
const FAILED_COUNT_SHOWN: usize = 5;
