//! What is odd in a recording without being wrong: counted, with the first place of each kind.

use std::collections::BTreeMap;
use std::fmt;

use super::time::cut;
use crate::{Place, Request};

/// Oddities by their text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Notes(BTreeMap<String, (u64, Place)>);

impl Notes {
    /// Counts one.
    pub fn add(&mut self, text: &str, place: Place) {
        let is_known = self.0.contains_key(text) || self.0.len() < KIND_COUNT_MAX;
        let text = if is_known { text } else { OTHERS };
        self.0.entry(text.to_owned()).or_insert((0, place)).0 += 1;
    }

    /// Counts a WebSocket connection, which no replay can open.
    pub fn web_socket(&mut self, host: &str, place: Place) {
        self.add(&format!("WebSocket connections to {} left out", cut(host)), place);
    }

    /// Counts a request that opens a WebSocket (RFC 6455 4.1); whether it does.
    pub fn is_web_socket(&mut self, request: &Request, place: Place) -> bool {
        let is_one = request.header("sec-websocket-key").is_some();
        if is_one {
            self.web_socket(&request.authority, place);
        }
        is_one
    }

    /// Each kind: its text, how often it came, and where first.
    pub fn iter(&self) -> impl Iterator<Item = (&str, u64, Place)> {
        self.0.iter().map(|(text, (count, place))| (text.as_str(), *count, *place))
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Takes over what another reader noted.
    pub fn merge(&mut self, other: &Self) {
        for (text, (count, place)) in &other.0 {
            self.0.entry(text.clone()).or_insert((0, *place)).0 += count;
        }
    }
}

impl fmt::Display for Notes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (text, count, place) in self.iter() {
            writeln!(f, "{count} x {text} (first at {place})")?;
        }
        Ok(())
    }
}

/// Texts come from a fixed set with few variable parts; a file that finds more is not worth more memory.
const KIND_COUNT_MAX: usize = 100;

const OTHERS: &str = "other oddities";
