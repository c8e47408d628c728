//! From `argv` to [`Cli`], with one style of message for everything that can be wrong with it.
//!
//! clap finds what is wrong; the words are ours: `error: ..`, a blank line, `help: ..` with what to type instead.

mod argv;
mod given;
mod k6_words;
mod run_flags;

use std::error::Error as _;
use std::ffi::OsString;
use std::path::Path;

use clap::error::{ContextKind, ErrorKind};
use clap::{ArgMatches, CommandFactory, FromArgMatches};
use squall_plan::load as plans;
use squall_plan::options::LoadType;
use squall_plan::{InputError, LoadSpec, OptionProblem, Problems, nearest, option_name};
use squall_script::script_settings;

use given::GivenWords;

use crate::args::{Cli, Command, OVERVIEW};
use crate::failure::{ExitCode, Failure};
use crate::load;
use crate::run::Kind;

/// What was asked for.
#[derive(Debug)]
pub(crate) enum Request {
    /// Overview, help or version: this text.
    Show(String),
    /// A command.
    Do(Command),
}

/// Reads `argv`.
pub(crate) fn parse(argv: impl IntoIterator<Item = OsString>) -> Result<Request, Failure> {
    let argv = argv::settled(argv.into_iter().collect());
    if argv.len() < 2 {
        return Ok(Request::Show(OVERVIEW.to_owned()));
    }
    match read(&argv) {
        Ok((Cli { command: Some(Command::Run(args)), .. }, given)) => {
            let checked = given.subcommand().map_or(Ok(()), |(_, given)| run_flags::check(&args, given));
            checked.map_err(|failure| coded(&argv, failure))?;
            Ok(Request::Do(Command::Run(args)))
        }
        Ok((Cli { command: Some(command), .. }, _)) => Ok(Request::Do(command)),
        Ok((Cli { command: None, http }, _)) if http.urls.first().is_some_and(|word| word == "version") => {
            Ok(Request::Show(Cli::command().render_version()))
        }
        Ok((Cli { command: None, http }, _)) => {
            refuse_no_url(http.urls.first())?;
            Ok(Request::Do(Command::Http(Box::new(http))))
        }
        Err(error) if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) => {
            Ok(Request::Show(error.render().to_string()))
        }
        Err(error) => {
            let word = argv.get(1).and_then(|word| word.to_str()).unwrap_or_default();
            let meant = k6_words::answer(word)
                .or_else(|| argv::single_dash(&argv))
                .or_else(|| incomplete(word, &error).filter(|_| LoadType::of(word).is_none()))
                .or_else(|| mistyped(word));
            Err(coded(&argv, meant.unwrap_or_else(|| all_problems(&argv).into())))
        }
    }
}

/// All that is wrong with flags of which at least one is.
fn all_problems(argv: &[OsString]) -> Problems {
    let mut given = GivenWords::of_argv(argv);
    let of_load = given.parsed().and_then(|command| problems_of(&command, given.has_doubtful_arguments()));
    given.note_all(of_load.unwrap_or_default());
    Problems(given.problems)
}

/// What is wrong with the load of a command, as far as it is there. With an unknown flag, what looks like an argument may be its value.
fn problems_of(command: &Command, has_doubtful_arguments: bool) -> Option<Problems> {
    let part = |spec: LoadSpec| {
        let arguments = if has_doubtful_arguments { Vec::new() } else { spec.arguments };
        LoadSpec { is_whole: false, arguments, ..spec }
    };
    match command {
        Command::Http(args) => plans::http(&part(args.spec()), load::typed()).err(),
        Command::Ws(args) => plans::websocket(&part(args.spec()), load::typed()).err(),
        Command::Stream(args) => plans::stream(&part(args.spec()), load::typed()).err(),
        Command::Handshake(args) => plans::handshake(&part(args.spec()), load::typed()).err(),
        Command::Idle(args) => plans::idle(&part(args.spec()), load::typed()).err(),
        Command::Replay(args) => plans::replay(&part(args.spec()), load::typed()).err(),
        Command::Run(args) => {
            let spec = part(args.load.spec(args.files.first().map(|path| path.to_string_lossy()), None));
            script_settings(&spec, load::typed()).err()
        }
        _ => None,
    }
}

/// Reads the words of a load, as behind `squall`; `argv[1]` names the command. Where help is asked for, nothing is wrong: `None`.
fn command(argv: Vec<OsString>) -> Result<Command, Option<OptionProblem>> {
    let argv = argv::settled(argv);
    let word = argv.get(1).and_then(|word| word.to_str()).unwrap_or_default();
    match read(&argv) {
        Ok((Cli { command: Some(command), .. }, _)) => Ok(command),
        Ok((Cli { command: None, http }, _)) => Ok(Command::Http(Box::new(http))),
        Err(error) if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) => Err(None),
        Err(error) => Err(Some(problem(&error, word))),
    }
}

/// What clap finds wrong, as a value.
fn problem(error: &clap::Error, word: &str) -> OptionProblem {
    let Failure { message, help, .. } =
        incomplete(word, error).unwrap_or_else(|| pointed(failure(error, word), word));
    let shown = context(error, ContextKind::InvalidArg);
    let first = shown.split(", ").next().filter(|first| !first.is_empty());
    let other = context(error, ContextKind::PriorArg);
    OptionProblem {
        option: first.map(|first| option_name(first).to_owned()),
        place: None,
        others: Some(option_name(&other).to_owned()).filter(|name| !name.is_empty()).into_iter().collect(),
        message,
        help,
    }
}

/// Wrong flags of a k6 script end with 255, as in k6.
fn coded(argv: &[OsString], failure: Failure) -> Failure {
    let mut words = argv.iter().skip(1);
    let is_run = words.next().is_some_and(|word| word == "run" || word == "inspect");
    let is_script = |word: &OsString| Kind::of(Path::new(word)) == Some(Kind::Script);
    let code = if is_run && words.any(is_script) { ExitCode::ScriptLoad } else { failure.code };
    Failure { code, ..failure }
}

fn read(argv: &[OsString]) -> Result<(Cli, ArgMatches), clap::Error> {
    let given = Cli::command().try_get_matches_from(argv)?;
    Cli::from_arg_matches(&given).map(|cli| (cli, given))
}

/// A first word that cannot be a URL was meant as a command, or as a file to run. (A number was meant as some flag's value:
/// `load` says so.)
fn refuse_no_url(word: Option<&String>) -> Result<(), Failure> {
    let Some(word) = word else { return Ok(()) };
    if let Some(failure) = k6_words::answer(word) {
        return Err(failure);
    }
    let is_file = !word.contains("://") && (Path::new(word).is_file() || !word.contains('/'));
    if is_file && Kind::of(Path::new(word)).is_some() {
        let help = format!("to run it: `squall run {word}`");
        return Err(Failure::usage(format!("`{word}` is a file, not a URL"), help));
    }
    match near_command(word) {
        Some(name) if name == *word => {
            let help = format!("flags go after the command: `squall {word} --flag`");
            Err(Failure::usage(format!("the command `{word}` must come first"), help))
        }
        _ if !is_word(word) || word == "localhost" => Ok(()),
        _ => Err(mistyped(word).unwrap_or_else(|| {
            let help = format!("for a host with that name, write `http://{word}/`");
            Failure::usage(format!("no such command: `{word}`"), help)
        })),
    }
}

/// A command with a similar name.
fn mistyped(word: &str) -> Option<Failure> {
    let name = near_command(word).filter(|name| name != word)?;
    let help = format!("a command with a similar name exists: `{name}`");
    Some(Failure::usage(format!("no such command: `{word}`"), help))
}

/// The command that is called so, or nearly so.
fn near_command(word: &str) -> Option<String> {
    let command = Cli::command();
    let names = command.get_subcommands().map(clap::Command::get_name);
    nearest(word, names).filter(|_| is_word(word)).map(str::to_owned)
}

fn is_word(word: &str) -> bool {
    let is_plain = word.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_');
    is_plain && word.bytes().any(|b| !b.is_ascii_digit()) && !word.starts_with('-')
}

/// A command without what it needs.
fn incomplete(word: &str, error: &clap::Error) -> Option<Failure> {
    let mut root = Cli::command();
    root.build();
    let command = root.find_subcommand_mut(word)?;
    match error.kind() {
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand if command.has_subcommands() => {
            let names: Vec<&str> = command.get_subcommands().map(clap::Command::get_name).collect();
            let message = format!("`squall {word}` needs a subcommand");
            Some(Failure::usage(message, format!("choose one: `squall {word} {}`", names.join("|"))))
        }
        ErrorKind::MissingRequiredArgument => {
            let arg = context(error, ContextKind::InvalidArg);
            let usage = command.render_usage().to_string();
            let name = arg.split([' ', ',']).next().unwrap_or_default();
            if name.starts_with("--") && !usage.contains(name) {
                return None;
            }
            let usage: Vec<&str> = usage.trim_start_matches("Usage:").lines().map(str::trim).collect();
            let help = format!("write `{}`", usage.join("`, or `"));
            Some(Failure::usage(format!("`{arg}` is missing"), help))
        }
        _ => None,
    }
}

/// The flags of a command are explained by its own help.
fn pointed(failure: Failure, word: &str) -> Failure {
    let root = Cli::command();
    if root.find_subcommand(word).is_none() {
        return failure;
    }
    let of_replay = root.find_subcommand("replay").filter(|_| word == "run").and_then(|replay| {
        let flag = failure.message.strip_prefix("unknown flag `--")?.strip_suffix('`')?;
        replay.get_arguments().find(|arg| arg.get_long() == Some(flag))
    });
    if of_replay.is_some() {
        let help = "for recorded traffic with flags, use `squall replay FILE`".to_owned();
        return Failure { help, ..failure };
    }
    let help = failure.help.replace("`squall --help`", &format!("`squall {word} --help`"));
    Failure { help, ..failure }
}

fn failure(error: &clap::Error, word: &str) -> Failure {
    let arg = context(error, ContextKind::InvalidArg);
    match error.kind() {
        ErrorKind::UnknownArgument => unknown_argument(error, &arg, word),
        ErrorKind::ValueValidation => invalid_value(error, &arg),
        ErrorKind::InvalidValue => impossible_value(error, &arg),
        ErrorKind::ArgumentConflict => conflict(error, &arg),
        ErrorKind::MissingRequiredArgument => missing(&arg),
        ErrorKind::InvalidUtf8 if !arg.is_empty() => {
            let help = "rename the file, or write the value in UTF-8";
            Failure::usage(format!("the value of `{arg}` is not valid UTF-8"), help)
        }
        _ => Failure::usage(first_line(error), "`squall --help` explains every flag"),
    }
}

/// Flags that others need: clap separates them by commas.
fn missing(args: &str) -> Failure {
    let (verb, object) = if args.contains(", ") { ("are", "them") } else { ("is", "it") };
    let message = format!("`{}` {verb} missing", args.replace(", ", "` and `"));
    Failure::usage(message, format!("another flag requires {object}; see `squall --help`"))
}

fn unknown_argument(error: &clap::Error, arg: &str, word: &str) -> Failure {
    if !arg.starts_with('-') {
        return Failure::usage(format!("unexpected argument `{arg}`"), "see `squall --help`");
    }
    if arg.as_bytes().get(1).is_some_and(u8::is_ascii_digit) {
        return Failure::usage(
            format!("`{arg}` is not a flag, and negative values are not allowed"),
            "write times, rates and counts without a sign",
        );
    }
    // Those are flags of requests, which these commands do not make.
    let makes_requests = !["handshake", "idle", "ws", "target", "record", "mock", "convert"].contains(&word);
    if matches!(word, "record" | "mock") && ["-p", "--port"].contains(&arg) {
        return Failure::usage(format!("unknown flag `{arg}`"), "use `--listen ADDRESS:PORT`");
    }
    let alias = FLAGS_OF_OTHER_TOOLS.iter().find(|(flags, _)| makes_requests && flags.contains(&arg));
    let similar = context(error, ContextKind::SuggestedArg);
    let help = match alias {
        Some((_, help)) => (*help).to_owned(),
        None if similar.is_empty() => "`squall --help` explains every flag".to_owned(),
        None => format!("a similar flag exists: `{similar}`"),
    };
    Failure::usage(format!("unknown flag `{arg}`"), help)
}

fn invalid_value(error: &clap::Error, arg: &str) -> Failure {
    let value = context(error, ContextKind::InvalidValue);
    match error.source().and_then(|source| source.downcast_ref::<InputError>()) {
        Some(reason) => Failure::value(arg, &value, reason),
        None => {
            let reason = error.source().map_or_else(String::new, |source| format!(": {source}"));
            Failure::usage(format!("invalid value `{value}` for `{arg}`{reason}"), "see `squall --help`")
        }
    }
}

fn impossible_value(error: &clap::Error, arg: &str) -> Failure {
    let value = context(error, ContextKind::InvalidValue);
    let possible = context(error, ContextKind::ValidValue);
    let help = if possible.is_empty() {
        "see `squall --help`".to_owned()
    } else {
        format!("possible values: {possible}")
    };
    if value.is_empty() {
        return Failure::usage(format!("`{arg}` needs a value"), help);
    }
    Failure::usage(format!("invalid value `{value}` for `{arg}`"), help)
}

fn conflict(error: &clap::Error, arg: &str) -> Failure {
    let other = context(error, ContextKind::PriorArg);
    if other.is_empty() {
        return Failure::usage(first_line(error), "flags go after the command: `squall http -c 10 URL`");
    }
    if other == arg {
        return Failure::usage(format!("`{arg}` was given twice"), "give it once");
    }
    Failure::usage(format!("`{arg}` cannot be used with `{other}`"), "remove one of them")
}

fn context(error: &clap::Error, kind: ContextKind) -> String {
    error.get(kind).map(ToString::to_string).unwrap_or_default()
}

fn first_line(error: &clap::Error) -> String {
    let text = error.render().to_string();
    let line = text.lines().next().unwrap_or_default();
    line.trim_start_matches("error: ").replace('\'', "`")
}

/// What people type who know wrk, oha, ab, h2load, k6, vegeta, hey or curl.
const FLAGS_OF_OTHER_TOOLS: &[(&[&str], &str)] = &[
    (
        &["--vus", "--clients", "--concurrency", "--workers", "--max-connections"],
        "for connections use `-c N`, for users who share them `--users N`",
    ),
    (
        &["-t"],
        "for threads use `--threads N`, for a time limit per request `--timeout TIME`, for the length of the run `-d TIME`",
    ),
    (
        &["-T", "--max-time"],
        "for a time limit per request use `--timeout TIME`; for a content type `-H 'Content-Type: TYPE'`",
    ),
    (&["-z", "--time", "--timelimit"], "for the length of the run use `-d TIME`"),
    (
        &["-R", "--qps", "--rps", "--arrival-rate"],
        "for requests per second use `-r RATE`, such as `-r 500/s`",
    ),
    (
        &["-i", "--iterations", "--amount", "--count"],
        "for the number of requests use `-n N`; for a list of URLs `--urls FILE`",
    ),
    (&["-s", "--stage", "--stages"], "for stages use `--ramp 10s:100,1m:1000`"),
    (&["-m", "--request"], "for the method use `-X METHOD`"),
    (&["-a", "-A", "-u", "--user"], "for a user and password use `--basic USER:PASSWORD`"),
    (&["-b", "-C"], "for a cookie use `--cookie NAME=VALUE`"),
    (
        &["-D", "--data", "--data-binary", "--data-raw"],
        "for a body use `--body TEXT` or `--body-file FILE`; for the length of the run `-d TIME`",
    ),
    (&["-F"], "for a form field use `--form NAME=VALUE`"),
    (&["-p"], "for pipelining use `--pipeline N`; for a body from a file `--body-file FILE`"),
    (&["-k"], "connections are kept alive by default; to skip certificate checks use `--insecure`"),
    (&["--insecure-skip-tls-verify"], "to skip certificate checks use `--insecure`"),
    (
        &["--disable-keepalive", "--no-connection-reuse", "--no-vu-connection-reuse"],
        "for a new connection per request use `--no-keepalive`",
    ),
    (
        &["-L", "--latency", "--location", "--max-redirects", "--redirects"],
        "to follow redirects use `--follow N`; percentiles are always shown",
    ),
    (&["-x"], "for a proxy use `--proxy URL`"),
    (
        &["--output", "--summary-export"],
        "to write results to a file use `--out json=FILE` or `--out csv=FILE`",
    ),
    (&["--output-format", "--format"], "for JSON use `--json -` or `--json FILE`"),
    (&["--no-tui", "--silent", "--no-progress"], "for less output use `--quiet`"),
    (&["--laddr", "--interface", "--local-ips", "--bind"], "for local addresses use `--source ADDRESSES`"),
    (
        &["--url", "--targets", "--input-file", "--urls-from-file"],
        "give URLs as arguments, `squall URL`, or with `--urls FILE`",
    ),
    (&["--warm-up-time", "--warmup-time"], "for a warm-up use `--warmup TIME`"),
    (&["--host"], "for the Host header use `-H 'Host: NAME'`"),
    (&["--no-color", "--no-colour"], "to turn colour off use `--color never`"),
    (
        &[
            "--h1",
            "--http1.1",
            "--h2",
            "--http2",
            "--http2-prior-knowledge",
            "--http-version",
            "--h3",
            "--http3",
        ],
        "for the protocol use `--http 1.1|2|3|auto`, for HTTP/2 without TLS `--h2c`",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn failure_of(args: &[&str]) -> Failure {
        let argv = ["squall"].iter().chain(args).map(OsString::from);
        parse(argv).unwrap_err()
    }

    #[test]
    fn flags_of_other_tools_are_answered_with_the_name_here() {
        for (flag, name) in [
            ("--vus", "-c N"),
            ("-t", "--threads N"),
            ("--rps", "-r RATE"),
            ("--data", "--body"),
            ("-k", "--insecure"),
        ] {
            let failure = failure_of(&[flag, "5", "http://x/"]);
            assert!(failure.message.contains(flag) && failure.help.contains(name), "{failure:?}");
        }
    }

    #[test]
    fn the_table_of_other_tools_names_no_flag_of_ours() {
        let mut command = Cli::command();
        command.build();
        let ours: Vec<String> = command
            .get_arguments()
            .flat_map(|arg| {
                [arg.get_long().map(|l| format!("--{l}")), arg.get_short().map(|s| format!("-{s}"))]
            })
            .flatten()
            .collect();
        for flag in FLAGS_OF_OTHER_TOOLS.iter().flat_map(|(flags, _)| *flags) {
            assert!(!ours.iter().any(|name| name == flag), "{flag} is a flag here");
        }
    }

    #[test]
    fn a_mistyped_command_is_distinguished_from_a_url() {
        assert_eq!(failure_of(&["completion"]).help, "a command with a similar name exists: `completions`");
        assert_eq!(failure_of(&["buidl"]).help, "for a host with that name, write `http://buidl/`");
        for url in ["localhost", "x.org", "x:80", "http://x"] {
            assert!(parse(["squall", url].map(OsString::from)).is_ok(), "{url}");
        }
        assert!(parse(["squall", "http", "server"].map(OsString::from)).is_ok());
    }

    #[cfg(unix)]
    #[test]
    fn values_that_are_not_utf8_are_named() {
        use std::os::unix::ffi::OsStringExt;
        let path = OsString::from_vec(b"a\xffb".to_vec());
        let argv = ["squall", "--cacert"].map(OsString::from).into_iter().chain([path, "x/".into()]);
        let message = parse(argv).unwrap_err().message;
        assert_eq!(message, "the value of `--cacert <FILE>` is not valid UTF-8");
    }

    #[test]
    fn help_and_version_are_results_not_failures() {
        for flag in ["-h", "--help", "-V", "--version"] {
            let words = ["squall", "--rate", "5x", flag].map(OsString::from);
            assert!(matches!(parse(words), Ok(Request::Show(_))), "{flag}");
        }
    }
}
