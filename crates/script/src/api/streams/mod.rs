//! The module `k6/experimental/streams`: the Streams Standard (<https://streams.spec.whatwg.org>) as far as k6 has it. All of it is
//! JavaScript that is read when it is imported.
//!
//! Absent, as in k6: byte streams, `tee`, pipes, transforms, iteration, and signals.

use crate::host::Host;
use crate::vm::{Ctx, JsResult};

pub(super) fn exports(ctx: Ctx<'_>) -> JsResult<super::Exports<'_>> {
    let library = Host::of(ctx).kept(ctx, "streams", || {
        let common = ctx.evaluate(include_str!("common.js"))?.call(&ctx.undefined(), &[])?;
        let module = ctx.object();
        for source in [include_str!("readable.js"), include_str!("writable.js")] {
            ctx.evaluate(source)?.call(&ctx.undefined(), &[&common, &module])?;
        }
        module.set("CountQueuingStrategy", common.get("CountQueuingStrategy")?)?;
        Ok(module)
    })?;
    super::exports_of(library)
}
