//! `k6/x/fasthttp`: the scripts of the extension's documentation.

use squall_plan::{Body, Header};
use squall_script::{Outcome, Reply, ReplyFailure};

use crate::drive::{compile, iterate, reply};

#[test]
fn the_scripts_of_its_documentation_run() {
    let source = r#"
import { Request, Client, checkstatus } from "k6/x/fasthttp"
const config = {
	max_conns_per_host: 1,
	tls_config: { insecure_skip_verify: true }
}
const client = new Client(config);
let req = new Request("https://localhost:8080/", { headers: { "X-A": "b" }, body: "text" });
export default function () {
		let res = client.get(req);
		checkstatus(200, res);
		res = client.post(req);
		checkstatus(201, res, { why: 'other' });
}"#;
    let mut sent = Vec::new();
    let run = iterate(source, 2, |request| {
        sent.push((
            request.spec.plan.method.clone(),
            request.spec.plan.body.clone(),
            request.spec.plan.headers.clone(),
        ));
        reply(200, &[], "")
    });
    assert_eq!(run.seen.requests[..2], ["GET https://localhost:8080/", "POST https://localhost:8080/"]);
    assert_eq!(sent[0].1, Body::Empty);
    assert_eq!(sent[1].1, Body::Bytes((*b"text").into()));
    assert_eq!(sent[1].2, [Header { name: "X-A".to_owned(), value: "b".to_owned() }]);
    let checks: Vec<(&str, bool)> =
        run.seen.checks.iter().map(|(_, name, is_ok)| (name.as_str(), *is_ok)).collect();
    assert_eq!(checks[..2], [("check status is 200", true), ("check status is 201", false)]);
    let program = compile(source).unwrap();
    assert_eq!(program.clients().len(), 1);
    assert!(program.clients()[0].insecure);
}

#[test]
fn files_are_streamed_from_disk() {
    let path = std::env::temp_dir().join(format!("squall-fasthttp-{}", std::process::id()));
    std::fs::write(&path, b"large").unwrap();
    let source = format!(
        "import {{ Request, Client, FileStream }} from 'k6/x/fasthttp';
         const client = new Client();
         const req = new Request('http://h.example/', {{ body: new FileStream('{}') }});
         export default function () {{ console.log(client.put(req).body); }}",
        path.display()
    );
    let run = iterate(&source, 1, |request| {
        assert_eq!(request.spec.plan.body, Body::File { path: path.canonicalize().unwrap(), bytes: 5 });
        reply(200, &[], "ok")
    });
    std::fs::remove_file(&path).unwrap();
    assert_eq!(run.said.trim_end(), "ok");
}

#[test]
fn failures_give_null_or_throw() {
    for (throws, said) in [("false", "null false"), ("true", "thrown EOF")] {
        let source = format!(
            "import {{ Request, Client, checkstatus }} from 'k6/x/fasthttp';
             const client = new Client(), req = new Request('http://h.example/', {{ throw: {throws} }});
             export default function () {{
               try {{ const res = client.get(req); console.log(res, checkstatus(200, res)); }} catch (e) {{ console.log('thrown', e.message); }}
             }}"
        );
        let failure = || ReplyFailure { code: 1000, text: "EOF".to_owned() };
        let run = iterate(&source, 1, |_| Reply { failure: Some(failure()), ..Reply::default() });
        assert!(matches!(run.outcome, Outcome::Done(_)));
        assert_eq!(run.said.lines().last().unwrap_or_default(), said);
    }
}

#[test]
fn what_is_configured_wrongly_is_reported() {
    for (code, message) in [
        ("new Client({ tls_config: { certificate: 'c.pem' } })", "blank private key"),
        ("new Request()", "req constructor expects 1 or 2 args"),
        ("new Request('http://h', { response_type: 'x' })", "Invalid response type `x`"),
        ("new FileStream('/no/such/file')", "open /no/such/file: "),
    ] {
        let source = format!(
            "import {{ Request, Client, FileStream }} from 'k6/x/fasthttp'; {code}; export default () => {{}}"
        );
        let error = compile(&source).unwrap_err();
        assert!(error.message.contains(message), "{code}: {}", error.message);
    }
}
