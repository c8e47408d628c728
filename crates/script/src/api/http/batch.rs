//! `http.batch`: many requests at once; and the replies of `asyncRequest`.

use crate::host::Host;
use crate::vm::{Call, Ctx, JsResult, Value};

use super::cache::Asked;
use super::call::refused;
use super::exchange::{Next, take_reply};
use super::state::{AsyncCall, BuiltRequest, Exchange};

/// One request of a batch.
enum Slot<'js> {
    Waiting(Option<BuiltRequest>),
    Flying(Exchange),
    Done(Value<'js>),
}

/// `http.batch(requests)`: an array of responses, or an object of them.
pub(super) fn batch<'js>(call: &Call<'js>) -> JsResult<Value<'js>> {
    let (ctx, requests) = (call.ctx(), call.arg(0));
    Host::of(ctx).forbid_init(ctx, "making http requests")?;
    if !requests.is_object() {
        return Err(ctx.throw_type("http.batch() takes an array or an object of requests"));
    }
    if requests.is_array() {
        let slots = requests.elements()?.iter().map(|item| slot(ctx, item)).collect::<JsResult<_>>()?;
        return ctx.array_of(perform(ctx, slots)?);
    }
    let keys = requests.keys()?;
    let slots = keys.iter().map(|key| slot(ctx, &requests.get_key(key)?)).collect::<JsResult<_>>()?;
    let object = ctx.object();
    for (key, response) in keys.iter().zip(perform(ctx, slots)?) {
        object.set(&key.text(), response)?;
    }
    Ok(object)
}

fn slot<'js>(ctx: Ctx<'js>, item: &Value<'js>) -> JsResult<Slot<'js>> {
    let undefined = || ctx.undefined();
    let is_url =
        item.is_string() || item.is_object() && !item.is_array() && item.get("method")?.is_undefined();
    let (method, url, body, params) = if item.is_array() {
        (item.get_idx(0)?.to_string()?, item.get_idx(1)?, item.get_idx(2)?, item.get_idx(3)?)
    } else if is_url && !(item.is_object() && item.get("name")?.is_undefined()) {
        ("GET".to_owned(), item.clone(), undefined(), undefined())
    } else {
        let method = item.get("method")?;
        let method = if method.is_nullish() { "GET".to_owned() } else { method.to_string()? };
        (method, item.get("url")?, item.get("body")?, item.get("params")?)
    };
    let method = method.to_ascii_uppercase();
    // As in k6, unlike those of `http.request`.
    let body = if matches!(method.as_str(), "GET" | "HEAD") { undefined() } else { body };
    let asked = Asked { method: &method, url, body, params };
    match asked.prepare(ctx)? {
        Ok(prepared) => Ok(Slot::Waiting(Some(prepared))),
        Err(failure) => refused(ctx, failure).map(Slot::Done),
    }
}

/// Sends as many at once as the options allow, until all are done.
fn perform<'js>(ctx: Ctx<'js>, mut slots: Vec<Slot<'js>>) -> JsResult<Vec<Value<'js>>> {
    let host = Host::of(ctx);
    let most = (host.shared.options.batch as usize).max(1);
    loop {
        let mut flying = slots.iter().filter(|slot| matches!(slot, Slot::Flying(_))).count();
        for slot in &mut slots {
            if let Slot::Waiting(prepared) = slot
                && flying < most
                && let Some(prepared) = prepared.take()
            {
                *slot = Slot::Flying(Exchange::begin(host, prepared));
                flying += 1;
            }
        }
        if flying == 0 {
            return Ok(slots
                .into_iter()
                .filter_map(|slot| match slot {
                    Slot::Done(value) => Some(value),
                    Slot::Waiting(_) | Slot::Flying(_) => None,
                })
                .collect());
        }
        let mut has_reply = false;
        for slot in &mut slots {
            let Slot::Flying(exchange) = slot else { continue };
            let Some(reply) = take_reply(&host.inbox, exchange.token) else { continue };
            has_reply = true;
            if let Next::Done(response) = exchange.on_reply(host, reply) {
                let throws = exchange.throws(host);
                *slot = Slot::Done(response.into_value(ctx, throws)?);
            }
        }
        if !has_reply {
            host.wait(ctx, None)?;
        }
    }
}

/// Settles the promises whose replies have come; false when none has.
pub(crate) fn run_replies(ctx: Ctx<'_>) -> JsResult<bool> {
    let host = Host::of(ctx);
    let mut has_run = false;
    let mut idx = 0;
    loop {
        let mut asyncs = host.http.asyncs.borrow_mut();
        let Some(call) = asyncs.get_mut(idx) else { return Ok(has_run) };
        let Some(reply) = take_reply(&host.inbox, call.exchange.token) else {
            idx += 1;
            continue;
        };
        has_run = true;
        if let Next::Done(response) = call.exchange.on_reply(host, reply) {
            let call = asyncs.swap_remove(idx);
            drop(asyncs);
            finish(ctx, call, response)?;
        }
    }
}

fn finish(ctx: Ctx<'_>, call: AsyncCall, response: Box<super::response::Response>) -> JsResult<()> {
    let (resolve, reject) = (ctx.restore(&call.resolve), ctx.restore(&call.reject));
    ctx.forget(call.resolve);
    ctx.forget(call.reject);
    let settled = match response.into_value(ctx, call.exchange.throws(Host::of(ctx))) {
        Ok(value) => resolve.call(&ctx.undefined(), &[&value]),
        Err(_) => reject.call(&ctx.undefined(), &[&ctx.take_exception()]),
    };
    settled.map(drop)
}
