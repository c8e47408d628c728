//! Echoes in a content coding (RFC 9110 8.4.1, RFC 7932, RFC 8878).

use std::io::{self, Read, Write};

use flate2::{
    Compression,
    read::{GzEncoder, ZlibEncoder},
};
use hyper::header::CONTENT_ENCODING;
use serde_json::json;

use super::echo;
use crate::{
    call::Call,
    reply::{Refusal, Reply, json_line},
};

pub(super) fn gzip(call: &Call<'_>) -> Result<Reply, Refusal> {
    encoded(call, "gzip", "gzipped", |text| read_all(GzEncoder::new(text, Compression::fast())))
}

pub(super) fn deflate(call: &Call<'_>) -> Result<Reply, Refusal> {
    encoded(call, "deflate", "deflated", |text| read_all(ZlibEncoder::new(text, Compression::fast())))
}

pub(super) fn brotli(call: &Call<'_>) -> Result<Reply, Refusal> {
    encoded(call, "br", "brotli", encode_brotli)
}

pub(super) fn zstd(call: &Call<'_>) -> Result<Reply, Refusal> {
    let encode = |text: &[u8]| {
        Ok(ruzstd::encoding::compress_to_vec(text, ruzstd::encoding::CompressionLevel::Fastest))
    };
    encoded(call, "zstd", "zstd", encode)
}

fn encoded(
    call: &Call<'_>,
    coding: &'static str,
    flag: &str,
    encode: impl Fn(&[u8]) -> io::Result<Vec<u8>>,
) -> Result<Reply, Refusal> {
    let text = json_line(&json!({
        flag: true,
        "headers": echo::header_map(call),
        "method": call.head.method.as_str(),
        "origin": call.peer.ip().to_string(),
    }));
    let bytes = encode(&text).expect("memory takes and gives all bytes");
    Ok(Reply::whole("application/json", bytes).with(CONTENT_ENCODING, coding))
}

fn read_all(mut encoder: impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    encoder.read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn encode_brotli(text: &[u8]) -> io::Result<Vec<u8>> {
    const BUFFER_BYTES: usize = 4096;
    const QUALITY: u32 = 1;
    const WINDOW_BITS: u32 = 16;
    let mut encoder = brotli::CompressorWriter::new(Vec::new(), BUFFER_BYTES, QUALITY, WINDOW_BITS);
    encoder.write_all(text)?;
    Ok(encoder.into_inner())
}
