//! `crypto.subtle`: WebCrypto as k6 has it. Every function gives a promise, settled when it is given.
//!
//! Never: waits for anything; what takes long, such as making a large key, holds this user's thread.

mod aes;
mod algorithm;
mod ec;
mod error;
mod evp;
mod hmac;
mod jwk;
mod kdf;
mod key;
mod rsa;
mod usage;

use algorithm::{Hash, Name};
use error::{Fault, Outcome};
use key::{CryptoKey, Kind, Material};
use usage::{Format, Usage, Way};

use super::by_pieces;
use super::random::random;
use crate::host::Host;
use crate::vm::{Call, Ctx, Fun, JsResult, Value};

/// `crypto.subtle`, made when it is first asked for.
pub(super) fn subtle<'js>(call: &Call<'js>) -> JsResult<Value<'js>> {
    Host::of(call.ctx()).kept(call.ctx(), "subtle", || {
        let subtle = call.ctx().object();
        call.ctx().set_functions(&subtle, FUNCTIONS)?;
        Ok(subtle)
    })
}

const FUNCTIONS: &[Fun] = &[
    Fun::new(c"decrypt", 3, |call: &Call<'_>| promise(call.ctx(), crypt(call, Way::Decrypt))),
    Fun::new(c"deriveBits", 3, |call: &Call<'_>| promise(call.ctx(), derive_bits(call))),
    Fun::new(c"deriveKey", 5, |call: &Call<'_>| promise(call.ctx(), derive_key(call))),
    Fun::new(c"digest", 2, |call: &Call<'_>| promise(call.ctx(), digest(call))),
    Fun::new(c"encrypt", 3, |call: &Call<'_>| promise(call.ctx(), crypt(call, Way::Encrypt))),
    Fun::new(c"exportKey", 2, |call: &Call<'_>| promise(call.ctx(), export_key(call))),
    Fun::new(c"generateKey", 3, |call: &Call<'_>| promise(call.ctx(), generate_key(call))),
    Fun::new(c"importKey", 5, |call: &Call<'_>| promise(call.ctx(), import_key(call))),
    Fun::new(c"sign", 3, |call: &Call<'_>| promise(call.ctx(), sign(call))),
    Fun::new(c"unwrapKey", 7, |call: &Call<'_>| not_in_k6(call, "unwrapKey")),
    Fun::new(c"verify", 4, |call: &Call<'_>| promise(call.ctx(), verify(call))),
    Fun::new(c"wrapKey", 4, |call: &Call<'_>| not_in_k6(call, "wrapKey")),
];

/// A promise of what an operation gave.
fn promise<'js>(ctx: Ctx<'js>, outcome: Outcome<Value<'js>>) -> JsResult<Value<'js>> {
    super::promised(ctx, outcome.map_err(|fault| ctx.throw_value(fault.into_value(ctx))))
}

fn not_in_k6<'js>(call: &Call<'js>, name: &str) -> JsResult<Value<'js>> {
    Err(call.ctx().throw_error(&format!("`crypto.subtle.{name}` is not supported, as in k6")))
}

fn digest<'js>(call: &Call<'js>) -> Outcome<Value<'js>> {
    let data = algorithm::data(&call.arg(1))?;
    let mut hasher = Hash::of(&call.arg(0))?.hasher();
    by_pieces(call.ctx(), &data, |piece| hasher.update(piece))?;
    Ok(call.ctx().array_buffer(hasher.finish().as_ref())?)
}

fn crypt<'js>(call: &Call<'js>, way: Way) -> Outcome<Value<'js>> {
    let (params, key, data) = (call.arg(0), call.arg(1), algorithm::data(&call.arg(2))?);
    let (operation, usage) = match way {
        Way::Encrypt => ("encrypt", Usage::Encrypt),
        Way::Decrypt => ("decrypt", Usage::Decrypt),
    };
    let name = Name::asked(&params, operation, CIPHERS)?;
    let bytes = match &CryptoKey::usable(&key, name, usage)?.material {
        Material::Secret(key) => aes::crypt(name, &params, key, &data, way)?,
        Material::Rsa(hash, key) => key.crypt(way, *hash, &params, &data)?,
        Material::Hmac(..) | Material::Ec(_) => return Err(wrong_key()),
    };
    Ok(call.ctx().array_buffer(&bytes)?)
}

fn sign<'js>(call: &Call<'js>) -> Outcome<Value<'js>> {
    let (params, key, data) = (call.arg(0), call.arg(1), algorithm::data(&call.arg(2))?);
    let name = Name::asked(&params, "sign", SIGNERS)?;
    let bytes = match &CryptoKey::usable(&key, name, Usage::Sign)?.material {
        Material::Hmac(hash, key) => hmac::sign(call.ctx(), *hash, key, &data)?,
        Material::Ec(key) => key.sign(Hash::param(&params)?, &data)?,
        Material::Rsa(hash, key) => key.sign(*hash, rsa::padding(name, &params)?, &data)?,
        Material::Secret(_) => return Err(wrong_key()),
    };
    Ok(call.ctx().array_buffer(&bytes)?)
}

fn verify<'js>(call: &Call<'js>) -> Outcome<Value<'js>> {
    let (params, key) = (call.arg(0), call.arg(1));
    let (signature, data) = (algorithm::data(&call.arg(2))?, algorithm::data(&call.arg(3))?);
    let name = Name::asked(&params, "verify", SIGNERS)?;
    let is_valid = match &CryptoKey::usable(&key, name, Usage::Verify)?.material {
        Material::Hmac(hash, key) => hmac::verify(call.ctx(), *hash, key, &signature, &data)?,
        Material::Ec(key) => key.verify(Hash::param(&params)?, &signature, &data)?,
        Material::Rsa(hash, key) => key.verify(*hash, rsa::padding(name, &params)?, &signature, &data)?,
        Material::Secret(_) => return Err(wrong_key()),
    };
    Ok(call.ctx().bool(is_valid))
}

fn generate_key<'js>(call: &Call<'js>) -> Outcome<Value<'js>> {
    let (ctx, params, extractable) = (call.ctx(), call.arg(0), call.arg(1).is_truthy());
    let usages = Usage::listed(&call.arg(2))?;
    let name = Name::asked(&params, "generateKey", GENERATED)?;
    let material = match name {
        Name::Ecdh | Name::Ecdsa => {
            let (private, public) = ec::generate(name, &params, &usages)?;
            let materials = (Material::Ec(private), Material::Ec(public));
            return pair(ctx, name, materials, ec::usages(name), &Asked { extractable, usages });
        }
        Name::RsaPkcs1 | Name::RsaPss | Name::RsaOaep => {
            let (private, public, hash) = rsa::generate(ctx, name, &params, &usages)?;
            let materials = (Material::Rsa(hash, private), Material::Rsa(hash, public));
            return pair(ctx, name, materials, rsa::usages(name), &Asked { extractable, usages });
        }
        Name::Hmac => hmac::generate(ctx, &params, &usages)?,
        _ => aes::generate(ctx, name, &params, &usages)?,
    };
    CryptoKey { name, extractable, usages, material }.given(ctx)
}

/// What a script wants of the keys that it generates.
struct Asked {
    extractable: bool,
    usages: Vec<Usage>,
}

/// A private key and its public one, which may always be exported. Each gets those of the usages that are its own.
fn pair<'js>(
    ctx: Ctx<'js>,
    name: Name,
    materials: (Material, Material),
    known: (&[Usage], &[Usage]),
    asked: &Asked,
) -> Outcome<Value<'js>> {
    let own = |known: &[Usage]| asked.usages.iter().copied().filter(|usage| known.contains(usage)).collect();
    let private =
        CryptoKey { name, extractable: asked.extractable, usages: own(known.0), material: materials.0 };
    let public = CryptoKey { name, extractable: true, usages: own(known.1), material: materials.1 };
    let pair = ctx.object();
    pair.set("privateKey", private.into_value(ctx)?)?;
    pair.set("publicKey", public.into_value(ctx)?)?;
    Ok(pair)
}

fn import_key<'js>(call: &Call<'js>) -> Outcome<Value<'js>> {
    let (data, params, extractable) = (call.arg(1), call.arg(2), call.arg(3).is_truthy());
    let usages = Usage::listed(&call.arg(4))?;
    let format = call.arg(0).to_string()?;
    let unknown =
        || Fault::Implementation(format!("`{format}` is no format: there are raw, pkcs8, spki and jwk"));
    let format = Format::named(&format).ok_or_else(unknown)?;
    let name = Name::asked(&params, "importKey", &Name::ALL)?;
    let material = match name {
        Name::Hmac => hmac::import(format, &data, &params, &usages)?,
        Name::Ecdh | Name::Ecdsa => Material::Ec(ec::import(format, &data, &params)?),
        Name::RsaPkcs1 | Name::RsaPss | Name::RsaOaep => {
            let hash = Hash::param(&params)?;
            Material::Rsa(hash, rsa::import(name, format, &data)?)
        }
        Name::Pbkdf2 => kdf::import(format, &data, extractable, &usages)?,
        _ => aes::import(name, format, &data, &usages)?,
    };
    CryptoKey { name, extractable, usages, material }.given(call.ctx())
}

fn export_key<'js>(call: &Call<'js>) -> Outcome<Value<'js>> {
    let (ctx, format, value) = (call.ctx(), call.arg(0).to_string()?, call.arg(1));
    let Some(key) = value.opaque::<CryptoKey>() else {
        return Err(Fault::Implementation("the key must be a CryptoKey".to_owned()));
    };
    if !key.extractable {
        return Err(Fault::InvalidAccess("the key is not extractable".to_owned()));
    }
    let format = Format::named(&format).ok_or_else(|| Format::refused(key.name))?;
    match &key.material {
        Material::Rsa(_, rsa) => rsa.export(ctx, key.name, format),
        Material::Ec(ec) => ec.export(ctx, format),
        Material::Secret(bytes) | Material::Hmac(_, bytes) => match format {
            Format::Raw => Ok(ctx.array_buffer(bytes)?),
            Format::Jwk => Ok(key.secret_jwk(ctx, bytes)?),
            Format::Pkcs8 | Format::Spki => Err(Format::refused(key.name)),
        },
    }
}

fn derive_bits<'js>(call: &Call<'js>) -> Outcome<Value<'js>> {
    let (params, base) = (call.arg(0), call.arg(1));
    let name = Name::asked(&params, "deriveBits", &[Name::Ecdh, Name::Pbkdf2])?;
    let length = call.arg(2);
    let bits = if length.is_nullish() { 0 } else { algorithm::bounded("length", length.to_number()?)? };
    if bits == 0 || !bits.is_multiple_of(8) {
        return Err(Fault::Operation(format!("{bits} bits cannot be derived: only whole bytes")));
    }
    let bytes = match &CryptoKey::usable(&base, name, Usage::DeriveBits)?.material {
        Material::Ec(key) => {
            let other = algorithm::param(&params, "public")?;
            let other = other.as_ref().and_then(|value| value.opaque::<CryptoKey>());
            key.agree(public_point(other)?, bits)?
        }
        Material::Secret(password) => kdf::Params::of(&params)?.derive(call.ctx(), password, bits)?,
        Material::Hmac(..) | Material::Rsa(..) => return Err(wrong_key()),
    };
    Ok(call.ctx().array_buffer(&bytes)?)
}

/// The other side's key of ECDH.
fn public_point(key: Option<&CryptoKey>) -> Outcome<&ec::Key> {
    let key = key.ok_or_else(|| Fault::Type("the algorithm's `public` must be a CryptoKey".to_owned()))?;
    match &key.material {
        Material::Ec(point) if key.name == Name::Ecdh && key.kind() == Kind::Public => Ok(point),
        _ => Err(Fault::InvalidAccess("the algorithm's `public` must be a public key of ECDH".to_owned())),
    }
}

/// As in k6, from a password to a key of AES.
fn derive_key<'js>(call: &Call<'js>) -> Outcome<Value<'js>> {
    let (params, base, derived, extractable) =
        (call.arg(0), call.arg(1), call.arg(2), call.arg(3).is_truthy());
    let usages = Usage::listed(&call.arg(4))?;
    let name = Name::asked(&params, "deriveKey", &[Name::Pbkdf2])?;
    let derived_name = Name::asked(&derived, "deriveKey", AES)?;
    let how = kdf::Params::of(&params)?;
    let bits = algorithm::count(&derived, "length")?;
    let bits = bits.ok_or_else(|| Fault::Operation("the derived key's `length` is missing".to_owned()))?;
    let Material::Secret(password) = &CryptoKey::usable(&base, name, Usage::DeriveKey)?.material else {
        return Err(wrong_key());
    };
    Usage::check(&usages, aes::known_usages(derived_name))?;
    let material = aes::key_of(how.derive(call.ctx(), password, bits)?)?;
    CryptoKey { name: derived_name, extractable, usages, material }.given(call.ctx())
}

fn wrong_key() -> Fault {
    Fault::InvalidAccess("the key is not of this algorithm".to_owned())
}

const AES: &[Name] = &[Name::AesCbc, Name::AesCtr, Name::AesGcm, Name::AesKw];
const CIPHERS: &[Name] = &[Name::AesCbc, Name::AesCtr, Name::AesGcm, Name::RsaOaep];
const SIGNERS: &[Name] = &[Name::Hmac, Name::Ecdsa, Name::RsaPss, Name::RsaPkcs1];
/// Passwords alone are not.
const GENERATED: &[Name] = Name::ALL.split_at(Name::ALL.len() - 1).0;
