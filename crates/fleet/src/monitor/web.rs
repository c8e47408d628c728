//! Servers watched through HTTP: Prometheus endpoints, nginx's `stub_status`, h2o's status page. One thread for each, one
//! question a second, all answers bounded.

use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use squall_measure::MonitorUnit;
use squall_plan::file::{MonitorSpec, Watched};

use super::pages::{self, Figure};
use super::rates::Rates;
use crate::clock::unix_ns;

/// Asks all pages of a plan until it is dropped.
pub(crate) struct WebMonitors {
    samples: Receiver<WebSample>,
    /// The threads end when nobody holds the other end.
    _alive: Vec<Sender<()>>,
}

/// One value of one series.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct WebSample {
    /// Who it is about.
    pub source: String,
    /// What it is.
    pub name: String,
    /// Its unit.
    pub unit: MonitorUnit,
    /// When, in nanoseconds since 1970.
    pub at_unix_ns: u64,
    /// The value.
    pub value: f64,
}

impl WebMonitors {
    /// Begins to ask.
    pub(crate) fn new(specs: &[MonitorSpec]) -> Self {
        let (sender, samples) = mpsc::channel();
        let start = |spec: &MonitorSpec| {
            let page = Page::of(spec)?;
            let (alive, is_over) = mpsc::channel();
            let sender = sender.clone();
            let name = "monitor".to_owned();
            // Without the thread its series stay empty, which the report shows.
            thread::Builder::new().name(name).spawn(move || page.watch(&sender, &is_over)).ok()?;
            Some(alive)
        };
        Self { samples, _alive: specs.iter().filter_map(start).collect() }
    }

    /// What came since the last call.
    pub(crate) fn take(&self) -> Vec<WebSample> {
        self.samples.try_iter().collect()
    }
}

/// A page and how it is read.
struct Page {
    source: String,
    url: String,
    kind: Kind,
}

enum Kind {
    Prometheus(Vec<String>),
    Nginx,
    H2o,
}

impl Page {
    fn of(spec: &MonitorSpec) -> Option<Self> {
        let (url, kind) = match &spec.what {
            Watched::Machine { .. } => return None,
            Watched::Prometheus { url, series } => (url, Kind::Prometheus(series.clone())),
            Watched::Nginx { url } => (url, Kind::Nginx),
            Watched::H2o { url } => (url, Kind::H2o),
        };
        let source = spec.name.clone().unwrap_or_else(|| format!("target {}", spec.source()));
        let url = if url.value.contains("://") { url.value.clone() } else { format!("http://{}", url.value) };
        Some(Self { source, url, kind })
    }

    /// Asks every second until nobody listens. A page that does not answer has a gap.
    fn watch(&self, samples: &Sender<WebSample>, is_over: &Receiver<()>) {
        let agent: ureq::Agent =
            ureq::Agent::config_builder().timeout_global(Some(ANSWER_MAX)).build().into();
        let mut rates = Rates::default();
        let mut next = Instant::now();
        while let Err(mpsc::RecvTimeoutError::Timeout) =
            is_over.recv_timeout(next.saturating_duration_since(Instant::now()))
        {
            next += ASK_EVERY;
            let Some(text) = fetch(&agent, &self.url) else { continue };
            let at_unix_ns = unix_ns(SystemTime::now());
            let now = Instant::now();
            for Figure { name, unit, value, is_counter } in self.read(&text) {
                let told = if is_counter { rates.per_s(&name, now, value) } else { Some(value) };
                let Some(value) = told else { continue };
                let unit = if is_counter { MonitorUnit::PerSecond } else { unit };
                let sample = WebSample { source: self.source.clone(), name, unit, at_unix_ns, value };
                if samples.send(sample).is_err() {
                    return;
                }
            }
        }
    }

    fn read(&self, text: &str) -> Vec<Figure> {
        match &self.kind {
            Kind::Prometheus(series) => pages::prometheus(text, series),
            Kind::Nginx => pages::nginx(text),
            Kind::H2o => pages::h2o(text),
        }
    }
}

fn fetch(agent: &ureq::Agent, url: &str) -> Option<String> {
    let mut answer = agent.get(url).call().ok()?;
    answer.body_mut().with_config().limit(PAGE_BYTES_MAX).read_to_string().ok()
}

const ASK_EVERY: Duration = Duration::from_secs(1);

/// Less than the time between two questions.
const ANSWER_MAX: Duration = Duration::from_millis(900);

/// The page of a large Prometheus exporter is a tenth of it.
const PAGE_BYTES_MAX: u64 = 10 << 20;
