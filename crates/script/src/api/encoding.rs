//! The module `k6/encoding`: Base64; and the globals `TextEncoder` and `TextDecoder`.

use base64::Engine;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

use crate::vm::{Call, Ctx, Fun, JsResult, Value};

pub(super) fn exports(ctx: Ctx<'_>) -> JsResult<super::Exports<'_>> {
    super::exports_of_functions(ctx, FUNCTIONS)
}

/// Makes the text coders globals, when they are first asked for.
pub(super) fn install(ctx: Ctx<'_>) -> JsResult<()> {
    let global = ctx.global();
    for getter in [Fun::new(c"TextEncoder", 0, text_encoder), Fun::new(c"TextDecoder", 0, text_decoder)] {
        global.define_getter(getter.text(), ctx.function(&getter)?)?;
    }
    Ok(())
}

const FUNCTIONS: &[Fun] = &[Fun::new(c"b64encode", 2, encode), Fun::new(c"b64decode", 3, decode)];

fn encode<'js>(call: &Call<'js>) -> JsResult<Value<'js>> {
    let ctx = call.ctx();
    let bytes = super::bytes_of(&call.arg(0))?;
    Ok(ctx.string(&coding(&call.arg(1))?.encode(bytes)))
}

fn decode<'js>(call: &Call<'js>) -> JsResult<Value<'js>> {
    let ctx = call.ctx();
    let text = call.arg(0).to_string()?;
    let text: String = text.chars().filter(|letter| !matches!(letter, '\r' | '\n')).collect();
    let bytes = coding(&call.arg(1))?.decode(text);
    let bytes = bytes.map_err(|error| ctx.throw_error(&format!("illegal base64 data: {error}")))?;
    match call.arg(2).as_text().as_deref() {
        Some("s") => Ok(ctx.string(&String::from_utf8_lossy(&bytes))),
        _ => ctx.array_buffer(&bytes),
    }
}

fn coding(name: &Value<'_>) -> JsResult<GeneralPurpose> {
    let strict = GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::RequireCanonical);
    let raw = GeneralPurposeConfig::new()
        .with_encode_padding(false)
        .with_decode_padding_mode(DecodePaddingMode::RequireNone);
    let (standard, url) = (base64::alphabet::STANDARD, base64::alphabet::URL_SAFE);
    Ok(match name.as_text().as_deref() {
        Some("rawstd") => GeneralPurpose::new(&standard, raw),
        Some("url") => GeneralPurpose::new(&url, strict),
        Some("rawurl") => GeneralPurpose::new(&url, raw),
        _ => GeneralPurpose::new(&standard, strict),
    })
}

fn text_encoder<'js>(call: &Call<'js>) -> JsResult<Value<'js>> {
    coder(call.ctx(), "TextEncoder")
}

fn text_decoder<'js>(call: &Call<'js>) -> JsResult<Value<'js>> {
    coder(call.ctx(), "TextDecoder")
}

/// Both classes are made together, from the two native conversions.
fn coder<'js>(ctx: Ctx<'js>, name: &str) -> JsResult<Value<'js>> {
    let classes = ctx.host().kept(ctx, "text coders", || {
        let make = ctx.evaluate(CODERS)?;
        let to_bytes = ctx.function(&Fun::new(c"encode", 1, |call: &Call<'_>| {
            call.ctx().array_buffer(call.arg(0).to_text()?.as_bytes())
        }))?;
        let to_text = ctx.function(&Fun::new(c"decode", 2, text_of_bytes))?;
        make.call(&ctx.undefined(), &[&to_bytes, &to_text])
    })?;
    classes.get(name)
}

fn text_of_bytes<'js>(call: &Call<'js>) -> JsResult<Value<'js>> {
    let (ctx, is_fatal) = (call.ctx(), call.arg(1).is_truthy());
    let bytes = call.arg(0).bytes().unwrap_or_default();
    match std::str::from_utf8(&bytes) {
        Err(_) if is_fatal => Err(ctx.throw_type("the encoded data was not valid utf-8")),
        _ => Ok(ctx.string(&String::from_utf8_lossy(&bytes))),
    }
}

const CODERS: &str = "(function(toBytes, toText) {
  class TextEncoder {
    get encoding() { return 'utf-8'; }
    encode(text = '') { return new Uint8Array(toBytes(text)); }
  }
  class TextDecoder {
    constructor(label = 'utf-8', options = {}) {
      label = toText(toBytes(label));
      if (!/^(unicode-1-1-)?utf-?8$/i.test(label)) throw new RangeError('unsupported encoding: ' + label);
      this.encoding = 'utf-8'; this.fatal = !!options.fatal; this.ignoreBOM = !!options.ignoreBOM;
    }
    decode(data) {
      const text = data === undefined ? '' : toText(data, this.fatal);
      return !this.ignoreBOM && text.charCodeAt(0) === 0xFEFF ? text.slice(1) : text;
    }
  }
  return { TextEncoder, TextDecoder };
})";
