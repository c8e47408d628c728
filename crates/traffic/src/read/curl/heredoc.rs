//! Here-documents of a POSIX shell: the lines behind a command that are its standard input (POSIX 2.7.4).

use std::iter::Peekable;
use std::str::Chars;

/// What follows `<<`: how its text ends, and what is replaced in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Heredoc {
    delimiter: String,
    /// A part of the delimiter is quoted: the text is taken as it is written.
    is_literal: bool,
    /// `<<-`: tabs before each line do not count.
    drops_tabs: bool,
}

impl Heredoc {
    /// Reads the rest of `<<WORD` behind its first `<`; `None`, and nothing is read, where it is something else.
    pub(super) fn read(chars: &mut Peekable<Chars<'_>>) -> Option<Self> {
        let mut rest = chars.clone();
        rest.next_if_eq(&'<')?;
        let drops_tabs = rest.next_if_eq(&'-').is_some();
        while rest.next_if(|c| matches!(c, ' ' | '\t')).is_some() {}
        // Not a here-string, and no shift of numbers.
        let begins_word = |c: &char| c.is_alphabetic() || matches!(c, '_' | '\'' | '"' | '\\');
        rest.peek().copied().filter(begins_word)?;
        let (delimiter, is_literal) = delimiter(&mut rest);
        *chars = rest;
        Some(Self { delimiter, is_literal, drops_tabs })
    }

    /// Whether this is the line behind its text.
    pub(super) fn ends_with(&self, line: &str) -> bool {
        self.without_tabs(line) == self.delimiter
    }

    /// Reads its text, up to the line with the delimiter or the end.
    pub(super) fn text(&self, chars: &mut Peekable<Chars<'_>>, has_variables: &mut bool) -> String {
        let mut text = String::new();
        while chars.peek().is_some() {
            let line: String = chars.by_ref().take_while(|c| *c != '\n').collect();
            if self.ends_with(&line) {
                break;
            }
            text.push_str(self.without_tabs(&line));
            text.push('\n');
        }
        if self.is_literal { text } else { unescaped(&text, has_variables) }
    }

    fn without_tabs<'l>(&self, line: &'l str) -> &'l str {
        if self.drops_tabs { line.trim_start_matches('\t') } else { line }
    }
}

/// A word, and whether a part of it is quoted.
fn delimiter(chars: &mut Peekable<Chars<'_>>) -> (String, bool) {
    let (mut word, mut is_quoted) = (String::new(), false);
    while let Some(c) = chars.next_if(|c| !matches!(c, ' ' | '\t' | '\n' | ';' | '|' | '&' | '<' | '>')) {
        is_quoted |= matches!(c, '\'' | '"' | '\\');
        match c {
            '\'' | '"' => word.extend(chars.by_ref().take_while(|one| *one != c)),
            '\\' => word.extend(chars.next()),
            c => word.push(c),
        }
    }
    (word, is_quoted)
}

/// What is left when the shell has taken off the backslashes that escape something here. Variables are left as they are written.
fn unescaped(text: &str, has_variables: &mut bool) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match (c, chars.peek().copied()) {
            ('\\', Some('\n')) => drop(chars.next()),
            ('\\', Some('$' | '`' | '\\')) => out.extend(chars.next()),
            ('$', Some(next)) => {
                *has_variables |= next.is_ascii_alphabetic() || matches!(next, '_' | '{' | '(');
                out.push(c);
            }
            _ => {
                *has_variables |= c == '`';
                out.push(c);
            }
        }
    }
    out
}
