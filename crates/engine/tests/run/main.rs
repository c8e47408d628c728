//! Whole runs of the engine against real servers, the embedded one, and small scripted ones.

mod allocation;
mod behaviour;
mod network;
mod plans;
mod stopping;

use std::sync::{PoisonError, RwLock};

/// Tests that count the whole process's allocations or memory run alone: they take it for writing, all others for reading.
static WHOLE_PROCESS: RwLock<()> = RwLock::new(());

fn beside_others() -> std::sync::RwLockReadGuard<'static, ()> {
    WHOLE_PROCESS.read().unwrap_or_else(PoisonError::into_inner)
}

fn alone() -> std::sync::RwLockWriteGuard<'static, ()> {
    WHOLE_PROCESS.write().unwrap_or_else(PoisonError::into_inner)
}
