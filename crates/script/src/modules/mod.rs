//! Where a script's imports lead: ES modules, CommonJS, and the native modules of `api`.

mod common;
mod load;
mod meta;

use crate::api;
use crate::error::throw;
use crate::host::Host;
use crate::resolve::resolve;
use crate::vm::{Ctx, Imported, JsResult, ModuleLoader};

pub(crate) use common::{install, run as run_common};
pub(crate) use load::{Loaded, load};

impl ModuleLoader for Host {
    fn resolve_import(&self, ctx: Ctx<'_>, base: &str, name: &str) -> JsResult<String> {
        let resolved = resolve(base, name);
        self.source.note_import(base, name, resolved.as_ref().map_or("", String::as_str));
        resolved
            .map(|resolved| self.source.with_unknown(base, resolved))
            .map_err(|problem| throw(ctx, &problem))
    }

    /// Behind a `#` are names that the module may lack.
    fn import<'js>(&self, ctx: Ctx<'js>, name: &str) -> JsResult<Imported<'js>> {
        let (module, names) = name.split_once('#').unwrap_or((name, ""));
        let mut exports = if api::is_native(module) {
            api::instantiate(ctx, module)?
        } else {
            match load(&self.source, ctx, module)? {
                Loaded::Module(module) => return Ok(Imported::Module(module)),
                Loaded::Common(function) => {
                    let exports = common::run(ctx, module, &function)?;
                    common::as_module(ctx, &exports)?
                }
            }
        };
        for name in names.split('#').filter(|name| !name.is_empty()) {
            if !exports.iter().any(|(known, _)| known == name) {
                exports.push((name.to_owned(), ctx.undefined()));
            }
        }
        Ok(Imported::Exports(exports))
    }
}
