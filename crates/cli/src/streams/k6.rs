//! k6's names of outputs, with the `K6_*` variables that say where they send to.
//!
//! Owns: what each name stands for here. Never: opens anything.

use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use squall_export::PushKind;
use squall_plan::InputError;
use squall_report::{Format, OutputSpec};

use super::Out;

/// An output by the name that k6 has for it; `place` is what follows its `=`.
pub(super) fn named(
    name: &str,
    place: &str,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Option<Result<Out, InputError>> {
    let or = |names: &[&str], default: &str| {
        let given = (!place.is_empty()).then(|| place.to_owned());
        let found = given.or_else(|| names.iter().find_map(|name| variable(name)));
        found.unwrap_or_else(|| default.to_owned())
    };
    let push = |kind, target| Some(Ok(Out::Push(kind, target)));
    match name {
        "experimental-prometheus-rw" | "xk6-prometheus-rw" | "output-prometheus-remote" => push(
            PushKind::RemoteWrite,
            or(&["K6_PROMETHEUS_RW_SERVER_URL"], "http://localhost:9090/api/v1/write"),
        ),
        "opentelemetry" | "experimental-opentelemetry" | "xk6-opentelemetry" => {
            Some(open_telemetry(place, variable).map(|url| Out::Push(PushKind::Otlp, url)))
        }
        "influxdb" | "xk6-influxdb" => {
            let url = or(&["K6_INFLUXDB_ADDR"], "http://localhost:8086");
            push(
                PushKind::Influx,
                influx_url(&url, &variable("K6_INFLUXDB_DB").unwrap_or_else(|| "k6".to_owned())),
            )
        }
        "statsd" => push(PushKind::Statsd, or(&["K6_STATSD_ADDR"], "localhost:8125")),
        "datadog" => push(PushKind::Statsd, or(&["K6_DATADOG_ADDR", "K6_STATSD_ADDR"], "localhost:8125")),
        "web-dashboard" | "dashboard" => Some(dashboard(variable)),
        "cloud" => Some(Err(refused(
            "`cloud` sends to Grafana Cloud k6, which only k6 itself can do",
            "leave it out, or send to your own Prometheus of Grafana Cloud: --out prometheus-rw=URL",
        ))),
        "kafka" => Some(Err(refused(
            "`kafka` is an extension of k6",
            "use --out otlp=URL and a collector that exports to Kafka",
        ))),
        _ => None,
    }
}

fn refused(reason: &str, help: &str) -> InputError {
    InputError { column: 1, reason: reason.to_owned(), help: help.to_owned() }
}

/// k6 uses gRPC by default; here it is always HTTP, which collectors accept on the next port.
fn open_telemetry(place: &str, variable: &dyn Fn(&str) -> Option<String>) -> Result<String, InputError> {
    if !place.is_empty() {
        return Ok(place.to_owned());
    }
    let protocol = variable("K6_OTEL_EXPORTER_PROTOCOL").or_else(|| variable("K6_OTEL_EXPORTER_TYPE"));
    let is_grpc = protocol.as_deref() == Some("grpc");
    let http = variable("K6_OTEL_HTTP_EXPORTER_ENDPOINT");
    if is_grpc || http.is_none() && variable("K6_OTEL_GRPC_EXPORTER_ENDPOINT").is_some() {
        return Err(refused(
            "metrics go to OpenTelemetry over HTTP, not gRPC",
            "set K6_OTEL_EXPORTER_PROTOCOL=http/protobuf and K6_OTEL_HTTP_EXPORTER_ENDPOINT=HOST:4318",
        ));
    }
    let is_plain =
        http.is_none() || variable("K6_OTEL_HTTP_EXPORTER_INSECURE").is_some_and(|value| value == "true");
    let scheme = if is_plain { "http" } else { "https" };
    let host = http.unwrap_or_else(|| "localhost:4318".to_owned());
    let path = variable("K6_OTEL_HTTP_EXPORTER_URL_PATH").unwrap_or_else(|| "/v1/metrics".to_owned());
    Ok(format!("{scheme}://{host}/{}", path.trim_start_matches('/')))
}

/// k6 writes the database as the path of the URL.
fn influx_url(url: &str, database: &str) -> String {
    let (base, path) = match url.split_once("://").and_then(|(_, rest)| rest.split_once('/')) {
        Some((_, path)) => (url[..url.len() - path.len()].trim_end_matches('/'), path),
        None => (url, ""),
    };
    if path.starts_with("write") || path.starts_with("api/") || path.contains('?') {
        return url.to_owned();
    }
    let database = if path.is_empty() { database } else { path.trim_end_matches('/') };
    format!("{base}/write?db={database}")
}

fn dashboard(variable: &dyn Fn(&str) -> Option<String>) -> Result<Out, InputError> {
    let host = variable("K6_WEB_DASHBOARD_HOST").unwrap_or_else(|| "localhost".to_owned());
    let port = variable("K6_WEB_DASHBOARD_PORT").unwrap_or_else(|| "5665".to_owned());
    let bad = || {
        let reason = format!("`{host}:{port}` is not an address for the page");
        refused(&reason, "set K6_WEB_DASHBOARD_HOST and K6_WEB_DASHBOARD_PORT, or use --web=ADDRESS:PORT")
    };
    let port: u16 = match port.as_str() {
        "-1" => 0,
        text => text.parse().map_err(|_| bad())?,
    };
    let host = if host.is_empty() { "localhost" } else { &host };
    let addresses = (host, port).to_socket_addrs().map_err(|_| bad())?;
    let address = addresses.min_by_key(SocketAddr::is_ipv6).ok_or_else(bad)?;
    let export = variable("K6_WEB_DASHBOARD_EXPORT").map(PathBuf::from);
    let export = export.map(|path| OutputSpec { format: Format::Html, path: Some(path) });
    Ok(Out::Web { address, export })
}

/// The `Authorization` that k6's variables say for an output.
pub(super) fn authorization(kind: PushKind, variable: &dyn Fn(&str) -> Option<String>) -> Option<String> {
    let basic = |name: &str, password: &str| {
        let name = variable(name)?;
        let password = variable(password).unwrap_or_default();
        Some(format!("Basic {}", STANDARD.encode(format!("{name}:{password}"))))
    };
    match kind {
        PushKind::RemoteWrite => variable("K6_PROMETHEUS_RW_BEARER_TOKEN")
            .map(|token| format!("Bearer {token}"))
            .or_else(|| basic("K6_PROMETHEUS_RW_USERNAME", "K6_PROMETHEUS_RW_PASSWORD")),
        PushKind::Influx => basic("K6_INFLUXDB_USERNAME", "K6_INFLUXDB_PASSWORD"),
        PushKind::Otlp | PushKind::Statsd => None,
    }
}

/// The variables that have a meaning here.
pub(crate) const VARIABLES: &[&str] = &[
    "K6_PROMETHEUS_RW_SERVER_URL",
    "K6_PROMETHEUS_RW_BEARER_TOKEN",
    "K6_PROMETHEUS_RW_USERNAME",
    "K6_PROMETHEUS_RW_PASSWORD",
    "K6_OTEL_EXPORTER_PROTOCOL",
    "K6_OTEL_EXPORTER_TYPE",
    "K6_OTEL_HTTP_EXPORTER_ENDPOINT",
    "K6_OTEL_HTTP_EXPORTER_INSECURE",
    "K6_OTEL_HTTP_EXPORTER_URL_PATH",
    "K6_OTEL_GRPC_EXPORTER_ENDPOINT",
    "K6_INFLUXDB_ADDR",
    "K6_INFLUXDB_DB",
    "K6_INFLUXDB_USERNAME",
    "K6_INFLUXDB_PASSWORD",
    "K6_STATSD_ADDR",
    "K6_DATADOG_ADDR",
    "K6_WEB_DASHBOARD",
    "K6_WEB_DASHBOARD_HOST",
    "K6_WEB_DASHBOARD_PORT",
    "K6_WEB_DASHBOARD_EXPORT",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn out(name: &str, place: &str, variables: &[(&str, &str)]) -> Result<Out, String> {
        let variable = |wanted: &str| {
            let found = variables.iter().find(|(name, _)| *name == wanted);
            found.map(|(_, value)| (*value).to_owned())
        };
        named(name, place, &variable).unwrap().map_err(|error| error.reason)
    }

    #[test]
    fn outputs_of_k6_are_found_with_their_variables() {
        let push = |kind, target: &str| Ok(Out::Push(kind, target.to_owned()));
        for (name, place, variables, expected) in [
            (
                "experimental-prometheus-rw",
                "",
                &[][..],
                push(PushKind::RemoteWrite, "http://localhost:9090/api/v1/write"),
            ),
            (
                "experimental-prometheus-rw",
                "",
                &[("K6_PROMETHEUS_RW_SERVER_URL", "http://p/w")],
                push(PushKind::RemoteWrite, "http://p/w"),
            ),
            ("influxdb", "http://h:8086/mine", &[], push(PushKind::Influx, "http://h:8086/write?db=mine")),
            (
                "influxdb",
                "",
                &[("K6_INFLUXDB_DB", "d")],
                push(PushKind::Influx, "http://localhost:8086/write?db=d"),
            ),
            ("influxdb", "http://h/write?db=x", &[], push(PushKind::Influx, "http://h/write?db=x")),
            ("statsd", "", &[("K6_STATSD_ADDR", "s:1")], push(PushKind::Statsd, "s:1")),
            ("opentelemetry", "", &[], push(PushKind::Otlp, "http://localhost:4318/v1/metrics")),
            (
                "experimental-opentelemetry",
                "",
                &[("K6_OTEL_HTTP_EXPORTER_ENDPOINT", "c:4318")],
                push(PushKind::Otlp, "https://c:4318/v1/metrics"),
            ),
            (
                "opentelemetry",
                "",
                &[("K6_OTEL_GRPC_EXPORTER_ENDPOINT", "c:4317")],
                Err("metrics go to OpenTelemetry over HTTP, not gRPC".to_owned()),
            ),
            (
                "cloud",
                "",
                &[],
                Err("`cloud` sends to Grafana Cloud k6, which only k6 itself can do".to_owned()),
            ),
        ] {
            assert_eq!(out(name, place, variables), expected, "{name} {place} {variables:?}");
        }
        let page = out(
            "web-dashboard",
            "",
            &[("K6_WEB_DASHBOARD_HOST", "127.0.0.1"), ("K6_WEB_DASHBOARD_PORT", "1")],
        );
        assert_eq!(page, Ok(Out::Web { address: "127.0.0.1:1".parse().unwrap(), export: None }));
        assert!(named("json", "", &|_| None).is_none());
    }

    #[test]
    fn credentials_of_k6_become_an_authorization() {
        let variable = |name: &str| match name {
            "K6_PROMETHEUS_RW_USERNAME" => Some("u".to_owned()),
            "K6_PROMETHEUS_RW_PASSWORD" => Some("p".to_owned()),
            _ => None,
        };
        assert_eq!(authorization(PushKind::RemoteWrite, &variable).as_deref(), Some("Basic dTpw"));
        assert_eq!(authorization(PushKind::Influx, &variable), None);
    }
}
