//! Readers of foreign formats: each is a [`Source`] that gives one record after the other.
//!
//! `http1` reads messages as bytes on the wire, `json_items` the elements of an array in a JSON file of any size.

mod access_log;
mod curl;
mod files;
mod gor;
mod har;
pub(crate) mod http1;
mod json_items;
mod log_json;
mod log_line;
mod log_pattern;
mod log_presets;
mod mitm;
mod multipart;
mod notes;
mod postman;
mod rrpair;
mod rrpair_text;
mod sniff;
mod time;
mod w3c;

use std::collections::BTreeMap;
use std::path::Path;

use self::files::Files;
use crate::{Problem, Record, store};

pub use log_pattern::{LogPattern, PatternError};
pub use notes::Notes;
pub use postman::environment;
pub use sniff::{Format, OpenError, Unrecognized};

/// A recording that is read record by record.
pub trait Source {
    /// The next record, in the order of the file; `None` at its end.
    ///
    /// # Errors
    /// A [`Problem`] says what cannot be read and where. Unless it is fatal, `next` may be called again and goes on
    /// behind the bad record.
    fn next(&mut self) -> Result<Option<Record>, Problem>;

    /// What was odd but could be read or had to be left out, counted so far.
    fn notes(&self) -> &Notes;

    /// Bytes of the file that are read so far, for progress; after decompression.
    fn bytes_read(&self) -> u64;
}

/// How a recording is read.
#[derive(Debug, Clone, Default)]
pub struct ReadOptions {
    /// Its format; `None`: found out by its content.
    pub format: Option<Format>,
    /// How the lines of an access log are written; `None`: the combined format.
    pub log_pattern: Option<LogPattern>,
    /// Values of variables in a Postman collection, beyond its own.
    pub variables: BTreeMap<String, String>,
    /// Of a Postman collection the saved responses, each with its request, in place of the requests: what a mock answers.
    pub saved_responses: bool,
}

/// Opens a recording: a file, a folder (of RRPair files), or `-` for standard input.
///
/// # Errors
/// When it cannot be opened, or its format is unknown.
pub fn open(path: &Path, options: &ReadOptions) -> Result<Box<dyn Source>, OpenError> {
    if path.is_dir() {
        return Ok(Box::new(rrpair_text::Folder::open(path)?));
    }
    let mut input = crate::input::Input::open(path).map_err(|error| OpenError::io(path, error))?;
    let format = match options.format {
        Some(format) => format,
        None => sniff::format_of(path, &mut input, options.log_pattern.is_some())?,
    };
    Ok(reader(format, input, options, Files::next_to(path)))
}

/// A reader of this format on these bytes; used by the fuzz targets, too.
pub fn open_bytes(format: Format, bytes: Vec<u8>, options: &ReadOptions) -> std::io::Result<Box<dyn Source>> {
    let input = crate::input::Input::new(Box::new(std::io::Cursor::new(bytes)))?;
    Ok(reader(format, input, options, Files::default()))
}

fn reader(
    format: Format,
    input: crate::input::Input,
    options: &ReadOptions,
    files: Files,
) -> Box<dyn Source> {
    match format {
        Format::Har => Box::new(har::Har::new(input)),
        Format::Gor => Box::new(gor::Gor::new(input)),
        Format::RrpairJson => Box::new(rrpair::JsonLines::new(input)),
        Format::RrpairText => Box::new(rrpair_text::OneFile::new(input)),
        Format::AccessLog => {
            let mut input = input;
            // What cannot be read now cannot be read later either, and is reported then.
            let start = input.fill().unwrap_or_default();
            let guessed = || LogPattern::of_lines(&String::from_utf8_lossy(start));
            let pattern = options.log_pattern.clone().unwrap_or_else(guessed);
            Box::new(access_log::AccessLog::new(input, pattern))
        }
        Format::Mitmproxy => Box::new(mitm::Mitm::new(input)),
        Format::Curl => Box::new(curl::Curl::new(input, files)),
        Format::Postman => Box::new(postman::Postman::new(input, files, options)),
        Format::Squall => Box::new(store::Stream::new(input)),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Every record and every problem of a file.
    pub(crate) fn all(format: Format, bytes: Vec<u8>) -> (Vec<Record>, Vec<Problem>) {
        drain(open_bytes(format, bytes, &ReadOptions::default()).unwrap())
    }

    /// The records of a file in which nothing is wrong.
    pub(crate) fn good(format: Format, bytes: Vec<u8>) -> Vec<Record> {
        let (records, problems) = all(format, bytes);
        assert_eq!(problems, []);
        records
    }

    /// The records of an access log of this pattern.
    pub(crate) fn with_pattern(pattern: &str, text: &str) -> Vec<Record> {
        let log_pattern = Some(pattern.parse().unwrap());
        let options = ReadOptions { log_pattern, ..ReadOptions::default() };
        let (records, problems) = drain(open_bytes(Format::AccessLog, text.into(), &options).unwrap());
        assert_eq!(problems, []);
        records
    }

    fn drain(mut source: Box<dyn Source>) -> (Vec<Record>, Vec<Problem>) {
        let (mut records, mut problems) = (Vec::new(), Vec::new());
        loop {
            match source.next() {
                Ok(Some(record)) => records.push(record),
                Ok(None) => return (records, problems),
                Err(problem) if problem.is_fatal => {
                    problems.push(problem);
                    return (records, problems);
                }
                Err(problem) => problems.push(problem),
            }
        }
    }
}
