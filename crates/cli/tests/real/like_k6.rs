//! Scripts in the hands of those who know k6: the exit codes of wrong flags, the figures of each scenario, help in k6's own terms.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;
use squall_server::{Options, Target, Tls};
use squall_testkit::wait_until;
use tempfile::TempDir;

use crate::squall::{self, Ended, assert_none_complains, start};

/// What follows `run`, variables of the environment, and k6's exit code.
type Case = (&'static [&'static str], &'static [(&'static str, &'static str)], i32);

/// A script is up in a fraction of it.
const PATIENCE: Duration = Duration::from_secs(20);

#[test]
fn wrong_flags_and_variables_end_with_k6s_codes() {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("ok.js"), "export default function () {}").unwrap();
    fs::write(folder.path().join("bad.json"), "{").unwrap();
    let cases: &[Case] = &[
        (&["-d", "5x"], &[], 255),
        (&["-d", ""], &[], 255),
        (&["-u", "x"], &[], 255),
        (&["-s", "5x:10"], &[], 255),
        (&["-s", "5s:x"], &[], 255),
        (&["-s", "5s"], &[], 104),
        (&["-d", "0"], &[], 104),
        (&["-d", "1s", "-i", "3", "-s", "1s:1"], &[], 104),
        (&["-i", "1", "-u", "2"], &[], 104),
        (&["-i", "-1"], &[], 104),
        (&["-u", "-1", "-i", "1"], &[], 104),
        (&["-u", "-1"], &[], 0),
        (&["--vus=-1"], &[], 0),
        (&[], &[("K6_VUS", "-1")], 0),
        (&["-d", "-1s"], &[], 104),
        (&["-d", "-x"], &[], 255),
        (&["-d", "--dry-run"], &[], 255),
        (&["-s", "-1s:1"], &[], 104),
        (&["-s", "1s:-1"], &[], 104),
        (&["--rps", "-1"], &[], 0),
        (&["--batch", "-1"], &[], 0),
        (&["--batch-per-host", "-1"], &[], 0),
        (&["--max-redirects", "-1"], &[], 0),
        (&["--min-iteration-duration", "-1s"], &[], 0),
        (&["--min-iteration-duration", "-x"], &[], 255),
        (&["--min-iteration-duration", "x"], &[], 255),
        (&["--summary-trend-stats", "x"], &[], 255),
        (&["--summary-time-unit", "x"], &[], 255),
        (&["--summary-mode", "x"], &[], 255),
        (&["--dns", "x"], &[], 255),
        (&["--execution-segment", "5"], &[], 255),
        (&["--block-hostnames", "*.a.*"], &[], 255),
        (&["--blacklist-ip", "x"], &[], 255),
        (&["--local-ips", "x"], &[], 255),
        (&["--tag", "a"], &[], 255),
        (&["-e", "=x"], &[], 255),
        (&["--log-output", "x"], &[], 255),
        (&["--out", "nonsense"], &[], 255),
        (&["--out", "cloud"], &[], 255),
        (&["--out", "json=/nosuch/x"], &[], 255),
        (&["--console-output", "/nosuch/x"], &[], 255),
        (&["--nonsense"], &[], 255),
        (&["more.js"], &[], 255),
        (&[], &[("K6_OUT", "cloud")], 255),
        (&[], &[("K6_OUT", "nonsense")], 255),
        (&[], &[("K6_VUS", "x")], 104),
        (&[], &[("K6_DURATION", "5x")], 104),
        (&["--config", "none.json"], &[], 104),
        (&["--config", "bad.json"], &[], 104),
        (&["--system-tags", "nonsense"], &[], 0),
        (&["--summary-export", "/nosuch/x"], &[], 0),
        (&["--http-debug", "--no-thresholds=true"], &[], 0),
    ];
    assert_none_complains(cases, |(flags, variables, code)| {
        let mut command = Command::new(squall::binary());
        command.current_dir(&folder).args(["run", "--no-save", "ok.js"]).args(*flags);
        let ended = squall::start_command({
            command.envs(variables.iter().copied());
            command
        })
        .wait();
        (ended.code != Some(*code)).then(|| format!("{flags:?} {variables:?}: {code} in k6, here {ended:#?}"))
    });
}

/// A script, and the folder that it lives in.
pub(crate) fn script_file(text: &str) -> (TempDir, PathBuf) {
    let folder = TempDir::new().unwrap();
    let script = folder.path().join("script.js");
    fs::write(&script, text).unwrap();
    (folder, script)
}

#[test]
fn bytes_belong_to_the_scenario_whose_iteration_has_ended() {
    let target = Target::start(&Options::default()).unwrap();
    let (folder, script) = script_file(
        "import http from 'k6/http';
         const get = () => http.get(`${__ENV.BASE}/bytes/1000`);
         const scenario = (exec, iterations) => ({ executor: 'per-vu-iterations', vus: 2, iterations, exec });
         export const options = {
           scenarios: { one: scenario('one', 1), three: scenario('three', 3) },
           thresholds: { 'data_received{scenario:one}': ['count<4000'], 'data_received{scenario:three}': ['count>6000'],
             'data_sent{group:::setup}': ['count>0'], 'data_sent{group:::teardown}': ['count>0'] },
         };
         export function setup() { get(); }
         export function one() { get(); }
         export function three() { get(); }
         export function teardown() { get(); }",
    );
    let export = folder.path().join("export.json");
    let ended = run(
        &script,
        &target,
        &["--summary=k6", "--summary-mode=full", "--summary-export", export.to_str().unwrap()],
    );
    assert_eq!(ended.code, Some(0), "{ended:#?}");
    let metrics: Value = serde_json::from_slice(&fs::read(&export).unwrap()).unwrap();
    let count = |metric: &str| metrics["metrics"][metric]["count"].as_f64().unwrap();
    let all = count("data_received");
    let [one, three] = ["one", "three"].map(|name| count(&format!("data_received{{scenario:{name}}}")));
    // Two in each scenario of one request, six in the other, and one each in `setup()` and `teardown()`: all are alike.
    assert_eq!((one / 2.0, three / 6.0), (all / 10.0, all / 10.0), "{ended:#?}");
    for section in ["SCENARIO: one", "SCENARIO: three"] {
        let text = ended.stdout.split(section).nth(1).unwrap_or_default();
        assert!(text.contains("NETWORK\n    data_received."), "{section}: {ended:#?}");
    }
}

#[test]
fn a_certificate_that_is_not_trusted_is_helped_with_in_the_scripts_terms() {
    let tls = Tls::SelfMade { names: vec!["localhost".to_owned()] };
    let target = Target::start(&Options { tls: Some(tls), ..Options::default() }).unwrap();
    let folder = TempDir::new().unwrap();
    let [script, roots] = ["script.js", "roots.pem"].map(|name| folder.path().join(name));
    fs::write(&roots, target.certificate_pem().unwrap()).unwrap();
    let url = format!("https://localhost:{}/get", target.address().port());
    let text = format!(
        "import http from 'k6/http'; export default function () {{ console.log('is', http.get('{url}').error_code); }}"
    );
    fs::write(&script, text).unwrap();
    let run = |flags: &[&str], roots: Option<&Path>| {
        let mut command = Command::new(squall::binary());
        command.args(["run", "--no-save", script.to_str().unwrap()]).args(flags);
        command.envs(roots.map(|path| ("SSL_CERT_FILE", path)));
        squall::start_command(command).wait()
    };
    let refused = run(&[], None);
    assert!(refused.stderr.contains("is 1310"), "{refused:#?}");
    let said = format!("{}{}", refused.stdout, refused.stderr);
    for way in ["insecureSkipTLSVerify: true", "--insecure-skip-tls-verify", "SSL_CERT_FILE"] {
        assert!(said.contains(way), "{way}: {refused:#?}");
    }
    assert!(!said.contains("--cacert"), "{refused:#?}");
    for trusted in [run(&["--insecure-skip-tls-verify"], None), run(&[], Some(&roots))] {
        assert!(trusted.stderr.contains("is 0"), "{trusted:#?}");
    }
}

#[test]
fn teardown_begins_without_the_cookies_of_setup() {
    let target = Target::start(&Options::default()).unwrap();
    let (_folder, script) = script_file(
        "import http from 'k6/http';
         const cookies = () => JSON.stringify(http.get(`${__ENV.BASE}/cookies`).json('cookies'));
         export function setup() { http.get(`${__ENV.BASE}/cookies/set?a=1`); console.log('setup', cookies()); }
         export default function () {}
         export function teardown() { console.log('teardown', cookies()); }",
    );
    let ended = run(&script, &target, &["--log-format=raw"]);
    for line in ["setup {\"a\":\"1\"}\n", "teardown {}\n"] {
        assert!(ended.stderr.contains(line), "{line}: {ended:#?}");
    }
}

#[test]
fn unknown_fields_of_a_stage_are_ignored_with_a_warning() {
    let target = Target::start(&Options::default()).unwrap();
    let text = "export const options = { stages: [{ duration: '100ms', target: 1, name: 'up' }] }; export default function () {}";
    let (_folder, script) = script_file(text);
    let ended = run(&script, &target, &[]);
    assert!(
        ended.code == Some(0) && ended.stderr.contains("unknown field `name`, which is ignored"),
        "{ended:#?}"
    );
}

#[test]
fn the_first_ctrl_c_is_logged_and_teardown_follows() {
    let folder = TempDir::new().unwrap();
    let script = folder.path().join("script.js");
    let text = "import { sleep } from 'k6'; export const options = { vus: 1, duration: '60s' };
        export default function () { console.log('is up'); sleep(60); }
        export function teardown() { console.log('torn down'); }";
    fs::write(&script, text).unwrap();
    let running = start(&["run", "--no-save", "--log-format=raw", script.to_str().unwrap()]);
    assert!(wait_until(PATIENCE, || running.said().contains("is up")), "{}", running.said());
    running.process.signal(Signal::INT);
    let ended = running.wait();
    assert_eq!(ended.code, Some(105), "{ended:#?}");
    let said = ["test run was aborted by a signal", "torn down"].map(|text| ended.stderr.find(text));
    assert!(said[0].is_some() && said[0] < said[1], "{ended:#?}");
}

/// A script that finds the target as `BASE`.
fn run(script: &Path, target: &Target, flags: &[&str]) -> Ended {
    let base = format!("BASE=http://{}", target.address());
    let args = [&["run", "--no-save", "-e", &base, script.to_str().unwrap()], flags].concat();
    start(&args).wait()
}
