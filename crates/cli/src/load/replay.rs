//! The plan of `squall replay`.

use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::time::Duration;

use squall_plan::{
    Arrival, Change, Compare, ConnectionPolicy, Expect, HttpLoad, HttpVersion, Load, OptionProblem, Pacing,
    Plan, PortablePlan, Problems, Profile, ReplayLoad, ReplayPace, Segment, Stop, What, When,
};
use squall_traffic::store::Index;

use super::{impossible, network, timing};
use crate::args::{
    CompareArg, ConnectionArgs, DealArg, HttpArg, OutputArgs, PacingArg, ReplayArgs, ReplayRequestArgs,
};

/// The plan; `recording` is where the `.squall` file lies that has this index, of whose silences so much is cut.
pub(crate) fn plan(
    args: &ReplayArgs,
    shown: &OutputArgs,
    recording: PathBuf,
    index: &Index,
    cut_ns: u64,
) -> Result<PortablePlan, Problems> {
    let pace = pace(args);
    let mut problems = Problems::default();
    let when = problems.take(match pace {
        ReplayPace::Recorded { .. } => {
            Ok(recorded(args, index.length_ns().saturating_sub(cut_ns), index.record_count))
        }
        ReplayPace::Load => timing::when(&args.load, None),
    });
    let replay = problems.take(replay_load(args, recording, pace));
    let tls = problems.take(network::tls_policy(&args.tls));
    problems.end()?;
    let (Some(when), Some(replay), Some(tls)) = (when, replay, tls) else {
        unreachable!("what is missing is a problem")
    };
    let load = Load {
        name: "replay".to_owned(),
        what: What::Replay(replay),
        when,
        stop: stop(args),
        connections: connections(&args.connection),
        network: network::network(&args.connection),
        tls,
        segment: Segment::WHOLE,
    };
    let plan = Plan {
        name: shown.name.clone().unwrap_or_else(|| default_name(&args.file)),
        loads: vec![load],
        thresholds: thresholds(args, index),
        warmup: args.load.warmup.unwrap_or_default(),
        threads: args.load.threads,
    };
    plan.validate().map_err(|error| impossible(&error))?;
    Ok(PortablePlan { plan, sources: args.connection.source.clone(), opening: None })
}

/// A replay whose responses are not the recorded ones must not pass for a good one.
fn thresholds(args: &ReplayArgs, index: &Index) -> Vec<String> {
    let given = &args.load.threshold;
    let is_compared = index.has_responses && args.request.compare != CompareArg::Nothing;
    let by_default = is_compared && given.iter().all(|rule| rule.metric() != "differing");
    let by_default = by_default.then(|| DIFFERING_DEFAULT.to_owned());
    given.iter().map(|rule| rule.text().to_owned()).chain(by_default).collect()
}

fn replay_load(args: &ReplayArgs, recording: PathBuf, pace: ReplayPace) -> Result<ReplayLoad, Problems> {
    let users = args.play.users.unwrap_or(NonZeroU32::MIN);
    let http = HttpLoad {
        requests: Vec::new(),
        user_agents: Vec::new(),
        follow_count_max: 0,
        expect: Expect::default(),
        timeout: args.request.timeout,
    };
    Ok(ReplayLoad {
        recording,
        to: args.request.to.clone(),
        keeps_host: args.request.keep_host,
        pace,
        users,
        shift: args.play.user_shift.unwrap_or_else(|| SHIFT_ALL / users.get()),
        max_gap: args.play.max_gap,
        loops: args.play.loops,
        keeps_order: !args.play.no_order,
        keeps_connections: !args.play.pooled && !args.play.asap,
        learns: !args.request.no_learn,
        compare: match args.request.compare {
            CompareArg::Nothing => Compare::Nothing,
            CompareArg::Status => Compare::Status,
            CompareArg::Body => Compare::Body,
        },
        changes: changes(&args.request)?,
        version: match args.connection.http {
            None | Some(HttpArg::Auto) => HttpVersion::Auto,
            Some(HttpArg::Http11) => HttpVersion::Http11,
            Some(HttpArg::Http2) => HttpVersion::Http2,
        },
        http,
    })
}

/// A browser's connection carries many requests at once.
fn connections(args: &ConnectionArgs) -> ConnectionPolicy {
    let policy = network::connection_policy(args);
    let stream_count =
        if policy.stream_count == NonZeroU32::MIN { STREAM_COUNT_DEFAULT } else { policy.stream_count };
    ConnectionPolicy { stream_count, ..policy }
}

/// What is recorded is changed before what is set, and tokens are signed when nothing else changes any more.
fn changes(args: &ReplayRequestArgs) -> Result<Vec<Change>, Problems> {
    let ReplayRequestArgs {
        set_header, drop_header, set_query, set_form, set_json, set_cookie, replace, ..
    } = args;
    let mut changes = Vec::new();
    if let Some(path) = &args.csv {
        let is_per_request = args.csv_per == DealArg::Request;
        changes.push(Change::Table { text: text_of(path, "--csv", TABLE_BYTES_MAX)?, is_per_request });
    }
    if let Some(pattern) = &args.unique_ids {
        changes.push(Change::UniqueIds { pattern: (!pattern.is_empty()).then(|| pattern.clone()) });
    }
    changes.extend(args.shift_times.then_some(Change::ShiftTimes));
    let listed = [drop_header, set_header, set_query, set_form, set_json, set_cookie, replace];
    changes.extend(listed.into_iter().flatten().cloned());
    if let Some(path) = &args.sign_jwt {
        let key = text_of(path, "--sign-jwt", KEY_BYTES_MAX)?;
        changes.push(Change::SignJwt { key, claims: args.jwt_claim.clone() });
    }
    squall_traffic::change::Changes::new(&changes, 0).map_err(|error| {
        OptionProblem::whole(format!("cannot change requests: {}", error.reason), error.help)
    })?;
    Ok(changes)
}

/// A file that goes with the plan, to whichever machine plays it.
fn text_of(path: &Path, flag: &str, bytes_max: u64) -> Result<String, OptionProblem> {
    squall_plan::files::read_text(path, bytes_max).map_err(|error| OptionProblem::file(flag, path, &error))
}

fn pace(args: &ReplayArgs) -> ReplayPace {
    match args.load.rate.is_some() || args.play.asap {
        true => ReplayPace::Load,
        false => ReplayPace::Recorded { factor: 1.0 / args.play.speed.unwrap_or(1.0) },
    }
}

/// An open model: its rate is that of the recording on average, for information.
fn recorded(args: &ReplayArgs, length_ns: u64, record_count: u64) -> When {
    let speed = args.play.speed.unwrap_or(1.0);
    let seconds = (length_ns as f64 / 1e9).max(1.0);
    let users = args.play.users.map_or(1.0, |users| f64::from(users.get()));
    When::Open {
        rate: Profile::constant((record_count as f64 / seconds * speed * users).max(f64::MIN_POSITIVE)),
        arrival: Arrival::Constant,
        pacing: match args.load.pacing {
            Some(PacingArg::Precise) => Pacing::Precise,
            Some(PacingArg::Balanced) | None => Pacing::Balanced,
            Some(PacingArg::Cheap) => Pacing::Cheap,
        },
        connection_count_max: args.load.connections.unwrap_or(timing::CONNECTION_COUNT_MAX_DEFAULT),
    }
}

/// To the end of the recording, unless a limit is given; one that begins again needs a limit.
fn stop(args: &ReplayArgs) -> Stop {
    let needs_limit = args.play.loops && args.load.requests.is_none();
    let duration = args.load.duration.or_else(|| needs_limit.then_some(timing::DURATION_DEFAULT));
    Stop {
        duration: duration.map(|duration| duration + args.load.warmup.unwrap_or_default()),
        count: args.load.requests.map(|count| count.get()),
    }
}

fn default_name(file: &Path) -> String {
    file.file_stem().map_or_else(|| "replay".to_owned(), |stem| stem.to_string_lossy().into_owned())
}

/// Few differences are races and clocks; many are another server, or lost logins.
const DIFFERING_DEFAULT: &str = "differing<5%";

/// What servers usually allow.
const STREAM_COUNT_DEFAULT: NonZeroU32 = NonZeroU32::new(100).unwrap();

/// All copies have begun by then, unless told otherwise.
const SHIFT_ALL: Duration = Duration::from_secs(10);

/// The plan carries it, and each shard has it in memory.
const TABLE_BYTES_MAX: u64 = 16 << 20;

const KEY_BYTES_MAX: u64 = 64 << 10;
