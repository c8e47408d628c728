//! What a recording holds, before anything is sent: how much, when, to whom, and what needs attention.

use std::collections::{BTreeMap, HashMap, HashSet};

use crate::{Peer, Record, RecordedKind};

/// The figures of a recording, in bounded memory.
#[derive(Debug, Default)]
pub struct Summary {
    /// Requests.
    pub request_count: u64,
    /// Bytes of their heads and bodies, roughly.
    pub request_bytes: u64,
    /// Largest request body.
    pub body_bytes_max: u64,
    /// Time of the first request, nanoseconds since the epoch.
    pub first_ns: u64,
    /// Time of the last.
    pub last_ns: u64,
    /// Requests with a recorded response.
    pub response_count: u64,
    /// Requests by method.
    pub methods: BTreeMap<String, u64>,
    /// Responses by status.
    pub statuses: BTreeMap<u16, u64>,
    /// WebSockets.
    pub web_socket_count: u64,
    /// Messages on them that the client sent, and that the server sent.
    pub message_counts: (u64, u64),
    /// Longest time between two requests in the order of their times, and where it begins.
    pub gap_ns_max: u64,
    hosts: HashMap<String, u64>,
    sessions: HashSet<u64>,
    connections: HashSet<u64>,
    seconds: HashMap<u64, u64>,
    latest_ns: u64,
    expired_jwt_count: u64,
    redirect_count: u64,
}

/// Requests to one origin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostCount {
    /// `https://host:port`; without a host where the recording does not say.
    pub origin: String,
    /// Requests.
    pub request_count: u64,
}

impl Summary {
    /// Takes a record in. Give them in the order of their times where gaps are of interest.
    pub fn add(&mut self, record: &Record) {
        let time_ns = record.time_ns;
        if self.request_count == 0 {
            (self.first_ns, self.last_ns, self.latest_ns) = (time_ns, time_ns, time_ns);
        }
        self.first_ns = self.first_ns.min(time_ns);
        self.last_ns = self.last_ns.max(time_ns);
        self.gap_ns_max = self.gap_ns_max.max(time_ns.saturating_sub(self.latest_ns));
        self.latest_ns = self.latest_ns.max(time_ns);
        self.request_count += 1;
        let request = &record.request;
        self.request_bytes += request.bytes() as u64;
        self.body_bytes_max = self.body_bytes_max.max(request.body_bytes());
        count(&mut self.hosts, format!("{}://{}", request.scheme.text(), request.authority));
        count(&mut self.seconds, time_ns / 1_000_000_000);
        *self.methods.entry(request.method.clone()).or_default() += 1;
        insert(&mut self.sessions, record.session);
        insert(&mut self.connections, record.connection);
        self.expired_jwt_count += u64::from(request.header("authorization").is_some_and(is_jwt));
        if let Some(response) = &record.response {
            self.response_count += 1;
            self.redirect_count += u64::from((300..400).contains(&response.status) && response.status != 304);
            *self.statuses.entry(response.status).or_default() += 1;
            self.web_socket_count += u64::from(response.is_web_socket());
            for message in response.messages.iter().filter(|message| message.kind != RecordedKind::Close) {
                match message.by {
                    Peer::Client => self.message_counts.0 += 1,
                    Peer::Server => self.message_counts.1 += 1,
                }
            }
        }
    }

    /// Origins, the busiest first.
    pub fn hosts(&self) -> Vec<HostCount> {
        let mut hosts: Vec<HostCount> = self
            .hosts
            .iter()
            .map(|(origin, request_count)| HostCount {
                origin: origin.clone(),
                request_count: *request_count,
            })
            .collect();
        hosts.sort_by(|a, b| b.request_count.cmp(&a.request_count).then(a.origin.cmp(&b.origin)));
        hosts
    }

    /// Sessions that the recording distinguishes.
    pub fn session_count(&self) -> usize {
        self.sessions.len()
    }

    /// Connections that the recording distinguishes.
    pub fn connection_count(&self) -> usize {
        self.connections.len()
    }

    /// Most requests in one second of the clock.
    pub fn peak_per_s(&self) -> u64 {
        self.seconds.values().copied().max().unwrap_or(0)
    }

    /// From the first request to the last, in nanoseconds.
    pub fn length_ns(&self) -> u64 {
        self.last_ns.saturating_sub(self.first_ns)
    }

    /// What a user should know before a replay, one sentence each.
    pub fn attention(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.hosts.keys().any(|host| host.ends_with("://")) {
            notes.push("some requests have no host: replay with --to URL".to_owned());
        }
        if self.expired_jwt_count > 0 {
            notes.push(format!(
                "{} requests carry a JWT, which expires: re-sign it with --sign-jwt, or let replay learn the live one",
                self.expired_jwt_count
            ));
        }
        if self.redirect_count > 0 {
            notes.push(format!(
                "{} redirects are not followed: the client's next request is in the recording",
                self.redirect_count
            ));
        }
        if self.gap_ns_max > GAP_NS_TOLD && self.gap_ns_max > self.length_ns() / 10 {
            notes.push(format!("a silence of {} s", self.gap_ns_max / 1_000_000_000));
        }
        if self.response_count == 0 && self.request_count > 0 {
            notes.push("no responses: nothing can be compared or learned".to_owned());
        }
        notes
    }
}

fn count<K: std::hash::Hash + Eq>(counts: &mut HashMap<K, u64>, key: K) {
    if counts.len() < KEY_COUNT_MAX || counts.contains_key(&key) {
        *counts.entry(key).or_default() += 1;
    }
}

fn insert(keys: &mut HashSet<u64>, key: u64) {
    if key != 0 && keys.len() < KEY_COUNT_MAX {
        keys.insert(key);
    }
}

/// `Bearer a.b.c`
fn is_jwt(value: &[u8]) -> bool {
    value.starts_with(b"Bearer ey") && value.iter().filter(|byte| **byte == b'.').count() == 2
}

/// Different hosts, sessions, connections or seconds that are distinguished.
const KEY_COUNT_MAX: usize = 1_000_000;

/// A silence longer than this may be a mistake in the times.
const GAP_NS_TOLD: u64 = 60_000_000_000;
