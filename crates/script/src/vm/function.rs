//! Native functions: plain Rust functions that a script can call.

use std::ffi::{CStr, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};

use rquickjs_sys as qjs;

use super::value::Value;
use super::{Ctx, JsResult, Thrown};

/// A native function's name, arity and code.
#[derive(Clone, Copy)]
pub(crate) struct Fun {
    pub(crate) name: &'static CStr,
    length: u8,
    shim: Shim,
}

type Shim = unsafe extern "C" fn(*mut qjs::JSContext, qjs::JSValue, c_int, *mut qjs::JSValue) -> qjs::JSValue;

/// One call of a native function.
pub(crate) struct Call<'js> {
    ctx: Ctx<'js>,
    this: qjs::JSValue,
    count: usize,
    args: *const qjs::JSValue,
}

impl Fun {
    /// A function; `code` must be a plain `fn` item, which takes no space, so that the engine needs no closure.
    pub(crate) const fn new<F>(name: &'static CStr, length: u8, code: F) -> Self
    where
        F: for<'js> Fn(&Call<'js>) -> JsResult<Value<'js>> + Copy + 'static,
    {
        const { assert!(size_of::<F>() == 0, "only `fn` items and closures without captures can be called") };
        let _ = code;
        Self { name, length, shim: shim::<F> }
    }

    /// The name as text.
    pub(crate) fn text(&self) -> &'static str {
        self.name.to_str().unwrap_or_default()
    }
}

impl<'js> Ctx<'js> {
    /// A function object.
    pub(crate) fn function(self, fun: &Fun) -> JsResult<Value<'js>> {
        self.c_function(fun, qjs::JSCFunctionEnum_JS_CFUNC_generic)
    }

    /// A function that can also be called with `new`, whose objects get `proto`.
    pub(crate) fn constructor(self, fun: &Fun, proto: &Value<'js>) -> JsResult<Value<'js>> {
        let class = self.c_function(fun, qjs::JSCFunctionEnum_JS_CFUNC_constructor_or_func)?;
        // SAFETY: both are live objects; the prototype keeps its own reference.
        unsafe { qjs::JS_SetConstructor(self.as_ptr(), class.raw(), proto.raw()) };
        Ok(class)
    }

    fn c_function(self, fun: &Fun, kind: qjs::JSCFunctionEnum) -> JsResult<Value<'js>> {
        // SAFETY: the shim has the signature of these kinds; the name is static.
        unsafe {
            let raw = qjs::JS_NewCFunction2(
                self.as_ptr(),
                Some(fun.shim),
                fun.name.as_ptr(),
                c_int::from(fun.length),
                kind,
                0,
            );
            Value::checked(self, raw)
        }
    }

    /// Sets functions as properties of an object.
    pub(crate) fn set_functions(self, object: &Value<'js>, functions: &[Fun]) -> JsResult<()> {
        functions.iter().try_for_each(|fun| object.set(fun.text(), self.function(fun)?))
    }

    /// Sets functions as getters of an object.
    pub(crate) fn set_getters(self, object: &Value<'js>, getters: &[Fun]) -> JsResult<()> {
        getters.iter().try_for_each(|fun| object.define_getter(fun.text(), self.function(fun)?))
    }
}

impl<'js> Call<'js> {
    /// The context.
    pub(crate) fn ctx(&self) -> Ctx<'js> {
        self.ctx
    }

    /// `this`.
    pub(crate) fn this(&self) -> Value<'js> {
        // SAFETY: `this` is alive during the call.
        unsafe { Value::borrow(self.ctx, self.this) }
    }

    /// How many arguments were given.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// An argument; `undefined` when it was not given.
    pub(crate) fn arg(&self, idx: usize) -> Value<'js> {
        if idx >= self.count {
            return self.ctx.undefined();
        }
        // SAFETY: the engine gave `count` arguments, alive during the call.
        unsafe { Value::borrow(self.ctx, *self.args.add(idx)) }
    }

    /// All arguments from `begin` on.
    pub(crate) fn rest(&self, begin: usize) -> Vec<Value<'js>> {
        (begin..self.count).map(|idx| self.arg(idx)).collect()
    }
}

unsafe extern "C" fn shim<F>(
    context: *mut qjs::JSContext,
    this: qjs::JSValue,
    count: c_int,
    args: *mut qjs::JSValue,
) -> qjs::JSValue
where
    F: for<'js> Fn(&Call<'js>) -> JsResult<Value<'js>> + Copy + 'static,
{
    // SAFETY: `Fun::new` has checked that F takes no space, so that it has one value, which needs no bytes; the context is the
    // caller's; arguments live during the call.
    unsafe {
        let code: F = std::mem::zeroed();
        let ctx = Ctx::from_raw(context);
        let call = Call { ctx, this, count: usize::try_from(count).unwrap_or(0), args };
        // A panic must not unwind through the engine's frames.
        match catch_unwind(AssertUnwindSafe(|| code(&call))) {
            Ok(Ok(value)) => value.into_raw(),
            Ok(Err(Thrown)) => qjs::JS_EXCEPTION,
            Err(_panic) => std::process::abort(),
        }
    }
}
