//! `argv` before clap reads it: flags in the order and the form in which it takes them.

use std::ffi::OsString;
use std::ops::Range;

use clap::{Arg, CommandFactory};

use crate::args::Cli;
use crate::failure::Failure;

/// The words as clap is to read them.
pub(super) fn settled(argv: Vec<OsString>) -> Vec<OsString> {
    let (separator, end) = (argv.iter().position(|word| word == "--"), argv.len());
    if argv.get(1).is_some_and(|word| word == "help") {
        // Alone, what fits on a screen; of a command, all there is.
        let words =
            argv.get(2).map_or_else(|| vec!["-h".into()], |command| vec![command.clone(), "--help".into()]);
        return [argv[0].clone()].into_iter().chain(words).collect();
    }
    match (argv.get(1).and_then(|command| command.to_str()), separator) {
        (Some("run"), _) => plain_switches(argv),
        // All from the first URL on is for `squall http`, but not these.
        (Some("sweep"), _) => own_flags_first(argv, "sweep", 2..separator.unwrap_or(end)),
        (Some("capacity"), _) => own_flags_first(argv, "capacity", 2..separator.unwrap_or(end)),
        // Here `--` parts groups.
        (Some("compare"), Some(separator)) => own_flags_first(argv, "compare", separator..end),
        _ => argv,
    }
}

/// k6's switches may say what they are, `--no-setup=false`, as in k6: such a one is written as a switch, or left out.
fn plain_switches(argv: Vec<OsString>) -> Vec<OsString> {
    let flags_end = argv.iter().position(|arg| arg == "--").unwrap_or(argv.len());
    let plain =
        |(idx, arg): (usize, OsString)| match arg.to_str().filter(|_| idx < flags_end).and_then(switch) {
            Some(("--include-system-env-vars", false)) => Some("--no-system-env-vars".into()),
            Some((name, is_on)) => is_on.then(|| name.into()),
            None => Some(arg),
        };
    argv.into_iter().enumerate().filter_map(plain).collect()
}

/// `--no-setup=true` as its name and what it is.
fn switch(arg: &str) -> Option<(&str, bool)> {
    let (name, value) = arg.split_once('=')?;
    let is_on = value.parse().ok()?;
    K6_SWITCHES.contains(&name).then_some((name, is_on))
}

/// Moves the command's own flags to the front of the words of `range`.
fn own_flags_first(mut argv: Vec<OsString>, command: &str, range: Range<usize>) -> Vec<OsString> {
    let mut root = Cli::command();
    root.build();
    let Some(command) = root.find_subcommand(command) else { return argv };
    let own = |word: &OsString| -> Option<(&Arg, bool)> {
        let (name, has_value) =
            word.to_str()?.split_once('=').map_or((word.to_str()?, false), |(name, _)| (name, true));
        let long = name.strip_prefix("--").filter(|long| !long.is_empty())?;
        Some((command.get_arguments().find(|arg| arg.get_long() == Some(long))?, has_value))
    };
    let at = range.start;
    let (mut flags, mut rest) = (Vec::new(), Vec::new());
    let mut words = argv.drain(range);
    while let Some(word) = words.next() {
        match own(&word) {
            Some((arg, has_value)) => {
                flags.push(word);
                let takes_next = arg.get_action().takes_values() && !has_value;
                flags.extend(takes_next.then(|| words.next()).flatten());
            }
            None => rest.push(word),
        }
    }
    drop(words);
    argv.splice(at..at, flags.into_iter().chain(rest));
    argv
}

/// `-rate 500` where `--rate 500` was meant: Go's way to write flags.
pub(super) fn single_dash(argv: &[OsString]) -> Option<Failure> {
    let mut root = Cli::command();
    root.build();
    let named = argv.get(1).and_then(|word| root.find_subcommand(word));
    let command = named.unwrap_or(&root);
    let is_flag = |long: &str| command.get_arguments().any(|arg| arg.get_long() == Some(long));
    let word = argv.iter().skip(1).take_while(|word| *word != "--").find_map(|word| {
        let name = word.to_str()?.strip_prefix('-')?.split('=').next()?;
        (name.len() > 1 && is_flag(name)).then_some(name)
    })?;
    Some(Failure::usage(format!("unknown flag `-{word}`"), format!("long names have two dashes: `--{word}`")))
}

/// k6's own that take no value, but may have one.
const K6_SWITCHES: [&str; 17] = [
    "--discard-response-bodies",
    "--include-system-env-vars",
    "--insecure-skip-tls-verify",
    "--linger",
    "--new-machine-readable-summary",
    "--no-color",
    "--no-connection-reuse",
    "--no-setup",
    "--no-summary",
    "--no-teardown",
    "--no-thresholds",
    "--no-usage-report",
    "--no-vu-connection-reuse",
    "--profiling-enabled",
    "--quiet",
    "--throw",
    "--verbose",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<OsString> {
        format!("squall {text}").split(' ').map(OsString::from).collect()
    }

    #[test]
    fn switches_of_k6_may_say_what_they_are() {
        for (typed, plain) in [
            ("run --no-setup=false --quiet=true x.js", "run --quiet x.js"),
            ("run --include-system-env-vars=false x.js", "run --no-system-env-vars x.js"),
            ("run --include-system-env-vars=true x.js", "run --include-system-env-vars x.js"),
            ("run --no-setup=maybe x.js", "run --no-setup=maybe x.js"),
            ("run x.js -- --quiet=true", "run x.js -- --quiet=true"),
            ("http --quiet=true", "http --quiet=true"),
        ] {
            assert_eq!(settled(words(typed)), words(plain), "{typed}");
        }
    }

    #[test]
    fn own_flags_of_a_study_may_stand_behind_the_url() {
        for (typed, settled_to) in [
            ("sweep x:80/ --connections 1..8 -d 1s", "sweep --connections 1..8 x:80/ -d 1s"),
            ("sweep --rates=1..8 x/ --pause=0s -H a:b", "sweep --rates=1..8 --pause=0s x/ -H a:b"),
            ("capacity x/ --slo p(99)<5 --insecure", "capacity --slo p(99)<5 x/ --insecure"),
            ("capacity --slo p(99)<5 -- --start", "capacity --slo p(99)<5 -- --start"),
            ("compare a -- b --force --change 2 -- c", "compare a --force --change 2 -- b -- c"),
            ("compare a b --change 2", "compare a b --change 2"),
            ("http x/ --pause 1s", "http x/ --pause 1s"),
        ] {
            assert_eq!(settled(words(typed)), words(settled_to), "{typed}");
        }
    }

    #[test]
    fn one_dash_before_a_long_name_is_one_too_few() {
        let typed = |text: &str| single_dash(&words(text)).map(|failure| failure.help);
        assert_eq!(typed("-rate=500 x/").as_deref(), Some("long names have two dashes: `--rate`"));
        assert_eq!(
            typed("idle -connections 5 x/").as_deref(),
            Some("long names have two dashes: `--connections`")
        );
        for other in ["-r500 x/", "-nx x/", "--rat 5 x/", "-- -rate"] {
            assert_eq!(typed(other), None, "{other}");
        }
    }
}
