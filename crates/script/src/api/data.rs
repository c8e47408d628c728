//! The module `k6/data`: SharedArray, whose data exists once per process.

use std::sync::Arc;

use crate::host::Host;
use crate::program::ArrayData;
use crate::vm::{Call, Ctx, Fun, JsResult, Value};

pub(super) fn exports(ctx: Ctx<'_>) -> JsResult<super::Exports<'_>> {
    let class = ctx.constructor(&Fun::new(c"SharedArray", 2, make), &ctx.object())?;
    let object = ctx.object();
    object.set("SharedArray", class.clone())?;
    Ok(vec![("SharedArray".to_owned(), class), ("default".to_owned(), object)])
}

/// What a script holds: an index into the shared data.
#[derive(Debug)]
struct Elements(Arc<ArrayData>);

fn make<'js>(call: &Call<'js>) -> JsResult<Value<'js>> {
    let (ctx, name, function) = (call.ctx(), call.arg(0).to_string()?, call.arg(1));
    let host = Host::of(ctx);
    host.require_init(ctx, "new SharedArray")?;
    if name.is_empty() {
        return Err(ctx.throw_type("empty name provided to SharedArray's constructor"));
    }
    if !function.is_function() {
        return Err(
            ctx.throw_type("a function is expected as the second argument of SharedArray's constructor")
        );
    }
    if function.is_async_function() {
        return Err(
            ctx.throw_type("SharedArray constructor does not support async functions as second argument")
        );
    }
    let data = match host.source.array(&name) {
        Some(data) => data,
        None => host.source.keep_array(&name, gather(&function.call(&ctx.undefined(), &[])?)?),
    };
    array_object(ctx, data)
}

/// What a script sees of shared elements.
pub(super) fn array_object(ctx: Ctx<'_>, data: Arc<ArrayData>) -> JsResult<Value<'_>> {
    let make_proxy = Host::of(ctx).kept(ctx, "shared array", || ctx.evaluate(PROXY))?;
    let length = ctx.number(data.0.len() as f64);
    let holder = ctx.native(&ctx.object(), Box::new(Elements(data)))?;
    make_proxy.call(&ctx.undefined(), &[&holder, &length, &ctx.function(&Fun::new(c"element", 2, element))?])
}

fn gather(array: &Value<'_>) -> JsResult<ArrayData> {
    if !array.is_array() {
        return Err(array.ctx().throw_type("only arrays can be made into SharedArray"));
    }
    let json =
        |element: Value<'_>| Ok(element.to_json()?.unwrap_or_else(|| "null".to_owned()).into_boxed_str());
    Ok(ArrayData(array.elements()?.into_iter().map(json).collect::<JsResult<_>>()?))
}

/// An element: parsed and frozen anew each time, as in k6.
fn element<'js>(call: &Call<'js>) -> JsResult<Value<'js>> {
    let (ctx, holder) = (call.ctx(), call.arg(0));
    let idx = call.arg(1).to_number()? as usize;
    let json = holder.opaque::<Elements>().and_then(|elements| elements.0.0.get(idx));
    let Some(json) = json else { return Ok(ctx.undefined()) };
    let value = ctx.parse_json(json)?;
    freeze(&value)?;
    Ok(value)
}

fn freeze(value: &Value<'_>) -> JsResult<()> {
    if !value.is_object() {
        return Ok(());
    }
    for key in value.keys()? {
        freeze(&value.get_key(&key)?)?;
    }
    value.freeze()
}

/// An array-like whose elements are asked for one by one, and that cannot be written to.
const PROXY: &str = "(function(holder, length, element) {
  const refuse = () => { throw new TypeError('SharedArray is immutable'); };
  const isIndex = (key) => typeof key === 'string' && /^(0|[1-9][0-9]*)$/.test(key);
  return new Proxy([], {
    get(target, key, receiver) {
      if (key === 'length') return length;
      if (isIndex(key)) return element(holder, Number(key));
      return Reflect.get(target, key, receiver);
    },
    has(target, key) { return isIndex(key) ? Number(key) < length : key in target; },
    ownKeys() { const keys = []; for (let i = 0; i < length; i++) keys.push(String(i)); keys.push('length'); return keys; },
    getOwnPropertyDescriptor(target, key) {
      if (isIndex(key) && Number(key) < length) return { value: element(holder, Number(key)), enumerable: true, configurable: true, writable: false };
      return Reflect.getOwnPropertyDescriptor(target, key);
    },
    set: refuse, deleteProperty: refuse, defineProperty: refuse, setPrototypeOf: refuse,
  });
})";
