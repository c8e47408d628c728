//! What the terminal and the page say of messages on WebSockets.

use squall_measure::{CloseCount, ClosedBy};

use crate::summary::WebSocketSummary;
use crate::{units, wording};

/// `1 200 sent   1 200 received   400/s   latency p50 0.1 ms …`
pub(crate) fn message_facts(made: &WebSocketSummary) -> Vec<String> {
    let mut facts = vec![
        format!("{} sent ({})", units::count(made.messages_sent), units::rate(made.sent_per_s)),
        format!("{} received ({})", units::count(made.messages_received), units::rate(made.received_per_s)),
        format!("{} received", units::bytes(made.bytes_received)),
    ];
    let rare = [
        (made.mismatched, "not as sent"),
        (made.unanswered, "unanswered"),
        (made.pings_answered, "pings of the server answered"),
    ];
    let rare = rare.iter().filter(|(count, _)| *count > 0);
    facts.extend(rare.map(|(count, name)| format!("{} {name}", units::count(*count))));
    facts
}

/// `p50 0.1 ms   p90 …`, of messages.
pub(crate) fn message_times(made: &WebSocketSummary) -> Vec<String> {
    let times = &made.latency_us;
    if times.count == 0 {
        return Vec::new();
    }
    let of = wording::time;
    let named = [
        ("latency p50", times.p50),
        ("p90", times.p90),
        ("p95", times.p95),
        ("p99", times.p99),
        ("p99.9", times.p99_9),
        ("max", times.max),
    ];
    let service = made.service_us.as_ref().map(|times| format!("service time p50 {}", of(times.p50)));
    named.iter().map(|(name, time)| format!("{name} {}", of(*time))).chain(service).collect()
}

/// `3 by the server: 1001 going away`
pub(crate) fn close_facts(row: &CloseCount) -> String {
    let reason = if row.close.reason.is_empty() { String::new() } else { format!(" {}", row.close.reason) };
    format!("{} by {}: {}{reason}", units::count(row.count), closer(row.close.by), row.close.code)
}

/// Who closed a connection, in words.
pub(crate) fn closer(by: ClosedBy) -> &'static str {
    match by {
        ClosedBy::Server => "the server",
        ClosedBy::Squall => "squall",
        ClosedBy::Neither => "neither end",
    }
}
