//! The module `k6`: check, group, sleep, fail, randomSeed.

use crate::host::{Host, VuPhase};
use crate::metrics::{MetricId, Tags};
use crate::vm::{Call, Ctx, Fun, JsResult, Value};

pub(super) fn exports(ctx: Ctx<'_>) -> JsResult<super::Exports<'_>> {
    super::exports_of_functions(ctx, FUNCTIONS)
}

const FUNCTIONS: &[Fun] = &[
    Fun::new(c"check", 3, check),
    Fun::new(c"group", 2, group),
    Fun::new(c"sleep", 1, sleep),
    Fun::new(c"fail", 1, fail),
    Fun::new(c"randomSeed", 1, random_seed),
];

fn check<'js>(call: &Call<'js>) -> JsResult<Value<'js>> {
    let (ctx, value, checks) = (call.ctx(), call.arg(0), call.arg(1));
    let host = Host::of(ctx);
    host.forbid_init(ctx, "using check()")?;
    if !checks.is_object() {
        return Err(ctx.throw_type("no checks provided to `check`"));
    }
    let tags = if call.count() > 2 {
        super::tag_pairs(&call.arg(2))?.map_err(|text| ctx.throw_error(&text))?
    } else {
        Vec::new()
    };
    let mut are_all_ok = true;
    for key in checks.keys()? {
        let condition = checks.get_key(&key)?;
        let name = host.name_of(key);
        if name.contains("::") {
            return Err(ctx.throw_error(&format!("check name `{name}` may not contain '::'")));
        }
        if condition.is_async_function() {
            let message = "an async function cannot be used in check(); await its result first, or use the check of jslib k6-utils";
            return Err(ctx.throw_type(message));
        }
        let outcome =
            if condition.is_function() { condition.call(&ctx.undefined(), &[&value]) } else { Ok(condition) };
        let is_ok = outcome.as_ref().is_ok_and(Value::is_truthy);
        host.with_tags(&tags, |tags| {
            let tags = Tags { check: Some(&name), ..*tags };
            host.shared.recorder.check(tags.group, &name, is_ok, &tags);
        });
        outcome?;
        are_all_ok &= is_ok;
    }
    Ok(ctx.bool(are_all_ok))
}

fn group<'js>(call: &Call<'js>) -> JsResult<Value<'js>> {
    let ctx = call.ctx();
    let host = Host::of(ctx);
    host.forbid_init(ctx, "using group()")?;
    let (name, function) = (call.arg(0).to_string()?, call.arg(1));
    if name.contains("::") {
        return Err(ctx.throw_error(&format!("group name `{name}` may not contain '::'")));
    }
    if !function.is_function() {
        return Err(ctx.throw_type("group() requires a callback as a second argument"));
    }
    if function.is_async_function() {
        return Err(ctx.throw_type("group() does not support async functions as arguments"));
    }
    let parent = host.group.borrow().clone();
    let path = format!("{parent}::{name}");
    path.clone_into(&mut host.group.borrow_mut());
    host.shared.recorder.group(&path);
    let begin = std::time::Instant::now();
    let result = function.call(&ctx.undefined(), &[]);
    let duration_ms = begin.elapsed().as_secs_f64() * 1e3;
    host.with_tags(&[], |tags| host.shared.recorder.add(MetricId::GROUP_DURATION, duration_ms, tags));
    parent.clone_into(&mut host.group.borrow_mut());
    result
}

fn sleep<'js>(call: &Call<'js>) -> JsResult<Value<'js>> {
    let ctx = call.ctx();
    let host = Host::of(ctx);
    let seconds = call.arg(0).to_number()?;
    if seconds.is_nan() || seconds <= 0.0 || host.phase.get() == VuPhase::Summary {
        return Ok(ctx.undefined());
    }
    let until_ns = host.now_ns.get().saturating_add((seconds * 1e9) as u64);
    while host.now_ns.get() < until_ns {
        host.wait(ctx, Some(until_ns))?;
    }
    Ok(ctx.undefined())
}

fn fail<'js>(call: &Call<'js>) -> JsResult<Value<'js>> {
    let message = call.arg(0);
    let message = if message.is_undefined() { String::new() } else { message.to_string()? };
    Err(call.ctx().throw_error(&message))
}

/// Replaces `Math.random` with a seeded one. Its sequence is our own: k6's is that of Go's library.
fn random_seed<'js>(call: &Call<'js>) -> JsResult<Value<'js>> {
    let ctx = call.ctx();
    Host::of(ctx).random.set(Some(call.arg(0).to_number()? as i64 as u64));
    let random = ctx.function(&Fun::new(c"random", 0, seeded))?;
    ctx.global().get("Math")?.set("random", random)?;
    Ok(ctx.undefined())
}

/// `SplitMix64`, which is the same on every machine.
fn seeded<'js>(call: &Call<'js>) -> JsResult<Value<'js>> {
    let ctx = call.ctx();
    let state = Host::of(ctx).random.get().unwrap_or(0).wrapping_add(0x9E37_79B9_7F4A_7C15);
    Host::of(ctx).random.set(Some(state));
    let mut mixed = state;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^= mixed >> 31;
    Ok(ctx.number((mixed >> 11) as f64 / (1_u64 << 53) as f64))
}
