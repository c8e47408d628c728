//! Finds all that is wrong with a load of a plan file, where its command alone would tell the first mistake only.
//!
//! Owns: the load without what is known to be wrong with it. Never tells what only follows from another mistake.

use std::fs;
use std::path::Path;

use squall_plan::file::{LoadSpec, Place, Problem, Text};
use squall_plan::mask::masked_text;

use super::loads;
use crate::failure::Failure;

/// A load whose mistakes are taken out of it one by one.
pub(super) struct Sieve<'a> {
    load: LoadSpec,
    /// Options that were taken out.
    gone: Vec<String>,
    is_reduced: bool,
    problems: &'a mut Vec<Problem>,
}

/// Whose mistake it is.
#[derive(Clone, Copy)]
enum Guilty {
    Option(usize),
    Argument(usize),
}

impl<'a> Sieve<'a> {
    /// Takes unknown keys and files that cannot be read out of a load. `folder`: where its files are looked for. `spoiled`: what the
    /// plan file itself has wrong.
    pub(super) fn new(
        load: &LoadSpec,
        folder: &Path,
        spoiled: &[Place],
        problems: &'a mut Vec<Problem>,
    ) -> Self {
        let is_good = |text: &Text| !spoiled.contains(&text.place);
        let mut sieve = Self { load: load.clone(), gone: Vec::new(), is_reduced: !load.is_whole, problems };
        sieve.keep(is_good);
        let unknown = loads::unknown_keys(&sieve.load);
        let places: Vec<Place> = unknown.iter().map(|problem| problem.place).collect();
        sieve.problems.extend(unknown);
        sieve.keep_options(|name| !places.contains(&name.place), |_| true);
        let unreadable: Vec<Place> = loads::files(&sieve.load)
            .into_iter()
            .filter_map(|text| {
                let path = folder.join(&text.value);
                let error = fs::File::open(&path).err()?;
                let message = format!("cannot read `{}`: {error}", path.display());
                sieve.problems.push(Problem::at(
                    text.place,
                    message,
                    "paths are relative to the plan's folder",
                ));
                Some(text.place)
            })
            .collect();
        sieve.keep(|text| !unreadable.contains(&text.place));
        sieve
    }

    /// What `read` makes of the load, when nothing is wrong with it.
    pub(super) fn sift<T>(mut self, read: impl Fn(&LoadSpec) -> Result<T, Failure>) -> Option<T> {
        loop {
            let failure = match read(&self.load) {
                Ok(value) => return Some(value).filter(|_| !self.is_reduced),
                Err(failure) => failure,
            };
            let guilty = self.guilty(&failure);
            if !self.is_consequence(&failure, guilty) {
                self.tell(failure, guilty);
            }
            self.take_out(guilty?);
        }
    }

    /// Keeps the arguments and options of which all texts are as wanted.
    fn keep(&mut self, is_wanted: impl Fn(&Text) -> bool) {
        let count = self.load.arguments.len();
        self.load.arguments.retain(&is_wanted);
        self.is_reduced |= self.load.arguments.len() < count;
        self.keep_options(|_| true, is_wanted);
    }

    fn keep_options(&mut self, name: impl Fn(&Text) -> bool, value: impl Fn(&Text) -> bool) {
        let (kept, gone): (Vec<_>, Vec<_>) = std::mem::take(&mut self.load.options)
            .into_iter()
            .partition(|option| name(&option.name) && option.values.iter().all(&value));
        self.load.options = kept;
        self.is_reduced |= !gone.is_empty();
        self.gone.extend(gone.into_iter().map(|option| option.name.value));
    }

    fn guilty(&self, failure: &Failure) -> Option<Guilty> {
        let option = self.load.options.iter().position(|option| names(&failure.message, &option.name.value));
        let argument = || self.load.arguments.iter().position(|text| quotes(&failure.message, text));
        option.map(Guilty::Option).or_else(|| argument().map(Guilty::Argument))
    }

    /// Whether it may be that this is only said because something else is missing now.
    fn is_consequence(&self, failure: &Failure, guilty: Option<Guilty>) -> bool {
        let is_gone = |name: &String| names(&failure.message, name) || names(&failure.help, name);
        self.gone.iter().any(is_gone) || self.is_reduced && guilty.is_none()
    }

    fn tell(&mut self, failure: Failure, guilty: Option<Guilty>) {
        let (place, help) = match guilty {
            Some(Guilty::Option(idx)) => {
                let option = &self.load.options[idx];
                let value = option.values.iter().find(|text| quotes(&failure.message, text));
                (value.unwrap_or(&option.name).place, failure.help)
            }
            Some(Guilty::Argument(idx)) => (self.load.arguments[idx].place, failure.help),
            None => {
                let is_bare = self.load.arguments.is_empty();
                let help = is_bare.then(|| argument_help(&self.load.kind.value)).flatten();
                (self.load.kind.place, help.map_or(failure.help, str::to_owned))
            }
        };
        self.problems.push(Problem::at(place, failure.message, help));
    }

    fn take_out(&mut self, guilty: Guilty) {
        self.is_reduced = true;
        match guilty {
            Guilty::Option(idx) => self.gone.push(self.load.options.remove(idx).name.value),
            Guilty::Argument(idx) => drop(self.load.arguments.remove(idx)),
        }
    }
}

/// Whether a message is about an option: `--name`, or `name` as the keys of tools are written.
fn names(message: &str, name: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '-';
    message.match_indices(name).any(|(at, _)| {
        let (before, behind) = (&message[..at], &message[at + name.len()..]);
        (before.ends_with("--") || before.ends_with('`')) && !behind.starts_with(is_part)
    })
}

/// Whether a message repeats a text as it was written.
fn quotes(message: &str, text: &Text) -> bool {
    message.contains(&format!("`{}`", masked_text(&text.value).escape_debug()))
}

/// What to write where a load does not say whom it is for.
fn argument_help(kind: &str) -> Option<&'static str> {
    Some(match kind {
        "http" => "give the plan a `target`, or the load a URL, such as `http: http://localhost:8080/`",
        "handshake" => "give the plan a `target`, or the load an address, such as `handshake: localhost:443`",
        "idle" => "give the plan a `target`, or the load an address, such as `idle: localhost:8080`",
        "replay" => "name the recording, such as `replay: site.har`",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_option_is_named_whole() {
        for (message, name, expected) in [
            ("invalid value `5` for `--rate <RATE>`", "rate", true),
            ("`--rate-limit` is too small", "rate", false),
            ("`--arrival` and `--pacing` need `--rate`", "pacing", true),
            ("wrk has no `streams`", "streams", true),
            ("the rate is too high", "rate", false),
        ] {
            assert_eq!(names(message, name), expected, "{message}");
        }
    }
}
