//! The words of a command line, of which those that are wrong are taken out one by one: so all that is wrong is
//! found at once, and nothing is reported that only follows from another mistake.
//!
//! Owns: which word a problem is about. Never: what a value means.

use std::ffi::OsString;

use clap::{Arg, CommandFactory};
use squall_plan::options::ARGUMENTS;
use squall_plan::{OptionProblem, Problems};

use super::command;
use crate::args::{Cli, Command};

/// An option with one of its values, or an argument.
pub(super) struct GivenWord {
    /// The option's long name; `None`: an argument.
    option: Option<String>,
    /// As typed, with its value.
    written: Vec<OsString>,
}

/// Words, what is wrong with them, and what was taken out for that.
pub(super) struct GivenWords {
    /// The program, and the command where one is named.
    command: Vec<OsString>,
    words: Vec<GivenWord>,
    /// Options and kinds of arguments that were taken out.
    gone: Vec<String>,
    is_reduced: bool,
    /// Whether a flag is none of the command's: the argument after it may be meant as its value.
    has_unknown_flag: bool,
    /// Whether the argument that the command needs is missing: a placeholder is there instead, for the sake of the rest.
    lacks_argument: bool,
    pub(super) problems: Vec<OptionProblem>,
}

impl GivenWords {
    /// The words of a command line.
    pub(super) fn of_argv(argv: &[OsString]) -> Self {
        let mut root = Cli::command();
        root.build();
        let named = argv.get(1).and_then(|word| root.find_subcommand(word));
        let begin = if named.is_some() { 2 } else { 1 };
        let flags: Vec<&Arg> = named.unwrap_or(&root).get_arguments().collect();
        let mut rest = argv.iter().skip(begin).cloned();
        let mut words = Vec::new();
        while let Some(word) = rest.next() {
            words.push(split(word, &flags, &mut rest));
        }
        let command = argv.iter().take(begin).cloned().collect();
        let is_known = |name: &str| flags.iter().any(|flag| flag.get_long() == Some(name));
        let has_unknown_flag =
            words.iter().filter_map(|word| word.option.as_deref()).any(|name| !is_known(name));
        Self {
            command,
            words,
            gone: Vec::new(),
            is_reduced: false,
            has_unknown_flag,
            lacks_argument: false,
            problems: Vec::new(),
        }
    }

    /// The typed arguments, as soon as what remains can be read.
    pub(super) fn parsed(&mut self) -> Option<Command> {
        loop {
            match self.read_without(None) {
                Ok(command) => return Some(command),
                Err(None) => return None,
                Err(Some(problem)) if self.is_missing_argument(&problem) => {
                    self.note_at(None, problem);
                    self.lacks_argument = true;
                    self.words.insert(0, GivenWord { option: None, written: vec!["placeholder".into()] });
                }
                Err(Some(problem)) => {
                    let word_idx = self.word_of(&problem).or_else(|| self.cause(&problem));
                    self.note_at(word_idx, problem);
                    self.take_out(word_idx?);
                }
            }
        }
    }

    fn is_missing_argument(&self, problem: &OptionProblem) -> bool {
        let is_about_argument = problem.option.as_deref().is_some_and(is_argument);
        is_about_argument && !self.lacks_argument && self.words.iter().all(|word| word.option.is_some())
    }

    /// Whether what is read as an argument may be none.
    pub(super) fn has_doubtful_arguments(&self) -> bool {
        self.has_unknown_flag || self.lacks_argument
    }

    /// The words as they are typed, but for one of them.
    fn read_without(&self, left_out: Option<usize>) -> Result<Command, Option<OptionProblem>> {
        let words = self.words.iter().enumerate().filter(|(idx, _)| Some(*idx) != left_out);
        let words = words.flat_map(|(_, word)| &word.written);
        command(self.command.iter().chain(words).cloned().collect())
    }

    /// The flag that needs what is missing: without it, nothing or something else is wrong.
    fn cause(&self, problem: &OptionProblem) -> Option<usize> {
        let is_another = |idx: &usize| match self.read_without(Some(*idx)) {
            Ok(_) => true,
            Err(other) => other.is_none_or(|other| other.option != problem.option),
        };
        (0..self.words.len()).filter(|_| !self.has_unknown_flag).find(is_another)
    }

    /// Notes what is wrong with the values, unless it only follows from something else.
    pub(super) fn note_all(&mut self, problems: Problems) {
        for problem in problems.0 {
            if !self.follows(&problem) {
                self.problems.push(problem);
            }
        }
    }

    /// Reports a problem about a word, unless it only follows from another.
    fn note_at(&mut self, word_idx: Option<usize>, problem: OptionProblem) {
        if !(self.follows(&problem) || self.is_reduced && word_idx.is_none()) {
            self.problems.push(problem);
        }
    }

    /// Whether a problem is about something that was taken out.
    fn follows(&self, problem: &OptionProblem) -> bool {
        problem.others.iter().chain(&problem.option).any(|name| self.gone.contains(name))
    }

    fn take_out(&mut self, word_idx: usize) {
        self.is_reduced = true;
        match self.words.remove(word_idx).option {
            Some(name) => self.gone.push(name),
            None => self.gone.extend(ARGUMENTS.iter().map(|name| (*name).to_owned())),
        }
    }

    /// The first word of the option that a problem is about.
    fn word_of(&self, problem: &OptionProblem) -> Option<usize> {
        let option = problem.option.as_deref()?;
        let is_own = |word: &GivenWord| match &word.option {
            Some(name) => name == option,
            None => is_argument(option),
        };
        self.words.iter().position(is_own)
    }
}

/// The next flag with its value, or the next argument.
fn split(word: OsString, flags: &[&Arg], rest: &mut impl Iterator<Item = OsString>) -> GivenWord {
    let text = word.to_string_lossy().into_owned();
    let long = text.strip_prefix("--").filter(|rest| !rest.is_empty());
    let short = text.strip_prefix('-').filter(|rest| long.is_none() && !rest.is_empty());
    let (flag, option, attached) = match (long, short.and_then(|short| short.chars().next())) {
        (Some(long), _) => {
            let (name, value) =
                long.split_once('=').map_or((long, None), |(name, value)| (name, Some(value)));
            let flag = flags.iter().find(|flag| flag.get_long() == Some(name));
            (flag, Some(name.to_owned()), value.map(str::to_owned))
        }
        (None, Some(letter)) => {
            let flag = flags.iter().find(|flag| flag.get_short() == Some(letter));
            let name = flag.and_then(|flag| flag.get_long()).map_or_else(|| text.clone(), str::to_owned);
            let value = text[1 + letter.len_utf8()..].trim_start_matches('=');
            (flag, Some(name), (!value.is_empty()).then(|| value.to_owned()))
        }
        (None, None) => (None, None, Some(text)),
    };
    let takes_next = attached.is_none()
        && flag.is_some_and(|flag| flag.get_action().takes_values() && !flag.is_require_equals_set());
    let next = if takes_next { rest.next() } else { None };
    GivenWord { option, written: std::iter::once(word).chain(next).collect() }
}

/// Whether a problem is about an argument.
pub(super) fn is_argument(option: &str) -> bool {
    ARGUMENTS.contains(&option)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(text: &str) -> GivenWords {
        GivenWords::of_argv(&format!("squall {text}").split(' ').map(OsString::from).collect::<Vec<_>>())
    }

    #[test]
    fn words_are_flags_with_their_values_and_arguments() {
        let split = |text: &str| {
            let options = given(text).words.into_iter().map(|word| match word.option {
                Some(option) => format!("{option}:{}", word.written.len()),
                None => word.written[0].to_string_lossy().into_owned(),
            });
            options.collect::<Vec<_>>().join(" ")
        };
        for (text, expected) in [
            (
                "-c 10 -n5 http://x/ --rate=5x --insecure y/",
                "connections:2 requests:1 http://x/ rate:1 insecure:1 y/",
            ),
            ("handshake -t 2 x:1 --no-such 5", "threads:2 x:1 no-such:1 5"),
            ("http --h2c x/ -k", "h2c:1 x/ -k:1"),
            ("x/ --duration", "x/ duration:1"),
        ] {
            assert_eq!(split(text), expected, "{text}");
        }
    }

    #[test]
    fn all_that_is_wrong_is_found_and_nothing_that_follows() {
        let wrong = |text: &str| {
            let argv = format!("squall {text}").split(' ').map(OsString::from).collect::<Vec<_>>();
            let problems = super::super::all_problems(&argv).0.into_iter();
            problems.map(|problem| problem.option.unwrap_or_default()).collect::<Vec<_>>().join(" ")
        };
        for (text, expected) in [
            ("--rate 5x -d 10 --timeout 1q --color no x/", "rate duration timeout color"),
            ("--key k --window x --color no x/", "key window color"),
            ("--no-such --rate 5x 7", "no-such rate"),
            ("--conections 5 --duraton 5s http://x/", "conections duraton"),
            ("--rate --arrival poisson x/ --color", "rate color"),
            ("--rate 1 --rate 2 --window x x/", "rate window"),
            ("replay x.har --speed fast --live --quiet", "speed live"),
            ("--version --rate 5x x/", ""),
            ("run s.js --bogus", "bogus"),
            ("replay r.curl --bogus", "bogus"),
            ("replay --speed fast --set-form password", "FILE speed set-form"),
            ("replay --speed fast --bogus", "speed bogus"),
            ("idle --ping often", "HOST:PORT ping"),
            ("handshake -c ECDHE-RSA --tls 9", "HOST:PORT connections tls"),
        ] {
            let found = wrong(text);
            let (mut found, mut expected): (Vec<&str>, Vec<&str>) =
                (found.split(' ').collect(), expected.split(' ').collect());
            found.sort_unstable();
            expected.sort_unstable();
            assert_eq!(found, expected, "{text}");
        }
    }
}
