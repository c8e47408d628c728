//! Random programs over the native functions that scripts have, with odd values and odd responses: each comes to an end, or gives way until it is
//! interrupted and then ends.

#![no_main]

use std::collections::BTreeMap;
use std::fmt::Write;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use libfuzzer_sys::arbitrary::{self, Arbitrary};
use libfuzzer_sys::fuzz_target;
use squall_script::{
    Console, Counts, Iteration, NoRecorder, Program, ProgramSetup, Progress, Reply, ReplyFailure, Request,
    Runtime, Scenario, Shared, Step, User, Work,
};

#[derive(Arbitrary, Debug)]
struct Input {
    calls: Vec<Call>,
    status: u16,
    fields: Vec<(u8, String)>,
    body: Vec<u8>,
    fails: bool,
}

#[derive(Arbitrary, Debug)]
struct Call {
    function: u8,
    values: [u8; 4],
    text: String,
    /// It is awaited.
    waits: bool,
}

fuzz_target!(|input: Input| {
    if input.calls.len() > 12 {
        return;
    }
    let source = source(&input);
    let setup = ProgramSetup {
        path: "/fuzz/script.js".into(),
        text: Some(source.clone()),
        env: BTreeMap::new(),
        fetch: None,
        console: Arc::new(Console::silent()),
    };
    let program = Program::compile(setup).unwrap_or_else(|error| panic!("{}: {source}", error.message));
    let (options, console) = (Arc::new(Runtime::default()), Arc::new(Console::silent()));
    let shared = Shared::new(options, Rc::new(NoRecorder), console, Arc::new(Counts::default()));
    let shared = Rc::new(shared);
    let mut user =
        User::new(&shared, &program, 1).unwrap_or_else(|error| panic!("{}: {source}", error.message));
    drive(&mut user, &input, &source);
});

/// One iteration. Its time passes as fast as it sleeps.
fn drive(user: &mut User, input: &Input, source: &str) {
    let scenario = Rc::new(Scenario {
        name: "fuzz".into(),
        executor: "per-vu-iterations".to_owned(),
        exec: "default".to_owned(),
        env: Vec::new(),
        tags: Vec::new(),
        http: squall_plan::HttpVersion::Auto,
        start_unix_ms: 0,
    });
    let work = Work::Iterate(Iteration { scenario, idx: 0, progress: Progress::Share(0.0) });
    let (mut now_ns, mut reply_count, began) = (0, 0, Instant::now());
    let mut step = user.begin(work, now_ns);
    for _ in 0..TURNS_MAX {
        let mut requests: Vec<Request> = Vec::new();
        user.take_requests(&mut requests);
        for request in &requests {
            reply_count += 1;
            user.deliver(Reply { token: request.token, ..reply(input) });
        }
        match step {
            Step::Idle => return,
            Step::Wait { until_ns: Some(until_ns) } if until_ns < HORIZON_NS && requests.is_empty() => {
                now_ns = until_ns
            }
            Step::Wait { .. } if requests.is_empty() => user.interrupt(),
            Step::Wait { .. } | Step::Yield => {}
        }
        if began.elapsed() > TIME_MAX || reply_count > REPLIES_MAX {
            user.interrupt();
        }
        step = user.resume(now_ns);
    }
    panic!("it does not end: {source}");
}

fn reply(input: &Input) -> Reply {
    let mut head = format!("HTTP/1.1 {} X\r\n", input.status % 1000);
    for (name, value) in input.fields.iter().take(4) {
        let name = FIELDS[usize::from(*name) % FIELDS.len()];
        let value: String = value.chars().filter(|c| !c.is_control()).collect();
        let _ = write!(head, "{name}: {value}\r\n");
    }
    head.push_str("\r\n");
    let failure = input.fails.then(|| ReplyFailure { code: 1000, text: "refused".to_owned() });
    Reply {
        status: input.status % 1000,
        proto: "HTTP/1.1",
        head: head.into_bytes(),
        body: input.body.clone(),
        failure,
        ..Reply::default()
    }
}

fn source(input: &Input) -> String {
    let mut text = IMPORTS.to_owned();
    text.push_str("export default async function () {\n  let v = null;\n  const s = [];\n");
    for call in &input.calls {
        let function = FUNCTIONS[usize::from(call.function) % FUNCTIONS.len()];
        let values = call.values.map(|value| VALUES[usize::from(value) % VALUES.len()]);
        let own = serde_json::Value::from(call.text.as_str());
        let wait = if call.waits { "await " } else { "" };
        let [a, b, c, d] = values;
        let _ = writeln!(
            text,
            "  try {{ const t = {own}; v = {wait}({function})({a}, {b}, {c}, {d}); s.push(v); }} catch (e) {{ v = e; }}"
        );
    }
    text.push_str("}\n");
    text
}

/// Nobody sleeps longer than a year.
const HORIZON_NS: u64 = 32_000_000_000_000_000;
const TURNS_MAX: u32 = 20_000;
const TIME_MAX: Duration = Duration::from_millis(300);
const REPLIES_MAX: u32 = 200;

const FIELDS: &[&str] = &[
    "Content-Type",
    "Content-Encoding",
    "Set-Cookie",
    "Location",
    "WWW-Authenticate",
    "Content-Length",
    "X-Other",
    "Link",
];

/// QuickJS's own conversion of a list without elements to a key takes minutes, and only a second signal ends it: `key` keeps it out.
const IMPORTS: &str = "import http from 'k6/http';
import { check, group, sleep, fail, randomSeed } from 'k6';
import encoding from 'k6/encoding';
import crypto from 'k6/crypto';
import exec from 'k6/execution';
import { parseHTML } from 'k6/html';
import { SharedArray } from 'k6/data';
import { Counter, Gauge, Rate, Trend } from 'k6/metrics';
const shared = new SharedArray('shared', () => [{ a: 1 }, { b: [2, 'x'] }]);
const metrics = [new Counter('c1'), new Gauge('g1'), new Rate('r1'), new Trend('t1', true)];
const subtle = globalThis.crypto.subtle;
const key = (a) => (a !== null && (typeof a === 'object' || typeof a === 'function') ? 'object' : a);
const page = '<html><body><form action=\"/f\" method=\"post\"><input name=\"a\" value=\"1\"><select name=\"b\"><option selected>x</select></form><a href=\"/l\">l</a><p class=\"c\">t</p></body></html>';
";

/// Each is called with four values.
const FUNCTIONS: &[&str] = &[
    "http.get",
    "http.post",
    "http.put",
    "http.del",
    "http.head",
    "http.options",
    "http.patch",
    "http.request",
    "http.batch",
    "http.asyncRequest",
    "http.file",
    "http.cookieJar",
    "http.setResponseCallback",
    "http.expectedStatuses",
    "(...p) => http.url(p)",
    "(a) => http.url`http://t/${a}`",
    "check",
    "group",
    "sleep",
    "randomSeed",
    "(a) => group('g', () => check(a, { a: (x) => x, [key(a)]: true }))",
    "encoding.b64encode",
    "encoding.b64decode",
    "(a, b) => encoding.b64decode(encoding.b64encode(a), b, 's')",
    "crypto.sha256",
    "crypto.md5",
    "crypto.hmac",
    "(a, b) => crypto.hmac('sha256', a, b, 'hex')",
    "(a) => crypto.sha1(a, 'base64')",
    "crypto.createHash",
    "(a, b) => { const h = crypto.createHash('md5'); h.update(a); h.update(b); return h.digest('hex'); }",
    "crypto.randomBytes",
    "crypto.hexEncode",
    "globalThis.crypto.getRandomValues",
    "subtle.digest",
    "(a, b) => subtle.digest('SHA-256', a)",
    "(a) => subtle.importKey('raw', a, { name: 'HMAC', hash: 'SHA-256' }, true, ['sign', 'verify'])",
    "(a) => subtle.importKey('raw', a, 'AES-GCM', true, ['encrypt', 'decrypt'])",
    "(a) => subtle.importKey('jwk', a, { name: 'ECDSA', namedCurve: 'P-256' }, true, ['verify'])",
    "subtle.importKey",
    "subtle.exportKey",
    "subtle.sign",
    "subtle.verify",
    "subtle.encrypt",
    "subtle.decrypt",
    "subtle.deriveBits",
    "(a, b) => subtle.encrypt({ name: 'AES-GCM', iv: b }, v, a)",
    "(a) => subtle.sign('HMAC', v, a)",
    "parseHTML",
    "(a) => parseHTML(page).find(a)",
    "(a) => parseHTML(t).find('*').each((i, e) => e.attributes())",
    "(a) => parseHTML(page + t).find('form').serializeObject()",
    "(a, b) => v.find(a).attr(b)",
    "(a) => v.find('p').text(a)",
    "(a) => v.html(a)",
    "(a) => v.children(a).next(a).prev(a).parent(a)",
    "(a) => v.filter(a).not(a).is(a)",
    "(a) => v.json(a)",
    "(a) => v.json()",
    "(a) => v.html().find(a)",
    "(a) => v.submitForm(a)",
    "(a) => v.clickLink(a)",
    "(a) => v.headers[key(a)]",
    "(a) => v.cookies",
    "() => v.body",
    "() => v.timings",
    "(a) => http.get('http://t/', a).json(t)",
    "(a, b) => http.get('http://t/').submitForm({ formSelector: a, fields: b })",
    "(a) => http.get('http://t/').html(a)",
    "(a, b) => http.post('http://t/' + t, a, b)",
    "(a, b) => http.batch([['GET', 'http://t/', a, b], 'http://u/', { method: a, url: 'http://w/', body: b }])",
    "(a, b, c) => http.cookieJar().set('http://t/', a, b, c)",
    "(a) => http.cookieJar().cookiesForURL(a)",
    "(a, b) => new http.CookieJar().clear(a, b)",
    "(a, b) => new http.CookieJar().delete(a, b)",
    "(a, b, c) => metrics[0].add(a, b, c)",
    "(a, b) => metrics[3].add(a, b)",
    "(a, b) => metrics[2].add(a, b)",
    "(a, b) => new Counter(a, b)",
    "(a) => shared[key(a)]",
    "(a) => shared.at(key(a))",
    "(a) => shared.length = a",
    "(a) => { for (const x of shared) v = x; return shared.map((x) => x); }",
    "(a, b) => { exec.vu.metrics.tags[key(a)] = b; }",
    "(a, b) => { exec.vu.metrics.metadata[key(a)] = b; }",
    "(a, b) => { exec.vu.tags[key(a)] = b; }",
    "() => exec.scenario.progress",
    "() => JSON.stringify(exec.test.options)",
    "exec.test.fail",
    "console.log",
    "console.error",
    "(a) => new TextEncoder().encode(a)",
    "(a, b) => new TextDecoder(a).decode(b)",
    "(a, b) => { const i = setTimeout(a, b); clearTimeout(i); return i; }",
    "setTimeout",
    "(a) => clearInterval(a)",
    "(a) => new URL(a)",
    "(a) => new URLSearchParams(a)",
    "require",
    "(a) => structuredClone(a)",
    "(a) => Promise.all([a, v])",
    "(a) => { throw a; }",
    "(a) => Promise.reject(a)",
    "(a) => s.concat([a])",
    "(a) => ({ [t]: a, nested: v })",
];

const VALUES: &[&str] = &[
    "undefined",
    "null",
    "true",
    "0",
    "-1",
    "1.5",
    "NaN",
    "Infinity",
    "2 ** 31",
    "2 ** 53",
    "10n",
    "''",
    "t",
    "'http://t/'",
    "'http://u/x?a=1#f'",
    "'\\ud800'",
    "'x'.repeat(5000)",
    "'p.c'",
    "'input[name=a]'",
    "'sha256'",
    "'hex'",
    "[]",
    "{}",
    "[t]",
    "[[t, t]]",
    "{ a: t }",
    "{ [t]: t }",
    "v",
    "s",
    "s[0]",
    "new Array(2 ** 32 - 1)",
    "[new Array(2 ** 32 - 1)]",
    "{ length: 2 ** 32 - 1 }",
    "{ a: new Array(2 ** 32 - 1) }",
    "new Uint8Array(9)",
    "new Uint8Array([...t].map((c) => c.charCodeAt(0)))",
    "new ArrayBuffer(20)",
    "new DataView(new ArrayBuffer(8), 2)",
    "new Float64Array(3)",
    "Symbol('y')",
    "() => 1",
    "async () => t",
    "function () { throw t; }",
    "class {}",
    "new Date(0)",
    "new Date(NaN)",
    "/x/g",
    "new Map([[1, t]])",
    "new Error(t)",
    "Promise.resolve(t)",
    "new Proxy({}, { get: () => t, ownKeys: () => ['a'], getOwnPropertyDescriptor: () => ({ value: t, enumerable: true, configurable: true }) })",
    "new Proxy([], { get: (l, k) => (k === 'length' ? 2 ** 40 : t) })",
    "{ toString() { throw 1; } }",
    "{ valueOf() { return t; } }",
    "{ toJSON() { return v; } }",
    "(() => { const o = {}; o.o = o; return o; })()",
    "(() => { const a = []; a[0] = a; return a; })()",
    "globalThis",
    "Object.create(null)",
    "{ get a() { throw t; } }",
    "{ headers: { [t]: t }, tags: { a: t }, timeout: t }",
    "{ headers: t, redirects: 3, responseType: 'binary' }",
    "{ compression: 'gzip, br', throw: true }",
    "{ auth: 'digest', cookies: { a: t, b: { value: t, replace: true } } }",
    "{ jar: v, timeout: 1, responseCallback: null }",
    "{ 'a': (r) => r.status, [t]: () => { throw 1; } }",
    "['verify']",
    "{ name: 'PBKDF2', hash: 'SHA-1', salt: new Uint8Array(4), iterations: 2 ** 32 - 1 }",
    "{ kty: 'EC', crv: 'P-256', x: t, y: t }",
    "{ kty: 'RSA', n: t, e: 'AQAB' }",
    "{ name: t }",
    "{ iv: new Uint8Array(12) }",
];
