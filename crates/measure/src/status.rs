//! Counts of responses by status code.

use std::fmt;

use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Counts of final status codes: each of 0 to 599 separately, all others together.
#[derive(Clone, PartialEq, Eq)]
pub struct StatusCounts {
    counts: Box<[u64]>,
}

impl StatusCounts {
    /// No responses.
    pub fn new() -> Self {
        Self { counts: vec![0; usize::from(OTHER) + 1].into_boxed_slice() }
    }

    /// Counts one response.
    #[inline]
    pub fn record(&mut self, status: u16) {
        self.counts[usize::from(status.min(OTHER))] += 1;
    }

    /// How many responses had this status; of codes above 599 there is one count.
    pub fn count(&self, status: u16) -> u64 {
        self.counts[usize::from(status.min(OTHER))]
    }

    /// The codes that occurred, smallest first, with their counts; `None` means codes above 599.
    pub fn iter(&self) -> impl Iterator<Item = (Option<u16>, u64)> {
        let codes = (0..OTHER).map(Some).chain([None]);
        codes.zip(self.counts.iter().copied()).filter(|&(_, count)| count > 0)
    }

    /// Adds the counts of others.
    pub fn merge(&mut self, other: &Self) {
        for (mine, theirs) in self.counts.iter_mut().zip(&other.counts) {
            *mine += theirs;
        }
    }

    /// Forgets all counts and keeps the memory.
    pub fn clear(&mut self) {
        self.counts.fill(0);
    }
}

impl Default for StatusCounts {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for StatusCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

/// Written as a map of the codes that occurred; `"other"` holds those above 599.
impl Serialize for StatusCounts {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (status, count) in self.iter() {
            match status {
                Some(status) => map.serialize_entry(&status, &count)?,
                None => map.serialize_entry(OTHER_NAME, &count)?,
            }
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for StatusCounts {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut counts = Self::new();
        for (name, count) in std::collections::BTreeMap::<String, u64>::deserialize(deserializer)? {
            let status = match name.as_str() {
                OTHER_NAME => OTHER,
                digits => digits.parse().map_err(serde::de::Error::custom)?,
            };
            counts.counts[usize::from(status.min(OTHER))] = count;
        }
        Ok(counts)
    }
}

/// The first code without its own count. RFC 9110 15: codes are three digits, and their first is 1 to 5.
const OTHER: u16 = 600;

const OTHER_NAME: &str = "other";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_counted_apart_and_strange_ones_together() {
        let mut counts = StatusCounts::new();
        for status in [200, 404, 200, 600, 999, u16::MAX] {
            counts.record(status);
        }
        assert_eq!(counts.iter().collect::<Vec<_>>(), [(Some(200), 2), (Some(404), 1), (None, 3)]);
        assert_eq!(serde_json::to_string(&counts).unwrap(), r#"{"200":2,"404":1,"other":3}"#);
    }

    #[test]
    fn counts_come_back_from_json() {
        let counts: StatusCounts = serde_json::from_str(r#"{"200":7,"other":1}"#).unwrap();
        assert_eq!((counts.count(200), counts.count(777)), (7, 1));
        for bad in [r#"{"-1":1}"#, r#"{"2xx":1}"#, r#"{"70000":1}"#, r#"{"200":-1}"#] {
            assert!(serde_json::from_str::<StatusCounts>(bad).is_err(), "{bad}");
        }
    }
}
