//! The JavaScript engine (QuickJS-ng) behind a safe border: one [`Vm`] is one virtual user's world, generic over the
//! host that its native functions share.
//!
//! Owns: the runtime, its context and the coroutine it runs on. Never: what a script may
//! call (`api`), or when it runs.
#![expect(unsafe_code, reason = "the border to the engine's C interface; every site says why it holds")]

mod fiber;
mod function;
mod heap;
mod lazy;
mod lists;
mod module;
mod record;
mod state;
mod value;

use std::ffi::{CStr, c_int, c_void};
use std::marker::PhantomData;
use std::ptr::NonNull;
use std::rc::Rc;

use rquickjs_sys as qjs;

use state::State;

pub(crate) use fiber::{Fiber, Suspender};
pub(crate) use function::{Call, Fun};
pub(crate) use heap::{Heap, return_free_memory};
pub(crate) use module::{Code, Imported, Module, compile_function, compile_module};
pub(crate) use record::{Field, Lazy, RecordKind};
pub(crate) use state::{HostHooks, ModuleLoader};
pub(crate) use value::{Kept, Key, Value};

/// A JavaScript exception is pending in the context; [`Ctx::take_exception`] has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Thrown;

/// What a call into JavaScript gives.
pub(crate) type JsResult<T> = Result<T, Thrown>;

/// One virtual user's runtime and context.
#[derive(Debug)]
pub(crate) struct Vm<H: HostHooks> {
    runtime: NonNull<qjs::JSRuntime>,
    context: NonNull<qjs::JSContext>,
    /// The opaque pointer of both: alive as long as they are.
    state: Rc<State>,
    host: Rc<H>,
    /// Where its memory comes from.
    _heap: Rc<Heap>,
}

/// A context in use.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ctx<'js> {
    raw: NonNull<qjs::JSContext>,
    _life: PhantomData<&'js State>,
}

/// How much one virtual user may take.
#[derive(Debug, Clone, Copy)]
pub(crate) struct VmLimits {
    /// Most bytes of JavaScript objects.
    pub(crate) memory_bytes: usize,
    /// Most bytes of stack below the point where the VM is entered.
    pub(crate) stack_bytes: usize,
}

impl<H: HostHooks> Vm<H> {
    /// A fresh world whose native functions see `host`. To be made on the stack on which it will run.
    pub(crate) fn new(host: Rc<H>, heap: Rc<Heap>, limits: VmLimits) -> Option<Self>
    where
        H: ModuleLoader,
    {
        let state = Rc::new(State::new(&host));
        // SAFETY: a null check follows each creation; the runtime is set up before any script runs in it, on this thread.
        unsafe {
            let heap_ptr = Rc::as_ptr(&heap).cast_mut().cast::<c_void>();
            let functions = Heap::functions();
            let runtime = NonNull::new(qjs::JS_NewRuntime2(&raw const functions, heap_ptr))?;
            qjs::JS_SetMemoryLimit(runtime.as_ptr(), limits.memory_bytes as qjs::size_t);
            qjs::JS_UpdateStackTop(runtime.as_ptr());
            qjs::JS_SetMaxStackSize(runtime.as_ptr(), limits.stack_bytes as qjs::size_t);
            qjs::JS_SetGCThreshold(runtime.as_ptr(), GC_BYTES_IN_INIT);
            let Some(context) = NonNull::new(qjs::JS_NewContextRaw(runtime.as_ptr())) else {
                qjs::JS_FreeRuntime(runtime.as_ptr());
                return None;
            };
            let opaque = Rc::as_ptr(&state).cast_mut().cast::<c_void>();
            qjs::JS_SetContextOpaque(context.as_ptr(), opaque);
            qjs::JS_SetRuntimeOpaque(runtime.as_ptr(), opaque);
            qjs::JS_SetInterruptHandler(runtime.as_ptr(), Some(on_interrupt::<H>), opaque);
            qjs::JS_SetHostPromiseRejectionTracker(runtime.as_ptr(), Some(on_rejection::<H>), opaque);
            let vm = Self { runtime, context, state, host, _heap: heap };
            vm.add_intrinsics();
            value::register_class(runtime);
            record::register_class(runtime);
            module::install_loader::<H>(runtime);
            vm.ctx().declare_lazy_parts().ok()?;
            Some(vm)
        }
    }

    /// What the language has, but what k6 scripts cannot meet and what `lazy` adds later.
    fn add_intrinsics(&self) {
        let context = self.context.as_ptr();
        // SAFETY: the context is fresh, and each intrinsic is added once, base objects (BigInt among them) first.
        unsafe {
            qjs::JS_AddIntrinsicBaseObjects(context);
            qjs::JS_AddIntrinsicEval(context);
            qjs::JS_AddIntrinsicRegExpCompiler(context);
            qjs::JS_AddIntrinsicRegExp(context);
            qjs::JS_AddIntrinsicJSON(context);
            qjs::JS_AddIntrinsicProxy(context);
            qjs::JS_AddIntrinsicPromise(context);
        }
    }

    /// The context, while the VM is borrowed.
    pub(crate) fn ctx(&self) -> Ctx<'_> {
        Ctx { raw: self.context, _life: PhantomData }
    }
}

impl<H: HostHooks> Drop for Vm<H> {
    fn drop(&mut self) {
        // SAFETY: the context and the runtime were made by `new` and are freed once, values of theirs having been freed before.
        unsafe {
            self.host.forget_values(self.ctx());
            self.state.forget_values(self.ctx());
            qjs::JS_FreeContext(self.context.as_ptr());
            qjs::JS_FreeRuntime(self.runtime.as_ptr());
        }
    }
}

impl<'js> Ctx<'js> {
    fn state(self) -> &'js State {
        // SAFETY: the opaque pointer is the `Rc<State>` that the VM holds, and the VM outlives 'js.
        unsafe { &*qjs::JS_GetContextOpaque(self.raw.as_ptr()).cast::<State>() }
    }

    /// The raw context, for this module's files.
    fn as_ptr(self) -> *mut qjs::JSContext {
        self.raw.as_ptr()
    }

    /// The context of a callback.
    ///
    /// # Safety
    /// `raw` must be the live context that the engine handed to the callback, and 'js must not outlast that call.
    unsafe fn from_raw(raw: *mut qjs::JSContext) -> Self {
        // SAFETY: the engine never hands out a null context.
        Self { raw: unsafe { NonNull::new_unchecked(raw) }, _life: PhantomData }
    }

    /// Runs one pending promise job; `None` when there is none.
    pub(crate) fn run_job(self) -> Option<JsResult<()>> {
        let mut context = std::ptr::null_mut();
        // SAFETY: the runtime is alive; the job's context is this one, the runtime's only one.
        let status =
            unsafe { qjs::JS_ExecutePendingJob(qjs::JS_GetRuntime(self.as_ptr()), &raw mut context) };
        match status {
            0 => None,
            1.. => Some(Ok(())),
            _ => Some(Err(Thrown)),
        }
    }

    /// Looks for garbage as often as the engine does by itself, and now if there may be some: what lives in an init mostly stays, so it
    /// is not searched again and again while it grows.
    pub(crate) fn collect_garbage_from_now_on(self) {
        // SAFETY: the runtime is alive, and runs nothing of the script now.
        unsafe { qjs::JS_SetGCThreshold(qjs::JS_GetRuntime(self.as_ptr()), GC_BYTES) }
        // An allocation above the threshold is what starts a search and sets the next threshold.
        drop(self.object());
    }

    /// Takes the pending exception.
    pub(crate) fn take_exception(self) -> Value<'js> {
        // SAFETY: gives an owned value, `null` when nothing is pending.
        unsafe { Value::from_raw(self, qjs::JS_GetException(self.as_ptr())) }
    }

    /// Where the exception that was taken last came from, if it is not an error with its own stack; empty when unknown.
    pub(crate) fn take_trace(self) -> String {
        // SAFETY: command 2 stores an owned value of the context, and leaves `undefined` in its place.
        let trace = unsafe {
            let mut trace = qjs::JS_UNDEFINED;
            qjs::js_std_cmd(ERROR_BACK_TRACE, self.as_ptr(), &raw mut trace);
            Value::from_raw(self, trace)
        };
        trace.as_text().map_or_else(String::new, |text| text.to_owned())
    }

    /// Makes the pending exception one that no `catch` sees.
    pub(crate) fn make_uncatchable(self) {
        let error = self.take_exception();
        // SAFETY: both take the value: the first marks it, the second owns it again as the pending exception.
        unsafe {
            qjs::JS_SetUncatchableError(self.as_ptr(), error.raw());
            qjs::JS_Throw(self.as_ptr(), error.into_raw());
        }
    }
}

/// The engine's own first threshold; each search sets the next one to one and a half times of what is left.
const GC_BYTES: qjs::size_t = 256 << 10;

/// In an init. From 256 KB, a bundle of 3 MB was searched ten times.
const GC_BYTES_IN_INIT: qjs::size_t = 64 << 20;

/// The engine's command that gives the last stack.
const ERROR_BACK_TRACE: c_int = 2;

/// Called by the engine every few thousand operations; non-zero ends the running script.
unsafe extern "C" fn on_interrupt<H: HostHooks>(_runtime: *mut qjs::JSRuntime, opaque: *mut c_void) -> c_int {
    // SAFETY: the opaque pointer is the state that the VM holds.
    let state = unsafe { &*opaque.cast::<State>() };
    c_int::from(state.host::<H>().on_interrupt())
}

/// Keeps the list of promises that were rejected and not handled.
unsafe extern "C" fn on_rejection<H: HostHooks>(
    context: *mut qjs::JSContext,
    promise: qjs::JSValue,
    reason: qjs::JSValue,
    is_handled: bool,
    _opaque: *mut c_void,
) {
    // SAFETY: the engine calls this with a live context and borrowed values, which are duplicated to be kept.
    unsafe {
        let ctx = Ctx::from_raw(context);
        let (promise, reason) = (Value::borrow(ctx, promise), Value::borrow(ctx, reason));
        ctx.host::<H>().on_rejection(&promise, &reason, is_handled);
    }
}

/// What a runtime carries.
///
/// # Safety
/// `runtime` must be that of a live VM, and the result must not outlast it.
unsafe fn state_of<'a>(runtime: *mut qjs::JSRuntime) -> &'a State {
    // SAFETY: the opaque pointer is the `Rc<State>` that the VM holds.
    unsafe { &*qjs::JS_GetRuntimeOpaque(runtime).cast::<State>() }
}

/// A NUL-terminated copy for the engine; what follows a NUL byte is cut off.
fn c_text(text: &str) -> std::ffi::CString {
    let bytes: Vec<u8> = text.bytes().take_while(|byte| *byte != 0).collect();
    std::ffi::CString::new(bytes).unwrap_or_default()
}

/// Text that the engine gave.
///
/// # Safety
/// `text` must be a NUL-terminated string that lives as long as the result.
unsafe fn borrowed_text<'a>(text: *const std::ffi::c_char) -> std::borrow::Cow<'a, str> {
    // SAFETY: the caller's promise.
    unsafe { CStr::from_ptr(text) }.to_string_lossy()
}
