//! Agents as processes here: what holds for a fleet whatever carries it.

use std::time::Duration;

use crate::squall::{Place, assert_code, ok, parts, squall, text, wait_until};

const TWO_STEPS: &str = "
target: TARGET
machines: { a: local, b: local, c: { local: true, weight: 2 } }
steps:
  - name: warm
    loads:
      - { http: /, requests: 400, connections: 8, name: all }
      - { http: /bytes/10, requests: 101, connections: 2, name: few }
      - { http: /status/204, requests: 7, connections: 1, name: one, on: b }
    pause: 100ms
  - name: peak
    loads:
      - { http: [/, 2@/bytes/100], rate: 301/s, duration: 1s, name: rate }
      - { http: /, requests: 9, connections: 3, start_after: 1s, name: late, on: [a, c] }
    thresholds: ['errors<1%']
";

#[test]
fn a_plan_of_two_steps_on_three_machines_counts_what_the_target_counts() {
    let place = Place::new();
    let (record, output) = place.run(TWO_STEPS, &[]);
    assert_code(&record, &output, 0);
    assert_eq!(ok(&record["total"]), 400 + 101 + 7 + 301 + 9);
    let loads = [("all", 400), ("few", 101), ("one", 7), ("rate", 301), ("late", 9)];
    assert_eq!(parts(&record, "load"), loads.map(|(name, count)| (name.to_owned(), count)));
    assert_eq!(parts(&record, "step"), [("warm".to_owned(), 508), ("peak".to_owned(), 310)]);
    let machines = parts(&record, "machine");
    assert_eq!(machines.iter().map(|(_, count)| count).sum::<u64>(), 818);
    let events: Vec<&str> =
        record["events"].as_array().unwrap().iter().map(|event| event["label"].as_str().unwrap()).collect();
    assert_eq!(events, ["warm", "peak"]);
    assert_eq!(record["thresholds"][0]["metric"], "peak: errors");
    assert_eq!(place.logged(), 818);
}

#[test]
fn percentiles_of_the_whole_are_those_of_all_samples_together() {
    let place = Place::new();
    let plan = "
target: TARGET
machines: { a: local, b: local }
loads:
  - { http: /delay/20, requests: 60, connections: 6, name: slow, on: a }
  - { http: /, requests: 140, connections: 2, name: fast, on: b }
";
    let (record, _) = place.run(plan, &[]);
    let rows = record["total"]["rows"].as_array().unwrap();
    let count = |row: &serde_json::Value| row["latency"]["count"].as_u64().unwrap();
    assert_eq!(rows.iter().map(count).sum::<u64>(), 200);
    let parts = record["parts"].as_array().unwrap();
    let sum = |kind: &str, field: &str| {
        let own = parts.iter().filter(|part| part["kind"] == kind);
        own.map(|part| part["total"]["phases"]["total"][field].as_u64().unwrap()).sum::<u64>()
    };
    for kind in ["step", "load", "machine"] {
        for field in ["count", "sum_ns"] {
            let whole = record["total"]["phases"]["total"][field].as_u64().unwrap();
            assert_eq!(sum(kind, field), whole, "{kind} {field}");
        }
    }
}

#[test]
fn every_problem_is_reported_before_anything_is_sent() {
    let place = Place::new();
    let plan = "
target: TARGET
machines: { a: local, b: { command: 'false' }, c: { command: /no/such/program } }
loads:
  - { http: /, connections: 5 }
";
    let (record, output) = place.run(plan, &[]);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2));
    assert!(said.contains("2 problems, nothing was sent"), "{said}");
    assert!(said.contains("machine `b`: the agent does not answer: it ended"), "{said}");
    assert!(said.contains("machine `c`: cannot start `/no/such/program`"), "{said}");
    assert!(record.is_null());
    assert_eq!(place.logged(), 0);
}

#[test]
fn an_agent_of_another_version_says_so() {
    let place = Place::new();
    // What an agent answers first, as the versions before and after this one do: the length, two numbers, JSON.
    let agent = |protocol: u32, version: &str| {
        let json = format!(
            r#"{{"hello":{{"protocol":{protocol},"version":"{version}","facts":{{}},"way_back":null}}}}"#
        );
        let frame = [&(json.len() as u32).to_be_bytes()[..], &[0; 16], json.as_bytes()].concat();
        let path = place.folder.path().join(format!("hello-{protocol}"));
        std::fs::write(&path, frame).unwrap();
        format!("[sh, -c, 'cat {}; cat >/dev/null']", path.display())
    };
    let plan = format!(
        "target: TARGET\nmachines: {{ a: local, old: {{ command: {} }}, new: {{ command: {} }} }}\nloads: [{{ http: /, requests: 5 }}]\n",
        agent(5, "0.1.0"),
        agent(99, "0.2.0"),
    );
    let (record, output) = place.run(&plan, &[]);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    for expected in [
        "machine `old`: squall 0.1.0 there speaks protocol 5, not ",
        "machine `new`: squall 0.2.0 there speaks protocol 99, not ",
        "use the same version on both machines",
    ] {
        assert!(said.contains(expected), "{said}");
    }
    assert!(record.is_null());
    assert_eq!(place.logged(), 0);
}

#[test]
fn a_load_that_no_machine_can_make_is_refused_by_name() {
    let place = Place::new();
    let plan = "
target: TARGET
machines: { a: local }
steps:
  - loads: [{ http: /, requests: 5 }]
  - loads: [{ http: /, requests: 5, source: 192.0.2.1, name: elsewhere }]
";
    let (_, output) = place.run(plan, &[]);
    let said = text(&output.stderr);
    assert!(
        said.contains("machine `a`: load `elsewhere`: cannot send from the local address `192.0.2.1`"),
        "{said}"
    );
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(place.logged(), 0, "the first step did not start either");
}

#[test]
fn a_broken_rule_ends_the_run_and_keeps_what_was_measured() {
    let place = Place::new();
    let plan = "
target: TARGET
loads:
  - { http: /status/500, connections: 2, duration: 1m, thresholds: [{ rule: 'errors<5%', abort: true }] }
";
    let (record, output) = place.run(plan, &[]);
    assert_code(&record, &output, 3);
    assert_eq!(record["stopped_by"], "drained");
    assert!(record["duration"]["secs"].as_u64().unwrap() < 30);
    assert!(text(&output.stderr).contains("`errors<5%` is missed: the run ends"));
}

#[test]
fn a_lost_agent_takes_nothing_with_it() {
    let place = Place::new();
    // At the end of no second a request ends: each leaves two of them open, which the lost machine had reported as begun.
    let plan = "
target: TARGET
machines: { stays: local, goes: { command: [sh, -c, 'timeout -s KILL 4 \"$0\" agent', SQUALL] } }
loads:
  - { http: /delay/700, connections: 4, duration: 6s }
"
    .replace("SQUALL", env!("CARGO_BIN_EXE_squall"));
    let (record, output) = place.run(&plan, &[]);
    let said = text(&output.stderr);
    assert!(said.contains("lost machine goes"), "{said}");
    let part = |name: &str| {
        let mut parts = record["parts"].as_array().unwrap().iter();
        parts.find(|part| part["kind"] == "machine" && part["name"] == name).unwrap().clone()
    };
    assert!(part("goes")["problem"].as_str().unwrap().starts_with("lost: "), "{}", part("goes")["problem"]);
    assert!(ok(&part("goes")["total"]) > 0 && ok(&part("stays")["total"]) > ok(&part("goes")["total"]));
    assert_eq!(ok(&record["total"]), ok(&part("goes")["total"]) + ok(&part("stays")["total"]));
    for total in [&record["total"], &part("goes")["total"]] {
        let interrupted = total["rows"][0]["interrupted"].as_u64().unwrap();
        assert!(interrupted > 0, "two were open");
        assert_eq!(total["requests_started"].as_u64(), Some(ok(total) + interrupted));
    }
    let reasons = record["verdict"]["reasons"].to_string();
    assert!(reasons.contains("machines_lost"), "{reasons}");
    assert!(record["events"].to_string().contains("lost machine goes"));
}

#[test]
fn an_agent_ends_with_its_controller_and_leaves_nothing() {
    let place = Place::new();
    let plan = place.write("plan.yaml", "target: TARGET\nloads: [{ http: /delay/10, duration: 1m }]\n");
    let temporary = tempfile::tempdir().unwrap();
    let mut command = squall();
    command.arg("run").arg(plan).arg("--no-save").arg("-qq").env("TMPDIR", temporary.path());
    let mut controller = command.spawn().unwrap();
    wait_until(|| place.target.stats().requests > 0);
    assert_eq!(temporary.path().read_dir().unwrap().count(), 1, "the agent's folder");
    controller.kill().unwrap();
    controller.wait().unwrap();
    wait_until(|| temporary.path().read_dir().unwrap().count() == 0);
    let after = place.target.stats().requests;
    std::thread::sleep(Duration::from_millis(100));
    assert_eq!(place.target.stats().requests, after);
}

#[test]
fn a_rule_on_a_watched_figure_is_judged_for_its_own_step_and_ends_the_run() {
    let place = Place::new();
    let plan = "
target: TARGET
machines: { g: local, shop: local }
monitors: [{ machine: shop }]
steps:
  - loads: [{ http: /delay/5, connections: 2, duration: 2500ms }]
    thresholds:
      - { monitor: shop memory, rule: 'min>1MB' }
      - { monitor: target shop cpu, rule: 'max<=100%' }
  - loads: [{ http: /delay/5, connections: 2, duration: 1m, name: long }]
    thresholds: [{ monitor: shop memory, rule: max<1MB, abort: true }]
";
    let (record, output) = place.run(plan, &[]);
    let said = text(&output.stderr);
    assert_code(&record, &output, 3);
    let outcomes: Vec<(&str, bool)> = record["thresholds"]
        .as_array()
        .unwrap()
        .iter()
        .map(|rule| (rule["metric"].as_str().unwrap(), rule["ok"].as_bool().unwrap()))
        .collect();
    assert_eq!(
        outcomes,
        [("step 1: shop memory", true), ("step 1: target shop cpu", true), ("step 2: shop memory", false),]
    );
    assert!(said.contains("`shop memory: max<1MB` is missed: the run ends"), "{said}");
    assert_eq!(record["stopped_by"], "drained");
}

#[test]
fn a_rule_on_what_nobody_watches_is_refused() {
    let place = Place::new();
    let plan = "
target: TARGET
machines: { g: local, shop: local }
monitors: [{ machine: shop }]
loads: [{ http: /, requests: 1 }]
thresholds: [{ monitor: shp cpu, rule: max<80% }]
";
    // A plan of one step has its rules at the top.
    let (_, output) = place.run(plan, &[]);
    let said = text(&output.stderr);
    assert!(said.contains("plan.yaml:6:25: nothing named `shp` is monitored"), "{said}");
    assert!(said.contains("a similar name exists: `shop`"), "{said}");
    assert_eq!(place.logged(), 0);
}

#[test]
fn recorded_traffic_is_a_load_whose_parts_the_machines_play() {
    let place = Place::new();
    let har = place.write("site.har", &har(30));
    let plan = format!(
        "target: TARGET\nmachines: {{ a: local, b: {{ command: [{:?}, agent] }} }}\nloads:\n  - {{ replay: {}, name: all }}\n  \
         - {{ replay: {}, asap: true, connections: 4, name: each, only-path: /status/204 }}\n",
        env!("CARGO_BIN_EXE_squall"),
        har.file_name().unwrap().to_str().unwrap(),
        har.display(),
    );
    let (record, output) = place.run(&plan, &[]);
    assert_code(&record, &output, 0);
    // Each of four users plays the ten that the filter leaves.
    assert_eq!(parts(&record, "load"), [("all".to_owned(), 30), ("each".to_owned(), 40)]);
    assert_eq!(parts(&record, "machine").iter().filter(|(_, count)| *count > 0).count(), 2);
    assert_eq!(place.logged(), 70);
}

/// A recording of so many requests to a host that does not exist, a few milliseconds apart, of as many clients.
fn har(count: usize) -> String {
    let paths = ["/", "/status/204", "/bytes/10"];
    let entry = |idx: usize| {
        format!(
            r#"{{"startedDateTime": "2026-01-01T00:00:00.{:03}Z", "time": 1, "connection": "{idx}",
            "request": {{"method": "GET", "url": "http://nobody.invalid{}", "httpVersion": "HTTP/1.1", "headers": []}},
            "response": {{"status": {}, "headers": [], "content": {{"size": 0}}}}}}"#,
            idx * 5,
            paths[idx % 3],
            if idx % 3 == 1 { 204 } else { 200 },
        )
    };
    let entries: Vec<String> = (0..count).map(entry).collect();
    format!(r#"{{"log": {{"version": "1.2", "entries": [{}]}}}}"#, entries.join(","))
}

#[test]
fn a_script_is_divided_among_machines_with_one_setup_and_one_teardown() {
    let place = Place::new();
    place.write("lib/paths.js", "export const path = '/anything/' + open('./name.txt').trim();");
    place.write("lib/name.txt", "cart");
    place.write_as_is(
        "shop.js",
        "import http from 'k6/http';
import { check } from 'k6';
import { path } from './lib/paths.js';
export const options = {
  scenarios: {
    some: { executor: 'shared-iterations', vus: 3, iterations: 30 },
    steady: { executor: 'constant-arrival-rate', rate: 40, timeUnit: '1s', duration: '1s', preAllocatedVUs: 40, exec: 'steady' },
  },
  thresholds: { checks: ['rate==1'], http_req_duration: ['p(95)<0.000001'] },
};
export function setup() { return { token: http.get(__ENV.TARGET + '/anything/setup').status }; }
export default function (data) {
  check(http.get(__ENV.TARGET + path), { ok: (r) => r.status === 200, 'has data': () => data.token === 200 });
}
export function steady() { http.get(__ENV.TARGET + '/status/204'); }
export function teardown(data) { http.get(__ENV.TARGET + '/anything/teardown?' + data.token); }
",
    );
    let plan = "
target: TARGET
machines: { a: local, b: local, c: { local: true, weight: 2 } }
loads: [{ script: shop.js, name: shop }]
";
    let (record, output) = place.run(plan, &[]);
    // The second threshold cannot hold.
    assert_code(&record, &output, 3);
    let outcomes: Vec<bool> =
        record["thresholds"].as_array().unwrap().iter().map(|rule| rule["ok"].as_bool().unwrap()).collect();
    assert_eq!(outcomes, [true, false], "{}", record["thresholds"]);
    assert_eq!(ok(&record["total"]), 30 + 40 + 2);
    let machines = parts(&record, "machine");
    assert!(machines.iter().all(|(_, count)| *count > 0), "{machines:?}");
    let log = place.log();
    let count = |path: &str| log.iter().filter(|line| line.split(' ').nth(3) == Some(path)).count();
    let counts = ["/anything/setup", "/anything/cart", "/status/204", "/anything/teardown?200"].map(count);
    assert_eq!(counts, [1, 30, 40, 1]);
}

/// As `k6 run` on each of them: PTR files mean that.
#[test]
fn a_script_that_each_machine_makes_all_of_has_a_setup_and_a_teardown_on_each() {
    let place = Place::new();
    place.write_as_is(
        "shop.js",
        "import http from 'k6/http';
export const options = { vus: 2, iterations: 10 };
export function setup() { return http.get(__ENV.TARGET + '/anything/setup').status; }
export default function (data) { http.get(__ENV.TARGET + '/anything/cart?' + data); }
export function teardown(data) { http.get(__ENV.TARGET + '/anything/teardown?' + data); }
",
    );
    let plan = "
target: TARGET
machines: { a: local, b: local, c: local }
loads: [{ script: shop.js, per_machine: true }]
";
    let (record, output) = place.run(plan, &[]);
    assert_code(&record, &output, 0);
    assert_eq!(parts(&record, "machine"), ["a", "b", "c"].map(|name| (name.to_owned(), 12)));
    let log = place.log();
    let count = |path: &str| log.iter().filter(|line| line.split(' ').nth(3) == Some(path)).count();
    assert_eq!(["/anything/setup", "/anything/cart?200", "/anything/teardown?200"].map(count), [3, 30, 3]);
}

#[test]
fn a_setup_that_throws_ends_the_load_everywhere_and_is_reported() {
    let place = Place::new();
    place.write(
        "bad.js",
        "export function setup() { throw new Error('no token'); }\nexport default function () {}\n",
    );
    let plan = "machines: { a: local, b: local }\nloads: [{ script: bad.js, vus: 2, duration: 1m }]\n";
    let (record, output) = place.run(plan, &[]);
    let said = text(&output.stderr);
    assert!(said.contains("setup(): ") && said.contains("no token"), "{said}");
    assert!(record["duration"]["secs"].as_u64().unwrap() < 30);
}

#[test]
fn a_threshold_of_a_script_that_aborts_ends_it_on_every_machine() {
    let place = Place::new();
    place.write_as_is(
        "errors.js",
        "import http from 'k6/http';
         export const options = { thresholds: { http_req_failed: [{ threshold: 'rate<0.1', abortOnFail: true }] } };
         export default function () { http.get(`${__ENV.TARGET}/status/500`); }",
    );
    let plan = "target: TARGET\nmachines: { a: local, b: local }\nloads: [{ name: errors, script: errors.js, vus: 2, duration: 1m }]\n";
    let (record, output) = place.run(plan, &[]);
    assert_code(&record, &output, 3);
    assert!(record["duration"]["secs"].as_u64().unwrap() < 30);
    let said = text(&output.stderr);
    assert!(said.contains("`errors: http_req_failed rate<0.1` is missed: the run ends"), "{said}");
}

#[test]
fn a_script_that_ends_its_load_leaves_its_time_and_its_rate_and_is_reported() {
    let abort = "if (exec.instance.iterationsCompleted >= 200) exec.test.abort('enough');";
    let throws = "export function teardown() { throw new Error('no broom'); }";
    for (name, last, (inside, outside)) in
        [("abort", "enough", (abort, "")), ("teardown", "no broom", ("", throws))]
    {
        let place = Place::new();
        let script = format!(
            "import http from 'k6/http';
import exec from 'k6/execution';
export const options = {{ vus: 2, iterations: 300 }};
export default function () {{ http.get(`${{__ENV.TARGET}}/delay/2`); {inside} }}
{outside}"
        );
        place.write_as_is("ends.js", &script);
        let plan = "target: TARGET\nloads: [{ name: shop, script: ends.js }]\nthresholds: ['rate>1/s']\n";
        let (record, output) = place.run(plan, &[]);
        let said = text(&output.stdout) + &text(&output.stderr);
        assert!(ok(&record["total"]) >= 200, "{name}: {said}");
        let duration = &record["duration"];
        assert!(
            duration["secs"].as_u64() > Some(0) || duration["nanos"].as_u64() > Some(0),
            "{name}: {said}"
        );
        assert_eq!(record["thresholds"][0]["ok"], true, "{name}: {}", record["thresholds"]);
        let parts = record["parts"].as_array().unwrap();
        let load = parts.iter().find(|part| part["kind"] == "load").unwrap();
        assert!(load["problem"].as_str().unwrap().contains(last), "{name}: {load}");
        assert!(said.contains("LOADS") && said.contains(last), "{name}: {said}");
    }
}

#[test]
fn a_rule_with_a_lower_bound_waits_for_the_first_second_and_leaves_pauses_out() {
    let place = Place::new();
    let plan = "
target: TARGET
steps:
  - loads: [{ http: /, rate: 100/s, duration: 2s, thresholds: [{ rule: 'rate>50/s', abort: true }] }]
    thresholds: [{ rule: 'rate>50/s', abort: true }]
    pause: 2s
  - loads: [{ http: /, rate: 100/s, duration: 2s, warmup: 1s, start_after: 500ms, name: later }]
    thresholds: [{ rule: 'rate>50/s', abort: true }]
thresholds: [{ rule: 'rate>60/s', abort: true }]
";
    let (record, output) = place.run(plan, &[]);
    assert_code(&record, &output, 0);
    assert_eq!(record["stopped_by"], "duration", "{}", text(&output.stderr));
}

#[test]
fn a_rate_that_is_too_low_ends_the_run_also_next_to_a_tool() {
    let place = Place::new();
    let plan = "
target: TARGET
loads:
  - { http: /, rate: 20/s, duration: 1m, thresholds: [{ rule: 'rate>50/s', abort: true }] }
  - { tool: hey, command: sleep 60 }
";
    let (record, output) = place.run(plan, &[]);
    let said = text(&output.stderr);
    assert!(said.contains("`rate>50/s` is missed: the run ends"), "{said}");
    let duration = record["duration"]["secs"].as_u64().unwrap();
    assert!((1..30).contains(&duration), "{duration}");
}

#[test]
fn a_machine_that_is_only_watched_makes_no_load_and_this_one_gets_the_files() {
    for watched in ["m", "local"] {
        let place = Place::new();
        let there = place.folder.path().join("there.txt");
        place.write("body.txt", "body");
        let plan = format!(
            "target: TARGET
machines: {{ {watched}: local }}
monitors: [{{ machine: {watched}, process: squall }}]
files: [{{ from: body.txt, to: {there:?} }}]
loads:
  - {{ http: /, requests: 20, connections: 2 }}
  - {{ tool: hey, command: [cp, {there:?}, {:?}] }}
",
            place.folder.path().join("seen.txt"),
        );
        let (record, output) = place.run(&plan, &[]);
        let said = text(&output.stderr);
        let seen = std::fs::read_to_string(place.folder.path().join("seen.txt"));
        assert_eq!(seen.as_deref().unwrap_or_default(), "body", "{said}");
        assert!(!there.exists());
        assert_eq!(ok(&record["total"]), 20, "{said}");
        assert_eq!(said.matches("machine     local ").count(), 1, "{said}");
        let makers = said.lines().filter_map(|line| line.trim().strip_prefix("on      "));
        assert_eq!(makers.collect::<Vec<_>>(), ["local", "local"], "{said}");
        assert_eq!(place.logged(), 20);
    }
}

#[test]
fn another_machine_called_local_is_refused_where_this_one_must_make_the_load() {
    let place = Place::new();
    let plan = "
target: TARGET
machines: { local: elsewhere.invalid }
monitors: [{ machine: local }]
loads: [{ http: /, requests: 1 }]
";
    let (_, output) = place.run(plan, &["--dry-run"]);
    let said = text(&output.stderr);
    assert!(
        said.contains(
            "plan.yaml:3:13: all machines are used only for monitoring, so this one generates the load"
        ),
        "{said}"
    );
    let named = plan.replace("requests: 1", "requests: 1, on: local");
    let (_, output) = place.run(&named, &["--dry-run"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
}

#[test]
fn a_target_whose_name_nobody_has_is_unreachable_as_it_is_without_a_plan() {
    let place = Place::new();
    let plan = "target: http://nosuch.invalid/\nmachines: { a: local, b: local }\nloads: [{ http: /, requests: 9 }]\n";
    let (_, output) = place.run(plan, &[]);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(4), "{said}");
    assert!(said.contains("give an address: `resolve: 'nosuch.invalid:80:192.0.2.1'`"), "{said}");
    let also = plan.replace("b: local", "b: { command: 'false' }");
    assert_eq!(place.run(&also, &[]).1.status.code(), Some(2), "something else is wrong, too");
}

#[test]
fn what_a_load_lacks_is_helped_in_the_words_of_plans() {
    let place = Place::new();
    for (plan, expected) in [
        ("loads: [{ http: , requests: 5 }]", "give the plan a `target`, or the load a URL, such as `http: "),
        ("loads: [{ idle: , duration: 5s }]", "or the load an address, such as `idle: localhost:8080`"),
        (
            "target: TARGET\nloads: [{ http: /, threshold: 'p(95)<1' }]",
            "help: write `thresholds:`, in the load",
        ),
        ("loads: [{ replay: }]", "name the recording, such as `replay: site.har`"),
        ("loads: [{ http: }, { http: }]", "fix these, then check again with `squall plan check "),
    ] {
        let (_, output) = place.run(plan, &[]);
        let said = text(&output.stderr);
        assert!(said.contains(expected) && output.status.code() == Some(2), "{plan}: {said}");
    }
}

#[test]
fn a_machine_has_its_own_environment_temporary_folder_and_limit_of_open_files() {
    let place = Place::new();
    let scratch = place.folder.path().join("scratch");
    std::fs::create_dir(&scratch).unwrap();
    let show = place.write_as_is("show", "echo \"$SHADE|$TMPDIR|$(ulimit -n)\"\n");
    let plan = |limit: u64| {
        format!(
            "target: TARGET\nmachines:\n  a: {{ local: true, env: {{ SHADE: \"it's blue\" }}, tmp: {}, ulimit: {limit} }}\n\
             loads: [{{ tool: wrk, command: 'sh {}' }}]\n",
            scratch.display(),
            show.display(),
        )
    };
    let (record, output) = place.run(&plan(4000), &[]);
    let raw = record["tools"][0]["raw_file"].as_str().unwrap_or_else(|| panic!("{}", text(&output.stderr)));
    let runs = place.folder.path().join("runs");
    let run = std::fs::read_dir(runs).unwrap().next().unwrap().unwrap().path();
    let shown = std::fs::read_to_string(run.join(raw)).unwrap();
    assert!(shown.contains(&format!("it's blue|{}|4000", scratch.display())), "{shown}");
    assert_eq!(scratch.read_dir().unwrap().count(), 0, "the agent's folder was there, and is gone");
    let (_, output) = place.run(&plan(999_999_999_999), &[]);
    let said = text(&output.stderr);
    assert!(said.contains("machine `a`: cannot allow 999999999999 open files: at most "), "{said}");
    assert_eq!(output.status.code(), Some(2));
}
