//! Commands of k6 that squall does not have: what to do instead.

use crate::failure::Failure;

/// The answer to a first word that is a command of k6.
pub(super) fn answer(word: &str) -> Option<Failure> {
    let (_, reason, help) = WORDS.iter().find(|(known, _, _)| *known == word)?;
    Some(Failure::usage(format!("`{word}` is a command of k6: {reason}"), *help))
}

const PAUSE: &str = "a running test cannot be controlled from outside";
const PAUSE_HELP: &str =
    "Ctrl-C ends a run with its report; `--web` shows it in a browser, with a button that stops it";

const WORDS: &[(&str, &str, &str)] = &[
    (
        "archive",
        "Squall has no archives",
        "copy the script's folder, and run the script there: `squall run script.js`",
    ),
    (
        "cloud",
        "it sends to Grafana Cloud k6, which only k6 itself can do",
        "run the script here: `squall run script.js`",
    ),
    (
        "login",
        "it is for Grafana Cloud k6, which only k6 itself can use",
        "run the script here: `squall run script.js`",
    ),
    ("pause", PAUSE, PAUSE_HELP),
    ("resume", PAUSE, PAUSE_HELP),
    ("scale", PAUSE, "write the number of virtual users over time as stages: `--stage 1m:10,5m:50`"),
    ("status", PAUSE, "`squall run --web script.js` shows a running test, `squall runs` lists finished ones"),
    ("stats", PAUSE, "`squall run --web script.js` shows a running test"),
    (
        "deps",
        "Squall has no extensions to build",
        "`squall inspect script.js` loads a script with its imports",
    ),
    ("x", "Squall has no extensions", "`squall --help` lists the commands"),
];
