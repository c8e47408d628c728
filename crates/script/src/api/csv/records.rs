//! Records of a table, as k6 reads them: RFC 4180, lines with `\n` or `\r\n`, empty lines passed over, as many fields in each record as in
//! the first.
//!
//! Not the `csv` crate: that one takes a quote within a field, and an open one at the end of a file, for text, where k6 has an error; it
//! ends a record at a lone `\r`, where k6 has a field; and k6 reads on when a script seeks in a file that was at its end.

use std::rc::Rc;

use memchr::memchr;

use super::super::fs::File;

/// Reads a file record by record.
#[derive(Debug)]
pub(super) struct Records {
    lines: Lines,
    delimiter: u8,
    /// Of every record; known once there is one.
    field_count: Option<usize>,
}

/// A line with its end, and how far it was read.
#[derive(Debug, Default)]
struct Line {
    bytes: Vec<u8>,
    offset: usize,
}

/// Fields as bytes, and whether the record ended with the last of them.
type Field = (Vec<u8>, bool);

impl Records {
    pub(super) fn new(file: Rc<File>, delimiter: u8) -> Self {
        // k6 takes NUL for an option that was not given.
        let delimiter = if delimiter == 0 { b',' } else { delimiter };
        Self { lines: Lines::new(file), delimiter, field_count: None }
    }

    /// The next record; none at the end of the file.
    pub(super) fn next(&mut self) -> Result<Option<Vec<String>>, String> {
        if matches!(self.delimiter, b'"' | b'\r' | b'\n' | 0x80..) {
            return Err("csv: invalid field or comment delimiter".to_owned());
        }
        let Some(line) = self.lines.next_filled() else { return Ok(None) };
        let first = self.lines.number;
        let mut fields = Vec::new();
        let outcome = self.read_fields(line, first, &mut fields);
        // As in k6, a first record that cannot be read counts with the fields that it has before that.
        let count = *self.field_count.get_or_insert(fields.len());
        self.field_count = self.field_count.filter(|count| *count > 0);
        outcome?;
        if count == fields.len() {
            Ok(Some(fields))
        } else {
            Err(format!("record on line {first}: wrong number of fields"))
        }
    }

    /// The fields of the record that begins with a line.
    fn read_fields(&mut self, mut line: Line, first: usize, fields: &mut Vec<String>) -> Result<(), String> {
        loop {
            let field = match line.rest().first() {
                Some(b'"') => self.quoted(&mut line),
                _ => self.plain(&mut line),
            };
            let (field, is_last) = field.map_err(|problem| {
                let at = format!("parse error on line {}, column {}", self.lines.number, line.offset + 1);
                let is_later = self.lines.number != first;
                let begin = if is_later { format!("record on line {first}; ") } else { String::new() };
                format!("{begin}{at}: {problem}")
            })?;
            fields.push(String::from_utf8_lossy(&field).into_owned());
            if is_last {
                return Ok(());
            }
        }
    }

    fn plain(&self, line: &mut Line) -> Result<Field, &'static str> {
        let rest = line.rest();
        let end = memchr(self.delimiter, rest);
        let field = end.map_or_else(|| rest.strip_suffix(b"\n").unwrap_or(rest), |end| &rest[..end]);
        if let Some(quote) = memchr(b'"', field) {
            line.offset += quote;
            return Err("bare \" in non-quoted-field");
        }
        let field = field.to_vec();
        line.offset += field.len() + 1;
        Ok((field, end.is_none()))
    }

    /// A field in quotes, which may go on over lines.
    fn quoted(&mut self, line: &mut Line) -> Result<Field, &'static str> {
        let mut field = Vec::new();
        line.offset += 1;
        loop {
            let rest = line.rest();
            let Some(quote) = memchr(b'"', rest) else {
                field.extend_from_slice(rest);
                line.offset = line.bytes.len();
                *line = self.lines.next().ok_or(OPEN_QUOTE)?;
                continue;
            };
            field.extend_from_slice(&rest[..quote]);
            match &rest[quote + 1..] {
                [] | [b'\n'] => return Ok((field, true)),
                [b'"', ..] => field.push(b'"'),
                [byte, ..] if *byte == self.delimiter => {
                    line.offset += quote + 2;
                    return Ok((field, false));
                }
                _ => {
                    line.offset += quote;
                    return Err(OPEN_QUOTE);
                }
            }
            line.offset += quote + 2;
        }
    }
}

impl Line {
    fn rest(&self) -> &[u8] {
        self.bytes.get(self.offset..).unwrap_or_default()
    }
}

/// Reads a file line by line, a block at a time: who else reads the same file goes on after the last block, as in k6.
#[derive(Debug)]
struct Lines {
    file: Rc<File>,
    buffer: Vec<u8>,
    /// Where the next line begins in the buffer.
    begin: usize,
    /// The file had no more when it was last asked.
    is_at_end: bool,
    /// Number of the last line, from 1.
    number: usize,
}

impl Lines {
    fn new(file: Rc<File>) -> Self {
        Self { file, buffer: Vec::new(), begin: 0, is_at_end: false, number: 0 }
    }

    /// The next line that is not empty.
    fn next_filled(&mut self) -> Option<Line> {
        std::iter::from_fn(|| self.next()).find(|line| line.bytes != b"\n")
    }

    /// The next line; its end is `\n`, or nothing where the file ends.
    fn next(&mut self) -> Option<Line> {
        let mut bytes = self.next_bytes()?;
        if bytes.ends_with(b"\r\n") {
            bytes.truncate(bytes.len() - 2);
            bytes.push(b'\n');
        } else if bytes.ends_with(b"\r") {
            bytes.pop();
        }
        if bytes.is_empty() {
            return None;
        }
        self.number += 1;
        Some(Line { bytes, offset: 0 })
    }

    fn next_bytes(&mut self) -> Option<Vec<u8>> {
        let mut searched = 0;
        loop {
            let pending = &self.buffer[self.begin..];
            if let Some(end) = memchr(b'\n', &pending[searched..]) {
                let line = pending[..=searched + end].to_vec();
                self.begin += line.len();
                return Some(line);
            }
            searched = pending.len();
            if std::mem::take(&mut self.is_at_end) {
                let rest = self.buffer.split_off(self.begin);
                (self.buffer, self.begin) = (Vec::new(), 0);
                return Some(rest).filter(|rest| !rest.is_empty());
            }
            self.fill();
        }
    }

    fn fill(&mut self) {
        self.buffer.drain(..self.begin);
        self.begin = 0;
        let count = BLOCK_BYTES - self.buffer.len() % BLOCK_BYTES;
        let block = self.file.take(count);
        self.is_at_end = block.len() < count;
        self.buffer.extend_from_slice(block);
    }
}

const OPEN_QUOTE: &str = "extraneous or missing \" in quoted-field";

/// k6's block.
const BLOCK_BYTES: usize = 4096;

#[cfg(test)]
mod tests {
    use super::super::super::fs::tests::file;
    use super::*;

    /// All records of a text, or the first problem.
    fn read(text: &str, delimiter: u8) -> String {
        let mut records = Records::new(file(text), delimiter);
        let mut all = Vec::new();
        loop {
            match records.next() {
                Ok(Some(record)) => all.push(record.join("|").replace('\n', "/")),
                Ok(None) => return all.join(" & "),
                Err(problem) => return problem,
            }
        }
    }

    #[test]
    fn records_are_those_of_k6() {
        for (text, expected) in [
            ("", ""),
            ("\n\r\n\n", ""),
            ("a,b", "a|b"),
            ("a,b\r", "a|b"),
            ("a,b\n\n1,2\r\n", "a|b & 1|2"),
            ("a,\n,\n\"\",\" \"\n", "a| & | & | "),
            ("x\r\ry\n", "x\r\ry"),
            ("1,\"x \"\"q\"\" y\",3", "1|x \"q\" y|3"),
            ("\"a,\r\nb\",c\n\"d\"\n", "record on line 3: wrong number of fields"),
            ("\"a,\r\n\r\nb\",c", "a,//b|c"),
            ("a\"b,c\n", "parse error on line 1, column 2: bare \" in non-quoted-field"),
            ("\"a\"b,c\n", "parse error on line 1, column 3: extraneous or missing \" in quoted-field"),
            (
                "x,y\n\"a,\nb",
                "record on line 2; parse error on line 3, column 2: extraneous or missing \" in quoted-field",
            ),
            (
                "x\r\ry\n\"a\n\nb\"c",
                "record on line 2; parse error on line 4, column 2: extraneous or missing \" in quoted-field",
            ),
            ("\"a\n", "parse error on line 1, column 4: extraneous or missing \" in quoted-field"),
            ("\u{feff}é,🦀", "\u{feff}é|🦀"),
        ] {
            assert_eq!(read(text, b','), expected, "{text:?}");
        }
        assert_eq!(read("a;\"b;\"\n", b';'), "a|b;");
        assert_eq!(read("a,b", 0), "a|b");
        assert_eq!(read("a", b'"'), "csv: invalid field or comment delimiter");
    }

    #[test]
    fn reading_goes_on_after_a_bad_record() {
        let mut records = Records::new(file("a,\"b\"c\nd,e\nf\n\"g\n\r"), b',');
        for expected in [
            Err("parse error on line 1, column 5: extraneous or missing \" in quoted-field"),
            Err("record on line 2: wrong number of fields"),
            Ok(Some("f")),
            Err("parse error on line 4, column 4: extraneous or missing \" in quoted-field"),
            Ok(None),
        ] {
            let record = records.next().map(|record| record.map(|fields| fields.join("|")));
            assert_eq!(record, expected.map(|text| text.map(str::to_owned)).map_err(str::to_owned));
        }
    }

    #[test]
    fn long_lines_and_many_blocks_come_whole() {
        for length in [1, 4095, 4096, 4097, 8191, 8192, 20_000] {
            let field = "x".repeat(length);
            let text = format!("{field},\"{field}\"\n{field},y");
            let expected = format!("{field}|{field} & {field}|y");
            assert!(read(&text, b',') == expected, "{length}");
        }
    }

    #[test]
    fn a_file_that_is_read_by_another_goes_on_after_the_block() {
        let file = file(&"a,b\n".repeat(2000));
        let mut records = Records::new(Rc::clone(&file), b',');
        assert!(records.next().is_ok_and(|record| record.is_some()));
        assert_eq!(file.take(usize::MAX).len(), 8000 - 4096);
        while records.next().is_ok_and(|record| record.is_some()) {}
    }
}
