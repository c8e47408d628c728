//! The flags of `squall replay`.

use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Arg, Args, ValueEnum};
use squall_plan::units::parse_duration;
use squall_plan::{Change, InputError};
use url::Url;

use super::traffic::base;
use super::{ConnectionArgs, LoadArgs, OutputArgs, ReadArgs, TlsArgs, values};

/// `squall replay`. The flags that it shares with `squall http` have other defaults here.
#[derive(Debug, Args)]
#[command(
    mut_arg("connections", |arg| described(arg, "Maximum concurrent connections [default: 1000]; with --asap, the number kept busy [default: 50]")),
    mut_arg("duration", |arg| described(arg, "Stop after this time [default: the end of the recording; 10s with --loop]")),
    mut_arg("http", |arg| described(arg, "HTTP version: 1.1, 2 or auto (the server chooses) [default: auto]")),
    mut_arg("streams", |arg| described(arg, "Concurrent requests per HTTP/2 connection, up to the server's limit [default: 100]").hide_default_value(true)),
    mut_arg("name", |arg| described(arg, "Name of the run, in its folder and reports [default: the file's name]"))
)]
pub(crate) struct ReplayArgs {
    /// The recording: HAR, .gor, RRPair, access log, mitmproxy, curl commands, Postman or .squall; - is stdin
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    #[command(flatten)]
    pub play: PlayArgs,
    #[command(flatten)]
    pub load: LoadArgs,
    #[command(flatten)]
    pub request: ReplayRequestArgs,
    #[command(flatten)]
    pub read: ReadArgs,
    #[command(flatten)]
    pub connection: ConnectionArgs,
    #[command(flatten)]
    pub tls: TlsArgs,
    #[command(flatten)]
    pub output: OutputArgs,
}

/// When requests start, and for which users.
#[derive(Debug, Args)]
#[command(next_help_heading = "Replay")]
pub(crate) struct PlayArgs {
    /// Replay speed relative to the recording, such as 10 or 0.5 [default: 1]
    #[arg(long, value_name = "FACTOR", value_parser = speed, conflicts_with_all = ["rate", "asap"])]
    pub speed: Option<f64>,
    /// Replay as fast as responses arrive: each of --connections plays the whole recording
    #[arg(long, conflicts_with_all = ["rate", "users"])]
    pub asap: bool,
    /// Copies of the recorded clients to run at the same time [default: 1]
    #[arg(long, value_name = "N", value_parser = values::connections)]
    pub users: Option<NonZeroU32>,
    /// Delay between the starts of consecutive copies [default: 10s / users]
    #[arg(long, value_name = "TIME", value_parser = parse_duration, requires = "users")]
    pub user_shift: Option<Duration>,
    /// Start again at the end, until --duration or --requests is reached
    #[arg(long = "loop")]
    pub loops: bool,
    /// Shorten longer pauses in the recording to this, before applying --speed
    #[arg(long, value_name = "TIME", value_parser = parse_duration, conflicts_with_all = ["rate", "asap"])]
    pub max_gap: Option<Duration>,
    /// Do not wait for responses that a session waited for when it was recorded
    #[arg(long)]
    pub no_order: bool,
    /// Share connections, instead of one for each recorded connection
    #[arg(long)]
    pub pooled: bool,
}

/// What is sent, and what is made of the answers.
#[derive(Debug, Args)]
#[command(next_help_heading = "Request")]
pub(crate) struct ReplayRequestArgs {
    /// Send all requests here instead of to the recorded server: http://host:port or http://host:port/prefix
    #[arg(long, value_name = "URL", value_parser = base)]
    pub to: Option<Url>,
    /// With --to: leave the fields Host, Origin and Referer as recorded
    #[arg(long, requires = "to")]
    pub keep_host: bool,
    /// Set a header field: 'Name: value' (repeatable)
    ///
    /// Values are templates: {user} is the number of the copy, {record} that of the request in the recording, {unique} a
    /// number unique to the request, {now_ms} and {now_s} the current time, {csv.NAME} a column of --csv; {{ is a brace.
    #[arg(long, value_name = "HEADER", value_parser = set_header)]
    pub set_header: Vec<Change>,
    /// Remove a header field (repeatable)
    #[arg(long, value_name = "NAME", value_parser = drop_header)]
    pub drop_header: Vec<Change>,
    /// Set a parameter of the query: NAME=VALUE (repeatable)
    #[arg(long, value_name = "PARAMETER", value_parser = set_query)]
    pub set_query: Vec<Change>,
    /// Set a field in forms that contain it, urlencoded or multipart: NAME=VALUE (repeatable)
    #[arg(long, value_name = "FIELD", value_parser = set_form)]
    pub set_form: Vec<Change>,
    /// Set a value in JSON bodies that contain it: /path/to/it=VALUE, where * is any name or index (repeatable)
    #[arg(long, value_name = "VALUE", value_parser = set_json)]
    pub set_json: Vec<Change>,
    /// Set a cookie: NAME=VALUE (repeatable)
    #[arg(long, value_name = "COOKIE", value_parser = set_cookie)]
    pub set_cookie: Vec<Change>,
    /// Replace what a regular expression matches in URLs and bodies: 'PATTERN=>TEXT' (repeatable)
    ///
    /// TEXT is a template in which $1 is the pattern's first group, and {{ a brace.
    #[arg(long, value_name = "RULE", value_parser = replace)]
    pub replace: Vec<Change>,
    /// CSV file with a header row, whose columns templates use as {csv.NAME}
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
    /// When to take the next row of --csv: for each user (a copy of the recorded clients) or each request
    #[arg(long, value_name = "WHO", value_enum, default_value_t = DealArg::User, hide_possible_values = true, requires = "csv")]
    pub csv_per: DealArg,
    /// Shift recorded timestamps to the present, in URLs, header fields and bodies
    ///
    /// ISO 8601 times and dates, and seconds or milliseconds since the epoch, that lie within a year of their request.
    #[arg(long)]
    pub shift_times: bool,
    /// Give each copy unique ids in place of those that clients made up: UUIDs, or what this regular expression matches
    ///
    /// Within a copy the same id always maps to the same new id, of the same format. Ids from the server are handled by learning.
    #[arg(long, value_name = "PATTERN", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    pub unique_ids: Option<String>,
    /// Re-sign JSON Web Tokens, valid from now, with the key in this file: RSA or EC (PEM), or a secret
    #[arg(long, value_name = "FILE")]
    pub sign_jwt: Option<PathBuf>,
    /// With --sign-jwt: set a claim, NAME=VALUE; a template (repeatable)
    #[arg(long, value_name = "CLAIM", value_parser = pair, requires = "sign_jwt")]
    pub jwt_claim: Vec<(String, String)>,
    /// Do not learn which response values reappear in later requests
    ///
    /// Session ids, tokens and ids of created objects are learned; live values replace the recorded ones.
    #[arg(long)]
    pub no_learn: bool,
    /// What to compare with the recorded response: nothing, status or body
    #[arg(long, value_name = "WHAT", value_enum, default_value_t = CompareArg::Status, hide_possible_values = true)]
    pub compare: CompareArg,
    /// Time limit from sending a request to the end of its response
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = values::time)]
    pub timeout: Duration,
}

/// `--csv-per`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum DealArg {
    User,
    Request,
}

/// `--compare`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum CompareArg {
    Nothing,
    Status,
    Body,
}

fn described(arg: Arg, help: &'static str) -> Arg {
    arg.help(help).long_help(help)
}

fn speed(text: &str) -> Result<f64, InputError> {
    let help = "write a factor such as 10, 0.5 or 2x";
    let number: f64 = text.trim_end_matches('x').parse().map_err(|_| refused("not a number", help))?;
    match number {
        0.001..=100_000.0 => Ok(number),
        _ => Err(refused("not between 0.001 and 100000", help)),
    }
}

fn set_header(text: &str) -> Result<Change, InputError> {
    let (name, value) = text.split_once(':').ok_or_else(|| refused("no colon", "write 'Name: value'"))?;
    let name = token(name.trim())?;
    squall_traffic::change::check_template(value)?;
    Ok(Change::SetHeader { name, value: value.trim().to_owned() })
}

fn drop_header(text: &str) -> Result<Change, InputError> {
    Ok(Change::DropHeader { name: token(text.trim_end_matches(':').trim())? })
}

fn set_query(text: &str) -> Result<Change, InputError> {
    let (name, value) = pair(text)?;
    Ok(Change::SetQuery { name, value })
}

fn set_form(text: &str) -> Result<Change, InputError> {
    let (name, value) = pair(text)?;
    Ok(Change::SetForm { name, value })
}

fn set_json(text: &str) -> Result<Change, InputError> {
    let (pointer, value) = pair(text)?;
    match pointer.starts_with('/') {
        true => Ok(Change::SetJson { pointer, value }),
        false => Err(refused("the path does not begin with /", "write it as /name/0/name=VALUE (RFC 6901)")),
    }
}

fn set_cookie(text: &str) -> Result<Change, InputError> {
    let (name, value) = pair(text)?;
    Ok(Change::SetCookie { name: token(&name)?, value })
}

fn replace(text: &str) -> Result<Change, InputError> {
    let (pattern, with) = text
        .split_once("=>")
        .ok_or_else(|| refused("no `=>`", "write 'PATTERN=>TEXT', with $1 for groups"))?;
    squall_traffic::pattern::compile(pattern)?;
    squall_traffic::change::check_replacement(with)?;
    Ok(Change::Replace { pattern: pattern.to_owned(), with: with.to_owned() })
}

fn pair(text: &str) -> Result<(String, String), InputError> {
    let (name, value) = text.split_once('=').ok_or_else(|| refused("no `=`", "write NAME=VALUE"))?;
    squall_traffic::change::check_template(value)?;
    Ok((name.to_owned(), value.to_owned()))
}

fn token(name: &str) -> Result<String, InputError> {
    match squall_plan::urls::is_token(name) {
        true => Ok(name.to_owned()),
        false => Err(refused("not a valid header or cookie name", "remove spaces and separators")),
    }
}

fn refused(reason: &str, help: &str) -> InputError {
    InputError { column: 1, reason: reason.to_owned(), help: help.to_owned() }
}
