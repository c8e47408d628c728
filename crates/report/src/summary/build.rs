//! From a run's record to its summary: pure, and the only place that reads histograms.

use std::time::{Duration, SystemTime};

use squall_measure::{FailureCount, Histogram, PhaseHistograms, RowKey, RunRecord, Sketch, StatusCounts};

use super::*;
use crate::time;

impl From<&RunRecord> for Summary {
    fn from(record: &RunRecord) -> Self {
        Self { series: series::series(record), ..Self::of_totals(record) }
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
            verdict: VerdictSummary::from(&record.verdict),
            stopped_by: record.stopped_by,
            duration_s: record.duration.as_secs_f64(),
            totals: totals::totals(record),
            latency_us: Distribution::from(total.latency().as_ref()),
            failed_latency_us: Distribution::from(&total.latency_failed),
            service_us: total.service().map(Distribution::from),
            phases_us: phases(&total.phases, &total.looking_up),
            status: status(&total.status()),
            errors: total.failures.kinds().into_iter().map(ErrorGroup::from).collect(),
            rows: record.rows.iter().zip(&total.rows).filter(|row| is_shown(row, record)).map(row).collect(),
            thresholds: record.thresholds.clone(),
            generator: generator::generator(record),
            series: Vec::new(),
            machine: record.machine.as_ref().map(MachineSummary::from),
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

impl From<&squall_measure::Verdict> for VerdictSummary {
    fn from(verdict: &squall_measure::Verdict) -> Self {
        let reasons = |reasons: &[squall_measure::Reason]| reasons.iter().map(ReasonSummary::from).collect();
        Self { status: verdict.status, reasons: reasons(&verdict.reasons), notes: reasons(&verdict.notes) }
    }
}

impl From<&squall_measure::Reason> for ReasonSummary {
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

fn phases(phases: &PhaseHistograms, looking_up: &Histogram) -> PhaseSummary {
    PhaseSummary {
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
pub(crate) fn is_shown((key, figures): &(&RowKey, &squall_measure::Row), record: &RunRecord) -> bool {
    let is_alternative = |other: &RowKey| {
        other.protocol != key.protocol && RowKey { protocol: key.protocol, ..other.clone() } == **key
    };
    let has_figures =
        |(other, figures): (&RowKey, &squall_measure::Row)| figures.settled() > 0 && is_alternative(other);
    figures.settled() > 0 || !record.rows.iter().zip(&record.total.rows).any(has_figures)
}

fn row((key, figures): (&RowKey, &squall_measure::Row)) -> RowSummary {
    RowSummary {
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

fn whole(mean_ns: f64) -> Micros {
    Micros(mean_ns.round() as u64)
}
