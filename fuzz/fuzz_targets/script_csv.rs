//! Samples as lines of CSV, with tags of any text: Python's reader gets back what was written, in as many cells as the header names.

#![no_main]

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::rc::Rc;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use libfuzzer_sys::arbitrary::{self, Arbitrary};
use libfuzzer_sys::fuzz_target;
use squall_plan::log_mask::masked_line;
use squall_plan::printable::{csv_cell, printable};
use squall_script::{
    Console, MetricId, NoRecorder, Options, Program, ProgramSetup, Recorder, SampleForm, SampleOutput,
    SampleStream, SystemTags, Tags, TimeForm,
};

#[derive(Arbitrary, Debug)]
struct Input {
    scenario: String,
    group: String,
    check: String,
    tag: String,
    metadata: String,
}

fuzz_target!(|input: Input| {
    let program = PROGRAM.get_or_init(program);
    let options = Options::of(Vec::new()).expect("the defaults");
    let text = Text::default();
    let output =
        SampleOutput::new(SampleForm::Csv(TimeForm::Unix), Box::new(text.clone()), program, &options);
    let stream = SampleStream::new(Rc::new(NoRecorder), &[Arc::new(output)], &[]);
    let metadata = [("note".to_owned(), input.metadata.clone())];
    let own = [("own".to_owned(), input.tag.clone())];
    let tags = Tags {
        scenario: &input.scenario,
        group: &input.group,
        check: Some(&input.check),
        http: None,
        custom: [&own, &[]],
        system: SystemTags::default(),
        vu: (1, 0),
        metadata: &metadata,
    };
    stream.add(MetricId::CHECKS, 1.0, &tags);
    stream.hand_over();
    let written = std::mem::take(&mut *text.0.lock().unwrap_or_else(PoisonError::into_inner));
    let written = String::from_utf8(written).expect("samples are UTF-8");
    let rows = READER.with_borrow_mut(|reader| reader.get_or_insert_with(Reader::start).rows(&written));
    let [header, row] = &rows[..] else { panic!("{} rows of {written:?}", rows.len()) };
    assert_eq!(header.len(), row.len(), "{written:?}");
    let cell = |name: &str| row[header.iter().position(|known| known == name).expect("a column")].clone();
    let shown =
        |text: &str| if text.contains("://") { masked_line(text).into_owned() } else { text.to_owned() };
    for (name, value) in [("scenario", &input.scenario), ("group", &input.group), ("check", &input.check)] {
        assert_eq!(cell(name), csv_cell(&shown(value)), "{name} of {written:?}");
    }
    assert_eq!(cell("extra_tags"), printable(&format!("own={}", shown(&input.tag))));
    assert_eq!(cell("metadata"), printable(&format!("note={}", input.metadata)));
});

static PROGRAM: OnceLock<Arc<Program>> = OnceLock::new();

fn program() -> Arc<Program> {
    let setup = ProgramSetup {
        path: "/script.js".into(),
        text: Some("export default function () {}".to_owned()),
        env: BTreeMap::new(),
        fetch: None,
        console: Arc::new(Console::silent()),
    };
    Program::compile(setup).expect("a good script")
}

#[derive(Clone, Default)]
struct Text(Arc<Mutex<Vec<u8>>>);

impl Write for Text {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

thread_local! {
    static READER: RefCell<Option<Reader>> = const { RefCell::new(None) };
}

/// Python's `csv`, which answers each text with its rows as a line of JSON.
struct Reader {
    _python: Child,
    ask: ChildStdin,
    told: BufReader<ChildStdout>,
}

impl Reader {
    fn start() -> Self {
        let mut python = Command::new("python3")
            .args(["-c", SOURCE])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("python3 is installed");
        let (ask, told) = (python.stdin.take().expect("a pipe"), python.stdout.take().expect("a pipe"));
        Self { _python: python, ask, told: BufReader::new(told) }
    }

    fn rows(&mut self, text: &str) -> Vec<Vec<String>> {
        writeln!(self.ask, "{}", serde_json::Value::from(text))
            .and_then(|()| self.ask.flush())
            .expect("a reader");
        let mut line = String::new();
        self.told.read_line(&mut line).expect("an answer");
        serde_json::from_str(&line).expect("rows")
    }
}

const SOURCE: &str = "
import csv, io, json, sys
csv.field_size_limit(1 << 30)
for line in sys.stdin.buffer:
    rows = list(csv.reader(io.StringIO(json.loads(line), newline='')))
    print(json.dumps(rows), flush=True)
";
