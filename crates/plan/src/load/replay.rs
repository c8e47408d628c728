//! Recorded traffic: what is changed in it, and when its requests start.
//!
//! In two parts: the options alone, and the plan, which also depends on the recording. Reading that may take long.

use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::time::Duration;

use url::Url;

use super::timing::{CONNECTION_COUNT_MAX_DEFAULT, DURATION_DEFAULT, Timing};
use super::{connection, impossible, thresholds};
use crate::files::read_text;
use crate::limits::TABLE_BYTES_MAX;
use crate::options::table::{
    ASAP, COMPARE, CSV, CSV_PER, DROP_HEADER, ENV_FILE, FORMAT, JWT_CLAIM, KEEP_HOST, LOG_JSON, LOG_PATTERN,
    LOOPS, MAX_GAP, NO_LEARN, NO_ORDER, ONLY_HOST, ONLY_PATH, PIPE, POOLED, REPLACE, REPLAY_HTTP,
    REPLAY_STREAMS, REPLAY_TIMEOUT, REPLAY_USERS, SESSION_BY, SET_COOKIE, SET_FORM, SET_HEADER, SET_JSON,
    SET_QUERY, SHIFT_TIMES, SIGN_JWT, SKIP_BAD, SOURCE, SPEED, TO, UNIQUE_IDS, USER_SHIFT,
};
use crate::options::values::CsvPer;
use crate::options::{LoadType, ReadContext, Reading};
use crate::{
    Arrival, Change, ConnectionPolicy, Expect, HttpLoad, HttpVersion, Load, LoadSpec, OptionProblem, Pacing,
    Plan, PortablePlan, Problems, Profile, ReplayLoad, ReplayPace, Segment, Stop, What, When,
};

/// A replay without its recording.
#[derive(Debug, Clone)]
pub struct ReplayDraft {
    /// How the recording is read.
    pub reading: RecordingOptions,
    /// Silences longer than this are cut.
    pub max_gap: Option<Duration>,
    /// The run's name, unless it is called as its file is.
    name: String,
    timing: Timing,
    replay: ReplayLoad,
    /// The load's own model, where the recording's times do not count.
    when: Option<When>,
    speed: f64,
    load: Load,
    thresholds: Vec<String>,
    sources: Vec<crate::rules::Source>,
}

/// What a plan depends on of its recording.
#[derive(Debug, Clone)]
pub struct ReplayFacts {
    /// The `.squall` file.
    pub recording: PathBuf,
    /// From its first request to its last, without the silences that are cut.
    pub length: Duration,
    /// Its requests.
    pub record_count: u64,
    /// Whether it has responses.
    pub has_responses: bool,
}

/// How recorded traffic is read, as written.
#[derive(Debug, Clone, Default)]
pub struct RecordingOptions {
    /// `--format`.
    pub format: Option<String>,
    /// `--log-pattern`.
    pub log_pattern: Option<String>,
    /// `--log-json`.
    pub log_json: Option<String>,
    /// `--env-file`.
    pub env_files: Vec<PathBuf>,
    /// `--skip-bad`.
    pub skip_bad: bool,
    /// `--only-host`.
    pub only_hosts: Vec<String>,
    /// `--only-path`.
    pub only_paths: Vec<String>,
    /// `--session-by`.
    pub session_by: Option<String>,
    /// `--pipe`.
    pub pipe: Option<String>,
}

/// How a recording is read.
///
/// # Errors
/// All that is wrong with its options.
pub fn recording(spec: &LoadSpec, context: ReadContext<'_>) -> Result<RecordingOptions, Problems> {
    let mut given = Reading::new(LoadType::Recording, spec, context);
    let options = RecordingOptions::read(&mut given);
    given.finish(Some(options))
}

/// The options of a replay.
///
/// # Errors
/// All that is wrong with them.
pub fn replay(spec: &LoadSpec, context: ReadContext<'_>) -> Result<ReplayDraft, Problems> {
    let mut given = Reading::new(LoadType::Replay, spec, context);
    given.file();
    let reading = RecordingOptions::read(&mut given);
    let timing = Timing { users: None, ..Timing::read(&mut given) };
    let speed = given.one(&SPEED).unwrap_or(1.0);
    let is_own_model = timing.rate.is_some() || given.is_set(&ASAP);
    let when = if is_own_model { given.take(timing.when()) } else { None };
    let pace = if is_own_model { ReplayPace::Load } else { ReplayPace::Recorded { factor: 1.0 / speed } };
    let replay = replay_load(&mut given, pace);
    // When and until when is for the plan to say.
    let load = Load {
        name: "replay".to_owned(),
        what: What::Replay(replay.clone()),
        when: When::Closed { connections: Profile::constant(1.0), users: None },
        stop: stop(&timing, replay.loops),
        connections: connections(&mut given),
        network: connection::network(&mut given),
        tls: connection::tls_policy(&mut given),
        segment: Segment::WHOLE,
    };
    let draft = ReplayDraft {
        reading,
        max_gap: replay.max_gap,
        name: spec.name.clone(),
        timing,
        replay,
        when,
        speed,
        load,
        thresholds: thresholds(&mut given),
        sources: given.all(&SOURCE),
    };
    given.finish(Some(draft))
}

impl RecordingOptions {
    fn read(given: &mut Reading<'_>) -> Self {
        Self {
            format: given.one(&FORMAT),
            log_pattern: given.one(&LOG_PATTERN),
            log_json: given.one(&LOG_JSON),
            env_files: given.all(&ENV_FILE),
            skip_bad: given.is_set(&SKIP_BAD),
            only_hosts: given.all(&ONLY_HOST),
            only_paths: given.all(&ONLY_PATH),
            session_by: given.one(&SESSION_BY),
            pipe: given.one(&PIPE),
        }
    }
}

impl ReplayDraft {
    /// The changes made to each request, in order.
    pub fn changes(&self) -> &[Change] {
        &self.replay.changes
    }

    /// The plan. `file`: what was named; `is_judged`: whether a rule is about responses that differ.
    ///
    /// # Errors
    /// A load that cannot be made.
    pub fn plan(
        self,
        file: &Path,
        facts: ReplayFacts,
        is_judged: bool,
    ) -> Result<PortablePlan, OptionProblem> {
        let when = self.when.clone().unwrap_or_else(|| self.recorded(&facts));
        // A replay whose responses are not the recorded ones must not pass for a good one.
        let is_compared = facts.has_responses && self.replay.compare != crate::Compare::Nothing;
        let by_default = (is_compared && !is_judged).then(|| DIFFERING_DEFAULT.to_owned());
        let replay = ReplayLoad { recording: facts.recording, ..self.replay };
        let plan = Plan {
            name: if self.name.is_empty() { default_name(file) } else { self.name },
            loads: vec![Load { what: What::Replay(replay), when, ..self.load }],
            thresholds: self.thresholds.into_iter().chain(by_default).collect(),
            warmup: self.timing.warmup.unwrap_or_default(),
            threads: self.timing.threads,
        };
        plan.validate().map_err(|error| impossible(&error))?;
        Ok(PortablePlan { plan, sources: self.sources, opening: None })
    }

    /// The rules, as typed.
    pub fn thresholds(&self) -> &[String] {
        &self.thresholds
    }

    /// An open model: its rate is that of the recording on average, for information.
    fn recorded(&self, facts: &ReplayFacts) -> When {
        let seconds = facts.length.as_secs_f64().max(1.0);
        let users = f64::from(self.replay.users.get());
        let rate = facts.record_count as f64 / seconds * self.speed * users;
        When::Open {
            rate: Profile::constant(rate.max(f64::MIN_POSITIVE)),
            arrival: Arrival::Constant,
            pacing: self.timing.pacing.unwrap_or(Pacing::Balanced),
            connection_count_max: self.timing.connections.unwrap_or(CONNECTION_COUNT_MAX_DEFAULT),
        }
    }
}

fn replay_load(given: &mut Reading<'_>, pace: ReplayPace) -> ReplayLoad {
    let users = given.one(&REPLAY_USERS).unwrap_or(NonZeroU32::MIN);
    let http = HttpLoad {
        requests: Vec::new(),
        user_agents: Vec::new(),
        follow_count_max: 0,
        expect: Expect::default(),
        timeout: given.or_default(&REPLAY_TIMEOUT),
    };
    ReplayLoad {
        recording: PathBuf::new(),
        to: given.one::<Url>(&TO),
        keeps_host: given.is_set(&KEEP_HOST),
        pace,
        users,
        shift: given.one(&USER_SHIFT).unwrap_or_else(|| SHIFT_ALL / users.get()),
        max_gap: given.one(&MAX_GAP),
        loops: given.is_set(&LOOPS),
        keeps_order: !given.is_set(&NO_ORDER),
        keeps_connections: !given.is_set(&POOLED) && !given.is_set(&ASAP),
        learns: !given.is_set(&NO_LEARN),
        compare: given.or_default(&COMPARE),
        changes: changes(given),
        version: given.one(&REPLAY_HTTP).unwrap_or(HttpVersion::Auto),
        http,
    }
}

/// A browser's connection carries many requests at once.
fn connections(given: &mut Reading<'_>) -> ConnectionPolicy {
    let stream_count = given.one(&REPLAY_STREAMS).filter(|count| count.get() > 1);
    let is_quic = given.one(&REPLAY_HTTP) == Some(HttpVersion::Http3);
    ConnectionPolicy {
        stream_count: stream_count.unwrap_or(STREAM_COUNT_DEFAULT),
        quic: connection::quic_policy(given, is_quic, "http 3"),
        ..connection::connection_policy(given)
    }
}

/// What is recorded is changed before what is set, and tokens are signed when nothing else changes any more.
fn changes(given: &mut Reading<'_>) -> Vec<Change> {
    let mut changes = Vec::new();
    let is_per_request = given.or_default(&CSV_PER) == CsvPer::Request;
    let table = given.one(&CSV).and_then(|path| given.take(text_of(&path, "--csv", TABLE_BYTES_MAX)));
    changes.extend(table.map(|text| Change::Table { text, is_per_request }));
    let ids = given.one(&UNIQUE_IDS);
    changes.extend(ids.map(|pattern| Change::UniqueIds { pattern: Some(pattern).filter(|p| !p.is_empty()) }));
    changes.extend(given.is_set(&SHIFT_TIMES).then_some(Change::ShiftTimes));
    changes.extend(given.all(&DROP_HEADER).into_iter().map(|name| Change::DropHeader { name }));
    let mut set = |option, change: fn(String, String) -> Change| {
        changes.extend(given.all(option).into_iter().map(|(name, value)| change(name, value)));
    };
    set(&SET_HEADER, |name, value| Change::SetHeader { name, value });
    set(&SET_QUERY, |name, value| Change::SetQuery { name, value });
    set(&SET_FORM, |name, value| Change::SetForm { name, value });
    set(&SET_JSON, |pointer, value| Change::SetJson { pointer, value });
    set(&SET_COOKIE, |name, value| Change::SetCookie { name, value });
    set(&REPLACE, |pattern, with| Change::Replace { pattern, with });
    let (path, claims) = (given.one(&SIGN_JWT), given.all(&JWT_CLAIM));
    let key = path.and_then(|path| given.take(text_of(&path, "--sign-jwt", KEY_BYTES_MAX)));
    changes.extend(key.map(|key| Change::SignJwt { key, claims }));
    changes
}

/// A file that goes with the plan, to whichever machine plays it.
fn text_of(path: &Path, flag: &str, bytes_max: u64) -> Result<String, OptionProblem> {
    read_text(path, bytes_max).map_err(|error| OptionProblem::file(flag, path, &error))
}

/// To the end of the recording, unless a limit is given; one that begins again needs a limit.
fn stop(timing: &Timing, loops: bool) -> Stop {
    let needs_limit = loops && timing.requests.is_none();
    let duration = timing.duration.or_else(|| needs_limit.then_some(DURATION_DEFAULT));
    Stop {
        duration: duration.map(|duration| duration + timing.warmup.unwrap_or_default()),
        count: timing.requests.map(|count| count.get()),
    }
}

fn default_name(file: &Path) -> String {
    file.file_stem().map_or_else(|| "replay".to_owned(), |stem| stem.to_string_lossy().into_owned())
}

/// Few differences are races and clocks; many are another server, or lost logins.
const DIFFERING_DEFAULT: &str = "differing<5%";

/// What servers usually allow.
const STREAM_COUNT_DEFAULT: NonZeroU32 = NonZeroU32::new(100).unwrap();

/// All copies have begun by then, by default.
const SHIFT_ALL: Duration = Duration::from_secs(10);

const KEY_BYTES_MAX: u64 = 64 << 10;
