//! The timers of a user: what is called, and when it is due.

use crate::vm::{Ctx, Kept, Value};

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

impl Timers {
    /// When the next one is due.
    pub(crate) fn next_ns(&self) -> Option<u64> {
        self.timers.iter().map(|timer| timer.due_ns).min()
    }

    /// Gives all timers up.
    pub(crate) fn forget(&mut self, ctx: Ctx<'_>) {
        self.timers.drain(..).for_each(|timer| timer.forget(ctx));
    }

    /// A timer of `delay_ns` from now; gives its id.
    pub(crate) fn add(
        &mut self,
        now_ns: u64,
        delay_ns: u64,
        repeats: bool,
        (function, args): (Kept, Vec<Kept>),
    ) -> u32 {
        self.next_id += 1;
        let every_ns = repeats.then_some(delay_ns.max(INTERVAL_NS_MIN));
        self.timers.push(Timer { id: self.next_id, due_ns: now_ns + delay_ns, every_ns, function, args });
        self.next_id
    }

    /// Gives one up.
    pub(crate) fn clear(&mut self, ctx: Ctx<'_>, id: u32) {
        if let Some(idx) = self.timers.iter().position(|timer| timer.id == id) {
            self.timers.swap_remove(idx).forget(ctx);
        }
    }

    /// Function and arguments of the timer that is due first, if one is due.
    pub(crate) fn take_due<'js>(
        &mut self,
        ctx: Ctx<'js>,
        now_ns: u64,
    ) -> Option<(Value<'js>, Vec<Value<'js>>)> {
        let due = self.timers.iter().enumerate().min_by_key(|(_, timer)| (timer.due_ns, timer.id));
        let (idx, timer) = due.filter(|(_, timer)| timer.due_ns <= now_ns)?;
        let function = ctx.restore(&timer.function);
        let args = timer.args.iter().map(|arg| ctx.restore(arg)).collect();
        match timer.every_ns {
            Some(every_ns) => self.timers[idx].due_ns += every_ns,
            None => self.timers.swap_remove(idx).forget(ctx),
        }
        Some((function, args))
    }
}

impl Timer {
    fn forget(self, ctx: Ctx<'_>) {
        ctx.forget(self.function);
        self.args.into_iter().for_each(|arg| ctx.forget(arg));
    }
}

/// An interval of nothing would never let the script end.
const INTERVAL_NS_MIN: u64 = 1_000_000;
