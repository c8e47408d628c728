//! `import.meta`: `resolve`, which resolves a specifier relative to the calling module.

use crate::error::throw;
use crate::host::Host;
use crate::vm::{Call, Fun, JsResult, Module, Value};

/// Gives a module its `import.meta`, where its text speaks of that.
pub(crate) fn placed(module: Module<'_>, uses_meta: bool) -> JsResult<Module<'_>> {
    if uses_meta {
        let meta = module.meta()?;
        meta.ctx().set_functions(&meta, &[Fun::new(c"resolve", 1, resolve)])?;
    }
    Ok(module)
}

fn resolve<'js>(call: &Call<'js>) -> JsResult<Value<'js>> {
    let ctx = call.ctx();
    let base = ctx.caller_file(1).unwrap_or_else(|| Host::of(ctx).source.entry().to_owned());
    let resolved = crate::resolve::resolve_place(&base, &call.arg(0).to_string()?);
    resolved.map(|name| ctx.string(&name)).map_err(|problem| throw(ctx, &problem))
}
