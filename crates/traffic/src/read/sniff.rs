//! Which format a file has, by its content; and why a file cannot be opened.

use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use super::log_presets;
use crate::input::Input;
use crate::store::MAGIC;

/// The formats that can be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Format {
    /// HAR 1.2, of browsers and proxies.
    Har,
    /// GoReplay.
    Gor,
    /// Speedscale's pairs as JSON lines.
    RrpairJson,
    /// Speedscale's pairs as markdown.
    RrpairText,
    /// A web server's log.
    AccessLog,
    /// mitmproxy's flows.
    Mitmproxy,
    /// curl commands.
    Curl,
    /// Postman collection.
    Postman,
    /// Squall's own.
    Squall,
}

/// A recording that cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The system refused.
    #[error("cannot read `{}`: {source}", path.display())]
    Os {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Nobody can tell what it is.
    #[error("cannot tell the format of `{}`: {reason}", path.display())]
    Unknown {
        /// The file.
        path: PathBuf,
        /// Why not.
        reason: Unrecognized,
    },
    /// A folder without files of pairs.
    #[error("no RRPair file (*.md, *.json) in the folder `{}`", path.display())]
    EmptyFolder {
        /// The folder.
        path: PathBuf,
    },
}

/// Why the format of a file is unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unrecognized {
    /// There is nothing in it.
    #[error("it is empty")]
    Empty,
    /// It begins with the byte order mark of UTF-16.
    #[error("it is UTF-16")]
    Utf16,
    /// Its beginning is that of no format.
    #[error("its content matches no known format")]
    Content,
}

impl OpenError {
    pub(crate) fn io(path: &Path, source: io::Error) -> Self {
        Self::Os { path: path.to_owned(), source }
    }

    /// What to do about it.
    pub fn help(&self) -> String {
        match self {
            Self::Os { .. } => "check the path and its permissions".to_owned(),
            Self::Unknown { reason: Unrecognized::Utf16, .. } => {
                "convert it: `iconv -f UTF-16 -t UTF-8 FILE`".to_owned()
            }
            Self::Unknown { reason: Unrecognized::Empty | Unrecognized::Content, .. } => {
                let names: Vec<&str> = Format::ALL.iter().map(|format| format.name()).collect();
                format!("name the format with --format: {}", names.join(", "))
            }
            Self::EmptyFolder { .. } => "name a recording, or a folder of RRPair files".to_owned(),
        }
    }
}

impl Format {
    /// Every one.
    pub const ALL: [Self; 9] = [
        Self::Har,
        Self::Gor,
        Self::RrpairJson,
        Self::RrpairText,
        Self::AccessLog,
        Self::Mitmproxy,
        Self::Curl,
        Self::Postman,
        Self::Squall,
    ];

    /// As typed after `--format`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Har => "har",
            Self::Gor => "gor",
            Self::RrpairJson => "rrpair",
            Self::RrpairText => "rrpair-md",
            Self::AccessLog => "log",
            Self::Mitmproxy => "mitmproxy",
            Self::Curl => "curl",
            Self::Postman => "postman",
            Self::Squall => "squall",
        }
    }
}

impl FromStr for Format {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL
            .into_iter()
            .find(|format| format.name() == text)
            .ok_or_else(|| format!("no format `{text}`"))
    }
}

/// Looks at the beginning of a file.
pub(super) fn format_of(path: &Path, input: &mut Input, has_log_pattern: bool) -> Result<Format, OpenError> {
    let start = input.fill().map_err(|error| OpenError::io(path, error))?;
    let unknown = |reason: Unrecognized| OpenError::Unknown { path: path.to_owned(), reason };
    if has_log_pattern {
        return Ok(Format::AccessLog);
    }
    if start.is_empty() {
        return Err(unknown(Unrecognized::Empty));
    }
    if start.starts_with(&[0xff, 0xfe]) || start.starts_with(&[0xfe, 0xff]) {
        return Err(unknown(Unrecognized::Utf16));
    }
    guess(start).ok_or_else(|| unknown(Unrecognized::Content))
}

fn guess(start: &[u8]) -> Option<Format> {
    let text = String::from_utf8_lossy(start);
    let text = text.trim_start();
    let first_line = text.lines().next().unwrap_or_default();
    match () {
        () if start.starts_with(MAGIC) => Some(Format::Squall),
        () if text.starts_with('{') => json(text),
        () if is_gor(first_line) => Some(Format::Gor),
        () if is_tnetstring(first_line) => Some(Format::Mitmproxy),
        () if text.starts_with("### REQUEST ###") || text.contains("\n### REQUEST ###") => {
            Some(Format::RrpairText)
        }
        () if text.lines().take(20).any(|line| line.trim_start().starts_with("curl ")) => Some(Format::Curl),
        () if log_presets::name_of(text).is_some() => Some(Format::AccessLog),
        () if first_line.contains('[') && first_line.contains("] \"") => Some(Format::AccessLog),
        () => None,
    }
}

fn json(text: &str) -> Option<Format> {
    let has = |words: &[&str]| words.iter().any(|word| text.contains(word));
    match () {
        () if has(&["\"msgType\"", "\"l7protocol\""]) => Some(Format::RrpairJson),
        () if has(&["\"_postman_id\"", "schema.getpostman.com", "\"item\""]) && !has(&["\"entries\""]) => {
            Some(Format::Postman)
        }
        () if log_presets::name_of(text).is_some() => Some(Format::AccessLog),
        () if has(&["\"log\""]) => Some(Format::Har),
        () => None,
    }
}

fn is_gor(line: &str) -> bool {
    let mut words = line.split(' ');
    let kind = words.next().is_some_and(|word| matches!(word, "1" | "2" | "3"));
    let id =
        words.next().is_some_and(|word| word.len() >= 8 && word.bytes().all(|byte| byte.is_ascii_hexdigit()));
    kind && id
        && words.next().is_some_and(|word| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit()))
}

fn is_tnetstring(line: &str) -> bool {
    line.split_once(':').is_some_and(|(digits, rest)| {
        (1..=12).contains(&digits.len())
            && digits.bytes().all(|byte| byte.is_ascii_digit())
            && rest.starts_with(|c: char| c.is_ascii_digit())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_beginning_tells_the_format() {
        for (text, format) in [
            ("{\"log\": {\"version\"", Some(Format::Har)),
            ("1 aeb496b6165db3fad05c89b8 1611642131487022000 405000\nGET", Some(Format::Gor)),
            ("{\"msgType\":\"rrpair\"", Some(Format::RrpairJson)),
            ("### REQUEST ###\n```", Some(Format::RrpairText)),
            ("1.2.3.4 - - [26/Jan/2021:06:28:51 +0000] \"GET / HTTP/1.1\" 200 1", Some(Format::AccessLog)),
            ("1234:4:type;4:http;", Some(Format::Mitmproxy)),
            ("# note\ncurl http://x", Some(Format::Curl)),
            ("{\"info\":{\"_postman_id\":1}}", Some(Format::Postman)),
            ("SQUALLTR\0", Some(Format::Squall)),
            ("hello", None),
            ("{}", None),
            ("\u{0}", None),
        ] {
            assert_eq!(guess(text.as_bytes()), format, "{text}");
        }
    }
}
