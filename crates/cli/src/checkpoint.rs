//! Saves a run while it goes on, so that SIGKILL or a loss of power leaves all but its last seconds.
//!
//! Owns: how often, and the thread that writes. Never: what is in a record, where runs are kept.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use squall_measure::{End, RunRecord, RunRecorder, StoppedBy};
use squall_report::store;

/// Writes checkpoints until it is dropped; what it was given last is written by then.
pub(crate) struct Checkpoint {
    next: Duration,
    /// How long the last one took to be written, in milliseconds.
    took_ms: Arc<AtomicU64>,
    to: Option<SyncSender<Box<RunRecord>>>,
    writer: Option<JoinHandle<()>>,
}

impl Checkpoint {
    /// Checkpoints of the run that is saved in this folder. Without a thread for them the run is made all the same.
    pub(crate) fn start(folder: &Path) -> Option<Self> {
        let (to, records) = sync_channel(1);
        let took_ms = Arc::<AtomicU64>::default();
        let (folder, took) = (folder.to_owned(), Arc::clone(&took_ms));
        let writer = thread::Builder::new().name("checkpoint".to_owned());
        let writer = writer.spawn(move || write_all(&folder, &records, &took)).ok()?;
        Some(Self { next: EVERY, took_ms, to: Some(to), writer: Some(writer) })
    }

    /// Looks at the run as it is now; once in a while it is saved.
    pub(crate) fn update(&mut self, recorder: &RunRecorder) {
        let elapsed = recorder.elapsed();
        if elapsed < self.next {
            return;
        }
        let took = Duration::from_millis(self.took_ms.load(Ordering::Relaxed));
        self.next = elapsed + EVERY.max(took * SHARE);
        let duration = elapsed.saturating_sub(recorder.setup().plan.warmup);
        let record = recorder.preview(End { duration, stopped_by: StoppedBy::Lost });
        let record = Box::new(RunRecord { series: recorder.series().clone(), ..record });
        // A disk that is still at the last one misses this one.
        if let Some(Err(TrySendError::Disconnected(_))) = self.to.as_ref().map(|to| to.try_send(record)) {
            self.to = None;
        }
    }
}

impl Drop for Checkpoint {
    fn drop(&mut self) {
        drop(self.to.take());
        if let Some(writer) = self.writer.take() {
            let _ = writer.join();
        }
    }
}

/// A disk that is full now may have space later; the end of the run says what could not be saved.
fn write_all(folder: &Path, records: &Receiver<Box<RunRecord>>, took_ms: &AtomicU64) {
    for record in records {
        let begin = Instant::now();
        let _ = store::checkpoint(folder, &record);
        took_ms.store(begin.elapsed().as_millis() as u64, Ordering::Relaxed);
    }
}

/// What a crash may cost. More often would be more work for the disk than for the run.
const EVERY: Duration = Duration::from_secs(5);

/// A large record is written so seldom that writing it takes at most this part of the time.
const SHARE: u32 = 50;
