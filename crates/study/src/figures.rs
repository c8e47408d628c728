//! The figures of a run that are compared: one number each, of the load and of the monitored servers.

use std::borrow::Cow;

use squall_measure::{Counted, Histogram, Monitor, MonitorUnit, PartKind, RunRecord};

/// A figure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Figure {
    /// Its name in reports.
    pub name: Cow<'static, str>,
    /// What it is measured in.
    pub kind: FigureKind,
    /// Whether more is better.
    pub more_is_better: bool,
}

/// What a figure is measured in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FigureKind {
    /// Requests, messages or events per second.
    PerSecond,
    /// Microseconds.
    Micros,
    /// Bytes.
    Bytes,
    /// A share of the requests that ended, 0 to 1: compared by difference, because its ratio may be over zero.
    Share,
}

/// Every figure of a load of requests that a comparison looks at. Those of messages and events have other names.
pub const FIGURES: &[Figure] = &[
    figure("rate", FigureKind::PerSecond, true),
    figure("mean", FigureKind::Micros, false),
    figure("p50", FigureKind::Micros, false),
    figure("p90", FigureKind::Micros, false),
    figure("p99", FigureKind::Micros, false),
    figure("failed", FigureKind::Share, false),
];

const fn figure(name: &'static str, kind: FigureKind, more_is_better: bool) -> Figure {
    Figure { name: Cow::Borrowed(name), kind, more_is_better }
}

/// The figures that a run has, with their values: those of its load first, then those of every monitored server process.
pub fn figures_of(run: &RunRecord) -> Vec<(Figure, f64)> {
    let counted = Counted::of(&run.plan.loads);
    let rate_per_s = counted.ended(&run.total) as f64 / run.duration.as_secs_f64();
    let latency = counted.latency(&run.total);
    let of_load = [
        positive(rate_per_s),
        latency.mean().map(|ns| ns / 1e3),
        quantile(&latency, 0.5),
        quantile(&latency, 0.9),
        quantile(&latency, 0.99),
        failed_share(run),
    ];
    let named = FIGURES.iter().map(|figure| of_counted(counted, figure));
    let of_load = named.zip(of_load).filter_map(|(figure, value)| Some((figure, value?)));
    let noun = Words::of(counted).noun;
    let servers = servers(&run.monitors, (rate_per_s, noun), &load_spans(run));
    of_load.chain(gaps(run)).chain(servers).collect()
}

/// How the figures of what is counted are named.
struct Words {
    noun: &'static str,
    rate: &'static str,
    times: &'static str,
}

impl Words {
    fn of(counted: Counted) -> Self {
        match counted {
            Counted::Operations => Self { noun: "request", rate: "rate", times: "" },
            Counted::Messages => Self { noun: "message", rate: "messages", times: "message " },
            Counted::Events => Self { noun: "event", rate: "events", times: "first event " },
        }
    }
}

/// A figure of requests as one of what is counted.
fn of_counted(counted: Counted, figure: &Figure) -> Figure {
    let words = Words::of(counted);
    let name = match figure.kind {
        _ if counted == Counted::Operations => figure.name.clone(),
        FigureKind::PerSecond => Cow::Borrowed(words.rate),
        FigureKind::Micros => Cow::Owned(format!("{}{}", words.times, figure.name)),
        FigureKind::Bytes | FigureKind::Share => figure.name.clone(),
    };
    Figure { name, ..figure.clone() }
}

/// Of streams, how long their slower events were apart.
fn gaps(run: &RunRecord) -> Option<(Figure, f64)> {
    let streams = run.total.streams.as_deref()?;
    Some((figure("gap p95", FigureKind::Micros, false), quantile(&streams.event_gap, 0.95)?))
}

/// Of each process that is monitored on a target: CPU time per request, message or event, because a faster server that is asked as fast as it can
/// answer uses more CPU per second, and the largest memory. The machine's name is left out where there is one alone.
fn servers(
    monitors: &[Monitor],
    (rate_per_s, noun): (f64, &str),
    spans: &[(f64, f64)],
) -> Vec<(Figure, f64)> {
    let of_targets = || monitors.iter().filter_map(|one| Some((one, one.source.strip_prefix(TARGET)?)));
    let is_single =
        of_targets().all(|(_, machine)| Some(machine) == of_targets().next().map(|first| first.1));
    let mut figures = Vec::new();
    for (monitor, machine) in of_targets() {
        let machine = if is_single { String::new() } else { format!("{machine} ") };
        let during = values_within(monitor, spans);
        let (kind, name, value) = match (monitor.unit, monitor.name.rsplit_once(' ')) {
            (MonitorUnit::Percent, Some((process, "cpu"))) if !during.is_empty() => {
                let cpu = crate::stats::mean(&during) / 100.0;
                (
                    FigureKind::Micros,
                    format!("{machine}{process} cpu/{noun}"),
                    positive(cpu / rate_per_s * 1e6),
                )
            }
            (MonitorUnit::Bytes, Some((process, "rss"))) => {
                let largest = during.iter().copied().reduce(f64::max).and_then(positive);
                (FigureKind::Bytes, format!("{machine}{process} rss"), largest)
            }
            _ => continue,
        };
        let figure = Figure { name: Cow::Owned(name), kind, more_is_better: false };
        figures.extend(value.map(|value| (figure, value)));
    }
    figures
}

/// What was seen while load was made: a value stands for the second before it.
fn values_within(monitor: &Monitor, spans: &[(f64, f64)]) -> Vec<f64> {
    let is_inside = |at_s: f64| spans.iter().any(|(from, until)| (*from..=*until).contains(&(at_s - 0.5)));
    monitor.samples.iter().filter(|(at_s, _)| is_inside(*at_s)).map(|&(_, value)| value).collect()
}

/// When load was made, in seconds after the run's start. Pauses, hooks and the warm-up are left out.
fn load_spans(run: &RunRecord) -> Vec<(f64, f64)> {
    let steps = run.parts.iter().filter(|part| part.kind == PartKind::Step);
    let spans: Vec<(f64, f64)> =
        steps.map(|part| (part.at_s, part.at_s + part.duration.as_secs_f64())).collect();
    if !spans.is_empty() {
        return spans;
    }
    let warmup_s = run.plan.warmup.as_secs_f64();
    vec![(warmup_s, warmup_s + run.duration.as_secs_f64())]
}

fn quantile(times: &Histogram, q: f64) -> Option<f64> {
    positive(times.quantile(q)? as f64 / 1e3)
}

fn failed_share(run: &RunRecord) -> Option<f64> {
    let settled = run.total.ok() + run.total.failed();
    (settled > 0).then(|| run.total.failed() as f64 / settled as f64)
}

/// Ratios are of values above zero.
fn positive(value: f64) -> Option<f64> {
    (value > 0.0 && value.is_finite()).then_some(value)
}

/// Begins the source of what is monitored on a machine that makes no load.
const TARGET: &str = "target ";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_the_machine_only_where_several_are_monitored() {
        let monitor = |source: &str, name: &str| {
            let mut monitor = Monitor::new(source.to_owned(), name.to_owned(), MonitorUnit::Bytes);
            monitor.samples = vec![(0.2, 9e9), (1.0, 5e6), (2.0, 7e6), (9.0, 9e9)];
            monitor
        };
        let names = |monitors: &[Monitor]| {
            let (spans, all) = ([(0.0, 2.0)], monitors);
            let servers = servers(all, (1000.0, "request"), &spans);
            servers.into_iter().map(|(figure, value)| format!("{} {value}", figure.name)).collect::<Vec<_>>()
        };
        let own = monitor("generator g1", "squall rss");
        let shop = monitor("target shop", "h2o rss");
        assert_eq!(names(&[own.clone(), shop.clone()]), ["h2o rss 7000000"]);
        let other = monitor("target db", "postgres rss");
        assert_eq!(names(&[own, shop, other]), ["shop h2o rss 7000000", "db postgres rss 7000000"]);
    }
}
