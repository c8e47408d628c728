//! Elliptic curves of NIST: signatures (ECDSA) and agreement on bits (ECDH).

use std::cell::OnceCell;

use aws_lc_rs::agreement::{self, PrivateKey, UnparsedPublicKey};
use aws_lc_rs::digest::{self, Digest};
use aws_lc_rs::encoding::{AsBigEndian, AsDer, EcPrivateKeyBin, Pkcs8V1Der};
use aws_lc_rs::signature::{
    self, ECDSA_P256_SHA256_FIXED, ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED,
    ECDSA_P384_SHA384_FIXED_SIGNING, ECDSA_P521_SHA512_FIXED, ECDSA_P521_SHA512_FIXED_SIGNING, EcdsaKeyPair,
    EcdsaSigningAlgorithm, EcdsaVerificationAlgorithm,
};

use super::algorithm::{self, Hash, Name};
use super::error::{Fault, Outcome};
use super::jwk::{self, Jwk};
use super::usage::{Format, Usage};
use crate::vm::{Ctx, Value};

/// A curve.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Curve {
    P256,
    P384,
    P521,
}

/// A key of either kind.
pub(super) struct Key {
    curve: Curve,
    /// SEC 1 2.3.3: 4, x and y.
    point: Vec<u8>,
    secret: Option<Secret>,
}

struct Secret {
    key: PrivateKey,
    /// Made with the first signature.
    signer: OnceCell<EcdsaKeyPair>,
}

/// A fresh pair: the private and the public key.
pub(super) fn generate(name: Name, params: &Value<'_>, usages: &[Usage]) -> Outcome<(Key, Key)> {
    let (private, public) = self::usages(name);
    let curve = Curve::param(params)?;
    if usages.is_empty() {
        return Err(Fault::Syntax("a pair of keys needs usages".to_owned()));
    }
    Usage::check(usages, &[private, public].concat())?;
    let fresh = PrivateKey::generate(curve.agreement());
    let private =
        Key::private(curve, fresh.map_err(|_| Fault::Operation("there is no such key".to_owned()))?)?;
    let public = Key { curve, point: private.point.clone(), secret: None };
    Ok((private, public))
}

/// Which of the usages asked for the private key gets, and which the public one.
pub(super) fn usages(name: Name) -> (&'static [Usage], &'static [Usage]) {
    match name {
        Name::Ecdh => (&[Usage::DeriveKey, Usage::DeriveBits], &[]),
        _ => (&[Usage::Sign], &[Usage::Verify]),
    }
}

/// A key from outside. A format that names the curve is trusted, as in k6; `namedCurve` is for the others.
pub(super) fn import(format: Format, data: &Value<'_>, params: &Value<'_>) -> Outcome<Key> {
    match format {
        Format::Raw => Key::public(Curve::param(params)?, algorithm::data(data)?),
        Format::Spki => {
            algorithm::required(params, "namedCurve")?;
            of_spki(&algorithm::data(data)?)
        }
        Format::Pkcs8 => {
            algorithm::required(params, "namedCurve")?;
            of_pkcs8(&algorithm::data(data)?)
        }
        Format::Jwk => {
            algorithm::required(params, "namedCurve")?;
            of_jwk(&Jwk::of(data, "EC")?)
        }
    }
}

fn of_spki(der: &[u8]) -> Outcome<Key> {
    let found = Curve::ALL
        .into_iter()
        .find_map(|curve| der.strip_prefix(curve.spki_head()).map(|point| (curve, point)));
    let no_key = || Fault::Data("this is not a public key of an elliptic curve".to_owned());
    let (curve, point) = found.ok_or_else(no_key)?;
    Key::public(curve, point.to_vec())
}

fn of_pkcs8(der: &[u8]) -> Outcome<Key> {
    let found = Curve::ALL.into_iter().find_map(|curve| {
        PrivateKey::from_private_key_der(curve.agreement(), der).ok().map(|key| (curve, key))
    });
    let no_key = || Fault::Data("this is not a private key of an elliptic curve".to_owned());
    let (curve, key) = found.ok_or_else(no_key)?;
    Key::private(curve, key)
}

fn of_jwk(jwk: &Jwk<'_>) -> Outcome<Key> {
    let name = jwk.text("crv")?.unwrap_or_default();
    let curve = Curve::named(&name).ok_or_else(|| Fault::Data(format!("the JWK's `crv` is `{name}`")))?;
    let mut point = vec![UNCOMPRESSED];
    point.extend(curve.number("x", &jwk.required("x")?)?);
    point.extend(curve.number("y", &jwk.required("y")?)?);
    let Some(secret) = jwk.bytes("d")? else { return Key::public(curve, point) };
    let key = PrivateKey::from_private_key(curve.agreement(), &curve.number("d", &secret)?);
    let key = Key::private(
        curve,
        key.map_err(|_| Fault::Data("the JWK's `d` is no key of its curve".to_owned()))?,
    )?;
    if key.point != point {
        return Err(Fault::Data("the JWK's `x` and `y` are not those of its `d`".to_owned()));
    }
    Ok(key)
}

impl Key {
    fn public(curve: Curve, point: Vec<u8>) -> Outcome<Self> {
        let is_whole = point.len() == 1 + 2 * curve.field_bytes() && point[0] == UNCOMPRESSED;
        let parsed = agreement::ParsedPublicKey::try_from(UnparsedPublicKey::new(curve.agreement(), &point));
        if !is_whole || parsed.is_err() {
            return Err(Fault::Data(format!("this is not a point of {}", curve.text())));
        }
        Ok(Self { curve, point, secret: None })
    }

    fn private(curve: Curve, key: PrivateKey) -> Outcome<Self> {
        let point =
            key.compute_public_key().map_err(|_| Fault::Operation("the key has no public one".to_owned()))?;
        let point = point.as_ref().to_vec();
        Ok(Self { curve, point, secret: Some(Secret { key, signer: OnceCell::new() }) })
    }

    pub(super) fn is_private(&self) -> bool {
        self.secret.is_some()
    }

    pub(super) fn curve(&self) -> Curve {
        self.curve
    }

    fn secret(&self) -> Outcome<&Secret> {
        self.secret.as_ref().ok_or_else(|| Fault::InvalidAccess("this takes a private key".to_owned()))
    }

    /// A signature: its two numbers, one after the other.
    pub(super) fn sign(&self, hash: Hash, data: &[u8]) -> Outcome<Vec<u8>> {
        let unsigned = || Fault::Operation("the data cannot be signed".to_owned());
        let secret = self.secret()?;
        let signer = match secret.signer.get() {
            Some(signer) => signer,
            None => {
                let scalar = secret.scalar()?;
                let algorithm = self.curve.signing();
                let pair =
                    EcdsaKeyPair::from_private_key_and_public_key(algorithm, scalar.as_ref(), &self.point);
                let pair = pair.map_err(|_| unsigned())?;
                secret.signer.get_or_init(|| pair)
            }
        };
        let digest = self.curve.fitted(&hash.digest(data)).ok_or_else(unsigned)?;
        Ok(signer.sign_digest(&digest).map_err(|_| unsigned())?.as_ref().to_vec())
    }

    pub(super) fn verify(&self, hash: Hash, signature: &[u8], data: &[u8]) -> Outcome<bool> {
        if self.is_private() {
            return Err(Fault::InvalidAccess("this takes a public key".to_owned()));
        }
        let Some(digest) = self.curve.fitted(&hash.digest(data)) else { return Ok(false) };
        let key = signature::UnparsedPublicKey::new(self.curve.verification(), &self.point);
        Ok(key.verify_digest(&digest, signature).is_ok())
    }

    /// The bits that this private key and another's public one have in common.
    pub(super) fn agree(&self, other: &Self, bits: u32) -> Outcome<Vec<u8>> {
        let secret = self.secret()?;
        if other.curve != self.curve {
            let (own, others) = (self.curve.text(), other.curve.text());
            return Err(Fault::InvalidAccess(format!("one key is of {own}, the other of {others}")));
        }
        let peer = UnparsedPublicKey::new(self.curve.agreement(), &other.point);
        let failed = Fault::Operation("the keys do not go together".to_owned());
        let shared = agreement::agree(&secret.key, peer, failed, |bytes| Ok(bytes.to_vec()))?;
        let too_many = || Fault::Operation(format!("of {} bits {bits} cannot be had", shared.len() * 8));
        Ok(shared.get(..bits as usize / 8).ok_or_else(too_many)?.to_vec())
    }

    /// The key as a script gets it.
    pub(super) fn export<'js>(&self, ctx: Ctx<'js>, format: Format) -> Outcome<Value<'js>> {
        if matches!(format, Format::Raw | Format::Spki) && self.is_private() {
            return Err(Fault::InvalidAccess("a private key has no such format".to_owned()));
        }
        let bytes = match format {
            Format::Raw => self.point.clone(),
            Format::Spki => [self.curve.spki_head(), &self.point].concat(),
            Format::Pkcs8 => {
                let der: Pkcs8V1Der<'_> = self.secret()?.key.as_der().map_err(|_| unwritable())?;
                der.as_ref().to_vec()
            }
            Format::Jwk => return self.to_jwk(ctx),
        };
        Ok(ctx.array_buffer(&bytes)?)
    }

    fn to_jwk<'js>(&self, ctx: Ctx<'js>) -> Outcome<Value<'js>> {
        let (x, y) = self.point[1..].split_at(self.curve.field_bytes());
        let scalar = self.secret.as_ref().map(Secret::scalar).transpose()?;
        let mut members = vec![("x", x), ("y", y)];
        members.extend(scalar.as_ref().map(|scalar| ("d", scalar.as_ref())));
        Ok(jwk::object(ctx, &[("kty", "EC"), ("crv", self.curve.text())], &members)?)
    }
}

impl Secret {
    fn scalar(&self) -> Outcome<EcPrivateKeyBin<'static>> {
        self.key.as_be_bytes().map_err(|_| unwritable())
    }
}

fn unwritable() -> Fault {
    Fault::Operation("the key cannot be written".to_owned())
}

impl Curve {
    const ALL: [Self; 3] = [Self::P256, Self::P384, Self::P521];

    /// The parameter `namedCurve`.
    fn param(params: &Value<'_>) -> Outcome<Self> {
        let name = algorithm::required(params, "namedCurve")?.to_string()?;
        let unknown =
            || Fault::NotSupported(format!("`{name}` is no curve: there are P-256, P-384 and P-521"));
        Self::named(&name).ok_or_else(unknown)
    }

    fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|curve| curve.text() == name)
    }

    /// Its name in the standard.
    pub(super) fn text(self) -> &'static str {
        match self {
            Self::P256 => "P-256",
            Self::P384 => "P-384",
            Self::P521 => "P-521",
        }
    }

    fn field_bytes(self) -> usize {
        match self {
            Self::P256 => 32,
            Self::P384 => 48,
            Self::P521 => 66,
        }
    }

    /// A member of a JWK with all its bytes. RFC 7518 6.2.1.2 wants them all, but k6 leaves leading zeros out.
    fn number(self, member: &str, bytes: &[u8]) -> Outcome<Vec<u8>> {
        let padding = self.field_bytes().checked_sub(bytes.len());
        let padding = padding.ok_or_else(|| Fault::Data(format!("the JWK's `{member}` is too long")))?;
        Ok([&vec![0; padding], bytes].concat())
    }

    /// A hash as the curve's own has its length. FIPS 186-5 6.4.1: of a longer one the leftmost bits count; a shorter one is a
    /// smaller number.
    fn fitted(self, hash: &[u8]) -> Option<Digest> {
        let algorithm = match self {
            Self::P256 => &digest::SHA256,
            Self::P384 => &digest::SHA384,
            Self::P521 => &digest::SHA512,
        };
        let wanted = algorithm.output_len();
        let hash = &hash[..hash.len().min(wanted)];
        Digest::import_less_safe(&[&vec![0; wanted - hash.len()], hash].concat(), algorithm).ok()
    }

    fn agreement(self) -> &'static agreement::Algorithm {
        match self {
            Self::P256 => &agreement::ECDH_P256,
            Self::P384 => &agreement::ECDH_P384,
            Self::P521 => &agreement::ECDH_P521,
        }
    }

    fn signing(self) -> &'static EcdsaSigningAlgorithm {
        match self {
            Self::P256 => &ECDSA_P256_SHA256_FIXED_SIGNING,
            Self::P384 => &ECDSA_P384_SHA384_FIXED_SIGNING,
            Self::P521 => &ECDSA_P521_SHA512_FIXED_SIGNING,
        }
    }

    fn verification(self) -> &'static EcdsaVerificationAlgorithm {
        match self {
            Self::P256 => &ECDSA_P256_SHA256_FIXED,
            Self::P384 => &ECDSA_P384_SHA384_FIXED,
            Self::P521 => &ECDSA_P521_SHA512_FIXED,
        }
    }

    /// What a public key in DER (RFC 5480 2) begins with, before its point: the encoding leaves no choice.
    fn spki_head(self) -> &'static [u8] {
        match self {
            Self::P256 => b"\x30\x59\x30\x13\x06\x07\x2a\x86\x48\xce\x3d\x02\x01\x06\x08\x2a\x86\x48\xce\x3d\x03\x01\x07\x03\x42\x00",
            Self::P384 => b"\x30\x76\x30\x10\x06\x07\x2a\x86\x48\xce\x3d\x02\x01\x06\x05\x2b\x81\x04\x00\x22\x03\x62\x00",
            Self::P521 => b"\x30\x81\x9b\x30\x10\x06\x07\x2a\x86\x48\xce\x3d\x02\x01\x06\x05\x2b\x81\x04\x00\x23\x03\x81\x86\x00",
        }
    }
}

/// SEC 1 2.3.3: what a point with both coordinates begins with.
const UNCOMPRESSED: u8 = 4;
