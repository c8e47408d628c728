//! Runs of scripts: iterations, checks and metrics, on every face.

use std::path::PathBuf;

use squall_measure::{RunRecord, ScriptCheck, ScriptFigures, ScriptMetric, ScriptUnit, ScriptValue, Trend};
use squall_plan::{ScriptLoad, What};

use super::{check, fixture, terminal_text};
use crate::{Style, Summary};

#[test]
fn iterations_and_checks_are_shown_next_to_the_requests() {
    let record = script_run();
    check("script.txt", &terminal_text(&record, Style::FILE));
    let totals = Summary::from(&record).totals;
    assert_eq!((totals.iterations, totals.iterations_dropped), (Some(1_234), Some(3)));
    let script = totals.script.unwrap();
    assert_eq!(script.checks[1].fails, 4);
    let names: Vec<&str> = script.metrics.iter().map(|metric| metric.name.as_str()).collect();
    assert_eq!(
        names,
        ["iterations", "dropped_iterations", "checkout_time{tier:gold}"],
        "only those with a value"
    );
    assert_eq!(script.metrics[2].values["med"], 20.0);
}

#[test]
fn a_script_that_makes_no_requests_has_done_its_iterations() {
    let mut record = script_run();
    record.total =
        squall_measure::Snapshot { script: record.total.script, ..squall_measure::Snapshot::new(0, false) };
    record.rows.clear();
    assert!(terminal_text(&record, Style::FILE).starts_with("! done with failures"), "a check failed");
    record.total.script.as_mut().unwrap().checks.clear();
    assert!(terminal_text(&record, Style::FILE).starts_with("✓ done"));
}

/// Three seconds of a script, one of whose checks failed now and then.
pub(super) fn script_run() -> RunRecord {
    let mut record = fixture::closed_run();
    record.plan.loads[0].what = What::Script(ScriptLoad {
        path: PathBuf::from("checkout.js"),
        options: "{}".to_owned(),
        scenarios: vec!["default: constant-vus".to_owned()],
        speaks_http3: false,
    });
    let mut time = Trend::default();
    [10.0, 20.0, 30.0].into_iter().for_each(|value| time.add(value));
    let counter = |name: &str, count: u64| {
        ScriptMetric::new(name, ScriptUnit::Default, ScriptValue::Counter { sum: count as f64, count })
    };
    let made_check = |group: &str, name: &str, fails| ScriptCheck {
        group: group.to_owned(),
        name: name.to_owned(),
        passes: 1_234 - fails,
        fails,
    };
    record.total.script = Some(Box::new(ScriptFigures {
        metrics: vec![
            counter("iterations", 1_234),
            counter("dropped_iterations", 3),
            counter("never_added_to", 0),
            ScriptMetric {
                tags: vec![("tier".to_owned(), "gold".to_owned())],
                ..ScriptMetric::new("checkout_time", ScriptUnit::Time, ScriptValue::Trend(Box::new(time)))
            },
        ],
        checks: vec![made_check("", "status is 200", 0), made_check("::checkout", "has a basket", 4)],
        groups: vec!["::checkout".to_owned()],
    }));
    record
}
