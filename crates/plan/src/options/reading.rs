//! The options of one load, read once each: the values, and all that is wrong with them.
//!
//! Owns: what the table alone says is wrong, and which problems only follow from others. Never: what values mean together.

use std::fs::File;
use std::path::Path;

use super::{ARGUMENTS, Arity, LoadOption, LoadType, TypedOption, ValueForm};
use crate::spec::{GivenOption, LoadSpec, Place, Text};
use crate::{InputError, OptionProblem, Problems};

/// What a reader of options has to know besides them.
#[derive(Clone, Copy)]
pub struct ReadContext<'a> {
    /// Places of a plan file with problems that are known already; `None`: the options were typed.
    pub spoiled: Option<&'a [Place]>,
    /// What other crates say of a value of an option.
    pub check: &'a dyn Fn(&str, &str) -> Result<(), InputError>,
}

/// The options of a load while they are read.
pub struct Reading<'s> {
    kind: LoadType,
    spec: &'s LoadSpec,
    context: ReadContext<'s>,
    /// Options that cannot be used: what else is wrong with them, or with what depends on them, only follows.
    gone: Vec<String>,
    /// Options of which the values are not read: not those of a load, or too many or too few values.
    unread: Vec<&'s str>,
    problems: Vec<Noted>,
}

struct Noted {
    problem: OptionProblem,
    /// Whether it is shown even where its option is gone: it is the reason.
    is_reason: bool,
}

impl<'s> Reading<'s> {
    /// Begins to read. What the table says is wrong is noted at once.
    pub fn new(kind: LoadType, spec: &'s LoadSpec, context: ReadContext<'s>) -> Self {
        let mut reading =
            Self { kind, spec, context, gone: Vec::new(), unread: Vec::new(), problems: Vec::new() };
        for given in &spec.options {
            let is_spoiled = reading.is_spoiled(given.name.place)
                || given.values.iter().any(|text| reading.is_spoiled(text.place));
            let name = given.name.value.as_str();
            let (problem, place) = match kind.option(name) {
                _ if is_spoiled => {
                    reading.gone.push(name.to_owned());
                    continue;
                }
                Some(option) if context.spoiled.is_none() => miscounted(option, given),
                option => match (kind.unknown_key(name), option) {
                    (None, Some(option)) => miscounted(option, given),
                    (problem, _) => (problem, given.name.place),
                },
            };
            if problem.is_some() {
                reading.unread.push(name);
            }
            reading.refuse(problem, place);
        }
        if spec.arguments.iter().any(|text| reading.is_spoiled(text.place)) {
            reading.gone.push(kind.argument().to_owned());
        }
        reading.check_pairs();
        reading
    }

    /// The value; `None` where the option is not given, or cannot be used.
    pub fn one<T>(&mut self, option: &TypedOption<T>) -> Option<T> {
        self.all(option).pop()
    }

    /// The value, or the table's default.
    pub fn or_default<T>(&mut self, option: &TypedOption<T>) -> T {
        let default = option.option.default.map(option.read);
        self.one(option).or_else(|| default?.ok()).expect("the tests read every default")
    }

    /// All values, in order.
    pub fn all<T>(&mut self, option: &TypedOption<T>) -> Vec<T> {
        let name = option.option.name;
        let given = self.spec.option(name).filter(|_| !self.unread.contains(&name));
        let Some(given) = given else { return Vec::new() };
        let missing = match option.option.arity {
            Arity::OneOr(value) if given.values.is_empty() => {
                Some(Text { value: value.to_owned(), ..given.name.clone() })
            }
            _ => None,
        };
        let mut values = Vec::new();
        let spoiled = self.context.spoiled.unwrap_or_default();
        for text in given.values.iter().chain(&missing).filter(|text| !spoiled.contains(&text.place)) {
            for part in parts(&option.option, &text.value) {
                let checked =
                    (option.read)(part).and_then(|value| (self.context.check)(name, part).map(|()| value));
                match checked {
                    Ok(value) => values.push(value),
                    Err(error) => {
                        self.refuse(Some(invalid(&option.option, part, &error)), text.place);
                    }
                }
            }
        }
        if self.gone.iter().any(|gone| gone == name) { Vec::new() } else { values }
    }

    /// What the crates above say of a value that stands elsewhere, such as the content of a file.
    ///
    /// # Errors
    /// When it cannot be used.
    pub fn check(&self, what: &str, text: &str) -> Result<(), InputError> {
        (self.context.check)(what, text)
    }

    /// Whether a switch is given.
    pub fn is_set(&self, option: &TypedOption<()>) -> bool {
        self.has(&option.option)
    }

    /// Whether an option is given, whatever its value.
    pub fn has(&self, option: &LoadOption) -> bool {
        self.spec.has(option.name)
    }

    /// The arguments that can be read.
    pub fn arguments<T>(&mut self, read: impl Fn(&str) -> Result<T, OptionProblem>) -> Vec<T> {
        let mut values = Vec::new();
        let spoiled = self.context.spoiled.unwrap_or_default();
        for text in self.spec.arguments.iter().filter(|text| !spoiled.contains(&text.place)) {
            match read(&text.value) {
                Ok(value) => values.push(value),
                Err(problem) => self.refuse(Some(problem), text.place),
            }
        }
        values
    }

    /// Notes where the one argument, a file, is missing, or has another after it.
    pub fn file(&mut self) {
        let name = self.kind.argument();
        match &self.spec.arguments[..] {
            [] if !self.spec.is_whole => {}
            [] => {
                self.refuse(Some(OptionProblem::of(name, "no file given", "name one")), self.spec.kind.place);
            }
            [_] => {}
            [_, second, ..] => {
                let message = format!("`{}` is a second file", second.value);
                self.refuse(Some(OptionProblem::of(name, message, "name one file")), second.place);
            }
        }
    }

    /// What is read.
    pub fn kind(&self) -> LoadType {
        self.kind
    }

    /// The load as written.
    pub fn spec(&self) -> &'s LoadSpec {
        self.spec
    }

    /// The value, or `None` and its problems noted.
    pub fn take<T>(&mut self, result: Result<T, impl Into<Problems>>) -> Option<T> {
        let noted = |problem| Noted { problem, is_reason: false };
        result.map_err(|problems| self.problems.extend(problems.into().0.into_iter().map(noted))).ok()
    }

    /// Whether nothing that was read so far is wrong.
    pub fn is_clean(&self) -> bool {
        self.is_whole() && self.problems.is_empty()
    }

    /// Whether all that was read so far can be used.
    fn is_whole(&self) -> bool {
        self.spec.is_whole && self.gone.is_empty()
    }

    /// What was made of the values, or all that is wrong: each with its place, and nothing that only follows from something else.
    ///
    /// # Errors
    /// All problems; none where what is wrong is known already.
    pub fn finish<T>(self, made: Option<T>) -> Result<T, Problems> {
        let is_whole = self.is_whole();
        let is_gone = |name: &String| self.gone.contains(name);
        let is_given = |problem: &OptionProblem| match problem.option.as_deref() {
            Some(name) if name == self.kind.argument() => !self.spec.arguments.is_empty(),
            Some(name) => self.spec.has(name),
            None => false,
        };
        let follows = |Noted { problem, is_reason }: &Noted| {
            !is_reason
                && (problem.others.iter().chain(&problem.option).any(is_gone)
                    || !is_whole && !is_given(problem))
        };
        let mut problems = Vec::new();
        for noted in self.problems.iter().filter(|noted| !follows(noted)) {
            let mut problem = noted.problem.clone();
            let is_argument = problem.option.as_deref().is_none_or(|name| name == self.kind.argument());
            if self.context.spoiled.is_some() && self.spec.arguments.is_empty() && is_argument {
                self.kind.argument_help().clone_into(&mut problem.help);
            }
            problem.place = Some(self.spec.place_of(&problem));
            if !problems.contains(&problem) {
                problems.push(problem);
            }
        }
        // What was typed has no places: its order is that of the words.
        let idx_of = |problem: &OptionProblem| {
            let is_own = |given: &GivenOption| problem.option.as_ref() == Some(&given.name.value);
            self.spec.options.iter().position(is_own).unwrap_or(usize::MAX)
        };
        problems.sort_by_key(|problem| (problem.place, idx_of(problem)));
        match made.filter(|_| problems.is_empty() && is_whole) {
            Some(made) => Ok(made),
            None => Err(Problems(problems)),
        }
    }

    fn is_spoiled(&self, place: Place) -> bool {
        self.context.spoiled.is_some_and(|spoiled| spoiled.contains(&place))
    }

    /// Notes a problem that makes its option unusable.
    fn refuse(&mut self, problem: Option<OptionProblem>, place: Place) {
        let Some(problem) = problem else { return };
        self.gone.extend(problem.option.clone());
        self.problems.push(Noted { problem: problem.at(place), is_reason: true });
    }

    /// Options that exclude each other, and options that need another one.
    fn check_pairs(&mut self) {
        let names = self.spec.options.iter().map(|given| given.name.value.as_str());
        let names = names.filter(|name| !self.unread.contains(name));
        let given: Vec<&LoadOption> = names.filter_map(|name| self.kind.option(name)).collect();
        for (idx, option) in given.iter().enumerate() {
            let place = self.spec.option(option.name).map_or(Place::START, |given| given.name.place);
            if let Some(other) = given[idx + 1..].iter().find(|other| option.excludes(other)) {
                let message = format!("`{}` cannot be used with `{}`", option.shown(), other.shown());
                let problem = OptionProblem::of(option.name, message, "remove one of them");
                self.refuse(Some(problem.with(&[other.name])), place);
            }
            let needed = option.requires.filter(|name| !self.spec.has(name));
            let needed = needed.and_then(|name| self.kind.option(name));
            // Where another one takes its place, as `--tickets` that of `--resumption`, it cannot be given.
            let is_excluded = |needed: &&LoadOption| given.iter().any(|given| given.excludes(needed));
            if let Some(needed) = needed.filter(|needed| !is_excluded(needed)) {
                let message = format!("`{}` needs `{}`", option.shown(), needed.shown());
                let help = format!("add `--{}`, or remove `--{}`", needed.name, option.name);
                let problem = OptionProblem::of(option.name, message, help);
                self.refuse(Some(problem.with(&[needed.name])), place);
            }
        }
    }
}

impl LoadSpec {
    /// The same with the files that it names as they are reached from here, and what cannot be read of them. `file`: the path in a
    /// value of an option, or in an argument (`None`), where it names a file.
    pub fn in_folder(
        &self,
        folder: &Path,
        file: impl for<'v> Fn(Option<&str>, &'v str) -> Option<&'v str>,
    ) -> (Self, Vec<OptionProblem>) {
        let (mut spec, mut problems) = (self.clone(), Vec::new());
        let mut found = |option: Option<&str>, text: &mut Text| {
            let Some(path) = file(option, &text.value) else { return };
            let (mark, whole) = (&text.value[..text.value.len() - path.len()], folder.join(path));
            if let Err(error) = File::open(&whole) {
                let message = format!("cannot read `{}`: {error}", whole.display());
                let problem = OptionProblem::whole(message, "paths are relative to the plan's folder");
                problems.push(problem.at(text.place));
            }
            text.value = format!("{mark}{}", whole.to_string_lossy());
        };
        for GivenOption { name, values } in &mut spec.options {
            values.iter_mut().for_each(|text| found(Some(&name.value), text));
        }
        spec.arguments.iter_mut().for_each(|text| found(None, text));
        (spec, problems)
    }

    /// Where a problem is to be reported: at the text that it is about, else at the name of its option, else at the load.
    pub fn place_of(&self, problem: &OptionProblem) -> Place {
        let name = problem.option.as_deref();
        let option = name.and_then(|name| self.option(name)).map(|option| option.name.place);
        let is_argument = name.is_some_and(|name| ARGUMENTS.contains(&name));
        let argument = self.arguments.first().filter(|_| is_argument).map(|text| text.place);
        problem.place.or(option).or(argument).unwrap_or(self.kind.place)
    }
}

/// What is wrong with the number of an option's values.
fn miscounted(option: &LoadOption, given: &GivenOption) -> (Option<OptionProblem>, Place) {
    let shown = option.shown();
    let problem = |message: String, help: String| Some(OptionProblem::of(option.name, message, help));
    match (option.arity, &given.values[..]) {
        (_, [first, ..]) if option.is_switch() => {
            let help = format!("write `{0}: true`, or leave `{0}` out", option.name);
            (problem(format!("`{shown}` takes no value"), help), first.place)
        }
        (Arity::One | Arity::OneOr(_), [_, second, ..]) => {
            (problem(format!("`{shown}` was given twice"), "give it once".to_owned()), second.place)
        }
        (Arity::One | Arity::Many | Arity::List, []) if !option.is_switch() => {
            let help = match &option.choices()[..] {
                [] => option.help(),
                choices => format!("possible values: {}", choices.join(", ")),
            };
            (problem(format!("`{shown}` needs a value"), help), given.name.place)
        }
        _ => (None, given.name.place),
    }
}

/// The values in one text.
fn parts<'t>(option: &LoadOption, text: &'t str) -> Vec<&'t str> {
    if option.arity == Arity::List { text.split(',').collect() } else { vec![text] }
}

fn invalid(option: &LoadOption, value: &str, error: &InputError) -> OptionProblem {
    let problem = OptionProblem::invalid(&option.shown(), value, error);
    let problem = OptionProblem { option: Some(option.name.to_owned()), ..problem };
    let needs_text = matches!(option.form, ValueForm::Choice(_) | ValueForm::File | ValueForm::Path);
    let message = match option.is_secret {
        _ if value.is_empty() && needs_text => format!("`{}` needs a value", option.shown()),
        true => format!("invalid value for `{}`: {}", option.shown(), error.reason),
        false => problem.message,
    };
    OptionProblem { message, ..problem }
}
