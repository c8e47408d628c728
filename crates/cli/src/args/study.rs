//! The flags of the commands that make or read many runs: compare, sweep, capacity, runs.

use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use squall_plan::InputError;
use squall_plan::units::{parse_count, parse_duration, parse_rate};

use super::{ColorArg, values};

/// `squall compare`.
#[derive(Debug, Args)]
#[command(
    override_usage = "squall compare A... -- B... [-- C...]\n       squall compare --run PLAN PLAN... [--repeat N]"
)]
pub(crate) struct CompareArgs {
    /// Folders of saved runs, in groups separated by `--`; the first group is the baseline
    #[arg(value_name = "RUN", required_unless_present = "run", conflicts_with = "run")]
    pub runs: Vec<PathBuf>,
    #[arg(last = true, hide = true)]
    pub others: Vec<String>,
    /// Make the runs first, interleaved: plan files, or flags of `squall http` in quotes (two or more)
    #[arg(long, value_name = "PLAN", num_args = 2..)]
    pub run: Vec<String>,
    /// Number of runs of each plan
    #[arg(long, value_name = "N", default_value = "5", requires = "run", value_parser = repeats)]
    pub repeat: u32,
    /// Names of the groups, separated by commas [default: a, b, ...]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub names: Vec<String>,
    /// Smallest change to report as better or worse, in percent
    #[arg(long, value_name = "PERCENT", default_value = "1", value_parser = percent)]
    pub change: f64,
    /// Compare even when the groups made different loads
    #[arg(long)]
    pub force: bool,
    #[command(flatten)]
    pub output: StudyOutputArgs,
}

/// `squall sweep`.
#[derive(Debug, Args)]
#[command(
    override_usage = "squall sweep --connections LIST [OPTIONS] [OPTIONS of squall http] URL...\n       squall sweep --rates LIST [OPTIONS] [OPTIONS of squall http] URL..."
)]
pub(crate) struct SweepArgs {
    /// Connection counts to test, such as 6,12,25,50, or FROM..TO for doublings
    #[arg(long, value_name = "LIST", value_parser = connection_levels, conflicts_with = "rates", required_unless_present = "rates")]
    pub connections: Option<Levels>,
    /// Request rates per second to test, such as 100,1k,10k, or FROM..TO for doublings
    #[arg(long, value_name = "LIST", value_parser = rate_levels)]
    pub rates: Option<Levels>,
    /// A variant of the load, `NAME: FLAGS`, run at all levels with these flags added (repeatable)
    #[arg(long, value_name = "VARIANT")]
    pub line: Vec<String>,
    #[command(flatten)]
    pub runs: StudyRunArgs,
}

/// `squall capacity`.
#[derive(Debug, Args)]
#[command(override_usage = "squall capacity --slo RULES [OPTIONS] [OPTIONS of squall http] URL...")]
pub(crate) struct CapacityArgs {
    /// Objectives, separated by commas, such as 'p(99)<200,errors<0.1%'
    #[arg(long, value_name = "RULES")]
    pub slo: String,
    /// Rate of the first probe
    #[arg(long, value_name = "RATE", default_value = "100/s", value_parser = rate)]
    pub start: f64,
    /// Highest rate to probe
    #[arg(long, value_name = "RATE", default_value = "1M/s", value_parser = rate)]
    pub max: f64,
    /// Target width of the result interval, in percent
    #[arg(long, value_name = "PERCENT", default_value = "5", value_parser = percent)]
    pub resolution: f64,
    /// Maximum number of probes
    #[arg(long, value_name = "N", default_value = "60", value_parser = probes)]
    pub probes: u32,
    /// Length of a probe
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = values::time)]
    pub probe: Duration,
    #[command(flatten)]
    pub runs: StudyRunArgs,
}

/// The runs of a study: what they have in common, and what is kept of them.
#[derive(Debug, Args)]
pub(crate) struct StudyRunArgs {
    /// Pause between runs, so that one run does not affect the next
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = parse_duration)]
    pub pause: Duration,
    /// Monitor CPU and memory of local processes: a name, a process id, or (sweep) VARIANT=NAME (repeatable)
    #[arg(long, value_name = "PROCESS")]
    pub watch: Vec<String>,
    #[command(flatten)]
    pub output: StudyOutputArgs,
    /// URLs and flags of `squall http`
    #[arg(value_name = "HTTP", trailing_var_arg = true, allow_hyphen_values = true)]
    pub rest: Vec<String>,
}

/// `squall runs`.
#[derive(Debug, Args)]
pub(crate) struct RunsArgs {
    /// Folder of saved runs [default: the user's]
    #[arg(value_name = "DIR")]
    pub place: Option<PathBuf>,
    /// Only runs whose name contains this
    #[arg(long, value_name = "TEXT")]
    pub name: Option<String>,
    /// Only runs with this verdict: valid, suspect or invalid
    #[arg(long, value_name = "VERDICT", value_parser = ["valid", "suspect", "invalid"], hide_possible_values = true)]
    pub verdict: Option<String>,
    /// Only runs that missed a threshold
    #[arg(long)]
    pub missed: bool,
    /// Show at most this many of the newest runs
    #[arg(long, value_name = "N", default_value = "20", value_parser = runs)]
    pub last: u32,
    /// Write an index page that links to each run's report
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Print only the folder names
    #[arg(long)]
    pub folders: bool,
    /// When to use colour: auto, always or never
    #[arg(long, value_name = "WHEN", value_enum, default_value_t = ColorArg::Auto, hide_possible_values = true)]
    pub color: ColorArg,
}

/// What a study writes.
#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct StudyOutputArgs {
    /// Save the study and its runs in a new folder in DIR [default: the user's state directory]
    #[arg(long, value_name = "DIR")]
    pub results: Option<PathBuf>,
    /// Write the result to a file: html, json, csv (sweep) or markdown (compare) = FILE, `-` for stdout (repeatable)
    #[arg(long, value_name = "FORMAT=FILE")]
    pub out: Vec<String>,
    /// When to use colour: auto, always or never
    #[arg(long, value_name = "WHEN", value_enum, default_value_t = ColorArg::Auto, hide_possible_values = true)]
    pub color: ColorArg,
}

/// Levels in rising order: a separate type, because clap gives `Vec` a meaning.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Levels(pub Vec<f64>);

fn connection_levels(text: &str) -> Result<Levels, InputError> {
    levels(text, |part| parse_count(part).map(|count| count as f64))
}

fn rate_levels(text: &str) -> Result<Levels, InputError> {
    levels(text, parse_rate)
}

fn rate(text: &str) -> Result<f64, InputError> {
    let rate = parse_rate(text)?;
    if rate >= 1.0 {
        Ok(rate)
    } else {
        Err(values::refused("less than one request per second", "write a rate such as `500/s`"))
    }
}

fn repeats(text: &str) -> Result<u32, InputError> {
    values::counted(text, 1000).map(NonZeroU32::get)
}

fn probes(text: &str) -> Result<u32, InputError> {
    values::counted(text, 10_000).map(NonZeroU32::get)
}

fn runs(text: &str) -> Result<u32, InputError> {
    values::counted(text, u32::MAX).map(NonZeroU32::get)
}

fn percent(text: &str) -> Result<f64, InputError> {
    match text.trim_end_matches('%').trim_end().parse::<f64>() {
        Ok(value) if value > 0.0 && value <= 100.0 => Ok(value / 100.0),
        _ => {
            Err(values::refused("not a percentage between 0 and 100", "write a number such as `1` or `2.5`"))
        }
    }
}

/// `6,12,25` or `1..64`, which doubles; rising, without repeats.
fn levels(text: &str, parse: impl Fn(&str) -> Result<f64, InputError>) -> Result<Levels, InputError> {
    let mut all: Vec<f64> = Vec::new();
    for part in text.split(',') {
        match part.split_once("..") {
            None => all.push(parse(part)?),
            Some((from, to)) => all.extend(doublings(parse(from)?, parse(to)?)),
        }
    }
    all.sort_by(f64::total_cmp);
    all.dedup();
    match all[..] {
        [first, ..] if first < 1.0 => Err(values::refused("a level below 1", LEVELS_HELP)),
        [_, _, ..] if all.len() <= LEVEL_COUNT_MAX => Ok(Levels(all)),
        [_, _, ..] => Err(values::refused(format!("more than {LEVEL_COUNT_MAX} levels"), LEVELS_HELP)),
        _ => Err(values::refused("a sweep needs two levels or more", LEVELS_HELP)),
    }
}

fn doublings(from: f64, to: f64) -> Vec<f64> {
    let steps = std::iter::successors(Some(from.max(1.0)), |level| Some(level * 2.0));
    steps.take_while(|level| *level < to).take(LEVEL_COUNT_MAX + 1).chain([to]).collect()
}

/// Far more than a chart can tell apart.
const LEVEL_COUNT_MAX: usize = 100;

const LEVELS_HELP: &str = "write levels such as `6,12,25,50` or `1..64`, which doubles";
