//! The cases: what is asked of every tool, and what squall's ratio to each must not exceed.

use crate::tool::Tool;

/// One kind of load.
#[derive(Debug)]
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) path: &'static str,
    pub(crate) is_tls: bool,
    pub(crate) connection_count: u32,
    /// Requests per second of an open model; `None`: closed model.
    pub(crate) rate: Option<u32>,
    /// squall's cost may be at most this multiple of the tool's.
    pub(crate) limits: &'static [(Tool, f64)],
}

/// Every case but [`START`].
pub(crate) const CASES: &[Case] = &[
    small("small-4", 4, &[(Tool::Wrk, 0.60), (Tool::H2load, 1.0), (Tool::Ab, 1.0), (Tool::Oha, 1.0)]),
    small(
        "small-100",
        100,
        &[(Tool::Floor, 1.25), (Tool::Wrk, 0.78), (Tool::H2load, 1.0), (Tool::Ab, 1.0), (Tool::Oha, 1.0)],
    ),
    small(
        "small-1000",
        1000,
        &[(Tool::Floor, 1.25), (Tool::Wrk, 0.78), (Tool::H2load, 1.0), (Tool::Ab, 1.0), (Tool::Oha, 1.0)],
    ),
    small(
        "small-10000",
        10_000,
        &[(Tool::Floor, 1.25), (Tool::Wrk, 0.60), (Tool::H2load, 1.0), (Tool::Ab, 1.0), (Tool::Oha, 1.0)],
    ),
    Case {
        is_tls: true,
        ..small("tls-100", 100, &[(Tool::Wrk, 0.72), (Tool::H2load, 1.0), (Tool::Ab, 1.0), (Tool::Oha, 1.0)])
    },
    Case {
        path: "/100k",
        ..small("body-100k", 20, &[(Tool::Wrk, 0.35), (Tool::H2load, 1.0), (Tool::Ab, 1.0), (Tool::Oha, 1.0)])
    },
    Case {
        path: "/1m",
        ..small("body-1m", 20, &[(Tool::Wrk, 0.55), (Tool::H2load, 1.0), (Tool::Ab, 1.0), (Tool::Oha, 1.0)])
    },
    Case { rate: Some(20_000), ..small("open-20k", 100, &[(Tool::Wrk2, 0.90), (Tool::Oha, 1.0)]) },
    Case { rate: Some(100_000), ..small("open-100k", 100, &[(Tool::Wrk2, 0.90), (Tool::Oha, 1.0)]) },
];

/// The case that measures the time from a tool's start to its first request.
pub(crate) const START: &str = "start";

/// The names of all cases.
pub(crate) fn names() -> Vec<&'static str> {
    CASES.iter().map(|case| case.name).chain([START]).collect()
}

impl Case {
    /// squall, then those it is compared with.
    pub(crate) fn tools(&self) -> impl Iterator<Item = Tool> {
        [Tool::Squall].into_iter().chain(self.limits.iter().map(|(tool, _)| *tool))
    }

    /// What squall's ratio to `tool` must not exceed.
    pub(crate) fn limit(&self, tool: Tool) -> Option<f64> {
        self.limits.iter().find(|(one, _)| *one == tool).map(|(_, limit)| *limit)
    }
}

const fn small(name: &'static str, connection_count: u32, limits: &'static [(Tool, f64)]) -> Case {
    Case { name, path: "/", is_tls: false, connection_count, rate: None, limits }
}
