//! Fixed pages, and small ones made to measure.

use std::fmt::Write;

use data_encoding::{BASE64, BASE64_NOPAD, BASE64URL, BASE64URL_NOPAD};
use serde_json::json;

use super::redirects::found;
use crate::{
    call::Call,
    limits::ITEM_COUNT_MAX,
    reply::{Refusal, Reply},
};

pub(super) fn index(_: &Call<'_>) -> Result<Reply, Refusal> {
    Ok(Reply::text("squall target\n"))
}

pub(super) fn health(_: &Call<'_>) -> Result<Reply, Refusal> {
    Ok(Reply::text("ok\n"))
}

pub(super) fn stats(call: &Call<'_>) -> Result<Reply, Refusal> {
    Ok(Reply::json(&call.shared.stats()))
}

pub(super) fn utf8(_: &Call<'_>) -> Result<Reply, Refusal> {
    Ok(Reply::html(include_str!("../../assets/utf8.html")))
}

pub(super) fn html(_: &Call<'_>) -> Result<Reply, Refusal> {
    Ok(Reply::html(include_str!("../../assets/prose.html")))
}

pub(super) fn json(_: &Call<'_>) -> Result<Reply, Refusal> {
    Ok(Reply::whole("application/json", include_str!("../../assets/slides.json")))
}

pub(super) fn xml(_: &Call<'_>) -> Result<Reply, Refusal> {
    Ok(Reply::whole("application/xml", include_str!("../../assets/slides.xml")))
}

pub(super) fn form(_: &Call<'_>) -> Result<Reply, Refusal> {
    Ok(Reply::html(include_str!("../../assets/form.html")))
}

pub(super) fn robots(_: &Call<'_>) -> Result<Reply, Refusal> {
    Ok(Reply::text("User-agent: *\nDisallow: /deny\n"))
}

pub(super) fn deny(_: &Call<'_>) -> Result<Reply, Refusal> {
    Ok(Reply::text("You should not be here: /robots.txt says so.\n"))
}

pub(super) fn png(_: &Call<'_>) -> Result<Reply, Refusal> {
    Ok(Reply::whole("image/png", include_bytes!("../../assets/pixel.png").as_slice()))
}

pub(super) fn jpeg(_: &Call<'_>) -> Result<Reply, Refusal> {
    Ok(Reply::whole("image/jpeg", include_bytes!("../../assets/pixel.jpeg").as_slice()))
}

pub(super) fn webp(_: &Call<'_>) -> Result<Reply, Refusal> {
    Ok(Reply::whole("image/webp", include_bytes!("../../assets/pixel.webp").as_slice()))
}

pub(super) fn svg(_: &Call<'_>) -> Result<Reply, Refusal> {
    Ok(Reply::whole("image/svg+xml", include_str!("../../assets/square.svg")))
}

pub(super) fn links_start(call: &Call<'_>) -> Result<Reply, Refusal> {
    let count = call.count(0, 1..=ITEM_COUNT_MAX)?;
    found(&format!("/links/{count}/0"))
}

pub(super) fn links(call: &Call<'_>) -> Result<Reply, Refusal> {
    let count = call.count(0, 1..=ITEM_COUNT_MAX)?;
    let own = call.count(1, 0..=count - 1)?;
    let mut page = "<!DOCTYPE html>\n<html><head><title>Links</title></head><body>\n".to_owned();
    for idx in 0..count {
        if idx == own {
            writeln!(page, "{idx}")
        } else {
            writeln!(page, "<a href=\"/links/{count}/{idx}\">{idx}</a>")
        }
        .expect("a string takes everything");
    }
    Ok(Reply::html(page + "</body></html>\n"))
}

/// Either alphabet of RFC 4648, with or without padding.
pub(super) fn base64(call: &Call<'_>) -> Result<Reply, Refusal> {
    let value = call.arg(0)?;
    let encodings = [BASE64, BASE64_NOPAD, BASE64URL, BASE64URL_NOPAD];
    let decoded = encodings.iter().find_map(|encoding| encoding.decode(value.as_bytes()).ok());
    let decoded = decoded.ok_or_else(|| Refusal::new(format!("`{value}` is not base64")))?;
    Ok(Reply::text(decoded))
}

/// RFC 9562 5.8: version 8 is for forms of one's own; the variant's bits are `10`.
pub(super) fn uuid(call: &Call<'_>) -> Result<Reply, Refusal> {
    let number = call.shared.sequences.uuid.count();
    let (high, low) = ((number >> 48) as u16, number & 0xFFFF_FFFF_FFFF);
    Ok(Reply::json(
        &json!({ "uuid": format!("00000000-0000-8000-{:04x}-{low:012x}", 0x8000 | (high & 0x3FFF)) }),
    ))
}
