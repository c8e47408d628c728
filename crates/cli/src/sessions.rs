//! `squall handshake` and `squall idle`: connections for their own sake.

use crate::args::{HandshakeArgs, IdleArgs};
use crate::failure::{ExitCode, Failure};
use crate::{echo, http, load};

/// Makes handshakes.
pub(crate) fn handshake(args: &HandshakeArgs) -> Result<ExitCode, Failure> {
    let plan = load::settled(load::sessions::handshake_plan(args)?)?;
    http::make(&plan, &args.output, echo::handshake_defaults(&args.load))
}

/// Opens connections and keeps them.
pub(crate) fn idle(args: &IdleArgs) -> Result<ExitCode, Failure> {
    let plan = load::settled(load::sessions::idle_plan(args)?)?;
    http::make(&plan, &args.output, echo::idle_defaults(&args.load))
}
