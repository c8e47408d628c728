//! Scripts and responses that take all they can: each comes to an end, in bounded memory, with an error that says why.

use std::io::Write;
use std::rc::Rc;

use squall_plan::Body;
use squall_script::{Outcome, Runtime, Step, Work};

use crate::drive::{Text, iterate, iterate_with, reply, say, user};

fn sent(expression: &str) -> Vec<u8> {
    let source = format!(
        "import http from 'k6/http'; export default function () {{ http.post('http://t/', {expression}); }}"
    );
    let mut bodies = Vec::new();
    iterate(&source, 1, |request| {
        if let Body::Bytes(bytes) = &request.spec.plan.body {
            bodies.push(bytes.to_vec());
        }
        reply(200, &[], "")
    });
    bodies.concat()
}

/// As in k6: each half of a character is U+FFFD, and the text around it stays.
#[test]
fn half_a_character_costs_no_more_than_itself() {
    for (expression, bytes) in [
        (r"'abc\ud800def'", "abc\u{fffd}def"),
        (r"'\udc00'", "\u{fffd}"),
        (r"'a\ud83d'", "a\u{fffd}"),
        (r"'\ud83d\ude00'", "\u{1f600}"),
        (r"'\ude00\ud83d'", "\u{fffd}\u{fffd}"),
        (r"'é\ud800漢'", "é\u{fffd}漢"),
        (r"{ k: 'v\ud800' }", "k=v%EF%BF%BD"),
    ] {
        assert_eq!(String::from_utf8_lossy(&sent(expression)), bytes, "{expression}");
    }
    assert_eq!(say(r"'x\ud800y'"), "x\u{fffd}y");
    assert_eq!(say(r"encoding.b64encode('\ud800')"), "77+9");
    assert_eq!(say(r"Object.keys({ 'a\ud800': 1 })[0].length"), "2");
}

#[test]
fn a_page_of_nested_tags_is_an_error_at_once() {
    let page = "<b>".repeat(200_000);
    let source = "import { parseHTML } from 'k6/html'; import http from 'k6/http';
        export default function () {
          const page = http.get('http://t/').body;
          try { parseHTML(page); } catch (error) { console.log(error.message); }
          console.log(parseHTML('<p>'.repeat(50000)).find('p').size());
        }";
    let run = iterate(source, 1, |_| reply(200, &[], &page));
    assert_eq!(run.outcome, Outcome::Done(None));
    let lines: Vec<&str> = run.said.lines().collect();
    assert_eq!(lines, ["the page has more than 512 levels of nested elements", "50000"]);
}

#[test]
fn lists_without_elements_do_not_fill_the_memory() {
    for expression in ["check(null, new Array(2 ** 32 - 1))", "http.batch(new Array(2 ** 32 - 1))"] {
        // Whatever it says: it comes to an end.
        let said = say(&format!("(() => {{ try {{ return {expression} }} catch (e) {{ return e }} }})()"));
        assert!(said.len() < 10_000, "{expression}");
    }
}

/// What would take QuickJS minutes, in calls that nothing interrupts, is refused before.
#[test]
fn lists_without_elements_are_made_no_text() {
    for expression in [
        "crypto.sha256(new Array(2 ** 32 - 1), 'hex')",
        "crypto.sha256([1, [new Array(2 ** 32 - 1)]], 'hex')",
        "crypto.sha256(Array(64).fill(Array(2 ** 20)), 'hex')",
        "crypto.hmac('sha256', new Array(2 ** 32 - 1), '', 'hex')",
        "encoding.b64encode(new Array(2 ** 32 - 1))",
        "http.get(new Array(2 ** 32 - 1))",
        "http.post('http://t/', { field: new Array(2 ** 32 - 1) })",
        "http.get('http://t/', { headers: { a: new Array(2 ** 32 - 1) } })",
        "sleep(new Array(2 ** 32 - 1))",
        "fail(new Array(2 ** 32 - 1))",
        "console.log(new Array(2 ** 32 - 1))",
        "new TextEncoder().encode([new Array(2 ** 32 - 1)])",
        "new TextDecoder(new Array(2 ** 32 - 1))",
    ] {
        let said = say(&format!("(() => {{ try {{ return {expression} }} catch (e) {{ return e }} }})()"));
        assert!(said.contains("a list of "), "{expression}: {}", &said[..said.len().min(200)]);
    }
    assert_eq!(say("crypto.sha256([1, [2, , 3]], 'hex') === crypto.sha256('1,2,,3', 'hex')"), "true");
    let thrown =
        iterate("export default function () { throw new Array(2 ** 32 - 1); }", 1, |_| reply(200, &[], ""));
    assert!(matches!(thrown.outcome, Outcome::Failed(_)), "{:?}", thrown.outcome);
}

/// The lengths that objects claim to have.
#[test]
fn sizes_that_nobody_has_are_refused() {
    for (expression, part) in [
        ("globalThis.crypto.getRandomValues({ byteLength: 1e15 })", "QuotaExceededError"),
        ("globalThis.crypto.getRandomValues({ byteLength: -1 })", "QuotaExceededError"),
        ("globalThis.crypto.getRandomValues(new Uint8Array(65537))", "QuotaExceededError"),
        ("globalThis.crypto.getRandomValues(new Uint8Array(65536)).length", "65536"),
        ("crypto.randomBytes(1e12)", "invalid size"),
    ] {
        let said = say(&format!("(() => {{ try {{ return {expression} }} catch (e) {{ return e }} }})()"));
        assert!(said.contains(part), "{expression}: {}", &said[..said.len().min(200)]);
    }
}

/// JSON of what `setup()` returns is made in one call of the engine's, which gives way all the same.
#[test]
fn json_that_takes_long_gives_way_and_can_be_interrupted() {
    let source =
        "export function setup() { return { list: new Array(2 ** 31) }; } export default function () {}";
    let mut user = user(source, Runtime::default(), &Text::default(), &Rc::default());
    let mut step = user.begin(Work::Setup, 0);
    for _ in 0..3 {
        assert_eq!(step, Step::Yield);
        step = user.resume(0);
    }
    user.interrupt();
    assert_eq!(user.resume(0), Step::Idle);
    assert_eq!(user.outcome(), Outcome::Interrupted);
}

/// What natives do with 32 MB, or with a number that a script chooses: others have their turn, and the user can be interrupted.
#[test]
fn natives_that_take_long_give_way_and_can_be_interrupted() {
    const TEXT: &str = "const big = 'x'.repeat(32 << 20);";
    const BYTES: &str = "const big = new Uint8Array(32 << 20).fill(255).buffer;";
    const PAGE: &str = "const page = parseHTML('<i></i>'.repeat(5000));";
    const BASE64: &str = "const big = 'QUJD'.repeat(8 << 20);";
    const HMAC_KEY: &str = "const { subtle } = globalThis.crypto; const key = await subtle.generateKey({ name: 'HMAC', hash: 'SHA-1' }, true, ['sign']);";
    const PASSWORD: &str = "const { subtle } = globalThis.crypto; const key = await subtle.importKey('raw', new Uint8Array(8), 'PBKDF2', false, ['deriveBits']);";
    for (setup, call) in [
        (TEXT, "crypto.md4(big, 'hex')"),
        (TEXT, "crypto.md5(big, 'hex')"),
        (BYTES, "crypto.sha1(big, 'hex')"),
        (TEXT, "crypto.sha256(big, 'hex')"),
        (TEXT, "crypto.sha384(big, 'hex')"),
        (BYTES, "crypto.sha512(big, 'hex')"),
        (TEXT, "crypto.sha512_224(big, 'hex')"),
        (TEXT, "crypto.sha512_256(big, 'hex')"),
        (TEXT, "crypto.ripemd160(big, 'hex')"),
        (TEXT, "crypto.hmac('md5', '', big, 'hex')"),
        (TEXT, "crypto.hmac('sha256', big, '', 'hex')"),
        (TEXT, "crypto.createHash('sha256').update(big)"),
        (TEXT, "crypto.createHMAC('sha256', big)"),
        (BYTES, "crypto.hexEncode(big)"),
        ("", "crypto.randomBytes(1e8)"),
        (BYTES, "encoding.b64encode(big)"),
        (BASE64, "encoding.b64decode(big)"),
        (BYTES, "encoding.b64decode(encoding.b64encode(big), 'std', 's')"),
        (BYTES, "new TextDecoder().decode(big)"),
        (BYTES, "await globalThis.crypto.subtle.digest('SHA-1', big)"),
        (HMAC_KEY, "await subtle.sign('HMAC', key, new Uint8Array(32 << 20))"),
        (
            PASSWORD,
            "await subtle.deriveBits({ name: 'PBKDF2', hash: 'SHA-1', salt: new Uint8Array(8), iterations: 1e7 }, key, 128)",
        ),
        (
            "const { subtle } = globalThis.crypto;",
            "await subtle.generateKey({ name: 'RSA-PSS', modulusLength: 4096, publicExponent: new Uint8Array([1, 0, 1]), hash: 'SHA-1' }, true, ['sign'])",
        ),
        ("const text = '<p a=b>x</p>'.repeat(1e5);", "parseHTML(text)"),
        (
            "const text = '<p ' + Array.from({ length: 5e4 }, (_, nth) => 'a' + nth).join(' ') + '>';",
            "parseHTML(text)",
        ),
        (PAGE, "page.find('i:nth-child(2n+1)')"),
        (PAGE, "page.find('i').filter('i:nth-child(2n+1)')"),
    ] {
        let source = format!(
            "import crypto from 'k6/crypto'; import encoding from 'k6/encoding'; import {{ parseHTML }} from 'k6/html';
            {setup} export async function setup() {{ {call}; }} export default function () {{}}"
        );
        let mut user = user(&source, Runtime::default(), &Text::default(), &Rc::default());
        let step = user.begin(Work::Setup, 0);
        assert!(matches!(step, Step::Yield | Step::Wait { .. }), "{call}: {step:?}");
        user.interrupt();
        assert_eq!(user.resume(0), Step::Idle, "{call}");
        assert_eq!(user.outcome(), Outcome::Interrupted, "{call}");
    }
}

/// The memory of parsed pages is not the engine's, and counts all the same.
#[test]
fn a_user_that_keeps_every_page_is_stopped_by_errors() {
    let source = "import { parseHTML } from 'k6/html'; const kept = []; const text = '<p>x</p>'.repeat(1e4);
        export default function () {
          try { for (;;) kept.push(parseHTML(text)); } catch (error) { console.log(kept.length, error.message); }
          kept.length = 0;
          console.log(parseHTML(text).find('p').size());
        }";
    let run = iterate(source, 1, |_| reply(200, &[], ""));
    let lines: Vec<&str> = run.said.lines().collect();
    assert!(
        lines[0].starts_with("40 a virtual user holds response bodies and pages of more than 256 MiB"),
        "{lines:?}"
    );
    assert_eq!(lines[1], "10000");
}

fn gzip(plain: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(plain).expect("memory takes it");
    encoder.finish().expect("memory takes it")
}

#[test]
fn a_body_that_unfolds_beyond_the_bound_is_an_error() {
    let source = "import http from 'k6/http';
        export default function () {
          const r = http.get('http://t/');
          try { console.log(r.body.length); } catch (error) { console.log(error.message); }
        }";
    for (plain_bytes, said) in [
        (1 << 20, "1048576"),
        (
            (1 << 20) + 1,
            "error decompressing response body: gzip: more than 1048576 bytes: `ext.squall.maxBodyBytes` allows more",
        ),
    ] {
        let packed = gzip(&vec![b'x'; plain_bytes]);
        let options = Runtime { body_bytes_max: 1 << 20, ..Runtime::default() };
        let run = iterate_with(source, 1, options, |request| {
            assert_eq!(request.body_bytes_max, 1 << 20);
            let mut reply = reply(200, &[("Content-Encoding", "gzip")], "");
            reply.body.clone_from(&packed);
            reply
        });
        assert_eq!(run.said.trim_end(), said);
    }
}

#[test]
fn a_body_has_a_bounded_number_of_codings() {
    let source = "import http from 'k6/http';
        export default function () {
          try { console.log(http.get('http://t/').body); } catch (error) { console.log(error.message); }
        }";
    for (count, said) in [(5, "x"), (6, "error decompressing response body: more than 5 content codings")] {
        let body = (0..count).fold(b"x".to_vec(), |body, _| gzip(&body));
        let codings = vec!["gzip"; count].join(", ");
        let run = iterate(source, 1, |_| {
            let mut reply = reply(200, &[("Content-Encoding", &codings)], "");
            reply.body.clone_from(&body);
            reply
        });
        assert_eq!(run.said.trim_end(), said);
    }
}

#[test]
fn a_user_that_keeps_every_response_is_stopped_by_errors() {
    let source = "import http from 'k6/http'; const kept = [];
        export default function () {
          for (let i = 0; i < 12; i++) kept.push(http.get('http://t/'));
          console.log(kept.filter((r) => r.status === 200).length, kept[11].error, kept[11].error_code);
          kept.length = 0;
          console.log(http.get('http://t/').status);
        }";
    let body = "x".repeat(32 << 20);
    let run = iterate(source, 1, |_| reply(200, &[], &body));
    let lines: Vec<&str> = run.said.lines().filter(|line| !line.contains("Request Failed")).collect();
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert!(
        lines[0].starts_with("8 a virtual user holds response bodies and pages of more than 256 MiB"),
        "{lines:?}"
    );
    assert!(lines[0].ends_with(" 1000") && lines[1] == "200", "{lines:?}");
}
