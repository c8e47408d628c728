//! What the shards of a script share: where the run is, what `setup()` gave, and why it ended. Looked at rarely.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use squall_script::{Counts, ScriptError};

use super::sections::Sections;

/// What the shards of a script share.
#[derive(Debug)]
pub struct Stage {
    part: SetupPart,
    counts: Arc<Counts>,
    /// When the scenarios begin, in nanoseconds after the run's start; 0: not yet.
    begin_ns: AtomicU64,
    setup_data: Mutex<Option<String>>,
    is_set_up: AtomicBool,
    end: Mutex<Option<ScriptEnd>>,
    sections: Mutex<Sections>,
    is_stopped: AtomicBool,
    /// Shards that have begun, and those whose scenarios are over.
    shard_count: AtomicU32,
    left_count: AtomicU32,
    scenarios: Vec<ScenarioCounts>,
}

/// What the shards share of one scenario.
#[derive(Debug, Default)]
pub(super) struct ScenarioCounts {
    /// Iterations that were taken from a shared number of them.
    pub(super) taken: AtomicU64,
    /// Arrivals for which their shard had no free user; another one may take them.
    pub(super) orphans: AtomicU64,
    /// The user was warned that there are too few users.
    pub(super) has_warned: AtomicBool,
}

/// Why a script ended before its time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ScriptEnd {
    /// The user, or a threshold, stopped it.
    Stopped,
    /// `exec.test.abort()`, and why.
    Aborted(String),
    /// `setup()` or `teardown()` threw.
    Failed {
        /// What it threw.
        error: ScriptError,
        /// It was `setup()`.
        is_setup: bool,
    },
    /// `setup()` or `teardown()` took too long.
    TimedOut {
        /// It was `setup()`.
        is_setup: bool,
    },
}

/// Who calls `setup()` and `teardown()` of a script that several machines run together, and when its scenarios begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SetupPart {
    /// This machine, and the scenarios begin at once: it is alone.
    Alone,
    /// This machine, for all; the scenarios begin by [`Stage::begin`].
    Caller,
    /// Another machine; the scenarios begin by [`Stage::begin`].
    Follower,
    /// There is no `setup()`, and `teardown()` is called by another machine.
    Bystander,
}

/// Where a shard is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    Setup,
    Running,
    Teardown,
    Over,
}

impl Stage {
    /// A stage for a script with so many scenarios.
    pub fn new(scenario_count: usize, part: SetupPart) -> Self {
        Self {
            part,
            counts: Arc::default(),
            begin_ns: AtomicU64::new(0),
            setup_data: Mutex::default(),
            is_set_up: AtomicBool::new(false),
            end: Mutex::default(),
            sections: Mutex::default(),
            is_stopped: AtomicBool::new(false),
            shard_count: AtomicU32::new(0),
            left_count: AtomicU32::new(0),
            scenarios: (0..scenario_count).map(|_| ScenarioCounts::default()).collect(),
        }
    }

    /// Counts of the whole run.
    pub fn counts(&self) -> Arc<Counts> {
        Arc::clone(&self.counts)
    }

    /// What `setup()` gave, as JSON.
    pub fn setup_data(&self) -> Option<String> {
        self.setup_data.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The figures of each scenario and group, where they were wanted.
    pub fn sections(&self) -> Sections {
        self.sections.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn with_sections(&self, change: impl FnOnce(&mut Sections)) {
        change(&mut self.sections.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// Why it ended before its time.
    pub fn ended(&self) -> Option<ScriptEnd> {
        self.end.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Interrupts all users; the first reason stays.
    pub fn end(&self, end: ScriptEnd) {
        self.end.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(end);
        self.is_stopped.store(true, Ordering::Release);
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::Relaxed)
    }

    /// It ended before the scenarios began.
    pub(super) fn is_over(&self) -> bool {
        self.is_stopped() && self.begin_ns().is_none()
    }

    /// Begins the scenarios at a time after the run's start, with what `setup()` gave on the machine that called it.
    pub fn begin(&self, setup_data: Option<String>, at: Duration) {
        *self.setup_data.lock().unwrap_or_else(PoisonError::into_inner) = setup_data;
        let at_ns = u64::try_from(at.as_nanos()).unwrap_or(u64::MAX);
        self.begin_ns.store(at_ns.max(1), Ordering::Release);
    }

    /// `setup()` is over; its data is there.
    pub fn is_set_up(&self) -> bool {
        self.is_set_up.load(Ordering::Acquire)
    }

    /// Whether `setup()` is called, or found to be none, here.
    pub(super) fn calls_setup(&self) -> bool {
        self.part != SetupPart::Follower
    }

    /// Whether `teardown()` is called here.
    pub(super) fn calls_teardown(&self) -> bool {
        matches!(self.part, SetupPart::Alone | SetupPart::Caller)
    }

    pub(super) fn finish_setup(&self, data: Option<String>, now_ns: u64) {
        if self.part != SetupPart::Caller {
            self.begin(data, Duration::from_nanos(now_ns));
        } else {
            *self.setup_data.lock().unwrap_or_else(PoisonError::into_inner) = data;
        }
        self.is_set_up.store(true, Ordering::Release);
    }

    /// When the scenarios begin.
    pub(super) fn begin_ns(&self) -> Option<u64> {
        Some(self.begin_ns.load(Ordering::Acquire)).filter(|begin_ns| *begin_ns > 0)
    }

    pub(super) fn add_shard(&self) {
        self.shard_count.fetch_add(1, Ordering::Relaxed);
    }

    /// A shard's scenarios are over.
    pub(super) fn leave(&self) {
        self.left_count.fetch_add(1, Ordering::AcqRel);
    }

    pub(super) fn have_all_left(&self) -> bool {
        self.left_count.load(Ordering::Acquire) >= self.shard_count.load(Ordering::Relaxed)
    }

    pub(super) fn scenario(&self, idx: usize) -> &ScenarioCounts {
        &self.scenarios[idx]
    }
}
