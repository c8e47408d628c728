//! The module `k6/ws`: a WebSocket at a time, in a call that waits for its end. `ws.js` has what a script sees.

use super::sockets::{self, ParamRules, StreamParams, Wanted};
use crate::host::Host;
use crate::streams::StreamOwner;
use crate::vm::{Call, Ctx, Fun, JsResult, Value};

pub(super) fn exports(ctx: Ctx<'_>) -> JsResult<super::Exports<'_>> {
    let module = Host::of(ctx).kept(ctx, "ws", || {
        sockets::library(ctx, include_str!("ws.js"), &[Fun::new(c"connect", 2, connect)])
    })?;
    super::exports_of(module)
}

/// `connect(url, params)`: a token.
fn connect<'js>(call: &Call<'js>) -> JsResult<Value<'js>> {
    let (ctx, url) = (call.ctx(), call.arg(0).to_string()?);
    Host::of(ctx).forbid_init(ctx, "using websockets")?;
    let params = StreamParams::read(&call.arg(1), &RULES)?;
    let wanted =
        Wanted { url: &url, protocols: &[], params, owner: StreamOwner::Call, is_web_socket: true, name: "" };
    Ok(ctx.number(f64::from(sockets::open(ctx, &wanted)?)))
}

const RULES: ParamRules =
    ParamRules { bad_tags: "invalid ws.connect() metric tags", unknown: None, is_request: false };
