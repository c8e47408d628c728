//! What leaves while a run goes on, received by those it is for: a real Prometheus, promtool, and an OTLP receiver that checks the protocol.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use serde_json::Value;
use squall_server::{Options, Target};
use squall_testkit::real::Prometheus;
use squall_testkit::{free_port, wait_until};

use crate::like_k6::script_file;
use crate::squall;

const PATIENCE: Duration = Duration::from_secs(30);

#[test]
fn prometheus_scrapes_and_receives_what_the_run_counted() {
    let target = Target::start(&Options::default()).unwrap();
    let port = free_port();
    let prometheus = Prometheus::scraping(port);
    let (page, push) = (
        format!("prometheus=127.0.0.1:{port}"),
        format!("prometheus-rw={}", prometheus.url("/api/v1/write")),
    );
    let urls =
        [format!("http://{}/delay/5ms", target.address()), format!("http://{}/status/503", target.address())];
    let args = ["-c", "2", "-d", "5s", "--threads", "1", "--out", &page, "--out", &push, &urls[0], &urls[1]];
    // A new Prometheus first looks at what it is to scrape after some seconds; `up` is there once it has.
    assert!(
        wait_until(PATIENCE, || prometheus.value("up{job=\"squall\"}").is_some()),
        "Prometheus never scraped"
    );
    let run = squall::start(&squall::with_json(&args));
    check_exposition(port, "k6_http_reqs_total{");
    // Scraped once a second: the series with the job's name is there before the run ends.
    let is_scraped =
        wait_until(PATIENCE, || prometheus.value("sum(k6_http_reqs_total{job=\"squall\"})") > Some(0.0));
    let ended = run.wait();
    assert!(is_scraped, "Prometheus scraped nothing; squall said {ended:#?}");
    assert!(!ended.stderr.contains("did not reach"), "every second was received: {}", ended.stderr);
    for (expected_response, count) in [("true", "/totals/ok"), ("false", "/totals/failed")] {
        let query = format!("sum(k6_http_reqs_total{{job=\"\",expected_response=\"{expected_response}\"}})");
        assert_eq!(prometheus.value(&query), Some(ended.count(count) as f64), "{query}");
    }
    assert!(prometheus.value("max(k6_http_req_duration_p99{job=\"\"})") > Some(0.004));
}

/// What is exposed is valid, once it has a figure.
fn check_exposition(port: u16, figure: &str) {
    let mut text = String::new();
    let has_figure = wait_until(PATIENCE, || {
        text = get(port, "/metrics").unwrap_or_default();
        text.contains(figure)
    });
    assert!(has_figure, "no {figure} at /metrics, but {text}");
    check_with_promtool(text.split_once("\r\n\r\n").expect("a head").1);
}

fn check_with_promtool(exposition: &str) {
    let mut promtool = Command::new("promtool")
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("promtool: `dev/setup test` installs it");
    promtool.stdin.take().expect("a pipe").write_all(exposition.as_bytes()).expect("promtool reads");
    let said = promtool.wait_with_output().expect("promtool ends");
    assert!(said.status.success(), "promtool: {said:?}\n{exposition}");
}

#[test]
fn prometheus_receives_the_metrics_of_a_script() {
    let target = Target::start(&Options::default()).unwrap();
    let (port, prometheus) = (free_port(), Prometheus::scraping(free_port()));
    let (page, push) = (
        format!("prometheus=127.0.0.1:{port}"),
        format!("prometheus-rw={}", prometheus.url("/api/v1/write")),
    );
    let (_folder, script) = script_file(SCRIPT);
    let base = format!("BASE=http://{}", target.address());
    let run = squall::start(&["run", "--out", &page, "--out", &push, "-e", &base, script.to_str().unwrap()]);
    check_exposition(port, "k6_wait_time_p99");
    let ended = run.wait();
    for (query, value) in [
        ("k6_iterations_total", 20.0),
        ("k6_http_reqs_total", 20.0),
        ("k6_http_req_failed_rate", 0.0),
        ("k6_vus_max", 2.0),
        ("k6_orders_total", 30.0),
        ("k6_wait_time_avg", 0.012),
        ("k6_size_max", 300.0),
        ("k6_good_rate", 0.5),
        ("k6_queue_depth", 4.0),
        ("k6_checks_rate{check=\"is 200\",group=\"::browse\"}", 1.0),
        ("k6_checks_rate{check=\"holds \\\"often\\\"\",group=\"\"}", 0.75),
    ] {
        let is_there = wait_until(PATIENCE, || prometheus.value(query) == Some(value));
        assert!(is_there, "{query} is {:?}, not {value}; squall said {ended:#?}", prometheus.value(query));
    }
    for query in ["k6_http_req_duration_p95", "k6_iteration_duration_min", "k6_group_duration_avg"] {
        assert!(prometheus.value(query) > Some(0.0004), "{query} is {:?}", prometheus.value(query));
    }
}

/// Twenty iterations of a third of a second, with metrics of all kinds.
const SCRIPT: &str = r#"
import http from 'k6/http';
import exec from 'k6/execution';
import { check, group, sleep } from 'k6';
import { Counter, Gauge, Rate, Trend } from 'k6/metrics';
const orders = new Counter('orders'), waited = new Trend('wait_time', true), size = new Trend('size');
const good = new Rate('good'), depth = new Gauge('queue_depth');
export const options = { vus: 2, iterations: 20 };
export default function () {
  const number = exec.scenario.iterationInTest;
  group('browse', () => {
    const response = http.get(`${__ENV.BASE}/delay/1ms`);
    check(response, { 'is 200': (r) => r.status === 200 });
  });
  check(number, { 'holds "often"': (n) => n % 4 > 0 });
  orders.add(1.5);
  waited.add(12);
  size.add(300, { kind: 'a' });
  good.add(number % 2);
  depth.add(4);
  sleep(0.3);
}
"#;

#[test]
fn otlp_keeps_to_its_protocol() {
    let target = Target::start(&Options::default()).unwrap();
    let (port, receiver) = receive();
    let (out, url) = (
        format!("otlp=http://127.0.0.1:{port}/v1/metrics"),
        format!("http://{}/delay/5ms", target.address()),
    );
    let ended = squall::run(&["-c", "2", "-d", "3s", "--threads", "1", "--out", &out, &url]);
    // Shows the receiver that there is no more.
    drop(TcpStream::connect((Ipv4Addr::LOCALHOST, port)));
    let requests = receiver.join().unwrap();
    assert!(requests.len() >= 3, "one for each second: {}", requests.len());
    let mut last_sums: Vec<f64> = Vec::new();
    for (head, body) in &requests {
        assert!(head.starts_with("POST /v1/metrics HTTP/1.1\r\n"), "{head}");
        assert!(head.to_ascii_lowercase().contains("content-type: application/json"), "{head}");
        let sums = check_otlp(body);
        assert!(sums.iter().zip(&last_sums).all(|(new, old)| new >= old), "sums are cumulative");
        last_sums = sums;
    }
    let (_, last) = requests.last().unwrap();
    let metrics = last["resourceMetrics"][0]["scopeMetrics"][0]["metrics"].as_array().unwrap();
    let requests = metrics.iter().find(|metric| metric["name"] == "k6_http_reqs_total").unwrap();
    let counted: f64 = requests["sum"]["dataPoints"]
        .as_array()
        .unwrap()
        .iter()
        .map(|point| point["asDouble"].as_f64().unwrap())
        .sum();
    assert_eq!(counted, (ended.count("/totals/ok") + ended.count("/totals/failed")) as f64);
}

/// Checks a request by OTLP 1.x (opentelemetry-proto, metrics.proto, in its JSON encoding); gives the monotonic sums' values.
fn check_otlp(body: &Value) -> Vec<f64> {
    let mut sums = Vec::new();
    let resources = list(&body["resourceMetrics"]);
    assert_eq!(attribute(&resources[0]["resource"], "service.name"), Some("squall"));
    for metric in
        resources.iter().flat_map(|one| list(&one["scopeMetrics"])).flat_map(|one| list(&one["metrics"]))
    {
        let name = metric["name"].as_str().expect("a metric has a name");
        // OpenTelemetry's instrument names: ASCII letters, digits and _ . - /, at most 255, a letter first.
        assert!(name.len() <= 255 && name.starts_with(|c: char| c.is_ascii_alphabetic()), "{name}");
        let data: Vec<&str> =
            ["sum", "gauge"].into_iter().filter(|kind| metric.get(kind).is_some()).collect();
        assert_eq!(data.len(), 1, "{name} has one kind of data");
        let data = &metric[data[0]];
        if metric.get("sum").is_some() {
            // 2 is AGGREGATION_TEMPORALITY_CUMULATIVE.
            assert_eq!(
                (&data["aggregationTemporality"], &data["isMonotonic"]),
                (&Value::from(2), &Value::from(true)),
                "{name}"
            );
        }
        for point in list(&data["dataPoints"]) {
            let value = point["asDouble"].as_f64().unwrap_or_else(|| panic!("{name}: {point}"));
            assert!(value.is_finite(), "{name}");
            assert!(
                nanoseconds(&point["startTimeUnixNano"]) <= nanoseconds(&point["timeUnixNano"]),
                "{name}"
            );
            let mut keys: Vec<&str> =
                list(&point["attributes"]).iter().map(|one| one["key"].as_str().expect("a key")).collect();
            let key_count = keys.len();
            keys.sort_unstable();
            keys.dedup();
            assert_eq!(keys.len(), key_count, "{name}: an attribute occurs twice");
            sums.extend(metric.get("sum").map(|_| value));
        }
    }
    sums
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn attribute<'a>(resource: &'a Value, key: &str) -> Option<&'a str> {
    list(&resource["attributes"]).iter().find(|one| one["key"] == key)?["value"]["stringValue"].as_str()
}

/// Proto3's JSON writes 64-bit integers as strings.
fn nanoseconds(value: &Value) -> u64 {
    value.as_str().and_then(|text| text.parse().ok()).unwrap_or_else(|| panic!("no fixed64 in JSON: {value}"))
}

/// Answers every request with 200 until a connection closes without one.
fn receive() -> (u16, JoinHandle<Vec<(String, Value)>>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
    let port = listener.local_addr().expect("bound").port();
    let receiver = thread::spawn(move || {
        let mut requests = Vec::new();
        while let Some(request) = listener.accept().ok().and_then(|(stream, _)| receive_one(stream)) {
            requests.push(request);
        }
        requests
    });
    (port, receiver)
}

fn receive_one(mut stream: TcpStream) -> Option<(String, Value)> {
    let mut bytes = Vec::new();
    let mut piece = [0; 4096];
    loop {
        let count = stream.read(&mut piece).ok().filter(|count| *count > 0)?;
        bytes.extend_from_slice(&piece[..count]);
        let Some(head_end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") else { continue };
        let head = String::from_utf8_lossy(&bytes[..head_end + 2]).into_owned();
        let length = head
            .lines()
            .find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok());
        let body = &bytes[head_end + 4..];
        if body.len() >= length.unwrap_or(0) {
            let body = serde_json::from_slice(body).expect("a body of JSON");
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}").ok()?;
            return Some((head, body));
        }
    }
}

#[test]
fn a_port_that_is_taken_ends_before_the_first_request() {
    let taken = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = taken.local_addr().unwrap();
    let out = format!("--out=prometheus={address}");
    let ended = squall::run(&[out.as_str(), "http://127.0.0.1:9/"]);
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""));
    assert!(ended.stderr.starts_with(&format!("error: cannot listen on {address}")), "{}", ended.stderr);
    assert!(ended.stderr.contains("help: choose another port"), "{}", ended.stderr);
}

/// A GET and its whole answer.
fn get(port: u16, path: &str) -> Option<String> {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).ok()?;
    write!(stream, "GET {path} HTTP/1.0\r\nHost: 127.0.0.1:{port}\r\n\r\n").ok()?;
    let mut text = String::new();
    stream.read_to_string(&mut text).ok()?;
    Some(text)
}
