//! Modules: compiled once, loaded from bytecode by each virtual user, native ones made when they are imported.

use std::ffi::{c_char, c_int, c_void};
use std::ptr::{self, NonNull};
use std::sync::Arc;

use rquickjs_sys as qjs;

use super::value::Value;
use super::{Ctx, JsResult, ModuleLoader, Thrown, borrowed_text, c_text};

/// Compiled code, shared by the process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Code(Arc<[u8]>);

/// A module that was compiled in a context, not run yet.
#[derive(Debug)]
pub(crate) struct Module<'js>(Value<'js>);

/// Compiles an ES module and all that it imports.
pub(crate) fn compile_module<'js>(ctx: Ctx<'js>, name: &str, source: &str) -> JsResult<Module<'js>> {
    compile(ctx, name, source, qjs::JS_EVAL_TYPE_MODULE).map(Module)
}

/// Compiles a script whose value is a function.
pub(crate) fn compile_function<'js>(ctx: Ctx<'js>, name: &str, source: &str) -> JsResult<Module<'js>> {
    compile(ctx, name, source, qjs::JS_EVAL_TYPE_GLOBAL).map(Module)
}

fn compile<'js>(ctx: Ctx<'js>, name: &str, source: &str, kind: u32) -> JsResult<Value<'js>> {
    let name = c_text(name);
    // The text may itself have NUL bytes.
    let text: Vec<u8> = source.bytes().chain([0]).collect();
    let flags = (kind | qjs::JS_EVAL_FLAG_COMPILE_ONLY) as c_int;
    // SAFETY: the text ends with NUL, as the parser wants it; the result is owned.
    unsafe {
        let len = source.len() as qjs::size_t;
        Value::checked(ctx, qjs::JS_Eval(ctx.as_ptr(), text.as_ptr().cast(), len, name.as_ptr(), flags))
    }
}

impl Code {
    /// The code in a context, not run yet.
    pub(crate) fn read<'js>(&self, ctx: Ctx<'js>) -> JsResult<Module<'js>> {
        let flags = qjs::JS_READ_OBJ_BYTECODE as c_int;
        // SAFETY: the bytes were written by `Module::code` of this very engine, and never changed.
        unsafe {
            let value = Value::checked(
                ctx,
                qjs::JS_ReadObject(ctx.as_ptr(), self.0.as_ptr(), self.0.len() as qjs::size_t, flags),
            )?;
            if qjs::JS_ResolveModule(ctx.as_ptr(), value.raw()) < 0 { Err(Thrown) } else { Ok(Module(value)) }
        }
    }
}

impl<'js> Module<'js> {
    /// Its code, for other contexts.
    pub(crate) fn code(&self) -> JsResult<Code> {
        let ctx = self.0.ctx();
        let flags = (qjs::JS_WRITE_OBJ_BYTECODE | qjs::JS_WRITE_OBJ_STRIP_SOURCE) as c_int;
        let mut len = 0;
        // SAFETY: gives `len` bytes of the engine's own memory, copied and then freed.
        unsafe {
            let bytes = qjs::JS_WriteObject(ctx.as_ptr(), &raw mut len, self.0.raw(), flags);
            if bytes.is_null() {
                return Err(Thrown);
            }
            let code = Code(std::slice::from_raw_parts(bytes, len as usize).into());
            qjs::js_free(ctx.as_ptr(), bytes.cast());
            Ok(code)
        }
    }

    /// Runs it. Of a module: its promise; of a script: its value.
    pub(crate) fn run(&self) -> JsResult<Value<'js>> {
        let ctx = self.0.ctx();
        // SAFETY: the engine takes over the reference that is made for it.
        unsafe { Value::checked(ctx, qjs::JS_EvalFunction(ctx.as_ptr(), self.0.clone().into_raw())) }
    }

    /// What it exports, once it has been run.
    pub(crate) fn namespace(&self) -> JsResult<Value<'js>> {
        let ctx = self.0.ctx();
        // SAFETY: the value is a module, so its pointer is a module definition; the namespace is owned.
        unsafe {
            let definition = qjs::JS_VALUE_GET_PTR(self.0.raw()).cast::<qjs::JSModuleDef>();
            Value::checked(ctx, qjs::JS_GetModuleNamespace(ctx.as_ptr(), definition))
        }
    }

    /// Its `import.meta`.
    pub(crate) fn meta(&self) -> JsResult<Value<'js>> {
        let ctx = self.0.ctx();
        // SAFETY: the definition is the module's own; the object is owned.
        unsafe { Value::checked(ctx, qjs::JS_GetImportMeta(ctx.as_ptr(), self.definition())) }
    }

    /// The definition, which the context owns as well.
    fn definition(&self) -> *mut qjs::JSModuleDef {
        // SAFETY: the value is a module.
        unsafe { qjs::JS_VALUE_GET_PTR(self.0.raw()).cast() }
    }
}

impl<'js> Ctx<'js> {
    /// Declares a module with these exports, whose values are set when it is run.
    fn declare(self, name: &str, exports: Vec<(String, Value<'js>)>) -> JsResult<*mut qjs::JSModuleDef> {
        let c_name = c_text(name);
        // SAFETY: the definition belongs to the context; export names are copied.
        unsafe {
            let definition = qjs::JS_NewCModule(self.as_ptr(), c_name.as_ptr(), Some(on_run));
            if definition.is_null() {
                return Err(Thrown);
            }
            for (export, _) in &exports {
                qjs::JS_AddModuleExport(self.as_ptr(), definition, c_text(export).as_ptr());
            }
            self.hold_exports(name, exports);
            Ok(definition)
        }
    }

    /// The value of a piece of our own JavaScript.
    pub(crate) fn evaluate(self, source: &str) -> JsResult<Value<'js>> {
        compile_function(self, "squall", source)?.run()
    }

    /// File of the function that called the running native one, `level` frames up.
    pub(crate) fn caller_file(self, level: i32) -> Option<String> {
        // SAFETY: gives an owned atom, or 0.
        unsafe {
            let atom = qjs::JS_GetScriptOrModuleName(self.as_ptr(), level);
            if atom == 0 {
                return None;
            }
            let name = qjs::JS_AtomToValue(self.as_ptr(), atom);
            qjs::JS_FreeAtom(self.as_ptr(), atom);
            Value::from_raw(self, name).to_string().ok()
        }
    }
}

/// Lets imports come to the host.
pub(super) fn install_loader<H: ModuleLoader>(runtime: NonNull<qjs::JSRuntime>) {
    // SAFETY: both callbacks find the host through the context.
    unsafe {
        qjs::JS_SetModuleLoaderFunc(
            runtime.as_ptr(),
            Some(on_normalise::<H>),
            Some(on_load::<H>),
            ptr::null_mut(),
        );
    }
}

unsafe extern "C" fn on_normalise<H: ModuleLoader>(
    context: *mut qjs::JSContext,
    base: *const c_char,
    name: *const c_char,
    _opaque: *mut c_void,
) -> *mut c_char {
    // SAFETY: the engine gives a live context and two NUL-terminated names; the result is freed by the engine.
    unsafe {
        let ctx = Ctx::from_raw(context);
        match ctx.host::<H>().resolve_import(ctx, &borrowed_text(base), &borrowed_text(name)) {
            Ok(resolved) => qjs::js_strdup(context, c_text(&resolved).as_ptr()),
            Err(Thrown) => ptr::null_mut(),
        }
    }
}

unsafe extern "C" fn on_load<H: ModuleLoader>(
    context: *mut qjs::JSContext,
    name: *const c_char,
    _opaque: *mut c_void,
) -> *mut qjs::JSModuleDef {
    // SAFETY: the engine gives a live context and a NUL-terminated name.
    let (ctx, name) = unsafe { (Ctx::from_raw(context), borrowed_text(name)) };
    match ctx.host::<H>().import(ctx, &name) {
        Ok(Imported::Module(module)) => module.definition(),
        Ok(Imported::Exports(exports)) => ctx.declare(&name, exports).unwrap_or(ptr::null_mut()),
        Err(Thrown) => ptr::null_mut(),
    }
}

/// What the host gives for an import.
#[derive(Debug)]
pub(crate) enum Imported<'js> {
    /// A module of the script.
    Module(Module<'js>),
    /// Names and values.
    Exports(Vec<(String, Value<'js>)>),
}

unsafe extern "C" fn on_run(context: *mut qjs::JSContext, definition: *mut qjs::JSModuleDef) -> c_int {
    // SAFETY: the engine gives a live context and the definition made by `declare`; values are handed over.
    unsafe {
        let ctx = Ctx::from_raw(context);
        let atom = qjs::JS_GetModuleName(context, definition);
        let name = Value::from_raw(ctx, qjs::JS_AtomToValue(context, atom)).to_string().unwrap_or_default();
        qjs::JS_FreeAtom(context, atom);
        for (export, value) in ctx.take_exports(&name) {
            qjs::JS_SetModuleExport(context, definition, c_text(&export).as_ptr(), value.into_raw());
        }
        0
    }
}
