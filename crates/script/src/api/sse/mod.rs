//! The module `k6/x/sse`: the event streams of the extension [xk6-sse](https://github.com/phymbert/xk6-sse). `sse.js` has what a script
//! sees, `decode` what a line is.

mod decode;

use std::borrow::Cow;
use std::cell::RefCell;

use super::sockets::{self, ParamRules, StreamParams, Wanted};
use crate::host::Host;
use crate::metrics::{Contains, MetricDef, MetricKind};
use crate::streams::StreamOwner;
use crate::vm::{Call, Ctx, Fun, JsResult, Value};
use decode::{Decoded, EventLines};

pub(super) fn exports(ctx: Ctx<'_>) -> JsResult<super::Exports<'_>> {
    let host = Host::of(ctx);
    let metric = host.source.metric(&metric()).map_err(|why| ctx.throw_error(&why))?;
    let module = host.kept(ctx, "sse", || {
        let own =
            [Fun::new(c"open", 2, open), Fun::new(c"decoder", 0, decoder), Fun::new(c"count", 1, count)];
        sockets::library(ctx, include_str!("sse.js"), &own)
    })?;
    host.event_metric.set(Some(metric));
    super::exports_of(module)
}

fn metric() -> MetricDef {
    MetricDef { name: Cow::Borrowed("sse_event"), kind: MetricKind::Counter, contains: Contains::Default }
}

/// `open(url, params)`: a token.
fn open<'js>(call: &Call<'js>) -> JsResult<Value<'js>> {
    let (ctx, url) = (call.ctx(), call.arg(0).to_string()?);
    Host::of(ctx).forbid_init(ctx, "using sse")?;
    let params = StreamParams::read(&call.arg(1), &RULES)?;
    let wanted = Wanted {
        url: &url,
        protocols: &[],
        params,
        owner: StreamOwner::Call,
        is_web_socket: false,
        name: "",
    };
    Ok(ctx.number(f64::from(sockets::open(ctx, &wanted)?)))
}

/// An object with `push(bytes)`, which gives the events that have come to their end.
fn decoder<'js>(call: &Call<'js>) -> JsResult<Value<'js>> {
    let ctx = call.ctx();
    let proto = ctx.object();
    ctx.set_functions(&proto, &[Fun::new(c"push", 1, push)])?;
    ctx.native(&proto, Box::new(RefCell::new(EventLines::default())))
}

fn push<'js>(call: &Call<'js>) -> JsResult<Value<'js>> {
    let (ctx, this) = (call.ctx(), call.this());
    let Some(lines) = this.opaque::<RefCell<EventLines>>() else {
        return Err(ctx.throw_type("this is not a decoder"));
    };
    let bytes = call.arg(0).bytes().unwrap_or_default();
    let mut decoded = Vec::new();
    lines.borrow_mut().push(&bytes, &mut decoded);
    let text = |bytes: &[u8]| ctx.string(&String::from_utf8_lossy(bytes));
    let object = |one: &Decoded| {
        let object = ctx.object();
        match one {
            Decoded::Problem(problem) => object.set("error", ctx.string(problem))?,
            Decoded::Event(event) => {
                object.set("id", text(&event.id))?;
                object.set("comment", text(&event.comment))?;
                object.set("name", text(&event.name))?;
                object.set("data", text(&event.data))?;
            }
        }
        Ok(object)
    };
    let objects = decoded.iter().map(object).collect::<JsResult<Vec<_>>>()?;
    ctx.array_of(objects)
}

/// Counts an event of a stream.
fn count<'js>(call: &Call<'js>) -> JsResult<Value<'js>> {
    let (ctx, token) = (call.ctx(), call.arg(0).as_number().unwrap_or_default() as u32);
    let host = Host::of(ctx);
    let streams = host.streams.borrow();
    if let (Some(stream), Some(metric)) = (streams.get(token), host.event_metric.get()) {
        stream.tags.record(&*host.shared.recorder, &[(metric, 1.0)]);
    }
    Ok(ctx.undefined())
}

const RULES: ParamRules =
    ParamRules { bad_tags: "invalid sse.open() metric tags", unknown: None, is_request: true };
