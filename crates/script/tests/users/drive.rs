//! Drives one user of a script: requests are answered by a closure, time passes when the script sleeps or a reply has taken some.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::io::Write;
use std::rc::Rc;
use std::sync::{Arc, Mutex};

use squall_script::{
    Console, Counts, Form, HttpSample, Iteration, Level, MetricId, Outcome, Program, ProgramSetup, Progress,
    Recorder, Reply, Request, Runtime, Scenario, ScriptError, ScriptStreamEvent, ScriptStreamNews, Shared,
    Step, StreamRequest, Tags, Timing, User, Work,
};

/// What a script did.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    pub(crate) samples: Vec<(u32, f64, BTreeMap<String, String>)>,
    pub(crate) http: Vec<BTreeMap<String, String>>,
    pub(crate) checks: Vec<(String, String, bool)>,
    pub(crate) requests: Vec<String>,
    pub(crate) slept_ns: u64,
}

#[derive(Debug, Default)]
pub(crate) struct Notes(pub(crate) RefCell<Seen>);

#[derive(Clone, Default)]
pub(crate) struct Text(pub(crate) Arc<Mutex<Vec<u8>>>);

impl Write for Text {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().expect("no test panics with it").extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn map(tags: &Tags<'_>) -> BTreeMap<String, String> {
    tags.all().into_iter().map(|(name, value)| (name.into_owned(), value.into_owned())).collect()
}

impl Recorder for Notes {
    fn add(&self, metric: MetricId, value: f64, tags: &Tags<'_>) {
        self.0.borrow_mut().samples.push((metric.0, value, map(tags)));
    }
    fn http(&self, sample: &HttpSample<'_>) {
        self.0.borrow_mut().http.push(map(sample.tags));
    }
    fn check(&self, group: &str, name: &str, is_ok: bool, _tags: &Tags<'_>) {
        self.0.borrow_mut().checks.push((group.to_owned(), name.to_owned(), is_ok));
    }
    fn group(&self, _path: &str) {}
}

pub(crate) fn compile(source: &str) -> Result<Arc<Program>, ScriptError> {
    let (program, _) = compile_said(source);
    program
}

pub(crate) fn compile_said(source: &str) -> (Result<Arc<Program>, ScriptError>, Text) {
    let said = Text::default();
    let console = Arc::new(Console::new(Box::new(said.clone()), Form::Raw, Level::Debug));
    let program = Program::compile(ProgramSetup {
        path: "/tests/script.js".into(),
        text: Some(source.to_owned()),
        env: BTreeMap::from([("NAME".to_owned(), "value".to_owned())]),
        fetch: None,
        console,
    });
    (program, said)
}

/// One iteration of a script's default function.
pub(crate) struct Run {
    pub(crate) outcome: Outcome,
    pub(crate) seen: Seen,
    pub(crate) said: String,
}

/// A reply with a body and header fields.
pub(crate) fn reply(status: u16, fields: &[(&str, &str)], body: &str) -> Reply {
    let mut head = format!("HTTP/1.1 {status} OK\r\n");
    for (name, value) in fields {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str("\r\n");
    Reply {
        status,
        proto: "HTTP/1.1",
        head: head.into_bytes(),
        body: body.as_bytes().to_vec(),
        timing: Timing { waiting_ns: 1_000_000, ..Timing::default() },
        ..Reply::default()
    }
}

pub(crate) fn iterate(source: &str, count: u64, answer: impl FnMut(&Request) -> Reply) -> Run {
    iterate_with(source, count, Runtime::default(), answer)
}

pub(crate) fn iterate_with(
    source: &str,
    count: u64,
    options: Runtime,
    answer: impl FnMut(&Request) -> Reply,
) -> Run {
    iterate_streams(source, count, options, answer, |_| Vec::new())
}

/// What a stream's command leads to: news, each so many milliseconds after the command.
pub(crate) type StreamAnswer = Vec<(u64, ScriptStreamNews)>;

/// The same with streams, whose commands `serve` answers.
pub(crate) fn iterate_streams(
    source: &str,
    count: u64,
    options: Runtime,
    mut answer: impl FnMut(&Request) -> Reply,
    mut serve: impl FnMut(&StreamRequest) -> StreamAnswer,
) -> Run {
    let said = Text::default();
    let notes = Rc::new(Notes::default());
    let mut user = user(source, options, &said, &notes);
    let scenario = Rc::new(Scenario {
        name: "default".into(),
        executor: "per-vu-iterations".to_owned(),
        exec: "default".to_owned(),
        env: Vec::new(),
        tags: Vec::new(),
        http: squall_plan::HttpVersion::Auto,
        start_unix_ms: 0,
    });
    let mut now_ns = 0;
    let mut outcome = Outcome::Interrupted;
    let mut events: VecDeque<ScriptStreamEvent> = VecDeque::new();
    for idx in 0..count {
        let work =
            Work::Iterate(Iteration { scenario: Rc::clone(&scenario), idx, progress: Progress::Share(0.0) });
        let mut step = user.begin(work, now_ns);
        loop {
            let mut requests = Vec::new();
            user.take_requests(&mut requests);
            for request in &requests {
                let text = format!("{} {}", request.spec.plan.method, request.spec.plan.url);
                notes.0.borrow_mut().requests.push(text);
                let reply = answer(request);
                now_ns += reply.timing.receiving_ns;
                user.deliver(Reply { token: request.token, ..reply });
            }
            let mut commands = Vec::new();
            user.take_stream_requests(&mut commands);
            for request in &commands {
                for (ms, news) in serve(request) {
                    let event =
                        ScriptStreamEvent { token: request.token, at_ns: now_ns + ms * 1_000_000, news };
                    let place = events.partition_point(|known| known.at_ns <= event.at_ns);
                    events.insert(place, event);
                }
            }
            let until_ns = match step {
                Step::Idle => break,
                Step::Wait { until_ns } if requests.is_empty() => until_ns,
                Step::Wait { .. } | Step::Yield => Some(now_ns),
            };
            match events.front() {
                Some(event) if until_ns.is_none_or(|until_ns| event.at_ns <= until_ns) => {
                    let event = events.pop_front().expect("it is there");
                    now_ns = now_ns.max(event.at_ns);
                    user.deliver_event(event);
                }
                _ => match until_ns {
                    Some(until_ns) => now_ns = now_ns.max(until_ns),
                    None => user.interrupt(),
                },
            }
            step = user.resume(now_ns);
        }
        outcome = user.outcome();
    }
    drop(user);
    let mut seen = std::mem::take(&mut *notes.0.borrow_mut());
    seen.slept_ns = now_ns;
    let said = String::from_utf8_lossy(&said.0.lock().expect("no test panics with it")).into_owned();
    Run { outcome, seen, said }
}

/// A user of a script, to be driven by hand.
pub(crate) fn user(source: &str, options: Runtime, said: &Text, notes: &Rc<Notes>) -> User {
    let program = compile(source).unwrap_or_else(|error| panic!("{}", error.message));
    let console = Arc::new(Console::new(Box::new(said.clone()), Form::Raw, Level::Debug));
    let recorder: Rc<dyn Recorder> = notes.clone();
    let shared = Rc::new(Shared::new(Arc::new(options), recorder, console, Arc::new(Counts::default())));
    User::new(&shared, &program, 1).unwrap_or_else(|error| panic!("{}", error.message))
}

/// What a script says of a value: `console.log(EXPRESSION)` in an iteration.
pub(crate) fn say(expression: &str) -> String {
    let source = format!("{IMPORTS}\nexport default function () {{ console.log({expression}); }}");
    let run = iterate(&source, 1, |_| reply(200, &[], ""));
    match run.outcome {
        Outcome::Done(_) => run.said.trim_end().to_owned(),
        Outcome::Failed(error) => format!("THROWN {}", error.message.lines().next().unwrap_or_default()),
        other => format!("{other:?}"),
    }
}

const IMPORTS: &str = "import http from 'k6/http';
import { check, group, sleep, fail } from 'k6';
import encoding from 'k6/encoding';
import crypto from 'k6/crypto';
import exec from 'k6/execution';
import { SharedArray } from 'k6/data';
import { Counter, Trend } from 'k6/metrics';
const shared = new SharedArray('shared', () => [{ a: 1 }, { a: 2 }]);";
