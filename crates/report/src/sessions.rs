//! What the terminal says of handshakes and kept connections, between the counts and the errors.

use crate::summary::{HandshakeSummary, IdleConnections, NegotiatedSummary};
use crate::{units, wording};

/// `full 50   resumed 950 (95 %)   ...`; nothing where no handshake was made.
pub(crate) fn handshake_facts(made: &HandshakeSummary) -> Vec<String> {
    let share = |part: u64| units::percent(part as f64 / made.count.max(1) as f64);
    let mut facts = vec![format!("{} full", units::count(made.full))];
    facts.push(format!("{} resumed ({})", units::count(made.resumed), share(made.resumed)));
    let accepted = made.early_data_accepted.map(|count| (count, "with early data (0-RTT)"));
    let early =
        accepted.into_iter().chain(made.early_data_rejected.map(|count| (count, "early data rejected")));
    facts.extend(early.map(|(count, name)| format!("{} {name}", units::count(count))));
    let rare =
        [(made.without_ticket, "before the first ticket"), (made.hello_retries, "with HelloRetryRequest")];
    facts.extend(
        rare.iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, name)| format!("{} {name}", units::count(*count))),
    );
    for (name, times) in [("full p50", &made.full_us), ("resumed p50", &made.resumed_us)] {
        facts.extend((times.count > 0).then(|| format!("{name} {}", wording::time(times.p50))));
    }
    if let Some(bytes) = (made.bytes_sent + made.bytes_received).checked_div(made.count) {
        facts.push(format!("{} each", units::bytes(bytes)));
    }
    facts
}

/// `950   TLS 1.3   TLS_AES_256_GCM_SHA384   X25519   http/1.1   1 certificate of 412 B`
pub(crate) fn negotiated_facts(row: &NegotiatedSummary) -> Vec<String> {
    let terms = &row.terms;
    let chain = (terms.chain_count > 0).then(|| {
        let certificates = units::counted(u64::from(terms.chain_count), "certificate");
        format!("{certificates} of {}", units::bytes(u64::from(terms.chain_bytes)))
    });
    let count = units::count(row.count);
    let parts = [&count, &terms.version, &terms.cipher, &terms.group, &terms.alpn];
    parts.into_iter().filter(|part| !part.is_empty()).cloned().chain(chain).collect()
}

/// `1 000 opened   1 000 open at most   3 closed by the server   ...`
pub(crate) fn kept_facts(kept: &IdleConnections) -> Vec<String> {
    let mut facts = vec![
        format!("{} opened", units::count(kept.opened)),
        format!("at most {} open", units::count(kept.open_max)),
        format!("{} timeouts", units::count(kept.timeouts)),
    ];
    let ends = [
        (kept.closed_by_server, "closed by the server"),
        (kept.reset, "reset"),
        (kept.broken, "broken"),
        (kept.reopened, "reopened"),
        (kept.closed_by_us, "closed by squall"),
    ];
    facts.extend(
        ends.iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, name)| format!("{} {name}", units::count(*count))),
    );
    if kept.lifetime_us.count > 0 {
        let (p50, max) = (wording::time(kept.lifetime_us.p50), wording::time(kept.lifetime_us.max));
        facts.push(format!("lost connections lasted {p50} (p50), at most {max}"));
    }
    if kept.pings > 0 {
        facts.push(format!(
            "{} pings, answered in {} (p50)",
            units::count(kept.pings),
            wording::time(kept.ping_us.p50)
        ));
    }
    facts.extend(
        kept.memory_bytes_each
            .map(|bytes| format!("{} of generator memory each", units::bytes(bytes.round() as u64))),
    );
    facts
}
