//! Speedscale's pairs as markdown, and folders of pairs: one file for each, markdown or JSON. What people edited in a markdown file wins
//! over its JSON.

use std::collections::VecDeque;
use std::fs;
use std::path::{Path, PathBuf};

use super::rrpair::{JsonLines, OUTBOUND, span};
use super::sniff::OpenError;
use super::{Notes, Source, http1, time};
use crate::input::{Input, Until};
use crate::limits::RECORD_BYTES_MAX;
use crate::{Place, Problem, Record, Request, Response, Scheme, key_of};

/// A folder of files with pairs, in the order of their names.
pub(super) struct Folder {
    files: VecDeque<PathBuf>,
    /// The file that is being read.
    open: Option<(PathBuf, Box<dyn Source>)>,
    notes: Notes,
    record_count: u64,
    /// Of the files that are read.
    bytes_read: u64,
}

/// One markdown file.
pub(super) struct OneFile {
    input: Option<Input>,
    notes: Notes,
    bytes_read: u64,
}

impl Folder {
    pub(super) fn open(path: &Path) -> Result<Self, OpenError> {
        let mut files = Vec::new();
        collect(path, &mut files, 0).map_err(|error| OpenError::io(path, error))?;
        files.sort();
        if files.is_empty() {
            return Err(OpenError::EmptyFolder { path: path.to_owned() });
        }
        Ok(Self { files: files.into(), open: None, notes: Notes::default(), record_count: 0, bytes_read: 0 })
    }

    /// Opens the next file, if there is one.
    fn open_next(&mut self) -> Result<bool, Problem> {
        let Some(path) = self.files.pop_front() else { return Ok(false) };
        self.record_count += 1;
        let input =
            Input::open(&path).map_err(|error| self.named(&path, &Problem::io(Place::default(), &error)))?;
        self.record_count -= 1;
        let source: Box<dyn Source> = match path.extension().is_some_and(|extension| extension == "md") {
            true => Box::new(OneFile::new(input)),
            false => Box::new(JsonLines::new(input)),
        };
        self.open = Some((path, source));
        Ok(true)
    }

    /// A bad file or record is none of the others.
    fn named(&self, path: &Path, problem: &Problem) -> Problem {
        Problem {
            place: Place { record: self.record_count, ..problem.place },
            reason: format!("`{}`: {}", path.display(), problem.reason),
            is_fatal: false,
        }
    }
}

fn collect(path: &Path, files: &mut Vec<PathBuf>, depth: u32) -> std::io::Result<()> {
    for entry in fs::read_dir(path)? {
        let path = entry?.path();
        if path.is_dir() && depth < FOLDER_DEPTH_MAX {
            collect(&path, files, depth + 1)?;
        } else if path.extension().is_some_and(|extension| extension == "md" || extension == "json") {
            files.push(path);
        }
    }
    Ok(())
}

impl Source for Folder {
    fn next(&mut self) -> Result<Option<Record>, Problem> {
        loop {
            let Some((path, mut source)) = self.open.take() else {
                match self.open_next()? {
                    true => continue,
                    false => return Ok(None),
                }
            };
            let record = source.next();
            let goes_on =
                matches!(&record, Ok(Some(_))) || record.as_ref().is_err_and(|problem| !problem.is_fatal);
            if !goes_on {
                self.bytes_read += source.bytes_read();
                self.notes.merge(source.notes());
            }
            self.record_count += u64::from(!matches!(&record, Ok(None)));
            let record = record.map_err(|problem| self.named(&path, &problem));
            if goes_on {
                self.open = Some((path, source));
            }
            match record {
                Ok(None) => {}
                record => return record,
            }
        }
    }

    fn notes(&self) -> &Notes {
        &self.notes
    }

    fn bytes_read(&self) -> u64 {
        self.bytes_read + self.open.as_ref().map_or(0, |(_, source)| source.bytes_read())
    }
}

impl OneFile {
    pub(super) fn new(input: Input) -> Self {
        Self { input: Some(input), notes: Notes::default(), bytes_read: 0 }
    }
}

impl Source for OneFile {
    fn next(&mut self) -> Result<Option<Record>, Problem> {
        let Some(mut input) = self.input.take() else { return Ok(None) };
        let place = input.place(1);
        let mut bytes = Vec::new();
        // No text has this: it is read to its end, in bounds.
        let until = input.read_until(b"\0\0\0\0", &mut bytes, RECORD_BYTES_MAX);
        self.bytes_read = input.byte();
        match until.map_err(|error| Problem::io(place, &error))? {
            Until::TooLong => {
                return Err(Problem::record(place, format!("larger than {RECORD_BYTES_MAX} bytes")));
            }
            Until::Found | Until::End => {}
        }
        let text = String::from_utf8(bytes).map_err(|_| Problem::record(place, "the file is not UTF-8"))?;
        let record = record(&text, place).map_err(|reason| Problem::record(place, reason))?;
        if self.notes.is_web_socket(&record.request, place) {
            return Ok(None);
        }
        if section(&text, "METADATA").is_some_and(|metadata| meta(metadata, "direction") == "OUT") {
            self.notes.add(OUTBOUND, place);
        }
        Ok(Some(record))
    }

    fn notes(&self) -> &Notes {
        &self.notes
    }

    fn bytes_read(&self) -> u64 {
        self.bytes_read
    }
}

fn record(text: &str, place: Place) -> Result<Record, String> {
    let blocks = |name: &str| section(text, name).map(fenced);
    let request_blocks = blocks("REQUEST").ok_or("no section `### REQUEST ###`")?;
    let metadata = section(text, "METADATA").unwrap_or_default();
    let mut response = match blocks("RESPONSE") {
        Some(response) if !response.is_empty() => Some(message_response(&response)?),
        _ => None,
    };
    if let Some(response) = &mut response {
        response.latency_ns = span(meta(metadata, "duration"));
    }
    let session = meta(metadata, "tags").split(", ").find_map(|tag| tag.strip_prefix("session="));
    Ok(Record {
        time_ns: time::of_iso(meta(metadata, "ts"))?,
        connection: 0,
        session: session.map_or(0, |session| key_of(session.as_bytes())),
        request: message_request(&request_blocks)?,
        response,
        place,
    })
}

/// The value of a line `key: value`.
fn meta<'a>(metadata: &'a str, key: &str) -> &'a str {
    let line = metadata.lines().find_map(|line| line.trim().strip_prefix(key)?.strip_prefix(':'));
    line.map(str::trim).unwrap_or_default()
}

/// The text between a heading and the next.
fn section<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let heading = format!("### {name} ###");
    let begin = text.find(&heading)? + heading.len();
    let rest = &text[begin..];
    Some(&rest[..rest.find("\n### ").unwrap_or(rest.len())])
}

/// The contents of the fenced blocks.
fn fenced(text: &str) -> Vec<String> {
    let mut blocks = Vec::new();
    let mut block: Option<Vec<&str>> = None;
    for line in text.lines() {
        match (&mut block, line.trim_end().starts_with("```")) {
            (None, true) => block = Some(Vec::new()),
            (Some(lines), true) => {
                blocks.push(lines.join("\n"));
                block = None;
            }
            (Some(lines), false) => lines.push(line),
            (None, false) => {}
        }
    }
    blocks
}

/// The head's lines as they would be on the wire.
fn wire_head(block: &str, is_request: bool) -> (String, String) {
    let mut lines = block.lines();
    let first = lines.next().unwrap_or_default().trim().to_owned();
    let mut head = String::new();
    for line in lines.filter(|line| !line.trim().is_empty()) {
        let is_length = is_request && line.to_ascii_lowercase().starts_with("content-length:");
        if !is_length {
            head.push_str(&line.replace("\\,", ","));
            head.push_str("\r\n");
        }
    }
    (first, head)
}

fn message_request(blocks: &[String]) -> Result<Request, String> {
    let (first, head) = wire_head(blocks.first().ok_or("the request has no block")?, true);
    // Versions such as HTTP/2 are none that a head of HTTP/1 may have.
    let mut words = first.split(' ');
    let (method, url) = (words.next().unwrap_or_default(), words.next().unwrap_or("/"));
    let wire = format!("{method} {url} HTTP/1.1\r\n{head}\r\n");
    let mut request = http1::request(wire.as_bytes())?;
    if let Some((scheme, _)) = url.split_once("://") {
        request.scheme = Scheme::of(scheme).unwrap_or_default();
    }
    request.body = body(blocks.get(1), request.header("content-type"));
    Ok(request)
}

fn message_response(blocks: &[String]) -> Result<Response, String> {
    let (first, head) = wire_head(blocks.first().map_or("", String::as_str), true);
    let status =
        first.split(' ').find(|word| word.len() == 3 && word.bytes().all(|byte| byte.is_ascii_digit()));
    let wire = format!("HTTP/1.1 {} x\r\n{head}\r\n", status.ok_or("the response has no status")?);
    let mut response = http1::response(wire.as_bytes())?;
    let body = body(blocks.get(1), response.header("content-type"));
    response.set_body(body);
    Ok(response)
}

/// JSON is indented for people to read; it was sent compact.
fn body(block: Option<&String>, content_type: Option<&[u8]>) -> Vec<u8> {
    let Some(text) = block else { return Vec::new() };
    let is_json = content_type.is_some_and(|kind| String::from_utf8_lossy(kind).contains("json"));
    match is_json.then(|| compact(text)).flatten() {
        Some(json) => json.into_bytes(),
        None => text.clone().into_bytes(),
    }
}

/// JSON without the white space between its parts; the parts stay as they are written.
fn compact(text: &str) -> Option<String> {
    serde_json::from_str::<serde::de::IgnoredAny>(text).ok()?;
    let (mut out, mut in_string, mut is_escaped) = (String::with_capacity(text.len()), false, false);
    for c in text.chars() {
        if in_string || !c.is_ascii_whitespace() {
            out.push(c);
        }
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' if in_string => is_escaped = true,
            '"' => in_string = !in_string,
            _ => {}
        }
    }
    Some(out)
}

/// Folders in folders that are looked into.
const FOLDER_DEPTH_MAX: u32 = 4;

#[cfg(test)]
mod tests {
    use super::super::Format;
    use super::super::tests::{all, good};
    use crate::Source;

    const PAIR: &str = "### REQUEST ###\n```\nPOST https://x.example/v1/a?b=c HTTP/2\nAccept: a\\, b\nContent-Type: application/json\n```\n\n```\n{\n  \"a\": \"x y\",\n  \"b\": [1, 2]\n}\n```\n### RESPONSE ###\n```\nHTTP/1.1 201 Created\nContent-Type: text/plain\n```\n```\nok\n```\n### SIGNATURE ###\n```\nhttp:host is x\n```\n### METADATA ###\n```\ndirection: IN\nts: 2024-05-01T10:00:00.123456789Z\nduration: 155ms\ntags: session=s1, k=v\n```\n";

    #[test]
    fn a_file_is_a_pair() {
        let records = good(Format::RrpairText, PAIR.into());
        let request = &records[0].request;
        assert_eq!(
            (request.url().as_str(), request.body.as_slice()),
            ("https://x.example/v1/a?b=c", &br#"{"a":"x y","b":[1,2]}"#[..])
        );
        assert_eq!(request.header("accept"), Some(&b"a, b"[..]));
        let response = records[0].response.as_ref().unwrap();
        assert_eq!((response.status, response.latency_ns, response.body_bytes), (201, 155_000_000, 2));
        assert!(records[0].session != 0);
    }

    #[test]
    fn files_without_a_request_say_so() {
        for text in ["", "### REQUEST ###\n", &PAIR.replace("ts:", "at:"), &PAIR.replace("POST", "\u{1}")] {
            assert_eq!(all(Format::RrpairText, text.into()).1.len(), 1, "{text}");
        }
    }

    #[test]
    fn a_folder_has_pairs_as_markdown_and_as_json() {
        let folder = tempfile::tempdir().unwrap();
        let json =
            r#"{"ts":"2024-05-01T10:00:00Z","http":{"req":{"method":"GET","url":"/json","host":"x"}}}"#;
        for (name, text) in [("a.md", PAIR), ("b.json", json), ("c.json", "{"), ("d.txt", "no pair")] {
            std::fs::write(folder.path().join(name), text).unwrap();
        }
        let mut source = super::Folder::open(folder.path()).unwrap();
        let targets: Vec<_> = (0..2).map(|_| source.next().unwrap().unwrap().request.target).collect();
        assert_eq!(targets, ["/v1/a?b=c", "/json"]);
        let problem = source.next().unwrap_err();
        assert!(problem.reason.contains("c.json") && problem.place.record == 3, "{problem}");
        assert_eq!(source.next(), Ok(None));
    }
}
