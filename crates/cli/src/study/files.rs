//! Where a study is kept, what it writes, and how a line of flags is taken apart.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use squall_report::store::{self, Store};

use crate::args::StudyOutputArgs;
use crate::faces::refused;
use crate::failure::Failure;
use crate::output;

/// The folder of a study, made before its first run.
pub(crate) fn folder(args: &StudyOutputArgs, kind: &str) -> Result<PathBuf, Failure> {
    let store = match &args.results {
        Some(path) => Store::at(path),
        None => Store::studies_of_user(|name| std::env::var_os(name)).map_err(|error| refused(&error))?,
    };
    store.create_study(SystemTime::now(), kind).map_err(|error| refused(&error))
}

/// The answer in every form that was asked for. `forms`: name and content of each that this study has.
pub(crate) fn write(
    args: &StudyOutputArgs,
    text: &str,
    forms: &[(&str, &dyn Fn() -> String)],
) -> Result<(), Failure> {
    let mut has_stdout = false;
    for wanted in &args.out {
        let (content, path) = form(wanted, forms)?;
        if path == "-" {
            has_stdout = true;
            output::result(&content())?;
        } else {
            store::write(Path::new(path), &content()).map_err(|error| refused(&error))?;
        }
    }
    if has_stdout { Ok(()) } else { output::result(text) }
}

/// Says what is wrong with `--out` before the first run.
pub(crate) fn check(args: &StudyOutputArgs, names: &[&str]) -> Result<(), Failure> {
    let nothing = || String::new();
    let forms: Vec<(&str, &dyn Fn() -> String)> =
        names.iter().map(|name| (*name, &nothing as &dyn Fn() -> String)).collect();
    for wanted in &args.out {
        let (_, path) = form(wanted, &forms)?;
        let parent = Path::new(path).parent().filter(|parent| !parent.as_os_str().is_empty());
        if path != "-" && parent.is_some_and(|parent| !parent.is_dir()) {
            return Err(Failure::usage(
                format!("cannot write `{path}`: its folder does not exist"),
                "create the folder first; squall creates only the file",
            ));
        }
    }
    Ok(())
}

fn form<'a, 'b>(
    wanted: &'a str,
    forms: &'b [(&str, &'b dyn Fn() -> String)],
) -> Result<(&'b dyn Fn() -> String, &'a str), Failure> {
    let (name, path) = wanted.split_once('=').unwrap_or((wanted, ""));
    match forms.iter().find(|(known, _)| *known == name) {
        Some((_, content)) if !path.is_empty() => Ok((*content, path)),
        _ => {
            let names: Vec<&str> = forms.iter().map(|(name, _)| *name).collect();
            Err(Failure::usage(
                format!("`{wanted}` is not an output"),
                format!("write `FORMAT=FILE`, with {} as the format", names.join(" or ")),
            ))
        }
    }
}

/// Refuses flags of a run that the study sets itself. `own`: short and long name of those of this kind of study, and the help.
pub(crate) fn refuse_own(rest: &[String], own: &[OwnFlag<'_>]) -> Result<(), Failure> {
    let is_it = |word: &str, (short, long, _): &OwnFlag<'_>| {
        let is_short = !short.is_empty() && word.starts_with(short) && !word.starts_with("--");
        word.split('=').next() == Some(long) || is_short
    };
    for word in rest.iter().take_while(|word| *word != "--") {
        if let Some((_, _, help)) = own.iter().chain(OF_EVERY_STUDY).find(|own| is_it(word, own)) {
            return Err(Failure::usage(format!("`{word}` is set by the study itself"), *help));
        }
    }
    Ok(())
}

/// Short name (may be empty) and long name of a flag, and what to do instead.
pub(crate) type OwnFlag<'a> = (&'a str, &'a str, &'a str);

/// With these the runs would say nothing to the study, or nothing to anybody.
const OF_EVERY_STUDY: &[OwnFlag<'static>] = &[
    ("", "--no-save", "remove it: the study needs the saved runs"),
    ("", "--results", "write `--results DIR` as a flag of the study, before the load"),
    ("", "--dry-run", "remove it: `squall http … --dry-run` shows one of its runs"),
    ("", "--json", "write `--out json=FILE` as a flag of the study, before the load"),
    ("", "--live", "remove it: the runs of a study are not shown live"),
    ("-h", "--help", "ask for help before the load"),
];

/// Words as a shell takes them apart: by spaces, but not within quotes.
pub(crate) fn words(line: &str) -> Result<Vec<String>, Failure> {
    let mut words: Vec<String> = Vec::new();
    let mut quote: Option<char> = None;
    let mut is_in_word = false;
    for c in line.chars() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None, '\'' | '"') => (quote, is_in_word) = (Some(c), push(&mut words, is_in_word, None)),
            (None, c) if c.is_whitespace() => is_in_word = false,
            (_, c) => is_in_word = push(&mut words, is_in_word, Some(c)),
        }
    }
    match quote {
        None => Ok(words),
        Some(quote) => Err(Failure::usage(format!("`{line}` has an unclosed {quote}"), "close the quotes")),
    }
}

fn push(words: &mut Vec<String>, is_in_word: bool, c: Option<char>) -> bool {
    if !is_in_word {
        words.push(String::new());
    }
    if let Some(word) = words.last_mut() {
        word.extend(c);
    }
    true
}

/// A path from the study's page to a run's.
pub(crate) fn page_of(folder: &Path, study: &Path) -> Option<String> {
    let folder = folder.strip_prefix(fs::canonicalize(study).ok()?).ok()?;
    Some(format!("{}/{}", folder.display(), store::PAGE_FILE))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_taken_apart_as_by_a_shell() {
        for (line, expected) in [
            ("a  b", vec!["a", "b"]),
            ("-H 'Accept: text/html' \"x y\"z", vec!["-H", "Accept: text/html", "x yz"]),
            ("''", vec![""]),
            ("", vec![]),
        ] {
            assert_eq!(words(line).unwrap(), expected, "{line}");
        }
        assert!(words("a 'b").is_err());
    }
}
