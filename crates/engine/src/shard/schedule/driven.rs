//! A driver that decides requests at run time, and the pools of its users. What it asks for is done in `drive`.

use std::collections::HashMap;

use foldhash::fast::FixedState;

use crate::driver::Driver;

/// A driver and its requests in flight.
pub(in crate::shard) struct Driven {
    pub(super) driver: Box<dyn Driver>,
    /// Pools by user and origin, those of WebSockets apart.
    pub(super) pools: HashMap<(u32, u32, bool), u32, FixedState>,
    pub(super) is_stopping: bool,
}

impl Driven {
    pub(in crate::shard) fn new(driver: Box<dyn Driver>) -> Self {
        Self { driver, pools: HashMap::default(), is_stopping: false }
    }

    pub(in crate::shard) fn next_due_ns(&self) -> u64 {
        self.driver.next_due_ns()
    }

    pub(in crate::shard) fn fill(&mut self, now_ns: u64, snapshot: &mut squall_measure::Snapshot) {
        self.driver.fill(now_ns, snapshot);
    }
}
