//! What the users of one thread share, and the scenarios that they run.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};

use squall_plan::{HttpVersion, Segment};

use crate::api::http::state::RequestCache;
use crate::console::Console;
use crate::metrics::{HttpSample, MetricId, Recorder, Tags};
use crate::options::Runtime;
use crate::vm::Heap;

/// What the users of one thread share.
#[derive(Debug)]
pub struct Shared {
    /// Options that the script's calls obey.
    pub options: Arc<Runtime>,
    /// Takes what is measured.
    pub recorder: Rc<dyn Recorder>,
    /// Takes what is said.
    pub console: Arc<Console>,
    /// Counts of the whole run, for `k6/execution`.
    pub counts: Arc<Counts>,
    /// This thread's part of them that is not added yet.
    pub pending: Pending,
    /// The requests made so far.
    pub(crate) requests: RefCell<RequestCache>,
    /// This process's part of the run, for numbers that count over all processes.
    pub(crate) part: Segment,
    /// Where the users' memory comes from.
    pub(crate) heap: Rc<Heap>,
    /// Why `exec.test.abort()` was called, if it was.
    pub abort: RefCell<Option<String>>,
    /// What `setup()` gave, as JSON.
    pub setup_data: RefCell<Option<Rc<str>>>,
}

/// Counts of the whole run.
#[derive(Debug, Default)]
pub struct Counts {
    /// Iterations that ended by themselves.
    pub iterations_completed: AtomicU64,
    /// Iterations that were cut off.
    pub iterations_interrupted: AtomicU64,
    /// Iterations that threw.
    pub iterations_failed: AtomicU64,
    /// Users that iterate now.
    pub vus_active: AtomicU64,
    /// Users that were made.
    pub vus_initialised: AtomicU64,
    /// `exec.test.fail()` was called.
    pub is_failed: AtomicBool,
}

/// Counts of one thread that are not added to those of the run yet: threads do so from time to time.
#[derive(Debug, Default)]
pub struct Pending {
    /// Iterations that ended by themselves.
    pub iterations_completed: Cell<u64>,
    /// Iterations that were cut off.
    pub iterations_interrupted: Cell<u64>,
    /// Users that began to iterate, less those that ended.
    pub vus_active: Cell<i64>,
    /// Users that were made.
    pub vus_initialised: Cell<u64>,
}

/// How much of a scenario is over.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Progress {
    /// This share of its iterations, as one of them begins.
    Share(f64),
    /// By the time.
    Span {
        /// Begin of the scenario, in nanoseconds since the run's start.
        begin_ns: u64,
        /// Its length.
        length_ns: u64,
    },
}

impl Progress {
    /// From 0 to 1.
    pub(crate) fn at(self, now_ns: u64) -> f64 {
        let share = match self {
            Self::Share(share) => share,
            Self::Span { begin_ns, length_ns } => {
                now_ns.saturating_sub(begin_ns) as f64 / length_ns.max(1) as f64
            }
        };
        share.min(1.0)
    }
}

/// A scenario, as its iterations see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scenario {
    /// Name.
    pub name: Rc<str>,
    /// Executor's name.
    pub executor: String,
    /// Function that is called.
    pub exec: String,
    /// Environment that is laid over the script's.
    pub env: Vec<(String, String)>,
    /// Tags of its samples.
    pub tags: Vec<(String, String)>,
    /// Version of HTTP of its requests.
    pub http: HttpVersion,
    /// When it starts, in milliseconds since 1970.
    pub start_unix_ms: u64,
}

/// Keeps nothing of what scripts record.
#[derive(Debug)]
pub struct NoRecorder;

impl Recorder for NoRecorder {
    fn add(&self, _metric: MetricId, _value: f64, _tags: &Tags<'_>) {}
    fn http(&self, _sample: &HttpSample<'_>) {}
    fn check(&self, _group: &str, _name: &str, _is_ok: bool, _tags: &Tags<'_>) {}
    fn group(&self, _path: &str) {}
}

impl Shared {
    /// What the users of one thread share.
    pub fn new(
        options: Arc<Runtime>,
        recorder: Rc<dyn Recorder>,
        console: Arc<Console>,
        counts: Arc<Counts>,
    ) -> Self {
        Self {
            options,
            recorder,
            console,
            counts,
            pending: Pending::default(),
            requests: RefCell::default(),
            part: Segment::WHOLE,
            heap: Heap::new(),
            abort: RefCell::default(),
            setup_data: RefCell::default(),
        }
    }

    /// The same in a process that makes a part of the run.
    #[must_use]
    pub fn with_part(self, part: Segment) -> Self {
        Self { part, ..self }
    }

    /// The same for work that measures nothing.
    pub fn without_recorder(options: Arc<Runtime>, console: Arc<Console>, counts: Arc<Counts>) -> Self {
        Self::new(options, Rc::new(NoRecorder), console, counts)
    }
}
