//! Virtual users written in JavaScript: unchanged k6 scripts as a machine that asks for requests and is given replies.
//!
//! Owns: the engine of the language, k6's modules, its options and executors' schedules. Never: sockets, the clock, histograms.
//!
//! A [`Program`] is a script with all that it imports, compiled once. Each [`User`] is one instance of it, on its own stack: it is
//! resumed, runs until the script blocks, and says in its [`Step`] what it waits for. Requests that it wants sent are taken from it,
//! and their replies given back.

mod api;
mod bodies;
mod callee;
mod compile;
mod console;
mod cookies;
mod error;
mod gjson;
mod host;
mod loading;
mod metrics;
mod missing;
mod modules;
mod options;
mod program;
mod resolve;
mod samples;
mod segment;
mod shared;
mod source;
mod step;
mod streams;
mod syntax;
mod timers;
mod typescript;
mod user;
mod vm;

pub use console::{Console, Form, Level};
pub use error::{ErrorKind, ScriptError};
pub use metrics::{
    BUILTINS, Contains, HttpSample, HttpTags, MetricDef, MetricId, MetricKind, Recorder, SYSTEM_TAGS,
    SystemTags, Tags, is_metric_name,
};
pub use options::{
    Dns, DnsPolicy, DnsSelect, Executor, HostPattern, HostRules, Layer, LayerKind, Options, Runtime,
    ScenarioConfig, Stage, ThresholdSource, TlsAuth, duration, env_layer, is_option_variable,
    script_settings,
};
pub use program::{Fetch, Program, ProgramSetup};
pub use samples::{SampleForm, SampleOutput, SampleStream, TimeForm};
pub use shared::{Counts, NoRecorder, Pending, Progress, Scenario, Shared};
pub use step::{
    ClientConfig, Reply, ReplyFailure, Request, ScriptStreamCommand, ScriptStreamEvent, ScriptStreamNews,
    Spec, Step, StreamClose, StreamEnd, StreamKind, StreamMessage, StreamOpen, StreamRequest, Timing,
    is_stream_token,
};
pub use user::{Iteration, Outcome, User, Work, log_failure};
