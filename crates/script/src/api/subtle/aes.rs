//! AES in the modes CBC, CTR and GCM.

use aes::cipher::block_padding::Pkcs7;
use aes::cipher::consts::{U12, U13, U14, U15, U16};
use aes::cipher::{
    BlockCipherDecrypt, BlockCipherEncrypt, BlockModeDecrypt, BlockModeEncrypt, BlockSizeUser, KeyInit,
    KeyIvInit, StreamCipher,
};
use aes::{Aes128, Aes192, Aes256};
use aes_gcm::aead::{Aead, Payload};
use aes_gcm::{AesGcm, Nonce, TagSize};

use super::algorithm::{self, Name};
use super::error::{Fault, Outcome};
use super::jwk::Jwk;
use super::key::{Format, Material, Usage};
use crate::vm::{Ctx, Value};

/// Which way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    Encrypt,
    Decrypt,
}

/// A mode with its parameters.
enum Mode {
    Cbc { iv: Vec<u8> },
    Ctr { counter: Vec<u8> },
    Gcm { iv: Vec<u8>, additional: Vec<u8>, tag_bits: u32 },
}

/// AES with a key of any length.
trait Cipher: BlockSizeUser<BlockSize = U16> + BlockCipherEncrypt + BlockCipherDecrypt + KeyInit {}

impl Cipher for Aes128 {}
impl Cipher for Aes192 {}
impl Cipher for Aes256 {}

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
    let mode = Mode::of(name, params)?;
    match key.len() {
        16 => mode.crypt::<Aes128>(key, data, way),
        24 => mode.crypt::<Aes192>(key, data, way),
        _ => mode.crypt::<Aes256>(key, data, way),
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

    fn crypt<C: Cipher>(&self, key: &[u8], data: &[u8], way: Way) -> Outcome<Vec<u8>> {
        match self {
            Self::Cbc { iv } => cbc::<C>(key, iv, data, way),
            Self::Ctr { counter } => ctr::<C>(key, counter, data),
            Self::Gcm { iv, additional, tag_bits } => {
                let payload = Payload { msg: data, aad: additional };
                match tag_bits {
                    96 => gcm::<C, U12>(key, iv, payload, way),
                    104 => gcm::<C, U13>(key, iv, payload, way),
                    112 => gcm::<C, U14>(key, iv, payload, way),
                    120 => gcm::<C, U15>(key, iv, payload, way),
                    _ => gcm::<C, U16>(key, iv, payload, way),
                }
            }
        }
    }
}

fn block(params: &Value<'_>, field: &str) -> Outcome<Vec<u8>> {
    let bytes = algorithm::bytes(params, field)?.unwrap_or_default();
    match bytes.len() {
        16 => Ok(bytes),
        count => Err(Fault::Operation(format!("the algorithm's `{field}` must have 16 bytes, not {count}"))),
    }
}

fn cbc<C: Cipher>(key: &[u8], iv: &[u8], data: &[u8], way: Way) -> Outcome<Vec<u8>> {
    match way {
        // As k6, which pads nothing to nothing.
        Way::Encrypt if data.is_empty() => Err(Fault::Operation("there is nothing to encrypt".to_owned())),
        Way::Encrypt => {
            let cipher = ::cbc::Encryptor::<C>::new_from_slices(key, iv).map_err(|_| unfit())?;
            Ok(cipher.encrypt_padded_vec::<Pkcs7>(data))
        }
        Way::Decrypt => {
            let cipher = ::cbc::Decryptor::<C>::new_from_slices(key, iv).map_err(|_| unfit())?;
            cipher.decrypt_padded_vec::<Pkcs7>(data).map_err(|_| undecipherable())
        }
    }
}

/// The whole block counts, whatever `length` says: k6 does so, and a difference takes a counter at the end of its bits.
fn ctr<C: Cipher>(key: &[u8], counter: &[u8], data: &[u8]) -> Outcome<Vec<u8>> {
    let mut cipher = ::ctr::Ctr128BE::<C>::new_from_slices(key, counter).map_err(|_| unfit())?;
    let mut data = data.to_vec();
    cipher.try_apply_keystream(&mut data).map_err(|_| unfit())?;
    Ok(data)
}

fn gcm<C: Cipher, T: TagSize>(key: &[u8], iv: &[u8], payload: Payload<'_, '_>, way: Way) -> Outcome<Vec<u8>> {
    let cipher = AesGcm::<C, U12, T>::new_from_slice(key).map_err(|_| unfit())?;
    let nonce = Nonce::<U12>::try_from(iv).map_err(|_| unfit())?;
    match way {
        Way::Encrypt => cipher.encrypt(&nonce, payload).map_err(|_| unfit()),
        Way::Decrypt => cipher.decrypt(&nonce, payload).map_err(|_| undecipherable()),
    }
}

fn unfit() -> Fault {
    Fault::Operation("the key or the data do not fit AES".to_owned())
}

fn undecipherable() -> Fault {
    Fault::Operation("the data cannot be decrypted with this key".to_owned())
}
