//! RSA: signatures (PKCS#1 v1.5 and PSS) and encryption (OAEP).

use std::rc::Rc;

use super::algorithm::{self, Hash, Name};
use super::error::{Fault, Outcome};
use super::evp::{Padding, RsaKey};
use super::jwk::{self, Jwk};
use super::usage::{Format, Usage, Way};
use crate::api::off_loop;
use crate::vm::{Ctx, Value};

/// A key of either kind.
pub(super) enum Key {
    Private(Rc<RsaKey>),
    Public(Rc<RsaKey>),
}

/// A fresh pair, the private and the public key, and the hash that they are for.
pub(super) fn generate(
    ctx: Ctx<'_>,
    name: Name,
    params: &Value<'_>,
    usages: &[Usage],
) -> Outcome<(Key, Key, Hash)> {
    let (bits, hash) = (modulus_bits(params)?, Hash::param(params)?);
    if usages.is_empty() {
        return Err(Fault::Syntax("a pair of keys needs usages".to_owned()));
    }
    let (private, public) = self::usages(name);
    let wrap: &[Usage] = if name == Name::RsaOaep { &[Usage::WrapKey, Usage::UnwrapKey] } else { &[] };
    Usage::check(usages, &[private, public, wrap].concat())?;
    let made = off_loop(ctx, move || RsaKey::generate(bits)?.to_pkcs8())?;
    let key = made
        .and_then(|key| RsaKey::from_pkcs8(&key))
        .ok_or_else(|| Fault::Operation("the key could not be made".to_owned()))?;
    let key = Rc::new(key);
    Ok((Key::Private(Rc::clone(&key)), Key::Public(key), hash))
}

/// How long a modulus is asked for; with an exponent that keys are made with.
fn modulus_bits(params: &Value<'_>) -> Outcome<u32> {
    let bits = algorithm::required_count(params, "modulusLength")?;
    let exponent = algorithm::required(params, "publicExponent")?.bytes();
    let exponent = exponent.ok_or_else(|| Fault::Operation("`publicExponent` must be bytes".to_owned()))?;
    let first = exponent.iter().position(|byte| *byte != 0).unwrap_or(exponent.len());
    if exponent[first..] != EXPONENT {
        // As k6: 65537 is the one that it makes keys with.
        return Err(Fault::Operation("the public exponent must be 65537".to_owned()));
    }
    if !MODULUS_BITS.contains(&bits) || !bits.is_multiple_of(MODULUS_BITS_STEP) {
        let (min, max) = (MODULUS_BITS.start(), MODULUS_BITS.end());
        return Err(Fault::Operation(format!(
            "keys of {bits} bits are not made: use a multiple of {MODULUS_BITS_STEP} from {min} to {max}"
        )));
    }
    Ok(bits)
}

/// A key from outside.
pub(super) fn import(name: Name, format: Format, data: &Value<'_>) -> Outcome<Key> {
    let key = match format {
        Format::Pkcs8 => RsaKey::from_pkcs8(&algorithm::data(data)?).map(|key| Key::Private(Rc::new(key))),
        Format::Spki => RsaKey::from_spki(&algorithm::data(data)?).map(|key| Key::Public(Rc::new(key))),
        Format::Jwk => of_jwk(&Jwk::of(data, "RSA")?)?,
        Format::Raw => return Err(Format::refused(name)),
    };
    let key = key.ok_or_else(|| Fault::Data("this is not a key of RSA".to_owned()))?;
    match key.modulus_bits() {
        bits if MODULUS_BITS.contains(&bits) => Ok(key),
        bits => Err(Fault::Data(format!("keys of RSA with {bits} bits are not supported"))),
    }
}

/// As in k6, a private key must have all the members of RFC 7518 6.3.2.
fn of_jwk(jwk: &Jwk<'_>) -> Outcome<Option<Key>> {
    let public = [jwk.required("n")?, jwk.required("e")?];
    let public = [&*public[0], &*public[1]];
    if jwk.bytes("d")?.is_none() {
        return Ok(RsaKey::from_public_numbers(public).map(|key| Key::Public(Rc::new(key))));
    }
    let private = PRIVATE.iter().map(|member| jwk.required(member)).collect::<Outcome<Vec<_>>>()?;
    let private = std::array::from_fn(|idx| &*private[idx]);
    Ok(RsaKey::from_private_numbers(public, private).map(|key| Key::Private(Rc::new(key))))
}

/// Which of the usages asked for the private key gets, and which the public one.
pub(super) fn usages(name: Name) -> (&'static [Usage], &'static [Usage]) {
    match name {
        Name::RsaOaep => (&[Usage::Decrypt], &[Usage::Encrypt]),
        _ => (&[Usage::Sign], &[Usage::Verify]),
    }
}

impl Key {
    pub(super) fn is_private(&self) -> bool {
        matches!(self, Self::Private(_))
    }

    pub(super) fn modulus_bits(&self) -> u32 {
        let (Self::Private(key) | Self::Public(key)) = self;
        key.bits()
    }

    fn to_sign(&self) -> Outcome<&RsaKey> {
        match self {
            Self::Private(key) => Ok(key),
            Self::Public(_) => Err(Fault::InvalidAccess("this takes a private key of RSA".to_owned())),
        }
    }

    fn to_verify(&self) -> Outcome<&RsaKey> {
        match self {
            Self::Public(key) => Ok(key),
            Self::Private(_) => Err(Fault::InvalidAccess("this takes a public key of RSA".to_owned())),
        }
    }

    pub(super) fn sign(&self, hash: Hash, padding: Padding, data: &[u8]) -> Outcome<Vec<u8>> {
        let signature = self.to_sign()?.sign(hash, padding, data);
        signature.ok_or_else(|| Fault::Operation("the key is too short for this hash and salt".to_owned()))
    }

    pub(super) fn verify(
        &self,
        hash: Hash,
        padding: Padding,
        signature: &[u8],
        data: &[u8],
    ) -> Outcome<bool> {
        Ok(self.to_verify()?.verify(hash, padding, signature, data).is_some())
    }

    /// Encrypts with a public key, or decrypts with a private one.
    pub(super) fn crypt(&self, way: Way, hash: Hash, params: &Value<'_>, data: &[u8]) -> Outcome<Vec<u8>> {
        let (key, problem) = match way {
            Way::Encrypt => (self.to_verify()?, "the data are too long for this key and hash"),
            Way::Decrypt => (self.to_sign()?, "the data cannot be decrypted with this key"),
        };
        let label = algorithm::bytes(params, "label")?.unwrap_or_default();
        key.crypt(way, hash, &label, data).ok_or_else(|| Fault::Operation(problem.to_owned()))
    }

    /// The key as a script gets it.
    pub(super) fn export<'js>(&self, ctx: Ctx<'js>, name: Name, format: Format) -> Outcome<Value<'js>> {
        let der = match format {
            Format::Pkcs8 => self.to_sign()?.to_pkcs8(),
            Format::Spki => self.to_verify()?.to_spki(),
            Format::Jwk => return self.to_jwk(ctx),
            Format::Raw => return Err(Format::refused(name)),
        };
        let der = der.ok_or_else(|| Fault::Operation("the key cannot be written".to_owned()))?;
        Ok(ctx.array_buffer(&der)?)
    }

    fn to_jwk<'js>(&self, ctx: Ctx<'js>) -> Outcome<Value<'js>> {
        let (Self::Private(key) | Self::Public(key)) = self;
        let (public, private) = (key.public_numbers(), key.private_numbers());
        let mut members: Vec<(&str, &[u8])> = vec![("n", &public[0]), ("e", &public[1])];
        if self.is_private() {
            members.extend(PRIVATE.into_iter().zip(private.iter().map(Vec::as_slice)));
        }
        Ok(jwk::object(ctx, &[("kty", "RSA")], &members)?)
    }
}

/// How a signature of an algorithm is padded; PSS has a salt of the length that a script gives.
pub(super) fn padding(name: Name, params: &Value<'_>) -> Outcome<Padding> {
    if name != Name::RsaPss {
        return Ok(Padding::Pkcs1);
    }
    match algorithm::required_count(params, "saltLength")? as usize {
        salt_bytes @ 0..SALT_BYTES_MAX => Ok(Padding::Pss { salt_bytes }),
        count => Err(Fault::Operation(format!("a salt of {count} bytes is longer than any key"))),
    }
}

/// 65537.
const EXPONENT: [u8; 3] = [1, 0, 1];

/// What a JWK says of a private key, in the order of RFC 8017 A.1.2.
const PRIVATE: [&str; 6] = ["d", "p", "q", "dp", "dq", "qi"];

/// Smaller keys are not made by k6, either; the largest in use takes seconds to make.
const MODULUS_BITS: std::ops::RangeInclusive<u32> = 1024..=8192;

/// AWS-LC rounds other lengths down.
const MODULUS_BITS_STEP: u32 = 128;

/// The bytes of the largest modulus.
const SALT_BYTES_MAX: usize = 1024;
