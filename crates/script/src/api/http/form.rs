//! Bodies: strings, buffers, forms, files; how they are compressed and undone; and what proves who asks.

use std::io::{Read, Write};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::vm::{Call, JsResult, Value};
use squall_plan::Body;

use super::params::Flaw;

/// An encoded body.
#[derive(Debug, Default)]
pub(crate) struct Encoded {
    pub(crate) body: Body,
    /// `Content-Type`, where the body says it.
    pub(crate) content_type: Option<String>,
    /// `Content-Encoding`.
    pub(crate) coding: Option<String>,
}

/// `http.file(data, filename, contentType)`.
#[derive(Debug)]
struct FileData {
    bytes: Vec<u8>,
    name: String,
    content_type: String,
}

/// Encodes what a script gave as a body.
pub(crate) fn encode(value: &Value<'_>, compression: &[String]) -> Result<Encoded, Flaw> {
    let (mut bytes, content_type) = if value.is_nullish() {
        return Ok(Encoded::default());
    } else if value.is_string() {
        (value.to_text()?.as_bytes().to_vec(), None)
    } else if let Some(path) = file_stream(value)? {
        let bytes = std::fs::metadata(&path).map_or(0, |metadata| metadata.len());
        return Ok(Encoded { body: Body::File { path, bytes }, ..Encoded::default() });
    } else if let Some(bytes) = value.bytes() {
        (bytes, None)
    } else if value.is_object() && !value.is_array() && !value.is_function() {
        form(value)?
    } else {
        let problem = "unknown request body type: use a string, a buffer or an object, and JSON.stringify(list) for a list";
        return Err(Flaw::Bad(problem.to_owned()));
    };
    for coding in compression {
        bytes = compress(&bytes, coding).map_err(Flaw::Bad)?;
    }
    let coding = (!compression.is_empty()).then(|| compression.join(", "));
    Ok(Encoded { body: Body::Bytes(bytes), content_type, coding })
}

/// The path of a file that is streamed from disk, where the body is one (`k6/x/fasthttp`).
fn file_stream(value: &Value<'_>) -> JsResult<Option<std::path::PathBuf>> {
    if !value.is_object() || value.is_array() {
        return Ok(None);
    }
    let path = value.get(STREAMED_FILE)?;
    Ok(path.as_text().and_then(|name| crate::resolve::file_path(&name)))
}

fn form(object: &Value<'_>) -> JsResult<(Vec<u8>, Option<String>)> {
    let mut fields = Vec::new();
    for key in object.keys()? {
        fields.push((key.text(), object.get_key(&key)?));
    }
    if fields.iter().any(|(_, value)| value.opaque::<FileData>().is_some()) {
        return multipart(&fields).map(|(bytes, content_type)| (bytes, Some(content_type)));
    }
    fields.sort_by(|left, right| left.0.cmp(&right.0));
    let mut encoded = String::new();
    for (name, value) in &fields {
        let values = if value.is_array() { value.elements()? } else { vec![value.clone()] };
        for value in values {
            if !encoded.is_empty() {
                encoded.push('&');
            }
            let text =
                if value.is_nullish() || value.is_object() { String::new() } else { value.to_string()? };
            encoded.push_str(&format!("{}={}", query_escaped(name), query_escaped(&text)));
        }
    }
    Ok((encoded.into_bytes(), Some("application/x-www-form-urlencoded".to_owned())))
}

fn multipart(fields: &[(String, Value<'_>)]) -> JsResult<(Vec<u8>, String)> {
    let boundary =
        format!("{:060x}", u128::from(std::process::id()) << 64 | fields.len() as u128 | 0x5157_u128 << 96);
    let quote = |text: &str| text.replace('\\', "\\\\").replace('"', "\\\"");
    let mut bytes = Vec::new();
    for (name, value) in fields {
        bytes.extend(
            format!("--{boundary}\r\nContent-Disposition: form-data; name=\"{}\"", quote(name)).bytes(),
        );
        match value.opaque::<FileData>() {
            Some(file) => {
                let rest = format!(
                    "; filename=\"{}\"\r\nContent-Type: {}\r\n\r\n",
                    quote(&file.name),
                    file.content_type
                );
                bytes.extend(rest.bytes());
                bytes.extend(&file.bytes);
            }
            None => {
                bytes.extend(b"\r\n\r\n");
                bytes.extend(value.to_text()?.bytes());
            }
        }
        bytes.extend(b"\r\n");
    }
    bytes.extend(format!("--{boundary}--\r\n").bytes());
    Ok((bytes, format!("multipart/form-data; boundary={boundary}")))
}

/// `http.file(data, filename?, contentType?)`.
pub(super) fn file<'js>(call: &Call<'js>) -> JsResult<Value<'js>> {
    let ctx = call.ctx();
    let or = |idx: usize, otherwise: &str| -> JsResult<String> {
        let value = call.arg(idx);
        if value.is_nullish() { Ok(otherwise.to_owned()) } else { value.to_string() }
    };
    let bytes = crate::api::bytes_of(&call.arg(0))?;
    let (name, content_type) = (or(1, "file")?, or(2, "application/octet-stream")?);
    let data = FileData { bytes, name: name.clone(), content_type: content_type.clone() };
    let object = ctx.native(&ctx.object(), Box::new(data))?;
    object.set("data", call.arg(0))?;
    object.set("filename", ctx.string(&name))?;
    object.set("content_type", ctx.string(&content_type))?;
    Ok(object)
}

/// Go's `url.QueryEscape`.
fn query_escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => escaped.push(byte as char),
            b' ' => escaped.push('+'),
            _ => escaped.push_str(&format!("%{byte:02X}")),
        }
    }
    escaped
}

/// `%41` as `A`.
pub(super) fn percent_decoded(text: &str) -> String {
    let (bytes, mut decoded, mut at) = (text.as_bytes(), Vec::new(), 0);
    while at < bytes.len() {
        let hex = bytes.get(at + 1..at + 3).and_then(|hex| std::str::from_utf8(hex).ok());
        match hex.filter(|_| bytes[at] == b'%').and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(byte) => {
                decoded.push(byte);
                at += 3;
            }
            None => {
                decoded.push(bytes[at]);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&decoded).into_owned()
}

fn compress(bytes: &[u8], coding: &str) -> Result<Vec<u8>, String> {
    let mut out = Vec::new();
    let level = flate2::Compression::default();
    let result = match coding {
        "gzip" => {
            let mut encoder = flate2::write::GzEncoder::new(&mut out, level);
            encoder.write_all(bytes).and_then(|()| encoder.finish().map(drop))
        }
        "deflate" => {
            let mut encoder = flate2::write::ZlibEncoder::new(&mut out, level);
            encoder.write_all(bytes).and_then(|()| encoder.finish().map(drop))
        }
        "br" => {
            let params = brotli::enc::BrotliEncoderParams::default();
            brotli::BrotliCompress(&mut &*bytes, &mut out, &params).map(drop)
        }
        "zstd" => {
            ruzstd::encoding::compress(bytes, &mut out, ruzstd::encoding::CompressionLevel::Fastest);
            Ok(())
        }
        other => {
            return Err(format!(
                "unknown compression algorithm {other}, supported algorithms are gzip, deflate, zstd, br"
            ));
        }
    };
    result.map(|()| out).map_err(|error| format!("cannot compress the body: {error}"))
}

/// Undoes the content codings of a body, the last one first.
pub(super) fn decode(body: &[u8], codings: &[String], bytes_max: u64) -> Result<Vec<u8>, String> {
    let list: Vec<String> = codings
        .iter()
        .flat_map(|field| field.split(','))
        .map(|one| one.trim().to_ascii_lowercase())
        .collect();
    if list.len() > CODING_COUNT_MAX {
        return Err(format!("more than {CODING_COUNT_MAX} content codings"));
    }
    let mut bytes = body.to_vec();
    for coding in list.iter().rev() {
        bytes = undo(&bytes, coding, bytes_max).map_err(|error| format!("{coding}: {error}"))?;
    }
    Ok(bytes)
}

fn undo(bytes: &[u8], coding: &str, bytes_max: u64) -> std::io::Result<Vec<u8>> {
    let mut out = Vec::new();
    let reader: Box<dyn Read + '_> = match coding {
        "gzip" | "x-gzip" => Box::new(flate2::read::MultiGzDecoder::new(bytes)),
        "deflate" => Box::new(flate2::read::ZlibDecoder::new(bytes)),
        "br" => Box::new(brotli::Decompressor::new(bytes, 4096)),
        "zstd" => {
            let decoder = ruzstd::decoding::StreamingDecoder::new(bytes);
            Box::new(decoder.map_err(|error| std::io::Error::other(error.to_string()))?)
        }
        _ => return Ok(bytes.to_vec()),
    };
    // A small body may unfold into one that fills the memory.
    reader.take(bytes_max.saturating_add(1)).read_to_end(&mut out)?;
    if out.len() as u64 > bytes_max {
        let text = format!("more than {bytes_max} bytes: `ext.squall.maxBodyBytes` allows more");
        return Err(std::io::Error::other(text));
    }
    Ok(out)
}

/// Content codings of one body, as in curl: each may unfold a small body into a large one.
const CODING_COUNT_MAX: usize = 5;

/// RFC 7617.
pub(crate) fn basic_authorization(name: &str, password: &str) -> String {
    format!("Basic {}", STANDARD.encode(format!("{name}:{password}")))
}

/// Hidden member of a `FileStream`: the URL of its file.
pub(crate) const STREAMED_FILE: &str = "__streamedFile";
