//! Objects with fields that are made when they are read, and that are own enumerable properties all the same.
//!
//! Owns: what the engine asks such an object. Never: what a field is. A field that the script assigns, defines or deletes is an ordinary
//! property from then on. Values of fields are kept outside of the object's properties, so that these keep their order.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::ffi::c_int;
use std::ptr::{self, NonNull};
use std::rc::Rc;

use rquickjs_sys as qjs;

use super::value::Value;
use super::{Ctx, JsResult, Thrown, state_of};

/// What makes the fields of a record.
pub(crate) trait Lazy: Any {
    /// The value of the field with this index.
    fn make<'js>(&self, ctx: Ctx<'js>, idx: usize) -> JsResult<Value<'js>>;
}

/// A field of a record.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Field {
    pub(crate) name: &'static str,
    /// It is made once: an object that scripts may change or compare.
    pub(crate) is_kept: bool,
}

/// What the records of one kind have in common.
#[derive(Debug)]
pub(crate) struct RecordKind {
    fields: &'static [Field],
    /// Names of the fields, then those of the methods, which the prototype has.
    atoms: Box<[qjs::JSAtom]>,
}

/// What an object of the class carries.
struct Record {
    kind: Rc<RecordKind>,
    data: Box<dyn Lazy>,
    /// Fields that were made, by their index.
    made: RefCell<Vec<(usize, qjs::JSValue)>>,
    /// Properties that the script has replaced or deleted, a bit for each.
    taken: Cell<u32>,
}

impl Record {
    /// Index of a property that is still this record's to make.
    fn place(&self, atom: qjs::JSAtom) -> Option<usize> {
        let idx = self.kind.atoms.iter().position(|known| *known == atom)?;
        (self.taken.get() & (1 << idx) == 0).then_some(idx)
    }

    fn value<'js>(&self, object: &Value<'js>, idx: usize) -> JsResult<Value<'js>> {
        let ctx = object.ctx();
        let Some(field) = self.kind.fields.get(idx) else { return inherited(object, self.kind.atoms[idx]) };
        if !field.is_kept {
            return self.data.make(ctx, idx);
        }
        if let Some((_, raw)) = self.made.borrow().iter().find(|(known, _)| *known == idx) {
            // SAFETY: the record holds a reference to what it has made.
            return Ok(unsafe { Value::borrow(ctx, *raw) });
        }
        let value = self.data.make(ctx, idx)?;
        self.made.borrow_mut().push((idx, value.clone().into_raw()));
        Ok(value)
    }

    /// Makes a property an ordinary one with the value it has: what comes next is the engine's.
    fn give_up(&self, object: &Value<'_>, idx: usize) -> JsResult<()> {
        let value = self.value(object, idx)?;
        self.take(object.ctx(), idx);
        // SAFETY: the object and the value are alive; the engine takes its own references.
        let status = unsafe { define(object, self.kind.atoms[idx], value.raw(), DEFINED_FLAGS) };
        if status < 0 { Err(Thrown) } else { Ok(()) }
    }

    /// The record does not make this property any more.
    fn take(&self, ctx: Ctx<'_>, idx: usize) {
        self.taken.set(self.taken.get() | 1 << idx);
        let mut made = self.made.borrow_mut();
        if let Some(at) = made.iter().position(|(known, _)| *known == idx) {
            // SAFETY: the record's reference is given up once.
            drop(unsafe { Value::from_raw(ctx, made.swap_remove(at).1) });
        }
    }
}

impl<'js> Ctx<'js> {
    /// A kind of records, whose prototype has `methods`.
    pub(crate) fn record_kind(
        self,
        fields: &'static [Field],
        methods: impl Iterator<Item = &'static str>,
    ) -> Rc<RecordKind> {
        let names = fields.iter().map(|field| field.name).chain(methods);
        let pinned = |name| {
            let key = self.key(name);
            let atom = key.atom;
            key.pin();
            atom
        };
        Rc::new(RecordKind { fields, atoms: names.map(pinned).collect() })
    }

    /// A record with the prototype `proto`, whose fields `data` makes.
    pub(crate) fn record(
        self,
        proto: &Value<'js>,
        kind: &Rc<RecordKind>,
        data: Box<dyn Lazy>,
    ) -> JsResult<Value<'js>> {
        let record = Record { kind: Rc::clone(kind), data, made: RefCell::default(), taken: Cell::default() };
        // SAFETY: the box is handed to the object, whose finalizer frees it.
        unsafe {
            let class_id = self.state().record_class_id.get();
            let raw = qjs::JS_NewObjectProtoClass(self.as_ptr(), proto.raw(), class_id);
            let object = Value::checked(self, raw)?;
            qjs::JS_SetOpaque(object.raw(), Box::into_raw(Box::new(record)).cast());
            Ok(object)
        }
    }
}

impl Value<'_> {
    /// What makes the fields of a record.
    pub(super) fn lazy<T: 'static>(&self) -> Option<&T> {
        // SAFETY: an object of the class carries a `Record`, freed by the finalizer alone; the object lives while borrowed.
        let record = unsafe { record_of(self.raw(), self.ctx().state().record_class_id.get()) };
        let data: &dyn Any = &*record?.data;
        data.downcast_ref::<T>()
    }
}

/// Registers the class.
pub(super) fn register_class(runtime: NonNull<qjs::JSRuntime>) {
    let class = qjs::JSClassDef {
        class_name: c"Object".as_ptr(),
        finalizer: Some(finalize),
        gc_mark: Some(mark),
        call: None,
        exotic: ptr::from_ref(&METHODS).cast_mut(),
    };
    // SAFETY: the runtime is fresh; the engine reads the table of methods and never writes it.
    unsafe {
        let mut class_id = 0;
        qjs::JS_NewClassID(runtime.as_ptr(), &raw mut class_id);
        qjs::JS_NewClass(runtime.as_ptr(), class_id, &raw const class);
        state_of(runtime.as_ptr()).record_class_id.set(class_id);
    }
}

static METHODS: qjs::JSClassExoticMethods = qjs::JSClassExoticMethods {
    get_own_property: Some(on_get_own),
    get_own_property_names: Some(on_names),
    delete_property: Some(on_delete),
    define_own_property: Some(on_define),
    has_property: None,
    get_property: Some(on_get),
    set_property: Some(on_set),
};

/// # Safety
/// `object` must be a live value, and outlive the result.
unsafe fn record_of<'a>(object: qjs::JSValue, class_id: u32) -> Option<&'a Record> {
    // SAFETY: the caller's promise; the engine gives null for objects of other classes.
    unsafe { qjs::JS_GetOpaque(object, class_id).cast::<Record>().as_ref() }
}

/// Calls `answer` with an object that the engine asks about; without a record there is nothing to tell.
///
/// # Safety
/// `context` must be live, and `object` a live value of it.
unsafe fn asked<T>(
    context: *mut qjs::JSContext,
    object: qjs::JSValue,
    none: T,
    answer: impl for<'js> FnOnce(&Value<'js>, &Record) -> T,
) -> T {
    // SAFETY: the caller's promise.
    unsafe {
        let ctx = Ctx::from_raw(context);
        let object = Value::borrow(ctx, object);
        match record_of(object.raw(), ctx.state().record_class_id.get()) {
            Some(record) => answer(&object, record),
            None => none,
        }
    }
}

/// A property of the object's prototype.
fn inherited<'js>(object: &Value<'js>, atom: qjs::JSAtom) -> JsResult<Value<'js>> {
    let ctx = object.ctx();
    // SAFETY: both give owned values.
    unsafe {
        let proto = Value::checked(ctx, qjs::JS_GetPrototype(ctx.as_ptr(), object.raw()))?;
        Value::checked(ctx, qjs::JS_GetProperty(ctx.as_ptr(), proto.raw(), atom))
    }
}

/// Defines an ordinary property.
///
/// # Safety
/// `value` must be a live value of the object's context.
unsafe fn define(object: &Value<'_>, atom: qjs::JSAtom, value: qjs::JSValue, flags: u32) -> c_int {
    let flags = (flags | qjs::JS_PROP_NO_EXOTIC) as c_int;
    let none = qjs::JS_UNDEFINED;
    // SAFETY: the engine takes its own references.
    unsafe { qjs::JS_DefineProperty(object.ctx().as_ptr(), object.raw(), atom, value, none, none, flags) }
}

unsafe extern "C" fn on_get(
    context: *mut qjs::JSContext,
    object: qjs::JSValue,
    atom: qjs::JSAtom,
    _receiver: qjs::JSValue,
) -> qjs::JSValue {
    let get = |object: &Value<'_>, record: &Record| {
        let value = match record.place(atom) {
            Some(idx) => record.value(object, idx),
            None => inherited(object, atom),
        };
        value.map_or(qjs::JS_EXCEPTION, Value::into_raw)
    };
    // SAFETY: the engine asks with a live context and object.
    unsafe { asked(context, object, qjs::JS_UNDEFINED, get) }
}

unsafe extern "C" fn on_get_own(
    context: *mut qjs::JSContext,
    descriptor: *mut qjs::JSPropertyDescriptor,
    object: qjs::JSValue,
    atom: qjs::JSAtom,
) -> c_int {
    let get = |object: &Value<'_>, record: &Record| {
        let Some(idx) = record.place(atom) else { return 0 };
        if descriptor.is_null() {
            return 1;
        }
        let Ok(value) = record.value(object, idx) else { return -1 };
        let none = qjs::JS_UNDEFINED;
        let flags = qjs::JS_PROP_C_W_E as c_int;
        let shown = qjs::JSPropertyDescriptor { flags, value: value.into_raw(), getter: none, setter: none };
        // SAFETY: the engine gives space for a descriptor, and owns what is in it from now on.
        unsafe { descriptor.write(shown) };
        1
    };
    // SAFETY: the engine asks with a live context and object.
    unsafe { asked(context, object, 0, get) }
}

unsafe extern "C" fn on_names(
    context: *mut qjs::JSContext,
    table: *mut *mut qjs::JSPropertyEnum,
    count: *mut u32,
    object: qjs::JSValue,
) -> c_int {
    let list = |_: &Value<'_>, record: &Record| {
        let names: Vec<_> =
            record.kind.atoms.iter().copied().filter(|atom| record.place(*atom).is_some()).collect();
        let bytes = size_of::<qjs::JSPropertyEnum>() * names.len().max(1);
        // SAFETY: the engine frees the table and each of its atoms; there is space for all names.
        unsafe {
            let begin = qjs::js_malloc(context, bytes as qjs::size_t).cast::<qjs::JSPropertyEnum>();
            if begin.is_null() {
                return -1;
            }
            for (idx, atom) in names.iter().enumerate() {
                let atom = qjs::JS_DupAtom(context, *atom);
                begin.add(idx).write(qjs::JSPropertyEnum { is_enumerable: true, atom });
            }
            table.write(begin);
            count.write(names.len() as u32);
        }
        0
    };
    // SAFETY: the engine asks with a live context and object.
    unsafe { asked(context, object, -1, list) }
}

unsafe extern "C" fn on_delete(
    context: *mut qjs::JSContext,
    object: qjs::JSValue,
    atom: qjs::JSAtom,
) -> c_int {
    let delete = |object: &Value<'_>, record: &Record| {
        if let Some(idx) = record.place(atom) {
            record.take(object.ctx(), idx);
        }
        1
    };
    // SAFETY: the engine asks with a live context and object.
    unsafe { asked(context, object, 1, delete) }
}

unsafe extern "C" fn on_define(
    context: *mut qjs::JSContext,
    object: qjs::JSValue,
    atom: qjs::JSAtom,
    value: qjs::JSValue,
    getter: qjs::JSValue,
    setter: qjs::JSValue,
    flags: c_int,
) -> c_int {
    let define = |object: &Value<'_>, record: &Record| {
        if let Some(idx) = record.place(atom)
            && record.give_up(object, idx).is_err()
        {
            return -1;
        }
        let flags = flags | qjs::JS_PROP_NO_EXOTIC as c_int;
        // SAFETY: values are borrowed from the engine, which takes its own references.
        unsafe { qjs::JS_DefineProperty(context, object.raw(), atom, value, getter, setter, flags) }
    };
    // SAFETY: the engine asks with a live context and object.
    unsafe { asked(context, object, -1, define) }
}

unsafe extern "C" fn on_set(
    context: *mut qjs::JSContext,
    object: qjs::JSValue,
    atom: qjs::JSAtom,
    value: qjs::JSValue,
    receiver: qjs::JSValue,
    flags: c_int,
) -> c_int {
    let set = |object: &Value<'_>, record: &Record| {
        if let Some(idx) = record.place(atom) {
            record.take(object.ctx(), idx);
        }
        let throws = flags as u32 & (qjs::JS_PROP_THROW | qjs::JS_PROP_THROW_STRICT);
        // SAFETY: the receiver and the value are alive during the call.
        unsafe { define(&Value::borrow(object.ctx(), receiver), atom, value, DEFINED_FLAGS | throws) }
    };
    // SAFETY: the engine asks with a live context and object.
    unsafe { asked(context, object, -1, set) }
}

unsafe extern "C" fn mark(runtime: *mut qjs::JSRuntime, object: qjs::JSValue, mark: qjs::JS_MarkFunc) {
    // SAFETY: called for objects of the class; the values are alive.
    unsafe {
        if let Some(record) = record_of(object, state_of(runtime).record_class_id.get()) {
            record.made.borrow().iter().for_each(|(_, raw)| qjs::JS_MarkValue(runtime, *raw, mark));
        }
    }
}

unsafe extern "C" fn finalize(runtime: *mut qjs::JSRuntime, object: qjs::JSValue) {
    // SAFETY: called once for each object of the class; the box was put there by `record`, and holds references to what it made.
    unsafe {
        let record = qjs::JS_GetOpaque(object, state_of(runtime).record_class_id.get()).cast::<Record>();
        if !record.is_null() {
            let record = Box::from_raw(record);
            record.made.borrow().iter().for_each(|(_, raw)| qjs::JS_FreeValueRT(runtime, *raw));
        }
    }
}

/// An ordinary property as assignments make it.
const DEFINED_FLAGS: u32 = qjs::JS_PROP_C_W_E
    | qjs::JS_PROP_HAS_VALUE
    | qjs::JS_PROP_HAS_CONFIGURABLE
    | qjs::JS_PROP_HAS_WRITABLE
    | qjs::JS_PROP_HAS_ENUMERABLE;
