//! Any recording to one that can be replayed at once: read, put in the order of time, written as `.squall`.
//!
//! What does not fit in memory is sorted in runs on disk, which are merged. Memory does not grow with the file.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::path::Path;

use crate::limits::SORT_BYTES_MAX;
use crate::read::{Notes, Source};
use crate::store::{Cursor, Frame, Index, Recording, Writer};
use crate::{Problem, Record, WriteError};

/// How a recording is imported.
#[derive(Debug, Clone, Copy, Default)]
pub struct ImportOptions {
    /// Go on behind records that cannot be read.
    pub skip_bad: bool,
}

/// What came of it.
#[derive(Debug, Clone, Default)]
pub struct Imported {
    /// The index of what was written.
    pub index: Index,
    /// Records that could not be read, the first of them with their reasons.
    pub bad: Vec<Problem>,
    /// How many could not be read in all.
    pub bad_count: u64,
    /// Oddities.
    pub notes: Notes,
    /// Records that stood later in the file than a record of a later time.
    pub out_of_order_count: u64,
}

/// A recording cannot be imported.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// A record cannot be read, and bad ones are not to be skipped.
    #[error(transparent)]
    Read(#[from] Problem),
    /// The result cannot be written.
    #[error(transparent)]
    Write(#[from] WriteError),
}

/// Reads `source` to its end and writes its records to `writer` in the order of their times.
///
/// `change` sees each record first and may alter it or leave it out; `progress` receives the number of bytes read so far.
///
/// # Errors
/// See [`ImportError`]; a fatal problem of the source is none when `skip_bad` is set.
pub fn import(
    source: &mut dyn Source,
    mut writer: Writer,
    options: ImportOptions,
    change: &mut dyn FnMut(&mut Record) -> bool,
    progress: &mut dyn FnMut(u64),
) -> Result<Imported, ImportError> {
    let mut sorter = Sorter::default();
    let mut imported = Imported::default();
    let mut latest_ns = 0;
    loop {
        match source.next() {
            Ok(None) => break,
            Ok(Some(mut record)) => {
                progress(source.bytes_read());
                if change(&mut record) {
                    imported.out_of_order_count += u64::from(record.time_ns < latest_ns);
                    latest_ns = latest_ns.max(record.time_ns);
                    sorter.push(record)?;
                }
            }
            Err(problem) if options.skip_bad => {
                let is_fatal = problem.is_fatal;
                imported.bad_count += 1;
                if imported.bad.len() < BAD_KEPT_MAX {
                    imported.bad.push(problem);
                }
                if is_fatal {
                    break;
                }
            }
            Err(problem) => return Err(problem.into()),
        }
    }
    sorter.drain(&mut |record| if writer.has_room_for(record) { writer.write(record) } else { Ok(()) })?;
    imported.notes = source.notes().clone();
    imported.index = writer.finish()?;
    Ok(imported)
}

/// Sorts in memory as long as it can, then in runs on disk.
#[derive(Default)]
struct Sorter {
    records: Vec<Record>,
    /// What they take in memory.
    bytes: usize,
    runs: Vec<Recording>,
    /// The run that goes on as long as nothing comes that is earlier than its last record.
    open: Option<Run>,
}

/// A temporary file of records in order.
struct Run {
    file: File,
    writer: Writer,
    last_ns: u64,
}

impl Sorter {
    /// The later half stays in memory, where what comes next finds its place: a recording that is nearly in order makes one run.
    fn push(&mut self, record: Record) -> Result<(), WriteError> {
        self.bytes += record.bytes();
        self.records.push(record);
        if self.bytes >= SORT_BYTES_MAX { self.spill(self.records.len().div_ceil(2)) } else { Ok(()) }
    }

    fn sort(&mut self) {
        // Stable: requests of the same moment keep the order of the file.
        self.records.sort_by_key(|record| record.time_ns);
    }

    /// Writes the earliest records to disk.
    fn spill(&mut self, count: usize) -> Result<(), WriteError> {
        self.sort();
        for record in self.records.drain(..count) {
            self.bytes -= record.bytes();
            let mut run = match self.open.take() {
                Some(run) if run.last_ns <= record.time_ns => run,
                ended => {
                    self.runs.extend(ended.map(Run::end).transpose()?);
                    Run::begin()?
                }
            };
            run.writer.write(&record)?;
            run.last_ns = record.time_ns;
            self.open = Some(run);
        }
        Ok(())
    }

    /// Gives every record, in order.
    fn drain(mut self, give: &mut dyn FnMut(&Record) -> Result<(), WriteError>) -> Result<(), WriteError> {
        if self.open.is_none() {
            self.sort();
            return self.records.iter().try_for_each(give);
        }
        self.spill(self.records.len())?;
        self.runs.extend(self.open.map(Run::end).transpose()?);
        let buffer_bytes = (SORT_BYTES_MAX / self.runs.len()).clamp(4096, 1 << 20);
        let mut cursors: Vec<Cursor> = self.runs.iter().map(|run| run.cursor(buffer_bytes)).collect();
        merge(&mut cursors, give).map_err(os)?
    }
}

impl Run {
    fn begin() -> Result<Self, WriteError> {
        let file = tempfile::tempfile().map_err(os)?;
        let writer = Writer::on_file(file.try_clone().map_err(os)?, Path::new(TEMPORARY))?;
        Ok(Self { file, writer, last_ns: 0 })
    }

    fn end(self) -> Result<Recording, WriteError> {
        self.writer.finish()?;
        Recording::on_file(self.file, Path::new(TEMPORARY)).map_err(|error| os(std::io::Error::other(error)))
    }
}

fn os(source: std::io::Error) -> WriteError {
    WriteError::Os { path: TEMPORARY.into(), source }
}

/// Merges runs that are sorted each; of equal times the earlier run goes first.
fn merge(
    cursors: &mut [Cursor],
    give: &mut dyn FnMut(&Record) -> Result<(), WriteError>,
) -> std::io::Result<Result<(), WriteError>> {
    let mut heap = BinaryHeap::new();
    let mut frames: Vec<Option<Frame>> = Vec::new();
    for (idx, cursor) in cursors.iter_mut().enumerate() {
        let frame = cursor.peek()?;
        heap.extend(frame.map(|frame| Reverse((frame.time_ns, idx))));
        frames.push(frame);
    }
    while let Some(Reverse((_, idx))) = heap.pop() {
        let Some(frame) = frames[idx] else { continue };
        if let Some(record) = cursors[idx].record(&frame)?
            && let Err(error) = give(&record)
        {
            return Ok(Err(error));
        }
        frames[idx] = cursors[idx].peek()?;
        heap.extend(frames[idx].map(|frame| Reverse((frame.time_ns, idx))));
    }
    Ok(Ok(()))
}

/// Where runs are, in words.
const TEMPORARY: &str = "a temporary file";

/// Problems kept with their reasons; the others are counted.
const BAD_KEPT_MAX: usize = 100;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Request;

    /// A source of records whose times go back and forth.
    struct Scattered {
        next: u64,
        count: u64,
        body_bytes: usize,
        notes: Notes,
    }

    impl Source for Scattered {
        fn next(&mut self) -> Result<Option<Record>, Problem> {
            self.next += 1;
            let time_ns = 1_700_000_000_000_000_000 + self.next * 7919 % self.count;
            let request =
                Request { body: vec![1; self.body_bytes], target: "/".into(), ..Request::default() };
            Ok((self.next <= self.count).then(|| Record { time_ns, request, ..Record::default() }))
        }

        fn notes(&self) -> &Notes {
            &self.notes
        }

        fn bytes_read(&self) -> u64 {
            self.next
        }
    }

    #[test]
    fn order_is_made_in_memory_and_on_disk() {
        for (count, body_bytes) in [(1000, 10), (1000, 100_000)] {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("s.squall");
            let mut source = Scattered { next: 0, count, body_bytes, notes: Notes::default() };
            let writer = Writer::create(&path).unwrap();
            let imported =
                import(&mut source, writer, ImportOptions::default(), &mut |_| true, &mut |_| {}).unwrap();
            assert_eq!((imported.index.record_count, imported.index.is_sorted), (count, true));
            assert!(imported.out_of_order_count > 0);
        }
    }

    #[test]
    fn a_recording_that_is_nearly_in_order_makes_one_run() {
        let mut sorter = Sorter::default();
        for nth in 0..2000_u64 {
            let request = Request { body: vec![1; 100_000], ..Request::default() };
            // Each pair comes the wrong way round.
            sorter.push(Record { time_ns: 10 + (nth ^ 1), request, ..Record::default() }).unwrap();
        }
        assert!(sorter.runs.is_empty() && sorter.open.is_some());
        assert!(sorter.records.iter().map(Record::bytes).sum::<usize>() == sorter.bytes);
        let mut times = Vec::new();
        sorter
            .drain(&mut |record| {
                times.push(record.time_ns);
                Ok(())
            })
            .unwrap();
        assert_eq!(times, (10..2010).collect::<Vec<u64>>());
    }
}
