//! What is known of a recording before it is read: how much, from when to when, to which origins, and where.

use std::collections::HashMap;
use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::ROW_OTHER;
use crate::limits::{BLOCK_BYTES, ORIGIN_COUNT_MAX, ROW_COUNT_MAX};
use crate::{Record, Scheme};

/// The index of a recording; it is stored as JSON at the end of the file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Index {
    /// Records in the file.
    pub record_count: u64,
    /// Bytes of request heads and bodies, roughly.
    pub request_bytes: u64,
    /// Largest frame, head included.
    pub frame_bytes_max: u64,
    /// Time of the first request, in nanoseconds since the epoch.
    pub first_ns: u64,
    /// Time of the last request.
    pub last_ns: u64,
    /// Records are in the order of their times.
    pub is_sorted: bool,
    /// Some records say on which connection they came.
    pub has_connections: bool,
    /// Some records have a response.
    pub has_responses: bool,
    /// Requests whose bodies were not kept.
    #[serde(default)]
    pub lost_body_count: u64,
    /// Requests that opened a WebSocket.
    #[serde(default)]
    pub web_socket_count: u64,
    /// Scheme, host and port of each origin.
    pub origins: Vec<Origin>,
    /// Kinds of requests; what comes beyond the limit has none.
    pub rows: Vec<Row>,
    /// Where in the file which time is.
    pub blocks: Vec<Block>,
}

/// Where requests went.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// `http` or `https`.
    pub scheme: String,
    /// Host and port as in the URL; empty where the recording does not say.
    pub authority: String,
    /// Requests to it.
    pub request_count: u64,
}

/// A kind of request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Row {
    /// Method.
    pub method: String,
    /// URL without what varies.
    pub pattern: String,
    /// Index into the origins.
    pub origin: u16,
    /// Requests of this kind.
    pub request_count: u64,
}

/// A stretch of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Block {
    /// Byte offset of its first frame.
    pub offset: u64,
    /// Time of its first record.
    pub time_ns: u64,
    /// Records in it.
    pub record_count: u64,
}

/// Builds an index while records are written.
#[derive(Debug, Default)]
pub(super) struct Builder {
    index: Index,
    origins: HashMap<(Scheme, String), u16>,
    rows: HashMap<(String, String), u16>,
}

impl Index {
    /// From the first request to the last, in nanoseconds.
    pub fn length_ns(&self) -> u64 {
        self.last_ns.saturating_sub(self.first_ns)
    }
}

impl Builder {
    /// Goes on with the index of a file to which records are appended.
    pub(super) fn continued(index: Index) -> Self {
        let origins = index.origins.iter().zip(0..).map(|(origin, idx)| {
            ((Scheme::of(&origin.scheme).unwrap_or_default(), origin.authority.clone()), idx)
        });
        let rows =
            index.rows.iter().zip(0..).map(|(row, idx)| ((row.method.clone(), row.pattern.clone()), idx));
        Self { origins: origins.collect(), rows: rows.collect(), index }
    }

    /// The numbers of a record's origin and row.
    pub(super) fn place(&mut self, record: &Record) -> (u16, u16) {
        let request = &record.request;
        let key = (request.scheme, request.authority.clone());
        let known = self.origins.get(&key).copied();
        let origin = known.unwrap_or_else(|| {
            if self.index.origins.len() >= ORIGIN_COUNT_MAX {
                return 0;
            }
            let idx = self.index.origins.len() as u16;
            self.index.origins.push(Origin {
                scheme: request.scheme.text().to_owned(),
                authority: request.authority.clone(),
                request_count: 0,
            });
            self.origins.insert(key, idx);
            idx
        });
        (origin, self.row(record, origin))
    }

    /// Whether the record's origin is one too many.
    pub(super) fn has_room_for(&self, record: &Record) -> bool {
        let key = (record.request.scheme, record.request.authority.clone());
        self.index.origins.len() < ORIGIN_COUNT_MAX || self.origins.contains_key(&key)
    }

    fn row(&mut self, record: &Record, origin: u16) -> u16 {
        let key = (record.request.method.clone(), record.pattern());
        match self.rows.get(&key) {
            Some(idx) => *idx,
            None if self.index.rows.len() >= ROW_COUNT_MAX => ROW_OTHER,
            None => {
                let idx = self.index.rows.len() as u16;
                let (method, pattern) = key.clone();
                self.index.rows.push(Row { method, pattern, origin, request_count: 0 });
                self.rows.insert(key, idx);
                idx
            }
        }
    }

    /// Notes a frame that was written there. `place`: what [`Builder::place`] gave for it.
    pub(super) fn add(&mut self, record: &Record, (origin, row): (u16, u16), frame: Range<u64>) {
        let index = &mut self.index;
        index.origins[usize::from(origin)].request_count += 1;
        if let Some(row) = index.rows.get_mut(usize::from(row)) {
            row.request_count += 1;
        }
        let offset = frame.start;
        let time_ns = record.time_ns;
        if index.record_count == 0 {
            (index.first_ns, index.last_ns, index.is_sorted) = (time_ns, time_ns, true);
        }
        index.is_sorted &= time_ns >= index.last_ns;
        index.first_ns = index.first_ns.min(time_ns);
        index.last_ns = index.last_ns.max(time_ns);
        index.record_count += 1;
        index.request_bytes += record.request.bytes() as u64;
        index.lost_body_count += u64::from(record.request.lost_body_bytes > 0);
        index.web_socket_count += u64::from(record.opens_web_socket());
        index.frame_bytes_max = index.frame_bytes_max.max(frame.end - frame.start);
        index.has_connections |= record.connection != 0;
        index.has_responses |= record.response.is_some();
        match index.blocks.last_mut() {
            Some(block) if offset - block.offset < BLOCK_BYTES => block.record_count += 1,
            _ => index.blocks.push(Block { offset, time_ns, record_count: 1 }),
        }
    }

    pub(super) fn index(&self) -> &Index {
        &self.index
    }
}
