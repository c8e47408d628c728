//! `squall handshake` and `squall idle`: connections for their own sake.

use squall_engine::settled;
use squall_plan::load as plans;

use crate::args::{HandshakeArgs, IdleArgs};
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
