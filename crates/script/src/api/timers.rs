//! `setTimeout` and its kin: globals, and the module `k6/timers`.

use crate::host::Host;
use crate::vm::{Call, Ctx, Fun, JsResult, Kept, Value};

/// A user's timers.
#[derive(Debug, Default)]
pub(crate) struct Timers {
    next_id: u32,
    timers: Vec<Timer>,
}

#[derive(Debug)]
struct Timer {
    id: u32,
    due_ns: u64,
    /// `None`: it fires once.
    every_ns: Option<u64>,
    function: Kept,
    args: Vec<Kept>,
}

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

impl Timers {
    /// When the next one is due.
    pub(crate) fn next_ns(&self) -> Option<u64> {
        self.timers.iter().map(|timer| timer.due_ns).min()
    }

    /// Gives all timers up.
    pub(crate) fn forget(&mut self, ctx: Ctx<'_>) {
        for timer in self.timers.drain(..) {
            ctx.forget(timer.function);
            timer.args.into_iter().for_each(|arg| ctx.forget(arg));
        }
    }
}

/// Calls the timer that is due first; false when none is due.
pub(crate) fn run_due(host: &Host, ctx: Ctx<'_>) -> JsResult<bool> {
    let mut timers = host.timers.borrow_mut();
    let due = timers.timers.iter().enumerate().min_by_key(|(_, timer)| (timer.due_ns, timer.id));
    let Some((idx, timer)) = due.filter(|(_, timer)| timer.due_ns <= host.now_ns.get()) else {
        return Ok(false);
    };
    let function = ctx.restore(&timer.function);
    let args: Vec<Value<'_>> = timer.args.iter().map(|arg| ctx.restore(arg)).collect();
    match timer.every_ns {
        Some(every_ns) => timers.timers[idx].due_ns += every_ns,
        None => {
            let timer = timers.timers.swap_remove(idx);
            ctx.forget(timer.function);
            timer.args.into_iter().for_each(|arg| ctx.forget(arg));
        }
    }
    drop(timers);
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
    let mut timers = host.timers.borrow_mut();
    timers.next_id += 1;
    let timer = Timer {
        id: timers.next_id,
        due_ns: host.now_ns.get() + delay_ns,
        every_ns: repeats.then_some(delay_ns.max(INTERVAL_NS_MIN)),
        function: function.keep(),
        args: call.rest(2).into_iter().map(Value::keep).collect(),
    };
    let id = timer.id;
    timers.timers.push(timer);
    Ok(ctx.number(f64::from(id)))
}

fn clear<'js>(call: &Call<'js>) -> JsResult<Value<'js>> {
    let ctx = call.ctx();
    let id = call.arg(0).as_number().unwrap_or(0.0) as u32;
    let mut timers = Host::of(ctx).timers.borrow_mut();
    if let Some(idx) = timers.timers.iter().position(|timer| timer.id == id) {
        let timer = timers.timers.swap_remove(idx);
        ctx.forget(timer.function);
        timer.args.into_iter().for_each(|arg| ctx.forget(arg));
    }
    Ok(ctx.undefined())
}

/// An interval of nothing would never let the script end.
const INTERVAL_NS_MIN: u64 = 1_000_000;
