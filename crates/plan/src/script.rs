//! What flags and plan files say about a k6 script, which its own options do not.

use std::num::NonZeroU32;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json};

/// How a script is read and run.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ScriptSettings {
    /// Variables of its `__ENV`: `NAME=VALUE`, or the name of one that the machine has.
    pub env: Vec<String>,
    /// Whether it sees the other variables of the machine; `None`: as `K6_INCLUDE_SYSTEM_ENV_VARS` says there.
    pub sees_environment: Option<bool>,
    /// Options by k6's names, which take precedence over the script's own.
    pub options: Map<String, Json>,
    /// A JSON file of options, over which the script's own take precedence.
    pub config: Option<PathBuf>,
    /// Leave its thresholds out.
    pub skips_thresholds: bool,
    /// Keep the metrics of each scenario and group apart.
    pub has_sections: bool,
    /// Keep every value of its trends.
    pub is_exact: bool,
    /// Event-loop threads; `None`: as many as the CPUs this process may use.
    pub threads: Option<NonZeroU32>,
}
