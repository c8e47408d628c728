//! Objects whose fields are made when they are read: to a script their fields are own enumerable properties.

use squall_script::Outcome;

use crate::drive::{iterate, reply};

/// What a script logs of a response `res` in `[…]`, one line each.
fn lines(body: &str) -> Vec<String> {
    let source = format!(
        "import http from 'k6/http';
         export default function () {{ const res = http.get('http://t/a'); for (const line of [{body}]) console.log(String(line)); }}"
    );
    let run = iterate(&source, 1, |_| reply(200, &[("X-A", "1")], "text"));
    assert_eq!(run.outcome, Outcome::Done(None), "{}", run.said);
    run.said.lines().map(str::to_owned).collect()
}

#[test]
fn a_response_has_own_enumerable_properties() {
    const DATA: &str = "remote_ip,remote_port,url,status,status_text,proto,headers,cookies,body,timings,tls_version,tls_cipher_suite,ocsp,error,error_code,request";
    let all = format!("{DATA},clickLink,html,json,submitForm");
    for (expression, expected) in [
        ("Object.keys(res)", all.as_str()),
        ("(res.headers, res.body, Object.keys(res))", &all),
        ("(() => { const names = []; for (const name in res) names.push(name); return names })()", &all),
        ("Object.keys(JSON.parse(JSON.stringify(res)))", DATA),
        ("Object.keys({ ...res })", &all),
        ("Object.keys(Object.assign({}, res))", &all),
        (
            "(() => { const { status, ...rest } = res; return [status, 'status' in rest, rest.body] })()",
            "200,false,text",
        ),
        (
            "[Object.hasOwn(res, 'status'), res.hasOwnProperty('body'), res.hasOwnProperty('json'), 'headers' in res]",
            "true,true,true,true",
        ),
        ("[Object.hasOwn(res, 'nothing'), res.nothing, 'nothing' in res]", "false,,false"),
        (
            "JSON.stringify(Object.getOwnPropertyDescriptor(res, 'status'))",
            r#"{"value":200,"writable":true,"enumerable":true,"configurable":true}"#,
        ),
        ("res.headers === res.headers && res.timings === { ...res }.timings", "true"),
        ("Object.entries(res).find(([name]) => name === 'headers')[1]['X-A']", "1"),
    ] {
        assert_eq!(lines(expression), [expected], "{expression}");
    }
}

#[test]
fn a_field_that_is_changed_is_an_ordinary_property() {
    for (expression, expected) in [
        ("(res.body = 'x', [res.body, Object.keys(res).filter((name) => name === 'body')])", "x,body"),
        (
            "(delete res.status, [res.status, Object.hasOwn(res, 'status'), Object.keys(res).length])",
            ",false,19",
        ),
        (
            "(Object.defineProperty(res, 'url', { enumerable: false }), [res.url, Object.keys(res).includes('url')])",
            "http://t/a,false",
        ),
        ("(res.extra = 1, [res.extra, Object.keys(res).length])", "1,21"),
        ("(res.headers.self = res, res.request.res = res, Object.keys(res).length)", "20"),
    ] {
        let said = lines(expression);
        assert!(said.len() == 1 && said[0].starts_with(expected), "{expression}: {said:?}");
    }
}

#[test]
fn records_that_lead_to_themselves_are_freed() {
    let source = "import http from 'k6/http';
        export default function () {
            for (let count = 0; count < 2000; count++) {
                const res = http.get('http://t/a');
                res.headers.self = res;
                res.timings.big = 'x'.repeat(1e5) + count;
            }
        }";
    let run = iterate(source, 1, |_| reply(200, &[], ""));
    assert_eq!(run.outcome, Outcome::Done(None));
}
