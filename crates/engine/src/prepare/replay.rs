//! A recording, ready to be played: opened, looked through for values that return, its origins and rows known.

use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use squall_plan::{Compare, HttpVersion, InputError, Load, ReplayLoad, ReplayPace, ShardPart, When};
use squall_traffic::Redirect;
use squall_traffic::change::Changes;
use squall_traffic::play::{Division, Learned, PlayOptions, Tempo};
use squall_traffic::store::{Origin, Recording};
use url::Url;

use super::rows::VersionRows;
use crate::sys::nanoseconds;
use crate::{Error, Remedy};

/// What the shards share of a replay.
#[derive(Debug)]
pub(crate) struct PreparedReplay {
    pub(crate) plan: ReplayLoad,
    /// How the distances between messages of a WebSocket are played.
    pub(crate) tempo: Tempo,
    pub(crate) recording: Recording,
    /// By the recording's origin.
    pub(crate) origins: Vec<ReplayOrigin>,
    /// The same for WebSockets; empty where it has none.
    pub(crate) websocket_origins: Vec<ReplayOrigin>,
    /// By the recording's row; the last one is for records without.
    pub(crate) rows: Vec<VersionRows>,
    pub(crate) learned: Learned,
    pub(crate) changes: Changes,
    /// Where requests go instead, where `Origin` and `Referer` follow.
    pub(crate) redirect: Option<Redirect>,
    /// Zeros, in the place of bodies that were not kept.
    pub(crate) zeros: Option<Arc<File>>,
}

/// Where the requests of one recorded origin go.
#[derive(Debug, Clone)]
pub(crate) struct ReplayOrigin {
    /// Index into the load's origins.
    pub(crate) origin_idx: u32,
    /// `http` or `https`.
    pub(crate) scheme: &'static str,
    /// What `Host` says.
    pub(crate) host: String,
    /// As far as it is known before the connection.
    pub(crate) http: HttpVersion,
    /// A proxy forwards its requests, and wants whole URLs.
    pub(crate) is_forwarded: bool,
    /// What the paths of requests begin with there.
    pub(crate) prefix: String,
}

impl PreparedReplay {
    /// Opens the recording and looks through it where values are to be learned.
    pub(crate) fn open(plan: &ReplayLoad, when: &When) -> Result<Self, Error> {
        let path = &plan.recording;
        let recording = Recording::open(path).map_err(|error| Error::Plan {
            problem: error.to_string(),
            help: "convert a recording first: `squall convert FILE recording.squall`".to_owned(),
        })?;
        if recording.index().record_count == 0 {
            return Err(Error::Plan {
                problem: format!("no requests in the recording `{}`", path.display()),
                help: "see what it contains: `squall convert --dry-run FILE`".to_owned(),
            });
        }
        let changes =
            Changes::new(&plan.changes, now_ns()).map_err(|InputError { reason, help, .. }| Error::Plan {
                problem: format!("cannot change requests: {reason}"),
                help,
            })?;
        let learned = if plan.learns { Learned::of(&recording) } else { Ok(Learned::default()) };
        let learned =
            learned.map_err(|source| Error::PlanFile { what: "recording", path: path.clone(), source })?;
        let redirect = plan.to.as_ref().filter(|_| !plan.keeps_host).map(Redirect::to);
        let zeros = zeros(&recording)?;
        let (plan, tempo) = (plan.clone(), tempo(plan, when));
        let (origins, websocket_origins, rows) = Default::default();
        Ok(Self {
            plan,
            tempo,
            recording,
            origins,
            websocket_origins,
            rows,
            learned,
            changes,
            redirect,
            zeros,
        })
    }

    /// The URL of the recording's origin `idx`, or where its requests go instead.
    pub(crate) fn origin_url(&self, idx: usize) -> Result<Url, Error> {
        if let Some(to) = &self.plan.to {
            return Ok(to.clone());
        }
        let origin = &self.recording.index().origins[idx];
        let text = format!("{}://{}/", origin.scheme, origin.authority);
        Url::parse(&text).map_err(|error| match origin.authority.is_empty() {
            true => {
                elsewhere("the recording does not name the host of its requests".to_owned(), "set the server")
            }
            false => elsewhere(
                format!("requests of the recording went to `{text}`: {error}"),
                "set another server",
            ),
        })
    }

    /// What `Host` says for the recording's origin `idx`, whose requests go to `url`.
    pub(crate) fn host(&self, idx: usize, url: &Url) -> String {
        let recorded = &self.recording.index().origins[idx].authority;
        match self.plan.keeps_host && !recorded.is_empty() {
            true => recorded.clone(),
            false => url[url::Position::BeforeHost..url::Position::AfterPort].to_owned(),
        }
    }

    /// Whether some records may have no row of their own.
    pub(crate) fn has_rowless(&self) -> bool {
        self.recording.index().rows.len() >= squall_traffic::limits::ROW_COUNT_MAX
    }

    /// The rows of a record.
    pub(crate) fn rows_of(&self, row: u16) -> VersionRows {
        let other = self.rows.last().copied().unwrap_or_default();
        self.rows.get(usize::from(row)).copied().unwrap_or(other)
    }

    /// How one shard plays it.
    pub(crate) fn play_options(&self, load: &Load, part: &ShardPart) -> PlayOptions {
        let factor = match self.plan.pace {
            ReplayPace::Recorded { factor } => factor,
            ReplayPace::Load => 1.0,
        };
        let is_closed = matches!(load.when, When::Closed { .. });
        let users = if is_closed { load.when.connection_count_max() } else { self.plan.users.get().into() };
        PlayOptions {
            factor,
            user_count: u32::try_from(users).unwrap_or(u32::MAX),
            shift_ns: nanoseconds(self.plan.shift),
            loops: self.plan.loops,
            part: part.clone(),
            gap_ns_max: self.plan.max_gap.map(nanoseconds),
            division: if is_closed { Division::Users } else { Division::Sessions },
        }
    }

    /// Whether requests of the recording went to this origin.
    pub(crate) fn is_left(&self, origin: &str) -> bool {
        let is_it = |own: &Origin| {
            origin.strip_prefix(&own.scheme).and_then(|rest| rest.strip_prefix("://")) == Some(&own.authority)
        };
        self.recording.index().origins.iter().any(is_it)
    }

    /// Whether the response to this record is read.
    pub(crate) fn reads_response(&self, ordinal: u64, row: u16) -> bool {
        self.plan.compare == Compare::Body || self.learned.has(ordinal, row)
    }
}

/// Where the load's arrivals decide when requests start, messages keep the recorded distances; a closed model waits for answers alone.
fn tempo(plan: &ReplayLoad, when: &When) -> Tempo {
    let factor = match (plan.pace, when) {
        (ReplayPace::Recorded { factor }, _) => factor,
        (ReplayPace::Load, When::Open { .. }) => 1.0,
        (ReplayPace::Load, When::Closed { .. }) => 0.0,
    };
    Tempo { factor, gap_ns_max: plan.max_gap.map(nanoseconds) }
}

fn elsewhere(problem: String, what: &'static str) -> Error {
    Error::Option { option: "to", problem, remedy: Remedy::Set(what, "http://host:port") }
}

fn zeros(recording: &Recording) -> Result<Option<Arc<File>>, Error> {
    if recording.index().lost_body_count == 0 {
        return Ok(None);
    }
    let path = PathBuf::from("/dev/zero");
    let file = File::open(&path).map_err(|source| Error::PlanFile { what: "body file", path, source })?;
    Ok(Some(Arc::new(file)))
}

/// The present, in nanoseconds since the epoch.
pub(crate) fn now_ns() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_nanos()).unwrap_or(u64::MAX)
}
