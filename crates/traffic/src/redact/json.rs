//! Secrets of JSON: strings and numbers by the names of their fields, and of the objects and lists around them.
//!
//! Read byte by byte and not parsed, so that everything that is no secret stays as it is, and several texts may follow one another.

use std::ops::Range;

use squall_plan::secret::Secrecy;

use super::find::{DEPTH_MAX, Edits, Finder, applied};
use super::values::{PLACEHOLDER, REDACTED_NUMBER};

/// An object or list that is open.
struct Level {
    is_object: bool,
    /// What it inherits from the name that it has.
    secrecy: Secrecy,
    /// Its field that is read.
    name: String,
    /// Its element that is read.
    idx: usize,
    /// A name comes next.
    wants_name: bool,
}

impl Level {
    fn new(is_object: bool, secrecy: Secrecy) -> Self {
        Self { is_object, secrecy, name: String::new(), idx: 0, wants_name: is_object }
    }
}

impl Finder<'_> {
    /// A JSON text, or several.
    pub(super) fn json(&mut self, text: &str, depth: u8) -> Option<String> {
        let bytes = text.as_bytes();
        let mut edits = Edits::new();
        let mut levels: Vec<Level> = Vec::new();
        let mut at = 0;
        while let Some(byte) = bytes.get(at) {
            match byte {
                b'{' | b'[' => levels.push(Level::new(*byte == b'{', self.secrecy_here(&levels, true))),
                b'}' | b']' => drop(levels.pop()),
                b',' => {
                    if let Some(level) = levels.last_mut() {
                        (level.idx, level.wants_name) = (level.idx + 1, level.is_object);
                    }
                }
                b'"' => {
                    let Some(end) = string_end(bytes, at + 1) else { break };
                    let inside = at + 1..end;
                    match levels.last_mut().filter(|level| level.wants_name) {
                        Some(level) => {
                            (level.name, level.wants_name) = (unescaped(&text[inside]), false);
                        }
                        None => edits.extend(self.json_string(text, inside, &levels, depth)),
                    }
                    at = end;
                }
                b'-' | b'0'..=b'9' => {
                    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || b"+-.".contains(byte);
                    let end = at + bytes[at..].iter().take_while(|byte| is_part(byte)).count();
                    edits.extend(self.json_number(text, at..end, &levels));
                    at = end - 1;
                }
                _ => {}
            }
            at += 1;
        }
        applied(text, edits)
    }

    /// The secrecy of the value that is read; `is_outer`: of an object or a list.
    fn secrecy_here(&self, levels: &[Level], is_outer: bool) -> Secrecy {
        let Some(level) = levels.last() else { return Secrecy::No };
        if self.rules.has_paths()
            && self.rules.is_at(&place(levels).iter().map(String::as_str).collect::<Vec<_>>())
        {
            return Secrecy::Any;
        }
        if !level.is_object {
            return level.secrecy;
        }
        let own = self.rules.secrecy(&level.name, Secrecy::of(&level.name));
        // Whose credentials these are is no secret.
        let is_label = !is_outer && LABELS.iter().any(|label| level.name.eq_ignore_ascii_case(label));
        if is_label || self.rules.keeps(&level.name) { own } else { own.max(level.secrecy) }
    }

    fn json_string(
        &mut self,
        text: &str,
        inside: Range<usize>,
        levels: &[Level],
        depth: u8,
    ) -> Option<(Range<usize>, String)> {
        let secrecy = self.secrecy_here(levels, false);
        let value = unescaped(&text[inside.clone()]);
        if let Some(placeholder) = self.secret(secrecy, &value) {
            return Some((inside, placeholder));
        }
        let is_kept = levels.last().is_some_and(|level| self.rules.keeps(&level.name));
        if depth >= DEPTH_MAX || is_kept || value.len() < TEXT_BYTES_MIN {
            return None;
        }
        let inner = match value.trim_start().as_bytes().first()? {
            b'{' | b'[' => self.json(&value, depth + 1),
            _ => self.text(&value, depth + 1),
        }?;
        let quoted = serde_json::Value::String(inner).to_string();
        Some((inside, quoted[1..quoted.len() - 1].to_owned()))
    }

    /// A number becomes a string that says it was one.
    fn json_number(
        &mut self,
        text: &str,
        range: Range<usize>,
        levels: &[Level],
    ) -> Option<(Range<usize>, String)> {
        let secrecy = self.secrecy_here(levels, false);
        let placeholder = self.secret(secrecy, &text[range.clone()])?;
        let digits = placeholder.strip_prefix(PLACEHOLDER)?;
        Some((range, format!("\"{REDACTED_NUMBER}{digits}\"")))
    }
}

/// The names and indices that lead to the value that is read.
fn place(levels: &[Level]) -> Vec<String> {
    let segment = |level: &Level| if level.is_object { level.name.clone() } else { level.idx.to_string() };
    levels.iter().map(segment).collect()
}

/// Where the string ends that begins before `from`: its closing quote.
fn string_end(bytes: &[u8], from: usize) -> Option<usize> {
    let mut at = from;
    loop {
        at += memchr::memchr2(b'"', b'\\', bytes.get(at..)?)?;
        if bytes[at] == b'"' {
            return Some(at);
        }
        at += 2;
    }
}

/// What the inside of a string means; unchanged where it means nothing.
fn unescaped(inside: &str) -> String {
    match inside.contains('\\') {
        true => serde_json::from_str(&format!("\"{inside}\"")).unwrap_or_else(|_| inside.to_owned()),
        false => inside.to_owned(),
    }
}

/// Names of what goes with a secret.
const LABELS: &[&str] = &[
    "account",
    "email",
    "grant_type",
    "id",
    "kind",
    "login",
    "name",
    "provider",
    "realm",
    "scope",
    "type",
    "user",
    "user_name",
    "username",
];

/// A shorter string holds no named secret.
const TEXT_BYTES_MIN: usize = 8;
