//! Answers that break.

use std::time::Duration;

use hyper::header::CONNECTION;

use crate::{
    body::{Source, Step, block},
    call::Call,
    connection::Cut,
    limits::REPLY_BYTES_MAX,
    reply::{Fate, Refusal, Reply},
};

pub(super) fn close(_: &Call<'_>) -> Result<Reply, Refusal> {
    Ok(Reply::text("closing\n").with(CONNECTION, "close"))
}

pub(super) fn hang(_: &Call<'_>) -> Result<Reply, Refusal> {
    Ok(Reply::none(Fate::Hang))
}

pub(super) fn abort(call: &Call<'_>) -> Result<Reply, Refusal> {
    let cut = match call.query("how").as_deref() {
        None | Some("reset") => Cut::Reset,
        Some("close") => Cut::Close,
        Some(other) => return Err(Refusal::new(format!("`how` is `reset` or `close`, not `{other}`"))),
    };
    if call.query("after").is_none() {
        return Ok(Reply::none(Fate::Cut(cut)));
    }
    let after = call.query_size("after", 0, 0..=REPLY_BYTES_MAX - 1)?;
    Ok(Reply::new("application/octet-stream", cut_short(after, cut)))
}

/// Announces one byte more than it sends, so that every client sees the end as a fault.
fn cut_short(after: u64, cut: Cut) -> Source {
    let pieces = Source::repeated(block(None), 0, after).into_steps();
    Source::steps(pieces.chain([Step::Until(LEAVE_TIME), Step::Cut(cut)]), Some(after + 1))
}

/// Time for the head and the bytes to leave before the connection breaks: a reset overtakes what is still in our buffers.
const LEAVE_TIME: Duration = Duration::from_millis(20);
