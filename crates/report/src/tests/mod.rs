//! Every output format, written for fixed runs and compared with its golden file.
//!
//! After a wanted change, `UPDATE_GOLDEN=1 cargo test -p squall-report` rewrites the files: review their diff like prose.

mod build;
mod connections;
mod contract;
pub(crate) mod fixture;
pub(crate) mod mixed;
mod received;
mod saved;
mod schema;
mod script;
mod tampered;

use std::path::{Path, PathBuf};
use std::time::Duration;

use squall_measure::{Event, EventKind, RunRecord};

use crate::{Format, Glance, MachineGlance, Progress, ProgressMode, Style, Summary, csv, json, terminal};

/// A run of every kind.
fn runs_of_every_kind() -> Vec<RunRecord> {
    vec![
        fixture::open_run(),
        fixture::closed_run(),
        fixture::refused_run(),
        fixture::overloaded_run(),
        connections::handshake_run(),
        connections::idle_run(),
        connections::stream_run(),
        connections::websocket_run(),
        script::script_run(),
        mixed::run(),
    ]
}

/// Compares with `golden/NAME`, or rewrites it when the update switch is set.
#[track_caller]
fn check(name: &str, actual: &str) {
    check_file(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src/tests/golden").join(name), actual);
}

#[track_caller]
fn check_file(path: &Path, actual: &str) {
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(path, actual).unwrap();
    }
    let expected = std::fs::read_to_string(path).unwrap_or_default();
    let hint = "run with UPDATE_GOLDEN=1 when this change is wanted";
    assert!(expected == actual, "{} differs; {hint}. Now:\n{actual}", path.display());
}

fn terminal_text(record: &RunRecord, style: Style) -> String {
    let saved = PathBuf::from("/home/user/.local/state/squall/runs/2026-08-30T141200Z-checkout");
    terminal::draw(&Summary::from(record), Some(&saved), style)
}

#[test]
fn terminal_tells_the_verdict_first_and_every_figure_with_its_unit() {
    check("open.txt", &terminal_text(&fixture::open_run(), Style::FILE));
    check("closed.txt", &terminal_text(&fixture::closed_run(), Style::FILE));
    check("refused.txt", &terminal_text(&fixture::refused_run(), Style::FILE));
    check("overloaded.txt", &terminal_text(&fixture::overloaded_run(), Style::FILE));
}

#[test]
fn terminal_keeps_its_words_without_colour_and_unicode() {
    let record = fixture::open_run();
    let ascii = terminal_text(&record, Style { unicode: false, ..Style::FILE });
    check("open.ascii.txt", &ascii);
    assert!(ascii.is_ascii());
    check("open.color.txt", &terminal_text(&record, Style { color: true, ..Style::FILE }));
    check("open.narrow.txt", &terminal_text(&record, Style { width: 60, ..Style::FILE }));
}

#[test]
fn terminal_never_exceeds_its_width_but_for_paths() {
    for record in
        [fixture::open_run(), fixture::closed_run(), fixture::refused_run(), fixture::overloaded_run()]
    {
        let text = terminal_text(&record, Style::FILE);
        let wide = text.lines().filter(|line| !line.contains('/')).find(|line| line.chars().count() > 80);
        assert_eq!(wide, None);
    }
}

#[test]
fn terminal_survives_absurd_figures() {
    for duration_s in [0.0, -1.0, f64::MAX, f64::NAN] {
        let summary = Summary { duration_s, ..Summary::from(&fixture::open_run()) };
        assert!(terminal::draw(&summary, None, Style::FILE).contains("LATENCY"));
    }
}

#[test]
fn json_and_csv_have_every_figure() {
    let summary = Summary::from(&fixture::open_run());
    check("open.json", &json::draw(&summary));
    check("open.csv", &csv::draw(&summary));
    let empty = Summary::from(&fixture::refused_run());
    check("refused.json", &json::draw(&empty));
    check("refused.csv", &csv::draw(&empty));
}

#[test]
fn junit_has_a_case_for_each_threshold() {
    check("open.junit.xml", &Format::Junit.draw(&fixture::open_run(), &Summary::from(&fixture::open_run())));
    let none = fixture::closed_run();
    assert!(Format::Junit.draw(&none, &Summary::from(&none)).contains("tests=\"1\" failures=\"0\""));
}

#[test]
fn markdown_has_the_thresholds_as_a_table_and_nothing_from_outside_as_markup() {
    let record = fixture::open_run();
    check("open.md", &Format::Markdown.draw(&record, &Summary::from(&record)));
    let mut summary = Summary::from(&record);
    summary.name = "a`b`\n# c <img src=x> | *d*".to_owned();
    summary.thresholds.clear();
    let text = Format::Markdown.draw(&record, &summary);
    let first = text.lines().next().unwrap();
    assert_eq!(first, "### a\\`b\\` \\# c &lt;img src=x&gt; | \\*d\\*: VALID");
    assert!(text.lines().skip(1).all(|line| line.is_empty() || line.starts_with("    ")), "{text}");
}

/// What a day leaves behind, and what strangers put into names, stay within bounds.
#[test]
fn page_of_a_day_is_small_and_holds_text_as_text() {
    let page = Format::Html.draw(&fixture::day_run(), &Summary::from(&fixture::refused_run()));
    assert!(page.len() < 3_000_000, "{} bytes", page.len());
    let fleet = mixed::run_on(120);
    let page = Format::Html.draw(&fleet, &Summary::from(&fleet));
    assert!(page.len() < 3_000_000, "{} bytes", page.len());
    let evil = Format::Html.draw(&fixture::evil_run(), &Summary::from(&fixture::refused_run()));
    assert!(!evil.contains("<script>alert") && !evil.contains("<img src"));
}

#[test]
fn page_without_its_viewer_has_the_summary_and_the_charts() {
    let page = crate::page::plain_for_tests(&crate::page::of_run(&fixture::open_run()));
    for part in ["p99.9", "checkout", "<svg", "timeout while waiting", "0:10"] {
        assert!(page.contains(part), "{part}");
    }
}

fn progress_text(mode: ProgressMode, style: Style) -> String {
    let mut stream = Vec::new();
    let mut progress = Progress::new(&mut stream, style, mode);
    for second_count in [0, 1, 3, 10, 11] {
        progress.update(&Glance::from(&fixture::closed_recorder(second_count)));
    }
    drop(progress);
    String::from_utf8(stream).unwrap()
}

#[test]
fn progress_is_one_line_redrawn_or_one_line_each_ten_seconds_or_nothing() {
    assert_eq!(progress_text(ProgressMode::Quiet, Style::FILE), "");
    check("progress.plain.txt", &progress_text(ProgressMode::Plain, Style::FILE));
    check("progress.redrawn.txt", &progress_text(ProgressMode::Redrawn, Style::FILE).replace('\r', "\n"));
}

#[test]
fn an_event_that_no_line_holds_is_wrapped_by_words() {
    let mut record = fixture::open_run();
    let label = "monitor target shop.example:9100 never answered: its page has no series of the names that were asked for";
    record.events.push(Event { at_s: 2.0, label: label.to_owned(), kind: EventKind::Note });
    let text = terminal::draw(&Summary::from(&record), None, Style::FILE);
    assert!(text.contains("EVENTS      2.0 s   monitor target"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= Style::FILE.width), "{text}");
}

#[test]
fn what_is_going_on_is_shown_where_it_fits() {
    let glance = Glance {
        phase: Some("step `peak` (2 of 3)".to_owned()),
        ..Glance::from(&fixture::closed_recorder(11))
    };
    let text = |mode, width| {
        let mut stream = Vec::new();
        Progress::new(&mut stream, Style { width, ..Style::FILE }, mode).update(&glance);
        String::from_utf8(stream).unwrap()
    };
    for (mode, width, is_shown) in [
        (ProgressMode::Plain, 40, true),
        (ProgressMode::Redrawn, 120, true),
        (ProgressMode::Redrawn, 30, false),
    ] {
        assert_eq!(text(mode, width).contains("peak"), is_shown, "{mode:?} at {width}");
    }
    let screen = crate::live::tests::screen(&glance, &[], Style::FILE, (80, 24));
    assert!(screen.contains("step `peak` (2 of 3)"));
}

#[test]
fn a_run_that_is_over_says_what_it_waits_for() {
    let glance = |elapsed_s| Glance {
        elapsed: Duration::from_secs(elapsed_s),
        ..Glance::from(&fixture::closed_recorder(11))
    };
    for (elapsed_s, is_shown) in [(11, false), (12, false), (13, true)] {
        let mut stream = Vec::new();
        let style = Style { width: 120, ..Style::FILE };
        Progress::new(&mut stream, style, ProgressMode::Redrawn).update(&glance(elapsed_s));
        let text = String::from_utf8(stream).unwrap();
        assert_eq!(text.contains("waiting for open requests"), is_shown, "{text}");
    }
}

#[test]
fn progress_never_wraps() {
    for width in [20, 40, 60, 80, 120] {
        let text = progress_text(ProgressMode::Redrawn, Style { width, ..Style::FILE });
        let lines = text.split("\x1b[?7l").map(|line| line.split('\x1b').next().unwrap_or_default());
        let wide = lines.clone().find(|line| line.chars().count() >= width);
        assert_eq!(wide, None, "at {width} columns");
        assert_eq!(lines.skip(1).filter(|line| line.contains(':')).count(), 5, "each one tells the time");
    }
}

#[test]
fn live_view_fits_any_terminal() {
    let glance = Glance::from(&fixture::open_recorder());
    let screen = |style, width| crate::live::tests::screen(&glance, &[], style, (width, 24));
    check("live.txt", &screen(Style::FILE, 80));
    check("live.ascii.txt", &screen(Style { unicode: false, ..Style::FILE }, 80));
    check("live.narrow.txt", &screen(Style::FILE, 50));
    for width in [1, 20, 200] {
        screen(Style::FILE, width);
    }
    let early = Glance::from(&fixture::closed_recorder(0));
    assert!(crate::live::tests::screen(&early, &[], Style::FILE, (80, 24)).contains("none"));
}

#[test]
fn live_view_has_space_for_every_machine_of_a_fleet() {
    let (recorder, lost) = (fixture::open_recorder(), fixture::closed_recorder(3));
    let glance = Glance::from(&recorder);
    let names: Vec<String> = (1..=40).map(|number| format!("generator-{number}")).collect();
    let machine = |(idx, name): (usize, &'static str)| match idx {
        1 => MachineGlance::new(name, &lost, Some("lost: the connection ended")),
        _ => MachineGlance::new(name, &recorder, None),
    };
    let names: Vec<&'static str> = names.into_iter().map(|name| &*name.leak()).collect();
    let machines: Vec<MachineGlance<'_>> = names.into_iter().enumerate().map(machine).collect();
    let screen =
        |count: usize, size| crate::live::tests::screen(&glance, &machines[..count], Style::FILE, size);
    check("live.machines-3.txt", &screen(3, (80, 24)));
    check("live.machines-20.txt", &screen(20, (80, 24)));
    check("live.machines-20.wide.txt", &screen(20, (140, 50)));
    assert!(!screen(1, (80, 24)).contains("machines"), "a machine alone is the whole run");
    assert!(screen(40, (80, 24)).contains("not shown"));
    for size in [(1, 1), (20, 10), (40, 80), (300, 20)] {
        screen(40, size);
    }
}

#[test]
fn requests_handshakes_and_idle_connections_are_never_added_up() {
    let text = terminal_text(&mixed::run(), Style::FILE);
    check("mixed.txt", &text);
    for sum in ["720", "770", "776"] {
        assert!(!text.contains(sum), "{sum} is a sum of different things:\n{text}");
    }
}

#[test]
fn progress_shows_requests_handshakes_and_idle_connections_apart() {
    let line = |mode, width, second_count| {
        let mut stream = Vec::new();
        Progress::new(&mut stream, Style { width, ..Style::FILE }, mode)
            .update(&Glance::from(&mixed::recorder(second_count)));
        String::from_utf8(stream).unwrap()
    };
    let plain = line(ProgressMode::Plain, 80, 12);
    let figures = "failed 12 handshakes   requests 50.0/s   handshakes 21.0/s   idle connections 25";
    assert!(plain.contains(figures), "{plain}");
    assert!(line(ProgressMode::Redrawn, 100, 12).contains("failed 12 handshakes   requests 50.0/s"));
    assert!(line(ProgressMode::Redrawn, 40, 1).contains("0:01"));
    let glance = Glance::from(&mixed::recorder(12));
    let screen = |size| crate::live::tests::screen(&glance, &[], Style::FILE, size);
    check("live.mixed.txt", &screen((80, 30)));
    for size in [(1, 1), (20, 10), (40, 80), (300, 20)] {
        screen(size);
    }
    // Sums of different things: 85 or 71 a second.
    assert!(!plain.contains("71.0/s") && !screen((80, 30)).contains("71.0/s"), "{plain}");
}

/// A run that was saved before there were shares is read, and shown without them.
#[test]
fn a_saved_run_without_shares_is_read() {
    let mut json = serde_json::to_value(mixed::run()).unwrap();
    json.as_object_mut().unwrap().remove("shares").unwrap();
    let record: RunRecord = serde_json::from_value(json).unwrap();
    assert!(record.shares.is_empty());
    assert!(terminal_text(&record, Style::FILE).contains("120 ok"));
    assert!(Format::Html.draw(&record, &Summary::from(&record)).len() > 1_000);
}

#[test]
fn what_foreign_tools_alone_made_is_reported_as_theirs() {
    check("tools.txt", &terminal_text(&fixture::tools_run(), Style::FILE));
}
