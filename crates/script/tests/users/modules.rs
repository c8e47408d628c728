//! k6's modules but http.

use squall_script::Outcome;

use crate::drive::{iterate, reply, say};

#[test]
fn encodings_and_hashes_give_what_k6_gives() {
    for (expression, text) in [
        ("encoding.b64encode('hello')", "aGVsbG8="),
        ("encoding.b64encode('hello', 'rawstd')", "aGVsbG8"),
        ("encoding.b64decode('aGVsbG8=', 'std', 's')", "hello"),
        ("encoding.b64decode('aGVsbG8', 'rawurl', 's')", "hello"),
        ("crypto.md5('hello', 'hex')", "5d41402abc4b2a76b9719d911017c592"),
        ("crypto.sha1('hello', 'hex')", "aaf4c61ddcc5e8a2dabede0f3b482cd9aea9434d"),
        ("crypto.sha256('hello', 'base64')", "LPJNul+wow4m6DsqxbninhsWHlwfp0JecwQzYpOLmCQ="),
        ("crypto.ripemd160('hello', 'hex')", "108f07b8382412612c048d07d13f814118445acd"),
        ("crypto.md4('hello', 'hex')", "866437cb7a794bce2b727acc0362ee27"),
        (
            "crypto.hmac('sha256', 'key', 'hello', 'hex')",
            "9307b3b915efb5171ff14d8cb55fbcc798c6c0ef1456d66ded1a6aa723a58b7b",
        ),
        (
            "(() => { const h = crypto.createHash('sha1'); h.update('hel'); h.update('lo'); return h.digest('hex'); })()",
            "aaf4c61ddcc5e8a2dabede0f3b482cd9aea9434d",
        ),
        ("crypto.randomBytes(4).byteLength", "4"),
        ("new TextDecoder().decode(new TextEncoder().encode('é'))", "é"),
    ] {
        assert_eq!(say(expression), text, "{expression}");
    }
}

#[test]
fn every_hash_and_its_hmac_give_what_k6_gives_at_once_and_in_parts() {
    // Of `hello`, with the key `key`.
    for (name, hash, hmac) in [
        ("md4", "hmQ3y3p5S84rcnrMA2LuJw", "N0ZrOdEhhtAjHmt4M1jP5A"),
        ("md5", "XUFAKrxLKna5cZ2REBfFkg", "BBMHR6_KTXnjLofPIQTwhw"),
        ("sha1", "qvTGHdzF6KLavt4PO0gs2a6pQ00", "s0zqxFFv8joUPmHXnQ-npPvl8mY"),
        (
            "sha256",
            "LPJNul-wow4m6DsqxbninhsWHlwfp0JecwQzYpOLmCQ",
            "kwezuRXvtRcf8U2MtV-8x5jGwO8UVtZt7RpqpyOli3s",
        ),
        (
            "sha384",
            "WeF0h3dEjGnea4ANejO7-5_xtGPkQ1TDVTvNucZm-pASWjx5-QOXvfX2oT3oKGhP",
            "6sutV1wwH6aK-yba5Islv1zUL9CO0owIwnTOYt95KPASSZds2KrxqwaB06zO3JVD",
        ),
        (
            "sha512",
            "m3HSJL1i83hdltRq0-o9czGb-8KJDKra4t_3JRlnPKcjI8PZm6XBHXx6zG4UuMXaDEZjR1wuXDre9G9zvN7AQw",
            "_warNnV3d4FcAI0yyOFKcFtOe_MQNRoGojthLcTHQz53V9IFJaVZO3ECDqLuFi0jEbJH6YVYYrJwEiQZZSwMkg",
        ),
        ("sha512_224", "_oUJ7R-33O_CfmrBqA7dvsTLPSxv5WUkQ3QGHA", "ZfDeCSAbraGZRBYQqB5vpugFvJZoREQTmn_Dqg"),
        (
            "sha512_256",
            "4w2Hz6KnXbVF6sTWG6-XA2aoNXx_cvqVtS0KzLaY8To",
            "YUm97ccuHLSd6dDlde1CsEypYNYGTrjTiu_LyIaGRSU",
        ),
        ("ripemd160", "EI8HuDgkEmEsBI0H0T-BQRhEWs0", "Q6tR-AOmiouJTLMu4Z5oVOn05Gg"),
    ] {
        let expression = format!(
            "(() => {{
               const parts = (hasher) => {{ hasher.update('hel'); hasher.digest('hex'); hasher.update('lo'); return hasher.digest('base64rawurl'); }};
               return [crypto.{name}('hello', 'base64rawurl'), parts(crypto.createHash('{name}')),
                 crypto.hmac('{name}', 'key', 'hello', 'base64rawurl'), parts(crypto.createHMAC('{name}', 'key'))].join(' ');
             }})()"
        );
        assert_eq!(say(&expression), format!("{hash} {hash} {hmac} {hmac}"), "{name}");
    }
}

#[test]
fn shared_arrays_are_read_only_arrays() {
    for (expression, text) in [
        ("shared.length, shared[1].a, shared[2]", "2 2 undefined"),
        ("shared.map((x) => x.a)", "[ 1, 2 ]"),
        ("(() => { let sum = 0; for (const x of shared) sum += x.a; return sum; })()", "3"),
        ("(() => { shared[0] = 1; })()", "THROWN TypeError: SharedArray is immutable"),
        ("(() => { shared[0].a = 1; })()", "THROWN TypeError: 'a' is read-only"),
    ] {
        assert_eq!(say(expression), text, "{expression}");
    }
}

#[test]
fn the_run_can_be_asked_about() {
    for (expression, text) in [
        ("exec.scenario.name, exec.scenario.executor", "default per-vu-iterations"),
        ("exec.vu.idInTest, exec.vu.iterationInScenario", "1 0"),
        ("(() => { exec.vu.tags.x = 1; return exec.vu.tags.x + exec.vu.tags.scenario; })()", "1default"),
        (
            "(() => { exec.vu.metrics.tags.y = {}; })()",
            "THROWN TypeError: invalid value for metric tag 'y': only String, Boolean and Number types are accepted as a metric tag values",
        ),
    ] {
        assert_eq!(say(expression), text, "{expression}");
    }
    let run = iterate(
        "import exec from 'k6/execution'; export default function () { try { exec.test.abort('enough'); } catch (e) { console.log('caught'); } }",
        1,
        |_| reply(200, &[], ""),
    );
    assert_eq!(run.outcome, Outcome::Aborted("test aborted: enough".to_owned()));
    assert_eq!(run.said, "");
}

#[test]
fn checks_groups_and_metrics_carry_their_tags() {
    let run = iterate(
        "import { check, group, sleep, fail } from 'k6';
         import { Counter, Rate, Trend, Gauge } from 'k6/metrics';
         const counter = new Counter('my_counter'), trend = new Trend('my_trend', true);
         export default function () {
           group('outer', () => { group('inner', () => check(7, { seven: (x) => x === 7, 'is eight': (x) => x === 8 })); });
           counter.add(2, { kind: 'a' });
           trend.add(1.5);
           sleep(0.25);
         }",
        1,
        |_| reply(200, &[], ""),
    );
    let path = "::outer::inner".to_owned();
    assert_eq!(
        run.seen.checks,
        [(path.clone(), "seven".to_owned(), true), (path, "is eight".to_owned(), false)]
    );
    let own: Vec<_> = run.seen.samples.iter().filter(|(metric, ..)| *metric >= 24).collect();
    assert_eq!((own[0].0, own[0].1, own[0].2["kind"].as_str()), (24, 2.0, "a"));
    assert_eq!((own[1].0, own[1].1, own[1].2["scenario"].as_str()), (25, 1.5, "default"));
    assert_eq!(run.seen.slept_ns, 250_000_000);
}

#[test]
fn a_test_that_is_marked_as_failed_says_so_and_goes_on() {
    let source = "import exec from 'k6/execution';
        export default function () { exec.test.fail(); exec.test.fail('too slow'); console.log('went on'); }";
    let run = iterate(source, 1, |_| reply(200, &[], ""));
    assert_eq!(run.said, "test marked as failed\ntest marked as failed: too slow\nwent on\n");
}

#[test]
fn tags_are_texts_numbers_and_booleans() {
    let source = "import { check } from 'k6'; import { Counter } from 'k6/metrics'; import exec from 'k6/execution';
        const c = new Counter('own');
        const failing = (f) => { try { f(); return 'went'; } catch (e) { return e.message.includes(\"invalid value for metric tag 'a'\"); } };
        export default function () {
          console.log(c.add(1, { a: 1, b: true }), c.add(1, null), check(1, { ok: true }, { a: 'x' }));
          for (const a of [undefined, null, {}, [1]]) {
            console.log(failing(() => c.add(1, { a })), failing(() => check(1, { ok: true }, { a })), failing(() => { exec.vu.tags.a = a; }));
          }
        }";
    let run = iterate(source, 1, |_| reply(200, &[], ""));
    assert_eq!(run.said, format!("true true true\n{}", "true true true\n".repeat(4)));
    assert_eq!((run.seen.samples.len(), run.seen.checks.len()), (2, 1));
}

#[test]
fn required_modules_are_the_imported_ones() {
    let source = "import http from 'k6/http'; import exec from 'k6/execution'; import * as k6 from 'k6'; import metrics from 'k6/metrics';
        const required = require('k6/http');
        required.get = () => 'patched';
        export default function () {
            console.log(required === http, http.get(), require.name);
            console.log(same.join());
        }
        const same = [require('k6') === k6.default, require('k6/execution') === exec, require('k6/metrics').Trend === metrics.Trend];";
    let run = iterate(source, 1, |_| reply(200, &[], ""));
    assert_eq!(run.outcome, Outcome::Done(None));
    assert_eq!(run.said, "true patched require\ntrue,true,true\n");
}

#[test]
fn every_module_is_the_same_object_however_it_is_loaded() {
    for name in [
        "k6",
        "k6/http",
        "k6/metrics",
        "k6/data",
        "k6/execution",
        "k6/encoding",
        "k6/crypto",
        "k6/html",
        "k6/timers",
        "k6/experimental/fs",
        "k6/experimental/csv",
        "k6/experimental/streams",
        "k6/x/fasthttp",
    ] {
        let source = format!(
            "import * as all from '{name}'; import own from '{name}';
             const required = require('{name}');
             required.patched = 1;
             export default function () {{ console.log(required === own, own.patched, all.default === own); }}"
        );
        let run = iterate(&source, 1, |_| reply(200, &[], ""));
        assert_eq!((run.outcome, run.said.as_str()), (Outcome::Done(None), "true 1 true\n"), "{name}");
    }
}

#[test]
fn a_rate_named_checks_counts_checks() {
    let source = "import { Rate } from 'k6/metrics'; const checks = new Rate('checks');
        export default function () { checks.add(1, { check: 'mine' }); checks.add(0, { check: 'mine' }); checks.add(true); }";
    let run = iterate(source, 1, |_| reply(200, &[], ""));
    let mine = |is_ok| (String::new(), "mine".to_owned(), is_ok);
    assert_eq!(run.seen.checks, [mine(true), mine(false)]);
    assert_eq!(run.seen.samples.len(), 1);
}

#[test]
fn metadata_of_the_user_is_kept() {
    for (expression, text) in [
        (
            "(() => { exec.vu.metrics.metadata.trace = 7; return JSON.stringify(exec.vu.metrics.metadata); })()",
            r#"{"trace":"7"}"#,
        ),
        (
            "(() => { exec.vu.metrics.metadata.a = 'b'; delete exec.vu.metrics.metadata.a; return Object.keys(exec.vu.metrics.metadata).length; })()",
            "0",
        ),
        (
            "(() => { exec.vu.metrics.metadata.y = {}; })()",
            "THROWN TypeError: invalid value for metric metadata 'y': only String, Boolean and Number types are accepted as a metric metadata value",
        ),
    ] {
        assert_eq!(say(expression), text, "{expression}");
    }
}
