//! What the binary says without sending anything: help, wrong usage, `--dry-run`.
//!
//! The texts lie in `tests/golden`. After a wanted change: `UPDATE_GOLDEN=1 cargo test -p squall --test usage`, then read
//! the diff like prose.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

mod run;
mod studies;
mod target;
mod wrong;

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

#[test]
fn short_help_is_one_line_a_flag() {
    check("help-short.txt", &transcript(&[&["-h"]]));
}

#[test]
fn squall_alone_shows_what_to_try_and_help_fits_on_a_screen() {
    let (overview, stderr, code) = squall(&[]);
    assert!(overview.contains("Three commands to try:") && overview.lines().count() < 12, "{overview}");
    assert_eq!((stderr.as_str(), code), ("", 0));
    assert_eq!(squall(&["help"]), squall(&["-h"]));
    assert_eq!(squall(&["help", "idle"]), squall(&["idle", "--help"]));
}

#[test]
fn long_help_explains_every_flag() {
    check("help-long.txt", &transcript(&[&["--help"]]));
}

#[test]
fn the_help_of_a_replay_has_its_own_defaults() {
    let (help, _, _) = squall(&["replay", "--help"]);
    let of = |flag: &str| {
        help.split("\n\n")
            .find(|part| part.contains(&format!("{flag} <")))
            .unwrap_or_default()
            .replace('\n', " ")
    };
    for (flag, default, other) in [
        ("--connections", "[default: 1000]", "accepted"),
        ("--duration", "the end of the recording", "length"),
        ("--streams", "[default: 100]", "[default: 1]"),
        ("--http", "[default: auto]", "[default: 1.1]"),
        ("--name", "the file's name", "the first URL"),
    ] {
        let text = of(flag).split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains(default) && !text.contains(other), "{flag}: {text}");
    }
}

#[test]
fn wrong_usage_is_one_error_and_one_help() {
    write_files();
    check("errors.txt", &transcript(WRONG));
}

#[test]
fn wrong_usage_ends_with_exit_code_2_on_stderr_only() {
    write_files();
    for args in WRONG {
        let (stdout, stderr, code) = squall(args);
        // Of a script with k6's code.
        let is_of_script = args.starts_with(&["run", "x.js"]);
        assert_eq!((stdout.as_str(), code), ("", if is_of_script { 255 } else { 2 }), "{args:?}");
        let lines: Vec<&str> = stderr.lines().collect();
        assert!(
            matches!(lines[..], [error, "", help] if error.starts_with("error: ") && help.starts_with("help: ")),
            "{args:?} gave {stderr}"
        );
    }
}

#[test]
fn dry_run_says_what_would_be_done() {
    write_files();
    check("dry-run.txt", &transcript(DRY));
}

#[test]
fn the_experiments_of_the_documentation_can_be_run() {
    let folder: PathBuf = [env!("CARGO_MANIFEST_DIR"), "../../docs/experiments"].iter().collect();
    let plans = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let plans: Vec<PathBuf> =
        plans.filter(|path| path.extension().is_some_and(|ext| ext == "yaml")).collect();
    assert!(plans.len() >= 3, "{plans:?}");
    for plan in plans {
        let plan = plan.to_str().unwrap();
        let (_, stderr, code) =
            squall(&["plan", "check", plan, "--var", "nginx=1", "--var", "large=2", "--var", "h2o=3"]);
        assert_eq!((stderr.as_str(), code), ("", 0), "{plan}");
    }
}

#[test]
fn every_mistake_of_a_plan_is_reported_at_once_and_none_that_only_follows() {
    let plan = folder().join("mistaken.yaml");
    let text = "nmae: x\ntarget: http://localhost:1/\nloads:\n  - { http: /, rate: 5x, duration: 10, body-file: none, arrival: poisson }\n  - { http: [htp://x/, /], method: G ET, timeout: '${NONE}' }\n  - { tool: wrk, streams: 5, vus: 6 }\n  - { idle: 'localhost:1', start_after: 5, tls: true, http: '3' }\n";
    fs::write(&plan, text).unwrap();
    let (_, stderr, code) = squall(&["plan", "check", plan.to_str().unwrap()]);
    let places: Vec<&str> = stderr.lines().filter_map(|line| line.split("mistaken.yaml:").nth(1)).collect();
    let places: Vec<String> =
        places.iter().map(|rest| rest.split(':').take(2).collect::<Vec<_>>().join(":")).collect();
    let expected = ["1:1", "4:22", "4:36", "4:51", "5:14", "5:36", "5:51", "6:18", "6:30", "7:41", "7:61"];
    assert_eq!((&places[..expected.len()], code), (&expected.map(str::to_owned)[..], 2), "{stderr}");
    assert!(stderr.contains(" has 11 problems\n") && !stderr.contains("--arrival"), "{stderr}");
    fs::write(&plan, format!("loads:\n{}", "  - { http: http://x/, rate: 5x }\n".repeat(30))).unwrap();
    let (_, stderr, _) = squall(&["plan", "check", plan.to_str().unwrap()]);
    assert!(stderr.contains("has 30 problems; the first 20:") && stderr.lines().count() == 43, "{stderr}");
}

#[test]
fn a_plan_without_a_target_says_so_once() {
    let plan = folder().join("aimless.yaml");
    for (target, expected) in [
        ("", "2:13: `/a` is a path, but the plan has no `target`"),
        ("targett: x\n", "1:1: a plan has no key"),
    ] {
        fs::write(&plan, format!("{target}loads:\n  - {{ http: /a }}\n  - {{ http: /b }}\n")).unwrap();
        let (_, stderr, code) = squall(&["plan", "check", plan.to_str().unwrap()]);
        assert!(code == 2 && stderr.contains(expected) && !stderr.contains(" problems\n"), "{stderr}");
    }
}

#[test]
fn completions_and_man_page_know_the_flags() {
    for args in [&["completions", "bash"][..], &["completions", "zsh"], &["completions", "fish"], &["man"]] {
        let (stdout, stderr, code) = squall(args);
        assert_eq!((stderr.as_str(), code), ("", 0), "{args:?}");
        assert!(stdout.contains("same") && stdout.contains("threshold"), "{args:?}");
    }
}

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let mut child = command(&["man"]).stdout(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    assert!(child.wait().unwrap().success());
}

const DRY: &[&[&str]] = &[
    &["--dry-run", "--no-save", "http://localhost:8080/path?token=secret"],
    &[
        "--dry-run",
        "--no-save",
        "-c",
        "200",
        "-d",
        "1m",
        "--warmup",
        "5s",
        "3@http://user:secret@a/",
        "1@b.example",
    ],
    &["--dry-run", "--no-save", "-r", "5k/s", "--arrival", "poisson", "--threshold", "p(99)<50", "http://x/"],
    &["--dry-run", "--no-save", "--ramp", "10s:100,1m:1000", "http://x/"],
    &["--dry-run", "--no-save", "-r", "0", "--ramp", "10s:1k/s", "http://x/"],
    &["--dry-run", "--no-save", "-n", "10k", "--urls", "urls.txt"],
    &["handshake", "--dry-run", "--no-save", "--resumption", "psk", "--early-data", "--request", "/", "x"],
    &[
        "--dry-run",
        "--no-save",
        "https://x/",
        "--insecure",
        "--tls",
        "1.3",
        "--proxy",
        "http://u:secret@proxy:3128",
        "--source",
        "127.0.0.1-127.0.0.4",
    ],
    &["ws", "--dry-run", "--no-save", "ws://localhost:8080/ws/echo?token=secret"],
    &["ws", "--dry-run", "--no-save", "--publish", "2", "--subscribe", "8", "wss://x/", "3@wss://y/"],
    &["stream", "--dry-run", "--no-save", "--reconnect", "http://x/"],
];

const WRONG: &[&[&str]] = &[
    &["http"],
    &["buidl"],
    &["completion"],
    &["reprot"],
    &["-c", "5", "http", "http://x/"],
    &["--vus", "5", "http://x/"],
    &["-t", "4", "http://x/"],
    &["--durat", "5s", "http://x/"],
    &["--frobnicate", "http://x/"],
    &["ftp://x/"],
    &["http://x:99999/"],
    &["ftp://user:secret@x/?token=secret"],
    &["500"],
    &["0@http://x/"],
    &["--urls", "missing.txt"],
    &["--urls", "bad-urls.txt"],
    &["--urls", "empty.txt"],
    &["-d", "10x", "http://x/"],
    &["-d", "10", "http://x/"],
    &["-d", "0s", "http://x/"],
    &["-d"],
    &["-d", "1s", "-d", "2s", "http://x/"],
    &["-n", "0", "http://x/"],
    &["-n", "1.5", "http://x/"],
    &["-c", "0", "http://x/"],
    &["-c", "20M", "http://x/"],
    &["-r", "500/parsec", "http://x/"],
    &["-r", "0", "http://x/"],
    &["-r", "1G/s", "http://x/"],
    &["-r", "5", "--pipeline", "2", "http://x/"],
    &["--ramp", "10s:100/s", "http://x/"],
    &["--ramp", "10s:1.5", "http://x/"],
    &["--users", "20", "--ramp", "10s:1.5", "http://x/"],
    &["--users", "0", "http://x/"],
    &["--users", "20", "-r", "5", "http://x/"],
    &["--ramp", "10s:100,1m", "http://x/"],
    &["-r", "0", "--ramp", "10s:0", "http://x/"],
    &["--arrival", "poisson", "http://x/"],
    &["--arrival", "sometimes", "-r", "5", "http://x/"],
    &["--threshold", "p(95", "http://x/"],
    &["-X", "G T", "http://x/"],
    &["-H", "no colon", "http://x/"],
    &["-H", "A: b\r\nC: d", "http://x/"],
    &["-H", "@missing.txt", "http://x/"],
    &["-H", "@bad-headers.txt", "http://x/"],
    &["-H", "Content-Length: 5", "http://x/"],
    &["-H", "Host: a", "-H", "Host: b", "http://x/"],
    &["-H", "User-Agent: a", "--user-agent", "b", "http://x/"],
    &["--body", "x", "--body-file", "urls.txt", "http://x/"],
    &["--body-file", "missing.txt", "http://x/"],
    &["--body-file", ".", "http://x/"],
    &["--form", "novalue", "http://x/"],
    &["--basic", "nopassword", "http://x/"],
    &["--cookie", "novalue", "http://x/"],
    &["--expect-status", "2yy", "http://x/"],
    &["--follow", "51", "http://x/"],
    &["--no-keepalive", "--requests-per-connection", "5", "http://x/"],
    &["--streams", "0", "http://x/"],
    &["--streams", "many", "http://x/"],
    &["--h2c=later", "http://x/"],
    &["--close", "slam", "http://x/"],
    &["handshake", "x", "--early-data"],
    &["handshake", "x", "--early-data", "--request", "/"],
    &["handshake", "x", "--early-data", "--request", "/", "--resumption", "ticket", "--tls", "1.2"],
    &["handshake", "x", "--resumption", "id", "--tls", "1.3"],
    &["idle", "x", "--http", "2", "--after-request"],
    &["ws"],
    &["ws", "ftp://x/"],
    &["ws", "--publish", "100", "ws://x/"],
    &["ws", "--publish", "1", "--message", "no stamp", "ws://x/"],
    &["ws", "--subscribe", "5", "ws://x/"],
    &["ws", "--echo", "--receive", "ws://x/"],
    &["ws", "--receive", "-r", "5", "ws://x/"],
    &["ws", "--idle", "--message", "x", "-r", "5", "ws://x/"],
    &["ws", "--size", "65MiB", "ws://x/"],
    &["ws", "--size", "1KiB", "--message", "x", "ws://x/"],
    &["ws", "--message", "@missing.txt", "ws://x/"],
    &["ws", "--message", "u{usr}", "ws://x/"],
    &["ws", "--message", "{csv.name}", "ws://x/"],
    &["ws", "--message", "{csv.nmae}", "--csv", "users.csv", "ws://x/"],
    &["ws", "--message", "@message.json", "ws://x/"],
    &["ws", "--csv", "missing.csv", "ws://x/"],
    &["ws", "--subprotocol", "a b", "ws://x/"],
    &["ws", "--http", "auto", "ws://x/"],
    &["ws", "--pause", "1s", "-r", "5", "ws://x/"],
    &["stream"],
    &["stream", "--reconnect", "-r", "5", "http://x/"],
    &["stream", "--slo", "first", "http://x/"],
    &["stream", "--slo", "gap<5", "http://x/"],
    &["stream", "--events", "xml", "http://x/"],
    &["stream", "--hold", "5", "http://x/"],
    &["stream", "--expect-status", "2yy", "http://x/"],
    &["stream", "--body-lines", "missing.txt", "http://x/"],
    &["--source", "192.0.2.1", "http://x/"],
    &["--source", "10.0.0.9-10.0.0.1", "http://x/"],
    &["--connect-to", "a:1", "http://x/"],
    &["--resolve", "a:1:nothing", "http://x/"],
    &["--proxy", "socks5://x", "http://x/"],
    &["--unix-socket", "s", "--proxy", "p:1", "http://x/"],
    &["--cacert", "missing.pem", "https://x/"],
    &["--key", "urls.txt", "https://x/"],
    &["--tls", "1.1", "https://x/"],
    &["--out", "xml=f", "http://x/"],
    &["--results", "d", "--no-save", "http://x/"],
    &["--results", "urls.txt", "http://x/"],
    &["--json", "missing/file", "--no-save", "http://x/"],
    &["--json", "-", "--out", "csv=-", "--no-save", "http://x/"],
    &["--live", "--no-save", "http://x/"],
    &["compare", "urls.txt"],
    &["compare", "missing", "--", "missing"],
    &["compare", "urls.txt", "--", "urls.txt"],
    &["compare", "--run", "http://x/", "ftp://x/", "--results", "d"],
    &["compare", "--run", "http://x/ -c 'a", "http://x/", "--results", "d"],
    &["compare", "--run", "http://x/", "http://y/", "--names", "a/b,c"],
    &["run", "x.js", "--vus", "many"],
    &["runs", "--last", "0"],
    &["capacity", "--slo", "p(99)<5", "--probes", "x", "http://127.0.0.1/"],
    &["run", "x.js", "--rps", "5/q"],
    &["run", "plan.yaml", "--var", "users"],
    &["http", "--http", "", "http://x/"],
    &["mock", "--port", "8080", "x.har"],
    &["compare", "--run", "http://x/ -d 1s", "http://x/ -d 2s"],
    &["compare", "--run", "http://x/ --no-save", "http://x/"],
    &["compare", "--run", "http://x/", "http://y/", "--names", "a,a"],
    &["sweep", "http://x/"],
    &["sweep", "--connections", "5", "http://x/"],
    &["sweep", "--connections", "1,2,x", "http://x/"],
    &["sweep", "--connections", "0,1", "http://x/"],
    &["sweep", "--connections", "1,2", "--line", "no colon", "http://x/"],
    &["sweep", "--connections", "1,2", "--frobnicate", "http://x/"],
    &["sweep", "--connections", "1,2", "--out", "xml=f", "http://x/"],
    &["sweep", "--connections", "1,2", "--line", "a:", "--line", "b: -r 5", "http://x/"],
    &["sweep", "--connections", "1,2", "--line", "a: --dry-run", "http://x/"],
    &["sweep", "--connections", "1,2", "--line", "a:", "--line", "a: --no-keepalive", "http://x/"],
    &["sweep", "--connections", "1,20", "-n", "10", "http://x/"],
    &["capacity", "http://x/"],
    &["capacity", "--slo", "p(99)<5", "-n", "10", "http://127.0.0.1/"],
    &["capacity", "--slo", "p(99)<5", "http://127.0.0.1/", "--json", "-"],
    &["capacity", "--slo", "p(99.9)<5", "--probe", "2s", "http://127.0.0.1/"],
    &["capacity", "--slo", "", "http://127.0.0.1/"],
    &["capacity", "--slo", "tls_handshaking: p(99)<5", "http://127.0.0.1/"],
    &["capacity", "--slo", "looking_up: p(99)<5", "http://127.0.0.1/"],
    &["capacity", "--slo", "p(99)<5,requests: rate>1000", "http://127.0.0.1/"],
    &["capacity", "--slo", "p(99)<", "http://x/"],
    &["capacity", "--slo", "p(99)<1", "--start", "0.1", "http://x/"],
    &["runs", "missing"],
    &["runs", "--verdict", "good"],
    &["run", "--again", "missing"],
    &["--out", "prometheus=nowhere", "--no-save", "http://x/"],
    &["report", "missing"],
    &["report", "urls.txt"],
    &["report", "foreign"],
    &["report", "newer"],
    &["report", "foreign", "newer"],
    &["compare", "foreign", "--", "newer"],
    &["compare", "newer", "--", "newer"],
    &["run", "--again", "newer"],
    &["completions", "tcsh"],
    &["man", "boy"],
    &["target", "--listen", "localhost:0"],
    &["target", "--listen", "192.0.2.1:0"],
    &["target", "--tls", "--cert", "missing.pem", "--key", "missing.pem"],
    &["target", "--cert", "missing.pem"],
    &["record", "r.squall", "--to", "http://localhost:1", "--redact", "(token"],
    &["record", "r.squall", "--to", "http://localhost:1", "--keep", "a b"],
    &["record", "r.squall", "--to", "http://localhost:1/?x"],
    &["convert", "a.har", "b.squall", "--session-by", "user"],
    &["replay", "a.har", "--set-form", "password"],
    &["replay", "a.har", "--replace", "a=>{user"],
    &["run", "missing.js", "--kubernetes", "replicas=2"],
    &["run", "missing.yaml", "--kubernetes", "replicas=2,replicas=3"],
];

/// The files that the cases name.
fn write_files() {
    let write = |name: &str, text: &str| fs::write(folder().join(name), text).unwrap();
    write("users.csv", "name\nann\n");
    write("message.json", "{\n  \"user\": \"{usr}\"\n}\n");
    write("urls.txt", "# a list\nhttp://x/a\nPOST 3@http://x/b\n");
    write("bad-urls.txt", "http://x/a\nGET ftp://x/b\n");
    write("bad-headers.txt", "Accept: a\nno colon\n");
    write("empty.txt", "# nothing\n");
    ["foreign", "newer"].iter().for_each(|name| fs::create_dir_all(folder().join(name)).unwrap());
    write("foreign/run.json", "{\"name\": \"of another program\"}\n");
    write("newer/run.json", "{\"schema\": 999, \"shape\": \"unknown\"}\n");
}

/// Commands and what they print, as on a terminal.
fn transcript(cases: &[&[&str]]) -> String {
    cases.iter().fold(String::new(), |mut text, args| {
        let (stdout, stderr, code) = squall(args);
        let shown: Vec<String> = args.iter().map(|arg| quoted(arg)).collect();
        let _ = writeln!(text, "$ squall {}\n{stdout}{stderr}[{code}]\n", shown.join(" "));
        text
    })
}

fn quoted(arg: &str) -> String {
    if arg.contains([' ', '(', '\r']) { format!("'{}'", arg.escape_debug()) } else { arg.to_owned() }
}

/// Its stdout, stderr and exit code.
fn squall(args: &[&str]) -> (String, String, i32) {
    let output = command(args).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (text(output.stdout), text(output.stderr), output.status.code().unwrap())
}

fn command(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_squall"));
    command.args(args).current_dir(folder()).stdin(Stdio::null());
    command.env_remove("COLUMNS").env_remove("CLICOLOR_FORCE").env("XDG_STATE_HOME", folder());
    command
}

fn folder() -> &'static Path {
    Path::new(env!("CARGO_TARGET_TMPDIR"))
}

fn check(name: &str, actual: &str) {
    let path: PathBuf = [env!("CARGO_MANIFEST_DIR"), "tests", "golden", name].iter().collect();
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(&path, actual).unwrap();
    }
    let expected = fs::read_to_string(&path).unwrap_or_default();
    assert!(actual == expected, "{name} differs; see the head of this file.\n\n{actual}");
}
