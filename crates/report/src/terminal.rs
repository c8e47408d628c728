//! The summary at the end of a run, for people: verdict first, then what it rests on.
//!
//! Fits the stream's width; successes and failures are never mixed; every number has its unit.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use squall_measure::{Http2, Status, StoppedBy, ThresholdResult};
use squall_plan::{HttpVersion, Load, Profile, RequestPlan, When};

use crate::files::PAGE_FILE;
use crate::parts::{made_by_tools, part_lines, settled_by_tools};
use crate::replay::{comparison_facts, difference_lines, fidelity_facts, learned_lines};
use crate::script::{check_facts, iteration_facts};
use crate::sessions::{handshake_facts, kept_facts, negotiated_facts};
use crate::streams::{event_facts, stream_facts};
use crate::style::{Style, Tone};
use crate::summary::{
    AltSvcSummary, Distribution, ErrorGroup, KindTotals, LoadKind, QuicSummary, ReasonSummary, ReplaySummary,
    RowSummary, Summary, most_at_once, rate_per_s,
};
use crate::text::{Cell, INDENT, Page, Piece, Table, clean, shorten};
use crate::websockets::{close_facts, message_facts, message_times};
use crate::{hints, units, wording};

/// Draws the summary. `saved` is the run's folder, where there is one.
pub fn draw(summary: &Summary, saved: Option<&Path>, style: Style) -> String {
    let mut page = Page::new(style);
    headline(&mut page, summary);
    if is_unreached(summary) {
        thresholds(&mut page, summary);
        page.gap();
        attempts(&mut page, summary);
    } else {
        verdict(&mut page, summary);
        thresholds(&mut page, summary);
        match summary.is_by_tools() {
            true => parts(&mut page, summary),
            false => figures(&mut page, summary),
        }
    }
    footer(&mut page, summary, saved);
    page.into_string()
}

/// Nothing was measured where no request reached the target: only the failures are worth reading.
fn is_unreached(summary: &Summary) -> bool {
    summary.stopped_by == StoppedBy::Unreachable && summary.totals.ok == 0
}

/// What was tried in vain.
fn attempts(page: &mut Page, summary: &Summary) {
    counts(page, summary);
    errors(page, summary);
}

/// What squall made and measured itself.
fn figures(page: &mut Page, summary: &Summary) {
    latency(page, summary);
    rate(page, summary);
    parts(page, summary);
    errors(page, summary);
    traffic(page, summary);
    phases(page, summary);
    generator(page, summary);
}

/// `✗ failed   2 of 3 thresholds met   checkout   2m 00s`
fn headline(page: &mut Page, summary: &Summary) {
    let (symbol, word, tone) = outcome(summary);
    let mark = format!("{symbol} {word}");
    let mut facts = vec![
        thresholds_met(summary),
        summary.is_by_tools().then(|| made_by_tools(summary)),
        Some(shorten(&clean(&summary.name), NAME_WIDTH_MAX)),
        Some(length(summary)),
    ];
    facts.push(wording::stopped_early(summary.stopped_by).map(str::to_owned));
    let facts = facts.into_iter().flatten().collect::<Vec<_>>().join(BETWEEN);
    page.line(&[(tone, &mark), (Tone::Plain, BETWEEN), (Tone::Title, &facts)]);
}

/// The worst thing to say about the run decides its mark.
fn outcome(summary: &Summary) -> (char, &'static str, Tone) {
    let is_missed = summary.thresholds.iter().any(|threshold| !threshold.ok);
    let settled = settled(summary);
    let has_failures = settled.is_some_and(|(_, failed)| failed > 0)
        || summary.totals.script.as_ref().is_some_and(|script| script.fails() > 0);
    match summary.verdict.status {
        Status::Invalid => ('✗', "invalid", Tone::Bad),
        _ if is_missed => ('✗', "failed", Tone::Bad),
        _ if settled.is_some_and(|(ok, _)| ok == 0) => ('✗', "nothing succeeded", Tone::Bad),
        Status::Suspect => ('!', "suspect", Tone::Warning),
        Status::Valid if !summary.thresholds.is_empty() => ('✓', "passed", Tone::Good),
        Status::Valid if has_failures => ('!', "done with failures", Tone::Warning),
        Status::Valid => ('✓', "done", Tone::Good),
    }
}

/// What ended well and what failed: requests, or the iterations of a script that makes none. `None`: tools reported neither.
fn settled(summary: &Summary) -> Option<(u64, u64)> {
    let totals = &summary.totals;
    match totals.iterations {
        _ if summary.is_by_tools() => settled_by_tools(summary),
        Some(done) if totals.requests == 0 => Some((done, 0)),
        // A stream that was open at the end has done what it should until then.
        _ => {
            let open = totals.streams.as_ref().map_or(0, |streams| streams.closed_by_us);
            Some((totals.ok + open, totals.failed))
        }
    }
}

fn thresholds_met(summary: &Summary) -> Option<String> {
    let all = summary.thresholds.len();
    let met = summary.thresholds.iter().filter(|threshold| threshold.ok).count();
    (all > 0).then(|| format!("{met} of {} met", units::counted(all as u64, "threshold")))
}

fn length(summary: &Summary) -> String {
    units::span(Duration::try_from_secs_f64(summary.duration_s).unwrap_or(Duration::MAX))
}

/// Says whether the figures can be trusted, and if not, why: before any of them.
fn verdict(page: &mut Page, summary: &Summary) {
    let (word, tone, meaning) = match summary.verdict.status {
        Status::Valid if summary.is_by_tools() => {
            ("NOT JUDGED", Tone::Plain, "the results come from other tools; squall measured nothing itself")
        }
        Status::Valid => ("VALID", Tone::Good, "the generator kept up: these results describe the target"),
        Status::Suspect => ("SUSPECT", Tone::Warning, suspect_meaning(&summary.verdict.reasons)),
        Status::Invalid => ("INVALID", Tone::Bad, invalid_meaning(&summary.verdict.reasons)),
    };
    page.line(&[(Tone::Plain, INDENT), (tone, word), (Tone::Plain, BETWEEN), (Tone::Plain, meaning)]);
    for reason in &summary.verdict.reasons {
        page.paragraph((Tone::Warning, "    - "), &reason.message);
        page.paragraph((Tone::Hint, "      help: "), reason.help);
    }
    for note in &summary.verdict.notes {
        page.paragraph((Tone::Hint, "    note: "), &format!("{}; {}", note.message, note.help));
    }
}

/// What is wrong where the generator itself kept up is that a part of the load is missing.
fn suspect_meaning(reasons: &[ReasonSummary]) -> &'static str {
    match reasons.iter().all(|reason| reason.kind.is_missing_load()) {
        true => "less load than planned was generated: compare only what was sent",
        false => "trust counts and comparisons in the run, not absolute times or rates",
    }
}

/// The generator was the limit only where its own reasons are as grave as the verdict.
fn invalid_meaning(reasons: &[ReasonSummary]) -> &'static str {
    let mut grave = reasons.iter().filter(|reason| reason.severity == Status::Invalid);
    match grave.all(|reason| reason.kind.is_missing_load()) {
        true => "the load was not generated: do not use these results",
        false => "the generator was the bottleneck: do not use these results",
    }
}

fn thresholds(page: &mut Page, summary: &Summary) {
    if summary.thresholds.is_empty() {
        return;
    }
    section(page, "THRESHOLDS");
    let mut table = Table::default();
    for threshold in &summary.thresholds {
        table.row(threshold_cells(threshold));
    }
    page.table(&table);
}

fn threshold_cells(threshold: &ThresholdResult) -> Vec<Cell> {
    let (mark, tone) = if threshold.ok { ("✓ met", Tone::Good) } else { ("✗ missed", Tone::Bad) };
    let value = |value: f64| wording::threshold_value(value, threshold.unit);
    vec![
        Cell::left(mark).tone(tone),
        Cell::left(wording::rule(threshold)),
        Cell::right(threshold.actual.map_or_else(|| "no sample".to_owned(), value)),
        Cell::left(
            threshold.margin.map_or(String::new(), |margin| margin_text(threshold, &value(margin.abs()))),
        ),
    ]
}

fn margin_text(threshold: &ThresholdResult, distance: &str) -> String {
    let is_above = threshold.actual.is_some_and(|actual| actual > threshold.limit);
    match (threshold.ok, is_above) {
        _ if threshold.margin == Some(0.0) => "exactly at the limit".to_owned(),
        (true, _) => format!("{distance} to spare"),
        (false, true) => format!("{distance} over"),
        (false, false) => format!("{distance} short"),
    }
}

fn latency(page: &mut Page, summary: &Summary) {
    page.gap();
    let mut table = Table::default();
    let mut head = vec![Cell::left("LATENCY").tone(Tone::Title)];
    head.extend(
        ["p50", "p90", "p99", "p99.9", "max", "count"].map(|name| Cell::right(name).tone(Tone::Faint)),
    );
    table.row(head);
    if summary.is_mixed() {
        for kind in &summary.totals.kinds {
            table.row(latency_cells(kind.kind.words().to_owned(), &kind.latency_us));
        }
    } else {
        // Of connections that are kept, only the opening is an operation.
        let name = if summary.noun() == "connection" { "opening" } else { "all ok" };
        table.row(latency_cells(name.to_owned(), &summary.latency_us));
    }
    let names = row_names(&summary.rows);
    if names.len() > 1 {
        for (name, row) in names.into_iter().zip(&summary.rows).take(ROW_COUNT_SHOWN) {
            table.row(latency_cells(name, &row.latency_us));
        }
    }
    if summary.failed_latency_us.count > 0 {
        table.row(latency_cells("failed".to_owned(), &summary.failed_latency_us));
    }
    if let Some(service) = summary.service_us.as_ref().filter(|_| !summary.is_mixed()) {
        table.row(latency_cells("service time".to_owned(), service));
    }
    page.table(&table);
    latency_notes(page, summary);
}

fn latency_notes(page: &mut Page, summary: &Summary) {
    let hidden = summary.rows.len().saturating_sub(ROW_COUNT_SHOWN);
    if hidden > 0 {
        let note = format!("{INDENT}and {} in the JSON", units::counted(hidden as u64, "more row"));
        page.line(&[(Tone::Faint, &note)]);
    }
    if summary.service_us.is_some() && !summary.is_mixed() {
        let begin = if summary.noun() == "request" { "the send" } else { "the connect" };
        let note = &format!("measured from the intended start (open model); service time from {begin}");
        page.paragraph((Tone::Faint, INDENT), note);
    }
}

fn latency_cells(name: String, times: &Distribution) -> Vec<Cell> {
    let mut cells = vec![Cell::left(name)];
    cells.extend(
        [times.p50, times.p90, times.p99, times.p99_9, times.max]
            .map(|time| Cell::right(wording::time(time))),
    );
    cells.push(Cell::right(units::count_short(times.count)));
    cells
}

/// `POST /pay`; with the origin only where rows differ in it, and so with the protocol and the load.
pub(crate) fn row_names(rows: &[RowSummary]) -> Vec<String> {
    // A load of one row says more by its name than by a URL that others may have as well.
    let loads: BTreeSet<&str> = rows.iter().map(|row| row.load.as_str()).collect();
    if loads.len() == rows.len() && rows.len() > 1 {
        return rows.iter().map(|row| row.load.clone()).collect();
    }
    let one_protocol = rows.windows(2).all(|pair| pair[0].protocol == pair[1].protocol);
    let is_same =
        |part: fn(&RowSummary) -> &str| rows.windows(2).all(|pair| part(&pair[0]) == part(&pair[1]));
    let (one_load, one_origin) = (is_same(|row| &row.load), is_same(|row| origin(&row.url)));
    let name = |row: &RowSummary| {
        let url = if one_origin { &row.url[origin(&row.url).len()..] } else { &row.url };
        let load = if one_load { String::new() } else { format!("{}: ", row.load) };
        let protocol = if one_protocol { String::new() } else { format!("{} ", row.protocol) };
        format!("{load}{protocol}{} {}", row.method, if url.is_empty() { "/" } else { url })
    };
    rows.iter().map(name).collect()
}

/// `https://host:port` of a URL; empty when the pattern is no URL.
fn origin(url: &str) -> &str {
    let Some(host_at) = url.find("://").map(|at| at + 3) else { return "" };
    let host_len = url[host_at..].find(['/', '?']).unwrap_or(url.len() - host_at);
    &url[..host_at + host_len]
}

fn rate(page: &mut Page, summary: &Summary) {
    page.gap();
    if summary.is_mixed() {
        summary.totals.kinds.iter().for_each(|kind| items(page, kind_title(kind.kind), &kind_facts(kind)));
    } else {
        rate_of_one_kind(page, summary);
    }
    scripts(page, summary);
    sessions(page, summary);
}

fn kind_title(kind: LoadKind) -> &'static str {
    match kind {
        LoadKind::Requests => "REQUESTS",
        LoadKind::Handshakes => "HANDSHAKES",
        LoadKind::IdleConnections => "IDLE",
        LoadKind::Streams => "STREAMS",
        LoadKind::WebSockets => "WEBSOCKETS",
    }
}

/// `5 000/s   30 000 ok   12 failed   30 012 scheduled`: rates are of the time in which its own loads went on.
fn kind_facts(kind: &KindTotals) -> Vec<String> {
    let done =
        if matches!(kind.kind, LoadKind::IdleConnections | LoadKind::WebSockets) { "opened" } else { "ok" };
    let mut facts = vec![
        units::rate(kind.rate_per_s),
        format!("{} {done}", units::count(kind.ok)),
        format!("{} failed", units::count(kind.failed)),
    ];
    facts.extend(kind.asked.map(|asked| format!("{} scheduled", units::count(asked))));
    let interrupted = kind.interrupted;
    facts.extend((interrupted > 0).then(|| format!("{} interrupted", units::count(interrupted))));
    facts
}

fn rate_of_one_kind(page: &mut Page, summary: &Summary) {
    let totals = &summary.totals;
    let per_s = |count: u64| units::rate(rate_per_s(count, summary.schedule_s()));
    let done = format!("completed {}", units::rate(totals.rate_per_s));
    let mut facts = vec![done];
    if let (Some(asked), Some(never)) = (totals.requests_asked, totals.requests_never_sent) {
        facts.insert(0, format!("scheduled {}", per_s(asked)));
        let begun = if summary.noun() == "request" { "sent" } else { "started" };
        facts.insert(1, format!("{begun} {}", per_s(asked - never)));
        facts.push(format!("never {begun} {}", units::count(never)));
    }
    facts.extend(loops(summary));
    items(page, "RATE", &facts);
    counts(page, summary);
}

fn counts(page: &mut Page, summary: &Summary) {
    items(page, &format!("{}S", summary.noun().to_uppercase()), &request_counts(summary));
}

/// What only scripts have.
fn scripts(page: &mut Page, summary: &Summary) {
    if let Some(done) = summary.totals.iterations {
        items(page, "ITERATIONS", &iteration_facts(summary, done));
    }
    if let Some(script) = &summary.totals.script {
        items(page, "CHECKS", &check_facts(script));
    }
}

/// What only handshakes and kept connections have.
fn sessions(page: &mut Page, summary: &Summary) {
    if let Some(made) = &summary.totals.handshakes {
        items(page, "TLS", &handshake_facts(made));
        for (idx, row) in made.negotiated.iter().take(TERMS_COUNT_SHOWN).enumerate() {
            items(page, if idx == 0 { "NEGOTIATED" } else { "" }, &negotiated_facts(row));
        }
    }
    if let Some(kept) = &summary.totals.idle_connections {
        items(page, "KEPT", &kept_facts(kept));
    }
    if let Some(made) = &summary.totals.websockets {
        items(page, "MESSAGES", &message_facts(made));
        items(page, "", &message_times(made));
        for (idx, row) in made.closes.iter().take(CLOSES_SHOWN).enumerate() {
            items(page, if idx == 0 { "CLOSED" } else { "" }, &[close_facts(row)]);
        }
    }
    if let Some(streams) = &summary.totals.streams {
        items(page, "EVENTS", &event_facts(streams));
        items(page, "", &stream_facts(streams));
    }
    if let Some(replay) = &summary.totals.replay {
        replayed(page, replay);
    }
}

/// What only the replay of recorded traffic has.
fn replayed(page: &mut Page, replay: &ReplaySummary) {
    let fidelity = fidelity_facts(replay);
    if !fidelity.is_empty() {
        items(page, "REPLAY", &fidelity);
    }
    if replay.compared > 0 {
        items(page, "COMPARED", &comparison_facts(replay));
    }
    for line in difference_lines(replay) {
        items(page, "", &[line]);
    }
    if replay.corrected > 0 || !replay.learned.is_empty() {
        let corrected = units::counted(replay.corrected, "request");
        let of_part = replay.looked_through.map(|count| {
            format!("from the first {} records; the rules apply to later ones too", units::count(count))
        });
        let facts: Vec<String> =
            [format!("live values inserted into {corrected}")].into_iter().chain(of_part).collect();
        items(page, "LEARNED", &facts);
    }
    for line in learned_lines(replay) {
        items(page, "", &[line]);
    }
}

/// Steps, loads, machines, tools, and what was watched.
fn parts(page: &mut Page, summary: &Summary) {
    let lines = part_lines(summary);
    for (idx, (title, facts)) in lines.iter().enumerate() {
        if idx > 0 && !title.is_empty() || idx == 0 {
            page.gap();
        }
        items(page, title, facts);
    }
}

/// What limits the rate of a closed model: its connections, of which the user may not have chosen the number, and who shares them.
fn loops(summary: &Summary) -> Option<String> {
    let most = |profile: &Profile| profile.max().round() as u64;
    let at_once = |of: &dyn Fn(&Profile, Option<&Profile>) -> u64| {
        let span = |load: &Load| match &load.when {
            When::Closed { connections, users } => summary.span_of(load, of(connections, users.as_ref())),
            When::Open { .. } => None,
        };
        // Connections that are kept make no requests one after the other, and what a script's users do is the script's affair.
        let is_loop = |load: &&Load| load.what.noun() != "connection" && !load.what.is_script();
        let loads = summary.plan.loads.iter().filter(is_loop);
        most_at_once(&loads.filter_map(span).collect::<Vec<_>>())
    };
    let count = at_once(&|connections, _| most(connections));
    let user_count = at_once(&|_, users| users.map_or(0, most));
    let noun = summary.noun();
    let at_a_time = summary.plan.loads.iter().map(requests_per_connection).max().unwrap_or(1);
    let how = match at_a_time {
        1 => format!("one {noun} at a time"),
        _ => format!("up to {at_a_time} {noun}s at a time"),
    };
    let sharing = match user_count {
        0 => String::new(),
        _ => format!(", shared by {}", units::counted(user_count, "user")),
    };
    (count > 0).then(|| format!("{}, each {how}{sharing}", units::counted(count, "connection")))
}

/// By HTTP/2 streams, or pipelined.
fn requests_per_connection(load: &Load) -> u32 {
    let Some(http) = load.what.http() else { return 1 };
    let policy = &load.connections;
    let of = |request: &RequestPlan| match request.http {
        HttpVersion::Http11 => policy.pipeline_depth.get(),
        HttpVersion::Http2 | HttpVersion::Http3 | HttpVersion::Auto => policy.stream_count.get(),
    };
    http.requests.iter().map(of).max().unwrap_or(1)
}

fn request_counts(summary: &Summary) -> Vec<String> {
    let totals = &summary.totals;
    let mut counts =
        vec![format!("{} total", units::count(totals.requests)), format!("{} ok", units::count(totals.ok))];
    counts.push(format!("{} failed", units::count(totals.failed)));
    let rare = [
        (totals.interrupted, "interrupted"),
        (totals.retries, "sent again"),
        (totals.warmup_requests, "during warm-up"),
    ];
    counts.extend(
        rare.iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, name)| format!("{} {name}", units::count(*count))),
    );
    counts
}

fn errors(page: &mut Page, summary: &Summary) {
    if summary.errors.is_empty() {
        return;
    }
    let totals = &summary.totals;
    let share = totals.failed as f64 / (totals.ok + totals.failed).max(1) as f64;
    let of_all = if summary.is_mixed() {
        format!("{} total", units::count(totals.failed))
    } else {
        format!("{} of {}s", units::percent(share), summary.noun())
    };
    page.line(&[(Tone::Bad, &label("ERRORS")), (Tone::Plain, &of_all)]);
    for group in summary.errors.iter().take(ERROR_COUNT_SHOWN) {
        error_group(page, group);
    }
    let hidden = summary.errors.len().saturating_sub(ERROR_COUNT_SHOWN);
    if hidden > 0 {
        let note = format!("{}and {} in the JSON", label(""), units::counted(hidden as u64, "more kind"));
        page.line(&[(Tone::Faint, &note)]);
    }
}

/// `201  timeout while waiting`, and under it the first one in full.
fn error_group(page: &mut Page, group: &ErrorGroup) {
    let count = format!("{:>12}  ", units::count(group.count));
    let indent = " ".repeat(count.len());
    page.paragraph(
        (Tone::Plain, &count),
        &format!("{} {}", wording::cause(group.cause), wording::phase(group.phase)),
    );
    let Some(example) = &group.example else { return };
    let at = group.first_at_s.map(|at_s| format!("first at {}", units::span(Duration::from_secs_f64(at_s))));
    let parts = [at, group.example_url.clone(), Some(example.clone())];
    page.paragraph((Tone::Faint, &indent), &parts.into_iter().flatten().collect::<Vec<_>>().join(": "));
}

fn traffic(page: &mut Page, summary: &Summary) {
    let status = summary.status.iter().map(|(code, count)| format!("{code}: {}", units::count(*count)));
    items(page, "STATUS", &status.collect::<Vec<_>>());
    let totals = &summary.totals;
    let network = [
        format!("in {}", units::bytes(totals.bytes_received)),
        format!("out {}", units::bytes(totals.bytes_sent)),
        format!("{} opened", units::counted(totals.connections_opened, "connection")),
    ];
    items(page, "NETWORK", &network);
    if let Some(http2) = &totals.http2 {
        items(page, "HTTP/2", &http2_facts(http2));
    }
    if let Some(http3) = &totals.http3 {
        items(page, "HTTP/3", &http2_facts(http3));
    }
    if let Some(quic) = &totals.quic {
        items(page, "QUIC", &quic_facts(quic));
    }
    if let Some(alt_svc) = &totals.alt_svc {
        items(page, "ALT-SVC", &alt_svc_facts(alt_svc));
        alt_svc.fallback_causes.iter().take(ERROR_COUNT_SHOWN).for_each(|group| error_group(page, group));
    }
}

/// How often HTTP/3 was announced, and how many connections it got.
pub(crate) fn alt_svc_facts(alt_svc: &AltSvcSummary) -> Vec<String> {
    let mut facts = vec![
        format!("HTTP/3 announced {}", units::counted(alt_svc.discoveries, "time")),
        format!("{} moved to it", units::counted(alt_svc.connections, "connection")),
    ];
    for (count, what) in [
        (alt_svc.withdrawals, "withdrawn"),
        (alt_svc.ignored, "ignored"),
        (alt_svc.fallbacks, "fell back to TCP"),
    ] {
        facts.extend((count > 0).then(|| format!("{} {what}", units::count(count))));
    }
    facts
}

/// Packets and losses, datagrams, the congestion window and the round-trip times.
pub(crate) fn quic_facts(quic: &QuicSummary) -> Vec<String> {
    let mut facts = vec![
        units::counted(quic.connections, "connection"),
        format!("{} packets sent, {} lost", units::count(quic.packets_sent), units::count(quic.packets_lost)),
    ];
    facts.extend(datagram_facts(quic));
    if let Some(bytes) = quic.congestion_window_bytes {
        facts.push(format!("congestion window {}", units::bytes(bytes)));
    }
    let reductions = quic.congestion_events;
    facts.extend((reductions > 0).then(|| units::counted(reductions, "congestion event")));
    if quic.rtt_us.count > 0 {
        let (least, smoothed) = (wording::time(quic.rtt_min_us.p50), wording::time(quic.rtt_us.p50));
        facts.push(format!("RTT p50 {smoothed}, min {least}"));
    }
    if quic.migrations > 0 {
        let (moved, survived) = (units::count(quic.migrations), units::count(quic.migrations_survived));
        facts.push(format!("{moved} migrations, {survived} survived"));
    }
    for (count, what) in [
        (quic.retries, "Retry packets"),
        (quic.version_negotiations, "version negotiations"),
        (quic.datagrams_dropped, "datagrams dropped here"),
    ] {
        facts.extend((count > 0).then(|| format!("{} {what}", units::count(count))));
    }
    facts
}

/// How many datagrams each system call moved, and how large they were.
fn datagram_facts(quic: &QuicSummary) -> impl Iterator<Item = String> {
    let each = |sum: u64, count: u64| sum as f64 / count.max(1) as f64;
    let calls = format!(
        "datagrams per call {:.1} out, {:.1} in",
        each(quic.datagrams_sent, quic.send_calls),
        each(quic.datagrams_received, quic.receive_calls)
    );
    // Runs saved by older versions do not have them.
    let bytes = (quic.bytes_sent > 0).then(|| {
        let [out, into] =
            [each(quic.bytes_sent, quic.datagrams_sent), each(quic.bytes_received, quic.datagrams_received)];
        format!("bytes per datagram {out:.0} out, {into:.0} in")
    });
    [Some(calls), bytes].into_iter().flatten()
}

/// Streams, and what header compression saved.
pub(crate) fn http2_facts(http2: &Http2) -> [String; 4] {
    let packed = |whole: u64, packed: u64| format!("{} as {}", units::bytes(whole), units::bytes(packed));
    [
        units::counted(http2.connections, "connection"),
        units::counted(http2.streams, "stream"),
        format!("fields sent {}", packed(http2.header_bytes_sent, http2.header_bytes_sent_packed)),
        format!("fields read {}", packed(http2.header_bytes_received, http2.header_bytes_received_packed)),
    ]
}

/// Columns are phases, so that one glance along a line shows where the time goes.
fn phases(page: &mut Page, summary: &Summary) {
    let phases = &summary.phases_us;
    let named = [
        ("blocked", &phases.blocked),
        ("look-up", &phases.looking_up),
        ("connect", &phases.connecting),
        ("TLS", &phases.tls_handshaking),
        ("send", &phases.sending),
        ("wait", &phases.waiting),
        ("receive", &phases.receiving),
    ];
    let shown: Vec<_> = named.into_iter().filter(|(_, times)| times.count > 0).collect();
    if shown.is_empty() || summary.is_mixed() {
        return;
    }
    page.gap();
    let mut table = Table::default();
    let row = |head: Cell, cell: &dyn Fn(&(&str, &Distribution)) -> Cell| {
        let mut cells = vec![head];
        cells.extend(shown.iter().map(cell));
        cells
    };
    table.row(row(Cell::left("PHASES    ").tone(Tone::Title), &|(name, _)| {
        Cell::right(*name).tone(Tone::Faint)
    }));
    table.row(row(Cell::left("p50"), &|(_, times)| Cell::right(wording::time(times.p50))));
    table.row(row(Cell::left("p99"), &|(_, times)| Cell::right(wording::time(times.p99))));
    page.table(&table);
}

fn generator(page: &mut Page, summary: &Summary) {
    page.gap();
    let generator = &summary.generator;
    let mut facts = vec![format!("busy {}", units::percent(generator.busy))];
    if let Some(cpu_us) = generator.cpu_us_per_request.filter(|_| !summary.is_mixed()) {
        let cpu = units::latency((cpu_us * 1e3).round() as u64);
        facts.push(format!("CPU {cpu} per {}", summary.noun()));
    }
    if let Some(lag) = generator.schedule_lag_us_p99 {
        facts.push(format!("schedule lag p99 {}", units::latency(lag.0)));
    }
    facts.push(format!("longest stall {}", units::latency(generator.stall_us_max.0)));
    facts.push(units::counted(u64::from(generator.threads), "thread"));
    items(page, "GENERATOR", &facts);
}

fn footer(page: &mut Page, summary: &Summary, saved: Option<&Path>) {
    let hints = match is_unreached(summary) {
        false => hints::of(summary),
        true if hints::is_script(summary) => hints::failures(summary).into_iter().collect(),
        // The error that ends the run says what to do.
        true => Vec::new(),
    };
    if saved.is_none() && hints.is_empty() {
        return;
    }
    page.gap();
    if let Some(path) = saved {
        let report = path.join(PAGE_FILE);
        page.line(&[(Tone::Plain, &label("report")), (Tone::Hint, &clean(&report.display().to_string()))]);
    }
    for hint in hints {
        page.paragraph((Tone::Hint, "  hint: "), &hint);
    }
}

fn section(page: &mut Page, title: &str) {
    page.gap();
    page.line(&[(Tone::Plain, INDENT), (Tone::Title, title)]);
}

/// A labelled line of facts, broken between facts where it is too long; nothing when there are none.
fn items(page: &mut Page, title: &str, facts: &[String]) {
    let space = page.width().saturating_sub(LABEL_WIDTH);
    let mut lines: Vec<String> = Vec::new();
    for fact in facts {
        if fact.chars().count() <= space {
            push(&mut lines, BETWEEN, fact, space);
            continue;
        }
        // A sentence does not fit on a line.
        for (idx, word) in fact.split(' ').enumerate() {
            push(&mut lines, if idx == 0 { BETWEEN } else { " " }, word, space);
        }
    }
    for (idx, line) in lines.iter().enumerate() {
        let head: Piece<'_> = (Tone::Title, &label(if idx == 0 { title } else { "" }));
        page.line(&[head, (Tone::Plain, line)]);
    }
}

/// Adds a text to the last line, or begins another where it does not fit.
fn push(lines: &mut Vec<String>, between: &str, text: &str, space: usize) {
    match lines.last_mut() {
        Some(line) if line.chars().count() + between.len() + text.chars().count() <= space => {
            line.push_str(between);
            line.push_str(text);
        }
        _ => lines.push(text.to_owned()),
    }
}

fn label(title: &str) -> String {
    format!("{:<LABEL_WIDTH$}", format!("{INDENT}{title}"))
}

/// Between two facts on a line.
const BETWEEN: &str = "   ";

/// Columns before the facts of a labelled line.
const LABEL_WIDTH: usize = 14;

/// Rows of the latency table on the screen; the JSON has them all.
const ROW_COUNT_SHOWN: usize = 12;

/// A plan's name on the first line.
const NAME_WIDTH_MAX: usize = 40;

/// Kinds of closes that are shown; all are in the JSON.
const CLOSES_SHOWN: usize = 8;

/// Kinds of terms on the screen; the JSON has them all.
const TERMS_COUNT_SHOWN: usize = 6;

/// Kinds of failure on the screen; the JSON has them all.
const ERROR_COUNT_SHOWN: usize = 8;
