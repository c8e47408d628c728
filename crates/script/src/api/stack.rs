//! What an error's `stack` says: the error itself, then where it was thrown. What was no function gets its name.

use crate::host::Host;
use crate::program::Place;
use crate::vm::{Call, Ctx, Fun, JsResult, Value};

/// Lets every error be described as it is made.
pub(super) fn install(ctx: Ctx<'_>) -> JsResult<()> {
    let prepare = ctx.function(&Fun::new(c"prepareStackTrace", 2, prepare))?;
    ctx.global().get("Error")?.set("prepareStackTrace", prepare)
}

fn prepare<'js>(call: &Call<'js>) -> JsResult<Value<'js>> {
    let (ctx, error) = (call.ctx(), call.arg(0));
    let mut frames = call.arg(1).elements()?;
    // The first frame of an error in JSON is its place in the JSON, which the message has.
    if let Some(first) = frames.first()
        && ask(first, "getFileName")?.as_text().is_some_and(|file| &*file == "<input>")
    {
        frames.remove(0);
    }
    if error.is_error() {
        name_callee(&error, &frames)?;
    }
    let mut stack = if error.is_error() { header(&error)? } else { String::new() };
    for frame in &frames {
        stack.push_str(&line_of(frame)?);
    }
    Ok(ctx.string(&stack))
}

/// The error in the first line.
fn header(error: &Value<'_>) -> JsResult<String> {
    let (name, message) = (error.get("name")?.to_string()?, error.get("message")?.to_string()?);
    Ok(if message.is_empty() { format!("{name}\n") } else { format!("{name}: {message}\n") })
}

fn line_of(frame: &Value<'_>) -> JsResult<String> {
    let function = ask(frame, "getFunctionName")?;
    let function = function.as_text().map_or_else(String::new, |name| name.to_owned());
    Ok(match (place_of(frame)?, function.as_str()) {
        (Some(place), "") => format!("    at {place}\n"),
        (Some(place), function) => format!("    at {function} ({place})\n"),
        (None, "") => "    at <anonymous> (native)\n".to_owned(),
        (None, function) => format!("    at {function} (native)\n"),
    })
}

/// Where in the script a frame is; native functions are nowhere.
fn place_of(frame: &Value<'_>) -> JsResult<Option<Place>> {
    if ask(frame, "isNative")?.is_truthy() {
        return Ok(None);
    }
    let file = ask(frame, "getFileName")?;
    let Some(file) = file.as_text().map(|file| file.to_owned()) else { return Ok(None) };
    let [line, column] = ["getLineNumber", "getColumnNumber"].map(|name| ask(frame, name));
    let [line, column] = [line?, column?].map(|number| number.as_number().unwrap_or(0.0) as usize);
    // The engine counts the columns of the first line from 0, and of all others from 1.
    let column = column + usize::from(line == 1);
    Ok((line > 0).then_some(Place { file, line, column }))
}

fn ask<'js>(frame: &Value<'js>, method: &str) -> JsResult<Value<'js>> {
    frame.get(method)?.call(frame, &[])
}

/// Says of "not a function" what was called.
fn name_callee(error: &Value<'_>, frames: &[Value<'_>]) -> JsResult<()> {
    let Some(first) = frames.first() else { return Ok(()) };
    if error.get("message")?.as_text().is_none_or(|text| &*text != "not a function") {
        return Ok(());
    }
    let ctx = error.ctx();
    let what = match place_of(first)? {
        Some(place) => {
            let callees = Host::of(ctx).source.callees_at(&place);
            let unknown = callees.iter().filter(|callee| !is_known_function(ctx, callee));
            let unknown: Vec<&str> = unknown.map(String::as_str).collect();
            (!unknown.is_empty()).then(|| unknown.join(" or "))
        }
        None => {
            let function = ask(first, "getFunctionName")?;
            function.as_text().map(|name| format!("the argument of {}", &*name))
        }
    };
    match what {
        Some(what) if !what.ends_with("Error") => {
            error.define_hidden("message", ctx.string(&format!("{what} is not a function")))
        }
        _ => Ok(()),
    }
}

/// Whether a name leads from the global object to a function.
fn is_known_function(ctx: Ctx<'_>, callee: &str) -> bool {
    let found = callee.split('.').try_fold(ctx.global(), |object, name| {
        let value = object.get(name).ok()?;
        (!value.is_nullish()).then_some(value)
    });
    found.is_some_and(|value| value.is_function())
}
