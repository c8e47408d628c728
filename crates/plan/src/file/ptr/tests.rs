//! PTR files key by key: the load that each means, by squall and by the real tools, and what is wrong with files.

use super::super::Place;
use super::*;
use crate::file::{Variables, ptr_plan_text};

fn options(external: bool) -> PtrOptions {
    PtrOptions {
        user: Some("u".to_owned()),
        bastion: Some("b".to_owned()),
        external,
        ..PtrOptions::default()
    }
}

fn plan_of(text: &str, options: &PtrOptions) -> Result<PlanFile, Vec<String>> {
    let file = PtrFile { text: text.to_owned(), folder: String::new() };
    let problems =
        |problems: Vec<(usize, Problem)>| problems.iter().map(|(_, problem)| problem.to_string()).collect();
    parse_ptr(&[file], options).map_err(problems)
}

fn parse(text: &str, external: bool) -> Result<PlanFile, Vec<String>> {
    plan_of(text, &options(external))
}

/// A load as the plan's key and its options.
fn line(load: &LoadSpec) -> String {
    let options = load.options.iter().map(|option| {
        let values: Vec<&str> = option.values.iter().map(|text| text.value.as_str()).collect();
        format!(" {}={}", option.name.value, values.join("|"))
    });
    let arguments: Vec<&str> = load.arguments.iter().map(|text| text.value.as_str()).collect();
    format!("{} {}{}", load.kind.value, arguments.join(" "), options.collect::<String>())
}

/// A file of one scenario, whose configuration is its second line.
fn file(driver: &str, target: &str, target_file: &str, config: &str) -> String {
    format!(
        r#"{{"target_host": "{target}", "generator_hosts": ["g"], "generator_driver": "{driver}", "files_to_generator_hosts": [{{"local_path": "a.js", "remote_addr": "/tmp/a.js", "file_permission": "0640"}}], "scenarios": [{{"desc": "x", "generator_config":
{config}
, "target_file": "{target_file}"}}]}}"#
    )
}

/// What a scenario's configuration means: natively, and with the real tool.
fn check(driver: &str, target: &str, target_file: &str, config: &str, expected: [&str; 2]) {
    for (external, expected) in [(false, expected[0]), (true, expected[1])] {
        let loads = parse(&file(driver, target, target_file, config), external)
            .map(|plan| line(&plan.steps[0].loads[0]));
        let shown = loads.unwrap_or_else(|problems| problems.join(" & "));
        assert_eq!(shown, expected, "{driver} {config}, external: {external}");
    }
}

#[test]
fn k6_is_a_script_or_the_real_k6() {
    check(
        "k6",
        "shop:8080",
        "/tmp/a.js",
        r#"{"vus": 5, "duration": 3, "protocol": "h2"}"#,
        [
            "script a.js env=TARGET=http://shop:8080 vus=5 duration=3s",
            "tool k6 script=a.js url=http://shop:8080 vus=5 duration=3s",
        ],
    );
    check(
        "K6",
        "https://shop",
        "b.js",
        r#"{"protocol": "h1", "command_path": "/opt/k6"}"#,
        [
            "script b.js env=TARGET=https://shop http=1.1",
            "tool k6 path=/opt/k6 script=b.js url=https://shop http=1.1",
        ],
    );
}

#[test]
fn wrk_has_its_own_defaults() {
    check(
        "wrk",
        "shop:8080",
        "/index.html",
        r#"{"connections": 10, "duration": "1m", "protocol": "h1"}"#,
        [
            "http http://shop:8080/index.html insecure= connections=10 duration=1m",
            "tool wrk url=http://shop:8080/index.html connections=10 duration=1m",
        ],
    );
    check(
        "Wrk",
        "shop",
        "",
        r#"{"threads": 2, "port": 443, "command_path": "/opt/wrk"}"#,
        [
            "http https://shop:443/ insecure= connections=10 threads=2 duration=10s",
            "tool wrk path=/opt/wrk url=https://shop:443/ connections=10 threads=2 duration=10s",
        ],
    );
    check(
        "wrk",
        "shop",
        "a.lua",
        "{}",
        [
            "3:18: a Lua script needs the real wrk",
            "tool wrk url=http://shop/ script=a.lua connections=10 duration=10s",
        ],
    );
}

#[test]
fn h2load_speaks_http_2_unless_configured_otherwise() {
    check(
        "h2load",
        "shop:8080",
        "",
        r#"{"connections": 10, "duration": 5, "streams": 4}"#,
        [
            "http h2c://shop:8080/ insecure= connections=10 streams=4 duration=5s",
            "tool h2load url=http://shop:8080/ http=2 connections=10 streams=4 duration=5s",
        ],
    );
    check(
        "h2load",
        "shop:8080",
        "/a",
        r#"{"requests": 100, "connections": 4, "tls": true, "port": 99}"#,
        [
            "http h2://shop:99/a insecure= connections=4 requests=100",
            "tool h2load url=https://shop:99/a http=2 connections=4 requests=100",
        ],
    );
    check(
        "H2LOAD",
        "shop",
        "/a",
        r#"{"protocol": "h1"}"#,
        [
            "http http://shop/a insecure= connections=1 requests=1",
            "tool h2load url=http://shop/a http=1 connections=1 requests=1",
        ],
    );
}

#[test]
fn pauses_between_idle_connections_are_milliseconds() {
    let config = r#"{"target": "10.0.0.3", "port": 443, "protocol": "h2", "connections": 1000, "duration": 60, "pause": 5, "jitter": "1s", "bind-to-nics": ["eth", "ens"]}"#;
    let expected = "idle 10.0.0.3:443 tls= insecure= http=2 connections=1000 duration=60s pause=5ms jitter=1s bind-to-nics=eth|ens";
    check("Idle-Connections", "shop", "", config, [expected; 2]);
    let config = r#"{"connections": 10, "pause": 0, "jitter": 0.5}"#;
    check("idle-connections", "shop:80", "", config, ["idle shop:80 connections=10 jitter=0.5ms"; 2]);
}

#[test]
fn tls_perf_has_its_own_defaults() {
    let config = r#"{"command_path": "/opt/tls-perf", "duration": 10, "handshakes": 500, "tls-version": "1.3", "limit-connections": 100, "threads": 2, "process-tickets": true, "target-ip": "10.0.0.10", "port": 8443}"#;
    check(
        "tls-perf",
        "10.0.0.9",
        "",
        config,
        [
            "handshake 10.0.0.10:8443 insecure= connections=200 handshakes=500 tls=1.3 tickets=on",
            "tool tls-perf path=/opt/tls-perf url=https://10.0.0.10:8443 threads=2 connections=200 handshakes=500 tls=1.3 tickets=on",
        ],
    );
    check(
        "tls-perf",
        "10.0.0.9",
        "",
        r#"{"duration": 10, "process-tickets": "Advertise"}"#,
        [
            "handshake 10.0.0.9 insecure= connections=1 duration=10s tls=1.2 tickets=advertise",
            "tool tls-perf url=https://10.0.0.9 connections=1 duration=10s tls=1.2 tickets=advertise",
        ],
    );
    check(
        "tls-perf",
        "[::1]:80",
        "",
        r#"{"duration": 1, "port": 8443, "bind-to-nics": "eth"}"#,
        [
            "handshake [::1]:8443 insecure= connections=1 duration=1s tls=1.2 tickets=off bind-to-nics=eth",
            "2:47: `bind-to-nics`: tls-perf cannot choose interfaces",
        ],
    );
}

#[test]
fn a_wrong_key_or_value_is_an_error_at_its_place() {
    for (driver, config, expected) in [
        ("wrk", r#"{"treads": 2}"#, "2:2: `generator_config` of wrk has no key `treads`"),
        ("wrk", r#"{"handshakes": 2}"#, "2:2: `generator_config` of wrk has no key `handshakes`"),
        ("k6", r#"{"connections": 2}"#, "2:2: `generator_config` of k6 has no key `connections`"),
        ("k6", r#"{"protocol": "h9"}"#, "2:14: `protocol: h9`: not a possible value"),
        ("wrk", r#"{"protocol": "h2"}"#, "2:14: `protocol: h2`: wrk speaks HTTP/1.1 only"),
        (
            "tls-perf",
            r#"{"tls-version": "1.4", "duration": 1}"#,
            "2:17: `tls-version: 1.4`: not a possible value",
        ),
        (
            "tls-perf",
            r#"{"duration": 1, "process-tickets": 7}"#,
            "2:36: `process-tickets: 7`: not a possible value",
        ),
        ("tls-perf", r#"{"port": "https", "duration": 1}"#, "2:10: `port: https`: not a port"),
        ("tls-perf", "{}", "2:1: tls-perf needs `duration` or `handshakes`"),
        ("idle-connections", r#"{"port": 99999}"#, "2:10: `port: 99999`: not a port"),
        ("idle-connections", r#"{"connections": 0}"#, "2:17: `connections: 0`: must be at least 1"),
        ("h2load", r#"{"connections": "many"}"#, "2:17: `connections: many`: "),
        ("h2load", r#"{"connections": 2, "threads": 3}"#, "2:31: 2 connections for 3 threads"),
        ("wrk", r#"{"connections": 2, "duration": "soon"}"#, "2:32: `duration: soon`: "),
    ] {
        let problems = parse(&file(driver, "shop", "/tmp/a.js", config), false).unwrap_err();
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert!(problems[0].starts_with(expected), "{}\n{expected}", problems[0]);
    }
}

#[test]
fn what_is_wrong_with_a_file_is_reported_with_its_place_and_all_at_once() {
    let good = file("wrk", "shop", "/", "{}");
    for (from, to, expected) in [
        (r#""wrk""#, r#""wrk9""#, &["unknown driver `wrk9`"][..]),
        (r#"["g"]"#, r#"["g:99999"]"#, &["`generator_hosts: g:99999`: `99999` is not a port"]),
        (r#""0640""#, r#""rwx""#, &["`file_permission: rwx`: not octal permissions"]),
        (
            r#""scenarios""#,
            r#""pause": "x", "scenario""#,
            &["a PTR file has no key `scenario`", "`pause: x`: ", "there is no scenario"],
        ),
        (r#""target_host": "shop", "#, "", &["there is no target"]),
    ] {
        let text = good.replace(from, to);
        assert_ne!(text, good);
        let problems = parse(&text, false).unwrap_err();
        assert_eq!(problems.len(), expected.len(), "{problems:?}");
        for (problem, expected) in problems.iter().zip(expected) {
            assert!(problem.contains(expected), "{problem}");
        }
    }
}

const TWO_SCENARIOS: &str = r#"{"target_host": "10.0.0.9", "generator_hosts": ["10.0.0.1", "10.0.0.2:2222"], "generator_driver": "tls-perf", "pause": 5,
    "files_to_generator_hosts": [{"local_path": "it's a.txt", "remote_addr": "g:/tmp/${a}", "file_permission": "0640"}],
    "scenarios": [{"desc": "full", "generator_config": {"duration": 10, "bind-to-nics": ["eth", "on"]}}, {"desc": "full", "generator_config": {"handshakes": 5}}]}"#;

#[test]
fn every_generator_makes_all_of_the_load_unless_it_is_divided() {
    let whole = parse(TWO_SCENARIOS, false).unwrap();
    assert!(whole.loads().all(|load| load.per_machine));
    let divided = plan_of(TWO_SCENARIOS, &PtrOptions { divide: true, ..options(false) }).unwrap();
    assert!(divided.loads().all(|load| !load.per_machine));
}

#[test]
fn scenarios_are_steps_with_a_pause_between_them() {
    let plan = parse(TWO_SCENARIOS, false).unwrap();
    let steps: Vec<(&str, u64)> =
        plan.steps.iter().map(|step| (step.name.as_str(), step.pause.as_secs())).collect();
    assert_eq!(steps, [("full", 5), ("full (2)", 0)]);
    let Reach::Ssh(spec) = &plan.machines[1].reach else { panic!("ssh") };
    assert_eq!((spec.host.as_str(), spec.port, spec.jump.as_deref()), ("10.0.0.2", Some(2222), Some("b")));
    assert_eq!((plan.files[0].to.value.as_str(), plan.files[0].overwrite), ("/tmp/${a}", true));
}

#[test]
fn several_files_run_side_by_side() {
    let of = |text: String, folder: &str| PtrFile { text, folder: folder.to_owned() };
    let other = TWO_SCENARIOS.replace("10.0.0.2:2222", "10.0.0.3");
    let files = [of(TWO_SCENARIOS.to_owned(), ""), of(other, "/elsewhere")];
    let plan = parse_ptr(&files, &PtrOptions::default()).unwrap();
    assert_eq!((plan.machines.len(), plan.steps.len(), plan.steps[0].loads.len()), (3, 2, 2));
    assert_eq!(plan.steps[0].loads[1].name, "2: full");
    let from: Vec<&str> = plan.files.iter().map(|file| file.from.value.as_str()).collect();
    assert_eq!(from, ["it's a.txt", "/elsewhere/it's a.txt"], "relative to the file that names it");
    assert!(is_ptr(TWO_SCENARIOS) && !is_ptr("loads: []") && !is_ptr("{"));
}

/// A plan without the places of its texts.
fn bare(mut plan: PlanFile) -> PlanFile {
    let clear = |text: &mut Text| text.place = Place::START;
    plan.machines.iter_mut().for_each(|machine| clear(&mut machine.name));
    for file in &mut plan.files {
        [&mut file.from, &mut file.to].into_iter().chain(&mut file.on).for_each(clear);
    }
    for load in plan.steps.iter_mut().flat_map(|step| &mut step.loads) {
        clear(&mut load.kind);
        load.arguments.iter_mut().chain(&mut load.on).for_each(clear);
        for option in &mut load.options {
            clear(&mut option.name);
            option.values.iter_mut().for_each(clear);
        }
    }
    plan
}

#[test]
fn the_plan_that_is_written_is_the_one_that_a_file_means() {
    let variables = Variables { given: &[], environment: &|_| None, hosts: &|_| Ok(String::new()) };
    let key = Some("/keys/it's \"mine\"\t".to_owned());
    let config = r#"{"connections": 3, "port": 8443, "bind-to-nics": ["eth", "on"]}"#;
    for text in
        [TWO_SCENARIOS.to_owned(), file("wrk", "shop", "/a b", config), file("k6", "h", "/tmp/a.js", "{}")]
    {
        for external in [false, true] {
            let Ok(plan) = plan_of(&text, &PtrOptions { key: key.clone(), ..options(external) }) else {
                continue;
            };
            let written = ptr_plan_text(&plan);
            let read =
                PlanFile::parse(&written, &variables).unwrap_or_else(|error| panic!("{error:?}\n{written}"));
            assert_eq!(bare(read), bare(plan), "{written}");
        }
    }
}
