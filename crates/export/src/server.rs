//! A page for Prometheus to scrape: the figures as of the last second, on an address of this machine.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use hyper::{Method, StatusCode};
use squall_measure::RunRecorder;

use crate::figures::Moment;
use crate::http::{HttpAnswer, HttpAsked, HttpServer, text};
use crate::{Error, prometheus};

/// The page, until it is dropped.
#[derive(Debug)]
pub struct Metrics {
    text: Arc<Mutex<Bytes>>,
    server: HttpServer,
    next_at: Duration,
}

impl Metrics {
    /// Listens. The page is empty until the first [`update`](Self::update).
    pub fn start(address: SocketAddr) -> Result<Self, Error> {
        let text: Arc<Mutex<Bytes>> = Arc::default();
        let shown = Arc::clone(&text);
        let server =
            HttpServer::start(address, Arc::new(move |asked: &HttpAsked<'_>| answer(asked, &shown)))?;
        Ok(Self { text, server, next_at: Duration::ZERO })
    }

    /// Where it is.
    pub fn url(&self) -> String {
        format!("http://{}/metrics", self.server.address())
    }

    /// Takes the run's figures, once a second.
    pub fn update(&mut self, recorder: &RunRecorder) {
        if recorder.elapsed() >= self.next_at {
            self.next_at = recorder.elapsed() + Duration::from_secs(1);
            let text = Bytes::from(prometheus::exposition(&Moment::of_recorder(recorder)));
            *self.text.lock().unwrap_or_else(PoisonError::into_inner) = text;
        }
    }
}

fn answer(asked: &HttpAsked<'_>, shown: &Mutex<Bytes>) -> HttpAnswer {
    match (asked.method, asked.path) {
        (&Method::GET, "/metrics") => HttpAnswer::Whole {
            status: StatusCode::OK,
            kind: "text/plain; version=0.0.4; charset=utf-8",
            body: shown.lock().unwrap_or_else(PoisonError::into_inner).clone(),
        },
        _ => text(StatusCode::NOT_FOUND, "the metrics are at /metrics"),
    }
}
