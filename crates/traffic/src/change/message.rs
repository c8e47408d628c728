//! Messages with places for what differs between them: `{"user": "u{user}", "id": {unique}}`.
//!
//! Owns: what is a place in a message, which may be JSON or no text at all. Never: which connection sends it.

use squall_plan::{InputError, MessagePayload};

use super::template::{Part, Table};
use super::{Context, refused};

/// A message that is filled in each time it is sent.
#[derive(Debug)]
pub struct MessageTemplate {
    parts: Vec<MessagePart>,
    table: Table,
}

#[derive(Debug)]
enum MessagePart {
    Bytes(Vec<u8>),
    /// The time of sending.
    Stamp,
    Place(Part),
}

impl MessageTemplate {
    /// Reads a message. A brace that no name follows is a brace, so that JSON needs no other spelling; `{{name}` is the text `{name}`.
    /// `table`: CSV whose first row has the names of columns; each user has a row.
    ///
    /// # Errors
    /// When a name is none, or is no column of the table.
    pub fn read(bytes: &[u8], table: Option<&str>) -> Result<Self, InputError> {
        let table = table.map(|text| Table::read(text, false)).transpose()?.unwrap_or_default();
        let template = Self { parts: parts(bytes)?, table };
        for part in &template.parts {
            if let MessagePart::Place(part) = part {
                part.check(&template.table)?;
            }
        }
        Ok(template)
    }

    /// Its text, where it is the same each time.
    pub fn fixed(&self) -> Option<&[u8]> {
        match &self.parts[..] {
            [] => Some(&[]),
            [MessagePart::Bytes(bytes)] => Some(bytes),
            _ => None,
        }
    }

    /// Whether the time of sending is in it.
    pub fn has_stamp(&self) -> bool {
        self.parts.iter().any(|part| matches!(part, MessagePart::Stamp))
    }

    /// Appends the message.
    pub fn fill(&self, context: &Context<'_>, stamp: &[u8], out: &mut Vec<u8>) {
        for part in &self.parts {
            match part {
                MessagePart::Bytes(bytes) => out.extend_from_slice(bytes),
                MessagePart::Stamp => out.extend_from_slice(stamp),
                MessagePart::Place(part) => out.extend_from_slice(part.fill(&self.table, context).as_bytes()),
            }
        }
    }
}

/// Whether a message can be read, whatever columns it names.
///
/// # Errors
/// When it has a name that is none.
pub fn check_message(bytes: &[u8]) -> Result<(), InputError> {
    parts(bytes).map(drop)
}

fn parts(bytes: &[u8]) -> Result<Vec<MessagePart>, InputError> {
    let (mut parts, mut text, mut rest) = (Vec::new(), Vec::new(), bytes);
    while let Some(at) = memchr::memchr(b'{', rest) {
        text.extend_from_slice(&rest[..at]);
        let behind = &rest[at + 1..];
        match (name_of(behind), behind.strip_prefix(b"{")) {
            (Some(name), _) => {
                let column =
                    String::from_utf8_lossy(&bytes[..bytes.len() - behind.len() - 1]).chars().count() + 1;
                let place = place(name).map_err(|error| InputError { column, ..error })?;
                parts.extend((!text.is_empty()).then(|| MessagePart::Bytes(std::mem::take(&mut text))));
                parts.push(place);
                rest = &behind[name.len() + 1..];
            }
            (None, Some(escaped)) if name_of(escaped).is_some() => {
                text.push(b'{');
                rest = escaped;
            }
            _ => {
                text.push(b'{');
                rest = behind;
            }
        }
    }
    text.extend_from_slice(rest);
    parts.extend((!text.is_empty()).then_some(MessagePart::Bytes(text)));
    Ok(parts)
}

/// What stands before a closing brace, if it can be a name.
fn name_of(behind: &[u8]) -> Option<&str> {
    let end = behind.iter().take(NAME_BYTES_MAX).position(|byte| *byte == b'}')?;
    let name = std::str::from_utf8(&behind[..end]).ok()?;
    let is_word = |text: &str| text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    let is_column = name.strip_prefix("csv.").is_some_and(|column| !column.contains(['{', '"', '\n']));
    (is_column || name.starts_with(|first: char| first.is_ascii_lowercase()) && is_word(name)).then_some(name)
}

fn place(name: &str) -> Result<MessagePart, InputError> {
    let is_stamp = MessagePayload::STAMP.trim_matches(['{', '}']) == name;
    match Part::of(name) {
        _ if is_stamp => Ok(MessagePart::Stamp),
        // No recording numbers messages.
        Ok(Part::Record) | Err(_) => {
            let help = format!(
                "names are {{user}}, {{unique}}, {{stamp}}, {{now_ms}}, {{now_s}} and {{csv.COLUMN}}; for the text `{{{name}}}` write `{{{{{name}}}`"
            );
            Err(refused(format!("no such name: `{{{name}}}`"), &help))
        }
        Ok(part) => Ok(MessagePart::Place(part)),
    }
}

/// No name in a message is longer, in bytes.
const NAME_BYTES_MAX: usize = 128;

#[cfg(test)]
mod tests {
    use super::*;

    const CONTEXT: Context<'_> = Context {
        user: 1,
        round: 0,
        ordinal: 0,
        unique: 7,
        recorded_ns: 0,
        now_ns: 5_000_000_000,
        live: None,
    };

    fn filled(text: &str) -> String {
        let template = MessageTemplate::read(text.as_bytes(), Some("name,full name\nann,Ann A\nbob,Bob B\n"));
        let mut out = Vec::new();
        template.unwrap().fill(&CONTEXT, b"<stamp>", &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn places_are_filled_and_other_braces_are_text() {
        for (text, expected) in [
            ("u{user} {unique}", "u2 7"),
            ("42[\"chat\",\"{stamp}\"]", "42[\"chat\",\"<stamp>\"]"),
            ("{\"a\":{\"b\":{unique}},\"t\":{now_ms},\"s\":{now_s}}", "{\"a\":{\"b\":7},\"t\":5000,\"s\":5}"),
            ("{csv.name}/{csv.full name}", "bob/Bob B"),
            ("{{user} {{stamp}", "{user} {stamp}"),
            ("{{\"a\":1}} {} { {3} {User} é{user}", "{{\"a\":1}} {} { {3} {User} é2"),
            ("", ""),
        ] {
            assert_eq!(filled(text), expected, "{text}");
        }
    }

    #[test]
    fn what_is_the_same_each_time_needs_no_filling() {
        let read = |text: &[u8]| MessageTemplate::read(text, None).unwrap();
        assert_eq!(read(b"{\"a\":1}").fixed(), Some(&b"{\"a\":1}"[..]));
        assert_eq!(read(b"{{user}").fixed(), Some(&b"{user}"[..]));
        assert_eq!(read(b"\xff{\xfe").fixed(), Some(&b"\xff{\xfe"[..]));
        assert_eq!(read(b"").fixed(), Some(&b""[..]));
        assert_eq!((read(b"{stamp}").fixed(), read(b"{stamp}").has_stamp()), (None, true));
        assert_eq!((read(b"\xff{user}").fixed(), read(b"{user}").has_stamp()), (None, false));
    }

    #[test]
    fn unknown_names_and_columns_are_named_with_their_place() {
        for (text, table, column, reason) in [
            ("é{usr}", None, 2, "no such name: `{usr}`"),
            ("{record}", None, 1, "no such name: `{record}`"),
            ("{csv.name}", None, 1, "`{csv.name}` without a table"),
            ("{csv.nmae}", Some("name\nann\n"), 1, "no column `nmae` in the table"),
            ("x", Some("name\n"), 1, "the table has no rows"),
        ] {
            let error = MessageTemplate::read(text.as_bytes(), table).unwrap_err();
            assert_eq!((error.column, error.reason.as_str()), (column, reason), "{text}");
        }
        assert!(check_message(b"{csv.name}").is_ok());
    }
}
