//! `--out json` and `--out csv` of k6: one line for each sample, in k6's exact shape.
//!
//! Owns: the form of the lines, and their way from the shards to one writer. Never: the clock; the driver of a script says what time
//! it is. Lines are gathered for each shard and handed over together, so that shards meet once a second.

use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::io::{self, Write};
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::{Value as Json, json};
use squall_plan::log_mask::masked_line;
use squall_plan::printable::{csv_cell, printable_json};

use crate::console::rfc3339;
use crate::metrics::{HttpSample, MetricDef, MetricId, Recorder, SystemTags, Tags};
use crate::options::Options;
use crate::program::Program;

/// The form of the lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SampleForm {
    /// JSON objects: a `Metric` before the first `Point` of each.
    Json,
    /// Comma-separated values under a header.
    Csv(TimeForm),
}

/// How `--out csv` writes times.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum TimeForm {
    /// Seconds since 1970.
    #[default]
    Unix,
    /// Milliseconds since 1970.
    UnixMilli,
    /// Microseconds since 1970.
    UnixMicro,
    /// Nanoseconds since 1970.
    UnixNano,
    /// `2026-08-21T09:43:41Z`.
    Rfc3339,
    /// `2026-08-21T09:43:41.123456789Z`.
    Rfc3339Nano,
}

/// Where the lines of all shards go.
pub struct SampleOutput {
    form: SampleForm,
    names: Vec<String>,
    /// System tags that are columns of their own.
    columns: Vec<&'static str>,
    /// The `Metric` lines, by metric.
    announcements: Vec<String>,
    end: Mutex<End>,
}

struct End {
    writer: Box<dyn Write + Send>,
    is_announced: Vec<bool>,
    failure: Option<io::Error>,
}

impl std::fmt::Debug for SampleOutput {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SampleOutput").field("form", &self.form).finish_non_exhaustive()
    }
}

impl SampleOutput {
    /// An output of a script's samples.
    pub fn new(
        form: SampleForm,
        writer: Box<dyn Write + Send>,
        program: &Program,
        options: &Options,
    ) -> Self {
        let metrics: Vec<&MetricDef> = program.metrics().collect();
        let is_column = |name: &&str| !matches!(*name, "vu" | "iter");
        let mut columns: Vec<&str> = options.runtime.system_tags.names().filter(is_column).collect();
        columns.sort_unstable();
        let output = Self {
            form,
            names: metrics.iter().map(|metric| metric.name.to_string()).collect(),
            announcements: metrics.iter().map(|metric| announcement(metric, options)).collect(),
            end: Mutex::new(End { writer, is_announced: vec![false; metrics.len()], failure: None }),
            columns,
        };
        if form != SampleForm::Json {
            let header = format!(
                "metric_name,timestamp,metric_value,{},extra_tags,metadata\n",
                output.columns.join(",")
            );
            output.write(header.as_bytes());
        }
        output
    }

    /// Writes what is left; says what could not be written.
    ///
    /// # Errors
    /// The first failure to write.
    pub fn finish(&self) -> io::Result<()> {
        let mut end = self.end.lock().unwrap_or_else(PoisonError::into_inner);
        let flushed = end.writer.flush();
        // A compressing writer ends its stream when it is dropped.
        drop(std::mem::replace(&mut end.writer, Box::new(io::sink())));
        end.failure.take().map_or(flushed, Err)
    }

    fn write(&self, bytes: &[u8]) {
        let mut end = self.end.lock().unwrap_or_else(PoisonError::into_inner);
        if end.failure.is_none() {
            end.failure = end.writer.write_all(bytes).err();
        }
    }

    /// Writes the `Metric` line, unless another shard has.
    fn announce(&self, metric: MetricId) {
        let mut end = self.end.lock().unwrap_or_else(PoisonError::into_inner);
        if !std::mem::replace(&mut end.is_announced[metric.0 as usize], true) && end.failure.is_none() {
            end.failure = end.writer.write_all(self.announcements[metric.0 as usize].as_bytes()).err();
        }
    }

    fn line(&self, into: &mut Vec<u8>, sample: &Sample<'_>) {
        match self.form {
            SampleForm::Json => point(into, &self.names[sample.metric.0 as usize], sample),
            SampleForm::Csv(times) => self.record(into, sample, times),
        }
    }

    /// A line of CSV.
    fn record(&self, into: &mut Vec<u8>, sample: &Sample<'_>, times: TimeForm) {
        let name = &self.names[sample.metric.0 as usize];
        into.extend(format!("{name},{},{:.6}", time(sample.time, times), sample.value).bytes());
        for column in &self.columns {
            into.push(b',');
            field(into, &shown(sample.tags.get(column).unwrap_or_default()));
        }
        let extra = sample.tags.all().into_iter().filter(|(name, _)| !self.columns.contains(&&**name));
        let mut extra: Vec<String> = extra.map(|(name, value)| format!("{name}={}", shown(value))).collect();
        extra.sort_unstable();
        into.push(b',');
        field(into, &extra.join("&"));
        let metadata: Vec<String> =
            sample.metadata().into_iter().map(|(name, value)| format!("{name}={value}")).collect();
        into.push(b',');
        field(into, &metadata.join("&"));
        into.push(b'\n');
    }
}

/// One value.
struct Sample<'a> {
    metric: MetricId,
    value: f64,
    tags: &'a Tags<'a>,
    time: Duration,
}

impl Sample<'_> {
    /// What is reported in addition to the tags.
    fn metadata(&self) -> Vec<(&str, Cow<'_, str>)> {
        let (vu, iteration) = self.tags.vu;
        let own = self.tags.metadata.iter().map(|(name, value)| (name.as_str(), Cow::from(value)));
        let numbers = [("iter", iteration), ("vu", vu)].into_iter();
        let numbers = numbers.filter(|(name, _)| self.tags.system.has(name));
        own.chain(numbers.map(|(name, number)| (name, Cow::from(number.to_string())))).collect()
    }
}

/// A recorder that writes each sample, and hands it on.
#[derive(Debug)]
pub struct SampleStream {
    inner: Rc<dyn Recorder>,
    outputs: Vec<Lines>,
    unix_time: Cell<Duration>,
    run_tags: Vec<(String, String)>,
}

/// One output's lines that are still to be handed over.
#[derive(Debug)]
struct Lines {
    output: Arc<SampleOutput>,
    bytes: RefCell<Vec<u8>>,
    is_announced: RefCell<Vec<bool>>,
}

impl SampleStream {
    /// The stream of one shard. `run_tags`: those of every sample.
    pub fn new(
        inner: Rc<dyn Recorder>,
        outputs: &[Arc<SampleOutput>],
        run_tags: &[(String, String)],
    ) -> Self {
        let lines = |output: &Arc<SampleOutput>| Lines {
            output: Arc::clone(output),
            bytes: RefCell::default(),
            is_announced: RefCell::new(vec![false; output.names.len()]),
        };
        Self {
            inner,
            outputs: outputs.iter().map(lines).collect(),
            unix_time: Cell::default(),
            run_tags: run_tags.to_vec(),
        }
    }

    /// What time it is, since 1970.
    pub fn set_time(&self, unix_time: Duration) {
        self.unix_time.set(unix_time);
    }

    /// Writes a sample that belongs to no virtual user.
    pub fn write_of_run(&self, metric: MetricId, value: f64) {
        let tags = Tags {
            scenario: "",
            group: "",
            check: None,
            http: None,
            custom: [&self.run_tags, &[]],
            system: SystemTags(0),
            vu: (0, 0),
            metadata: &[],
        };
        self.write(metric, value, &tags);
    }

    /// Gives the lines gathered so far to the writers.
    pub fn hand_over(&self) {
        self.outputs.iter().for_each(Lines::hand_over);
    }

    fn write(&self, metric: MetricId, value: f64, tags: &Tags<'_>) {
        if !value.is_finite() {
            return;
        }
        let sample = Sample { metric, value, tags, time: self.unix_time.get() };
        for lines in &self.outputs {
            if lines.output.form == SampleForm::Json
                && !std::mem::replace(&mut lines.is_announced.borrow_mut()[metric.0 as usize], true)
            {
                lines.output.announce(metric);
            }
            lines.output.line(&mut lines.bytes.borrow_mut(), &sample);
            if lines.bytes.borrow().len() >= HAND_OVER_BYTES {
                lines.hand_over();
            }
        }
    }
}

impl Lines {
    fn hand_over(&self) {
        let mut bytes = self.bytes.borrow_mut();
        self.output.write(&bytes);
        bytes.clear();
    }
}

impl Recorder for SampleStream {
    fn add(&self, metric: MetricId, value: f64, tags: &Tags<'_>) {
        self.write(metric, value, tags);
        self.inner.add(metric, value, tags);
    }

    fn http(&self, sample: &HttpSample<'_>) {
        sample.values().into_iter().for_each(|(metric, value)| self.write(metric, value, sample.tags));
        self.inner.http(sample);
    }

    fn check(&self, group: &str, name: &str, is_ok: bool, tags: &Tags<'_>) {
        self.write(MetricId::CHECKS, f64::from(u8::from(is_ok)), tags);
        self.inner.check(group, name, is_ok, tags);
    }

    fn group(&self, path: &str) {
        self.inner.group(path);
    }
}

/// The line that makes a metric known.
fn announcement(metric: &MetricDef, options: &Options) -> String {
    let rule = |source: &crate::ThresholdSource| {
        if !source.aborts {
            return Json::from(source.text.clone());
        }
        let mut rule = json!({ "threshold": source.text, "abortOnFail": true });
        rule["delayAbortEval"] = match source.delay.as_secs_f64() {
            0.0 => Json::Null,
            seconds => format!("{seconds}s").into(),
        };
        rule
    };
    let own = options.thresholds.iter().find(|(name, _)| *name == metric.name);
    let thresholds: Vec<Json> = own.map(|(_, rules)| rules.iter().map(rule).collect()).unwrap_or_default();
    let subs = options.thresholds.iter().filter_map(|(name, _)| {
        let suffix = name.strip_prefix(&*metric.name)?.strip_prefix('{')?.strip_suffix('}')?.trim();
        Some((format!("{}{{{suffix}}}", metric.name), suffix.to_owned()))
    });
    let expected = "expected_response:true".to_owned();
    let automatic =
        (metric.name == "http_req_duration").then(|| (format!("{}{{{expected}}}", metric.name), expected));
    let subs: Vec<Json> =
        automatic.into_iter().chain(subs).map(|(name, suffix)| submetric(&name, &suffix)).collect();
    let data = json!({
        "name": metric.name, "type": metric.kind, "contains": metric.contains, "thresholds": thresholds,
        "submetrics": if subs.is_empty() { Json::Null } else { subs.into() },
    });
    format!("{}\n", json!({ "type": "Metric", "data": data, "metric": metric.name }))
}

fn submetric(name: &str, suffix: &str) -> Json {
    let tags = suffix.split(',').filter_map(|pair| pair.split_once(':'));
    let bare = |text: &str| text.trim().trim_matches(['"', '\'']).trim().to_owned();
    let tags: serde_json::Map<String, Json> =
        tags.map(|(key, value)| (bare(key), bare(value).into())).collect();
    json!({ "name": name, "suffix": suffix, "tags": tags })
}

/// A `Point` line, its tags sorted as Go sorts them.
fn point(into: &mut Vec<u8>, name: &str, sample: &Sample<'_>) {
    let (text, value) = (time(sample.time, TimeForm::Rfc3339Nano), sample.value);
    into.extend(
        format!(r#"{{"metric":"{name}","type":"Point","data":{{"time":"{text}","value":{value},"tags":{{"#)
            .bytes(),
    );
    let mut tags = sample.tags.all();
    tags.sort_unstable();
    for (idx, (name, value)) in tags.iter().enumerate() {
        if idx > 0 {
            into.push(b',');
        }
        quote(into, name);
        into.push(b':');
        quote(into, &shown(Cow::Borrowed(&**value)));
    }
    into.push(b'}');
    let metadata = sample.metadata();
    if !metadata.is_empty() {
        let pairs: serde_json::Map<String, Json> =
            metadata.iter().map(|(name, value)| ((*name).to_owned(), (**value).into())).collect();
        into.extend(format!(r#","metadata":{}"#, Json::Object(pairs)).bytes());
    }
    into.extend(b"}}\n");
}

/// A tag's value without the secrets of the URL in it.
fn shown(value: Cow<'_, str>) -> Cow<'_, str> {
    if !value.contains("://") {
        return value;
    }
    match masked_line(&value) {
        Cow::Owned(masked) => masked.into(),
        Cow::Borrowed(_) => value,
    }
}

/// A JSON string as Go writes it: with `<`, `>` and `&` escaped. And with what would drive a terminal.
fn quote(into: &mut Vec<u8>, text: &str) {
    let begin = into.len();
    // A Vec takes every byte.
    let _ = serde_json::to_writer(&mut *into, text);
    if let Ok(json) = std::str::from_utf8(&into[begin..])
        && json.bytes().any(|byte| byte >= 0x7f)
    {
        let shown = printable_json(json.to_owned());
        into.truncate(begin);
        into.extend(shown.bytes());
    }
    if into[begin..].iter().any(|byte| matches!(byte, b'<' | b'>' | b'&')) {
        let plain = into.split_off(begin);
        for byte in plain {
            match byte {
                b'<' | b'>' | b'&' => into.extend(format!("\\u{byte:04x}").bytes()),
                _ => into.push(byte),
            }
        }
    }
}

/// A field of CSV, quoted where it has to be.
fn field(into: &mut Vec<u8>, text: &str) {
    let text = csv_cell(text);
    if text.contains([',', '"', '\n', '\r']) || text.starts_with(' ') {
        into.push(b'"');
        into.extend(text.replace('"', "\"\"").bytes());
        into.push(b'"');
    } else {
        into.extend(text.bytes());
    }
}

fn time(time: Duration, form: TimeForm) -> String {
    match form {
        TimeForm::Unix => time.as_secs().to_string(),
        TimeForm::UnixMilli => time.as_millis().to_string(),
        TimeForm::UnixMicro => time.as_micros().to_string(),
        TimeForm::UnixNano => time.as_nanos().to_string(),
        TimeForm::Rfc3339 => rfc3339(time),
        TimeForm::Rfc3339Nano => {
            let (seconds, nanos) = (rfc3339(time), format!("{:09}", time.subsec_nanos()));
            let fraction = nanos.trim_end_matches('0');
            let dot = if fraction.is_empty() { "" } else { "." };
            format!("{}{dot}{fraction}Z", seconds.trim_end_matches('Z'))
        }
    }
}

/// Lines of a shard are handed over when they are this many bytes, if the second is not over before.
const HAND_OVER_BYTES: usize = 256 * 1024;
