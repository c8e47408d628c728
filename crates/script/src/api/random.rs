//! Random bytes for scripts.

use crate::vm::{Ctx, JsResult};

/// So many random bytes.
pub(super) fn random(ctx: Ctx<'_>, count: usize) -> JsResult<Vec<u8>> {
    let mut bytes = vec![0; count];
    for piece in bytes.chunks_mut(RANDOM_PIECE_BYTES) {
        getrandom::fill(piece).map_err(|error| ctx.throw_error(&format!("no random bytes: {error}")))?;
        ctx.give_way()?;
    }
    Ok(bytes)
}

/// Random bytes that the system gives in less than a millisecond.
const RANDOM_PIECE_BYTES: usize = 128 * 1024;
