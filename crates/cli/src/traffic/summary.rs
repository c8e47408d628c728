//! What a recording holds, as people read it.

use std::fmt::Write;
use std::path::Path;
use std::time::Duration;

use squall_plan::units::DurationText;
use squall_report::units::counted;
use squall_traffic::Summary;

use super::import::{assign_session, is_wanted, sessions, source, unreadable};
use super::progress::ReadProgress;
use super::reading::ReadArgs;
use crate::failure::Failure;

/// Reads a recording to its end.
pub(super) fn of_file(path: &Path, args: &ReadArgs) -> Result<String, Failure> {
    let mut source = source(path, args)?;
    let mut progress = ReadProgress::new(path);
    let mut summary = Summary::default();
    let mut sessions = sessions(args);
    let (mut bad, mut bad_count) = (Vec::new(), 0_u64);
    loop {
        match source.next() {
            Ok(None) => break,
            Ok(Some(mut record)) => {
                assign_session(&mut sessions, &mut record, args);
                if is_wanted(&record, args) {
                    summary.add(&record);
                }
            }
            Err(problem) if args.skip_bad => {
                bad_count += 1;
                if bad.len() < BAD_SHOWN_MAX {
                    bad.push(problem.to_string());
                }
                if problem.is_fatal {
                    break;
                }
            }
            Err(problem) => return Err(unreadable(path, args, &problem)),
        }
        progress.update(source.bytes_read());
    }
    drop(progress);
    let mut text = text(&summary);
    let notes =
        source.notes().iter().map(|(text, count, place)| format!("{count} x {text} (first at {place})"));
    let shown = bad.into_iter().map(|problem| format!("left out: {problem}"));
    let more = (bad_count > BAD_SHOWN_MAX as u64).then(|| format!("left out: {bad_count} records in total"));
    for line in summary.attention().into_iter().chain(notes).chain(shown).chain(more) {
        let _ = writeln!(text, "{:<NAME_WIDTH$}{line}", "attention");
    }
    Ok(text)
}

fn text(summary: &Summary) -> String {
    let length = Duration::from_nanos(summary.length_ns());
    let seconds = if length.is_zero() { 1.0 } else { length.as_secs_f64() };
    let mean_per_s = summary.request_count as f64 / seconds;
    let named = |counts: Vec<String>| counts.join(", ");
    let mut lines = vec![
        ("requests", format!("{}, {}", summary.request_count, bytes(summary.request_bytes))),
        (
            "length",
            format!(
                "{}, {mean_per_s:.1} requests/s on average, {} in the busiest second",
                DurationText(rounded(length)),
                summary.peak_per_s()
            ),
        ),
        (
            "sessions",
            format!(
                "{} identified, on {}",
                summary.session_count(),
                counted(summary.connection_count() as u64, "connection")
            ),
        ),
        (
            "methods",
            named(summary.methods.iter().map(|(method, count)| format!("{count} {method}")).collect()),
        ),
        ("largest", format!("{} of request body", bytes(summary.body_bytes_max))),
    ];
    if !summary.statuses.is_empty() {
        lines.push((
            "statuses",
            named(summary.statuses.iter().map(|(status, count)| format!("{count} x {status}")).collect()),
        ));
    }
    if summary.web_socket_count > 0 {
        let (sent, received) = summary.message_counts;
        let opened = counted(summary.web_socket_count, "WebSocket");
        lines.push(("messages", format!("{sent} of the client and {received} of the server, on {opened}")));
    }
    let hosts = summary.hosts();
    for host in hosts.iter().take(HOSTS_SHOWN_MAX) {
        let unknown = host.origin.ends_with("://");
        let origin = if unknown { "(no host)" } else { host.origin.as_str() };
        lines.push(("host", format!("{} to {origin}", counted(host.request_count, "request"))));
    }
    if hosts.len() > HOSTS_SHOWN_MAX {
        lines.push(("host", format!("and {} more", hosts.len() - HOSTS_SHOWN_MAX)));
    }
    lines.iter().fold(String::new(), |mut text, (name, line)| {
        let _ = writeln!(text, "{name:<NAME_WIDTH$}{line}");
        text
    })
}

/// To the millisecond: more says nothing here.
fn rounded(length: Duration) -> Duration {
    Duration::from_millis(u64::try_from(length.as_millis()).unwrap_or(u64::MAX))
}

fn bytes(count: u64) -> String {
    match count {
        0..10_000 => format!("{count} bytes"),
        10_000..10_000_000 => format!("{:.1} kB", count as f64 / 1e3),
        10_000_000..10_000_000_000 => format!("{:.1} MB", count as f64 / 1e6),
        _ => format!("{:.1} GB", count as f64 / 1e9),
    }
}

const NAME_WIDTH: usize = 12;

const HOSTS_SHOWN_MAX: usize = 10;

/// Problems shown with their reasons.
const BAD_SHOWN_MAX: usize = 10;
