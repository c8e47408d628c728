//! Ids that the client made up, different in each copy, each round and each run: the same id becomes the same other one within a copy.
//!
//! What the server gave is left alone: it is learned, and is already replaced by the live value.

use regex::bytes::Regex;
use squall_plan::InputError;

use super::{Context, found};
use crate::{Request, key_of, pattern};

/// Which texts are ids.
#[derive(Debug)]
pub(super) struct Ids {
    pattern: Regex,
    /// Of this run.
    seed: u64,
}

impl Ids {
    /// UUIDs, or what the pattern matches.
    pub(super) fn new(pattern: Option<&str>, seed: u64) -> Result<Self, InputError> {
        let pattern = pattern::compile(pattern.unwrap_or(UUID))?;
        Ok(Self { pattern, seed })
    }

    pub(super) fn replace(&self, request: &mut Request, context: &Context<'_>) {
        let copy = u64::from(context.user) << 32 | u64::from(context.round);
        found::each(request, &self.pattern, &mut |id| {
            let is_live = context.live.is_some_and(|live| live.has(id));
            (!is_live).then(|| other(id, self.seed ^ copy.wrapping_mul(0x9E37_79B9_7F4A_7C15)))
        });
    }
}

/// An id of the same shape: digits for digits, letters for letters of their kind; a UUID keeps its version and variant.
fn other(id: &[u8], seed: u64) -> Vec<u8> {
    let is_uuid = id.len() == 36 && id.iter().filter(|byte| **byte == b'-').count() == 4;
    let is_hex = id.iter().all(|byte| byte.is_ascii_hexdigit() || *byte == b'-');
    let mut state = key_of(&id.to_ascii_lowercase()) ^ seed;
    let mut draw = |count: u8| {
        // SplitMix64.
        state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut bits = (state ^ state >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        bits = (bits ^ bits >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((bits ^ bits >> 31) % u64::from(count)) as u8
    };
    let is_hex = is_hex && id.len() >= HEX_BYTES_MIN && id.iter().any(u8::is_ascii_alphabetic);
    let is_upper = id.iter().any(u8::is_ascii_uppercase);
    let mut out = Vec::with_capacity(id.len());
    for (at, byte) in id.iter().enumerate() {
        out.push(match byte {
            _ if is_uuid && (at == 14 || at == 19) => *byte,
            byte if is_hex && byte.is_ascii_hexdigit() => match is_upper {
                true => HEX[usize::from(draw(16))].to_ascii_uppercase(),
                false => HEX[usize::from(draw(16))],
            },
            // A number keeps its length.
            b'0'..=b'9' if at == 0 => b'1' + draw(9),
            b'0'..=b'9' => b'0' + draw(10),
            b'a'..=b'z' => b'a' + draw(26),
            b'A'..=b'Z' => b'A' + draw(26),
            other => *other,
        });
    }
    out
}

const HEX: &[u8; 16] = b"0123456789abcdef";

/// Shorter texts of the letters a to f are no hexadecimal numbers for certain.
const HEX_BYTES_MIN: usize = 16;

/// RFC 9562.
const UUID: &str = "(?-u)[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}";
