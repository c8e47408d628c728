//! Who follows a run while it is made: a view of it, or what merges it with the runs of other machines.

use std::time::{Duration, SystemTime};

use squall_measure::{MachineSecond, RowKey, RunRecorder, RunSetup, Snapshot};

/// Follows a run. Every call comes on the thread that called [`run`](crate::run()).
pub trait Observer {
    /// Everything is prepared. The load starts at the time that is returned, or at once when that has passed; `None`: there
    /// shall be no load.
    fn start(&mut self, setup: &RunSetup) -> Option<SystemTime> {
        let _ = setup;
        Some(SystemTime::now())
    }

    /// The load is over. `late`: how long after its start the last event loop had begun to work.
    fn end(&mut self, late: Duration) {
        let _ = late;
    }

    /// A script's requests have made rows that were unknown before. All rows so far; comes before the snapshots that have them.
    fn rows(&mut self, rows: &[RowKey]) {
        let _ = rows;
    }

    /// A shard handed over what it did in a second; the recorder has it already.
    fn second(&mut self, span: Span, snapshot: &Snapshot) {
        let _ = (span, snapshot);
    }

    /// All running shards have left a second behind.
    fn close(&mut self, second_idx: u32, machine: MachineSecond) {
        let _ = (second_idx, machine);
    }

    /// About every 100 ms, and once at the end: what is known by then.
    fn look(&mut self, recorder: &RunRecorder);
}

/// What a snapshot is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// Whole seconds since the run's start, warm-up included.
    pub second_idx: u32,
    /// The event loop.
    pub shard_idx: u32,
    /// The load of the plan that this loop makes.
    pub load_idx: u32,
}

/// A closure only looks.
impl<F: FnMut(&RunRecorder)> Observer for F {
    fn look(&mut self, recorder: &RunRecorder) {
        self(recorder);
    }
}
