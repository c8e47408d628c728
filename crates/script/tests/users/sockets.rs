//! `k6/ws`, `k6/websockets` and `k6/x/sse` without an engine; the expectations are what k6 v1.8.1 gives for the same script and server.

use std::collections::BTreeMap;

use squall_script::{
    BUILTINS, Outcome, ReplyFailure, Runtime, ScriptStreamCommand, ScriptStreamNews, StreamClose, StreamEnd,
    StreamKind, StreamMessage, StreamOpen, StreamRequest,
};

use crate::drive::{Run, StreamAnswer, iterate_streams, reply};

/// A server that sends messages back, 2 ms later, and what its paths say: `/close/CODE`, `/eof`, `/broken`, `/refuse`, `/dead`, `/ping`,
/// `/early` (a message with the response).
fn echo() -> impl FnMut(&StreamRequest) -> StreamAnswer {
    |request| match &request.command {
        ScriptStreamCommand::Open(open) => {
            let path = open.spec.plan.url.path().to_owned();
            open_path(&path, open)
        }
        ScriptStreamCommand::Send(message) => vec![(2, ScriptStreamNews::Message(message.clone()))],
        ScriptStreamCommand::Ping(payload) => vec![(3, ScriptStreamNews::Pong(payload.clone()))],
        ScriptStreamCommand::Close(close) => {
            vec![(8, ScriptStreamNews::Closed(StreamEnd::Peer(close.clone())))]
        }
        ScriptStreamCommand::Drop => Vec::new(),
    }
}

fn open_path(path: &str, open: &StreamOpen) -> StreamAnswer {
    let headers = &open.spec.plan.headers;
    let field = |name: &str| headers.iter().find(|field| field.name.eq_ignore_ascii_case(name));
    let protocol = match &open.kind {
        StreamKind::WebSocket { protocols, .. } => protocols.first().map_or("", |name| name),
        StreamKind::Body => "",
    };
    let fields = [("Upgrade", "websocket"), ("Sec-WebSocket-Protocol", protocol), ("Set-Cookie", "k=v")];
    let open = (5, ScriptStreamNews::Open(Box::new(reply(101, &fields, ""))));
    let close = |code, reason: &str| StreamEnd::Peer(StreamClose { code, reason: reason.to_owned() });
    let failure = |text: &str| ReplyFailure { code: 1212, text: text.to_owned() };
    let end = match path.strip_prefix("/close/") {
        Some("none") => close(None, ""),
        Some(code) => close(code.parse().ok(), "bye"),
        None => match path {
            "/eof" => StreamEnd::Eof,
            "/broken" => StreamEnd::Failed(failure("read: connection reset by peer")),
            "/refuse" => {
                return vec![(4, ScriptStreamNews::Refused(Box::new(reply(403, &[("X-A", "b")], "no"))))];
            }
            "/dead" => {
                let refused = squall_script::Reply {
                    failure: Some(failure("dial: connection refused")),
                    ..squall_script::Reply::default()
                };
                return vec![(1, ScriptStreamNews::Refused(Box::new(refused)))];
            }
            "/ping" => return vec![open, (20, ScriptStreamNews::Ping)],
            "/early" => {
                let cookie = field("Cookie").map_or("none", |field| &field.value).to_owned();
                return vec![open, (5, ScriptStreamNews::Message(StreamMessage::Text(cookie)))];
            }
            _ => return vec![open],
        },
    };
    vec![open, (25, ScriptStreamNews::Closed(end))]
}

fn run(source: &str, options: Runtime) -> Run {
    iterate_streams(source, 1, options, |_| reply(200, &[], ""), echo())
}

/// What a script notes of one `ws.connect`.
fn connected(path: &str, params: &str, body: &str) -> String {
    let source = format!(
        "import ws from 'k6/ws';
         export default function () {{
           const log = [], show = (x) => x === undefined ? '' : ':' + (x.error ? x.error() : x instanceof ArrayBuffer ? 'ab' + x.byteLength : x);
           let r;
           try {{
             r = ws.connect('ws://h{path}', {params}, (s) => {{
               for (const e of ['open', 'message', 'binaryMessage', 'ping', 'pong', 'close', 'error']) s.on(e, (x) => log.push(e + show(x)));
               {body}
             }});
           }} catch (e) {{ log.push('THROWN ' + e.message); }}
           console.log(log.join(' ') + (r ? ` | ${{r.url}} ${{r.status}} ${{r.body}} ${{r.error}}` : ''));
         }}"
    );
    let run = run(&source, Runtime::default());
    assert_eq!(run.outcome, Outcome::Done(None), "{body}");
    run.said.trim_end_matches('\n').replace("ws://h", "")
}

#[test]
fn a_socket_of_k6_ws_lives_in_its_call() {
    for (path, body, expected) in [
        (
            "/",
            "s.on('open', () => { s.send('a'); s.sendBinary(new Uint8Array([1, 2]).buffer); s.ping(); s.setTimeout(() => s.close(), 100); });",
            "open message:a binaryMessage:ab2 pong close:1001 | / 101  ",
        ),
        ("/", "s.setTimeout(() => s.close(3001), 30);", "open close:3001 | / 101  "),
        ("/close/1000", "", "open close:1000 | /close/1000 101  "),
        ("/close/1001", "", "open close:1001 | /close/1001 101  "),
        ("/close/3001", "", "open error:websocket: close 3001: bye close:3001 | /close/3001 101  "),
        ("/close/none", "", "open error:websocket: close 1005 (no status) close:1005 | /close/none 101  "),
        (
            "/close/1011",
            "",
            "open error:websocket: close 1011 (internal server error): bye close:1011 | /close/1011 101  ",
        ),
        (
            "/eof",
            "",
            "open error:websocket: close 1006 (abnormal closure): unexpected EOF close:1006 | /eof 101  ",
        ),
        ("/broken", "", "open error:read: connection reset by peer close:1001 | /broken 101  "),
        ("/ping", "s.setTimeout(() => s.close(), 60);", "open ping close:1001 | /ping 101  "),
        ("/refuse", "", " |  403 no "),
        ("/dead", "", " |  0  dial: connection refused"),
        ("/", "throw new Error('su');", "close:1001 THROWN su"),
        ("/", "s.on('open', () => { throw new Error('op'); });", "open close:1001 THROWN op"),
        ("/", "s.setTimeout(() => { throw new Error('ti'); }, 10);", "open close:1001 THROWN ti"),
        ("/", "s.on('close', () => { throw new Error('cl'); }); s.close();", "close:1001 THROWN cl"),
        (
            "/",
            "s.on('open', () => { s.close(); s.send('x'); s.ping(); s.close(); });",
            "open close:1001 error:websocket: close sent error:websocket: close sent | / 101  ",
        ),
        (
            "/",
            "s.setTimeout(() => {}, 0);",
            "close:1001 THROWN setTimeout requires a >0 timeout parameter, received 0.00",
        ),
        ("/", "s.sendBinary('x');", "close:1001 THROWN expected ArrayBuffer as argument, received: String"),
        ("/", "s.sendBinary(null);", "close:1001 THROWN expected ArrayBuffer as argument, received: null"),
        (
            "/",
            "s.on('open', () => { s.send({}); s.send(12); s.setTimeout(() => s.close(), 30); });",
            "open message:[object Object] message:12 close:1001 | / 101  ",
        ),
        (
            "/",
            "let n = 0; s.setInterval(() => { s.send('i' + n++); if (n === 3) s.close(); }, 10);",
            "open message:i0 message:i1 close:1001 | / 101  ",
        ),
    ] {
        assert_eq!(connected(path, "null", body), expected, "{path} {body}");
    }
}

#[test]
fn params_of_k6_ws_are_read() {
    let close = "s.setTimeout(() => s.close(), 30);";
    for (params, expected) in [
        ("{ headers: { Cookie: 'a=b', 'X-Y': '1' }, foo: 1 }", "open message:a=b close:1001 | /early 101  "),
        ("{ compression: 'deflate' }", "open message:none close:1001 | /early 101  "),
        (
            "{ compression: 'gzip' }",
            "THROWN unsupported compression algorithm 'gzip', supported algorithm is 'deflate'",
        ),
        (
            "{ tags: { a: {} } }",
            "THROWN invalid ws.connect() metric tags: invalid value for metric tag 'a': only String, Boolean and Number types are accepted as a metric tag values",
        ),
    ] {
        assert_eq!(connected("/early", params, close), expected, "{params}");
    }
}

/// What an iteration has recorded: name, value and some tags of each sample.
fn samples(run: &Run, tags: &[&str]) -> Vec<String> {
    let describe = |(metric, value, all): &(u32, f64, BTreeMap<String, String>)| {
        let name = BUILTINS.get(*metric as usize).map_or("own", |known| &known.name);
        let tags =
            tags.iter().map(|tag| all.get(*tag).map_or("-", |value| value)).collect::<Vec<_>>().join(" ");
        format!("{name}={value} {tags}").trim_end().to_owned()
    };
    run.seen.samples.iter().map(describe).collect()
}

#[test]
fn samples_have_the_tags_of_the_connection() {
    let source = "import ws from 'k6/ws'; import { group } from 'k6';
        export default function () {
          group('g', () => ws.connect('ws://h/', { tags: { t: 'v' } }, (s) => {
            s.on('open', () => { s.send('a'); s.ping(); });
            s.on('pong', () => s.close());
          }));
          ws.connect('ws://h/refuse', () => {});
          ws.connect('nonsense', () => {});
        }";
    let run = run(source, Runtime::default());
    let group = BUILTINS.iter().find(|known| known.name == "group_duration").map(|known| &*known.name);
    let recorded = samples(&run, &["url", "status", "subproto", "group", "t", "name", "method"]);
    let recorded: Vec<_> = recorded.iter().filter(|line| !line.starts_with(group.unwrap())).collect();
    assert_eq!(
        recorded,
        [
            "ws_sessions=1 ws://h/ 101  ::g v - -",
            "ws_connecting=5 ws://h/ 101  ::g v - -",
            "ws_msgs_sent=1 ws://h/ 101  ::g v - -",
            "ws_msgs_received=1 ws://h/ 101  ::g v - -",
            "ws_ping=3 ws://h/ 101  ::g v - -",
            "ws_session_duration=8 ws://h/ 101  ::g v - -",
            "ws_sessions=1 ws://h/refuse 403   - - -",
            "ws_connecting=4 ws://h/refuse 403   - - -",
            "ws_session_duration=4 ws://h/refuse 403   - - -",
            "ws_sessions=1 nonsense - -  - - -",
            "ws_connecting=0 nonsense - -  - - -",
            "ws_session_duration=0 nonsense - -  - - -",
        ]
    );
}

/// What a script notes of WebSockets on the event loop.
fn looped(body: &str) -> String {
    let source = format!(
        "import {{ WebSocket, Blob }} from 'k6/websockets';
         const log = [];
         const shown = (d) => typeof d === 'string' ? d : d instanceof ArrayBuffer ? 'ab' + d.byteLength : 'blob' + d.size;
         const show = (e) => [e.type, e.data === undefined ? undefined : shown(e.data), e.error, e.code, e.reason].filter((x) => x !== undefined).join(':');
         const open = (path, protocols, params) => new Promise((done) => {{
           const s = new WebSocket('ws://h' + path, protocols, params);
           for (const e of ['open', 'message', 'ping', 'pong', 'error', 'close']) s.addEventListener(e, (x) => log.push(show(x)));
           s.addEventListener('open', () => done(s));
           s.addEventListener('close', () => {{ log.push('st' + s.readyState); done(s); }});
         }});
         const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
         const attempt = (f) => {{ try {{ return f(); }} catch (e) {{ log.push('THROWN ' + e.message); }} }};
         export default async function () {{ {body} }}
         export function teardown() {{}}"
    );
    let source = source
        .replace("export function teardown() {}", "")
        .replace("export default async function () {", "async function main() {")
        + "\nexport default async function () { try { await main(); } finally { await pause(200); console.log(log.join(' ')); } }";
    let run = run(&source, Runtime::default());
    match run.outcome {
        Outcome::Done(None) => run.said.trim_end().to_owned(),
        other => format!("{other:?}"),
    }
}

#[test]
fn sockets_of_the_event_loop_have_the_events_of_the_standard() {
    for (body, expected) in [
        (
            "const s = await open('/'); s.send('a'); s.send(new Uint8Array([1, 2]).buffer); s.send(new Uint8Array([1, 2, 3]));
             s.send(new Blob(['xy', new Uint8Array(2)])); s.ping(); log.push(s.bufferedAmount); await pause(50); log.push(s.bufferedAmount); s.close();",
            "open 10 message:a message:blob2 message:blob3 message:blob4 pong 0 close:1000: st3",
        ),
        (
            "const s = await open('/'); s.binaryType = 'arraybuffer'; s.send(new ArrayBuffer(3)); await pause(20); s.close(3001, 'why');",
            "open message:ab3 error:websocket: close 3001: why close:3001:why st3",
        ),
        ("await open('/close/1000');", "open close:1000:bye st3"),
        ("await open('/close/1001');", "open close:1001:bye st3"),
        ("await open('/close/3001');", "open error:websocket: close 3001: bye close:3001:bye st3"),
        ("await open('/close/none');", "open error:websocket: close 1005 (no status) close:1005: st3"),
        (
            "await open('/eof');",
            "open error:websocket: close 1006 (abnormal closure): unexpected EOF close:1006:unexpected EOF st3",
        ),
        ("await open('/broken');", "open close: st3"),
        ("await open('/refuse');", "error:websocket: bad handshake close: st3"),
        ("await open('/dead');", "error:dial: connection refused close: st3"),
        ("const s = await open('/ping'); await pause(50); s.close();", "open ping close:1000: st3"),
        ("const s = await open('/', ['p1', 'p2']); log.push(s.protocol, s.url); s.close();", "open p1 ws://h/ close:1000: st3"),
        (
            "const s = await open('/'); s.close(); s.close(); attempt(() => s.send('x')); attempt(() => s.ping());",
            "open THROWN InvalidStateError THROWN InvalidStateError close:1000: st3",
        ),
        (
            "const s = await open('/'); s.send('late'); s.close();",
            "open close:1000: st3",
        ),
        (
            "const s = new WebSocket('ws://h/'); s.onopen = () => log.push('opened'); s.onclose = (e) => log.push(e.code); s.close('a'); log.push(s.readyState); await pause(20); log.push(s.readyState);",
            "2 1000 3",
        ),
        (
            "attempt(() => new Blob('x')); attempt(() => new Blob([], 5));",
            "THROWN failed to process [blobParts]: it must be an array THROWN [options] must be an object",
        ),
        (
            "const all = await Promise.all([open('/'), open('/'), open('/')]); all.forEach((s, i) => s.send('m' + i)); await pause(20); all.forEach((s) => s.close());",
            "open open open message:m0 message:m1 message:m2 close:1000: st3 close:1000: st3 close:1000: st3",
        ),
        (
            "const s = await open('/'); for (const c of [1001, 99]) attempt(() => s.close(c)); attempt(() => s.close(3000, 'x'.repeat(124))); s.close();",
            "open THROWN InvalidAccessError: Failed to execute 'close' on 'WebSocket': The close code must be either 1000, or between 3000 and 4999. 1001 is neither THROWN InvalidAccessError: Failed to execute 'close' on 'WebSocket': The close code must be either 1000, or between 3000 and 4999. 99 is neither THROWN SyntaxError: Failed to execute 'close' on 'WebSocket': The message must not be greater than 123 bytes close:1000: st3",
        ),
        (
            "for (const u of [undefined, 'http://a/', 'foo', 'ws://h/#x', 'ws://h/%zz']) attempt(() => new WebSocket(u));",
            "THROWN WebSocket requires a url THROWN WebSocket requires url with scheme ws or wss, but got \"http\" THROWN WebSocket requires url with scheme ws or wss, but got \"\" THROWN WebSocket requires no url fragment, but got \"x\" THROWN WebSocket requires valid url, but got \"ws://h/%zz\" which resulted in parse \"ws://h/%zz\": invalid URL escape \"%zz\"",
        ),
        (
            "for (const p of [{ foo: 1 }, { compression: 'gzip' }, { tags: { a: {} } }]) attempt(() => new WebSocket('ws://h/', null, p));",
            "THROWN unknown WebSocket's option foo THROWN unsupported compression algorithm 'gzip', supported algorithm is 'deflate' THROWN invalid WebSocket tags option: invalid value for metric tag 'a': only String, Boolean and Number types are accepted as a metric tag values",
        ),
        (
            "const s = await open('/'); attempt(() => { s.binaryType = 'x'; }); attempt(() => { s.onopen = 3; }); attempt(() => s.addEventListener('open', 3)); attempt(() => s.send(1)); s.onclose = null; s.close();",
            "open THROWN unknown binaryType x, the supported ones are \"blob\" and \"arraybuffer\" THROWN a value for 'onopen' should be callable THROWN handler for event type \"open\" isn't a callable function THROWN unsupported send type number close:1000: st3",
        ),
        (
            "const b = new Blob(['hello', new Uint8Array([65])], { type: 't' });
             log.push(b.size, b.type, await b.text(), (await b.arrayBuffer()).byteLength, (await b.bytes())[5], await b.slice(1, 3).text(), await b.slice(1, -1).text(), (await b.stream().getReader().read()).value.length);",
            "6 t helloA 6 65 el ello 6",
        ),
    ] {
        assert_eq!(looped(body), expected, "{body}");
    }
}

#[test]
fn an_iteration_ends_with_its_last_socket() {
    let source = "import { WebSocket } from 'k6/websockets';
        export default function () {
          const s = new WebSocket('ws://h/', null, { tags: { name: 'n' } });
          s.onopen = () => { s.send('a'); s.ping(); setTimeout(() => s.close(), 10); };
        }";
    let run = run(source, Runtime::default());
    assert_eq!((run.outcome.clone(), run.seen.slept_ns), (Outcome::Done(None), 23_000_000));
    // The ping and the close frame count as messages, as in k6.
    assert_eq!(
        samples(&run, &["url", "name"]),
        [
            "ws_sessions=1 n n",
            "ws_connecting=5 n n",
            "ws_msgs_sent=1 n n",
            "ws_msgs_sent=1 n n",
            "ws_msgs_received=1 n n",
            "ws_ping=3 n n",
            "ws_msgs_sent=1 n n",
            "ws_session_duration=23 n n",
        ]
    );
}

#[test]
fn what_a_listener_throws_ends_the_iteration_and_its_socket() {
    let source = "import { WebSocket } from 'k6/websockets';
        export default function () {
          const s = new WebSocket('ws://h/');
          s.onopen = () => { throw new Error('no'); };
          s.onerror = (e) => console.log(e.error);
          s.onclose = () => console.log('closed', s.readyState);
        }";
    let mut dropped = 0;
    let mut server = echo();
    let run = iterate_streams(
        source,
        1,
        Runtime::default(),
        |_| reply(200, &[], ""),
        |request| {
            dropped += u32::from(matches!(request.command, ScriptStreamCommand::Drop));
            server(request)
        },
    );
    let Outcome::Failed(error) = run.outcome else { panic!("{:?}", run.outcome) };
    assert!(error.message.starts_with("Error: no"), "{}", error.message);
    assert_eq!(error.place.as_deref(), Some("/tests/script.js:4:40"), "{}", error.message);
    assert_eq!((run.said.as_str(), dropped), ("Error: no\nclosed 3\n", 1));
}

#[test]
fn sockets_stay_open_between_iterations_where_that_is_wanted() {
    let source = "import { WebSocket } from 'k6/websockets';
        let s;
        export default async function () {
          if (!s) await new Promise((done) => { s = new WebSocket('ws://h/'); s.onopen = done; });
          const answer = new Promise((done) => { s.onmessage = (e) => done(e.data); });
          s.send('iteration ' + __ITER);
          console.log(await answer, s.readyState);
        }";
    let options = Runtime { keeps_streams: true, ..Runtime::default() };
    let run = iterate_streams(source, 3, options, |_| reply(200, &[], ""), echo());
    assert_eq!(run.outcome, Outcome::Done(None));
    assert_eq!(run.said, "iteration 0 1\niteration 1 1\niteration 2 1\n");
    assert_eq!(samples(&run, &[]).iter().filter(|line| *line == "ws_sessions=1").count(), 1);
}

#[test]
fn events_of_xk6_sse_are_read_while_they_come() {
    let source = "import sse from 'k6/x/sse';
        export default function () {
          const params = { method: 'post', body: ' {} ', headers: { 'X-Y': 'z' }, tags: { t: 'v' } };
          const r = sse.open('http://h/events', params, (client) => {
            client.on('open', () => console.log('open'));
            client.on('event', (e) => { console.log(e.id, e.name, e.data, e.comment); if (e.data === 'end') client.close(); });
            client.on('error', (e) => console.log(e.error()));
          });
          console.log(r.status, r.url, r.headers['X-A'], r.error === '');
          console.log(sse.open('http://h/dead', () => {}).error);
        }";
    let mut asked = Vec::new();
    let run = iterate_streams(
        source,
        1,
        Runtime::default(),
        |_| reply(200, &[], ""),
        |request| {
            let ScriptStreamCommand::Open(open) = &request.command else {
                asked.push(format!("{:?}", request.command));
                return Vec::new();
            };
            let plan = &open.spec.plan;
            let field =
                |name: &str| plan.headers.iter().find(|field| field.name == name).map(|field| &*field.value);
            asked.push(format!("{} {:?} {:?} {:?}", plan.method, plan.body, field("Accept"), field("X-Y")));
            if plan.url.path() == "/dead" {
                return open_path("/dead", open);
            }
            let data = |ms, text: &str| (ms, ScriptStreamNews::Data(text.as_bytes().to_vec()));
            vec![
                (3, ScriptStreamNews::Open(Box::new(reply(200, &[("x-a", "b")], "")))),
                data(5, "id: 1\nevent: tick\nda"),
                data(6, "ta: one\n\n: alive\n\nwhat\n"),
                data(9, "data: end\n\ndata: more\n\n"),
            ]
        },
    );
    assert_eq!(run.outcome, Outcome::Done(None));
    assert_eq!(
        run.said,
        "open\n1 tick one \n   alive\nunknown event: what\n\n  end \n200 http://h/events b true\ndial: connection refused\n"
    );
    assert_eq!(asked[0], "POST Bytes([123, 125]) Some(\"text/event-stream\") Some(\"z\")");
    assert_eq!(asked[1], "Drop");
    assert_eq!(
        samples(&run, &["url", "status", "t"])[..7],
        [
            "http_req_sending=3 http://h/events 200 v",
            "own=1 http://h/events 200 v",
            "own=1 http://h/events 200 v",
            "own=1 http://h/events 200 v",
            "http_reqs=1 http://h/events 200 v",
            "http_req_sending=3 http://h/events 200 v",
            "http_req_duration=9 http://h/events 200 v",
        ]
    );
}

#[test]
fn the_modules_are_for_iterations() {
    for (source, expected) in [
        (
            "import ws from 'k6/ws'; ws.connect('ws://h/', () => {}); export default () => {}",
            "using websockets in the init context is not supported",
        ),
        (
            "import { WebSocket } from 'k6/websockets'; new WebSocket('ws://h/'); export default () => {}",
            "using websockets in the init context is not supported",
        ),
        (
            "import sse from 'k6/x/sse'; sse.open('http://h/', () => {}); export default () => {}",
            "using sse in the init context is not supported",
        ),
    ] {
        let error = crate::drive::compile(source).unwrap_err();
        assert!(error.message.contains(expected), "{}", error.message);
    }
    let (program, said) = crate::drive::compile_said(
        "import { WebSocket } from 'k6/experimental/websockets'; export default () => {}",
    );
    assert!(program.is_ok());
    assert!(String::from_utf8_lossy(&said.0.lock().unwrap()).contains("k6/websockets"));
}
