//! The elements of one array in a JSON file of any size: only one element is in memory at a time.

use std::io;

use crate::input::Input;
use crate::limits::{RECORD_BYTES_MAX, SKIP_BYTES_MAX};
use crate::{Place, Problem};

/// Walks to an array below the file's outermost object, then through it.
pub(super) struct JsonItems {
    input: Input,
    /// Names of the objects that lead to the array, the array's own name last.
    path: &'static [&'static str],
    state: State,
    item_count: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Outside,
    Inside,
    Ended,
}

/// How a value ended.
enum Value {
    Whole,
    TooLong,
    CutOff,
}

impl JsonItems {
    pub(super) fn new(input: Input, path: &'static [&'static str]) -> Self {
        Self { input, path, state: State::Outside, item_count: 0 }
    }

    /// The next element's bytes in `out`, and where it begins; `None` at the array's end.
    pub(super) fn next(&mut self, out: &mut Vec<u8>) -> Result<Option<Place>, Problem> {
        out.clear();
        if self.state == State::Outside {
            self.find_array()?;
            self.state = State::Inside;
        }
        if self.state == State::Ended {
            return Ok(None);
        }
        match self.skip_space()? {
            Some(b']') => {
                self.state = State::Ended;
                return Ok(None);
            }
            Some(b',') => {
                self.input.consume(1);
                self.skip_space()?;
            }
            Some(_) => {}
            None => return Err(self.ended("inside the array")),
        }
        self.item_count += 1;
        let place = self.input.place(self.item_count);
        match self.value(out)? {
            // What ends something that was never begun would be found again for ever.
            Value::Whole if out.is_empty() && self.skip_space()? == Some(b'}') => {
                self.state = State::Ended;
                Err(Problem::fatal(place, "`}` where a value or the array's end was expected"))
            }
            Value::Whole => Ok(Some(place)),
            Value::TooLong => Err(Problem::record(place, format!("larger than {RECORD_BYTES_MAX} bytes"))),
            Value::CutOff => {
                self.state = State::Ended;
                Err(Problem::fatal(place, "the file ends inside it"))
            }
        }
    }

    pub(super) fn bytes_read(&self) -> u64 {
        self.input.byte()
    }

    fn find_array(&mut self) -> Result<(), Problem> {
        for name in self.path {
            self.expect(b'{')?;
            self.find_key(name)?;
        }
        self.expect(b'[')
    }

    /// Leaves the input before the value of the key.
    fn find_key(&mut self, wanted: &str) -> Result<(), Problem> {
        let mut key = Vec::new();
        let mut value = Vec::new();
        loop {
            match self.skip_space()? {
                Some(b',') => {
                    self.input.consume(1);
                    continue;
                }
                Some(b'"') => {}
                Some(_) => return Err(self.fatal(format!("no `{wanted}` in the object that begins above"))),
                None => return Err(self.ended(&format!("before `{wanted}`"))),
            }
            key.clear();
            let whole = self.value(&mut key)?;
            self.expect(b':')?;
            if matches!(whole, Value::Whole)
                && key.strip_prefix(b"\"").and_then(|k| k.strip_suffix(b"\"")) == Some(wanted.as_bytes())
            {
                return Ok(());
            }
            value.clear();
            if self.skip_space()?.is_none() || matches!(self.value(&mut value)?, Value::CutOff) {
                return Err(self.ended(&format!("before `{wanted}`")));
            }
        }
    }

    fn expect(&mut self, wanted: u8) -> Result<(), Problem> {
        match self.skip_space()? {
            Some(byte) if byte == wanted => {
                self.input.consume(1);
                Ok(())
            }
            Some(byte) => Err(self.fatal(format!(
                "`{}` was expected, not `{}`",
                char::from(wanted),
                char::from(byte).escape_default()
            ))),
            None => Err(self.ended(&format!("before a `{}`", char::from(wanted)))),
        }
    }

    /// The next byte that is no white space, not consumed.
    fn skip_space(&mut self) -> Result<Option<u8>, Problem> {
        let begin = self.input.byte();
        loop {
            let place = self.input.place(0);
            let chunk = self.input.fill().map_err(|error| Problem::io(place, &error))?;
            if chunk.is_empty() {
                return Ok(None);
            }
            let space = chunk.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
            let next = chunk.get(space).copied();
            self.input.consume(space);
            if next.is_some() {
                return Ok(next);
            }
            if self.input.byte() - begin > SKIP_BYTES_MAX {
                return Err(self.fatal("nothing but white space for 1 GiB".to_owned()));
            }
        }
    }

    /// Copies one value; it begins at the next byte.
    fn value(&mut self, out: &mut Vec<u8>) -> Result<Value, Problem> {
        let mut scan = Scan::default();
        let begin = self.input.byte();
        let place = self.input.place(self.item_count);
        let io = |error: io::Error| Problem::io(place, &error);
        loop {
            let chunk = self.input.fill().map_err(io)?;
            if chunk.is_empty() {
                return Ok(if scan.is_bare() { Value::Whole } else { Value::CutOff });
            }
            let (count, is_end) = scan.feed(chunk);
            if out.len() + count <= RECORD_BYTES_MAX {
                out.extend_from_slice(&chunk[..count]);
            }
            self.input.consume(count);
            let length = self.input.byte() - begin;
            if is_end {
                return Ok(if length > RECORD_BYTES_MAX as u64 { Value::TooLong } else { Value::Whole });
            }
            if length > SKIP_BYTES_MAX {
                return Err(Problem::fatal(place, "one value goes on for more than 1 GiB"));
            }
        }
    }

    fn ended(&self, what: &str) -> Problem {
        self.fatal(format!("the file ends {what}"))
    }

    fn fatal(&self, reason: String) -> Problem {
        Problem::fatal(self.input.place(0), reason)
    }
}

/// Finds where a JSON value ends, without looking at what it means.
#[derive(Default)]
pub(super) struct Scan {
    depth: u32,
    in_string: bool,
    is_escaped: bool,
    is_begun: bool,
}

impl Scan {
    /// How many bytes of `chunk` belong to the value, and whether it ends there.
    pub(super) fn feed(&mut self, chunk: &[u8]) -> (usize, bool) {
        for (at, byte) in chunk.iter().enumerate() {
            if self.in_string {
                match byte {
                    _ if self.is_escaped => self.is_escaped = false,
                    b'\\' => self.is_escaped = true,
                    b'"' => {
                        self.in_string = false;
                        if self.depth == 0 {
                            return (at + 1, true);
                        }
                    }
                    _ => {}
                }
                continue;
            }
            match byte {
                b'"' => self.in_string = true,
                b'{' | b'[' => self.depth += 1,
                b'}' | b']' if self.depth == 0 => return (at, self.is_begun || at == 0),
                b'}' | b']' => {
                    self.depth -= 1;
                    if self.depth == 0 {
                        return (at + 1, true);
                    }
                }
                b',' if self.depth == 0 => return (at, true),
                _ => {}
            }
            self.is_begun = true;
        }
        (chunk.len(), false)
    }

    /// Whether the value goes on.
    pub(super) fn is_open(&self) -> bool {
        self.depth > 0 || self.in_string
    }

    /// Whether the value may end with the file: a number or a word.
    fn is_bare(&self) -> bool {
        self.depth == 0 && !self.in_string && self.is_begun
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::of_bytes;

    fn items(text: &str) -> (Vec<String>, Option<Problem>) {
        let mut items = JsonItems::new(of_bytes(text.as_bytes()), &["log", "entries"]);
        let (mut found, mut out) = (Vec::new(), Vec::new());
        loop {
            match items.next(&mut out) {
                Ok(Some(_)) => found.push(String::from_utf8(out.clone()).unwrap()),
                Ok(None) => return (found, None),
                Err(problem) => return (found, Some(problem)),
            }
        }
    }

    #[test]
    fn what_ends_too_much_ends_the_file() {
        let (found, problem) = items(r#"{"log":{"entries":[1, 2}, 3]}}"#);
        assert!(found.len() == 2 && problem.is_some_and(|problem| problem.is_fatal));
    }

    #[test]
    fn elements_come_one_by_one() {
        let text = r#" {"a":[1,{"entries":[]}], "log" : {"version":"1.2","entries" : [ {"x":"]}\""} , 7,"s" ], "pages":[]}}"#;
        let (found, problem) = items(text);
        assert_eq!(
            found.iter().map(|item| item.trim()).collect::<Vec<_>>(),
            [r#"{"x":"]}\""}"#, "7", "\"s\""]
        );
        assert_eq!(problem, None);
    }

    #[test]
    fn what_ends_too_early_says_where() {
        for text in [
            "",
            "{",
            "{\"log\":{\"entries\":[{\"a\":1},\n{\"b",
            "[]",
            "{\"log\":{}}",
            "{\"log\":{\"entries\":[",
        ] {
            let (_, problem) = items(text);
            assert!(problem.is_some_and(|problem| problem.is_fatal), "{text}");
        }
    }
}
