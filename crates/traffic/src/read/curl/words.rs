//! Splits a command line into words, as a POSIX shell or Windows' `cmd` does.
//!
//! Shells do more than libraries for word splitting know: browsers copy commands with `$'..'` and with `cmd`'s carets.

use std::collections::VecDeque;
use std::iter::Peekable;
use std::str::Chars;

use super::heredoc::Heredoc;

/// Which shell a command line is written for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shell {
    Posix,
    Cmd,
}

/// The commands of a line.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) commands: Vec<Words>,
    /// It has variables or substitutions, which are left as they are written.
    pub(super) has_variables: bool,
}

/// One command of a line.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Words {
    pub(super) words: Vec<String>,
    /// What the line itself gives to the command's standard input: a here-document or a here-string.
    pub(super) stdin: Option<String>,
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
#[derive(Debug)]
pub(super) struct Joiner {
    shell: Shell,
    /// The quote that is open.
    open: Option<Quoting>,
    /// The line before ended with an escape.
    is_escaped: bool,
    /// Here-documents whose lines follow.
    heredocs: VecDeque<Heredoc>,
}

impl Joiner {
    pub(super) fn new(shell: Shell) -> Self {
        Self { shell, open: None, is_escaped: false, heredocs: VecDeque::new() }
    }

    /// Takes the next line; whether the command goes on behind it.
    pub(super) fn goes_on(&mut self, line: &str) -> bool {
        let escapes = |c: char| line.chars().rev().take_while(|one| *one == c).count() % 2 == 1;
        match self.shell {
            Shell::Posix if self.is_in_heredoc() => {
                if self.heredocs.front().is_some_and(|heredoc| heredoc.ends_with(line)) {
                    self.heredocs.pop_front();
                }
                !self.heredocs.is_empty()
            }
            Shell::Posix => {
                self.open = quote_after(self.open, line, &mut self.heredocs);
                self.is_escaped = escapes('\\');
                self.open.is_some() || self.is_escaped || !self.heredocs.is_empty()
            }
            Shell::Cmd => {
                // `cmd` takes what follows a caret literally: an empty line is a line end within the text.
                let is_line_end = self.is_escaped && line.is_empty();
                self.is_escaped = escapes('^');
                self.is_escaped || is_line_end
            }
        }
    }

    /// The lines of a here-document follow the line that names it, with all that belongs to that.
    fn is_in_heredoc(&self) -> bool {
        !self.heredocs.is_empty() && self.open.is_none() && !self.is_escaped
    }
}

/// The quote that is open behind a line, before which `open` was; and the here-documents that the line names.
fn quote_after(mut open: Option<Quoting>, line: &str, heredocs: &mut VecDeque<Heredoc>) -> Option<Quoting> {
    let mut is_word_start = true;
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        match (open, c) {
            (None, '#') if is_word_start => return None,
            (None | Some(Quoting::Weak | Quoting::AnsiC), '\\') => drop(chars.next()),
            (None, '\'') => open = Some(Quoting::Plain),
            (None, '"') => open = Some(Quoting::Weak),
            (None, '$') if chars.next_if_eq(&'\'').is_some() => open = Some(Quoting::AnsiC),
            (None, '<') => match Heredoc::read(&mut chars) {
                Some(heredoc) => heredocs.push_back(heredoc),
                None => while chars.next_if_eq(&'<').is_some() {},
            },
            (Some(Quoting::Plain | Quoting::AnsiC), '\'') | (Some(Quoting::Weak), '"') => open = None,
            _ => {}
        }
        is_word_start = c == ' ' || c == '\t';
    }
    open
}

/// The line as it is read: commands, and the word that is under way.
#[derive(Default)]
struct Reading {
    line: Line,
    command: Words,
    word: Option<String>,
    /// What the next word is.
    next: Next,
    /// Here-documents whose lines follow, each with the index of its command.
    heredocs: Vec<(usize, Heredoc)>,
}

/// What a word is to its command.
#[derive(Default, PartialEq)]
enum Next {
    #[default]
    Argument,
    /// The file of a redirection.
    File,
    /// Standard input: `<<< TEXT`.
    Stdin,
}

impl Reading {
    fn push(&mut self, c: char) {
        self.word.get_or_insert_default().push(c);
    }

    fn end_word(&mut self) {
        let Some(word) = self.word.take() else { return };
        match std::mem::take(&mut self.next) {
            Next::Argument => self.command.words.push(word),
            Next::File => {}
            Next::Stdin => self.command.stdin = Some(word + "\n"),
        }
    }

    fn end_command(&mut self) {
        self.end_word();
        self.next = Next::Argument;
        if !self.command.words.is_empty() {
            self.line.commands.push(std::mem::take(&mut self.command));
        }
    }

    /// `>` and its like: `2>` has its number before it.
    fn redirect(&mut self, next: Next) {
        if self.word.as_ref().is_some_and(|word| word.bytes().all(|byte| byte.is_ascii_digit())) {
            self.word = None;
        }
        self.end_word();
        self.next = next;
    }

    /// `<`, `<<` or `<<<`.
    fn input(&mut self, chars: &mut Peekable<Chars<'_>>) {
        if let Some(heredoc) = Heredoc::read(chars) {
            self.redirect(Next::Argument);
            return self.heredocs.push((self.line.commands.len(), heredoc));
        }
        let mut rest = chars.clone();
        let is_here_string = rest.next() == Some('<') && rest.next() == Some('<');
        if is_here_string {
            *chars = rest;
        }
        self.redirect(if is_here_string { Next::Stdin } else { Next::File });
    }

    /// The end of a line, behind which the lines of its here-documents are.
    fn end_line(&mut self, chars: &mut Peekable<Chars<'_>>) {
        self.end_command();
        for (command_idx, heredoc) in std::mem::take(&mut self.heredocs) {
            let text = heredoc.text(chars, &mut self.line.has_variables);
            if let Some(command) = self.line.commands.get_mut(command_idx) {
                command.stdin = Some(text);
            }
        }
    }

    fn finish(mut self) -> Line {
        self.end_command();
        self.line
    }
}

fn posix(text: &str) -> Option<Line> {
    let mut words = Reading::default();
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            ' ' | '\t' | '\r' => words.end_word(),
            '\n' => words.end_line(&mut chars),
            ';' | '|' => words.end_command(),
            '&' if words.next == Next::File && words.word.is_none() => {}
            '&' if chars.peek().is_none_or(|next| matches!(next, '&' | ' ' | '\n')) => words.end_command(),
            '>' => words.redirect(Next::File),
            '<' => words.input(&mut chars),
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

fn quoted(chars: &mut Peekable<Chars<'_>>, words: &mut Reading, quoting: Quoting) -> Option<()> {
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
fn variable(first: char, chars: &mut Peekable<Chars<'_>>, words: &mut Reading) -> Option<()> {
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
    let mut words = Reading::default();
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
        let words = |line: Line| line.commands.into_iter().map(|command| command.words).collect();
        let split: Option<Vec<Vec<String>>> = shell.split(text).map(words);
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
            ("curl x <<EOF", true),
            ("curl x <<EOF\nit's\n", true),
            ("curl x <<EOF\nit's\nEOF", false),
            ("curl x <<'E F' \\\n -H 'a\nb'\nEOF\nE F", false),
            ("cat <<A <<-B\nB\nA\n", true),
            ("cat <<A <<-B\nB\nA\n\tB", false),
            ("curl x <<<EOF", false),
            ("curl $((1<<2))", false),
        ] {
            let mut joiner = Joiner::new(Shell::of(text.lines().next().unwrap()));
            let went_on = text.split('\n').map(|line| joiner.goes_on(line)).last();
            assert_eq!(went_on, Some(goes_on), "{text}");
        }
    }

    #[test]
    fn here_documents_and_here_strings_are_standard_input() {
        for (text, stdin, has_variables) in [
            ("curl <<EOF\na 'b\n\n\\$c \\\\ \\d\\\ne\nEOF", "a 'b\n\n$c \\ \\de\n", false),
            ("curl <<'EOF'\n$a \\$b \\\nEOF", "$a \\$b \\\n", false),
            ("curl << \"EOF\" >/dev/null\n`x`\nEOF\n", "`x`\n", false),
            ("curl <<\\EOF\n$a\nEOF", "$a\n", false),
            ("curl <<EOF\n{\"a\":\"${B}\"}\nEOF", "{\"a\":\"${B}\"}\n", true),
            ("curl <<-EOF\n\t\ta\n\tEOF", "a\n", false),
            ("curl <<EOF\nno end", "no end\n", false),
            ("curl <<<'a b'", "a b\n", false),
            ("curl <<< \"x $y\" -v", "x $y\n", true),
            ("curl 0<<A\n1\nA", "1\n", false),
        ] {
            let line = posix(text).unwrap();
            let found = (line.commands[0].stdin.as_deref(), line.has_variables);
            assert_eq!(found, (Some(stdin), has_variables), "{text}");
        }
        let line = posix("cat <<A | curl -d @- x && curl y\nbody\nA\ncurl z").unwrap();
        let found: Vec<_> = line.commands.iter().map(|one| (one.words.len(), one.stdin.as_deref())).collect();
        assert_eq!(found, [(1, Some("body\n")), (4, None), (2, None), (2, None)]);
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
