//! Which row of figures a request belongs to.

use std::sync::{Mutex, PoisonError};

use squall_measure::{Protocol, RowKey};
use squall_plan::limits::ROW_COUNT_MAX;
use squall_plan::{HttpVersion, RequestPlan};

use super::origin::OriginKey;

/// Rows of one request. Where only one protocol may be spoken, they are the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RowPair {
    /// Of what is not known to be HTTP/2.
    pub(crate) h1: u32,
    /// Of what was asked over HTTP/2.
    pub(crate) h2: u32,
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

    pub(super) fn pair_of(&self, load: &str, request: &RequestPlan, key: &OriginKey) -> RowPair {
        let mut rows = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut table = RowTable { load, begin: 0, rows: std::mem::take(&mut *rows) };
        let pair = table.pair_of(request, key);
        *rows = table.rows;
        pair
    }
}

/// Hands out rows; what exceeds the limit shares the last one.
pub(super) struct RowTable<'a> {
    pub(super) load: &'a str,
    /// Where this load's rows begin.
    pub(super) begin: usize,
    pub(super) rows: Vec<RowKey>,
}

impl RowTable<'_> {
    pub(super) fn pair_of(&mut self, request: &RequestPlan, origin: &OriginKey) -> RowPair {
        self.pair_of_row(&request.method, &request.pattern, origin)
    }

    pub(super) fn pair_of_row(&mut self, method: &str, pattern: &str, origin: &OriginKey) -> RowPair {
        let (h1, h2) =
            if origin.is_tls { (Protocol::Https11, Protocol::H2) } else { (Protocol::Http11, Protocol::H2c) };
        let [h1, h2] = match origin.http {
            HttpVersion::Http11 => [h1, h1],
            HttpVersion::Http2 => [h2, h2],
            HttpVersion::Auto => [h1, h2],
        }
        .map(|protocol| self.index_of(method, pattern, protocol));
        RowPair { h1, h2 }
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
