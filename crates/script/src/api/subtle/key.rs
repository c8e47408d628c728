//! `CryptoKey`: what a script holds of a key, and what it may be used for.
//!
//! Never: the key's bytes as a property; only `exportKey` gives them out, if the key may be exported.

use super::algorithm::{Hash, Name};
use super::error::{Fault, Outcome};
use super::usage::{Usage, usages};
use super::{ec, jwk, rsa};
use crate::host::Host;
use crate::vm::{Ctx, JsResult, Value};

/// A key.
pub(super) struct CryptoKey {
    pub(super) name: Name,
    pub(super) extractable: bool,
    pub(super) usages: Vec<Usage>,
    pub(super) material: Material,
}

/// What it is made of.
pub(super) enum Material {
    /// Of AES, or a password.
    Secret(Vec<u8>),
    Hmac(Hash, Vec<u8>),
    Rsa(Hash, rsa::Key),
    Ec(ec::Key),
}

/// Who may know it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Secret,
    Private,
    Public,
}

impl CryptoKey {
    /// The key that a value is, for an operation of its algorithm.
    pub(super) fn usable<'a>(value: &'a Value<'_>, name: Name, usage: Usage) -> Outcome<&'a Self> {
        let Some(key) = value.opaque::<Self>() else {
            let message = "the key must be a CryptoKey".to_owned();
            return Err(if value.is_object() { Fault::Type(message) } else { Fault::InvalidAccess(message) });
        };
        if key.name != name {
            let (own, asked) = (key.name.text(), name.text());
            return Err(Fault::InvalidAccess(format!("the key is of {own}, the algorithm is {asked}")));
        }
        if !key.usages.contains(&usage) {
            return Err(Fault::InvalidAccess(format!("the key is not to be used for `{}`", usage.text())));
        }
        Ok(key)
    }

    pub(super) fn kind(&self) -> Kind {
        match &self.material {
            Material::Secret(_) | Material::Hmac(..) => Kind::Secret,
            Material::Rsa(_, key) if key.is_private() => Kind::Private,
            Material::Ec(key) if key.is_private() => Kind::Private,
            Material::Rsa(..) | Material::Ec(_) => Kind::Public,
        }
    }

    /// What a script gets of a key that it generated; only a public one may be one that cannot be used.
    pub(super) fn given(self, ctx: Ctx<'_>) -> Outcome<Value<'_>> {
        if self.usages.is_empty() && self.kind() != Kind::Public {
            return Err(Fault::Syntax("a secret or private key needs usages".to_owned()));
        }
        Ok(self.into_value(ctx)?)
    }

    /// What a script gets of it.
    pub(super) fn into_value(self, ctx: Ctx<'_>) -> JsResult<Value<'_>> {
        let kind = match self.kind() {
            Kind::Secret => "secret",
            Kind::Private => "private",
            Kind::Public => "public",
        };
        let (extractable, algorithm, usages) =
            (self.extractable, self.algorithm(ctx)?, usages(ctx, &self.usages)?);
        let proto = Host::of(ctx).kept(ctx, "CryptoKey prototype", || Ok(ctx.object()))?;
        let value = ctx.native(&proto, Box::new(self))?;
        value.define("type", ctx.string(kind))?;
        value.define("extractable", ctx.bool(extractable))?;
        value.define("algorithm", algorithm)?;
        value.define("usages", usages)?;
        Ok(value)
    }

    /// The JWK of a secret key.
    pub(super) fn secret_jwk<'js>(&self, ctx: Ctx<'js>, bytes: &[u8]) -> JsResult<Value<'js>> {
        // RFC 7518 3.1, 5.1: `HS256`, `A128GCM`; CBC and CTR alone are WebCrypto's.
        let alg = match (&self.material, self.name) {
            (Material::Hmac(hash, _), _) => hmac_alg(*hash).to_owned(),
            (_, name) => format!("A{}{}", bytes.len() * 8, aes_mode(name)),
        };
        let jwk = jwk::object(ctx, &[("kty", "oct"), ("alg", &alg)], &[("k", bytes)])?;
        jwk.set("ext", ctx.bool(self.extractable))?;
        jwk.set("key_ops", usages(ctx, &self.usages)?)?;
        Ok(jwk)
    }

    fn algorithm<'js>(&self, ctx: Ctx<'js>) -> JsResult<Value<'js>> {
        let algorithm = ctx.object();
        let bits = |bytes: &Vec<u8>| ctx.number((bytes.len() * 8) as f64);
        algorithm.set("name", ctx.string(self.name.text()))?;
        match &self.material {
            Material::Secret(_) if self.name == Name::Pbkdf2 => {}
            Material::Secret(bytes) => algorithm.set("length", bits(bytes))?,
            Material::Hmac(hash, bytes) => {
                set_hash(&algorithm, *hash)?;
                algorithm.set("length", bits(bytes))?;
            }
            Material::Rsa(hash, key) => {
                algorithm.set("modulusLength", ctx.number(f64::from(key.modulus_bits())))?;
                set_hash(&algorithm, *hash)?;
            }
            Material::Ec(key) => algorithm.set("namedCurve", ctx.string(key.curve().text()))?,
        }
        Ok(algorithm)
    }
}

fn hmac_alg(hash: Hash) -> &'static str {
    match hash {
        Hash::Sha1 => "HS1",
        Hash::Sha256 => "HS256",
        Hash::Sha384 => "HS384",
        Hash::Sha512 => "HS512",
    }
}

fn aes_mode(name: Name) -> &'static str {
    name.text().strip_prefix("AES-").unwrap_or_default()
}

fn set_hash(algorithm: &Value<'_>, hash: Hash) -> JsResult<()> {
    let object = algorithm.ctx().object();
    object.set("name", algorithm.ctx().string(hash.text()))?;
    algorithm.set("hash", object)
}
