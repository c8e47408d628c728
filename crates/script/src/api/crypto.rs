//! The module `k6/crypto`: hashes, HMAC, random bytes; and the global `crypto`.

use std::cell::RefCell;

use ::hmac::{Hmac, KeyInit};
use aws_lc_rs::digest::{self, SHA1_FOR_LEGACY_USE_ONLY, SHA256, SHA384, SHA512, SHA512_256};
use aws_lc_rs::hmac::{self, HMAC_SHA1_FOR_LEGACY_USE_ONLY, HMAC_SHA256, HMAC_SHA384, HMAC_SHA512};
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE, URL_SAFE_NO_PAD};
use sha2::digest::{FixedOutput, Update};

use super::random::random;
use super::{by_pieces, hex};
use crate::host::Host;
use crate::vm::{Call, Ctx, Fun, JsResult, Value};

pub(super) fn exports(ctx: Ctx<'_>) -> JsResult<super::Exports<'_>> {
    super::exports_of_functions(ctx, FUNCTIONS)
}

/// Makes `crypto` a global: random values, and what `subtle` has.
pub(super) fn install(ctx: Ctx<'_>) -> JsResult<()> {
    let crypto = ctx.object();
    ctx.set_functions(
        &crypto,
        &[Fun::new(c"getRandomValues", 1, random_values), Fun::new(c"randomUUID", 0, random_uuid)],
    )?;
    crypto.define_getter("subtle", ctx.function(&Fun::new(c"subtle", 0, super::subtle::subtle))?)?;
    ctx.global().set("crypto", crypto)
}

const FUNCTIONS: &[Fun] = &[
    Fun::new(c"md4", 2, |call: &Call<'_>| hash(call, "md4")),
    Fun::new(c"md5", 2, |call: &Call<'_>| hash(call, "md5")),
    Fun::new(c"sha1", 2, |call: &Call<'_>| hash(call, "sha1")),
    Fun::new(c"sha256", 2, |call: &Call<'_>| hash(call, "sha256")),
    Fun::new(c"sha384", 2, |call: &Call<'_>| hash(call, "sha384")),
    Fun::new(c"sha512", 2, |call: &Call<'_>| hash(call, "sha512")),
    Fun::new(c"sha512_224", 2, |call: &Call<'_>| hash(call, "sha512_224")),
    Fun::new(c"sha512_256", 2, |call: &Call<'_>| hash(call, "sha512_256")),
    Fun::new(c"ripemd160", 2, |call: &Call<'_>| hash(call, "ripemd160")),
    Fun::new(c"hmac", 4, hmac_of),
    Fun::new(c"createHash", 1, create_hash),
    Fun::new(c"createHMAC", 2, create_hmac),
    Fun::new(c"randomBytes", 1, random_bytes),
    Fun::new(c"hexEncode", 1, |call: &Call<'_>| {
        let (ctx, bytes) = (call.ctx(), super::bytes_of(&call.arg(0))?);
        let mut text = String::with_capacity(2 * bytes.len());
        by_pieces(ctx, &bytes, |piece| text.push_str(&hex(piece)))?;
        Ok(ctx.string(&text))
    }),
];

/// A hash or HMAC that grows: what a script holds of it.
struct Hasher(RefCell<Box<dyn Growing>>);

trait Growing {
    fn update(&mut self, bytes: &[u8]);
    /// Of all bytes until now; more may follow.
    fn digest(&self) -> Vec<u8>;
}

impl Growing for digest::Context {
    fn update(&mut self, bytes: &[u8]) {
        self.update(bytes);
    }

    fn digest(&self) -> Vec<u8> {
        self.clone().finish().as_ref().to_vec()
    }
}

impl Growing for hmac::Context {
    fn update(&mut self, bytes: &[u8]) {
        self.update(bytes);
    }

    fn digest(&self) -> Vec<u8> {
        self.clone().sign().as_ref().to_vec()
    }
}

/// A hash or HMAC that `aws_lc_rs` does not have.
struct Small<D>(D);

impl<D: Update + FixedOutput + Clone> Growing for Small<D> {
    fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    fn digest(&self) -> Vec<u8> {
        self.0.clone().finalize_fixed().to_vec()
    }
}

fn hasher(name: &str) -> Option<Box<dyn Growing>> {
    fn small<D: Update + FixedOutput + Clone + Default + 'static>() -> Box<dyn Growing> {
        Box::new(Small(D::default()))
    }
    Some(match name {
        "md4" => small::<md4::Md4>(),
        "md5" => small::<md5::Md5>(),
        "sha1" => Box::new(digest::Context::new(&SHA1_FOR_LEGACY_USE_ONLY)),
        "sha256" => Box::new(digest::Context::new(&SHA256)),
        "sha384" => Box::new(digest::Context::new(&SHA384)),
        "sha512" => Box::new(digest::Context::new(&SHA512)),
        "sha512_224" => small::<sha2::Sha512_224>(),
        "sha512_256" => Box::new(digest::Context::new(&SHA512_256)),
        "ripemd160" => small::<ripemd::Ripemd160>(),
        _ => return None,
    })
}

fn mac(name: &str, key: &[u8]) -> Option<Box<dyn Growing>> {
    fn small<M: Update + FixedOutput + KeyInit + Clone + 'static>(key: &[u8]) -> Option<Box<dyn Growing>> {
        // An HMAC takes a key of any length.
        M::new_from_slice(key).ok().map(|mac| Box::new(Small(mac)) as Box<dyn Growing>)
    }
    let algorithm = match name {
        "md4" => return small::<Hmac<md4::Md4>>(key),
        "md5" => return small::<Hmac<md5::Md5>>(key),
        "sha1" => HMAC_SHA1_FOR_LEGACY_USE_ONLY,
        "sha256" => HMAC_SHA256,
        "sha384" => HMAC_SHA384,
        "sha512" => HMAC_SHA512,
        "sha512_224" => return small::<Hmac<sha2::Sha512_224>>(key),
        "sha512_256" => return small::<Hmac<sha2::Sha512_256>>(key),
        "ripemd160" => return small::<Hmac<ripemd::Ripemd160>>(key),
        _ => return None,
    };
    Some(Box::new(hmac::Context::with_key(&hmac::Key::new(algorithm, key))))
}

fn hash<'js>(call: &Call<'js>, name: &str) -> JsResult<Value<'js>> {
    let bytes = super::bytes_of(&call.arg(0))?;
    let mut hasher = hasher(name).ok_or_else(|| unknown(call.ctx(), name))?;
    by_pieces(call.ctx(), &bytes, |piece| hasher.update(piece))?;
    encoded(&call.arg(1), &hasher.digest())
}

/// The HMAC of this name with the second argument as its key. RFC 2104 2: of a long key its hash is used.
fn mac_of(call: &Call<'_>, name: &str) -> JsResult<Box<dyn Growing>> {
    let (ctx, mut key) = (call.ctx(), super::bytes_of(&call.arg(1))?);
    if key.len() > KEY_BYTES_MAX
        && let Some(mut hasher) = hasher(name)
    {
        by_pieces(ctx, &key, |piece| hasher.update(piece))?;
        key = hasher.digest();
    }
    mac(name, &key).ok_or_else(|| unknown(ctx, name))
}

fn hmac_of<'js>(call: &Call<'js>) -> JsResult<Value<'js>> {
    let name = call.arg(0).to_string()?;
    let mut mac = mac_of(call, &name)?;
    by_pieces(call.ctx(), &super::bytes_of(&call.arg(2))?, |piece| mac.update(piece))?;
    encoded(&call.arg(3), &mac.digest())
}

fn create_hash<'js>(call: &Call<'js>) -> JsResult<Value<'js>> {
    let name = call.arg(0).to_string()?;
    let hasher = hasher(&name).ok_or_else(|| unknown(call.ctx(), &name))?;
    hasher_object(call.ctx(), hasher)
}

fn create_hmac<'js>(call: &Call<'js>) -> JsResult<Value<'js>> {
    let name = call.arg(0).to_string()?;
    hasher_object(call.ctx(), mac_of(call, &name)?)
}

fn hasher_object<'js>(ctx: Ctx<'js>, state: Box<dyn Growing>) -> JsResult<Value<'js>> {
    let proto = Host::of(ctx).kept(ctx, "hasher prototype", || {
        let proto = ctx.object();
        ctx.set_functions(&proto, &[Fun::new(c"update", 1, update), Fun::new(c"digest", 1, digest)])?;
        Ok(proto)
    })?;
    ctx.native(&proto, Box::new(Hasher(RefCell::new(state))))
}

fn update<'js>(call: &Call<'js>) -> JsResult<Value<'js>> {
    let (this, bytes) = (call.this(), super::bytes_of(&call.arg(0))?);
    let Some(hasher) = this.opaque::<Hasher>() else {
        return Err(call.ctx().throw_type("`update` must be called on a hash"));
    };
    let mut hasher = hasher.0.borrow_mut();
    by_pieces(call.ctx(), &bytes, |piece| hasher.update(piece))?;
    Ok(call.ctx().undefined())
}

fn digest<'js>(call: &Call<'js>) -> JsResult<Value<'js>> {
    let this = call.this();
    let Some(hasher) = this.opaque::<Hasher>() else {
        return Err(call.ctx().throw_type("`digest` must be called on a hash"));
    };
    let bytes = hasher.0.borrow().digest();
    encoded(&call.arg(0), &bytes)
}

fn unknown(ctx: Ctx<'_>, name: &str) -> crate::vm::Thrown {
    ctx.throw_error(&format!("invalid algorithm: {name}"))
}

fn encoded<'js>(encoding: &Value<'js>, bytes: &[u8]) -> JsResult<Value<'js>> {
    let ctx = encoding.ctx();
    match encoding.as_text().as_deref() {
        Some("hex") => Ok(ctx.string(&hex(bytes))),
        Some("base64") => Ok(ctx.string(&STANDARD.encode(bytes))),
        Some("base64url") => Ok(ctx.string(&URL_SAFE.encode(bytes))),
        Some("base64rawurl") => Ok(ctx.string(&URL_SAFE_NO_PAD.encode(bytes))),
        Some("binary") => ctx.array_buffer(bytes),
        other => Err(ctx.throw_error(&format!("invalid output encoding: {}", other.unwrap_or_default()))),
    }
}

fn random_bytes<'js>(call: &Call<'js>) -> JsResult<Value<'js>> {
    let (ctx, count) = (call.ctx(), call.arg(0).to_number()?);
    if !(1.0..=RANDOM_BYTES_MAX).contains(&count) {
        return Err(ctx.throw_error("invalid size"));
    }
    ctx.array_buffer(&random(ctx, count as usize)?)
}

fn random_values<'js>(call: &Call<'js>) -> JsResult<Value<'js>> {
    let (ctx, array) = (call.ctx(), call.arg(0));
    let count = array.get("byteLength")?.to_number()?;
    if !(0.0..=RANDOM_VALUES_BYTES_MAX).contains(&count) {
        let text = format!("QuotaExceededError: {count} bytes are more than {RANDOM_VALUES_BYTES_MAX}");
        return Err(ctx.throw("RangeError", &text));
    }
    let bytes = random(ctx, count as usize)?;
    let view = ctx.global().get("Uint8Array")?.construct(&[
        &array.get("buffer")?,
        &array.get("byteOffset")?,
        &ctx.number(count),
    ])?;
    if view.write_bytes(&bytes).is_none() {
        return Err(ctx.throw_type("getRandomValues needs a typed array of integers"));
    }
    Ok(array)
}

fn random_uuid<'js>(call: &Call<'js>) -> JsResult<Value<'js>> {
    let mut bytes = random(call.ctx(), 16)?;
    // RFC 9562 5.4: version 4, variant 10.
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let hex = hex(&bytes);
    let parts = [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]];
    Ok(call.ctx().string(&parts.join("-")))
}

/// Web Cryptography API 10.1.1: more in one call is a QuotaExceededError.
const RANDOM_VALUES_BYTES_MAX: f64 = 65_536.0;

/// Longer than a block of any hash.
const KEY_BYTES_MAX: usize = 1024;

/// Most random bytes in one call.
const RANDOM_BYTES_MAX: f64 = 1e8;
