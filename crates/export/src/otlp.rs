//! OpenTelemetry metrics: OTLP 1.x over HTTP in its JSON encoding, one request for each second.

use serde_json::{Value, json};

use crate::figures::{FigureUnit, Moment, OutputFigure, OutputKind};

/// The body of a request to `/v1/metrics`.
pub(crate) fn request(moment: &Moment) -> Vec<u8> {
    let metrics: Vec<Value> =
        moment.figures.chunk_by(|a, b| a.name == b.name).map(|figures| metric(figures, moment)).collect();
    let resource = json!({"attributes": [attribute("service.name", "squall")]});
    let scope = json!({"name": "squall", "version": env!("CARGO_PKG_VERSION")});
    let body = json!({"resourceMetrics": [{"resource": resource, "scopeMetrics": [{"scope": scope, "metrics": metrics}]}]});
    body.to_string().into_bytes()
}

fn metric(figures: &[OutputFigure], moment: &Moment) -> Value {
    let first = &figures[0];
    let points: Vec<Value> = figures.iter().map(|figure| point(figure, moment)).collect();
    // As UCUM writes them.
    let unit = match first.unit {
        FigureUnit::Number => "1",
        FigureUnit::Seconds => "s",
    };
    let mut metric = json!({"name": first.name, "description": first.help, "unit": unit});
    // Cumulative since the run's start: AGGREGATION_TEMPORALITY_CUMULATIVE is 2.
    match first.kind {
        OutputKind::Counter => {
            metric["sum"] = json!({"dataPoints": points, "aggregationTemporality": 2, "isMonotonic": true});
        }
        OutputKind::Gauge => metric["gauge"] = json!({"dataPoints": points}),
    }
    metric
}

/// 64-bit integers are strings in OTLP's JSON.
fn point(figure: &OutputFigure, moment: &Moment) -> Value {
    let attributes: Vec<Value> = figure.labels.iter().map(|(key, value)| attribute(key, value)).collect();
    let start_ns = u128::from(moment.started_unix_ms) * 1_000_000;
    json!({"attributes": attributes, "startTimeUnixNano": start_ns.to_string(), "timeUnixNano": moment.unix_ns().to_string(), "asDouble": figure.value})
}

fn attribute(key: &str, value: &str) -> Value {
    json!({"key": key, "value": {"stringValue": value}})
}
