//! Algorithms and their parameters, read out of what a script gives.

use aws_lc_rs::{digest, hmac, pbkdf2};

use super::error::{Fault, Outcome};
use crate::vm::Value;

/// An algorithm of keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Name {
    AesCbc,
    AesCtr,
    AesGcm,
    AesKw,
    Hmac,
    Ecdh,
    Ecdsa,
    RsaPkcs1,
    RsaPss,
    RsaOaep,
    Pbkdf2,
}

/// A hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Hash {
    Sha1,
    Sha256,
    Sha384,
    Sha512,
}

impl Name {
    /// All; passwords are the last.
    pub(super) const ALL: [Self; 11] = [
        Self::AesCbc,
        Self::AesCtr,
        Self::AesGcm,
        Self::AesKw,
        Self::Hmac,
        Self::Ecdh,
        Self::Ecdsa,
        Self::RsaPkcs1,
        Self::RsaPss,
        Self::RsaOaep,
        Self::Pbkdf2,
    ];

    /// The algorithm that a script asks an operation for, by its name or as an object with parameters.
    pub(super) fn asked(algorithm: &Value<'_>, operation: &str, known: &[Self]) -> Outcome<Self> {
        let text = name_of(algorithm)?;
        let name = known.iter().copied().find(|name| name.text().eq_ignore_ascii_case(&text));
        name.ok_or_else(|| Fault::NotSupported(format!("{operation} does not know the algorithm `{text}`")))
    }

    /// Its name in the standard.
    pub(super) fn text(self) -> &'static str {
        match self {
            Self::AesCbc => "AES-CBC",
            Self::AesCtr => "AES-CTR",
            Self::AesGcm => "AES-GCM",
            Self::AesKw => "AES-KW",
            Self::Hmac => "HMAC",
            Self::Ecdh => "ECDH",
            Self::Ecdsa => "ECDSA",
            Self::RsaPkcs1 => "RSASSA-PKCS1-v1_5",
            Self::RsaPss => "RSA-PSS",
            Self::RsaOaep => "RSA-OAEP",
            Self::Pbkdf2 => "PBKDF2",
        }
    }
}

impl Hash {
    const ALL: [Self; 4] = [Self::Sha1, Self::Sha256, Self::Sha384, Self::Sha512];

    /// A hash by its name, or as an object with a name.
    pub(super) fn of(value: &Value<'_>) -> Outcome<Self> {
        let text = name_of(value)?;
        let hash = Self::ALL.into_iter().find(|hash| hash.text().eq_ignore_ascii_case(&text));
        hash.ok_or_else(|| {
            Fault::NotSupported(format!("`{text}` is no hash: there are SHA-1, SHA-256, SHA-384 and SHA-512"))
        })
    }

    /// The parameter `hash`.
    pub(super) fn param(params: &Value<'_>) -> Outcome<Self> {
        Self::of(&required(params, "hash")?)
    }

    /// Its name in the standard.
    pub(super) fn text(self) -> &'static str {
        match self {
            Self::Sha1 => "SHA-1",
            Self::Sha256 => "SHA-256",
            Self::Sha384 => "SHA-384",
            Self::Sha512 => "SHA-512",
        }
    }

    /// The hash of some bytes.
    pub(super) fn digest(self, data: &[u8]) -> Vec<u8> {
        digest::digest(self.algorithm(), data).as_ref().to_vec()
    }

    /// The same, of bytes that come one after the other.
    pub(super) fn hasher(self) -> digest::Context {
        digest::Context::new(self.algorithm())
    }

    /// The length of the blocks that it takes in.
    pub(super) fn block_bytes(self) -> usize {
        self.algorithm().block_len()
    }

    fn algorithm(self) -> &'static digest::Algorithm {
        match self {
            Self::Sha1 => &digest::SHA1_FOR_LEGACY_USE_ONLY,
            Self::Sha256 => &digest::SHA256,
            Self::Sha384 => &digest::SHA384,
            Self::Sha512 => &digest::SHA512,
        }
    }

    pub(super) fn hmac(self) -> hmac::Algorithm {
        match self {
            Self::Sha1 => hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY,
            Self::Sha256 => hmac::HMAC_SHA256,
            Self::Sha384 => hmac::HMAC_SHA384,
            Self::Sha512 => hmac::HMAC_SHA512,
        }
    }

    pub(super) fn pbkdf2(self) -> pbkdf2::Algorithm {
        match self {
            Self::Sha1 => pbkdf2::PBKDF2_HMAC_SHA1,
            Self::Sha256 => pbkdf2::PBKDF2_HMAC_SHA256,
            Self::Sha384 => pbkdf2::PBKDF2_HMAC_SHA384,
            Self::Sha512 => pbkdf2::PBKDF2_HMAC_SHA512,
        }
    }
}

fn name_of(algorithm: &Value<'_>) -> Outcome<String> {
    if algorithm.is_string() {
        return Ok(algorithm.to_string()?);
    }
    if !algorithm.is_object() {
        return Err(Fault::Syntax("an algorithm is a name, or an object with a name".to_owned()));
    }
    let name = algorithm.get("name")?;
    Ok(if name.is_nullish() { String::new() } else { name.to_string()? })
}

/// A parameter; none: it is not given.
pub(super) fn param<'js>(params: &Value<'js>, field: &str) -> Outcome<Option<Value<'js>>> {
    if !params.is_object() {
        return Ok(None);
    }
    let value = params.get(field)?;
    Ok(if value.is_nullish() { None } else { Some(value) })
}

/// A parameter that must be given.
pub(super) fn required<'js>(params: &Value<'js>, field: &str) -> Outcome<Value<'js>> {
    param(params, field)?.ok_or_else(|| Fault::Syntax(format!("the algorithm's `{field}` is missing")))
}

/// A parameter that is a count; what is no number counts as zero.
pub(super) fn count(params: &Value<'_>, field: &str) -> Outcome<Option<u32>> {
    param(params, field)?.map(|value| bounded(field, value.to_number()?)).transpose()
}

/// The same of one that must be given.
pub(super) fn required_count(params: &Value<'_>, field: &str) -> Outcome<u32> {
    bounded(field, required(params, field)?.to_number()?)
}

/// A count within what 32 bits hold.
pub(super) fn bounded(what: &str, number: f64) -> Outcome<u32> {
    let number = if number.is_nan() { 0.0 } else { number.trunc() };
    if (0.0..=f64::from(u32::MAX)).contains(&number) {
        return Ok(number as u32);
    }
    Err(Fault::Operation(format!("`{what}` cannot be {number}")))
}

/// A parameter of bytes: a buffer, text, or an array of numbers, as k6 takes them.
pub(super) fn bytes(params: &Value<'_>, field: &str) -> Outcome<Option<Vec<u8>>> {
    let Some(value) = param(params, field)? else { return Ok(None) };
    if let Some(bytes) = value.bytes() {
        return Ok(Some(bytes));
    }
    if value.is_string() {
        return Ok(Some(value.to_text()?.as_bytes().to_vec()));
    }
    if value.is_array() {
        let elements = elements(&value)?.into_iter();
        return Ok(Some(elements.map(|byte| Ok(byte.to_number()? as u8)).collect::<Outcome<_>>()?));
    }
    Err(Fault::Syntax(format!("the algorithm's `{field}` must be a buffer")))
}

/// The elements of an array.
pub(super) fn elements<'js>(array: &Value<'js>) -> Outcome<Vec<Value<'js>>> {
    match array.length()? {
        0..=ELEMENTS_MAX => Ok(array.elements()?),
        count => Err(Fault::Operation(format!("an array of {count} elements is too long"))),
    }
}

/// The bytes that an operation works on.
pub(super) fn data(value: &Value<'_>) -> Outcome<Vec<u8>> {
    if value.is_nullish() {
        return Err(Fault::Type("there are no data".to_owned()));
    }
    let none = || Fault::Operation("data must be an ArrayBuffer, a typed array or a DataView".to_owned());
    value.bytes().ok_or_else(none)
}

/// No salt, counter or list of usages comes near it, and an array is as long as it says, whatever it holds.
const ELEMENTS_MAX: u32 = 1 << 16;
