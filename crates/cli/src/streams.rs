//! Where a run's figures go while it goes on: `--web`, and those of `--out` that are no files.

mod k6;

use std::net::SocketAddr;
use std::str::FromStr;

use squall_export::{Error, Metrics, Push, PushKind, Web};
use squall_measure::{RunRecord, RunRecorder};
use squall_plan::InputError;
use squall_report::page::FeedState;
use squall_report::{MachineGlance, OutputSpec};

use crate::failure::Failure;
use crate::output;

pub(crate) use k6::VARIABLES as K6_VARIABLES;

/// One `--out`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Out {
    /// A file, written at the end.
    File(OutputSpec),
    /// A system that figures are sent to every second.
    Push(PushKind, String),
    /// A page that Prometheus reads from.
    Scrape(SocketAddr),
    /// k6's `web-dashboard`: the page that `--web` serves, and a file of it at the end.
    Web { address: SocketAddr, export: Option<OutputSpec> },
}

impl Out {
    /// What is written at the end.
    pub(crate) fn file(&self) -> Option<&OutputSpec> {
        match self {
            Self::File(spec) => Some(spec),
            Self::Web { export, .. } => export.as_ref(),
            Self::Push(..) | Self::Scrape(_) => None,
        }
    }
}

/// All of a run's streams.
pub(crate) struct Streams {
    web: Option<Web>,
    metrics: Vec<Metrics>,
    pushes: Vec<Push>,
}

impl FromStr for Out {
    type Err = InputError;

    fn from_str(text: &str) -> Result<Self, InputError> {
        let text = if matches!(text, "json" | "csv") { &format!("{text}=-") } else { text };
        let (name, place) = text.split_once('=').unwrap_or((text, ""));
        if let Some(out) = k6::named(name, place, &variable) {
            return out;
        }
        if let Some((_, kind)) = PUSHES.iter().find(|(known, _)| *known == name) {
            return Ok(Self::Push(*kind, place.to_owned()));
        }
        let refused = |reason: String, help: &str| InputError { column: 1, reason, help: help.to_owned() };
        if name == "prometheus" {
            let help = "write `prometheus=127.0.0.1:5656`; to push metrics instead: `prometheus-rw=URL`";
            return place
                .parse()
                .map(Self::Scrape)
                .map_err(|_| refused(format!("`{place}` is not ADDRESS:PORT"), help));
        }
        let spec: Result<OutputSpec, squall_report::Error> = text.parse();
        spec.map(Self::File).map_err(|error| refused(error.to_string(), OUT_HELP))
    }
}

impl Streams {
    /// Opens those of `--out` and of `--web`. `name`: the run's.
    pub(crate) fn open(outs: &[Out], web: Option<SocketAddr>, name: &str) -> Result<Self, Failure> {
        let mut streams = Self { web: None, metrics: Vec::new(), pushes: Vec::new() };
        for out in outs {
            match out {
                Out::File(_) => {}
                Out::Push(kind, target) => streams.pushes.push(push(*kind, target)?),
                Out::Scrape(address) => {
                    streams.metrics.push(Metrics::start(*address).map_err(|error| refused(&error))?);
                }
                Out::Web { address, .. } if web.is_none() && streams.web.is_none() => {
                    streams.web = Some(Web::start(*address, name).map_err(|error| refused(&error))?);
                }
                Out::Web { .. } => {}
            }
        }
        if let Some(address) = web {
            streams.web = Some(Web::start(address, name).map_err(|error| refused(&error))?);
        }
        Ok(streams)
    }

    /// Says on stderr where the pages are.
    pub(crate) fn announce(&self) {
        let note = |name: &str, url: String| output::note(&format!("{name:<12}{url}"));
        self.web.iter().for_each(|web| note("live page", web.url()));
        self.metrics.iter().for_each(|metrics| note("metrics", metrics.url()));
    }

    /// Streams the run as it is now; returns how often a viewer asked to stop it.
    pub(crate) fn update(
        &mut self,
        recorder: &RunRecorder,
        machines: &[MachineGlance<'_>],
        is_draining: bool,
    ) -> u32 {
        self.pushes.iter_mut().for_each(|push| push.update(recorder));
        self.metrics.iter_mut().for_each(|metrics| metrics.update(recorder));
        let state = if is_draining { FeedState::Draining } else { FeedState::Running };
        self.web.as_mut().map_or(0, |web| web.update(recorder, machines, state))
    }

    /// Streams how the run ended; returns a warning for each stream that lost something.
    pub(crate) fn finish(self, record: &RunRecord) -> Vec<String> {
        if let Some(web) = self.web {
            web.finish(record);
        }
        self.pushes.into_iter().filter_map(|push| push.finish(record)).collect()
    }
}

/// A token for `Authorization` comes from the environment: an argument would be seen by everyone on the machine.
fn push(kind: PushKind, target: &str) -> Result<Push, Failure> {
    let token = variable("SQUALL_OUT_AUTHORIZATION").or_else(|| k6::authorization(kind, &variable));
    Push::start(kind, target, token).map_err(|error| refused(&error))
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

fn refused(error: &Error) -> Failure {
    Failure::usage(error.to_string(), error.help())
}

const PUSHES: &[(&str, PushKind)] = &[("prometheus-rw", PushKind::RemoteWrite), ("otlp", PushKind::Otlp)]; // `influxdb` and `statsd` are k6's names too.

const OUT_HELP: &str = "write FORMAT=FILE with json, csv, html, junit or markdown; or prometheus=ADDRESS:PORT, prometheus-rw=URL, otlp=URL, influxdb=URL or statsd=HOST:PORT";
