//! The module `k6/experimental/fs`: files that are read in pieces.
//!
//! Owns: how far each open file was read. Never: the bytes, which exist once per process, as those of `open` do.

use std::cell::Cell;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

use super::promised;
use crate::error::{rethrown_with, throw, throw_as};
use crate::host::{Host, VuPhase};
use crate::loading::LoadError;
use crate::resolve::{file_path, file_url};
use crate::vm::{Call, Ctx, Fun, JsResult, Thrown, Value};

pub(super) fn exports(ctx: Ctx<'_>) -> JsResult<super::Exports<'_>> {
    let (module, modes) = (ctx.object(), ctx.object());
    for (name, mode) in [("Start", SEEK_START), ("Current", SEEK_CURRENT), ("End", SEEK_END)] {
        modes.set(name, ctx.number(mode as f64))?;
    }
    ctx.set_functions(&module, &[Fun::new(c"open", 1, |call: &Call<'_>| promised(call.ctx(), open(call)))])?;
    module.set("SeekMode", modes)?;
    super::exports_of(module)
}

/// An open file.
#[derive(Debug)]
pub(super) struct File {
    pub(super) path: String,
    bytes: Arc<[u8]>,
    /// At most the length of `bytes`.
    offset: Cell<usize>,
}

impl File {
    /// The file that a script's value stands for.
    pub(super) fn of(value: &Value<'_>) -> Option<Rc<Self>> {
        value.opaque::<Rc<Self>>().map(Rc::clone)
    }

    /// What has not been read.
    fn rest(&self) -> &[u8] {
        self.bytes.get(self.offset.get()..).unwrap_or_default()
    }

    fn advance(&self, count: usize) {
        self.offset.set(self.offset.get() + count);
    }

    /// Reads on: `count` bytes, fewer at the end.
    pub(super) fn take(&self, count: usize) -> &[u8] {
        let rest = self.rest();
        let taken = &rest[..rest.len().min(count)];
        self.advance(taken.len());
        taken
    }

    /// Goes to another place; gives it. k6 counts from the last byte, not from behind it, with `SeekMode.End`.
    fn seek(&self, offset: i64, mode: i64) -> Result<usize, &'static str> {
        let length = self.bytes.len() as i64;
        let base = match mode {
            SEEK_START if offset < 0 => return Err("offset cannot be negative when using SeekModeStart"),
            SEEK_START => 0,
            SEEK_CURRENT => self.offset.get() as i64,
            SEEK_END if offset > 0 => return Err("offset cannot be positive when using SeekModeEnd"),
            SEEK_END => length - 1,
            _ => return Err("seek() failed; reason: the whence argument must be a SeekMode"),
        };
        match base.saturating_add(offset) {
            ..0 => Err("seeking before start of file"),
            place if place > length => Err("seeking beyond end of file"),
            place => {
                self.offset.set(place as usize);
                Ok(place as usize)
            }
        }
    }
}

fn open<'js>(call: &Call<'js>) -> JsResult<Value<'js>> {
    let (ctx, path) = (call.ctx(), call.arg(0));
    if Host::of(ctx).phase.get() != VuPhase::Init {
        let problem = "open() failed; reason: opening a file is allowed only in the Init context";
        return Err(fail(ctx, "ForbiddenError", problem));
    }
    if path.is_nullish() {
        return Err(fail(ctx, TYPE_ERROR, "open() failed; reason: path cannot be null or undefined"));
    }
    let path = path.to_string()?;
    if path.is_empty() {
        return Err(fail(ctx, TYPE_ERROR, "open() failed; reason: path cannot be empty"));
    }
    file_object(ctx, open_path(ctx, path.strip_prefix("file://").unwrap_or(&path))?)
}

/// Opens what a path means next to the script that is run, whichever of its modules says it.
fn open_path(ctx: Ctx<'_>, path: &str) -> JsResult<File> {
    let source = &Host::of(ctx).source;
    let script = file_path(source.entry()).unwrap_or_default();
    let name = file_url(&script.parent().unwrap_or_else(|| Path::new("/")).join(path));
    let bytes = source.file(&name).map_err(|problem| explain(ctx, &name, &problem))?;
    let path = file_path(&name).unwrap_or_default();
    Ok(File { path: path.to_string_lossy().into_owned(), bytes, offset: Cell::default() })
}

/// Why a file cannot be opened.
fn explain(ctx: Ctx<'_>, name: &str, problem: &LoadError) -> Thrown {
    let path = file_path(name).unwrap_or_default();
    if path.is_dir() {
        let problem = format!("cannot open {path:?}: opening a directory is not supported");
        return fail(ctx, "InvalidResourceError", &problem);
    }
    if !path.exists() {
        return throw_as(ctx, "NotFoundError", &LoadError::NoFile(path));
    }
    throw(ctx, problem)
}

fn file_object(ctx: Ctx<'_>, file: File) -> JsResult<Value<'_>> {
    let proto = Host::of(ctx).kept(ctx, "file prototype", || {
        let proto = ctx.object();
        ctx.set_functions(&proto, METHODS)?;
        Ok(proto)
    })?;
    let path = ctx.string(&file.path);
    let object = ctx.native(&proto, Box::new(Rc::new(file)))?;
    object.define("path", path)?;
    Ok(object)
}

const METHODS: &[Fun] = &[
    Fun::new(c"read", 1, |call: &Call<'_>| promised(call.ctx(), read(call))),
    Fun::new(c"seek", 2, |call: &Call<'_>| promised(call.ctx(), seek(call))),
    Fun::new(c"stat", 0, |call: &Call<'_>| promised(call.ctx(), stat(call))),
];

fn read<'js>(call: &Call<'js>) -> JsResult<Value<'js>> {
    let (ctx, file, buffer) = (call.ctx(), this_file(call)?, call.arg(0));
    if buffer.is_nullish() {
        let problem = "read() failed; reason: into argument cannot be null or undefined";
        return Err(fail(ctx, TYPE_ERROR, problem));
    }
    let Some(count) = buffer.write_bytes(file.rest()) else {
        return Err(fail(ctx, TYPE_ERROR, "read() failed; reason: into argument must be a Uint8Array"));
    };
    if file.rest().is_empty() {
        return Ok(ctx.null());
    }
    file.advance(count);
    Ok(ctx.number(count as f64))
}

fn seek<'js>(call: &Call<'js>) -> JsResult<Value<'js>> {
    let (ctx, file) = (call.ctx(), this_file(call)?);
    let (offset, mode) = (whole(&call.arg(0), "offset")?, whole(&call.arg(1), "whence")?);
    match file.seek(offset, mode) {
        Ok(place) => Ok(ctx.number(place as f64)),
        Err(problem) => Err(fail(ctx, TYPE_ERROR, problem)),
    }
}

fn stat<'js>(call: &Call<'js>) -> JsResult<Value<'js>> {
    let (ctx, file, stat) = (call.ctx(), this_file(call)?, call.ctx().object());
    let name = Path::new(&file.path).file_name().unwrap_or_default();
    stat.set("name", ctx.string(&name.to_string_lossy()))?;
    stat.set("size", ctx.number(file.bytes.len() as f64))?;
    Ok(stat)
}

fn this_file(call: &Call<'_>) -> JsResult<Rc<File>> {
    File::of(&call.this()).ok_or_else(|| call.ctx().throw_type("this is not a File"))
}

/// An argument that must be a whole number.
fn whole(value: &Value<'_>, name: &str) -> JsResult<i64> {
    let problem = match value.as_number() {
        Some(number) if number.fract() == 0.0 && number.abs() < i64::MAX as f64 => return Ok(number as i64),
        None if value.is_nullish() => "cannot be null or undefined",
        _ => "must be a number",
    };
    let problem = format!("seek() failed; reason: the {name} argument {problem}");
    Err(fail(value.ctx(), TYPE_ERROR, &problem))
}

/// Throws an `Error` that has the name by which scripts tell errors of this module apart.
fn fail(ctx: Ctx<'_>, name: &str, message: &str) -> Thrown {
    ctx.throw_error(message);
    rethrown_with(ctx, "name", name)
}

const TYPE_ERROR: &str = "TypeError";

const SEEK_START: i64 = 0;
const SEEK_CURRENT: i64 = 1;
const SEEK_END: i64 = 2;

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in super::super) fn file(text: &str) -> Rc<File> {
        Rc::new(File { path: "/f".to_owned(), bytes: text.as_bytes().into(), offset: Cell::default() })
    }

    #[test]
    fn places_are_those_of_k6() {
        let file = file("hello world");
        for (offset, mode, expected) in [
            (2, SEEK_START, Ok(2)),
            (1, SEEK_CURRENT, Ok(3)),
            (-1, SEEK_CURRENT, Ok(2)),
            (0, SEEK_END, Ok(10)),
            (-3, SEEK_END, Ok(7)),
            (11, SEEK_START, Ok(11)),
            (12, SEEK_START, Err("seeking beyond end of file")),
            (i64::MAX, SEEK_CURRENT, Err("seeking beyond end of file")),
            (i64::MIN, SEEK_CURRENT, Err("seeking before start of file")),
            (-1, SEEK_START, Err("offset cannot be negative when using SeekModeStart")),
            (1, SEEK_END, Err("offset cannot be positive when using SeekModeEnd")),
            (0, 7, Err("seek() failed; reason: the whence argument must be a SeekMode")),
        ] {
            assert_eq!(file.seek(offset, mode), expected, "{offset} {mode}");
        }
        assert_eq!(file.offset.get(), 11);
        assert_eq!((file.take(5), file.seek(0, SEEK_START)), (&b""[..], Ok(0)));
        assert_eq!((file.take(5), file.take(50)), (&b"hello"[..], &b" world"[..]));
    }
}
