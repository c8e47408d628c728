//! Content codings taken off, in bounded memory.

use std::io::Read;

use crate::limits::RECORD_BYTES_MAX;

/// The body without its content coding; `None` where it is damaged, too large, or of a coding that is not known.
pub fn decoded(body: &[u8], coding: Option<&[u8]>) -> Option<Vec<u8>> {
    let coding = coding.unwrap_or_default().trim_ascii().to_ascii_lowercase();
    let mut out = Vec::new();
    let mut read =
        |reader: &mut dyn Read| reader.take(RECORD_BYTES_MAX as u64 + 1).read_to_end(&mut out).ok();
    match coding.as_slice() {
        b"" | b"identity" => return Some(body.to_vec()),
        b"gzip" | b"x-gzip" => read(&mut flate2::read::MultiGzDecoder::new(body))?,
        b"deflate" => read(&mut flate2::read::ZlibDecoder::new(body))?,
        b"br" => read(&mut brotli_decompressor::Decompressor::new(body, 4096))?,
        b"zstd" => read(&mut ruzstd::decoding::StreamingDecoder::new(body).ok()?)?,
        _ => return None,
    };
    (out.len() <= RECORD_BYTES_MAX).then_some(out)
}
