//! The module `k6/encoding`: Base64; and the globals `TextEncoder` and `TextDecoder`.

use std::io::Read;

use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

use base64::read::DecoderReader;
use base64::write::EncoderStringWriter;

use super::by_pieces;
use crate::host::Host;
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
    let coding = coding(&call.arg(1))?;
    let mut writer = EncoderStringWriter::new(&coding);
    // A string takes everything.
    by_pieces(ctx, &bytes, |piece| drop(std::io::Write::write_all(&mut writer, piece)))?;
    Ok(ctx.string(&writer.into_inner()))
}

fn decode<'js>(call: &Call<'js>) -> JsResult<Value<'js>> {
    let ctx = call.ctx();
    let text = call.arg(0).to_string()?;
    let text: String = text.chars().filter(|letter| !matches!(letter, '\r' | '\n')).collect();
    let bytes = decoded(ctx, &text, &coding(&call.arg(1))?)?;
    match call.arg(2).as_text().as_deref() {
        Some("s") => Ok(ctx.string(&lossy_text(ctx, &bytes)?)),
        _ => ctx.array_buffer(&bytes),
    }
}

fn decoded(ctx: Ctx<'_>, text: &str, coding: &GeneralPurpose) -> JsResult<Vec<u8>> {
    let mut reader = DecoderReader::new(text.as_bytes(), coding);
    let mut bytes = Vec::new();
    loop {
        let read = reader.by_ref().take(DECODED_PIECE_BYTES).read_to_end(&mut bytes);
        match read {
            Ok(0) => return Ok(bytes),
            Ok(_) => ctx.give_way()?,
            Err(error) => return Err(ctx.throw_error(&format!("illegal base64 data: {error}"))),
        }
    }
}

/// Bytes as text, with U+FFFD for what is none.
fn lossy_text(ctx: Ctx<'_>, bytes: &[u8]) -> JsResult<String> {
    let (mut text, mut looked_bytes) = (String::with_capacity(bytes.len()), 0);
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        if !chunk.invalid().is_empty() {
            text.push(char::REPLACEMENT_CHARACTER);
        }
        if text.len() - looked_bytes >= DECODED_PIECE_BYTES as usize {
            looked_bytes = text.len();
            ctx.give_way()?;
        }
    }
    Ok(text)
}

/// Decoded in less than a millisecond.
const DECODED_PIECE_BYTES: u64 = 128 * 1024;

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
    let classes = Host::of(ctx).kept(ctx, "text coders", || {
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
        Ok(text) => Ok(ctx.string(text)),
        Err(_) if is_fatal => Err(ctx.throw_type("the encoded data was not valid utf-8")),
        Err(_) => Ok(ctx.string(&lossy_text(ctx, &bytes)?)),
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
