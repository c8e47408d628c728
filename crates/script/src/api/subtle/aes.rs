//! AES in the modes CBC, CTR and GCM.

use aws_lc_rs::cipher::{
    self, AES_128, AES_192, AES_256, DecryptionContext, EncryptingKey, EncryptionContext,
    PaddedBlockDecryptingKey, PaddedBlockEncryptingKey, UnboundCipherKey,
};

use super::algorithm::{self, Name};
use super::error::{Fault, Outcome};
use super::evp::Gcm;
use super::jwk::Jwk;
use super::key::Material;
use super::usage::{Format, Usage, Way};
use crate::vm::{Ctx, Value};

/// A mode with its parameters.
enum Mode {
    Cbc { iv: Block },
    Ctr { counter: Block },
    Gcm { iv: Vec<u8>, additional: Vec<u8>, tag_bits: u32 },
}

type Block = [u8; 16];

/// A fresh key.
pub(super) fn generate(ctx: Ctx<'_>, name: Name, params: &Value<'_>, usages: &[Usage]) -> Outcome<Material> {
    Usage::check(usages, known_usages(name))?;
    match algorithm::required_count(params, "length")? {
        bits @ (128 | 192 | 256) => Ok(Material::Secret(super::random(ctx, bits as usize / 8)?)),
        bits => Err(Fault::Operation(format!("a key of AES has 128, 192 or 256 bits, not {bits}"))),
    }
}

/// A key from outside.
pub(super) fn import(name: Name, format: Format, data: &Value<'_>, usages: &[Usage]) -> Outcome<Material> {
    Usage::check(usages, known_usages(name))?;
    let bytes = match format {
        Format::Raw => algorithm::data(data)?,
        Format::Jwk => Jwk::of(data, "oct")?.required("k")?,
        Format::Pkcs8 | Format::Spki => return Err(Format::refused(name)),
    };
    key_of(bytes)
}

/// A key of these bytes.
pub(super) fn key_of(bytes: Vec<u8>) -> Outcome<Material> {
    match bytes.len() {
        16 | 24 | 32 => Ok(Material::Secret(bytes)),
        count => Err(Fault::Data(format!("a key of AES has 16, 24 or 32 bytes, not {count}"))),
    }
}

/// What keys may be used for. AES-KW is for keys alone.
pub(super) fn known_usages(name: Name) -> &'static [Usage] {
    const ALL: &[Usage] = &[Usage::WrapKey, Usage::UnwrapKey, Usage::Encrypt, Usage::Decrypt];
    if name == Name::AesKw { &ALL[..2] } else { ALL }
}

/// Encrypts or decrypts.
pub(super) fn crypt(name: Name, params: &Value<'_>, key: &[u8], data: &[u8], way: Way) -> Outcome<Vec<u8>> {
    match Mode::of(name, params)? {
        Mode::Cbc { iv } => cbc(key, iv, data, way),
        Mode::Ctr { counter } => ctr(key, counter, data).ok_or_else(unfit),
        Mode::Gcm { iv, additional, tag_bits } => {
            let gcm = Gcm { iv: &iv, additional: &additional, tag_bytes: tag_bits as usize / 8 };
            gcm.crypt(way, key, data).ok_or_else(|| way.failed())
        }
    }
}

impl Way {
    fn failed(self) -> Fault {
        match self {
            Self::Encrypt => unfit(),
            Self::Decrypt => Fault::Operation("the data cannot be decrypted with this key".to_owned()),
        }
    }
}

impl Mode {
    fn of(name: Name, params: &Value<'_>) -> Outcome<Self> {
        match name {
            Name::AesCbc => Ok(Self::Cbc { iv: block(params, "iv")? }),
            Name::AesCtr => {
                let bits = algorithm::count(params, "length")?.unwrap_or(0);
                if !(1..=128).contains(&bits) {
                    return Err(Fault::Operation(format!("a counter has 1 to 128 bits, not {bits}")));
                }
                Ok(Self::Ctr { counter: block(params, "counter")? })
            }
            _ => Self::gcm(params),
        }
    }

    fn gcm(params: &Value<'_>) -> Outcome<Self> {
        let iv = algorithm::bytes(params, "iv")?.unwrap_or_default();
        if iv.len() != 12 {
            return Err(Fault::NotSupported(format!("an `iv` of AES-GCM has 12 bytes, not {}", iv.len())));
        }
        let additional = algorithm::bytes(params, "additionalData")?.unwrap_or_default();
        match algorithm::count(params, "tagLength")?.unwrap_or(0) {
            0 => Ok(Self::Gcm { iv, additional, tag_bits: 128 }),
            tag_bits @ (96 | 104 | 112 | 120 | 128) => Ok(Self::Gcm { iv, additional, tag_bits }),
            bits @ (32 | 64) => Err(Fault::NotSupported(format!("tags of {bits} bits are too short"))),
            bits => Err(Fault::Operation(format!("a tag has 96, 104, 112, 120 or 128 bits, not {bits}"))),
        }
    }
}

fn block(params: &Value<'_>, field: &str) -> Outcome<Block> {
    let bytes = algorithm::bytes(params, field)?.unwrap_or_default();
    let fault = |bytes: Vec<u8>| {
        Fault::Operation(format!("the algorithm's `{field}` must have 16 bytes, not {}", bytes.len()))
    };
    bytes.try_into().map_err(fault)
}

fn cbc(key: &[u8], iv: Block, data: &[u8], way: Way) -> Outcome<Vec<u8>> {
    if way == Way::Encrypt && data.is_empty() {
        // As k6, which pads nothing to nothing.
        return Err(Fault::Operation("there is nothing to encrypt".to_owned()));
    }
    let crypted = match way {
        Way::Encrypt => cbc_encrypted(key, iv, data),
        Way::Decrypt => cbc_decrypted(key, iv, data),
    };
    crypted.ok_or_else(|| way.failed())
}

fn cbc_encrypted(key: &[u8], iv: Block, data: &[u8]) -> Option<Vec<u8>> {
    let key = PaddedBlockEncryptingKey::cbc_pkcs7(unbound(key)?).ok()?;
    let mut data = data.to_vec();
    key.less_safe_encrypt(&mut data, EncryptionContext::Iv128(iv.into())).ok()?;
    Some(data)
}

fn cbc_decrypted(key: &[u8], iv: Block, data: &[u8]) -> Option<Vec<u8>> {
    let key = PaddedBlockDecryptingKey::cbc_pkcs7(unbound(key)?).ok()?;
    let mut data = data.to_vec();
    let plain = key.decrypt(&mut data, DecryptionContext::Iv128(iv.into())).ok()?;
    Some(plain.to_vec())
}

/// The whole block counts, whatever `length` says: k6 does so, and a difference takes a counter at the end of its bits.
fn ctr(key: &[u8], counter: Block, data: &[u8]) -> Option<Vec<u8>> {
    let mut data = data.to_vec();
    let key = EncryptingKey::ctr(unbound(key)?).ok()?;
    key.less_safe_encrypt(&mut data, EncryptionContext::Iv128(counter.into())).ok()?;
    Some(data)
}

fn unbound(key: &[u8]) -> Option<UnboundCipherKey> {
    let algorithm: &'static cipher::Algorithm = match key.len() {
        16 => &AES_128,
        24 => &AES_192,
        _ => &AES_256,
    };
    UnboundCipherKey::new(algorithm, key).ok()
}

fn unfit() -> Fault {
    Fault::Operation("the key or the data do not fit AES".to_owned())
}
