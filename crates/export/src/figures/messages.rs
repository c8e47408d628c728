//! The figures of WebSockets and of streams of events.

use std::collections::BTreeMap;

use squall_measure::{ClosedBy, Histogram, Kept, Snapshot, StreamFigures, WebSockets};

use super::{OutputFigure, counter, distribution, gauge, name_of, quantile, times_named};

/// What WebSockets, kept connections and streams have; nothing where a run has none of them.
pub(super) fn of_messages(total: &Snapshot) -> Vec<OutputFigure> {
    let kept = total.sessions.as_deref().map(|sessions| &sessions.kept).filter(|kept| kept.opened > 0);
    let (streams, websockets) = (total.streams.as_deref(), total.websockets.as_deref());
    let mut figures = Vec::new();
    figures.extend(kept.into_iter().flat_map(of_kept));
    figures.extend(websockets.into_iter().flat_map(of_websockets));
    figures.extend(kept.filter(|_| websockets.is_some()).into_iter().flat_map(of_websocket_lives));
    figures.extend(streams.into_iter().flat_map(of_streams));
    figures.extend(of_reconnects(kept, streams));
    figures
}

fn of_kept(kept: &Kept) -> [OutputFigure; 2] {
    let open = kept.opened.saturating_sub(kept.lost() + kept.closed_by_us);
    [
        gauge("squall_kept_connections_open", "WebSockets and idle connections open.", open as f64),
        counter(
            "squall_disconnects_total",
            "WebSockets and idle connections that ended and were not closed by squall.",
            kept.lost(),
        ),
    ]
}

fn of_websockets(made: &WebSockets) -> Vec<OutputFigure> {
    let help = "Time from a message to its echo or delivery so far, in seconds.";
    let mut figures = vec![
        counter("k6_ws_msgs_sent_total", "Messages sent on WebSockets.", made.messages_sent),
        counter("k6_ws_msgs_received_total", "Messages received on WebSockets.", made.messages_received),
        counter("squall_ws_unanswered_total", "Messages without an answer.", made.unanswered),
    ];
    figures.extend(distribution(&times_named!("squall_ws_msg_latency"), help, &made.latency));
    figures.extend(of_closes(made));
    figures
}

/// Reasons are a server's own words: as labels they could be any number.
fn of_closes(made: &WebSockets) -> impl Iterator<Item = OutputFigure> {
    let mut counts: BTreeMap<(ClosedBy, u16), u64> = BTreeMap::new();
    for row in &made.closes {
        *counts.entry((row.close.by, row.close.code)).or_default() += row.count;
    }
    counts.into_iter().map(|((by, code), count)| OutputFigure {
        labels: vec![("by", name_of(&by)), ("code", code.to_string())],
        ..counter("squall_ws_closes_total", "WebSockets closed, by who closed them and close code.", count)
    })
}

fn of_websocket_lives(kept: &Kept) -> Vec<OutputFigure> {
    let help = "How long WebSockets lasted that ended and were not closed by squall, in seconds.";
    let mut figures = distribution(&times_named!("k6_ws_session_duration"), help, &kept.lifetime);
    let help = "Time from a ping to its answer, 99th percentile in seconds.";
    figures.extend(quantile("k6_ws_ping_p99", help, &kept.ping_time, 0.99));
    figures
}

fn of_streams(made: &StreamFigures) -> Vec<OutputFigure> {
    let times = |names, help, times: &Histogram| distribution(names, help, times);
    let mut figures = vec![
        counter("squall_streams_opened_total", "Streams whose response head was received.", made.opened),
        counter("squall_streams_ended_early_total", "Streams that ended too early.", made.ended_early),
        counter("squall_stream_events_total", "Events received.", made.events),
        counter("squall_stream_event_bytes_total", "Bytes of the data of events.", made.event_bytes),
    ];
    let help = "Time from the start of a stream to its first event so far, in seconds.";
    figures.extend(times(&times_named!("squall_stream_first_event"), help, &made.first_event));
    let help = "Time between two events of a stream so far, in seconds.";
    figures.extend(times(&times_named!("squall_stream_event_gap"), help, &made.event_gap));
    if made.judged > 0 {
        let help = "Streams that ended, by whether they met all objectives.";
        figures.extend([("true", made.good), ("false", made.judged - made.good)].map(|(good, count)| {
            let labels = vec![("good", good.to_owned())];
            OutputFigure { labels, ..counter("squall_streams_judged_total", help, count) }
        }));
    }
    figures
}

fn of_reconnects(kept: Option<&Kept>, streams: Option<&StreamFigures>) -> impl Iterator<Item = OutputFigure> {
    let counts = [
        ("connection", kept.map(|kept| kept.reopened)),
        ("stream", streams.map(|streams| streams.reconnects)),
    ];
    let help = "Connections and streams opened again after they had ended.";
    counts.into_iter().filter_map(move |(what, count)| {
        let labels = vec![("of", what.to_owned())];
        Some(OutputFigure { labels, ..counter("squall_reconnects_total", help, count?) })
    })
}

#[cfg(test)]
mod tests {
    use squall_measure::Sessions;

    use super::*;

    #[test]
    fn a_run_of_requests_has_none() {
        assert_eq!(of_messages(&Snapshot::new(1, false)), []);
    }

    #[test]
    fn websockets_have_messages_closes_and_reconnects() {
        let mut made =
            WebSockets { messages_sent: 7, messages_received: 6, unanswered: 1, ..WebSockets::default() };
        made.latency.record(2_000_000);
        made.count_close(ClosedBy::Server, 1001, "restart", 2);
        made.count_close(ClosedBy::Server, 1001, "deploy", 1);
        made.count_close(ClosedBy::Squall, 1000, "", 4);
        let mut sessions = Sessions::default();
        let kept = &mut sessions.kept;
        (kept.opened, kept.reopened, kept.closed_by_server, kept.closed_by_us) = (10, 3, 3, 4);
        kept.lifetime.record(5_000_000_000);
        let websockets = Some(Box::new(made));
        let sessions = Some(Box::new(sessions));
        let texts = texts(&Snapshot { websockets, sessions, ..Snapshot::default() });
        for text in [
            "k6_ws_msgs_sent_total 7",
            "k6_ws_msgs_received_total 6",
            "k6_ws_session_duration_p99 5",
            "squall_disconnects_total 3",
            "squall_kept_connections_open 3",
            "squall_reconnects_total of=connection 3",
            "squall_ws_closes_total by=server code=1001 3",
            "squall_ws_closes_total by=squall code=1000 4",
            "squall_ws_msg_latency_avg 0.002",
            "squall_ws_msg_latency_max 0.002",
            "squall_ws_unanswered_total 1",
        ] {
            assert!(texts.iter().any(|one| one == text), "{text} is not in {texts:#?}");
        }
    }

    #[test]
    fn streams_have_events_times_and_goodput() {
        let mut made = StreamFigures { opened: 5, events: 40, reconnects: 1, ..StreamFigures::default() };
        (made.judged, made.good) = (4, 3);
        made.first_event.record(30_000_000);
        made.event_gap.record(20_000_000);
        let texts = texts(&Snapshot { streams: Some(Box::new(made)), ..Snapshot::default() });
        for text in [
            "squall_reconnects_total of=stream 1",
            "squall_stream_event_gap_min 0.02",
            "squall_stream_events_total 40",
            "squall_stream_first_event_max 0.03",
            "squall_streams_judged_total good=false 1",
            "squall_streams_judged_total good=true 3",
            "squall_streams_opened_total 5",
        ] {
            assert!(texts.iter().any(|one| one == text), "{text} is not in {texts:#?}");
        }
    }

    fn texts(total: &Snapshot) -> Vec<String> {
        let text = |figure: &OutputFigure| {
            let labels = figure.labels.iter().map(|(name, value)| format!("{name}={value} "));
            format!("{} {}{}", figure.name, labels.collect::<String>(), figure.value)
        };
        of_messages(total).iter().map(text).collect()
    }
}
