//! PBKDF2: keys and bits from a password.

use std::num::NonZeroU32;

use aws_lc_rs::pbkdf2;

use super::algorithm::{self, Hash, Name};
use super::error::{Fault, Outcome};
use super::key::Material;
use super::usage::{Format, Usage};
use crate::api::off_loop;
use crate::vm::{Ctx, Value};

/// How a password becomes bits.
pub(super) struct Params {
    hash: Hash,
    salt: Vec<u8>,
    iterations: NonZeroU32,
}

/// A password from outside, which is not given out again.
pub(super) fn import(
    format: Format,
    data: &Value<'_>,
    extractable: bool,
    usages: &[Usage],
) -> Outcome<Material> {
    if format != Format::Raw {
        return Err(Format::refused(Name::Pbkdf2));
    }
    Usage::check(usages, &[Usage::DeriveKey, Usage::DeriveBits])?;
    if extractable {
        return Err(Fault::Syntax("a password cannot be extractable".to_owned()));
    }
    Ok(Material::Secret(algorithm::data(data)?))
}

impl Params {
    pub(super) fn of(params: &Value<'_>) -> Outcome<Self> {
        let hash = Hash::param(params)?;
        let missing = |field: &str| Fault::Type(format!("the algorithm's `{field}` is missing"));
        let iterations = algorithm::count(params, "iterations")?.ok_or_else(|| missing("iterations"))?;
        let none = || Fault::Operation("the password needs at least one iteration".to_owned());
        let iterations = NonZeroU32::new(iterations).ok_or_else(none)?;
        let salt = algorithm::bytes(params, "salt")?.ok_or_else(|| missing("salt"))?;
        Ok(Self { hash, salt, iterations })
    }

    /// So many bits; only whole bytes.
    pub(super) fn derive(self, ctx: Ctx<'_>, password: &[u8], bits: u32) -> Outcome<Vec<u8>> {
        let byte_count = bits as usize / 8;
        if !bits.is_multiple_of(8) || !(1..=DERIVED_BYTES_MAX).contains(&byte_count) {
            return Err(Fault::Operation(format!("{bits} bits cannot be derived")));
        }
        let block_count = byte_count.div_ceil(HASH_BYTES_MIN) as u64;
        if block_count * u64::from(self.iterations.get()) > ROUND_COUNT_MAX {
            let text = format!("{} iterations for {bits} bits take too long", self.iterations);
            return Err(Fault::Operation(text));
        }
        let password = password.to_vec();
        let derived = off_loop(ctx, move || {
            let mut bytes = vec![0; byte_count];
            pbkdf2::derive(self.hash.pbkdf2(), self.iterations, &self.salt, &password, &mut bytes);
            bytes
        })?;
        Ok(derived)
    }
}

/// Each block of a hash takes all iterations anew, and no use needs a key of this length.
const DERIVED_BYTES_MAX: usize = 1 << 20;

/// The bytes of the shortest hash, SHA-1: each gets all iterations.
const HASH_BYTES_MIN: usize = 20;

/// Nothing interrupts the thread that makes them: some ten seconds. OWASP asks for 1,300,000 iterations at most.
const ROUND_COUNT_MAX: u64 = 1 << 24;
