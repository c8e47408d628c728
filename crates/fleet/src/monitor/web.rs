//! Servers read through HTTP: Prometheus endpoints, nginx's `stub_status`, h2o's status page. One thread for each page, one
//! request a second, all answers bounded.
//!
//! Owns: what a page must say to be the page that the plan means. Never: decides which machine reads it.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant, SystemTime};
use std::{io, thread};

use squall_measure::MonitorUnit;

use super::pages::{self, Figure};
use super::rates::Rates;
use crate::clock::unix_ns;
use crate::page::{MonitoredPage, PageKind};
use crate::protocol::{Report, SeriesName};

/// A page that is read every second until this is dropped.
#[derive(Debug)]
pub(crate) struct PageWatch {
    /// The thread ends when the other end is gone.
    _alive: Sender<()>,
}

impl MonitoredPage {
    /// Reads it once. Gives the series that the plan names and that the page does not have yet.
    ///
    /// # Errors
    /// Why it cannot be read here, or is another page.
    pub(crate) fn probe(&self) -> Result<Vec<String>, String> {
        let text = fetch(&agent(PROBE_MAX), &self.url)?;
        let figures = self.figures(&text);
        match &self.kind {
            PageKind::Prometheus { series } if !series.is_empty() => {
                let is_absent = |name: &&String| !figures.iter().any(|figure| figure.is(name));
                Ok(series.iter().filter(is_absent).cloned().collect())
            }
            _ if !figures.is_empty() => Ok(Vec::new()),
            PageKind::Prometheus { .. } => {
                Err("it is not a metrics page in the Prometheus text format".to_owned())
            }
            PageKind::Nginx => Err("it is not nginx's `stub_status` page".to_owned()),
            PageKind::H2o => Err("it is not h2o's status page as JSON".to_owned()),
        }
    }

    /// Reads it every second from now on, on a thread of its own.
    ///
    /// # Errors
    /// When the thread cannot be started.
    pub(crate) fn watch(self, reports: Sender<Report>) -> io::Result<PageWatch> {
        let (alive, is_over) = mpsc::channel();
        let builder = thread::Builder::new().name("monitor".to_owned());
        builder.spawn(move || self.read_every_second(&reports, &is_over))?;
        Ok(PageWatch { _alive: alive })
    }

    /// A page that does not answer in time has a gap.
    fn read_every_second(&self, reports: &Sender<Report>, is_over: &Receiver<()>) {
        let agent = agent(ANSWER_MAX);
        let mut series = PageSeries::default();
        let mut next = Instant::now();
        while let Err(RecvTimeoutError::Timeout) =
            is_over.recv_timeout(next.saturating_duration_since(Instant::now()))
        {
            next += READ_EVERY;
            let Ok(text) = fetch(&agent, &self.url) else { continue };
            let at_unix_ns = unix_ns(SystemTime::now());
            let (new, values) = series.take(Instant::now(), self.figures(&text));
            let report = Report::Samples { monitor_idx: Some(self.monitor_idx), at_unix_ns, new, values };
            if reports.send(report).is_err() {
                return;
            }
        }
    }

    fn figures(&self, text: &str) -> Vec<Figure> {
        match &self.kind {
            PageKind::Prometheus { series } => pages::prometheus(text, series),
            PageKind::Nginx => pages::nginx(text),
            PageKind::H2o => pages::h2o(text),
        }
    }
}

/// The series of one page: their numbers, and the counters among them as rates.
#[derive(Debug, Default)]
struct PageSeries {
    numbers: HashMap<String, u32>,
    rates: Rates,
}

impl PageSeries {
    /// Names of series that are new, and the values of all that have one now.
    fn take(&mut self, now: Instant, figures: Vec<Figure>) -> (Vec<SeriesName>, Vec<(u32, f64)>) {
        let (mut new, mut values) = (Vec::new(), Vec::new());
        for Figure { name, unit, value, is_counter } in figures {
            let value = if is_counter { self.rates.per_s(&name, now, value) } else { Some(value) };
            let unit = if is_counter { MonitorUnit::PerSecond } else { unit };
            let Some(value) = value else { continue };
            let count = self.numbers.len();
            let number = match self.numbers.get(&name) {
                Some(&number) => number,
                None if count >= SERIES_COUNT_MAX => continue,
                None => {
                    self.numbers.insert(name.clone(), count as u32);
                    new.push(SeriesName { name, unit });
                    count as u32
                }
            };
            values.push((number, value));
        }
        (new, values)
    }
}

/// Certificates are verified by the system's store.
fn agent(answer_max: Duration) -> ureq::Agent {
    let roots = rustls_native_certs::load_native_certs().certs;
    let roots = roots.iter().map(|cert| ureq::tls::Certificate::from_der(cert).to_owned()).collect();
    let tls = ureq::tls::TlsConfig::builder()
        .root_certs(ureq::tls::RootCerts::Specific(Arc::new(roots)))
        .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::aws_lc_rs::default_provider()))
        .build();
    let config = ureq::Agent::config_builder().tls_config(tls).timeout_global(Some(answer_max));
    config.user_agent("squall").proxy(None).build().into()
}

fn fetch(agent: &ureq::Agent, url: &str) -> Result<String, String> {
    let text = agent
        .get(url)
        .call()
        .and_then(|mut answer| answer.body_mut().with_config().limit(PAGE_BYTES_MAX).read_to_string());
    text.map_err(|error| match error {
        ureq::Error::Io(error) => error.to_string(),
        ureq::Error::StatusCode(code) => format!("the server answered with status {code}"),
        ureq::Error::Timeout(_) => "no answer in time".to_owned(),
        error => error.to_string(),
    })
}

const READ_EVERY: Duration = Duration::from_secs(1);

/// Less than the time between two requests.
const ANSWER_MAX: Duration = Duration::from_millis(900);

/// The first request may have to resolve a name.
const PROBE_MAX: Duration = Duration::from_secs(3);

/// Labels that change would otherwise make new series for ever.
const SERIES_COUNT_MAX: usize = 500;

/// The page of a large Prometheus exporter is a tenth of it.
const PAGE_BYTES_MAX: u64 = 10 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn series_are_numbered_once_and_a_counter_has_a_value_from_its_second_reading() {
        let figure = |name: &str, value, is_counter| Figure {
            name: name.to_owned(),
            unit: MonitorUnit::Count,
            value,
            is_counter,
        };
        let (mut series, start) = (PageSeries::default(), Instant::now());
        let (new, values) = series.take(start, vec![figure("up", 1.0, false), figure("all", 5.0, true)]);
        assert_eq!((new.len(), values), (1, vec![(0, 1.0)]));
        let later = start + Duration::from_secs(2);
        let (new, values) = series.take(later, vec![figure("all", 25.0, true), figure("up", 0.0, false)]);
        assert_eq!(new, [SeriesName { name: "all".to_owned(), unit: MonitorUnit::PerSecond }]);
        assert_eq!(values, [(1, 10.0), (0, 0.0)]);
    }
}
