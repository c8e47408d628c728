//! What a script can call: k6's modules and globals.
//!
//! Each module is one file with a table of exports; all are native, and made when they are imported.

mod console;
mod crypto;
mod csv;
pub(crate) mod data;
mod encoding;
mod execution;
mod fasthttp;
mod fs;
pub(crate) mod html;
pub(crate) mod http;
mod k6;
mod metrics;
mod open;
mod random;
pub(crate) mod sockets;
mod sse;
mod stack;
mod streams;
mod subtle;
pub(crate) mod timers;
pub(crate) mod websockets;
mod ws;

use std::sync::mpsc::{self, TryRecvError};
use std::thread;

use crate::error::throw;
use crate::host::{Host, VuPhase};
use crate::loading::LoadError;
use crate::missing;
use crate::vm::{Call, Ctx, Fun, JsResult, Thrown, Value};

/// A native module: its name, and what makes its exports.
type Native = (&'static str, for<'js> fn(Ctx<'js>) -> JsResult<Exports<'js>>);

/// Exports by name.
pub(crate) type Exports<'js> = Vec<(String, Value<'js>)>;

const NATIVES: &[Native] = &[
    ("k6", k6::exports),
    ("k6/http", http::exports),
    ("k6/metrics", metrics::exports),
    ("k6/data", data::exports),
    ("k6/execution", execution::exports),
    ("k6/encoding", encoding::exports),
    ("k6/crypto", crypto::exports),
    ("k6/html", html::exports),
    ("k6/timers", timers::exports),
    ("k6/ws", ws::exports),
    ("k6/websockets", websockets::exports),
    ("k6/experimental/websockets", websockets::exports_of_old_name),
    ("k6/experimental/fs", fs::exports),
    ("k6/experimental/csv", csv::exports),
    ("k6/experimental/streams", streams::exports),
    ("k6/x/fasthttp", fasthttp::exports),
    ("k6/x/sse", sse::exports),
];

/// Whether a module is a native one.
pub(crate) fn is_native(name: &str) -> bool {
    native_names().any(|known| known == name)
}

/// Why a module is not one of them.
pub(crate) fn unsupported(name: &str) -> LoadError {
    missing::module(name, native_names())
}

/// Their names.
fn native_names() -> impl Iterator<Item = &'static str> {
    NATIVES.iter().map(|(name, _)| *name)
}

/// The exports of a native module; the same ones for each import.
pub(crate) fn instantiate<'js>(ctx: Ctx<'js>, name: &str) -> JsResult<Exports<'js>> {
    let kept_name = format!("module {name}");
    if let Some(object) = Host::of(ctx).find_kept(ctx, &kept_name) {
        return exports_of(object);
    }
    let make = NATIVES.iter().find(|(known, _)| *known == name).map(|(_, make)| make);
    let mut exports = make.ok_or_else(|| throw(ctx, &unsupported(name)))?(ctx)?;
    if !exports.iter().any(|(export, _)| export == "default") {
        let object = ctx.object();
        exports.iter().try_for_each(|(export, value)| object.set(export, value.clone()))?;
        exports.push(("default".to_owned(), object));
    }
    let object = exports.iter().find(|(export, _)| export == "default");
    object.into_iter().for_each(|(_, object)| Host::of(ctx).keep(ctx, &kept_name, object.clone()));
    Ok(exports)
}

/// The exports of a module that is an object: each member by its name, and the object as the default.
fn exports_of(object: Value<'_>) -> JsResult<Exports<'_>> {
    let named = object.keys()?.into_iter().map(|key| Ok((key.text(), object.get_key(&key)?)));
    let mut exports = named.collect::<JsResult<Exports<'_>>>()?;
    exports.push(("default".to_owned(), object));
    Ok(exports)
}

/// The same of a module that has nothing but functions.
fn exports_of_functions<'js>(ctx: Ctx<'js>, functions: &[Fun]) -> JsResult<Exports<'js>> {
    let object = ctx.object();
    ctx.set_functions(&object, functions)?;
    exports_of(object)
}

/// The promise of what a call has given already: what it threw rejects it.
fn promised<'js>(ctx: Ctx<'js>, result: JsResult<Value<'js>>) -> JsResult<Value<'js>> {
    let (promise, resolve, reject) = ctx.promise()?;
    let (settle, value) = match result {
        Ok(value) => (resolve, value),
        Err(Thrown) => (reject, ctx.take_exception()),
    };
    settle.call(&ctx.undefined(), &[&value])?;
    Ok(promise)
}

/// What exists without an import.
pub(crate) fn install_globals(ctx: Ctx<'_>) -> JsResult<()> {
    let global = ctx.global();
    stack::install(ctx)?;
    global.set("global", global.clone())?;
    global.set("__VU", ctx.number(Host::of(ctx).ids.get().vu as f64))?;
    global.define_getter("__ENV", ctx.function(&Fun::new(c"__ENV", 0, first_environment))?)?;
    console::install(ctx)?;
    open::install(ctx)?;
    timers::install(ctx)?;
    encoding::install(ctx)?;
    crypto::install(ctx)
}

/// Declares `__ITER`, which does not exist before the first iteration, as in k6.
pub(crate) fn declare_iteration(ctx: Ctx<'_>) -> JsResult<()> {
    ctx.global().define_getter("__ITER", ctx.function(&Fun::new(c"__ITER", 0, iteration_number))?)
}

fn iteration_number<'js>(call: &Call<'js>) -> JsResult<Value<'js>> {
    Ok(call.ctx().number(Host::of(call.ctx()).ids.get().iteration as f64))
}

/// `__ENV`, made when it is first read: most scripts never do, and the system's environment is large.
fn first_environment<'js>(call: &Call<'js>) -> JsResult<Value<'js>> {
    let env = environment(call.ctx())?;
    call.ctx().global().define("__ENV", env.clone())?;
    Ok(env)
}

/// A fresh `__ENV`.
pub(crate) fn environment(ctx: Ctx<'_>) -> JsResult<Value<'_>> {
    let env = ctx.object();
    for (name, value) in Host::of(ctx).source.env() {
        env.set(name, ctx.string(value))?;
    }
    Ok(env)
}

/// Pairs of strings from an object, such as tags or headers; `check` may refuse a value.
pub(crate) fn string_pairs(object: &Value<'_>) -> JsResult<Vec<(String, String)>> {
    if !object.is_object() {
        return Ok(Vec::new());
    }
    let keys = object.keys()?;
    keys.into_iter().map(|key| Ok((key.text(), object.get_key(&key)?.to_string()?))).collect()
}

/// Tags of a sample, or why they cannot be used.
pub(crate) fn tag_pairs(object: &Value<'_>) -> JsResult<Result<Vec<(String, String)>, String>> {
    let mut pairs = Vec::new();
    for key in if object.is_object() { object.keys()? } else { Vec::new() } {
        let value = object.get_key(&key)?;
        if value.is_object() || value.is_nullish() {
            return Ok(Err(bad_tag(&key.text())));
        }
        pairs.push((key.text(), value.to_string()?));
    }
    Ok(Ok(pairs))
}

/// What k6 says of a tag whose value is none.
pub(crate) fn bad_tag(name: &str) -> String {
    format!(
        "invalid value for metric tag '{name}': only String, Boolean and Number types are accepted as a metric tag values"
    )
}

/// The same of metadata.
pub(crate) fn bad_metadata(name: &str) -> String {
    format!(
        "invalid value for metric metadata '{name}': only String, Boolean and Number types are accepted as a metric metadata value"
    )
}

/// Bytes as hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    let digit = |value: u8| char::from(b"0123456789abcdef"[usize::from(value)]);
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

/// Works on bytes piece by piece: other users have their turn in between, and a run that ends ends this, too.
pub(crate) fn by_pieces(ctx: Ctx<'_>, bytes: &[u8], mut work: impl FnMut(&[u8])) -> JsResult<()> {
    for piece in bytes.chunks(PIECE_BYTES) {
        work(piece);
        if piece.len() == PIECE_BYTES {
            ctx.give_way()?;
        }
    }
    Ok(())
}

/// Does on a thread of its own what takes long and cannot be divided, while the user waits as in `sleep()`. A run that ends does not wait for it.
pub(crate) fn off_loop<T: Send + 'static>(
    ctx: Ctx<'_>,
    work: impl FnOnce() -> T + Send + 'static,
) -> JsResult<T> {
    let host = Host::of(ctx);
    if matches!(host.phase.get(), VuPhase::Init | VuPhase::Summary) {
        return Ok(work());
    }
    let (done, result) = mpsc::channel();
    let thread = thread::Builder::new().spawn(move || done.send(work()));
    thread.map_err(|error| ctx.throw_error(&format!("cannot start a thread: {error}")))?;
    loop {
        match result.try_recv() {
            Ok(result) => return Ok(result),
            Err(TryRecvError::Disconnected) => {
                return Err(ctx.throw_error("the thread ended without a result"));
            }
            Err(TryRecvError::Empty) => host.wait(ctx, Some(host.now_ns.get() + LOOK_NS))?,
        }
    }
}

/// How often a user looks whether its thread has ended.
const LOOK_NS: u64 = 1_000_000;

/// A millisecond's work of a slow hash.
const PIECE_BYTES: usize = 128 * 1024;

/// The bytes of a string or of a buffer.
pub(crate) fn bytes_of(value: &Value<'_>) -> JsResult<Vec<u8>> {
    match value.bytes() {
        Some(bytes) => Ok(bytes),
        None => Ok(value.to_text()?.as_bytes().to_vec()),
    }
}
