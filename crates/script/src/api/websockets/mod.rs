//! The modules `k6/websockets` and, by its older name, `k6/experimental/websockets`: any number of WebSockets, whose events the event
//! loop handles. `websocket.js` has what a script sees.

use super::http::url::{flaw, scheme_of};
use super::sockets::{self, ParamRules, StreamParams, Wanted};
use crate::console::Level;
use crate::host::Host;
use crate::streams::StreamOwner;
use crate::vm::{Call, Ctx, Fun, JsResult, Value};

pub(super) fn exports(ctx: Ctx<'_>) -> JsResult<super::Exports<'_>> {
    let module = Host::of(ctx).kept(ctx, "websockets", || {
        let own = [Fun::new(c"open", 3, open), Fun::new(c"streams", 0, streams)];
        let library = sockets::library(ctx, include_str!("websocket.js"), &own)?;
        Host::of(ctx).keep(ctx, HANDLE, library.get("handle")?);
        let module = ctx.object();
        for name in ["WebSocket", "Blob"] {
            module.set(name, library.get(name)?)?;
        }
        Ok(module)
    })?;
    super::exports_of(module)
}

/// The same by the name that it had before k6 v1.6.
pub(super) fn exports_of_old_name(ctx: Ctx<'_>) -> JsResult<super::Exports<'_>> {
    let host = Host::of(ctx);
    if host.source.is_building() {
        let text =
            "k6/experimental/websockets is now part of the k6 core as k6/websockets: import that instead";
        host.shared.console.line(Level::Warning, text, "");
    }
    exports(ctx)
}

/// Has the next event handled; false: there is none.
pub(crate) fn run_event(host: &Host, ctx: Ctx<'_>) -> JsResult<bool> {
    let Some(event) = host.streams.borrow_mut().take_looped() else { return Ok(false) };
    let token = ctx.number(f64::from(event.token));
    let handle = host.find_kept(ctx, HANDLE);
    if let (Some(values), Some(handle)) = (sockets::arguments(ctx, event)?, handle) {
        let args: Vec<&Value<'_>> = std::iter::once(&token).chain(&values).collect();
        handle.call(&ctx.undefined(), &args)?;
    }
    Ok(true)
}

/// `open(url, protocols, params)`: a token.
fn open<'js>(call: &Call<'js>) -> JsResult<Value<'js>> {
    let (ctx, url) = (call.ctx(), call.arg(0));
    Host::of(ctx).forbid_init(ctx, "using websockets")?;
    let url = checked_url(&url)?;
    let params = StreamParams::read(&call.arg(2), &RULES)?;
    let protocols = call.arg(1).elements()?.iter().map(Value::to_string).collect::<JsResult<Vec<_>>>()?;
    let name = params.tags.iter().find(|(key, _)| key == "name").map(|(_, value)| value.clone());
    let wanted = Wanted {
        url: &url,
        protocols: &protocols,
        params,
        owner: StreamOwner::Loop,
        is_web_socket: true,
        name: name.as_ref().unwrap_or(&url),
    };
    Ok(ctx.number(f64::from(sockets::open(ctx, &wanted)?)))
}

fn checked_url(value: &Value<'_>) -> JsResult<String> {
    let refused = |text: &str| Err(value.ctx().throw_error(text));
    if value.is_nullish() {
        return refused("WebSocket requires a url");
    }
    let url = value.to_string()?;
    if let Some(why) = flaw(&url) {
        return refused(&format!(
            "WebSocket requires valid url, but got {url:?} which resulted in parse {url:?}: {why}"
        ));
    }
    let scheme = scheme_of(&url).map_or_else(String::new, |(scheme, _)| scheme.to_ascii_lowercase());
    if !matches!(scheme.as_str(), "ws" | "wss") {
        return refused(&format!("WebSocket requires url with scheme ws or wss, but got {scheme:?}"));
    }
    match url.split_once('#') {
        Some((_, fragment)) if !fragment.is_empty() => {
            refused(&format!("WebSocket requires no url fragment, but got {fragment:?}"))
        }
        _ => Ok(url),
    }
}

/// The module `k6/experimental/streams`, for `Blob.stream()`.
fn streams<'js>(call: &Call<'js>) -> JsResult<Value<'js>> {
    let exports = super::streams::exports(call.ctx())?;
    let module = exports.into_iter().find(|(name, _)| name == "default");
    Ok(module.map_or_else(|| call.ctx().undefined(), |(_, module)| module))
}

const RULES: ParamRules = ParamRules {
    bad_tags: "invalid WebSocket tags option",
    unknown: Some("unknown WebSocket's option"),
    is_request: false,
};

/// Where the function is kept that an event is given to.
const HANDLE: &str = "websocket handle";
