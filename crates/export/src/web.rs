//! `--web`: the page of a run while it goes on, with server-sent events and a stop button. Listens on loopback by default.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use hyper::{Method, StatusCode};
use squall_measure::{RunRecord, RunRecorder};
use squall_report::MachineGlance;
use squall_report::page::{self, Feed, FeedState, Position};
use tokio::sync::mpsc;

use crate::Error;
use crate::http::{HttpAnswer, HttpAsked, HttpServer, text};

/// The live page, until it is dropped.
#[derive(Debug)]
pub struct Web {
    shared: Arc<Mutex<Shared>>,
    server: HttpServer,
    next_at: Duration,
}

#[derive(Debug)]
struct Shared {
    feed: Feed,
    viewers: Vec<Viewer>,
    /// How often a viewer asked to stop since the last look.
    stop_count: u32,
}

#[derive(Debug)]
struct Viewer {
    position: Position,
    events: mpsc::Sender<Bytes>,
}

impl Web {
    /// Serves the page; `title` is the run's name.
    pub fn start(address: SocketAddr, title: &str) -> Result<Self, Error> {
        let document = Bytes::from(page::live_document(title).ok_or(Error::NoPage)?);
        let shared =
            Arc::new(Mutex::new(Shared { feed: Feed::default(), viewers: Vec::new(), stop_count: 0 }));
        let seen = Arc::clone(&shared);
        let server = HttpServer::start(
            address,
            Arc::new(move |asked: &HttpAsked<'_>| answer(asked, &document, &seen)),
        )?;
        Ok(Self { shared, server, next_at: Duration::ZERO })
    }

    /// Where it is.
    pub fn url(&self) -> String {
        format!("http://{}/", self.server.address())
    }

    /// Updates all viewers, once a second, and at once when `state` changed; returns how often they asked to stop. Without viewers it
    /// costs nothing but keeping up with the points.
    pub fn update(
        &mut self,
        recorder: &RunRecorder,
        machines: &[MachineGlance<'_>],
        state: FeedState,
    ) -> u32 {
        let mut shared = lock(&self.shared);
        let asked_count = std::mem::take(&mut shared.stop_count);
        if recorder.elapsed() >= self.next_at || state != shared.feed.state() {
            self.next_at = recorder.elapsed() + PERIOD;
            shared.feed.update(recorder, machines, state);
            shared.tell();
        }
        asked_count
    }
}

impl Web {
    /// Sends all viewers how the run ended; then the page is gone with this.
    pub fn finish(self, record: &RunRecord) {
        let mut shared = lock(&self.shared);
        shared.feed.finish(record);
        shared.tell();
        // Their ends let the browsers' connections come to theirs.
        shared.viewers.clear();
    }
}

impl Shared {
    fn tell(&mut self) {
        let Self { feed, viewers, .. } = self;
        viewers.retain_mut(|viewer| match viewer.events.try_reserve() {
            Ok(place) => {
                place.send(event(feed, &mut viewer.position));
                true
            }
            // A slow viewer misses a second and gets more in the next one.
            Err(mpsc::error::TrySendError::Full(())) => true,
            Err(mpsc::error::TrySendError::Closed(())) => false,
        });
    }

    /// A new viewer gets everything so far at once.
    fn admit(&mut self) -> mpsc::Receiver<Bytes> {
        let (events, received) = mpsc::channel(QUEUE_LENGTH);
        let mut position = Position::default();
        if self.feed.has_begun() {
            // The channel is new, so it is not full.
            let _ = events.try_send(event(&self.feed, &mut position));
        }
        self.viewers.push(Viewer { position, events });
        received
    }
}

fn answer(asked: &HttpAsked<'_>, document: &Bytes, shared: &Mutex<Shared>) -> HttpAnswer {
    match (asked.method, asked.path) {
        (&Method::GET, "/") => HttpAnswer::Whole {
            status: StatusCode::OK,
            kind: "text/html; charset=utf-8",
            body: document.clone(),
        },
        (&Method::GET, "/events") => HttpAnswer::Events(lock(shared).admit()),
        (&Method::POST, "/stop") if asked.is_from_page => {
            lock(shared).stop_count += 1;
            text(StatusCode::ACCEPTED, "stopping")
        }
        (&Method::POST, "/stop") => text(StatusCode::FORBIDDEN, "only the page itself may stop the run"),
        _ => text(StatusCode::NOT_FOUND, "the page is at /"),
    }
}

fn event(feed: &Feed, position: &mut Position) -> Bytes {
    Bytes::from(format!("retry: {RETRY_MS}\ndata: {}\n\n", feed.message(position)))
}

fn lock(shared: &Mutex<Shared>) -> MutexGuard<'_, Shared> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

const PERIOD: Duration = Duration::from_secs(1);

/// Messages that wait for a slow viewer.
const QUEUE_LENGTH: usize = 4;

/// How soon a browser connects again after it lost us.
const RETRY_MS: u32 = 1000;
