//! RSA: signatures (PKCS#1 v1.5 and PSS) and encryption (OAEP).

use getrandom::SysRng;
use rsa::pkcs8::{DecodePrivateKey, DecodePublicKey, EncodePrivateKey, EncodePublicKey};
use rsa::rand_core::UnwrapErr;
use rsa::traits::{PrivateKeyParts, PublicKeyParts};
use rsa::{BoxedUint, Oaep, Pkcs1v15Sign, Pss, RsaPrivateKey, RsaPublicKey};
use sha1::Sha1;
use sha2::{Sha256, Sha384, Sha512};

use super::algorithm::{self, Hash, Name};
use super::error::{Fault, Outcome};
use super::jwk::{self, Jwk};
use super::key::{Format, Usage};
use crate::vm::{Ctx, Value};

/// A key of either kind.
pub(super) enum Key {
    Private(Box<RsaPrivateKey>),
    Public(Box<RsaPublicKey>),
}

/// Calls a function with the type of a hash.
macro_rules! with_hash {
    ($hash:expr, $type:ident => $code:expr) => {
        match $hash {
            Hash::Sha1 => {
                type $type = Sha1;
                $code
            }
            Hash::Sha256 => {
                type $type = Sha256;
                $code
            }
            Hash::Sha384 => {
                type $type = Sha384;
                $code
            }
            Hash::Sha512 => {
                type $type = Sha512;
                $code
            }
        }
    };
}

/// A fresh pair, the private and the public key, and the hash that they are for.
pub(super) fn generate(name: Name, params: &Value<'_>, usages: &[Usage]) -> Outcome<(Key, Key, Hash)> {
    let (bits, hash) = (modulus_bits(params)?, Hash::param(params)?);
    if usages.is_empty() {
        return Err(Fault::Syntax("a pair of keys needs usages".to_owned()));
    }
    let (private, public) = self::usages(name);
    let wrap: &[Usage] = if name == Name::RsaOaep { &[Usage::WrapKey, Usage::UnwrapKey] } else { &[] };
    Usage::check(usages, &[private, public, wrap].concat())?;
    let private = RsaPrivateKey::new(&mut random(), bits);
    let private = private.map_err(|error| Fault::Operation(format!("there is no such key: {error}")))?;
    let public = private.to_public_key();
    Ok((Key::Private(Box::new(private)), Key::Public(Box::new(public)), hash))
}

/// How long a modulus is asked for; with an exponent that keys are made with.
fn modulus_bits(params: &Value<'_>) -> Outcome<usize> {
    let bits = algorithm::required_count(params, "modulusLength")?;
    let exponent = algorithm::required(params, "publicExponent")?.bytes();
    let exponent = exponent.ok_or_else(|| Fault::Operation("`publicExponent` must be bytes".to_owned()))?;
    let first = exponent.iter().position(|byte| *byte != 0).unwrap_or(exponent.len());
    if exponent[first..] != EXPONENT {
        // As k6: 65537 is the one that it makes keys with.
        return Err(Fault::Operation("the public exponent must be 65537".to_owned()));
    }
    if !(MODULUS_BITS_MIN..=MODULUS_BITS_MAX).contains(&bits) {
        return Err(Fault::Operation(format!("keys of {bits} bits are not made")));
    }
    Ok(bits as usize)
}

/// A key from outside.
pub(super) fn import(name: Name, format: Format, data: &Value<'_>) -> Outcome<Key> {
    let key = match format {
        Format::Pkcs8 => {
            let key = RsaPrivateKey::from_pkcs8_der(&algorithm::data(data)?);
            Key::Private(Box::new(key.map_err(|error| no_key(&error))?))
        }
        Format::Spki => {
            let key = RsaPublicKey::from_public_key_der(&algorithm::data(data)?);
            Key::Public(Box::new(key.map_err(|error| no_key(&error))?))
        }
        Format::Jwk => of_jwk(&Jwk::of(data, "RSA")?)?,
        Format::Raw => return Err(Format::refused(name)),
    };
    Ok(key)
}

fn of_jwk(jwk: &Jwk<'_>) -> Outcome<Key> {
    let modulus = trimmed(jwk.required("n")?);
    let bits = modulus.len() as u32 * 8;
    if !(MODULUS_BITS_MIN..=MODULUS_BITS_MAX).contains(&bits) {
        return Err(Fault::Data(format!("the JWK's `n` has {bits} bits")));
    }
    let number = |member: &str, bytes: &[u8]| {
        BoxedUint::from_be_slice(bytes, bits)
            .map_err(|_| Fault::Data(format!("the JWK's `{member}` is too large")))
    };
    let (n, e) = (number("n", &modulus)?, number("e", &trimmed(jwk.required("e")?))?);
    let Some(d) = jwk.bytes("d")? else {
        let public = RsaPublicKey::new(n, e).map_err(|error| no_key(&error))?;
        return Ok(Key::Public(Box::new(public)));
    };
    // The other members follow from these.
    let primes = ["p", "q"].map(|member| number(member, &trimmed(jwk.required(member)?)));
    let [p, q] = primes;
    let private = RsaPrivateKey::from_components(n, e, number("d", &trimmed(d))?, vec![p?, q?]);
    Ok(Key::Private(Box::new(private.map_err(|error| no_key(&error))?)))
}

fn no_key(error: &dyn std::fmt::Display) -> Fault {
    Fault::Data(format!("this is not a key of RSA: {error}"))
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
        self.public().n().bits()
    }

    fn public(&self) -> &RsaPublicKey {
        match self {
            Self::Private(key) => key.as_public_key(),
            Self::Public(key) => key,
        }
    }

    fn to_sign(&self) -> Outcome<&RsaPrivateKey> {
        match self {
            Self::Private(key) => Ok(key),
            Self::Public(_) => Err(Fault::InvalidAccess("this takes a private key of RSA".to_owned())),
        }
    }

    fn to_verify(&self) -> Outcome<&RsaPublicKey> {
        match self {
            Self::Public(key) => Ok(key),
            Self::Private(_) => Err(Fault::InvalidAccess("this takes a public key of RSA".to_owned())),
        }
    }

    /// A signature with PKCS#1 v1.5, or with PSS and a salt of so many bytes.
    pub(super) fn sign(&self, hash: Hash, salt_bytes: Option<usize>, data: &[u8]) -> Outcome<Vec<u8>> {
        let (key, digest) = (self.to_sign()?, hash.digest(data));
        let signature = with_hash!(hash, D => match salt_bytes {
            None => key.sign_with_rng(&mut random(), Pkcs1v15Sign::new::<D>(), &digest),
            Some(count) => key.sign_with_rng(&mut random(), Pss::<D>::new_with_salt(count), &digest),
        });
        signature.map_err(|error| Fault::Operation(format!("the data cannot be signed: {error}")))
    }

    pub(super) fn verify(
        &self,
        hash: Hash,
        salt_bytes: Option<usize>,
        signature: &[u8],
        data: &[u8],
    ) -> Outcome<bool> {
        let (key, digest) = (self.to_verify()?, hash.digest(data));
        let verdict = with_hash!(hash, D => match salt_bytes {
            None => key.verify(Pkcs1v15Sign::new::<D>(), &digest, signature),
            Some(count) => key.verify(Pss::<D>::new_with_salt(count), &digest, signature),
        });
        Ok(verdict.is_ok())
    }

    pub(super) fn encrypt(&self, hash: Hash, params: &Value<'_>, data: &[u8]) -> Outcome<Vec<u8>> {
        let (key, label) = (self.to_verify()?, algorithm::bytes(params, "label")?.unwrap_or_default());
        let sealed =
            with_hash!(hash, D => key.encrypt(&mut random(), Oaep::<D>::new_with_label(label), data));
        sealed.map_err(|error| Fault::Operation(format!("the data cannot be encrypted: {error}")))
    }

    pub(super) fn decrypt(&self, hash: Hash, params: &Value<'_>, data: &[u8]) -> Outcome<Vec<u8>> {
        let (key, label) = (self.to_sign()?, algorithm::bytes(params, "label")?.unwrap_or_default());
        let opened = with_hash!(hash, D => {
            key.decrypt_blinded(&mut random(), Oaep::<D>::new_with_label(label), data)
        });
        opened.map_err(|error| Fault::Operation(format!("the data cannot be decrypted: {error}")))
    }

    /// The key as a script gets it.
    pub(super) fn export<'js>(&self, ctx: Ctx<'js>, name: Name, format: Format) -> Outcome<Value<'js>> {
        let unwritable =
            |error: &dyn std::fmt::Display| Fault::Operation(format!("the key cannot be written: {error}"));
        match format {
            Format::Pkcs8 => {
                let der = self.to_sign()?.to_pkcs8_der().map_err(|error| unwritable(&error))?;
                Ok(ctx.array_buffer(der.as_bytes())?)
            }
            Format::Spki => {
                let der = self.to_verify()?.to_public_key_der().map_err(|error| unwritable(&error))?;
                Ok(ctx.array_buffer(der.as_bytes())?)
            }
            Format::Jwk => self.to_jwk(ctx),
            Format::Raw => Err(Format::refused(name)),
        }
    }

    fn to_jwk<'js>(&self, ctx: Ctx<'js>) -> Outcome<Value<'js>> {
        let bytes = |number: Option<&BoxedUint>| {
            trimmed(number.map(|n| n.to_be_bytes().to_vec()).unwrap_or_default())
        };
        let public = self.public();
        let mut members = vec![("n", public.n_bytes().to_vec()), ("e", public.e_bytes().to_vec())];
        if let Self::Private(key) = self {
            members.push(("d", bytes(Some(key.d()))));
            members.extend(["p", "q"].into_iter().zip(key.primes().iter().map(|prime| bytes(Some(prime)))));
            members.push(("dp", bytes(key.dp())));
            members.push(("dq", bytes(key.dq())));
            members.push(("qi", bytes(key.crt_coefficient().as_ref())));
        }
        let members: Vec<(&str, &[u8])> = members.iter().map(|(member, bytes)| (*member, &**bytes)).collect();
        Ok(jwk::object(ctx, &[("kty", "RSA")], &members)?)
    }
}

/// The salt of a PSS signature.
pub(super) fn salt_bytes(params: &Value<'_>) -> Outcome<usize> {
    match algorithm::required_count(params, "saltLength")? as usize {
        count @ 0..SALT_BYTES_MAX => Ok(count),
        count => Err(Fault::Operation(format!("a salt of {count} bytes is longer than any key"))),
    }
}

/// Without the zeros that a number begins with.
fn trimmed(mut bytes: Vec<u8>) -> Vec<u8> {
    let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
    bytes.drain(..zeros);
    bytes
}

fn random() -> UnwrapErr<SysRng> {
    UnwrapErr(SysRng)
}

/// 65537.
const EXPONENT: [u8; 3] = [1, 0, 1];

/// Smaller keys are not made by k6, either.
const MODULUS_BITS_MIN: u32 = 1024;

/// The largest in use; one takes seconds to make.
const MODULUS_BITS_MAX: u32 = 8192;

/// The bytes of the largest modulus.
const SALT_BYTES_MAX: usize = 1024;
