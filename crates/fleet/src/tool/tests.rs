//! What real tools printed, in `output/`, and the command lines that loads mean.

use super::*;

fn tool(name: &str) -> &'static dyn Tool {
    *TOOLS.iter().find(|tool| tool.name() == name).unwrap()
}

/// A load from words such as `--key=value`, and a machine's part of it.
fn load(words: &[&str], segment: &Segment) -> Result<(&'static dyn Tool, ToolLoad), Problems> {
    let arguments = vec![Text::typed(words[0])];
    let mut spec = LoadSpec { arguments, is_whole: true, ..LoadSpec::default() };
    for word in &words[1..] {
        let (key, value) = word.trim_start_matches("--").split_once('=').unwrap();
        spec.push(key, Text::typed(value));
    }
    let mut load = read(&spec, &[])?;
    let tool = by_name(&load.name)?;
    load.divide(tool, segment);
    Ok((tool, load))
}

fn figures(name: &str, printed: &str) -> ToolFigures {
    tool(name).read(printed, "")
}

fn us(figures: &ToolFigures, name: &str) -> f64 {
    figures.latency_us[name].round()
}

#[test]
fn wrk_is_read() {
    let well = figures("wrk", include_str!("output/wrk.txt"));
    assert_eq!((well.requests, well.failed, well.rate_per_s), (Some(93_600), Some(0), Some(44_327.08)));
    assert_eq!((well.bytes_received, well.duration_s), (Some(20_310_917), Some(2.11)));
    assert_eq!(
        (us(&well, "mean"), us(&well, "p50"), us(&well, "p99"), us(&well, "max")),
        (2850.0, 116.0, 37_890.0, 80_890.0)
    );
    let badly = figures("wrk", include_str!("output/wrk-bad.txt"));
    assert_eq!((badly.requests, badly.failed), (Some(51_730), Some(51_730)));
    let cut = figures(
        "wrk",
        "  1010 requests in 10.01s, 1.53MB read\n  Socket errors: connect 0, read 0, write 0, timeout 3\n",
    );
    assert_eq!((cut.failed, cut.errors["timeout"], cut.rate_per_s), (Some(3), 3, None));
}

#[test]
fn wrk2_is_read_by_its_percentiles() {
    let printed = "  Latency Distribution (HdrHistogram - Recorded Latency)\n 50.000%    6.67ms\n 99.900%   35.33ms\n100.000%   35.33ms\n  200 requests in 10.0s, 1KB read\nRequests/sec:  20.00\n";
    let read = figures("wrk2", printed);
    assert_eq!((us(&read, "p50"), us(&read, "p99.9"), us(&read, "max")), (6670.0, 35_330.0, 35_330.0));
}

#[test]
fn h2load_is_read_in_both_forms() {
    let old = figures("h2load", include_str!("output/h2load.txt"));
    assert_eq!((old.requests, old.failed, old.rate_per_s), (Some(500), Some(0), Some(6247.74)));
    assert_eq!((old.bytes_received, old.status["2xx"]), (Some(108_500), 500));
    assert_eq!((us(&old, "min"), us(&old, "mean"), us(&old, "max")), (51.0, 261.0, 7530.0));
    let tls = figures("h2load", include_str!("output/h2load-tls.txt"));
    assert_eq!((tls.requests, tls.rate_per_s), (Some(133_476), Some(66_738.0)));
    let new = "finished in 7.08s, 141164.80 req/s, 555.33MB/s\nrequests: 1000 total, 1000 started, 1000 done, 998 succeeded, 2 failed, 1 errored, 1 timeout\n                 min         max         median      p95         p99         mean        sd         +/- sd\nrequest     :    15.31ms    146.85ms     69.00ms    80.00ms     90.00ms     69.78ms      9.26ms    92.43%\n";
    let new = figures("h2load", new);
    assert_eq!(
        (us(&new, "p50"), us(&new, "p95"), us(&new, "p99"), us(&new, "mean")),
        (69_000.0, 80_000.0, 90_000.0, 69_780.0)
    );
    assert_eq!((new.failed, new.errors.len()), (Some(2), 2));
}

#[test]
fn tls_perf_is_read_in_both_forms() {
    let read = figures("tls-perf", include_str!("output/tlsperf.txt"));
    assert_eq!((read.requests, read.rate_per_s, read.duration_s), (Some(2329), Some(579.0), Some(4.0)));
    assert_eq!((us(&read, "min"), us(&read, "p95"), us(&read, "max")), (765.0, 23_611.0, 71_714.0));
    let old = " TOTAL:  SECONDS 7; HANDSHAKES 5443\n MEASURES (seconds):    MAX h/s 618; AVG h/s 561; 95P h/s 448; MIN h/s 448\n LATENCY (microseconds): MIN 26; AVG 50; 95P 74; MAX 3900\n";
    let old = figures("tls-perf", old);
    assert_eq!((old.rate_per_s, us(&old, "mean")), (Some(561.0), 50.0));
}

#[test]
fn ab_hey_oha_and_k6_are_read() {
    let ab = figures("ab", include_str!("output/ab.txt"));
    assert_eq!((ab.requests, ab.failed, ab.rate_per_s), (Some(500), Some(0), Some(41_128.57)));
    assert_eq!((us(&ab, "mean"), us(&ab, "p99"), us(&ab, "max")), (122.0, 2000.0, 3000.0));
    let hey = figures("hey", include_str!("output/hey.txt"));
    assert_eq!((hey.requests, hey.failed, hey.status["200"]), (Some(20_177), Some(0), 20_177));
    assert_eq!((us(&hey, "p99"), us(&hey, "max")), (3300.0, 35_600.0));
    let oha = figures("oha", include_str!("output/oha.json"));
    assert_eq!((oha.failed, us(&oha, "p99")), (Some(0), 2812.0));
    assert_eq!(oha.requests, Some(oha.status["200"]));
    let k6 = tool("k6").read("", include_str!("output/k6.json"));
    assert_eq!((k6.requests, k6.failed, k6.bytes_received), (Some(6298), Some(0), Some(1_366_666)));
    assert_eq!((us(&k6, "mean"), us(&k6, "p95"), us(&k6, "max")), (287.0, 701.0, 70_852.0));
}

#[test]
fn vegeta_and_fortio_are_read() {
    let vegeta = r#"{"latencies":{"total":1,"mean":113100000,"50th":90000000,"90th":1,"95th":1,"99th":2000000,"max":3000000,"min":1000},"bytes_in":{"total":371,"mean":3},"duration":9949000000,"requests":1200,"rate":120.0,"throughput":65.8,"success":0.5,"status_codes":{"0":600,"200":600},"errors":["x"]}"#;
    let vegeta = figures("vegeta", vegeta);
    assert_eq!((vegeta.requests, vegeta.failed, vegeta.rate_per_s), (Some(1200), Some(600), Some(120.0)));
    assert_eq!((us(&vegeta, "mean"), us(&vegeta, "p50"), us(&vegeta, "min")), (113_100.0, 90_000.0, 1.0));
    let fortio = "Fortio running\n{\"RunType\":\"HTTP\",\"ActualQPS\":8.0,\"ActualDuration\":5000000000,\"DurationHistogram\":{\"Count\":40,\"Min\":0.001,\"Max\":0.2,\"Avg\":0.06,\"Percentiles\":[{\"Percentile\":99.9,\"Value\":0.19}]},\"RetCodes\":{\"200\":38,\"-1\":2}}\nAll done";
    let fortio = figures("fortio", fortio);
    assert_eq!((fortio.requests, fortio.failed, us(&fortio, "p99.9")), (Some(40), Some(2), 190_000.0));
}

#[test]
fn nothing_is_read_from_nonsense() {
    for tool in TOOLS {
        for printed in ["", "Requests/sec: NaNsense", "{\"a\":", "%%%%\n%\n[", "Latency \u{fffd} µ 5µ"] {
            let read = tool.read(printed, printed);
            assert_eq!((read.requests, read.rate_per_s), (None, None), "{} {printed:?}", tool.name());
        }
    }
}

#[test]
fn loads_become_command_lines() {
    let line = |words: &[&str], segment| {
        let (tool, load) = load(words, segment).unwrap();
        tool.words(&load).unwrap().join(" ")
    };
    let half = &Segment::run(0, 1, 2).unwrap();
    let whole = &Segment::WHOLE;
    for (words, segment, expected) in [
        (
            &["wrk", "--url=http://a/", "--connections=11", "--duration=1m30s"][..],
            half,
            "--latency -c 6 -t 2 -d 1m30s http://a/",
        ),
        (&["wrk2", "--url=http://a/", "--rate=1k/s", "--args=-L"], half, "--latency -R 500 -L http://a/"),
        (
            &["h2load", "--url=https://a/", "--connections=10", "--rate=100/s", "--requests=50"],
            whole,
            "-c 10 -n 50 --rps 10 https://a/",
        ),
        (
            &[
                "tls-perf",
                "--url=https://10.0.0.1:8443/x",
                "--connections=9",
                "--threads=2",
                "--handshakes=5",
                "--tls=1.3",
            ],
            whole,
            "-l 5 -t 2 -n 5 --tls 1.3 10.0.0.1 8443",
        ),
        (&["ab", "--url=http://a", "--requests=5", "--connections=2"], whole, "-k -q -l -c 2 -n 5 http://a/"),
        (
            &["hey", "--url=http://a/", "--duration=2s", "--rate=100", "--connections=4"],
            whole,
            "-c 4 -z 2s -q 25 http://a/",
        ),
        (&["oha", "--url=http://a/", "--requests=5"], whole, "--no-tui --output-format json -n 5 http://a/"),
        (
            &["vegeta", "--url=http://a/", "--rate=10/s", "--duration=2s"],
            whole,
            "-c printf '%s\\n' 'GET http://a/' | 'vegeta' attack '-rate=10/1s' '-duration=2s' '-max-workers=1000' | 'vegeta' report -type=json",
        ),
    ] {
        assert_eq!(line(words, segment), expected);
    }
}

/// k6's execution segments divide what is asked for as a whole: what is divided before is divided twice.
#[test]
fn users_of_k6_are_divided_once() {
    let asked = |words: &[&str]| {
        let (tool, load) = load(words, &Segment::run(1, 1, 3).unwrap()).unwrap();
        (load.connections, load.requests, load.is_divided_by(tool))
    };
    let k6 = ["k6", "--script=a.js", "--vus=30", "--requests=90"];
    assert_eq!(asked(&k6), (Some(30), Some(90), true));
    let own = [&k6[..], &["--command=k6 run a.js"]].concat();
    assert_eq!(asked(&own), (Some(10), Some(30), false));
    assert_eq!(
        job::segment_words(&Segment::run(1, 1, 3).unwrap()).join(" "),
        "--execution-segment 1/3:2/3 --execution-segment-sequence 0,1/3,2/3,1"
    );
}

#[test]
fn shown_command_lines_have_no_secrets() {
    let header = "--header=Authorization: Bearer secret";
    let url = "--url=http://bob:secret@a/?token=secret&q=1";
    for (words, expected) in [
        (
            &["vegeta", url, header, "--rate=10/s", "--args=-header=Cookie: secret"][..],
            "-c printf '%s\\n' 'GET http://***@a/?token=***&q=1' | 'vegeta' attack '-rate=10/1s' '-duration=10s' \
             '-max-workers=1000' '-header=Authorization: ***' '-header=Cookie: ***' | 'vegeta' report -type=json",
        ),
        (&["hey", url, header], "-z 10s -H Authorization: *** http://***@a/?token=***&q=1"),
    ] {
        let (tool, load) = load(words, &Segment::WHOLE).unwrap();
        assert_eq!(tool.shown(&load, &tool.words(&load).unwrap()).join(" "), expected);
    }
    for (words, masked) in [
        ("-n 5 -A bob:secret http://a/", "-n 5 -A *** http://a/"),
        ("--password secret --user bob:secret -q", "--password *** --user *** -q"),
        ("--auth-token secret -a --insecure", "--auth-token *** -a --insecure"),
    ] {
        let words: Vec<String> = words.split(' ').map(str::to_owned).collect();
        assert_eq!(masked_words(&words).join(" "), masked);
    }
    let words =
        ["ab", "--url=http://u:secret@a/", "--args=-A", "--args=bob:secret", "--command=hey -a b:secret x"];
    assert_eq!(
        load(&words, &Segment::WHOLE).unwrap().1.shown(),
        "ab --url=http://***@a/ -A *** hey -a *** x"
    );
    for (word, masked) in [
        ("API_TOKEN=secret", "API_TOKEN=***"),
        ("--env=API_TOKEN=secret", "--env=API_TOKEN=***"),
        ("-HAuthorization: secret", "-HAuthorization: ***"),
        ("Cookie: a=secret", "Cookie: ***"),
        ("http://a/?q=1&token=secret", "http://a/?q=1&token=***"),
        ("-rate=10/1s", "-rate=10/1s"),
    ] {
        assert_eq!(masked_word(word), masked);
    }
}

#[test]
fn what_a_tool_cannot_do_is_said() {
    let problem = |words: &[&str]| {
        let Problems(problems) = load(words, &Segment::WHOLE).err().unwrap();
        problems
            .iter()
            .map(|problem| format!("{} | {}", problem.message, problem.help))
            .collect::<Vec<_>>()
            .join("\n")
    };
    assert!(problem(&["jmeter"]).starts_with("unknown tool `jmeter` | tools: k6, wrk"));
    assert!(problem(&["wrk", "--rate=5/s"]).starts_with("wrk has no option `rate` | its options: url"));
    let both = problem(&["wrk", "--rate=5/s", "--duration=5", "--threads=x"]);
    assert_eq!(both.lines().count(), 3, "all at once: {both}");
    assert!(problem(&["wrk", "--duration=5"]).starts_with("`duration: 5`: a unit is missing"));
    assert!(problem(&["wrk2", "--url=http://a/"]).starts_with("wrk2 needs a `rate`"));
    assert!(problem(&["k6"]).starts_with("k6 needs a `script`"));
    assert!(problem(&["hey"]).starts_with("the tool has no URL"));
    let few = ["wrk", "--url=http://a/", "--connections=1", "--threads=2"];
    assert!(problem(&few).starts_with("wrk would have 1 connections for 2 threads | raise `connections`"));
    let few = ["h2load", "--url=http://a/", "--connections=3", "--requests=2"];
    assert!(problem(&few).starts_with("h2load would have 2 requests for 3 connections | raise `requests`"));
    let http = ["k6", "--script=a.js", "--http=2"];
    assert!(problem(&http).starts_with("`http: 2`: k6 can only be restricted to HTTP/1.1"));
}

#[test]
fn what_is_asked_for_is_reported_for_all_machines_together() {
    for (words, total, part_count_max) in [
        (&["wrk", "--connections=4", "--duration=1s"][..], "12 connections", 4),
        (&["h2load", "--connections=40", "--requests=100"], "120 connections, 300 requests", 40),
        (&["k6", "--script=a.js", "--vus=1"], "3 virtual users", 1),
        (&["tls-perf", "--handshakes=5"], "15 handshakes", 5),
        (&["wrk2", "--rate=100/s"], "300 requests/s", u64::MAX),
    ] {
        let words = [words, &["--url=http://a/"]].concat();
        let (_, load) = load(&words, &Segment::WHOLE).unwrap();
        assert_eq!(load.asked(3), Asked { total: total.to_owned(), part_count_max });
    }
}

#[test]
fn k6_is_kept_to_http_1_by_its_environment() {
    let env = |words: &[&str]| {
        let (tool, load) = load(words, &Segment::WHOLE).unwrap();
        tool.env(&load)
    };
    let (name, value) = env(&["k6", "--script=a.js", "--http=1.1"]).unwrap();
    assert!(name == "GODEBUG" && value.ends_with("http2client=0"), "{value}");
    assert_eq!(env(&["k6", "--script=a.js"]), None);
}
