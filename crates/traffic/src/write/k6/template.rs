//! Texts of a script that have variables in them, each encoded as its place requires.
//!
//! Owns: how a value is marked while its place is found, and what JavaScript becomes of the mark.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use crate::play::{Grammar, Live};
use crate::write::sink::lossless;

/// A value of the script.
pub(super) struct Variable {
    /// What the script calls it.
    pub(super) name: String,
    /// A number of JSON, which is a string where it is redacted.
    pub(super) is_number: bool,
}

/// Makes JavaScript of the texts of a request.
#[derive(Clone, Copy)]
pub(super) struct Text<'a> {
    pub(super) variables: &'a [Variable],
    /// Marks of the values, by what was recorded.
    pub(super) live: &'a Live,
}

/// What stands for a value until the text is made.
pub(super) fn mark(idx: usize) -> Vec<u8> {
    format!("{MARK}{idx}{MARK}").into_bytes()
}

impl Text<'_> {
    /// A string, or a template that has the variables in it.
    pub(super) fn expression(self, bytes: &[u8], grammar: Grammar) -> String {
        let Some(marked) = self.marked(bytes, grammar) else {
            return Value::from(lossless(bytes)).to_string();
        };
        let mut out = "`".to_owned();
        self.pieces(&lossless(&marked), grammar, &mut |piece| {
            out.push_str(&match piece {
                Piece::Text(text) => template_text(text),
                Piece::Value(value) => format!("${{{value}}}"),
            });
        });
        out + "`"
    }

    /// The bytes of a body that is no text, such as an upload with a token among its fields.
    pub(super) fn bytes(self, bytes: &[u8]) -> String {
        let base64 = |bytes: &[u8]| format!("encoding.b64decode('{}')", STANDARD.encode(bytes));
        let Some(marked) = self.marked(bytes, Grammar::Plain) else { return base64(bytes) };
        // As Latin-1 each byte is a character, so the pieces lead back to the bytes.
        let marked: String = marked.iter().map(|byte| char::from(*byte)).collect();
        let mut parts = Vec::new();
        self.pieces(&marked, Grammar::Plain, &mut |piece| match piece {
            Piece::Text("") => {}
            Piece::Text(text) => parts.push(base64(&text.chars().map(|c| c as u8).collect::<Vec<u8>>())),
            Piece::Value(value) => parts.push(value),
        });
        format!("bytes([{}])", parts.join(", "))
    }

    /// With marks where values stand; `None` where there are none.
    fn marked(self, bytes: &[u8], grammar: Grammar) -> Option<Vec<u8>> {
        let mut marked = bytes.to_vec();
        self.live.put_in(&mut marked, grammar).then_some(marked)
    }

    fn pieces(self, marked: &str, grammar: Grammar, give: &mut dyn FnMut(Piece<'_>)) {
        let mut rest = marked;
        while let Some((begin, encoded)) = next_mark(rest) {
            let sign = encoded.sign();
            let Some((idx, mut after)) = rest[begin + sign.len()..].split_once(sign) else { break };
            let Some(variable) = idx.parse().ok().and_then(|idx: usize| self.variables.get(idx)) else {
                break;
            };
            let mut before = &rest[..begin];
            let mut value = encoded.call(grammar, &variable.name);
            if variable.is_number
                && let (Some(unquoted), Some(behind)) = (before.strip_suffix('"'), after.strip_prefix('"'))
            {
                (before, after) = (unquoted, behind);
                value = json_number(&variable.name);
            }
            give(Piece::Text(before));
            give(Piece::Value(value));
            rest = after;
        }
        give(Piece::Text(rest));
    }
}

/// A part of a text.
enum Piece<'a> {
    Text(&'a str),
    /// JavaScript that gives a value.
    Value(String),
}

/// How a mark was encoded, which says how its value must be.
#[derive(Clone, Copy)]
enum Encoded {
    Not,
    Once,
    Twice,
    Json,
}

impl Encoded {
    const ALL: [Self; 4] = [Self::Not, Self::Once, Self::Twice, Self::Json];

    /// What surrounds a variable's number; no text of HTTP has it.
    const fn sign(self) -> &'static str {
        match self {
            Self::Not => MARK,
            Self::Once => "%01",
            Self::Twice => "%2501",
            Self::Json => "\\u0001",
        }
    }

    fn call(self, grammar: Grammar, name: &str) -> String {
        match self {
            Self::Not if grammar == Grammar::Xml => {
                format!("{name}.replace(/[&<>\"]/g, (c) => `&#${{c.charCodeAt(0)}};`)")
            }
            Self::Not => name.to_owned(),
            Self::Once => format!("encodeURIComponent({name})"),
            Self::Twice => format!("encodeURIComponent(encodeURIComponent({name}))"),
            Self::Json => format!("JSON.stringify({name}).slice(1, -1)"),
        }
    }
}

fn next_mark(text: &str) -> Option<(usize, Encoded)> {
    let found = Encoded::ALL.into_iter().filter_map(|encoded| Some((text.find(encoded.sign())?, encoded)));
    found.min_by_key(|(begin, _)| *begin)
}

/// The number itself, as long as it is one this time.
fn json_number(name: &str) -> String {
    format!("/^-?\\d+(\\.\\d+)?$/.test({name}) ? {name} : JSON.stringify({name})")
}

/// Text within a template: as in a string, but for what begins an expression or ends it.
fn template_text(text: &str) -> String {
    let quoted = Value::from(text).to_string();
    quoted[1..quoted.len() - 1].replace("\\\"", "\"").replace('`', "\\`").replace("${", "\\${")
}

const MARK: &str = "\u{1}";
