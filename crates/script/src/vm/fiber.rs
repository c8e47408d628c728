//! The coroutine on which a virtual user runs: a blocking call in JavaScript leaves it, and comes back to it later.

use std::cell::Cell;
use std::rc::Rc;

use corosensei::stack::DefaultStack;
use corosensei::{Coroutine, CoroutineResult, Yielder};

use super::HostHooks;

/// A separate stack with a piece of work on it.
pub(crate) struct Fiber {
    coroutine: Coroutine<(), (), ()>,
}

/// What the work on a fiber uses to leave it.
#[derive(Debug, Default)]
pub(crate) struct Suspender(Cell<Option<*const Yielder<(), ()>>>);

impl std::fmt::Debug for Fiber {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Fiber").field("done", &self.coroutine.done()).finish()
    }
}

impl Fiber {
    /// A fiber that has not begun; its work leaves it through the host's suspender.
    pub(crate) fn new<H: HostHooks>(
        stack_bytes: usize,
        host: Rc<H>,
        work: impl FnOnce(&Rc<H>) + 'static,
    ) -> std::io::Result<Self> {
        let stack = DefaultStack::new(stack_bytes)?;
        let coroutine = Coroutine::with_stack(stack, move |yielder: &Yielder<(), ()>, ()| {
            host.suspender().0.set(Some(std::ptr::from_ref(yielder)));
            work(&host);
            host.suspender().0.set(None);
        });
        Ok(Self { coroutine })
    }

    /// Goes on until the work leaves; false when it has ended.
    pub(crate) fn resume(&mut self) -> bool {
        !self.coroutine.done() && matches!(self.coroutine.resume(()), CoroutineResult::Yield(()))
    }

    /// Gives the stack up with whatever is on it: the memory of a script that cannot be ended is lost.
    pub(crate) fn abandon(&mut self) {
        // SAFETY: what lives on the stack is never used again, and is not freed either: a leak, but no dangling reference, because
        // the VM on it is referred to from its own stack alone.
        unsafe { self.coroutine.force_reset() }
    }
}

impl Suspender {
    /// Leaves the fiber; returns when it is resumed. Outside of a fiber it returns at once: false.
    pub(crate) fn suspend(&self) -> bool {
        let Some(yielder) = self.0.get() else { return false };
        // SAFETY: the pointer is set while the work runs on its fiber, which is the only place where this can be called from, and
        // cleared at its end; the yielder lives on that stack for that long.
        unsafe { (*yielder).suspend(()) };
        true
    }
}
