//! `squall handshake` and `squall idle`: connections for their own sake.

use crate::args::{HandshakeArgs, IdleArgs};
use crate::failure::{ExitCode, Failure};
use crate::{build, echo, http};

/// Makes handshakes.
pub(crate) fn handshake(args: &HandshakeArgs) -> Result<ExitCode, Failure> {
    let plan = build::settled(build::sessions::handshake_plan(args)?)?;
    http::make(&plan, &args.output, echo::handshake_defaults(&args.load))
}

/// Opens connections and keeps them.
pub(crate) fn idle(args: &IdleArgs) -> Result<ExitCode, Failure> {
    let plan = build::settled(build::sessions::idle_plan(args)?)?;
    http::make(&plan, &args.output, echo::idle_defaults(&args.load))
}
