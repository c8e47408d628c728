//! Wrong plans, PTR files and command lines, each with every message and its place: `tests/golden/wrong-*.txt`.

use std::fmt::Write as _;
use std::fs;

use crate::{check, folder, squall, transcript};

#[test]
fn every_mistake_of_a_plan_has_its_place() {
    write_files();
    check("wrong-plans.txt", &checked(PLANS, "yaml"));
}

#[test]
fn every_mistake_of_a_ptr_file_has_its_place() {
    write_files();
    check("wrong-ptr.txt", &checked(PTR, "json"));
}

#[test]
fn all_mistakes_of_a_command_line_are_reported_at_once() {
    write_files();
    check("wrong-flags.txt", &transcript(FLAGS));
}

/// Each text, and what `squall plan check` says of it.
fn checked(texts: &[&str], extension: &str) -> String {
    let mut all = String::new();
    for (idx, text) in texts.iter().enumerate() {
        let name = format!("wrong-{}.{extension}", idx + 1);
        fs::write(folder().join(&name), text).unwrap();
        let (stdout, stderr, code) = squall(&["plan", "check", &name]);
        let stderr = stderr.replace(&format!("{}/", folder().display()), "FOLDER/");
        let _ = writeln!(all, "# {name}\n{}\n---\n{stdout}{stderr}[{code}]\n", text.trim_end());
    }
    all
}

fn write_files() {
    let write = |name: &str, text: &str| fs::write(folder().join(name), text).unwrap();
    write("wrong.js", "export default function () {}\n");
    write("wrong-options.js", "export const options = { vus: 'many' };\nexport default () => {};\n");
    write("wrong-syntax.js", "export default () => {\n  f(1;\n};\n");
    write("wrong.har", "{\"log\": {\"version\": \"1.2\", \"entries\": []}}\n");
    write("wrong.csv", "name\na\n");
}

/// `squall plan check` reads each.
const PLANS: &[&str] = &[
    // Plain requests.
    "target: http://x/\nloads:\n  - http: /\n    rate: 5x\n    duration: 10\n    arrival: sometimes\n",
    "target: http://x/\nloads:\n  - http: /\n    connections: 0\n    header: ['no colon', 'X: good', 'b ad: x']\n",
    "loads:\n  - http: [ftp://x/, http://x/, '5']\n    method: G ET\n",
    "loads:\n  - http: http://x/\n    body-file: missing.bin\n    cacert: missing.pem\n",
    "loads:\n  - http: http://x/\n    body: a\n    form: b\n    follow: 51\n",
    "loads:\n  - http: http://x/\n    arrival: poisson\n    streams: 4\n",
    "loads:\n  - http: http://x/\n    streams: 4\n    http: '3'\n",
    "loads:\n  - http: http://x/\n    ramp: 10s:5/s\n    timeout: 0s\n",
    "loads:\n  - http: http://x/\n    rate: 0\n    expect-status: 2yy\n",
    "loads:\n  - http: http://x/\n    source: 10.0.0.9-10.0.0.1\n    resolve: a:1:nothing\n    proxy: socks5://x\n",
    "loads:\n  - http: http://x/\n    threads: many\n    conections: 5\n    out: json=x\n    threshold: errors<1%\n",
    "loads:\n  - http: http://x/\n    cookie: [a=b, novalue]\n    basic: nopassword\n",
    "loads:\n  - http: http://x/\n    key: wrong.csv\n    user-agent: ['0@x', ok]\n    header: 'User-Agent: y'\n",
    "loads: [{ http: }]\n",
    // Sessions.
    "loads:\n  - handshake: [x:1, x:99999, y/z]\n    resumption: id\n    tls: '1.3'\n",
    "loads:\n  - handshake: x:1\n    early-data: true\n    request: /\n    resumption-ratio: 200%\n",
    "loads:\n  - handshake: x:1\n    tls: '1.1'\n    resumption: id\n    connections: none\n",
    "loads:\n  - idle: x:1\n    insecure: true\n    http: '3'\n    ping: often\n",
    "loads:\n  - idle: x:1\n    open-rate: 10/s\n    connections: 1000\n    duration: 1s\n",
    "loads:\n  - idle: x:1\n    http: '2'\n    after-request: /\n    pause: 1s\n    open-rate: 5/s\n",
    // Recordings.
    "loads:\n  - replay: missing.har\n    speed: fast\n",
    "loads:\n  - replay: wrong.har\n",
    "loads:\n  - replay: wrong.har\n    set-form: password\n    replace: 'a=>{user'\n    to: nowhere\n",
    "loads:\n  - replay: wrong.har\n    csv-per: user\n    keep-host: true\n",
    // Scripts.
    "loads:\n  - script: missing.js\n    vus: many\n",
    "loads:\n  - script: wrong-options.js\n",
    "loads:\n  - script: wrong-syntax.js\n",
    "loads:\n  - script: wrong.js\n    duration: soon\n    tag: novalue\n    env: '=x'\n    dns: odd=1\n",
    // Tools.
    "loads:\n  - tool: wrk\n    url: http://x/\n    streams: 5\n    vus: 6\n    duration: 5\n",
    "loads:\n  - tool: jmeter\n    url: http://x/\n",
    "loads:\n  - tool: k6\n    script: missing.js\n    http: '2'\n",
    "loads:\n  - tool: h2load\n    url: http://x/\n    requests: 2\n    connections: 3\n",
    // The whole plan.
    "nmae: x\ntarget: x y\nloads:\n  - { http: /, rate: '${RATE}' }\n  - { http: /a, on: elsewhere }\n",
    "steps:\n  - loads: [{ http: http://x/, start_after: 5, thresholds: ['p(95)<'] }]\n    pause: long\n  - {}\n",
    // Files of the plan's folder, and standard input, which only a list of URLs can come from.
    "loads:\n  - http: http://x/\n    body-file: '-'\n    header: '@missing.txt'\n    cacert: '-'\n",
    "loads:\n  - script: '-'\n  - replay: '-'\n",
];

/// `squall plan check` reads each.
const PTR: &[&str] = &[
    "{\"target_host\": \"http://x/\", \"generator_hosts\": [\"a\"], \"generator_driver\": \"wrk\", \"scenarios\":\n  [{\"desc\": \"one\", \"generator_config\": {\"connections\": \"x\", \"duration\": 1}}]}\n",
    "{\"target_host\": \"http://x/\", \"generator_hosts\": [\"a\"], \"generator_driver\": \"jmeter\", \"scenarios\":\n  [{\"desc\": \"one\", \"generator_config\": {\"connections\": 1, \"duration\": 1}}]}\n",
    "{\"target_host\": \"http://x/\", \"generator_hosts\": [], \"generator_driver\": \"wrk\", \"scenarios\": []}\n",
    "{\"target_host\": \"ftp://x/\", \"generator_hosts\": [\"a\"], \"generator_driver\": \"wrk\", \"scenarios\":\n  [{\"desc\": \"one\", \"generator_config\": {\"connections\": 1, \"duration\": 1}}]}\n",
    "{\"target_host\": \"http://x/\", \"generator_hosts\": [\"a\"], \"generator_driver\": \"k6\", \"scenarios\":\n  [{\"desc\": \"one\", \"generator_config\": {\"script\": \"missing.js\", \"vus\": 0, \"unknown\": 1}}]}\n",
    "{\"generator_hosts\": [\"a\"], \"generator_driver\": \"wrk\", \"scenarios\":\n  [{\"generator_config\": {}}]}\n",
];

const FLAGS: &[&[&str]] = &[
    &["--rate", "5x", "-d", "10", "http://x/"],
    &["--rate", "5x", "--arrival", "poisson", "http://x/"],
    &["-c", "0", "-n", "none", "--timeout", "1q", "ftp://x/"],
    &["--frobnicate", "--rate", "5x", "http://x/"],
    &["--conections", "5", "--duraton", "5s", "http://x/"],
    &["--body", "a", "--body-file", "b", "--follow", "51", "http://x/"],
    &["--header", "no colon", "--cookie", "novalue", "--basic", "nopassword", "http://x/"],
    &["--streams", "4", "--http", "3", "http://x/"],
    &[
        "--cacert",
        "missing.pem",
        "--cert",
        "missing.pem",
        "--key",
        "missing.key",
        "--rate",
        "0",
        "https://x/",
    ],
    &["--proxy", "socks5://x", "--resolve", "a:1:nothing", "--connect-to", "a:1", "http://x/"],
    &["-k", "-t", "5", "http://x/"],
    &["--threshold", "p(95)<", "--expect-status", "2yy", "http://x/"],
    &["--no-keepalive", "--pipeline", "4", "--window", "x", "http://x/"],
    &["--ack-frequency", "0", "--qpack-table", "64KiB", "--migrate", "9ms", "h3://x/"],
    &["--ack-frequency", "1001", "--qpack-table", "many", "--migrate", "0s", "h3://x/"],
    &["--ack-frequency", "10", "--qpack-table", "4KiB", "--migrate", "1s", "--qlog", "x", "https://x/"],
    &["handshake", "x:1", "--quic", "--qpack-table", "4KiB", "--migrate", "often"],
    &["handshake", "x:99999", "--rate", "5x", "--resumption", "sometimes"],
    &["handshake", "x:1", "--resumption", "id", "--tls", "1.3", "--cacert", "missing.pem"],
    &["idle", "x:1", "--insecure", "--ping", "often"],
    &["idle", "x:1", "--pause", "1s", "--open-rate", "5/s", "-c", "x"],
    &["replay", "wrong.har", "--speed", "fast", "--set-form", "password", "--to", "nowhere"],
    &["run", "wrong.js", "--vus", "many", "--rps", "5/q"],
    &["run", "wrong.js", "--duration", "soon", "--tag", "novalue"],
];
