//! Pages with metrics that a machine reads for a monitor: what the controller sends, and the monitor reads.

use serde::{Deserialize, Serialize};
use squall_plan::file::{MonitorSpec, Watched};

/// A page and how it is read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct MonitoredPage {
    /// The number of its monitor in the plan; samples carry it.
    pub(crate) monitor_idx: u32,
    pub(crate) url: String,
    pub(crate) kind: PageKind,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum PageKind {
    Prometheus { series: Vec<String> },
    Nginx,
    H2o,
}

impl MonitoredPage {
    /// The page that a monitor reads; `None` when it reads none.
    pub(crate) fn of(monitor_idx: usize, spec: &MonitorSpec) -> Option<Self> {
        let (url, kind) = match &spec.what {
            Watched::Machine { .. } | Watched::Kubernetes(_) => return None,
            Watched::Prometheus { url, series } => (url, PageKind::Prometheus { series: series.clone() }),
            Watched::Nginx { url } => (url, PageKind::Nginx),
            Watched::H2o { url } => (url, PageKind::H2o),
        };
        Some(Self { monitor_idx: monitor_idx as u32, url: url.value.clone(), kind })
    }
}
