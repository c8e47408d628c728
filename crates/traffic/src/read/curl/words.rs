//! Splits a command line into words, as a POSIX shell or Windows' `cmd` does.
//!
//! Shells do more than libraries for word splitting know: browsers copy commands with `$'..'` and with `cmd`'s carets.

use std::iter::Peekable;
use std::str::Chars;

/// Which shell a command line is written for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shell {
    Posix,
    Cmd,
}

/// The commands of a line, each with its words.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) commands: Vec<Vec<String>>,
    /// It has variables or substitutions, which are left as they are written.
    pub(super) has_variables: bool,
}

impl Shell {
    /// The shell for which a command's first line is written.
    pub(super) fn of(line: &str) -> Self {
        // `cmd` has no single quotes: a text within them may hold and end with anything.
        let has_single_quotes = line.find(['\'', '"']).is_some_and(|at| line[at..].starts_with('\''));
        match !has_single_quotes && (line.contains("^\"") || line.ends_with('^')) {
            true => Self::Cmd,
            false => Self::Posix,
        }
    }

    /// Splits; `None` when a quote is open at the end.
    pub(super) fn split(self, text: &str) -> Option<Line> {
        match self {
            Self::Posix => posix(text),
            Self::Cmd => cmd(&without_carets(text)),
        }
    }
}

/// Finds the lines that belong to one command.
#[derive(Debug, Clone, Copy)]
pub(super) struct Joiner {
    shell: Shell,
    /// The quote that is open.
    open: Option<Quoting>,
    /// The line before ended with an escape.
    is_escaped: bool,
}

impl Joiner {
    pub(super) fn new(shell: Shell) -> Self {
        Self { shell, open: None, is_escaped: false }
    }

    /// Takes the next line; whether the command goes on behind it.
    pub(super) fn goes_on(&mut self, line: &str) -> bool {
        let escapes = |c: char| line.chars().rev().take_while(|one| *one == c).count() % 2 == 1;
        match self.shell {
            Shell::Posix => {
                self.open = quote_after(self.open, line);
                self.open.is_some() || escapes('\\')
            }
            Shell::Cmd => {
                // `cmd` takes what follows a caret literally: an empty line is a line end within the text.
                let is_line_end = self.is_escaped && line.is_empty();
                self.is_escaped = escapes('^');
                self.is_escaped || is_line_end
            }
        }
    }
}

/// The quote that is open behind a line, before which `open` was.
fn quote_after(mut open: Option<Quoting>, line: &str) -> Option<Quoting> {
    let mut is_word_start = true;
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        match (open, c) {
            (None, '#') if is_word_start => return None,
            (None | Some(Quoting::Weak | Quoting::AnsiC), '\\') => drop(chars.next()),
            (None, '\'') => open = Some(Quoting::Plain),
            (None, '"') => open = Some(Quoting::Weak),
            (None, '$') if chars.next_if_eq(&'\'').is_some() => open = Some(Quoting::AnsiC),
            (Some(Quoting::Plain | Quoting::AnsiC), '\'') | (Some(Quoting::Weak), '"') => open = None,
            _ => {}
        }
        is_word_start = c == ' ' || c == '\t';
    }
    open
}

/// The line as it is read: commands, and the word that is under way.
#[derive(Default)]
struct Words {
    line: Line,
    command: Vec<String>,
    word: Option<String>,
    /// The next word is the file of a redirection.
    is_redirect: bool,
}

impl Words {
    fn push(&mut self, c: char) {
        self.word.get_or_insert_default().push(c);
    }

    fn end_word(&mut self) {
        if let Some(word) = self.word.take()
            && !std::mem::take(&mut self.is_redirect)
        {
            self.command.push(word);
        }
    }

    fn end_command(&mut self) {
        self.end_word();
        self.is_redirect = false;
        if !self.command.is_empty() {
            self.line.commands.push(std::mem::take(&mut self.command));
        }
    }

    /// `>` and its like: `2>` has its number before it.
    fn redirect(&mut self) {
        if self.word.as_ref().is_some_and(|word| word.bytes().all(|byte| byte.is_ascii_digit())) {
            self.word = None;
        }
        self.end_word();
        self.is_redirect = true;
    }

    fn finish(mut self) -> Line {
        self.end_command();
        self.line
    }
}

fn posix(text: &str) -> Option<Line> {
    let mut words = Words::default();
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            ' ' | '\t' | '\r' => words.end_word(),
            '\n' | ';' | '|' => words.end_command(),
            '&' if words.is_redirect && words.word.is_none() => {}
            '&' if chars.peek().is_none_or(|next| matches!(next, '&' | ' ' | '\n')) => words.end_command(),
            '>' | '<' => words.redirect(),
            '#' if words.word.is_none() => while chars.next_if(|c| *c != '\n').is_some() {},
            '\'' => quoted(&mut chars, &mut words, Quoting::Plain)?,
            '"' => quoted(&mut chars, &mut words, Quoting::Weak)?,
            '$' if chars.next_if_eq(&'\'').is_some() => quoted(&mut chars, &mut words, Quoting::AnsiC)?,
            '$' | '`' => variable(c, &mut chars, &mut words)?,
            '\\' => match chars.next() {
                Some('\n') | None => {}
                Some(escaped) => words.push(escaped),
            },
            c => words.push(c),
        }
    }
    Some(words.finish())
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Quoting {
    /// `'..'`
    Plain,
    /// `".."`
    Weak,
    /// `$'..'`
    AnsiC,
}

fn quoted(chars: &mut Peekable<Chars<'_>>, words: &mut Words, quoting: Quoting) -> Option<()> {
    words.word.get_or_insert_default();
    let end = if quoting == Quoting::Weak { '"' } else { '\'' };
    loop {
        match chars.next()? {
            c if c == end => return Some(()),
            '\\' if quoting == Quoting::Weak => match chars.next()? {
                '\n' => {}
                c @ ('"' | '\\' | '$' | '`') => words.push(c),
                c => {
                    words.push('\\');
                    words.push(c);
                }
            },
            '\\' if quoting == Quoting::AnsiC => words.push(ansi_c(chars)?),
            c @ ('$' | '`') if quoting == Quoting::Weak => variable(c, chars, words)?,
            c => words.push(c),
        }
    }
}

/// The escape behind a backslash in `$'..'`.
fn ansi_c(chars: &mut Peekable<Chars<'_>>) -> Option<char> {
    Some(match chars.next()? {
        'n' => '\n',
        'r' => '\r',
        't' => '\t',
        'x' => hexadecimal(chars, 2),
        'u' => hexadecimal(chars, 4),
        'U' => hexadecimal(chars, 8),
        c => c,
    })
}

/// The character of that many digits, or fewer.
fn hexadecimal(chars: &mut Peekable<Chars<'_>>, digit_count: usize) -> char {
    let mut digits = String::new();
    while digits.len() < digit_count
        && let Some(digit) = chars.next_if(char::is_ascii_hexdigit)
    {
        digits.push(digit);
    }
    u32::from_str_radix(&digits, 16).ok().and_then(char::from_u32).unwrap_or('\u{fffd}')
}

/// A variable or a substitution, left as it is written.
fn variable(first: char, chars: &mut Peekable<Chars<'_>>, words: &mut Words) -> Option<()> {
    words.push(first);
    let is_name = |c: &char| c.is_ascii_alphabetic() || matches!(c, '_' | '{' | '(');
    let end = match (first, chars.peek().copied().filter(is_name)) {
        ('`', _) => '`',
        (_, None) => return Some(()),
        (_, Some('(')) => ')',
        (_, Some(_)) => {
            words.line.has_variables = true;
            return Some(());
        }
    };
    words.line.has_variables = true;
    let mut depth = 0;
    loop {
        let c = chars.next()?;
        words.push(c);
        depth += i32::from(c == '(');
        depth -= i32::from(c == ')');
        if c == end && depth <= 0 {
            return Some(());
        }
    }
}

/// What is left when `cmd` has read a line: carets escape outside of quotes, and join lines.
fn without_carets(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut is_quoted = false;
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '^' if !is_quoted => match chars.next() {
                // The line end goes, and what follows is literal, were it another one.
                Some('\n') => out.extend(chars.next()),
                escaped => out.extend(escaped),
            },
            c => {
                is_quoted ^= c == '"';
                out.push(c);
            }
        }
    }
    out
}

/// The words as a Windows program splits its command line: backslashes count before quotes alone.
fn cmd(text: &str) -> Option<Line> {
    let mut words = Words::default();
    let mut is_quoted = false;
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\\' => {
                let mut count = 1;
                while chars.next_if_eq(&'\\').is_some() {
                    count += 1;
                }
                let is_escape = chars.peek() == Some(&'"');
                (0..if is_escape { count / 2 } else { count }).for_each(|_| words.push('\\'));
                if is_escape && count % 2 == 1 {
                    words.push('"');
                    chars.next();
                }
            }
            '"' if is_quoted && chars.next_if_eq(&'"').is_some() => words.push('"'),
            '"' => {
                is_quoted = !is_quoted;
                words.word.get_or_insert_default();
            }
            ' ' | '\t' | '\n' | '\r' if !is_quoted => words.end_word(),
            c => words.push(c),
        }
    }
    (!is_quoted).then(|| words.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(shell: Shell, text: &str, expected: Option<&[&[&str]]>) {
        let split = shell.split(text).map(|line| line.commands);
        let expected = expected.map(|commands| {
            commands.iter().map(|words| words.iter().map(|word| (*word).to_owned()).collect()).collect()
        });
        assert_eq!(split, expected, "{shell:?} {text}");
    }

    #[test]
    fn posix_words_are_those_of_a_shell() {
        for (text, expected) in [
            ("curl 'a b' \"c\\\"d\" e\\ f", Some(&[&["curl", "a b", "c\"d", "e f"][..]][..])),
            ("curl $'\\u0041\\x42\\n\\'' ''", Some(&[&["curl", "AB\n'", ""]])),
            (
                "curl x | jq . && curl y; curl z &",
                Some(&[&["curl", "x"], &["jq", "."], &["curl", "y"], &["curl", "z"]]),
            ),
            ("curl x?a=1&b=2 >/dev/null 2>&1 # it's", Some(&[&["curl", "x?a=1&b=2"]])),
            (
                "curl -H \"A: $(get 'a \"b\"')\" `x y`",
                Some(&[&["curl", "-H", "A: $(get 'a \"b\"')", "`x y`"]]),
            ),
            ("curl \"it's\" 'x'", Some(&[&["curl", "it's", "x"]])),
            ("curl 'a", None),
            ("curl \"a\\\"", None),
            ("curl $'a\\'", None),
        ] {
            check(Shell::Posix, text, expected);
        }
    }

    #[test]
    fn cmd_words_are_those_of_windows() {
        for (text, expected) in [
            (
                "curl ^\"a^&b^\" ^\n  -H ^\"x: ^\\^\"y^\\^\"^\"",
                Some(&[&["curl", "a&b", "-H", "x: \"y\""][..]][..]),
            ),
            ("curl ^\"50^%^25^\" ^\"a^\n\nb^\"", Some(&[&["curl", "50%25", "a\nb"]])),
            ("curl \"a^b\" -d \"c\"\"d\\\\\"", Some(&[&["curl", "a^b", "-d", "c\"d\\"]])),
            ("curl ^\"a", None),
        ] {
            check(Shell::Cmd, text, expected);
        }
    }

    #[test]
    fn a_command_goes_on_behind_escapes_and_open_quotes() {
        for (text, goes_on) in [
            ("curl x \\", true),
            ("curl x \\\\", false),
            ("curl 'x", true),
            ("curl 'a\" \nb'", false),
            ("curl $'a\\'", true),
            ("curl x # don't", false),
            ("curl ^\"x^\" ^", true),
            ("curl ^\"a^\n", true),
            ("curl ^\"a^\n\nb^\"", false),
        ] {
            let mut joiner = Joiner::new(Shell::of(text.lines().next().unwrap()));
            let went_on = text.split('\n').map(|line| joiner.goes_on(line)).last();
            assert_eq!(went_on, Some(goes_on), "{text}");
        }
    }

    #[test]
    fn variables_are_noticed_outside_of_plain_quotes() {
        for (text, has_variables) in
            [("$TOKEN", true), ("\"a ${T} b\"", true), ("'$T'", false), ("a$", false), ("`x`", true)]
        {
            assert_eq!(posix(text).is_some_and(|line| line.has_variables), has_variables, "{text}");
        }
    }
}
