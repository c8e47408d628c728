//! What keys are used for, and how they are written.

use super::algorithm::{self, Name};
use super::error::{Fault, Outcome};
use crate::vm::{Ctx, JsResult, Value};

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

/// Which way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    Encrypt,
    Decrypt,
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

    pub(super) fn text(self) -> &'static str {
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
