//! `CryptoKey`: what a script holds of a key, and what it may be used for.
//!
//! Never: the key's bytes as a property; only `exportKey` gives them out, if the key may be exported.

use super::algorithm::{self, Hash, Name};
use super::error::{Fault, Outcome};
use super::{ec, rsa};
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

/// What a key may be used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Usage {
    Encrypt,
    Decrypt,
    Sign,
    Verify,
    DeriveKey,
    DeriveBits,
    WrapKey,
    UnwrapKey,
}

/// How a key is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    Raw,
    Pkcs8,
    Spki,
    Jwk,
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
        let proto = ctx.host().kept(ctx, "CryptoKey prototype", || Ok(ctx.object()))?;
        let value = ctx.native(&proto, Box::new(self))?;
        value.define("type", ctx.string(kind))?;
        value.define("extractable", ctx.bool(extractable))?;
        value.define("algorithm", algorithm)?;
        value.define("usages", usages)?;
        Ok(value)
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

fn set_hash(algorithm: &Value<'_>, hash: Hash) -> JsResult<()> {
    let object = algorithm.ctx().object();
    object.set("name", algorithm.ctx().string(hash.text()))?;
    algorithm.set("hash", object)
}

impl Usage {
    const ALL: [Self; 8] = [
        Self::Encrypt,
        Self::Decrypt,
        Self::Sign,
        Self::Verify,
        Self::DeriveKey,
        Self::DeriveBits,
        Self::WrapKey,
        Self::UnwrapKey,
    ];

    /// The usages that a script lists, each once.
    pub(super) fn listed(value: &Value<'_>) -> Outcome<Vec<Self>> {
        if value.is_nullish() {
            return Ok(Vec::new());
        }
        if !value.is_array() {
            return Err(Fault::Type("usages must be an array of texts".to_owned()));
        }
        let mut usages = Vec::new();
        for element in algorithm::elements(value)? {
            let text = element.to_string()?;
            let usage = Self::ALL.into_iter().find(|usage| usage.text() == text);
            let usage = usage.ok_or_else(|| Fault::Syntax(format!("`{text}` is no usage of a key")))?;
            if !usages.contains(&usage) {
                usages.push(usage);
            }
        }
        Ok(usages)
    }

    /// Refuses usages that the algorithm has not.
    pub(super) fn check(usages: &[Self], known: &[Self]) -> Outcome<()> {
        match usages.iter().find(|usage| !known.contains(usage)) {
            Some(usage) => {
                Err(Fault::Syntax(format!("keys of this algorithm are not for `{}`", usage.text())))
            }
            None => Ok(()),
        }
    }

    fn text(self) -> &'static str {
        match self {
            Self::Encrypt => "encrypt",
            Self::Decrypt => "decrypt",
            Self::Sign => "sign",
            Self::Verify => "verify",
            Self::DeriveKey => "deriveKey",
            Self::DeriveBits => "deriveBits",
            Self::WrapKey => "wrapKey",
            Self::UnwrapKey => "unwrapKey",
        }
    }
}

/// Usages as a script sees them.
pub(super) fn usages<'js>(ctx: Ctx<'js>, usages: &[Usage]) -> JsResult<Value<'js>> {
    ctx.array_of(usages.iter().map(|usage| ctx.string(usage.text())))
}

impl Format {
    /// A format by its name.
    pub(super) fn named(text: &str) -> Option<Self> {
        Some(match text {
            "raw" => Self::Raw,
            "pkcs8" => Self::Pkcs8,
            "spki" => Self::Spki,
            "jwk" => Self::Jwk,
            _ => return None,
        })
    }

    /// That an algorithm's keys are not written so.
    pub(super) fn refused(name: Name) -> Fault {
        Fault::NotSupported(format!("keys of {} have no such format", name.text()))
    }
}
