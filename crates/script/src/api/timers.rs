//! `setTimeout` and its kin: globals, and the module `k6/timers`.

use crate::host::Host;
use crate::vm::{Call, Ctx, Fun, JsResult, Value};

const FUNCTIONS: &[Fun] = &[
    Fun::new(c"setTimeout", 2, |call: &Call<'_>| set(call, false)),
    Fun::new(c"setInterval", 2, |call: &Call<'_>| set(call, true)),
    Fun::new(c"clearTimeout", 1, clear),
    Fun::new(c"clearInterval", 1, clear),
];

/// Makes the four functions globals.
pub(super) fn install(ctx: Ctx<'_>) -> JsResult<()> {
    ctx.set_functions(&ctx.global(), FUNCTIONS)
}

pub(super) fn exports(ctx: Ctx<'_>) -> JsResult<super::Exports<'_>> {
    FUNCTIONS.iter().map(|fun| Ok((fun.text().to_owned(), ctx.global().get(fun.text())?))).collect()
}

/// Calls the timer that is due first; false when none is due.
pub(crate) fn run_due(host: &Host, ctx: Ctx<'_>) -> JsResult<bool> {
    let due = host.timers.borrow_mut().take_due(ctx, host.now_ns.get());
    let Some((function, args)) = due else { return Ok(false) };
    let args: Vec<&Value<'_>> = args.iter().collect();
    function.call(&ctx.undefined(), &args)?;
    Ok(true)
}

fn set<'js>(call: &Call<'js>, repeats: bool) -> JsResult<Value<'js>> {
    let (ctx, function) = (call.ctx(), call.arg(0));
    if !function.is_function() {
        return Err(ctx.throw_type("a timer needs a function to call"));
    }
    let delay_ms = call.arg(1).to_number()?;
    let delay_ns = if delay_ms > 0.0 { (delay_ms * 1e6) as u64 } else { 0 };
    let host = Host::of(ctx);
    let what = (function.keep(), call.rest(2).into_iter().map(Value::keep).collect());
    let id = host.timers.borrow_mut().add(host.now_ns.get(), delay_ns, repeats, what);
    Ok(ctx.number(f64::from(id)))
}

fn clear<'js>(call: &Call<'js>) -> JsResult<Value<'js>> {
    let ctx = call.ctx();
    let id = call.arg(0).as_number().unwrap_or(0.0) as u32;
    Host::of(ctx).timers.borrow_mut().clear(ctx, id);
    Ok(ctx.undefined())
}
