//! CommonJS: files without `import` and `export`, and `require`.

use crate::api;
use crate::error::throw;
use crate::host::Host;
use crate::resolve::resolve;
use crate::vm::{Call, Ctx, Fun, JsResult, Module, Value};

use super::load::{Loaded, load};

/// Makes `require` a global.
pub(crate) fn install(ctx: Ctx<'_>) -> JsResult<()> {
    ctx.set_functions(&ctx.global(), &[Fun::new(c"require", 1, require)])
}

/// Runs a CommonJS file once; gives its `module.exports`.
pub(crate) fn run<'js>(ctx: Ctx<'js>, name: &str, function: &Module<'js>) -> JsResult<Value<'js>> {
    let kept = format!("require {name}");
    if let Some(exports) = Host::of(ctx).find_kept(ctx, &kept) {
        return Ok(exports);
    }
    let (module, exports) = (ctx.object(), ctx.object());
    module.set("exports", exports.clone())?;
    // Files that require each other see what the other has exported so far.
    Host::of(ctx).keep(ctx, &kept, exports.clone());
    let require = ctx.global().get("require")?;
    function.run()?.call(&exports, &[&module, &exports, &require, &ctx.global()])?;
    let exports = module.get("exports")?;
    Host::of(ctx).keep(ctx, &kept, exports.clone());
    Ok(exports)
}

/// What an ES module sees of a CommonJS one: `default`, and its members by name.
pub(crate) fn as_module<'js>(ctx: Ctx<'js>, exports: &Value<'js>) -> JsResult<api::Exports<'js>> {
    let is_transpiled = exports.is_object() && exports.get("__esModule")?.is_truthy();
    let mut all = Vec::new();
    if exports.is_object() {
        for key in exports.keys()? {
            all.push((key.text(), exports.get_key(&key)?));
        }
    }
    if !is_transpiled || !all.iter().any(|(name, _)| name == "default") {
        all.retain(|(name, _)| name != "default");
        all.push(("default".to_owned(), exports.clone()));
    }
    let _ = ctx;
    Ok(all)
}

fn require<'js>(call: &Call<'js>) -> JsResult<Value<'js>> {
    let ctx = call.ctx();
    Host::of(ctx).require_init(ctx, "require()")?;
    let specifier = call.arg(0).to_string()?;
    let base = ctx.caller_file(1).unwrap_or_else(|| Host::of(ctx).source.entry().to_owned());
    let name = resolve(&base, &specifier).map_err(|problem| throw(ctx, &problem))?;
    if api::is_native(&name) {
        return native(ctx, &name);
    }
    match load(&Host::of(ctx).source, ctx, &name)? {
        Loaded::Common(function) => run(ctx, &name, &function),
        Loaded::Module(module) => {
            module.run()?;
            while let Some(job) = ctx.run_job() {
                job?;
            }
            module.namespace()
        }
    }
}

/// A native module as `import` gives its default export: the same object, so that what one file changes the others see.
fn native<'js>(ctx: Ctx<'js>, name: &str) -> JsResult<Value<'js>> {
    let default = api::instantiate(ctx, name)?.into_iter().find(|(export, _)| export == "default");
    Ok(default.map_or_else(|| ctx.undefined(), |(_, object)| object))
}
