//! `open`: files, in the init stage.

use crate::error::throw;
use crate::host::Host;
use crate::vm::{Call, Ctx, Fun, JsResult, Value};

/// Makes `open` a global.
pub(super) fn install(ctx: Ctx<'_>) -> JsResult<()> {
    ctx.set_functions(&ctx.global(), &[Fun::new(c"open", 2, open)])
}

fn open<'js>(call: &Call<'js>) -> JsResult<Value<'js>> {
    let ctx = call.ctx();
    Host::of(ctx).require_init(ctx, "the \"open()\" function")?;
    let path = call.arg(0).to_string()?;
    if path.is_empty() {
        return Err(ctx.throw_error("open() can't be used with an empty filename"));
    }
    let base = ctx.caller_file(1).unwrap_or_else(|| Host::of(ctx).source.entry().to_owned());
    let name = url::Url::parse(&base).and_then(|base| base.join(&escaped(&path)));
    let name = name.map_err(|error| ctx.throw_error(&format!("cannot open `{path}`: {error}")))?;
    let bytes = Host::of(ctx).source.file(name.as_str()).map_err(|problem| throw(ctx, &problem))?;
    match call.arg(1).as_text().as_deref() {
        Some("b") => ctx.array_buffer(&bytes),
        _ => Ok(ctx.string(&String::from_utf8_lossy(&bytes))),
    }
}

/// A path may have characters that mean something in a URL; what `import.meta.resolve` gave is a URL already.
fn escaped(path: &str) -> String {
    if path.starts_with("file://") {
        return path.to_owned();
    }
    path.replace('%', "%25").replace('?', "%3F").replace('#', "%23")
}
