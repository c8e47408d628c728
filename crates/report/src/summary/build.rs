//! From a run's record to its summary: pure, and the only place that reads histograms.

use std::time::{Duration, SystemTime};

use squall_measure::{
    FailureCount, Histogram, MachineSecond, PhaseHistograms, RowKey, RunRecord, SeriesPoint, Sketch,
    Snapshot, StatusCounts,
};

use super::*;
use crate::time;

impl From<&RunRecord> for Summary {
    fn from(record: &RunRecord) -> Self {
        Self { series: series(record), ..Self::of_totals(record) }
    }
}

impl Summary {
    /// The summary without its series.
    pub(crate) fn of_totals(record: &RunRecord) -> Self {
        let total = &record.total;
        Self {
            schema: Self::SCHEMA,
            squall: record.squall_version.clone(),
            name: record.plan.name.clone(),
            started_at: time::rfc3339(SystemTime::UNIX_EPOCH + Duration::from_millis(record.started_unix_ms)),
            verdict: Verdict::from(&record.verdict),
            stopped_by: record.stopped_by,
            duration_s: record.duration.as_secs_f64(),
            totals: totals(record),
            latency_us: Distribution::from(total.latency().as_ref()),
            failed_latency_us: Distribution::from(&total.latency_failed),
            service_us: total.service().map(Distribution::from),
            phases_us: phases(&total.phases, &total.looking_up),
            status: status(&total.status()),
            errors: total.failures.kinds().into_iter().map(ErrorGroup::from).collect(),
            rows: record.rows.iter().zip(&total.rows).filter(|row| is_told(row, record)).map(row).collect(),
            thresholds: record.thresholds.clone(),
            generator: generator(record),
            series: Vec::new(),
            machine: record.machine.as_ref().map(Machine::from),
            environment: record.environment.clone(),
            parts: parts::parts(record),
            shares: parts::shares(record),
            tools: parts::tools(record),
            monitors: parts::monitors(record),
            events: parts::events(record),
            plan: record.plan.clone(),
        }
    }
}

impl From<&squall_measure::Verdict> for Verdict {
    fn from(verdict: &squall_measure::Verdict) -> Self {
        let reasons = |reasons: &[squall_measure::Reason]| reasons.iter().map(Reason::from).collect();
        Self { status: verdict.status, reasons: reasons(&verdict.reasons), notes: reasons(&verdict.notes) }
    }
}

impl From<&squall_measure::Reason> for Reason {
    fn from(reason: &squall_measure::Reason) -> Self {
        Self {
            kind: reason.kind,
            severity: reason.severity,
            message: reason.to_string(),
            help: reason.help(),
            seconds_affected: reason.seconds_affected,
            seconds: reason.seconds,
        }
    }
}

impl From<&Histogram> for Distribution {
    fn from(times: &Histogram) -> Self {
        Self {
            min: times.min().map(Micros),
            mean: times.mean().map(whole),
            count: times.count(),
            ..Self::of_quantiles(times.max(), |q| times.quantile(q))
        }
    }
}

impl From<&Sketch> for Distribution {
    fn from(times: &Sketch) -> Self {
        Self {
            min: times.min().map(Micros),
            mean: times.mean().map(whole),
            count: times.count(),
            ..Self::of_quantiles(times.max(), |q| times.quantile(q))
        }
    }
}

impl Distribution {
    fn of_quantiles(max: Option<u64>, quantile: impl Fn(f64) -> Option<u64>) -> Self {
        let micros = |q: f64| quantile(q).map(Micros);
        Self {
            p50: micros(0.5),
            p90: micros(0.9),
            p95: micros(0.95),
            p99: micros(0.99),
            p99_9: micros(0.999),
            max: max.map(Micros),
            ..Self::default()
        }
    }
}

impl From<FailureCount> for ErrorGroup {
    fn from(kind: FailureCount) -> Self {
        let FailureCount { cause, phase, count, example } = kind;
        let first_at_s = example.as_ref().map(|example| Duration::from_nanos(example.at_ns).as_secs_f64());
        let (example, example_url) = example.map(|example| (example.text, example.url)).unzip();
        Self { cause, phase, count, example, example_url, first_at_s }
    }
}

impl From<&MachineSecond> for Machine {
    fn from(worst: &MachineSecond) -> Self {
        Self {
            cpu_max: worst.cpu_fraction,
            steal_max: worst.steal_fraction,
            descriptors_open_max: worst.descriptors_open,
            descriptors_limit: worst.descriptors_limit,
            ports_used_max: worst.ports_used,
            ports_available: worst.ports_available,
            process_rss_bytes_max: worst.process_rss_bytes,
            process_cpu_s: worst.process_cpu.as_secs_f64(),
        }
    }
}

fn totals(record: &RunRecord) -> Totals {
    let total = &record.total;
    Totals {
        kinds: kinds::kinds(record),
        requests: total.requests_started,
        ok: total.ok(),
        failed: total.failed(),
        interrupted: total.interrupted(),
        rate_per_s: three_decimals(record.rate_per_s()),
        requests_asked: asked(total, total.arrivals_asked),
        requests_never_sent: asked(total, total.arrivals_asked.saturating_sub(total.arrivals_sent)),
        retries: total.requests_retried,
        warmup_requests: total.requests_warmup,
        bytes_received: total.wire_bytes_received,
        bytes_sent: total.wire_bytes_sent,
        connections_opened: total.connections_opened,
        connections_reused: total.connections_reused,
        handshakes: sessions::handshakes(record),
        idle_connections: sessions::idle_connections(record),
        http2: (!total.http2.is_empty()).then_some(total.http2),
        replay: replay::replay(record),
        iterations: script::counted(record, "iterations"),
        iterations_dropped: script::counted(record, "dropped_iterations"),
        script: script::script(record),
    }
}

/// A closed model asks for nothing.
fn asked(total: &Snapshot, arrivals: u64) -> Option<u64> {
    total.open_model.then_some(arrivals)
}

fn phases(phases: &PhaseHistograms, looking_up: &Histogram) -> Phases {
    Phases {
        blocked: Distribution::from(&phases.blocked),
        looking_up: Distribution::from(looking_up),
        connecting: Distribution::from(&phases.connecting),
        tls_handshaking: Distribution::from(&phases.tls_handshaking),
        sending: Distribution::from(&phases.sending),
        waiting: Distribution::from(&phases.waiting),
        receiving: Distribution::from(&phases.receiving),
        duration: Distribution::from(&phases.duration),
        total: Distribution::from(&phases.total),
    }
}

fn status(counts: &StatusCounts) -> BTreeMap<String, u64> {
    let name = |code: Option<u16>| code.map_or_else(|| "other".to_owned(), |code| code.to_string());
    counts.iter().map(|(code, count)| (name(code), count)).collect()
}

/// Where the version of HTTP was left to the server, the row of the one that it did not choose stays empty.
pub(crate) fn is_told((key, figures): &(&RowKey, &squall_measure::Row), record: &RunRecord) -> bool {
    let is_alternative = |other: &RowKey| {
        other.protocol != key.protocol && RowKey { protocol: key.protocol, ..other.clone() } == **key
    };
    let has_figures =
        |(other, figures): (&RowKey, &squall_measure::Row)| figures.settled() > 0 && is_alternative(other);
    figures.settled() > 0 || !record.rows.iter().zip(&record.total.rows).any(has_figures)
}

fn row((key, figures): (&RowKey, &squall_measure::Row)) -> Row {
    Row {
        load: key.load.clone(),
        protocol: key.protocol,
        method: key.method.clone(),
        url: key.url.clone(),
        ok: figures.ok,
        failed: figures.failed,
        interrupted: figures.interrupted,
        bytes_received: figures.bytes_received,
        bytes_sent: figures.bytes_sent,
        latency_us: Distribution::from(&figures.latency),
        status: status(&figures.status),
    }
}

fn generator(record: &RunRecord) -> Generator {
    let generator = &record.total.generator;
    let ended_count = record.total.ok() + record.total.failed();
    let cpu_us = generator.cpu.as_secs_f64() * 1e6;
    Generator {
        cpu_us_per_request: (ended_count > 0).then(|| three_decimals(cpu_us / ended_count as f64)),
        schedule_lag_us_p99: generator.schedule_lag.quantile(0.99).map(Micros),
        busy: share(generator.busy, generator.wall),
        cpu_cores: share(generator.cpu, record.duration),
        stall_us_max: Micros(u64::try_from(generator.stall_max.as_nanos()).unwrap_or(u64::MAX)),
        threads: record.shard_count,
        start_skew_ms: record.start_skew.map(|skew| three_decimals(skew.as_secs_f64() * 1e3)),
    }
}

fn series(record: &RunRecord) -> Vec<Point> {
    let step_s = f64::from(record.series.seconds_per_point);
    let at = |(idx, point)| self::point(idx as f64 * step_s, point, &record.total);
    record.series.points.iter().enumerate().map(at).collect()
}

fn point(at_s: f64, point: &SeriesPoint, total: &Snapshot) -> Point {
    Point {
        at_s,
        span_s: point.wall.as_secs_f64(),
        started: point.started,
        asked: asked(total, point.asked),
        ok: point.ok,
        failed: point.failed,
        interrupted: point.interrupted,
        rate_per_s: three_decimals(point.rate_per_s()),
        bytes_received: point.wire_bytes_received,
        bytes_sent: point.wire_bytes_sent,
        latency_us: Distribution::from(&point.latency),
        connections_opened: point.connections_opened,
        connections_open: point.connections_open,
        arrivals_waiting: point.arrivals_waiting,
        schedule_lag_us_p99: point.schedule_lag.quantile(0.99).map(Micros),
        busy: three_decimals(point.busy_max),
        warnings: point.warnings.clone(),
    }
}

fn whole(mean_ns: f64) -> Micros {
    Micros(mean_ns.round() as u64)
}

/// A part of a whole; zero of nothing.
fn share(part: Duration, whole: Duration) -> f64 {
    if whole.is_zero() { 0.0 } else { three_decimals(part.as_secs_f64() / whole.as_secs_f64()) }
}
