//! Parts of the language that most scripts never name: a world gets each of them when one of its names is first read or set.
//!
//! Until then the global object has accessors under these names; adding a part puts plain values in their place. A world without
//! them is 20 KB smaller.

use std::ffi::{CStr, c_int};

use rquickjs_sys as qjs;

use super::{Ctx, JsResult, Thrown};

struct Part {
    add: unsafe extern "C" fn(*mut qjs::JSContext) -> c_int,
    /// What is run once it is there.
    then: Option<&'static str>,
    names: &'static [&'static CStr],
}

const PARTS: [Part; 3] = [
    Part { add: qjs::JS_AddIntrinsicDate, then: Some(DATES), names: &[c"Date"] },
    Part { add: qjs::JS_AddIntrinsicMapSet, then: None, names: &[c"Map", c"Set", c"WeakMap", c"WeakSet"] },
    Part {
        add: qjs::JS_AddIntrinsicTypedArrays,
        then: None,
        names: &[
            c"ArrayBuffer",
            c"SharedArrayBuffer",
            c"Uint8ClampedArray",
            c"Int8Array",
            c"Uint8Array",
            c"Int16Array",
            c"Uint16Array",
            c"Int32Array",
            c"Uint32Array",
            c"BigInt64Array",
            c"BigUint64Array",
            c"Float16Array",
            c"Float32Array",
            c"Float64Array",
            c"DataView",
        ],
    },
];

/// Dates as k6 writes them: UTC by its name, and hours from 0 to 23.
const DATES: &str = "(function() {
    const proto = Date.prototype, define = (name, value) =>
        Object.defineProperty(proto, name, { value, writable: true, configurable: true });
    for (const name of ['toString', 'toTimeString']) {
        const plain = proto[name];
        define(name, { [name]() {
            const text = plain.call(this);
            return text.endsWith(' GMT+0000') ? text + ' (UTC)' : text;
        } }[name]);
    }
    const time = proto.toTimeString, day = proto.toLocaleDateString;
    define('toLocaleTimeString', { toLocaleTimeString() {
        return isNaN(this) ? 'Invalid Date' : time.call(this).slice(0, 8);
    } }.toLocaleTimeString);
    define('toLocaleString', { toLocaleString() {
        return isNaN(this) ? 'Invalid Date' : day.call(this) + ', ' + time.call(this).slice(0, 8);
    } }.toLocaleString);
})()";

/// The part of the table above with typed arrays.
const BUFFERS: usize = 2;

impl Ctx<'_> {
    /// Declares the names. Once, in a fresh context.
    pub(super) fn declare_lazy_parts(self) -> JsResult<()> {
        let accessors = PARTS.iter().enumerate().flat_map(|(part_idx, part)| {
            part.names.iter().enumerate().map(move |(name_idx, name)| (part_idx << 8 | name_idx, *name))
        });
        for (magic, name) in accessors {
            self.declare_lazy_name(name, magic as c_int)?;
        }
        Ok(())
    }

    fn declare_lazy_name(self, name: &CStr, magic: c_int) -> JsResult<()> {
        let ctx = self.as_ptr();
        let flags = qjs::JS_PROP_CONFIGURABLE as c_int;
        // SAFETY: the functions have the signatures of their kinds, which the engine keeps in one pointer type; both are taken over.
        unsafe {
            let getter: unsafe extern "C" fn(_, _, _) -> _ = on_get;
            let setter: unsafe extern "C" fn(_, _, _, _) -> _ = on_set;
            let getter = std::mem::transmute::<Getter, qjs::JSCFunction>(getter);
            let setter = std::mem::transmute::<Setter, qjs::JSCFunction>(setter);
            let kinds =
                (qjs::JSCFunctionEnum_JS_CFUNC_getter_magic, qjs::JSCFunctionEnum_JS_CFUNC_setter_magic);
            let getter = qjs::JS_NewCFunction2(ctx, getter, name.as_ptr(), 0, kinds.0, magic);
            let setter = qjs::JS_NewCFunction2(ctx, setter, name.as_ptr(), 1, kinds.1, magic);
            let key = self.key(name.to_str().unwrap_or_default());
            let status =
                qjs::JS_DefinePropertyGetSet(ctx, self.global().raw(), key.atom, getter, setter, flags);
            if status < 0 { Err(Thrown) } else { Ok(()) }
        }
    }

    /// Makes sure that buffers can be made.
    pub(super) fn need_buffers(self) -> JsResult<()> {
        self.add_lazy_part(BUFFERS)
    }

    fn add_lazy_part(self, part_idx: usize) -> JsResult<()> {
        if !self.begin_lazy_part(part_idx) {
            return Ok(());
        }
        // SAFETY: the context is alive, and a part is added once.
        let status = unsafe { (PARTS[part_idx].add)(self.as_ptr()) };
        match PARTS[part_idx].then {
            _ if status < 0 => Err(Thrown),
            Some(code) => self.evaluate(code).map(drop),
            None => Ok(()),
        }
    }
}

type Getter = unsafe extern "C" fn(*mut qjs::JSContext, qjs::JSValue, c_int) -> qjs::JSValue;
type Setter = unsafe extern "C" fn(*mut qjs::JSContext, qjs::JSValue, qjs::JSValue, c_int) -> qjs::JSValue;

fn place(magic: c_int) -> (usize, &'static CStr) {
    let (part_idx, name_idx) = (magic as usize >> 8, magic as usize & 0xff);
    (part_idx, PARTS[part_idx].names[name_idx])
}

unsafe extern "C" fn on_get(context: *mut qjs::JSContext, _this: qjs::JSValue, magic: c_int) -> qjs::JSValue {
    let (part_idx, name) = place(magic);
    // SAFETY: the engine calls this with a live context; the property is an owned value.
    unsafe {
        let ctx = Ctx::from_raw(context);
        match ctx.add_lazy_part(part_idx) {
            Ok(()) => qjs::JS_GetPropertyStr(context, ctx.global().raw(), name.as_ptr()),
            Err(Thrown) => qjs::JS_EXCEPTION,
        }
    }
}

unsafe extern "C" fn on_set(
    context: *mut qjs::JSContext,
    _this: qjs::JSValue,
    value: qjs::JSValue,
    magic: c_int,
) -> qjs::JSValue {
    let (part_idx, name) = place(magic);
    // SAFETY: as for `on_get`; the value is borrowed, and the property takes its own reference.
    unsafe {
        let ctx = Ctx::from_raw(context);
        let value = qjs::JS_DupValue(context, value);
        let is_set = ctx.add_lazy_part(part_idx).is_ok()
            && qjs::JS_SetPropertyStr(context, ctx.global().raw(), name.as_ptr(), value) >= 0;
        if is_set { qjs::JS_UNDEFINED } else { qjs::JS_EXCEPTION }
    }
}
