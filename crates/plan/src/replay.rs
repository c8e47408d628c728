//! Recorded traffic as a load: `squall replay`.

use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use url::Url;

use crate::{HttpLoad, HttpVersion, What};

/// Recorded requests, played back.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReplayLoad {
    /// The recording: a `.squall` file whose records are in the order of their times.
    pub recording: PathBuf,
    /// Where requests go instead of where they went.
    pub to: Option<Url>,
    /// With `to`: `Host` stays as recorded.
    pub keeps_host: bool,
    /// When each request starts.
    pub pace: ReplayPace,
    /// Copies of the recorded clients that play at the same time.
    pub users: NonZeroU32,
    /// Each copy begins this much later than the one before it.
    pub shift: Duration,
    /// Longer silences of the recording are cut to this.
    #[serde(default)]
    pub max_gap: Option<Duration>,
    /// At the end, begin again.
    pub loops: bool,
    /// Within a session a request that followed a response waits for that response.
    pub keeps_order: bool,
    /// Each recorded connection is a connection of its own.
    pub keeps_connections: bool,
    /// Values of recorded responses that came back in later requests are replaced by those of the live ones.
    pub learns: bool,
    /// What of a response is compared with the recorded one.
    pub compare: Compare,
    /// What is changed in each request, in order.
    pub changes: Vec<Change>,
    /// HTTP version spoken.
    pub version: HttpVersion,
    /// What is expected of responses, and their time-out; its requests are those of the recording.
    pub http: HttpLoad,
}

/// When each recorded request starts.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReplayPace {
    /// At its recorded time, multiplied by this: 0.1 plays ten times as fast. The load's rate is then that of the recording on average.
    Recorded {
        /// More than zero.
        factor: f64,
    },
    /// As the load's arrivals or users say: the recording gives only the order.
    Load,
}

/// What of a response is compared with the recorded one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Compare {
    /// Nothing.
    Nothing,
    /// The status.
    Status,
    /// Status, and the body: byte for byte, JSON by its structure.
    Body,
}

/// A change made to each request. Values are templates: see `docs/recorded-traffic.md`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// Sets a header field, or adds it.
    SetHeader {
        /// Name.
        name: String,
        /// Template of its value.
        value: String,
    },
    /// Leaves a header field out.
    DropHeader {
        /// Name.
        name: String,
    },
    /// Sets a parameter of the query, or adds it.
    SetQuery {
        /// Name.
        name: String,
        /// Template of its value.
        value: String,
    },
    /// Sets a field in forms that have it.
    SetForm {
        /// Name.
        name: String,
        /// Template of its value.
        value: String,
    },
    /// Sets a value in JSON bodies that have it.
    SetJson {
        /// RFC 6901 pointer.
        pointer: String,
        /// Template of its value; JSON where it is JSON, else a string.
        value: String,
    },
    /// Sets a cookie, or adds it.
    SetCookie {
        /// Name.
        name: String,
        /// Template of its value.
        value: String,
    },
    /// Replaces what a regular expression matches, in target and body.
    Replace {
        /// Regular expression.
        pattern: String,
        /// Template of the replacement, with `$1` for its groups.
        with: String,
    },
    /// A table for the templates of all changes: `{csv.COLUMN}`.
    Table {
        /// CSV whose first row has the names. Its content, so that it is on every machine that the plan is on.
        text: String,
        /// Each request gets the next row, else each copy has one.
        is_per_request: bool,
    },
    /// Moves recorded points in time to the present, in target, header values and body.
    ShiftTimes,
    /// Gives each copy, round and run ids of its own.
    UniqueIds {
        /// What ids look like; UUIDs by default.
        pattern: Option<String>,
    },
    /// Signs JSON web tokens again, valid now.
    SignJwt {
        /// A private key in PEM, or a secret; its content.
        key: String,
        /// Claims that are set, with templates of their values.
        claims: Vec<(String, String)>,
    },
}

impl What {
    /// Whether requests start at times of their own, whatever the load's rate says.
    pub fn has_own_times(&self) -> bool {
        matches!(self, Self::Replay(ReplayLoad { pace: ReplayPace::Recorded { .. }, .. }))
    }
}

impl ReplayLoad {
    /// A copy to show and to save: values of changes may be secrets.
    pub(crate) fn masked(&self) -> Self {
        let hidden = || crate::mask::MASK.to_owned();
        let masked = |change: &Change| match change.clone() {
            Change::SetHeader { name, .. } => Change::SetHeader { name, value: hidden() },
            Change::SetQuery { name, .. } => Change::SetQuery { name, value: hidden() },
            Change::SetForm { name, .. } => Change::SetForm { name, value: hidden() },
            Change::SetJson { pointer, .. } => Change::SetJson { pointer, value: hidden() },
            Change::SetCookie { name, .. } => Change::SetCookie { name, value: hidden() },
            Change::Table { is_per_request, .. } => Change::Table { text: hidden(), is_per_request },
            Change::SignJwt { .. } => Change::SignJwt { key: hidden(), claims: Vec::new() },
            other => other,
        };
        Self { changes: self.changes.iter().map(masked).collect(), ..self.clone() }
    }
}
