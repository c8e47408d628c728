//! The module `k6/experimental/csv`: tables, all at once as a `SharedArray`, or row by row.

mod records;
mod rows;

use std::cell::RefCell;
use std::rc::Rc;

use self::rows::{Options, Rows};
use super::data;
use super::fs::File;
use super::promised;
use crate::host::{Host, VuPhase};
use crate::program::ArrayData;
use crate::vm::{Call, Ctx, Fun, JsResult, Value};

pub(super) fn exports(ctx: Ctx<'_>) -> JsResult<super::Exports<'_>> {
    let (module, proto) = (ctx.object(), ctx.object());
    ctx.set_functions(&proto, &[Fun::new(c"next", 0, |call: &Call<'_>| promised(call.ctx(), next(call)))])?;
    Host::of(ctx).keep(ctx, PARSER, proto.clone());
    ctx.set_functions(&module, &[Fun::new(c"parse", 2, parse)])?;
    module.set("Parser", ctx.constructor(&Fun::new(c"Parser", 2, make_parser), &proto)?)?;
    super::exports_of(module)
}

/// What a script holds of a parser.
struct Parser(RefCell<Rows>);

/// `parse`: what cannot be begun is thrown, and what cannot be read rejects the promise.
fn parse<'js>(call: &Call<'js>) -> JsResult<Value<'js>> {
    let ctx = call.ctx();
    let file = file_of(&call.arg(0))?;
    let options = options_of(&call.arg(1), "failed to interpret the provided Parser options")?;
    let name = format!("{SHARED_NAME}{options:?} {}", file.path);
    let rows = begin(ctx, file, options)?;
    promised(ctx, shared(ctx, &name, rows))
}

/// The remaining rows; the first reader to ask gets the next one.
fn shared<'js>(ctx: Ctx<'js>, name: &str, mut rows: Rows) -> JsResult<Value<'js>> {
    let source = &Host::of(ctx).source;
    if let Some(data) = source.array(name) {
        return data::array_object(ctx, data);
    }
    let mut elements = Vec::new();
    loop {
        match rows.next() {
            Ok(Some(row)) => elements.push(row.to_json().into_boxed_str()),
            Ok(None) => return data::array_object(ctx, source.keep_array(name, ArrayData(elements))),
            Err(problem) => {
                return Err(ctx.throw_error(&format!("failed to read record; reason: {problem}")));
            }
        }
    }
}

fn make_parser<'js>(call: &Call<'js>) -> JsResult<Value<'js>> {
    let (ctx, file) = (call.ctx(), call.arg(0));
    if Host::of(ctx).phase.get() != VuPhase::Init {
        return Err(ctx.throw_error("csv Parser constructor must be called in the init context"));
    }
    if file.is_nullish() {
        return Err(ctx.throw_error("csv Parser constructor takes at least one non-nil source argument"));
    }
    let file = file_of(&file)?;
    let options = options_of(&call.arg(1), "encountered an error while interpreting Parser options")?;
    let rows = begin(ctx, file, options)?;
    let proto = Host::of(ctx).kept(ctx, PARSER, || Ok(ctx.object()))?;
    ctx.native(&proto, Box::new(Parser(RefCell::new(rows))))
}

fn next<'js>(call: &Call<'js>) -> JsResult<Value<'js>> {
    let (ctx, this) = (call.ctx(), call.this());
    let parser = this.opaque::<Parser>().ok_or_else(|| ctx.throw_type("this is not a Parser"))?;
    // Only text outlives this line: what follows may run script, and that may ask the same parser.
    let row = parser.0.borrow_mut().next().map(|row| row.map(|row| row.to_json()));
    let row = row.map_err(|problem| ctx.throw_error(&problem))?;
    let result = ctx.object();
    result.set("done", ctx.bool(row.is_none()))?;
    let value = match row {
        Some(row) => ctx.parse_json(&row)?,
        None => ctx.array(),
    };
    result.set("value", value)?;
    Ok(result)
}

fn file_of(value: &Value<'_>) -> JsResult<Rc<File>> {
    let problem = "first argument expected to be a fs.File instance";
    File::of(value).ok_or_else(|| value.ctx().throw_error(problem))
}

/// What a script says of a table; `doing` begins the message when it cannot be used.
fn options_of(given: &Value<'_>, doing: &str) -> JsResult<Options> {
    let mut options = Options::default();
    if given.is_undefined() {
        return Ok(options);
    }
    let refused = |problem| given.ctx().throw_error(&format!("{doing}; reason: {problem}"));
    let member = |name| Ok(Some(given.get(name)?).filter(|value| !value.is_undefined()));
    if let Some(delimiter) = member("delimiter")? {
        options.delimiter = match *delimiter.to_text()?.as_bytes() {
            [byte] => byte,
            _ => return Err(refused("delimiter must be a single character")),
        };
    }
    options.skips_first = member("skipFirstLine")?.is_some_and(|value| value.is_truthy());
    options.as_objects = member("asObjects")?.is_some_and(|value| value.is_truthy());
    let line = |name| member(name)?.map(|value| value.to_number().map(|number| number as i64)).transpose();
    (options.from, options.to) = (line("fromLine")?, line("toLine")?);
    match (options.from, options.to) {
        (Some(from), Some(to)) if from >= to => Err(refused("fromLine must be less than or equal to toLine")),
        _ => Ok(options),
    }
}

fn begin(ctx: Ctx<'_>, file: Rc<File>, options: Options) -> JsResult<Rows> {
    let refused = |problem| ctx.throw_error(&format!("failed to create a new parser; reason: {problem}"));
    Rows::begin(file, options).map_err(refused)
}

/// Where the prototype of parsers is kept.
const PARSER: &str = "csv parser";

/// Begins the names of shared tables, which no script's own data has.
const SHARED_NAME: &str = "\0csv ";
