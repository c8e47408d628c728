//! The metrics of a script, by the names that k6's own outputs give them.

use squall_measure::{ScriptFigures, ScriptMetric, ScriptUnit, ScriptValue};

use super::{FigureUnit, OutputFigure, OutputKind, gauge, times_named};

/// Every metric of a script over all its samples, and each check.
pub(super) fn of_script(figures: &ScriptFigures) -> Vec<OutputFigure> {
    // Checks have a figure each; bytes are those of the run, which are counted on the wire.
    let is_apart = |metric: &&ScriptMetric| {
        !metric.tags.is_empty() || ["checks", "data_sent", "data_received"].contains(&&*metric.name)
    };
    let metrics = figures.metrics.iter().filter(|metric| !is_apart(metric));
    metrics.flat_map(of_metric).chain(of_checks(figures)).collect()
}

fn of_metric(metric: &ScriptMetric) -> Vec<OutputFigure> {
    let ScriptMetric { name, contains, value, .. } = metric;
    let (unit, scale) = match contains {
        ScriptUnit::Time => (FigureUnit::Seconds, 1e-3),
        ScriptUnit::Default | ScriptUnit::Data => (FigureUnit::Number, 1.0),
    };
    let figure = |suffix: &str, help, value: f64| OutputFigure {
        unit,
        ..gauge(format!("k6_{name}{suffix}"), help, value * scale)
    };
    match value {
        ScriptValue::Counter { sum, .. } => {
            let total = figure("_total", "Sum of a counter of the script.", *sum);
            vec![OutputFigure { kind: OutputKind::Counter, ..total }]
        }
        ScriptValue::Gauge { at_ns: 0, .. } | ScriptValue::Rate { total: 0, .. } => Vec::new(),
        ScriptValue::Gauge { last, .. } => vec![figure("", "Last value of a gauge of the script.", *last)],
        ScriptValue::Rate { trues, total } => {
            let share = *trues as f64 / *total as f64;
            vec![gauge(format!("k6_{name}_rate"), "Share of a rate of the script.", share)]
        }
        ScriptValue::Trend(trend) if trend.count() == 0 => Vec::new(),
        ScriptValue::Trend(trend) => {
            let of = |q: Option<f64>| q.map_or_else(|| trend.mean(), |q| trend.quantile(q));
            let times = times_named!("").into_iter();
            times.map(|(suffix, q)| figure(suffix, "A trend of the script so far.", of(q))).collect()
        }
    }
}

fn of_checks(figures: &ScriptFigures) -> impl Iterator<Item = OutputFigure> {
    figures.checks.iter().map(|check| {
        let mut labels = vec![("check", check.name.clone())];
        if !check.group.is_empty() {
            labels.push(("group", check.group.clone()));
        }
        OutputFigure { labels, ..gauge("k6_checks_rate", "Share of a check that held.", check.share()) }
    })
}

#[cfg(test)]
mod tests {
    use squall_measure::Trend;

    use super::*;

    #[test]
    fn metrics_and_checks_have_the_names_and_units_of_k6() {
        let trend = |values: &[f64]| {
            let mut trend = Trend::default();
            values.iter().for_each(|value| trend.add(*value));
            ScriptValue::Trend(Box::new(trend))
        };
        let gauge = |last, at_ns| ScriptValue::Gauge { last, min: 0.0, max: 9.0, at_ns };
        let mut metrics = vec![
            ScriptMetric::new("orders", ScriptUnit::Default, ScriptValue::Counter { sum: 2.5, count: 2 }),
            ScriptMetric::new("wait_time", ScriptUnit::Time, trend(&[10.0, 30.0])),
            ScriptMetric::new("size", ScriptUnit::Data, trend(&[300.0])),
            ScriptMetric::new("good", ScriptUnit::Default, ScriptValue::Rate { trues: 1, total: 4 }),
            ScriptMetric::new("depth", ScriptUnit::Default, gauge(4.0, 1)),
            // Nothing has come.
            ScriptMetric::new("never", ScriptUnit::Time, trend(&[])),
            ScriptMetric::new("unset", ScriptUnit::Default, gauge(0.0, 0)),
            ScriptMetric::new("unasked", ScriptUnit::Default, ScriptValue::Rate { trues: 0, total: 0 }),
            // Of the run.
            ScriptMetric::new("data_sent", ScriptUnit::Data, ScriptValue::Counter { sum: 1.0, count: 1 }),
            ScriptMetric::new("checks", ScriptUnit::Default, ScriptValue::Rate { trues: 1, total: 1 }),
            ScriptMetric::new("orders", ScriptUnit::Default, ScriptValue::Counter { sum: 1.0, count: 1 }),
        ];
        metrics[10].tags.push(("kind".to_owned(), "a".to_owned()));
        let mut figures = ScriptFigures { metrics, ..ScriptFigures::default() };
        figures.count_check("", "is 200", true);
        figures.count_check("::buy", "is paid", false);
        let made = of_script(&figures);
        let texts: Vec<String> =
            made.iter().map(|one| format!("{} {:?} {}", one.name, one.labels, one.value)).collect();
        let expected = [
            "k6_orders_total [] 2.5",
            "k6_wait_time_p50 [] 0.02",
            "k6_wait_time_p90 [] 0.028",
            "k6_wait_time_p95 [] 0.029",
            "k6_wait_time_p99 [] 0.0298",
            "k6_wait_time_max [] 0.03",
            "k6_wait_time_min [] 0.01",
            "k6_wait_time_avg [] 0.02",
            "k6_size_p50 [] 300",
            "k6_size_p90 [] 300",
            "k6_size_p95 [] 300",
            "k6_size_p99 [] 300",
            "k6_size_max [] 300",
            "k6_size_min [] 300",
            "k6_size_avg [] 300",
            "k6_good_rate [] 0.25",
            "k6_depth [] 4",
            "k6_checks_rate [(\"check\", \"is 200\")] 1",
            "k6_checks_rate [(\"check\", \"is paid\"), (\"group\", \"::buy\")] 0",
        ];
        assert_eq!(texts, expected);
        assert_eq!(made[0].kind, OutputKind::Counter);
        assert_eq!((made[1].unit, made[8].unit), (FigureUnit::Seconds, FigureUnit::Number));
    }
}
