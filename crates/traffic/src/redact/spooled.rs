//! Secrets in the part of a body that stays on disk: those that are known are replaced, window by window.
//!
//! Names are not looked for here: the fields of a form are at the beginning and the end of a body, which are in memory.

use std::fs::File;
use std::io::{self, Write};
use std::sync::Arc;

use super::values::Values;
use crate::{Request, Spooled};

/// Leaves out a spooled body with a content coding, in which no secret can be found.
pub(super) fn drop_opaque(request: &mut Request) {
    let coding = request.header("content-encoding").unwrap_or(b"identity");
    if request.spooled.is_some() && !coding.trim_ascii().eq_ignore_ascii_case(b"identity") {
        request.drop_body();
    }
}

/// Replaces the secrets in the spooled part of a body; whether there was any. What cannot be read or written is left out.
pub(super) fn sweep(values: &Values, request: &mut Request) -> bool {
    let Some(spooled) = &request.spooled else { return false };
    match swept(values, spooled) {
        Ok(None) => return false,
        Ok(Some(swept)) => request.spooled = Some(swept),
        Err(_) => request.drop_body(),
    }
    true
}

fn swept(values: &Values, spooled: &Spooled) -> io::Result<Option<Spooled>> {
    // Most bodies have no secret: they are not copied.
    if !windows(values, spooled, &mut io::sink())?.has_secret {
        return Ok(None);
    }
    let mut file = tempfile::tempfile()?;
    let bytes = windows(values, spooled, &mut file)?.bytes;
    Ok(Some(Spooled::plain(Arc::<File>::new(file), 0, bytes, spooled.at)))
}

#[derive(Default)]
struct Swept {
    has_secret: bool,
    bytes: u64,
}

/// Writes the bytes with their secrets replaced.
fn windows(values: &Values, spooled: &Spooled, out: &mut dyn Write) -> io::Result<Swept> {
    let mut swept = Swept::default();
    let mut window = vec![0; WINDOW_BYTES];
    let (mut filled, mut position) = (0, 0);
    loop {
        let read = spooled.read_at(&mut window[filled..], position)?;
        (filled, position) = (filled + read, position + read as u64);
        let is_last = position >= spooled.bytes;
        let end = if is_last { filled } else { filled - SECRET_BYTES_MAX };
        let (clean, done) =
            values.sweep_window(&window[..filled], end, if is_last { 0 } else { SECRET_BYTES_MAX });
        swept.has_secret |= clean.is_some();
        let clean = clean.as_deref().unwrap_or(&window[..done]);
        out.write_all(clean)?;
        swept.bytes += clean.len() as u64;
        if is_last {
            return Ok(swept);
        }
        window.copy_within(done..filled, 0);
        filled -= done;
    }
}

/// Read at once.
const WINDOW_BYTES: usize = 2 << 20;

/// The longest secret that is looked for, with each of its bytes escaped.
const SECRET_BYTES_MAX: usize = 128 << 10;
