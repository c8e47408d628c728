//! The words of a command or of a load of a plan file, of which those that are wrong are taken out one by one: so all that is wrong is
//! found at once, and nothing is reported that only follows from another mistake.
//!
//! Owns: which word a problem is about. Never: what a value means.

use std::ffi::OsString;

use clap::{Arg, CommandFactory};
use squall_plan::file::Place;
use squall_plan::{OptionProblem, Problems};

use super::command;
use crate::args::{Cli, Command};

/// An option with one of its values, or an argument.
pub(crate) struct GivenWord {
    /// The option's long name; `None`: an argument.
    pub(crate) option: Option<String>,
    /// The value as written.
    pub(crate) value: Option<String>,
    /// The same as it is read: of a file of a plan, where it is from here.
    pub(crate) read: String,
    /// All of it, as on a command line.
    pub(crate) written: Vec<OsString>,
    /// Where it is, in a plan file.
    pub(crate) place: Place,
}

/// Words, what is wrong with them, and what was taken out for that.
pub(crate) struct GivenWords {
    /// The program, and the command where one is named.
    command: Vec<OsString>,
    pub(crate) words: Vec<GivenWord>,
    /// Options and kinds of arguments that were taken out.
    gone: Vec<String>,
    pub(crate) is_reduced: bool,
    /// Whether a flag is none of the command's: the argument after it may be meant as its value.
    pub(crate) has_unknown_flag: bool,
    /// Each with the place of the word that it is about; `None`: of none.
    pub(crate) problems: Vec<(Option<Place>, OptionProblem)>,
}

impl GivenWords {
    pub(crate) fn new(command: &[&str], words: Vec<GivenWord>) -> Self {
        let command = command.iter().map(OsString::from).collect();
        Self {
            command,
            words,
            gone: Vec::new(),
            is_reduced: false,
            has_unknown_flag: false,
            problems: Vec::new(),
        }
    }

    /// The words of a command line.
    pub(crate) fn of_argv(argv: &[OsString]) -> Self {
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
        Self { command, has_unknown_flag, ..Self::new(&[], words) }
    }

    /// The typed arguments, as soon as what remains can be read.
    pub(crate) fn parsed(&mut self) -> Option<Command> {
        loop {
            match self.read_without(None) {
                Ok(command) => return Some(command),
                Err(None) => return None,
                Err(Some(problem)) => {
                    let word_idx = self.word_of(&problem).or_else(|| self.cause(&problem));
                    self.note_at(word_idx, problem);
                    self.take_out(word_idx?);
                }
            }
        }
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

    /// Takes out the words for which there is a problem: one that is reported, or one that is known.
    pub(crate) fn leave_out(&mut self, problem: impl Fn(&GivenWord) -> Option<Option<OptionProblem>>) {
        let mut word_idx = 0;
        while let Some(word) = self.words.get(word_idx) {
            let Some(problem) = problem(word) else {
                word_idx += 1;
                continue;
            };
            let place = word.place;
            let problem = problem.map(|problem| (Some(place), problem));
            self.problems.extend(problem.filter(|problem| !self.problems.contains(problem)));
            self.take_out(word_idx);
        }
    }

    /// The value, or `None` and its problems noted.
    pub(crate) fn noted<T>(&mut self, result: Result<T, impl Into<Problems>>) -> Option<T> {
        let mut problems = Problems::default();
        let value = problems.take(result);
        for problem in problems.0 {
            self.note(problem);
        }
        value
    }

    fn note(&mut self, problem: OptionProblem) {
        self.note_at(self.word_of(&problem), problem);
    }

    /// Reports a problem about a word, unless it only follows from another.
    fn note_at(&mut self, word_idx: Option<usize>, problem: OptionProblem) {
        let is_gone = |name: &String| self.gone.contains(name);
        let follows = problem.others.iter().chain(&problem.option).any(is_gone);
        if !(follows || self.is_reduced && word_idx.is_none()) {
            let place = word_idx.map(|idx| self.words[idx].place);
            self.problems.push((place, problem));
        }
    }

    fn take_out(&mut self, word_idx: usize) {
        self.is_reduced = true;
        match self.words.remove(word_idx).option {
            Some(name) => self.gone.push(name),
            None => self.gone.extend(ARGUMENTS.iter().map(|name| (*name).to_owned())),
        }
    }

    /// The word that a problem is about: that with its value, else the first of its option.
    fn word_of(&self, problem: &OptionProblem) -> Option<usize> {
        let option = problem.option.as_deref()?;
        let is_own = |word: &GivenWord| match &word.option {
            Some(name) => name == option,
            None => is_argument(option),
        };
        let with_value = problem.value.as_ref().and_then(|value| {
            let says = |word: &GivenWord| word.read == *value || word.value.as_ref() == Some(value);
            self.words.iter().position(|word| is_own(word) && says(word))
        });
        with_value.or_else(|| self.words.iter().position(is_own))
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
    let value = attached.or_else(|| next.as_ref().map(|next| next.to_string_lossy().into_owned()));
    let read = value.clone().unwrap_or_default();
    let written = std::iter::once(word).chain(next).collect();
    GivenWord { option, value, read, written, place: Place::START }
}

/// Whether a problem is about an argument.
pub(crate) fn is_argument(option: &str) -> bool {
    ARGUMENTS.contains(&option)
}

/// Arguments of commands and loads as problems name them.
const ARGUMENTS: &[&str] = &["URL", "HOST:PORT", "FILE", "TOOL"];

#[cfg(test)]
mod tests {
    use super::*;

    fn given(text: &str) -> GivenWords {
        GivenWords::of_argv(&format!("squall {text}").split(' ').map(OsString::from).collect::<Vec<_>>())
    }

    #[test]
    fn words_are_flags_with_their_values_and_arguments() {
        let split = |text: &str| {
            let words = given(text).words.into_iter();
            words
                .map(|word| match (word.option, word.value) {
                    (Some(option), Some(value)) => format!("{option}={value}"),
                    (Some(option), None) => option,
                    (None, value) => value.unwrap_or_default(),
                })
                .collect::<Vec<_>>()
                .join(" ")
        };
        for (text, expected) in [
            (
                "-c 10 -n5 http://x/ --rate=5x --insecure y/",
                "connections=10 requests=5 http://x/ rate=5x insecure y/",
            ),
            ("handshake -t 2 x:1 --no-such 5", "threads=2 x:1 no-such 5"),
            ("http --h2c x/ -k", "h2c x/ -k"),
            ("x/ --duration", "x/ duration"),
        ] {
            assert_eq!(split(text), expected, "{text}");
        }
    }

    #[test]
    fn all_that_is_wrong_is_found_and_nothing_that_follows() {
        let wrong = |text: &str| {
            let mut given = given(text);
            given.parsed();
            let options = given.problems.into_iter().map(|(_, problem)| problem.option.unwrap_or_default());
            options.collect::<Vec<_>>().join(" ")
        };
        for (text, expected) in [
            ("-c 10 x/", ""),
            ("--rate 5x -d 10 --timeout 1q x/", "rate duration timeout"),
            ("--key k --cert c --rate 0x x/", "rate"),
            ("--body a --body-file b --follow 51 --window x x/", "body follow window"),
            ("--key k --window x x/", "cert window"),
            ("idle --sni x --tls=9 host:1", "tls"),
            ("--rate 5x --help", "rate"),
            ("--version --rate 5x x/", ""),
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
