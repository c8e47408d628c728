//! `squall handshake`, `squall idle` and `squall ws`: connections for their own sake.

use squall_engine::settled;
use squall_plan::load as plans;

use crate::args::{HandshakeArgs, IdleArgs, WebSocketArgs};
use crate::failure::{ExitCode, Failure};
use crate::{echo, http, load};

/// Makes handshakes.
pub(crate) fn handshake(args: &HandshakeArgs) -> Result<ExitCode, Failure> {
    let spec = args.spec();
    let plan = settled(plans::handshake(&spec, load::typed())?)?;
    http::make(&plan, &args.output, echo::defaults(&spec))
}

/// Opens connections and keeps them.
pub(crate) fn idle(args: &IdleArgs) -> Result<ExitCode, Failure> {
    let spec = args.spec();
    let plan = settled(plans::idle(&spec, load::typed())?)?;
    http::make(&plan, &args.output, echo::idle_defaults(&spec))
}

/// Opens WebSockets and exchanges messages.
pub(crate) fn websocket(args: &WebSocketArgs) -> Result<ExitCode, Failure> {
    let spec = args.spec();
    let plan = settled(plans::websocket(&spec, load::typed())?)?;
    http::make(&plan, &args.output, echo::defaults(&spec))
}
