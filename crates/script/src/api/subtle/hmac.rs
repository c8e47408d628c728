//! HMAC: a hash with a key.

use aws_lc_rs::{constant_time, hmac};

use super::algorithm::{self, Hash, Name};
use super::error::{Fault, Outcome};
use super::jwk::Jwk;
use super::key::Material;
use super::usage::{Format, Usage};
use crate::api::by_pieces;
use crate::vm::{Ctx, Value};

/// A fresh key; as long as a block of the hash, where no length is asked for.
pub(super) fn generate(ctx: Ctx<'_>, params: &Value<'_>, usages: &[Usage]) -> Outcome<Material> {
    Usage::check(usages, USAGES)?;
    let hash = Hash::param(params)?;
    let byte_count = match algorithm::count(params, "length")? {
        Some(bits) => bits as usize / 8,
        None => hash.block_bytes(),
    };
    if !(1..=KEY_BYTES_MAX).contains(&byte_count) {
        return Err(Fault::Operation(format!("a key of HMAC cannot have {byte_count} bytes")));
    }
    Ok(Material::Hmac(hash, super::random(ctx, byte_count)?))
}

/// A key from outside; its length is that of its bytes.
pub(super) fn import(
    format: Format,
    data: &Value<'_>,
    params: &Value<'_>,
    usages: &[Usage],
) -> Outcome<Material> {
    Usage::check(usages, USAGES)?;
    let hash = Hash::param(params)?;
    let bytes = match format {
        Format::Raw => algorithm::data(data)?,
        Format::Jwk => Jwk::of(data, "oct")?.required("k")?,
        Format::Pkcs8 | Format::Spki => return Err(Format::refused(Name::Hmac)),
    };
    let bits = bytes.len() * 8;
    match algorithm::count(params, "length")? {
        _ if bits == 0 => Err(Fault::Data("a key of HMAC has at least one byte".to_owned())),
        Some(asked) if asked as usize != bits => {
            Err(Fault::Data(format!("the key has {bits} bits, the algorithm's `length` is {asked}")))
        }
        _ => Ok(Material::Hmac(hash, bytes)),
    }
}

pub(super) fn sign(ctx: Ctx<'_>, hash: Hash, key: &[u8], data: &[u8]) -> Outcome<Vec<u8>> {
    let mut context = hmac::Context::with_key(&hmac::Key::new(hash.hmac(), key));
    by_pieces(ctx, data, |piece| context.update(piece))?;
    Ok(context.sign().as_ref().to_vec())
}

pub(super) fn verify(ctx: Ctx<'_>, hash: Hash, key: &[u8], signature: &[u8], data: &[u8]) -> Outcome<bool> {
    let tag = sign(ctx, hash, key, data)?;
    Ok(constant_time::verify_slices_are_equal(&tag, signature).is_ok())
}

const USAGES: &[Usage] = &[Usage::Sign, Usage::Verify];

/// Longer keys are hashed before use, so that no length gives more strength; this is for who tries.
const KEY_BYTES_MAX: usize = 1 << 20;
