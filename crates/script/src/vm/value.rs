//! JavaScript values as owned Rust values: counted references that free themselves.

use std::any::Any;
use std::ffi::{c_char, c_int};
use std::mem::ManuallyDrop;
use std::ptr::{self, NonNull};

use rquickjs_sys as qjs;

use super::{Ctx, JsResult, Thrown, c_text, state_of};

/// A value of a context.
pub(crate) struct Value<'js> {
    ctx: Ctx<'js>,
    raw: qjs::JSValue,
}

/// A value kept beyond the borrow of its context, by the host, which hands it back before the context ends.
pub(crate) struct Kept(qjs::JSValue);

/// A property name.
pub(crate) struct Key<'js> {
    ctx: Ctx<'js>,
    pub(super) atom: qjs::JSAtom,
}

/// The UTF-8 text of a string value. Halves of characters, which JavaScript's strings may hold, are U+FFFD in it, as in k6.
pub(crate) struct Text<'js> {
    ctx: Ctx<'js>,
    bytes: *const c_char,
    len: usize,
    /// The text, where that of the engine is no UTF-8.
    repaired: Option<Box<str>>,
}

impl std::fmt::Debug for Kept {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Kept")
    }
}

impl std::fmt::Debug for Value<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Value")
    }
}

impl Clone for Value<'_> {
    fn clone(&self) -> Self {
        // SAFETY: the value is alive, so one more reference may be taken.
        unsafe { Self { ctx: self.ctx, raw: qjs::JS_DupValue(self.ctx.as_ptr(), self.raw) } }
    }
}

impl Drop for Value<'_> {
    fn drop(&mut self) {
        // SAFETY: this value holds one reference, given up once.
        unsafe { qjs::JS_FreeValue(self.ctx.as_ptr(), self.raw) }
    }
}

impl<'js> Value<'js> {
    /// Takes a reference over.
    ///
    /// # Safety
    /// `raw` must be an owned value of `ctx`.
    pub(super) unsafe fn from_raw(ctx: Ctx<'js>, raw: qjs::JSValue) -> Self {
        Self { ctx, raw }
    }

    /// Takes a reference over, or learns of an exception.
    ///
    /// # Safety
    /// `raw` must be an owned value of `ctx`.
    pub(super) unsafe fn checked(ctx: Ctx<'js>, raw: qjs::JSValue) -> JsResult<Self> {
        // SAFETY: the caller's promise.
        if unsafe { qjs::JS_IsException(raw) } { Err(Thrown) } else { Ok(Self { ctx, raw }) }
    }

    /// A new reference to a value that someone else owns.
    ///
    /// # Safety
    /// `raw` must be a live value of `ctx`.
    pub(super) unsafe fn borrow(ctx: Ctx<'js>, raw: qjs::JSValue) -> Self {
        // SAFETY: the caller's promise.
        unsafe { Self { ctx, raw: qjs::JS_DupValue(ctx.as_ptr(), raw) } }
    }

    pub(super) fn raw(&self) -> qjs::JSValue {
        self.raw
    }

    /// Gives the reference away.
    pub(super) fn into_raw(self) -> qjs::JSValue {
        ManuallyDrop::new(self).raw
    }

    /// Keeps the value beyond the borrow.
    pub(crate) fn keep(self) -> Kept {
        Kept(self.into_raw())
    }

    /// The context.
    pub(crate) fn ctx(&self) -> Ctx<'js> {
        self.ctx
    }

    /// The same object.
    pub(crate) fn is_same(&self, other: &Value<'_>) -> bool {
        self.is_same_object(other.raw)
    }

    /// The same object as one that is kept.
    pub(crate) fn is_kept(&self, other: &Kept) -> bool {
        self.is_same_object(other.0)
    }

    fn is_same_object(&self, other: qjs::JSValue) -> bool {
        // SAFETY: both are live; pointers are only compared, and only between objects.
        unsafe {
            qjs::JS_IsObject(self.raw)
                && qjs::JS_IsObject(other)
                && qjs::JS_VALUE_GET_PTR(self.raw) == qjs::JS_VALUE_GET_PTR(other)
        }
    }

    fn tag(&self) -> i32 {
        // SAFETY: reads the tag of a live value.
        unsafe { qjs::JS_VALUE_GET_NORM_TAG(self.raw) }
    }

    /// `undefined`.
    pub(crate) fn is_undefined(&self) -> bool {
        self.tag() == qjs::JS_TAG_UNDEFINED
    }

    /// `undefined` or `null`.
    pub(crate) fn is_nullish(&self) -> bool {
        matches!(self.tag(), qjs::JS_TAG_UNDEFINED | qjs::JS_TAG_NULL)
    }

    /// A string.
    pub(crate) fn is_string(&self) -> bool {
        // SAFETY: reads the tag.
        unsafe { qjs::JS_IsString(self.raw) }
    }

    /// A symbol.
    pub(crate) fn is_symbol(&self) -> bool {
        // SAFETY: reads the tag.
        unsafe { qjs::JS_IsSymbol(self.raw) }
    }

    /// `true` or `false`.
    pub(crate) fn as_bool(&self) -> Option<bool> {
        // SAFETY: the tag says that the union holds a boolean.
        (self.tag() == qjs::JS_TAG_BOOL).then(|| unsafe { qjs::JS_VALUE_GET_BOOL(self.raw) })
    }

    /// A number, without any conversion.
    pub(crate) fn as_number(&self) -> Option<f64> {
        // SAFETY: the tag says what the union holds.
        unsafe {
            match self.tag() {
                qjs::JS_TAG_INT => Some(f64::from(qjs::JS_VALUE_GET_INT(self.raw))),
                qjs::JS_TAG_FLOAT64 => Some(qjs::JS_VALUE_GET_FLOAT64(self.raw)),
                _ => None,
            }
        }
    }

    /// An object of any kind.
    pub(crate) fn is_object(&self) -> bool {
        self.tag() == qjs::JS_TAG_OBJECT
    }

    /// An object as literals make it: no array, function, or object of a class.
    pub(crate) fn is_plain_object(&self) -> bool {
        // SAFETY: reads a live value.
        unsafe { qjs::JS_GetClassID(self.raw) == PLAIN_OBJECT_CLASS }
    }

    /// A callable object.
    pub(crate) fn is_function(&self) -> bool {
        // SAFETY: reads a live value.
        unsafe { qjs::JS_IsFunction(self.ctx.as_ptr(), self.raw) }
    }

    /// An `async` function.
    pub(crate) fn is_async_function(&self) -> bool {
        // SAFETY: reads a live value.
        unsafe { qjs::JS_IsAsyncFunction(self.raw) }
    }

    /// An array.
    pub(crate) fn is_array(&self) -> bool {
        // SAFETY: reads a live value.
        unsafe { qjs::JS_IsArray(self.raw) }
    }

    /// An `Error`.
    pub(crate) fn is_error(&self) -> bool {
        // SAFETY: reads a live value.
        unsafe { qjs::JS_IsError(self.raw) }
    }

    /// A `Date`.
    pub(crate) fn is_date(&self) -> bool {
        // SAFETY: reads a live value.
        unsafe { qjs::JS_IsDate(self.raw) }
    }

    /// A promise.
    pub(crate) fn is_promise(&self) -> bool {
        // SAFETY: reads a live value.
        unsafe { qjs::JS_IsPromise(self.raw) }
    }

    /// Whether a promise is settled: its value, or the reason it was rejected for.
    pub(crate) fn settled(&self) -> Option<Result<Self, Self>> {
        // SAFETY: the state is only asked of a promise, and the result is an owned value.
        unsafe {
            let state = qjs::JS_PromiseState(self.ctx.as_ptr(), self.raw);
            let result = || Self::from_raw(self.ctx, qjs::JS_PromiseResult(self.ctx.as_ptr(), self.raw));
            match state {
                qjs::JSPromiseStateEnum_JS_PROMISE_FULFILLED => Some(Ok(result())),
                qjs::JSPromiseStateEnum_JS_PROMISE_REJECTED => Some(Err(result())),
                _ => None,
            }
        }
    }

    /// JavaScript's truth of it.
    pub(crate) fn is_truthy(&self) -> bool {
        // SAFETY: converting to a boolean runs no script.
        unsafe { qjs::JS_ToBool(self.ctx.as_ptr(), self.raw) > 0 }
    }

    /// Converted to a number, as JavaScript does.
    pub(crate) fn to_number(&self) -> JsResult<f64> {
        self.check_convertible()?;
        let mut number = 0.0;
        // SAFETY: writes the number to the given address.
        let status = unsafe { qjs::JS_ToFloat64(self.ctx.as_ptr(), &raw mut number, self.raw) };
        if status < 0 { Err(Thrown) } else { Ok(number) }
    }

    /// Converted to a string, as JavaScript does.
    pub(crate) fn to_text(&self) -> JsResult<Text<'js>> {
        self.check_convertible()?;
        let mut len = 0;
        // SAFETY: gives text of `len` bytes that is freed by `Text`, or null with an exception pending.
        let bytes = unsafe { qjs::JS_ToCStringLen(self.ctx.as_ptr(), &raw mut len, self.raw) };
        // SAFETY: the engine has just given `len` bytes.
        if bytes.is_null() { Err(Thrown) } else { Ok(unsafe { Text::new(self.ctx, bytes, len) }) }
    }

    /// Converted to an owned string, as JavaScript does.
    pub(crate) fn to_string(&self) -> JsResult<String> {
        Ok(self.to_text()?.to_owned())
    }

    /// The text of a string; `None` for what is no string.
    pub(crate) fn as_text(&self) -> Option<Text<'js>> {
        self.is_string().then(|| self.to_text().ok()).flatten()
    }

    /// A property.
    pub(crate) fn get(&self, name: &str) -> JsResult<Self> {
        let name = c_text(name);
        // SAFETY: gives an owned value.
        unsafe { Self::checked(self.ctx, qjs::JS_GetPropertyStr(self.ctx.as_ptr(), self.raw, name.as_ptr())) }
    }

    /// A property by its key.
    pub(crate) fn get_key(&self, key: &Key<'js>) -> JsResult<Self> {
        // SAFETY: gives an owned value.
        unsafe { Self::checked(self.ctx, qjs::JS_GetProperty(self.ctx.as_ptr(), self.raw, key.atom)) }
    }

    /// An element.
    pub(crate) fn get_idx(&self, idx: u32) -> JsResult<Self> {
        // SAFETY: gives an owned value.
        unsafe { Self::checked(self.ctx, qjs::JS_GetPropertyUint32(self.ctx.as_ptr(), self.raw, idx)) }
    }

    /// `length`, as a count.
    pub(crate) fn length(&self) -> JsResult<u32> {
        Ok(self.get("length")?.to_number()? as u32)
    }

    /// Sets a property.
    pub(crate) fn set(&self, name: &str, value: Self) -> JsResult<()> {
        let name = c_text(name);
        // SAFETY: takes the value over.
        let status =
            unsafe { qjs::JS_SetPropertyStr(self.ctx.as_ptr(), self.raw, name.as_ptr(), value.into_raw()) };
        if status < 0 { Err(Thrown) } else { Ok(()) }
    }

    /// Sets an element.
    pub(crate) fn set_idx(&self, idx: u32, value: Self) -> JsResult<()> {
        // SAFETY: takes the value over.
        let status = unsafe { qjs::JS_SetPropertyUint32(self.ctx.as_ptr(), self.raw, idx, value.into_raw()) };
        if status < 0 { Err(Thrown) } else { Ok(()) }
    }

    /// Makes an own property, whatever the prototype has under that name.
    pub(crate) fn define(&self, name: &str, value: Self) -> JsResult<()> {
        self.define_with(name, value, qjs::JS_PROP_C_W_E as c_int)
    }

    /// Makes an own property that is not enumerated.
    pub(crate) fn define_hidden(&self, name: &str, value: Self) -> JsResult<()> {
        self.define_with(name, value, (qjs::JS_PROP_CONFIGURABLE | qjs::JS_PROP_WRITABLE) as c_int)
    }

    fn define_with(&self, name: &str, value: Self, flags: c_int) -> JsResult<()> {
        let name = c_text(name);
        let ctx = self.ctx.as_ptr();
        // SAFETY: takes the value over.
        let status =
            unsafe { qjs::JS_DefinePropertyValueStr(ctx, self.raw, name.as_ptr(), value.into_raw(), flags) };
        if status < 0 { Err(Thrown) } else { Ok(()) }
    }

    /// Makes an accessor.
    pub(crate) fn define_getter(&self, name: &str, getter: Self) -> JsResult<()> {
        let key = self.ctx.key(name);
        let flags = (qjs::JS_PROP_CONFIGURABLE | qjs::JS_PROP_ENUMERABLE) as c_int;
        let ctx = self.ctx.as_ptr();
        // SAFETY: takes the getter over; there is no setter.
        let status = unsafe {
            qjs::JS_DefinePropertyGetSet(ctx, self.raw, key.atom, getter.into_raw(), qjs::JS_UNDEFINED, flags)
        };
        if status < 0 { Err(Thrown) } else { Ok(()) }
    }

    /// Own enumerable string keys, in order.
    pub(crate) fn keys(&self) -> JsResult<Vec<Key<'js>>> {
        let (mut table, mut count) = (ptr::null_mut(), 0);
        let flags = (qjs::JS_GPN_STRING_MASK | qjs::JS_GPN_ENUM_ONLY) as c_int;
        let ctx = self.ctx.as_ptr();
        // SAFETY: fills a table of `count` entries; each atom is duplicated before the table is freed.
        unsafe {
            let status = qjs::JS_GetOwnPropertyNames(ctx, &raw mut table, &raw mut count, self.raw, flags);
            if status < 0 {
                return Err(Thrown);
            }
            let entries = std::slice::from_raw_parts(
                table.cast_const(),
                if table.is_null() { 0 } else { count as usize },
            );
            let keys =
                entries.iter().map(|entry| Key { ctx: self.ctx, atom: qjs::JS_DupAtom(ctx, entry.atom) });
            let keys = keys.collect();
            qjs::JS_FreePropertyEnum(ctx, table, count);
            Ok(keys)
        }
    }

    /// Calls it.
    pub(crate) fn call(&self, this: &Self, args: &[&Self]) -> JsResult<Self> {
        let mut raw: [qjs::JSValue; ARG_COUNT_MAX] = [qjs::JS_UNDEFINED; ARG_COUNT_MAX];
        let count = args.len().min(ARG_COUNT_MAX);
        for (slot, arg) in raw.iter_mut().zip(args) {
            *slot = arg.raw;
        }
        let ctx = self.ctx.as_ptr();
        // SAFETY: the arguments are borrowed for the call; the result is owned.
        unsafe {
            Self::checked(self.ctx, qjs::JS_Call(ctx, self.raw, this.raw, count as c_int, raw.as_mut_ptr()))
        }
    }

    /// `new` of it.
    pub(crate) fn construct(&self, args: &[&Self]) -> JsResult<Self> {
        let mut raw: Vec<qjs::JSValue> = args.iter().map(|arg| arg.raw).collect();
        let ctx = self.ctx.as_ptr();
        // SAFETY: the arguments are borrowed for the call; the result is owned.
        unsafe {
            Self::checked(
                self.ctx,
                qjs::JS_CallConstructor(ctx, self.raw, raw.len() as c_int, raw.as_mut_ptr()),
            )
        }
    }

    /// `JSON.stringify` with a replacer; `None` where it gives `undefined`.
    pub(super) fn to_json_with(&self, replacer: &Self) -> JsResult<Option<String>> {
        // SAFETY: gives an owned value; the replacer is borrowed.
        let text = unsafe {
            let raw = qjs::JS_JSONStringify(self.ctx.as_ptr(), self.raw, replacer.raw, qjs::JS_UNDEFINED);
            Self::checked(self.ctx, raw)?
        };
        if text.is_undefined() { Ok(None) } else { text.to_string().map(Some) }
    }

    /// Freezes this one object.
    pub(crate) fn freeze(&self) -> JsResult<()> {
        // SAFETY: changes a live object.
        let status = unsafe { qjs::JS_FreezeObject(self.ctx.as_ptr(), self.raw) };
        if status < 0 { Err(Thrown) } else { Ok(()) }
    }

    /// A copy of the bytes of an `ArrayBuffer`, a typed array or a `DataView`; `None` for anything else.
    pub(crate) fn bytes(&self) -> Option<Vec<u8>> {
        if !self.is_object() {
            return None;
        }
        let ctx = self.ctx.as_ptr();
        let mut len = 0;
        // SAFETY: the buffer's bytes are copied before anything else can run.
        unsafe {
            if qjs::JS_IsArrayBuffer(self.raw) {
                let start = qjs::JS_GetArrayBuffer(ctx, &raw mut len, self.raw);
                return Some(copy_bytes(start, len as usize));
            }
        }
        self.view_bytes()
    }

    fn view_bytes(&self) -> Option<Vec<u8>> {
        // SAFETY: reads the type of a live object.
        let is_view = unsafe { qjs::JS_GetTypedArrayType(self.raw) >= 0 || qjs::JS_IsDataView(self.raw) };
        if !is_view {
            return None;
        }
        let buffer = self.get("buffer").ok()?;
        let offset = self.get("byteOffset").ok()?.as_number()? as usize;
        let length = self.get("byteLength").ok()?.as_number()? as usize;
        buffer.bytes()?.get(offset..offset + length).map(<[u8]>::to_vec)
    }

    /// Writes into the bytes of a typed array, as many as fit; how many did.
    pub(crate) fn write_bytes(&self, bytes: &[u8]) -> Option<usize> {
        let (mut len, ctx) = (0, self.ctx.as_ptr());
        // SAFETY: `start` is valid for `len` bytes until script runs again, which it does not in between.
        unsafe {
            let start = qjs::JS_GetUint8Array(ctx, &raw mut len, self.raw);
            if start.is_null() {
                drop(self.ctx.take_exception());
                return None;
            }
            let count = bytes.len().min(len as usize);
            ptr::copy_nonoverlapping(bytes.as_ptr(), start, count);
            Some(count)
        }
    }

    /// The Rust value that a native object or a record carries.
    pub(crate) fn opaque<T: 'static>(&self) -> Option<&T> {
        let class_id = self.ctx.state().class_id.get();
        // SAFETY: an object of our class carries a `Box<dyn Any>`, freed by the finalizer alone; the object lives while borrowed.
        unsafe {
            let boxed = qjs::JS_GetOpaque(self.raw, class_id).cast::<Box<dyn Any>>();
            match boxed.as_ref() {
                Some(boxed) => boxed.downcast_ref::<T>(),
                None => self.lazy::<T>(),
            }
        }
    }
}

unsafe fn copy_bytes(start: *const u8, len: usize) -> Vec<u8> {
    if start.is_null() {
        return Vec::new();
    }
    // SAFETY: the engine says that `len` bytes follow `start`.
    unsafe { std::slice::from_raw_parts(start, len) }.to_vec()
}

impl<'js> Ctx<'js> {
    /// `undefined`.
    pub(crate) fn undefined(self) -> Value<'js> {
        Value { ctx: self, raw: qjs::JS_UNDEFINED }
    }

    /// `null`.
    pub(crate) fn null(self) -> Value<'js> {
        Value { ctx: self, raw: qjs::JS_NULL }
    }

    /// A boolean.
    pub(crate) fn bool(self, value: bool) -> Value<'js> {
        Value { ctx: self, raw: if value { qjs::JS_TRUE } else { qjs::JS_FALSE } }
    }

    /// A number.
    pub(crate) fn number(self, value: f64) -> Value<'js> {
        Value { ctx: self, raw: qjs::JS_NewFloat64(value) }
    }

    /// A string.
    pub(crate) fn string(self, text: &str) -> Value<'js> {
        // SAFETY: the engine copies the text.
        unsafe {
            let raw = qjs::JS_NewStringLen(self.as_ptr(), text.as_ptr().cast(), text.len() as qjs::size_t);
            Value::checked(self, raw).unwrap_or_else(|Thrown| self.undefined())
        }
    }

    /// An empty object.
    pub(crate) fn object(self) -> Value<'js> {
        // SAFETY: gives an owned object, or an exception when memory is out, which the next operation on it reports.
        unsafe { Value { ctx: self, raw: qjs::JS_NewObject(self.as_ptr()) } }
    }

    /// An empty array.
    pub(crate) fn array(self) -> Value<'js> {
        // SAFETY: as for `object`.
        unsafe { Value { ctx: self, raw: qjs::JS_NewArray(self.as_ptr()) } }
    }

    /// An array of values.
    pub(crate) fn array_of(self, values: impl IntoIterator<Item = Value<'js>>) -> JsResult<Value<'js>> {
        let array = self.array();
        for (idx, value) in (0..).zip(values) {
            array.set_idx(idx, value)?;
        }
        Ok(array)
    }

    /// An `ArrayBuffer` with a copy of the bytes.
    pub(crate) fn array_buffer(self, bytes: &[u8]) -> JsResult<Value<'js>> {
        self.need_buffers()?;
        // SAFETY: the engine copies the bytes.
        unsafe {
            Value::checked(
                self,
                qjs::JS_NewArrayBufferCopy(self.as_ptr(), bytes.as_ptr(), bytes.len() as qjs::size_t),
            )
        }
    }

    /// The global object.
    pub(crate) fn global(self) -> Value<'js> {
        // SAFETY: gives an owned object.
        unsafe { Value { ctx: self, raw: qjs::JS_GetGlobalObject(self.as_ptr()) } }
    }

    /// What JSON text says.
    pub(crate) fn parse_json(self, text: &str) -> JsResult<Value<'js>> {
        let text = c_text(text);
        // SAFETY: the text ends with NUL, as the parser wants it.
        unsafe {
            let raw = qjs::JS_ParseJSON(
                self.as_ptr(),
                text.as_ptr(),
                text.as_bytes().len() as qjs::size_t,
                c"<json>".as_ptr(),
            );
            Value::checked(self, raw)
        }
    }

    /// A property name.
    pub(crate) fn key(self, name: &str) -> Key<'js> {
        // SAFETY: the engine copies the name.
        let atom =
            unsafe { qjs::JS_NewAtomLen(self.as_ptr(), name.as_ptr().cast(), name.len() as qjs::size_t) };
        Key { ctx: self, atom }
    }

    /// A promise with its functions: (promise, resolve, reject).
    pub(crate) fn promise(self) -> JsResult<(Value<'js>, Value<'js>, Value<'js>)> {
        let mut functions = [qjs::JS_UNDEFINED; 2];
        // SAFETY: on success both functions are owned values.
        unsafe {
            let raw = qjs::JS_NewPromiseCapability(self.as_ptr(), functions.as_mut_ptr());
            let promise = Value::checked(self, raw)?;
            let [resolve, reject] = functions.map(|raw| Value { ctx: self, raw });
            Ok((promise, resolve, reject))
        }
    }

    /// Throws an `Error` of the class that `constructor` names.
    pub(crate) fn throw(self, constructor: &str, message: &str) -> Thrown {
        let made = self.global().get(constructor).and_then(|class| class.construct(&[&self.string(message)]));
        match made {
            Ok(error) => self.throw_value(error),
            Err(Thrown) => Thrown,
        }
    }

    /// Throws an `Error`.
    pub(crate) fn throw_error(self, message: &str) -> Thrown {
        self.throw("Error", message)
    }

    /// Throws a `TypeError`.
    pub(crate) fn throw_type(self, message: &str) -> Thrown {
        self.throw("TypeError", message)
    }

    /// Throws a value.
    pub(crate) fn throw_value(self, value: Value<'js>) -> Thrown {
        // SAFETY: takes the value over.
        unsafe { qjs::JS_Throw(self.as_ptr(), value.into_raw()) };
        Thrown
    }

    /// A kept value again.
    pub(crate) fn restore(self, kept: &Kept) -> Value<'js> {
        // SAFETY: what the host keeps belongs to this context and is alive until it is forgotten.
        unsafe { Value::borrow(self, kept.0) }
    }

    /// Gives a kept value up.
    #[expect(clippy::needless_pass_by_value, reason = "it is given up: no caller may use it again")]
    pub(crate) fn forget(self, kept: Kept) {
        // SAFETY: the kept reference is given up once: `Kept` is taken.
        unsafe { qjs::JS_FreeValue(self.as_ptr(), kept.0) }
    }

    /// A native object with the prototype `proto`, carrying `data` until it is collected.
    pub(crate) fn native(self, proto: &Value<'js>, data: Box<dyn Any>) -> JsResult<Value<'js>> {
        let class_id = self.state().class_id.get();
        // SAFETY: the box is handed to the object, whose finalizer frees it.
        unsafe {
            let raw = qjs::JS_NewObjectProtoClass(self.as_ptr(), proto.raw, class_id);
            let object = Value::checked(self, raw)?;
            qjs::JS_SetOpaque(object.raw, Box::into_raw(Box::new(data)).cast());
            Ok(object)
        }
    }
}

impl<'js> Key<'js> {
    /// Its text.
    pub(crate) fn text(&self) -> String {
        self.borrow_text().to_owned()
    }

    /// Its text, without a copy where the engine has it as it is.
    pub(crate) fn borrow_text(&self) -> Text<'js> {
        let mut len = 0;
        // SAFETY: gives text of `len` bytes that is freed by `Text`.
        let bytes = unsafe { qjs::JS_AtomToCStringLen(self.ctx.as_ptr(), &raw mut len, self.atom) };
        // SAFETY: the engine has just given `len` bytes, or null.
        unsafe { Text::new(self.ctx, bytes, len as usize) }
    }

    /// A number that stands for the name as long as the engine knows it; [`pin`](Self::pin) makes that the VM's life.
    pub(crate) fn id(&self) -> u32 {
        self.atom
    }

    /// Lets the engine know the name for the VM's life.
    pub(crate) fn pin(self) {
        std::mem::forget(self);
    }
}

impl Drop for Key<'_> {
    fn drop(&mut self) {
        // SAFETY: the key holds one reference to its atom.
        unsafe { qjs::JS_FreeAtom(self.ctx.as_ptr(), self.atom) }
    }
}

impl<'js> Text<'js> {
    /// # Safety
    /// `bytes` must be text of `len` bytes that the engine gave, freed by nothing else; or null.
    unsafe fn new(ctx: Ctx<'js>, bytes: *const c_char, len: usize) -> Self {
        let repaired = if bytes.is_null() {
            Some(Box::from(""))
        } else {
            // SAFETY: the caller's promise.
            let bytes = unsafe { std::slice::from_raw_parts(bytes.cast::<u8>(), len) };
            std::str::from_utf8(bytes).is_err().then(|| repaired(bytes))
        };
        Self { ctx, bytes, len, repaired }
    }
}

/// The engine writes half of a character (a lone surrogate) like any other, in three bytes that UTF-8 does not have: each becomes U+FFFD, and the
/// rest of the text stays.
fn repaired(bytes: &[u8]) -> Box<str> {
    let mut bytes = bytes.to_vec();
    for at in 0..bytes.len().saturating_sub(2) {
        if bytes[at] == 0xed && bytes[at + 1] >= 0xa0 {
            bytes[at..at + 3].copy_from_slice("\u{fffd}".as_bytes());
        }
    }
    String::from_utf8_lossy(&bytes).into()
}

impl std::ops::Deref for Text<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        if let Some(repaired) = &self.repaired {
            return repaired;
        }
        // SAFETY: the engine gave `len` bytes, which live until they are freed by the drop, and `new` has seen that they are UTF-8.
        unsafe {
            std::str::from_utf8_unchecked(std::slice::from_raw_parts(self.bytes.cast::<u8>(), self.len))
        }
    }
}

impl Drop for Text<'_> {
    fn drop(&mut self) {
        // SAFETY: the text was given by the engine and is freed once.
        unsafe { qjs::JS_FreeCString(self.ctx.as_ptr(), self.bytes) }
    }
}

/// Registers the one class of objects that carry Rust values. Its id is the same in every runtime.
pub(super) fn register_class(runtime: NonNull<qjs::JSRuntime>) {
    let class = qjs::JSClassDef {
        class_name: c"Native".as_ptr(),
        finalizer: Some(finalize),
        gc_mark: None,
        call: None,
        exotic: ptr::null_mut(),
    };
    // SAFETY: the runtime is fresh.
    unsafe {
        let mut class_id = 0;
        qjs::JS_NewClassID(runtime.as_ptr(), &raw mut class_id);
        qjs::JS_NewClass(runtime.as_ptr(), class_id, &raw const class);
        state_of(runtime.as_ptr()).class_id.set(class_id);
    }
}

unsafe extern "C" fn finalize(runtime: *mut qjs::JSRuntime, object: qjs::JSValue) {
    // SAFETY: called once for each object of the class; the box was put there by `native`.
    unsafe {
        let boxed = qjs::JS_GetOpaque(object, state_of(runtime).class_id.get()).cast::<Box<dyn Any>>();
        if !boxed.is_null() {
            drop(Box::from_raw(boxed));
        }
    }
}

/// The engine's class of plain objects.
const PLAIN_OBJECT_CLASS: qjs::JSClassID = 1;

/// Most arguments of a call from Rust.
const ARG_COUNT_MAX: usize = 5;
