//! Readers of single values of flags that are about no load.

use std::net::SocketAddr;

use squall_plan::InputError;
use squall_plan::rules::parse_statuses;

pub(super) use squall_plan::options::values::{counted, threads, time};

/// `--status`: a separate type, because clap gives `Vec` a meaning.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Statuses(pub Vec<(u16, u16)>);

pub(super) fn statuses(text: &str) -> Result<Statuses, InputError> {
    parse_statuses(text).map(Statuses)
}

pub(super) fn listen(text: &str) -> Result<SocketAddr, InputError> {
    let help = "write an IP address and a port, such as `127.0.0.1:8080` or `[::]:8080`";
    text.parse().map_err(|_| refused("not an IP address and a port", help))
}

pub(super) fn refused(reason: impl Into<String>, help: impl Into<String>) -> InputError {
    InputError { column: 1, reason: reason.into(), help: help.into() }
}
