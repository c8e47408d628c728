//! Which row of figures a request belongs to.

use std::sync::{Mutex, PoisonError};

use squall_measure::{Protocol, RowKey};
use squall_plan::limits::ROW_COUNT_MAX;
use squall_plan::{HttpVersion, RequestPlan};
use squall_wire::Version;

use super::origin::OriginKey;

/// Rows of one request, by the version that it is sent in. Where only one may be spoken, all are the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct VersionRows([u32; 3]);

impl VersionRows {
    /// One row, whatever is spoken.
    pub(super) const fn same(row_idx: u32) -> Self {
        Self([row_idx; 3])
    }

    /// The row for requests in this version.
    pub(crate) const fn of(self, version: Version) -> u32 {
        self.0[version as usize]
    }

    /// The row for requests that were never sent.
    pub(crate) const fn unsent(self) -> u32 {
        self.0[0]
    }

    /// The highest of them.
    pub(crate) fn last(self) -> u32 {
        self.0.into_iter().max().unwrap_or_default()
    }
}

/// Rows that the shards of a run make while it goes on: the same row has the same index everywhere.
#[derive(Debug, Default)]
pub(crate) struct RowBook(Mutex<Vec<RowKey>>);

impl RowBook {
    /// Begins with the rows that are known.
    pub(crate) fn seed(&self, rows: &[RowKey]) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = rows.to_vec();
    }

    /// All rows.
    pub(crate) fn rows(&self) -> Vec<RowKey> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    pub(super) fn rows_of(&self, load: &str, request: &RequestPlan, key: &OriginKey) -> VersionRows {
        let mut rows = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut table = RowTable { load, begin: 0, rows: std::mem::take(&mut *rows), has_h3: false };
        let own = table.rows_of(request, key);
        *rows = table.rows;
        own
    }
}

/// Hands out rows; what exceeds the limit shares the last one.
pub(super) struct RowTable<'a> {
    pub(super) load: &'a str,
    /// Where this load's rows begin.
    pub(super) begin: usize,
    pub(super) rows: Vec<RowKey>,
    /// Where the server chooses the version, that may be HTTP/3.
    pub(super) has_h3: bool,
}

impl RowTable<'_> {
    pub(super) fn rows_of(&mut self, request: &RequestPlan, origin: &OriginKey) -> VersionRows {
        self.rows_of_pattern(&request.method, &request.pattern, origin)
    }

    pub(super) fn rows_of_pattern(&mut self, method: &str, pattern: &str, origin: &OriginKey) -> VersionRows {
        let [h1, h2] =
            if origin.is_tls { [Protocol::Https11, Protocol::H2] } else { [Protocol::Http11, Protocol::H2c] };
        let protocols = match origin.http {
            HttpVersion::Http11 => [h1; 3],
            HttpVersion::Http2 => [h2; 3],
            HttpVersion::Http3 => [Protocol::H3; 3],
            HttpVersion::Auto if self.has_h3 && origin.is_tls => [h1, h2, Protocol::H3],
            HttpVersion::Auto => [h1, h2, h2],
        };
        VersionRows(protocols.map(|protocol| self.index_of(method, pattern, protocol)))
    }

    fn index_of(&mut self, method: &str, pattern: &str, protocol: Protocol) -> u32 {
        let (load, method, url) = (self.load.to_owned(), method.to_owned(), pattern.to_owned());
        let mut key = RowKey { load, protocol, method, url };
        if self.rows.len() - self.begin >= ROW_COUNT_MAX - 1 && !self.rows.contains(&key) {
            key = RowKey { url: "(other)".to_owned(), method: "*".to_owned(), ..key };
        }
        let known = self.rows.iter().position(|row| *row == key);
        known.unwrap_or_else(|| {
            self.rows.push(key);
            self.rows.len() - 1
        }) as u32
    }
}
