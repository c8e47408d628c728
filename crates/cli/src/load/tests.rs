//! Flags to plans, as tables.

use std::time::Duration;

use squall_plan::{
    Arrival, Body, ExpectBody, HttpLoad, Load, Pacing, Plan, Profile, RequestPlan, Stage, Stop, TlsVersions,
    What, When,
};

use crate::args::Command;
use crate::usage::{Request, parse};

fn plan(flags: &str) -> Plan {
    let argv = ["squall"].into_iter().chain(flags.split_whitespace()).chain(["http://x/"]);
    match parse(argv.map(Into::into)) {
        Ok(Request::Do(Command::Http(args))) => super::http_plan(&args.spec()).unwrap(),
        other => panic!("{flags}: {other:?}"),
    }
}

fn load(flags: &str) -> Load {
    plan(flags).loads.remove(0)
}

fn http(flags: &str) -> HttpLoad {
    let What::Http(http) = load(flags).what else { panic!("{flags}: not http") };
    http
}

fn request(flags: &str) -> RequestPlan {
    http(flags).requests.remove(0)
}

fn header(flags: &str, name: &str) -> Vec<String> {
    let headers = request(flags).headers;
    headers.into_iter().filter(|h| h.name.eq_ignore_ascii_case(name)).map(|h| h.value).collect()
}

fn stage(secs: u64, target: f64) -> Stage {
    Stage { duration: Duration::from_secs(secs), target }
}

#[test]
fn connections_are_constant_or_ramped() {
    for (flags, connections) in [
        ("", Profile::constant(50.0)),
        ("-c 1k", Profile::constant(1000.0)),
        ("--ramp 10s:100,1m:0", Profile { from: 1.0, stages: vec![stage(10, 100.0), stage(60, 0.0)] }),
        ("-c 7 --ramp 10s:100", Profile { from: 7.0, stages: vec![stage(10, 100.0)] }),
    ] {
        assert_eq!(load(flags).when, When::Closed { connections, users: None }, "{flags}");
    }
}

#[test]
fn users_share_a_constant_number_of_connections() {
    for (flags, connections, users) in [
        ("--users 200", 50.0, Profile::constant(200.0)),
        ("--users 20 -c 5", 5.0, Profile::constant(20.0)),
        ("--users 20 -c 5 --ramp 10s:100", 5.0, Profile { from: 20.0, stages: vec![stage(10, 100.0)] }),
    ] {
        let connections = Profile::constant(connections);
        assert_eq!(load(flags).when, When::Closed { connections, users: Some(users) }, "{flags}");
    }
}

#[test]
fn a_rate_makes_the_model_open() {
    let open = |rate, arrival, pacing, count: u32| When::Open {
        rate,
        arrival,
        pacing,
        connection_count_max: count.try_into().unwrap(),
    };
    for (flags, when) in [
        ("-r 30/m", open(Profile::constant(0.5), Arrival::Constant, Pacing::Balanced, 1000)),
        (
            "-r 5k/s -c 9 --arrival poisson --pacing precise",
            open(Profile::constant(5000.0), Arrival::Poisson, Pacing::Precise, 9),
        ),
        (
            "-r 0 --ramp 10s:100/s",
            open(
                Profile { from: 0.0, stages: vec![stage(10, 100.0)] },
                Arrival::Constant,
                Pacing::Balanced,
                1000,
            ),
        ),
    ] {
        assert_eq!(load(flags).when, when, "{flags}");
    }
}

#[test]
fn runs_end_by_time_count_or_ramp_and_warm_up_comes_on_top() {
    for (flags, secs, count) in [
        ("", Some(10), None),
        ("-d 1m", Some(60), None),
        ("-n 10k", None, Some(10_000)),
        ("-n 5 -d 3s", Some(3), Some(5)),
        ("--ramp 10s:5,20s:7", Some(30), None),
        ("--ramp 10s:5 -d 1m", Some(60), None),
        ("--ramp 10s:5 -n 3", Some(10), Some(3)),
        ("--warmup 2s", Some(12), None),
        ("--warmup 2s -n 3", None, Some(3)),
    ] {
        assert_eq!(load(flags).stop, Stop { duration: secs.map(Duration::from_secs), count }, "{flags}");
    }
    assert_eq!(plan("--warmup 2s").warmup, Duration::from_secs(2));
}

#[test]
fn bodies_choose_the_method_and_forms_their_content_type() {
    for (flags, method, body) in [
        ("", "GET", Body::Empty),
        ("-X PUT", "PUT", Body::Empty),
        ("--body hi", "POST", Body::Bytes(b"hi".to_vec())),
        ("--body hi -X PATCH", "PATCH", Body::Bytes(b"hi".to_vec())),
        ("--form a=b&c --form d=", "POST", Body::Bytes(b"a=b%26c&d=".to_vec())),
    ] {
        let request = request(flags);
        assert_eq!((request.method.as_str(), request.body), (method, body), "{flags}");
    }
    assert_eq!(header("--form a=b", "content-type"), ["application/x-www-form-urlencoded"]);
    assert_eq!(header("--form a=b -H Content-Type:text/plain", "content-type"), ["text/plain"]);
    assert_eq!(header("--body hi", "content-type"), [""; 0]);
}

#[test]
fn a_body_file_is_named_with_its_size() {
    let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
    let bytes = std::fs::metadata(manifest).unwrap().len();
    assert_eq!(request(&format!("--body-file {manifest}")).body, Body::File { path: manifest.into(), bytes });
}

#[test]
fn headers_keep_their_order_and_credentials_follow() {
    let headers = request("--cookie a=1 -H B:2 --basic u:p -H A:1 --cookie c=2").headers;
    let fields: Vec<String> = headers.iter().map(|h| format!("{}: {}", h.name, h.value)).collect();
    assert_eq!(fields, ["B: 2", "A: 1", "Authorization: Basic dTpw", "Cookie: a=1; c=2"]);
}

#[test]
fn a_typed_authorization_wins_over_the_one_of_the_url() {
    for (flags, expected) in [("http://u:p@x/", "Basic dTpw"), ("--basic a:b http://u:p@x/", "Basic YTpi")] {
        assert_eq!(header(flags, "authorization"), [expected], "{flags}");
    }
}

#[test]
fn user_agents_rotate_and_one_typed_as_a_header_is_one() {
    let agents = |flags: &str| -> Vec<(u32, String)> {
        http(flags).user_agents.into_iter().map(|agent| (agent.weight.get(), agent.value)).collect()
    };
    assert_eq!(agents(""), [(1, concat!("squall/", env!("CARGO_PKG_VERSION")).to_owned())]);
    assert_eq!(agents("--user-agent 3@a --user-agent b@c"), [(3, "a".to_owned()), (1, "b@c".to_owned())]);
    assert_eq!(agents("-H User-Agent:x"), [(1, "x".to_owned())]);
    assert_eq!(header("-H User-Agent:x", "user-agent"), [""; 0]);
}

#[test]
fn urls_are_weighted_and_rows_leave_the_query_out() {
    let requests = http("3@http://a/b?c=d").requests;
    let rows: Vec<_> =
        requests.iter().map(|r| (r.weight.get(), r.url.as_str(), r.pattern.as_str())).collect();
    assert_eq!(rows, [(3, "http://a/b?c=d", "http://a/b"), (1, "http://x/", "http://x/")]);
}

#[test]
fn expectations_follow_their_flags() {
    assert_eq!(http("").expect.status, [(200, 399)]);
    assert_eq!(http("--expect-status 200,5xx").expect.status, [(200, 200), (500, 599)]);
    for (flags, body) in [
        ("", ExpectBody::Any),
        ("--expect-body-bytes 1KiB", ExpectBody::Bytes(1024)),
        ("--expect-same-length", ExpectBody::SameLength),
    ] {
        assert_eq!(http(flags).expect.body, body, "{flags}");
    }
}

#[test]
fn connection_flags_make_the_policy() {
    let policy = |flags: &str| load(flags).connections;
    assert_eq!(policy("").request_count_max, None);
    assert_eq!(policy("--no-keepalive").request_count_max.unwrap().get(), 1);
    assert_eq!(policy("--requests-per-connection 5").request_count_max.unwrap().get(), 5);
    assert_eq!(policy("--max-connection-age 2s").age_max, Some(Duration::from_secs(2)));
    assert_eq!(policy("--pipeline 8").pipeline_depth.get(), 8);
    assert_eq!(policy("--connect-timeout 300ms").connect_timeout, Duration::from_millis(300));
    assert_eq!(http("--timeout 2s").timeout, Duration::from_secs(2));
}

#[test]
fn tls_flags_make_the_policy() {
    let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
    let tls = load(&format!(
        "--insecure --tls 1.2 --ciphers A,B --sni name --alpn h2,http/1.1 --cacert {manifest} --cert {manifest}"
    ))
    .tls;
    assert!(tls.insecure && tls.versions == TlsVersions::Tls12);
    assert_eq!((tls.ciphers.len(), tls.sni.as_deref(), tls.alpn.len()), (2, Some("name"), 2));
    assert_eq!(tls.ca_files.len(), 1);
    let identity = tls.client_identity.unwrap();
    assert_eq!(identity.cert_file, identity.key_file);
}

#[test]
fn what_is_shown_and_saved_has_no_secrets() {
    let flags = "--basic user:hunter2 --cookie sid=hunter2 -H X-Api-Key:hunter2 --body hunter2 --proxy u:hunter2@p:1 \
                 http://u:hunter2@a/?token=hunter2";
    let masked = format!("{:?}", plan(flags).masked());
    assert!(!masked.contains("hunter2") && !masked.contains("aHVudGVyMg"), "{masked}");
    assert!(masked.contains("***"));
}

#[test]
fn runs_are_named_after_the_first_host() {
    assert_eq!(plan("").name, "x");
    assert_eq!(plan("http://a:1/").name, "a:1");
    assert_eq!(plan("https://a:443/").name, "a");
    assert_eq!(plan("--name smoke").name, "smoke");
}

#[test]
fn addresses_of_a_machine_may_make_a_plan_too_large() {
    let idle = |count: &str| {
        let argv = ["squall", "idle", "127.0.0.1:1", "-c", count, "--source", "127.0.0.1-127.0.0.3"];
        match parse(argv.map(Into::into)) {
            Ok(Request::Do(Command::Idle(args))) => {
                squall_engine::settled(squall_plan::load::idle(&args.spec(), super::typed()).unwrap())
            }
            other => panic!("{other:?}"),
        }
    };
    assert!(idle("10").is_ok());
    let problem = idle("16000000").unwrap_err();
    assert!(problem.message.contains("connections") && problem.help.contains("--connections"), "{problem:?}");
}
