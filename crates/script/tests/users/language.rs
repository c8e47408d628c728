//! Life cycle, globals, modules and errors.

use squall_script::{ErrorKind, Outcome};

use crate::drive::{compile, compile_said, iterate, reply, say};

#[test]
fn values_are_written_as_k6_writes_them() {
    for (expression, text) in [
        ("'a', 1, null, undefined, true", "a 1 null undefined true"),
        ("{ a: 'x', b: [1, 'y', null] }", "{ a: \"x\", b: [ 1, \"y\", null ] }"),
        ("[]", "[]"),
        ("{}", "{}"),
        ("() => 1", "[object Function]"),
        ("new Uint8Array([1, 2])", "Uint8Array(2) [ 1, 2 ]"),
        ("new Uint8Array([1, 2]).buffer", "ArrayBuffer { [Uint8Contents]: <01 02>, byteLength: 2 }"),
        ("Symbol('s'), [Symbol.iterator]", "s [ \"Symbol.iterator\" ]"),
        ("(() => { const a = {}; a.self = a; return a; })()", "{ self: [Circular] }"),
        ("__VU, __ITER, __ENV.NAME", "1 0 value"),
        ("new Error('bad')", "Error: bad"),
        ("typeof fetch, typeof setTimeout, globalThis === global", "undefined function true"),
    ] {
        assert_eq!(say(expression), text, "{expression}");
    }
}

#[test]
fn an_exception_in_an_iteration_ends_it_and_no_other() {
    let run = iterate(
        "export default function () { if (__ITER === 0) { null.x; } console.log('second'); }",
        2,
        |_| reply(200, &[], ""),
    );
    assert_eq!(run.outcome, Outcome::Done(None));
    assert_eq!(run.said, "second\n");
}

#[test]
fn errors_name_file_line_and_column() {
    for (source, message, place) in [
        ("let x = ;", "SyntaxError", "/tests/script.js:1:9"),
        ("\n  undefinedName;\nexport default function () {}", "ReferenceError", "/tests/script.js:2:3"),
        ("import x from 'lodash'; export default function () {}", "lodash", ""),
        ("import x from 'k6/browser'; export default function () {}", "k6/browser", ""),
    ] {
        let error = compile(source).unwrap_err();
        assert!(error.message.contains(message), "{source}: {}", error.message);
        if !place.is_empty() {
            assert_eq!(error.place.as_deref(), Some(place), "{source}: {}", error.message);
        }
    }
}

#[test]
fn errors_say_what_was_no_function() {
    for (code, message) in [
        ("http.run();", "http.run is not a function"),
        ("http.run(JSON.stringify({ a: 1 }));", "http.run is not a function"),
        ("const o = {}; o['x y'](1, 2);", "o['x y'] is not a function"),
        ("const f = 5; f();", "f is not a function"),
        ("new http.Foo();", "http.Foo is not a function"),
        ("[1].map(5);", "the argument of map is not a function"),
        ("const own = {}; own.a(own.b());", "own.b or own.a is not a function"),
        ("JSON.parse('{');", ""),
        ("throw new TypeError('not a function');", "not a function"),
    ] {
        let source = format!(
            "import http from 'k6/http'; export default function () {{ try {{ {code} }} catch (e) {{ console.log(e.message, '|', e.stack); }} }}"
        );
        let run = iterate(&source, 1, |_| reply(200, &[], ""));
        let (said, stack) = run.said.split_once(" | ").unwrap();
        let class = if code.starts_with("JSON") { "SyntaxError" } else { "TypeError" };
        assert!(stack.starts_with(&format!("{class}: {said}\n    at ")), "{code}: {}", run.said);
        assert!(message.is_empty() || said == message, "{code}: {said}");
    }
}

#[test]
fn what_is_thrown_has_its_place() {
    for (source, message, place) in [
        ("\nthrow 'a string';", "a string\n\tat ", "/tests/script.js:2:"),
        ("\nJSON.parse('{a');", "SyntaxError: ", "/tests/script.js:2:"),
        ("function f() {\n  throw { a: 1 };\n}\nf();", "[object Object]\n\tat f ", "/tests/script.js:2:"),
        (
            "\nthrow new Error('at first\\n  at last');",
            "Error: at first\n  at last\n\tat ",
            "/tests/script.js:2:",
        ),
    ] {
        let error = compile(&format!("{source}\nexport default function () {{}}")).unwrap_err();
        assert!(error.message.starts_with(message), "{source}: {}", error.message);
        let at = error.place.unwrap_or_default();
        assert!(at.starts_with(place), "{source}: {at}: {}", error.message);
    }
    let run =
        iterate("export default function () {\n  throw 'text ' + __ITER;\n}", 2, |_| reply(200, &[], ""));
    let Outcome::Failed(error) = run.outcome else { panic!("{:?}", run.outcome) };
    assert!(
        error.message.starts_with("text 1\n\tat default (file:///tests/script.js:2:"),
        "{}",
        error.message
    );
}

#[test]
fn endless_scripts_end() {
    for (source, message) in [
        ("const f = () => f() + 1; export default function () { f(); }", "stack"),
        ("export default function () { 'x'.repeat(2 ** 30).padEnd(2 ** 31); }", ""),
    ] {
        let run = iterate(source, 1, |_| reply(200, &[], ""));
        let Outcome::Failed(error) = run.outcome else { panic!("{source}: {:?}", run.outcome) };
        assert!(error.message.contains(message), "{}", error.message);
    }
}

#[test]
fn timers_and_promises_end_before_the_iteration() {
    let run = iterate(
        "export default async function () {
            setTimeout(() => console.log('late'), 20);
            await new Promise((resolve) => setTimeout(resolve, 10));
            console.log('early');
        }",
        1,
        |_| reply(200, &[], ""),
    );
    assert_eq!((run.said.as_str(), run.seen.slept_ns), ("early\nlate\n", 20_000_000));
}

#[test]
fn a_rejection_that_nobody_handles_fails_the_iteration() {
    let run =
        iterate("export default async function () { throw new Error('no'); }", 1, |_| reply(200, &[], ""));
    let Outcome::Failed(error) = run.outcome else { panic!("{:?}", run.outcome) };
    assert!(error.message.contains("no"), "{}", error.message);
}

#[test]
fn a_rejection_that_the_script_handles_fails_nothing() {
    let source = "export default function () { const p = Promise.reject(1); p.catch(() => console.log('seen')); return p; }";
    let run = iterate(source, 1, |_| reply(200, &[], ""));
    assert_eq!((run.outcome, run.said.as_str()), (Outcome::Done(None), "seen\n"));
}

#[test]
fn rejections_of_the_init_code_are_distinguished_from_exceptions() {
    for (init, kind) in [
        ("Promise.reject(new Error('no'));", ErrorKind::Rejection),
        ("setTimeout(() => Promise.reject(new Error('no')), 1);", ErrorKind::Rejection),
        ("await Promise.reject(new Error('no'));", ErrorKind::Exception),
        ("throw new Error('no');", ErrorKind::Exception),
    ] {
        let error = compile(&format!("{init} export default () => {{}};")).unwrap_err();
        assert_eq!(error.kind, kind, "{init}: {}", error.message);
    }
}

#[test]
fn common_js_works() {
    let run = iterate(
        "const http = require('k6/http'); const { check } = require('k6');
         module.exports.options = { vus: 3 };
         module.exports.default = function () { check(http.get('http://t/'), { ok: (r) => r.status === 200 }); };",
        1,
        |_| reply(200, &[], ""),
    );
    assert_eq!(run.seen.checks, [(String::new(), "ok".to_owned(), true)]);
}

#[test]
fn exports_are_known_after_the_first_init() {
    let (program, said) = compile_said(
        "export const options = { vus: 2, thresholds: { http_reqs: ['count>1'] } };
         export function setup() { return 1; }
         export function other() {}
         export default function () {}
         console.log('init', __VU);",
    );
    let program = program.unwrap();
    assert_eq!(program.options()["vus"], 2);
    assert!(["setup", "other", "default"].iter().all(|name| program.has_function(name)));
    assert!(!program.has_function("options"));
    assert_eq!(said.0.lock().unwrap().as_slice(), b"init 0\n");
}

#[test]
fn the_init_may_sleep_and_texts_may_have_nul_bytes() {
    let run = iterate(
        "import { sleep } from 'k6'; sleep(0.2); export default function () { console.log(`a\0b`.length); }",
        1,
        |_| reply(200, &[], ""),
    );
    assert_eq!(run.said, "3\n");
}

#[test]
fn iterations_have_a_number_only_while_they_run() {
    let run = iterate(
        "const before = typeof __ITER; export default function () { console.log(before, __ITER); }",
        2,
        |_| reply(200, &[], ""),
    );
    assert_eq!(run.said, "undefined 0\nundefined 1\n");
}

#[test]
fn dates_are_written_as_k6_does() {
    let run = iterate(
        "export default function () { const d = new Date(0); console.log(d.toString().includes('GMT+0000') === d.toString().endsWith(' (UTC)'));
            console.log(/^[0-2][0-9]:[0-9]{2}:00$/.test(d.toLocaleTimeString()), String(new Date(NaN)), new Date(NaN).toLocaleString()); }",
        1,
        |_| reply(200, &[], ""),
    );
    assert_eq!(run.said, "true\ntrue Invalid Date Invalid Date\n");
}

#[test]
fn options_that_are_no_numbers_are_refused() {
    for (options, path) in
        [("{ vus: NaN }", "vus"), ("{ scenarios: { a: { rate: 1 / 0 } } }", "scenarios.a.rate")]
    {
        let error = compile(&format!("export const options = {options}; export default function () {{}}"))
            .unwrap_err();
        let expected = format!("option `{path}` is not a finite number, which options cannot have");
        // k6 ends with the code of a script that cannot be loaded.
        assert_eq!((error.message, error.kind), (expected, ErrorKind::Load));
    }
}
