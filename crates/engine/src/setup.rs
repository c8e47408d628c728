//! What a shard of any kind is given at its start, and its last word when it fails.

use std::sync::mpsc::{Receiver, Sender};

use squall_measure::Snapshot;
use squall_plan::ShardPart;

use crate::Control;
use crate::pulse::{Pulse, PulseSetup, Second};

/// What a shard needs. `P`: the load, ready to be driven.
pub(crate) struct ShardSetup<P> {
    /// Its part of the load.
    pub(crate) part: ShardPart,
    /// Its index among all shards of the run.
    pub(crate) shard_idx: u32,
    pub(crate) prepared: P,
    pub(crate) control: Control,
    pub(crate) warmup_ns: u64,
    /// Whether a schedule starts what the load does.
    pub(crate) is_open_model: bool,
    /// Rows of all loads of the run.
    pub(crate) row_count: usize,
    pub(crate) seconds: Sender<Second>,
    pub(crate) spare: Receiver<Box<Snapshot>>,
    /// It reports how much memory the process takes: one shard of each process does.
    pub(crate) watches_memory: bool,
}

/// The last word of a shard that failed: the collector waits for one from each.
pub(crate) struct Farewell {
    shard_idx: u32,
    seconds: Sender<Second>,
}

impl<P> ShardSetup<P> {
    pub(crate) fn farewell(&self) -> Farewell {
        Farewell { shard_idx: self.shard_idx, seconds: self.seconds.clone() }
    }

    /// The same for a load of another form.
    pub(crate) fn with<Q>(self, prepared: Q) -> ShardSetup<Q> {
        let Self { part, shard_idx, control, warmup_ns, is_open_model, row_count, seconds, spare, .. } = self;
        let watches_memory = self.watches_memory;
        ShardSetup {
            part,
            shard_idx,
            prepared,
            control,
            warmup_ns,
            is_open_model,
            row_count,
            seconds,
            spare,
            watches_memory,
        }
    }

    /// Takes it apart: the figures that the shard fills, the load, and what steers it.
    pub(crate) fn into_pulse(self, start_ns: u64) -> (Pulse, P, Control) {
        let Self { shard_idx, row_count, is_open_model, seconds, spare, prepared, control, .. } = self;
        let pulse = Pulse::new(PulseSetup { shard_idx, start_ns, row_count, is_open_model, seconds, spare });
        (pulse, prepared, control)
    }
}

impl Farewell {
    pub(crate) fn send(self) {
        let snapshot = Box::new(Snapshot::new(0, false));
        let (shard_idx, open_rows) = (self.shard_idx, Vec::new());
        // A collector that is gone waits for nothing.
        let _ = self.seconds.send(Second { shard_idx, second_idx: 0, snapshot, open_rows, is_last: true });
    }
}
