//! Servers watched through HTTP: Prometheus endpoints, nginx's `stub_status`, h2o's status page. One thread for each, one
//! question a second, all answers bounded.

use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};
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
    /// What each page has not told yet, with the name of its source.
    missing: Vec<(String, Missing)>,
    /// The threads end when nobody holds the other end.
    _alive: Vec<Sender<()>>,
}

/// Why figures that were asked for have never come; `None`: they have, or nothing was asked yet.
type Missing = Arc<Mutex<Option<String>>>;

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
        let (mut missing, mut running) = (Vec::new(), Vec::new());
        for page in specs.iter().filter_map(Page::of) {
            let (alive, is_over) = mpsc::channel();
            let sender = sender.clone();
            let told = Missing::default();
            missing.push((page.source.clone(), Arc::clone(&told)));
            let name = "monitor".to_owned();
            let thread = thread::Builder::new().name(name);
            if let Err(error) = thread.spawn(move || page.watch(&sender, &is_over, &told)) {
                note(&missing[missing.len() - 1].1, Some(format!("cannot start a thread: {error}")));
            }
            running.push(alive);
        }
        Self { samples, missing, _alive: running }
    }

    /// What was asked for and has never come: who, and why.
    pub(crate) fn missing(&self) -> Vec<(String, String)> {
        let told = |missing: &Missing| missing.lock().unwrap_or_else(PoisonError::into_inner).clone();
        self.missing.iter().filter_map(|(source, missing)| Some((source.clone(), told(missing)?))).collect()
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
        Some(Self { source, url: url.value.clone(), kind })
    }

    /// Asks every second until nobody listens. A page that does not answer has a gap.
    fn watch(&self, samples: &Sender<WebSample>, is_over: &Receiver<()>, missing: &Missing) {
        let agent = agent();
        let mut unseen = self.asked_for();
        let mut rates = Rates::default();
        let mut next = Instant::now();
        while let Err(mpsc::RecvTimeoutError::Timeout) =
            is_over.recv_timeout(next.saturating_duration_since(Instant::now()))
        {
            next += ASK_EVERY;
            let text = match fetch(&agent, &self.url) {
                Ok(text) => text,
                Err(error) => {
                    if !unseen.is_empty() {
                        let why = match error {
                            ureq::Error::Io(error) => error.to_string(),
                            error => error.to_string(),
                        };
                        note(missing, Some(why));
                    }
                    continue;
                }
            };
            let at_unix_ns = unix_ns(SystemTime::now());
            let now = Instant::now();
            let figures = self.read(&text);
            if !unseen.is_empty() {
                unseen.retain(|wanted| !figures.iter().any(|figure| figure.is(wanted)));
                note(missing, (!unseen.is_empty()).then(|| self.absent(&unseen)));
            }
            for Figure { name, unit, value, is_counter } in figures {
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

    /// What its page must tell at least once: each of the series that the plan names, or else anything, which is the empty name.
    fn asked_for(&self) -> Vec<String> {
        match &self.kind {
            Kind::Prometheus(series) if !series.is_empty() => series.clone(),
            Kind::Prometheus(_) | Kind::Nginx | Kind::H2o => vec![String::new()],
        }
    }

    /// Why these have not come although the page answers.
    fn absent(&self, unseen: &[String]) -> String {
        match &self.kind {
            Kind::Prometheus(series) if !series.is_empty() => format!("it has no `{}`", unseen.join("`, `")),
            Kind::Prometheus(_) => "its page has no series of Prometheus".to_owned(),
            Kind::Nginx => "its page is not the one of `stub_status`".to_owned(),
            Kind::H2o => "its page is not h2o's status as JSON".to_owned(),
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

fn note(missing: &Missing, why: Option<String>) {
    *missing.lock().unwrap_or_else(PoisonError::into_inner) = why;
}

/// Certificates are verified by the system's store.
fn agent() -> ureq::Agent {
    let roots = rustls_native_certs::load_native_certs().certs;
    let roots = roots.iter().map(|cert| ureq::tls::Certificate::from_der(cert).to_owned()).collect();
    let tls = ureq::tls::TlsConfig::builder()
        .root_certs(ureq::tls::RootCerts::Specific(Arc::new(roots)))
        .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::aws_lc_rs::default_provider()))
        .build();
    let config = ureq::Agent::config_builder().tls_config(tls).timeout_global(Some(ANSWER_MAX));
    config.user_agent("squall").proxy(None).build().into()
}

fn fetch(agent: &ureq::Agent, url: &str) -> Result<String, ureq::Error> {
    let mut answer = agent.get(url).call()?;
    answer.body_mut().with_config().limit(PAGE_BYTES_MAX).read_to_string()
}

const ASK_EVERY: Duration = Duration::from_secs(1);

/// Less than the time between two questions.
const ANSWER_MAX: Duration = Duration::from_millis(900);

/// The page of a large Prometheus exporter is a tenth of it.
const PAGE_BYTES_MAX: u64 = 10 << 20;
