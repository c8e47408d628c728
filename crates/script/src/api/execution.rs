//! The module `k6/execution`: where the script is in the run.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::host::{Host, VuPhase};
use crate::shared::{Counts, Pending, Scenario};
use crate::vm::{Call, Ctx, Fun, JsResult, Value};

pub(super) fn exports(ctx: Ctx<'_>) -> JsResult<super::Exports<'_>> {
    let root = ctx.object();
    for (name, getters) in [("instance", INSTANCE), ("scenario", SCENARIO), ("vu", VU), ("test", TEST)] {
        let part = ctx.object();
        ctx.set_getters(&part, getters)?;
        if name == "test" {
            ctx.set_functions(&part, &[Fun::new(c"abort", 1, abort), Fun::new(c"fail", 1, fail)])?;
        }
        root.set(name, part)?;
    }
    super::exports_of(root)
}

const INSTANCE: &[Fun] = &[
    Fun::new(c"currentTestRunDuration", 0, |call: &Call<'_>| {
        Ok(call.ctx().number(Host::of(call.ctx()).now_ns.get() as f64 / 1e6))
    }),
    Fun::new(c"iterationsCompleted", 0, |call: &Call<'_>| {
        counted(call, |run, own| (&run.iterations_completed, own.iterations_completed.get()))
    }),
    Fun::new(c"iterationsInterrupted", 0, |call: &Call<'_>| {
        counted(call, |run, own| (&run.iterations_interrupted, own.iterations_interrupted.get()))
    }),
    Fun::new(c"vusActive", 0, |call: &Call<'_>| {
        counted(call, |run, own| (&run.vus_active, own.vus_active.get() as u64))
    }),
    Fun::new(c"vusInitialized", 0, |call: &Call<'_>| {
        counted(call, |run, own| (&run.vus_initialised, own.vus_initialised.get()))
    }),
];

const SCENARIO: &[Fun] = &[
    Fun::new(c"name", 0, |call: &Call<'_>| in_scenario(call, |ctx, scenario| ctx.string(&scenario.name))),
    Fun::new(c"executor", 0, |call: &Call<'_>| {
        in_scenario(call, |ctx, scenario| ctx.string(&scenario.executor))
    }),
    Fun::new(c"startTime", 0, |call: &Call<'_>| {
        in_scenario(call, |ctx, scenario| ctx.number(scenario.start_unix_ms as f64))
    }),
    Fun::new(c"progress", 0, |call: &Call<'_>| {
        in_scenario(call, |ctx, _| {
            ctx.number(Host::of(ctx).scenario_progress.get().at(Host::of(ctx).now_ns.get()))
        })
    }),
    Fun::new(c"iterationInInstance", 0, |call: &Call<'_>| {
        in_scenario(call, |ctx, _| ctx.number(Host::of(ctx).ids.get().scenario_iteration as f64))
    }),
    Fun::new(c"iterationInTest", 0, |call: &Call<'_>| {
        in_scenario(call, |ctx, _| {
            let host = Host::of(ctx);
            ctx.number(host.shared.part.whole_idx(host.ids.get().scenario_iteration) as f64)
        })
    }),
];

const VU: &[Fun] = &[
    Fun::new(c"idInInstance", 0, |call: &Call<'_>| count(call, Host::of(call.ctx()).ids.get().vu)),
    Fun::new(c"idInTest", 0, |call: &Call<'_>| {
        let host = Host::of(call.ctx());
        let vu = host.ids.get().vu;
        count(call, if vu == 0 { 0 } else { host.shared.part.whole_idx(vu - 1) + 1 })
    }),
    Fun::new(c"iterationInInstance", 0, |call: &Call<'_>| {
        count(call, Host::of(call.ctx()).ids.get().iteration)
    }),
    Fun::new(c"iterationInScenario", 0, |call: &Call<'_>| {
        count(call, Host::of(call.ctx()).ids.get().iteration_in_scenario)
    }),
    Fun::new(c"tags", 0, |call: &Call<'_>| tags(call.ctx())),
    Fun::new(c"metrics", 0, |call: &Call<'_>| {
        let ctx = call.ctx();
        let object = ctx.object();
        object.set("tags", tags(ctx)?)?;
        object.set("metadata", metadata(ctx)?)?;
        Ok(object)
    }),
];

const TEST: &[Fun] = &[Fun::new(c"options", 0, options)];

fn count<'js>(call: &Call<'js>, count: u64) -> JsResult<Value<'js>> {
    Ok(call.ctx().number(count as f64))
}

/// A count of the run, with this thread's part that is not added yet.
fn counted<'js>(
    call: &Call<'js>,
    of: impl for<'a> FnOnce(&'a Counts, &Pending) -> (&'a AtomicU64, u64),
) -> JsResult<Value<'js>> {
    let shared = &Host::of(call.ctx()).shared;
    let (of_run, own) = of(&shared.counts, &shared.pending);
    count(call, of_run.load(Ordering::Relaxed).wrapping_add(own))
}

fn in_scenario<'js>(
    call: &Call<'js>,
    of: impl FnOnce(Ctx<'js>, &Scenario) -> Value<'js>,
) -> JsResult<Value<'js>> {
    let ctx = call.ctx();
    let scenario = Host::of(ctx).scenario.borrow().clone();
    match scenario.filter(|_| Host::of(ctx).phase.get() == VuPhase::Iteration) {
        Some(scenario) => Ok(of(ctx, &scenario)),
        None => {
            Err(ctx.throw_error("getting scenario information outside of the VU context is not supported"))
        }
    }
}

fn options<'js>(call: &Call<'js>) -> JsResult<Value<'js>> {
    let ctx = call.ctx();
    Host::of(ctx).kept(ctx, "options", || {
        let options = ctx.parse_json(&Host::of(ctx).shared.options.json)?;
        options.freeze()?;
        Ok(options)
    })
}

fn abort<'js>(call: &Call<'js>) -> JsResult<Value<'js>> {
    let (ctx, reason) = (call.ctx(), call.arg(0));
    let mut text = "test aborted".to_owned();
    if !reason.is_undefined() {
        text = format!("{text}: {}", reason.to_text()?.to_owned());
    }
    Host::of(ctx).abort(text);
    Host::of(ctx).check_interrupt(ctx)?;
    Ok(ctx.undefined())
}

fn fail<'js>(call: &Call<'js>) -> JsResult<Value<'js>> {
    let (ctx, reason) = (call.ctx(), call.arg(0));
    // k6 has decided on the exit code before it calls `handleSummary`.
    if Host::of(ctx).phase.get() != VuPhase::Summary {
        Host::of(ctx).shared.counts.is_failed.store(true, Ordering::Relaxed);
    }
    let mut text = "test marked as failed".to_owned();
    if !reason.is_undefined() {
        text = format!("{text}: {}", reason.to_text()?.to_owned());
    }
    Host::of(ctx).shared.console.line(crate::console::Level::Error, &text, "");
    Ok(ctx.undefined())
}

/// The live tags of this user: what is assigned tags later samples.
fn tags(ctx: Ctx<'_>) -> JsResult<Value<'_>> {
    Host::of(ctx).kept(ctx, "vu tags", || {
        let make = ctx.evaluate(TAGS_PROXY)?;
        let access = ctx.function(&Fun::new(c"access", 3, access))?;
        make.call(&ctx.undefined(), &[&access])
    })
}

/// The live metadata of this user: it goes with later samples, and no sub-metric asks for it.
fn metadata(ctx: Ctx<'_>) -> JsResult<Value<'_>> {
    Host::of(ctx).kept(ctx, "vu metadata", || {
        let make = ctx.evaluate(TAGS_PROXY)?;
        let access = ctx.function(&Fun::new(c"access", 3, access_metadata))?;
        make.call(&ctx.undefined(), &[&access])
    })
}

/// One operation on the metadata.
fn access_metadata<'js>(call: &Call<'js>) -> JsResult<Value<'js>> {
    let (ctx, operation) = (call.ctx(), call.arg(0).to_string()?);
    let pairs = &Host::of(ctx).metadata;
    if operation == "keys" {
        let names: Vec<String> = pairs.borrow().iter().map(|(name, _)| name.clone()).collect();
        return ctx.array_of(names.iter().map(|name| ctx.string(name)));
    }
    let (name, value) = (call.arg(1).to_string()?, call.arg(2));
    if operation == "get" {
        let known = pairs.borrow().iter().find(|(known, _)| *known == name).map(|(_, value)| value.clone());
        return Ok(known.map_or_else(|| ctx.undefined(), |value| ctx.string(&value)));
    }
    if operation == "set" && (value.is_object() || value.is_nullish()) {
        return Err(ctx.throw_type(&super::bad_metadata(&name)));
    }
    let text = value.to_string()?;
    pairs.borrow_mut().retain(|(known, _)| *known != name);
    if operation == "set" {
        pairs.borrow_mut().push((name, text));
    }
    Ok(ctx.bool(true))
}

/// One operation on the tags: get, set, delete or keys.
fn access<'js>(call: &Call<'js>) -> JsResult<Value<'js>> {
    let (ctx, operation) = (call.ctx(), call.arg(0).to_string()?);
    let host = Host::of(ctx);
    if operation == "keys" {
        let all = host.with_tags(&[], |tags| {
            tags.all().into_iter().map(|(key, _)| key.into_owned()).collect::<Vec<_>>()
        });
        return ctx.array_of(all.iter().map(|name| ctx.string(name)));
    }
    let name = call.arg(1).to_string()?;
    match operation.as_str() {
        "get" => {
            let value = host.with_tags(&[], |tags| tags.get(&name).map(std::borrow::Cow::into_owned));
            Ok(value.map_or_else(|| ctx.undefined(), |value| ctx.string(&value)))
        }
        "set" => {
            let value = call.arg(2);
            if value.is_object() || value.is_nullish() {
                return Err(ctx.throw_type(&super::bad_tag(&name)));
            }
            let value = value.to_string()?;
            let mut tags = host.tags.borrow_mut();
            tags.retain(|(known, _)| *known != name);
            tags.push((name, value));
            Ok(ctx.bool(true))
        }
        _ => {
            host.tags.borrow_mut().retain(|(known, _)| *known != name);
            Ok(ctx.bool(true))
        }
    }
}

const TAGS_PROXY: &str = "(function(access) {
  return new Proxy({}, {
    get: (_, key) => typeof key === 'string' ? access('get', key) : undefined,
    set: (_, key, value) => access('set', key, value),
    deleteProperty: (_, key) => access('delete', key),
    has: (_, key) => access('get', key) !== undefined,
    ownKeys: () => access('keys'),
    getOwnPropertyDescriptor: (_, key) => {
      const value = access('get', key);
      return value === undefined ? undefined : { value, enumerable: true, configurable: true, writable: true };
    },
  });
})";
