//! What a VM knows: its host, of whatever type that is, and what the engine's parts remember.

use std::any::TypeId;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;

use super::{Ctx, Fun, Imported, JsResult, Kept, Suspender, Value};

/// What a VM asks of its host.
pub(crate) trait HostHooks: 'static {
    /// How the work on the host's fiber leaves it.
    fn suspender(&self) -> &Suspender;

    /// Asked every few thousand operations: whether to end the script.
    fn on_interrupt(&self) -> bool;

    /// Called by natives that work for long, every millisecond or so; an error ends the script.
    fn give_way(&self, ctx: Ctx<'_>) -> JsResult<()>;

    /// A promise was rejected without a handler, or got its handler later.
    fn on_rejection(&self, promise: &Value<'_>, reason: &Value<'_>, is_handled: bool);

    /// Gives up every value that is kept: the context is about to end.
    fn forget_values(&self, ctx: Ctx<'_>);
}

/// What a VM asks of its host when a script imports.
pub(crate) trait ModuleLoader: HostHooks {
    /// The full name of what an import statement of the module `base` says.
    fn resolve_import(&self, ctx: Ctx<'_>, base: &str, name: &str) -> JsResult<String>;

    /// What an import gives, by its full name.
    fn import<'js>(&self, ctx: Ctx<'js>, name: &str) -> JsResult<Imported<'js>>;
}

/// The opaque pointer of a runtime and its context.
#[derive(Debug)]
pub(super) struct State {
    /// Class of native objects.
    pub(super) class_id: Cell<u32>,
    /// Class of records.
    pub(super) record_class_id: Cell<u32>,
    /// Parts of the language that were added on demand, a bit for each.
    added_parts: Cell<u32>,
    /// Exports of native modules that were declared and not run yet, by module.
    exports: RefCell<HashMap<String, Vec<(String, Kept)>>>,
    /// Calls of what looks at the clock once in a while.
    call_count: Cell<u32>,
    replacer: RefCell<Option<Kept>>,
    give_way: fn(Ctx<'_>) -> JsResult<()>,
    /// The `Rc` that the VM holds.
    host: *const (),
    host_type: TypeId,
}

impl State {
    pub(super) fn new<H: HostHooks>(host: &Rc<H>) -> Self {
        Self {
            class_id: Cell::default(),
            record_class_id: Cell::default(),
            added_parts: Cell::default(),
            exports: RefCell::default(),
            call_count: Cell::default(),
            replacer: RefCell::default(),
            give_way: |ctx| ctx.host::<H>().give_way(ctx),
            host: Rc::as_ptr(host).cast(),
            host_type: TypeId::of::<H>(),
        }
    }

    /// The host.
    pub(super) fn host<H: HostHooks>(&self) -> &H {
        assert!(self.host_type == TypeId::of::<H>(), "the VM has a host of another type");
        // SAFETY: the pointer is that of an `Rc<H>`, which the VM holds for as long as this state.
        unsafe { &*self.host.cast::<H>() }
    }

    /// Gives up every value that is kept.
    pub(super) fn forget_values(&self, ctx: Ctx<'_>) {
        self.replacer.borrow_mut().take().into_iter().for_each(|kept| ctx.forget(kept));
        let exports = self.exports.borrow_mut().drain().flat_map(|(_, exports)| exports).collect::<Vec<_>>();
        exports.into_iter().for_each(|(_, kept)| ctx.forget(kept));
    }
}

impl<'js> Ctx<'js> {
    /// What the script's native functions share; `H` is the type that the VM was made with.
    pub(crate) fn host<H: HostHooks>(self) -> &'js H {
        self.state().host()
    }

    /// For natives that work for long, every millisecond or so: others have their turn, and a run that ends ends this, too.
    pub(crate) fn give_way(self) -> JsResult<()> {
        (self.state().give_way)(self)
    }

    /// The same for what is called very often.
    pub(super) fn give_way_at_times(self) -> JsResult<()> {
        let state = self.state();
        let count = state.call_count.get().wrapping_add(1);
        state.call_count.set(count);
        if count.is_multiple_of(CALLS_PER_LOOK) { self.give_way() } else { Ok(()) }
    }

    /// A function that is made when it is first asked for.
    pub(super) fn replacer(self, fun: &Fun) -> JsResult<Value<'js>> {
        let mut replacer = self.state().replacer.borrow_mut();
        if let Some(kept) = &*replacer {
            return Ok(self.restore(kept));
        }
        let function = self.function(fun)?;
        *replacer = Some(function.clone().keep());
        Ok(function)
    }

    /// Whether a part of the language that is added on demand is still to be added; it counts as added from now on.
    pub(super) fn begin_lazy_part(self, part_idx: usize) -> bool {
        let (parts, bit) = (&self.state().added_parts, 1 << part_idx);
        let added = parts.replace(parts.get() | bit);
        added & bit == 0
    }

    /// Keeps the exports of a native module until it is run.
    pub(super) fn hold_exports(self, name: &str, exports: Vec<(String, Value<'js>)>) {
        let exports = exports.into_iter().map(|(export, value)| (export, value.keep())).collect();
        self.state().exports.borrow_mut().insert(name.to_owned(), exports);
    }

    /// Hands over the exports of a native module that is being run.
    pub(super) fn take_exports(self, name: &str) -> Vec<(String, Value<'js>)> {
        let held = self.state().exports.borrow_mut().remove(name).unwrap_or_default();
        let restored = held.into_iter().map(|(export, kept)| {
            let value = self.restore(&kept);
            self.forget(kept);
            (export, value)
        });
        restored.collect()
    }
}

/// So many calls take less than a millisecond.
const CALLS_PER_LOOK: u32 = 1024;
