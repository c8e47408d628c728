//! Digest authentication (RFC 7616). The server keeps no nonces: it verifies the response to whichever nonce the client names.

use std::collections::HashMap;

use data_encoding::HEXLOWER;
use hyper::{StatusCode, header::WWW_AUTHENTICATE};
use md5::Md5;
use sha2::{Digest, Sha256};

use super::auth::{credentials, welcome};
use crate::{
    call::{Call, target},
    reply::{Refusal, Reply},
};

pub(super) fn md5(call: &Call<'_>) -> Result<Reply, Refusal> {
    check(call, Algorithm::Md5)
}

pub(super) fn chosen(call: &Call<'_>) -> Result<Reply, Refusal> {
    let algorithm = match &*call.arg(3)?.to_ascii_uppercase() {
        "MD5" => Algorithm::Md5,
        "SHA-256" => Algorithm::Sha256,
        other => return Err(Refusal::new(format!("`{other}` is not MD5 or SHA-256"))),
    };
    check(call, algorithm)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Algorithm {
    Md5,
    Sha256,
}

impl Algorithm {
    fn name(self) -> &'static str {
        match self {
            Self::Md5 => "MD5",
            Self::Sha256 => "SHA-256",
        }
    }

    fn hex(self, data: impl AsRef<[u8]>) -> String {
        match self {
            Self::Md5 => HEXLOWER.encode(&Md5::digest(data)),
            Self::Sha256 => HEXLOWER.encode(&Sha256::digest(data)),
        }
    }
}

fn check(call: &Call<'_>, algorithm: Algorithm) -> Result<Reply, Refusal> {
    let qop = call.arg(0)?;
    if qop != "auth" && qop != "auth-int" {
        return Err(Refusal::new(format!("`{qop}` is not auth or auth-int")));
    }
    let answer = credentials(call, "digest").and_then(parse);
    let right = answer.as_ref().map(|answer| expected(call, algorithm, &qop, answer)).transpose()?;
    let given = answer.as_ref().and_then(|answer| answer.get("response"));
    if right.is_some() && right.as_deref() == given.copied() {
        return Ok(welcome(&call.arg(1)?));
    }
    challenge(call, algorithm, &qop)
}

fn challenge(call: &Call<'_>, algorithm: Algorithm, qop: &str) -> Result<Reply, Refusal> {
    let nonce = algorithm.hex(call.shared.sequences.nonce.count().to_le_bytes());
    let algorithm = algorithm.name();
    let header = format!(
        r#"Digest realm="{REALM}", nonce="{nonce}", qop="{qop}", opaque="squall", algorithm={algorithm}"#
    );
    Reply::empty(StatusCode::UNAUTHORIZED).with_asked(WWW_AUTHENTICATE, &header)
}

/// RFC 7616 3.4.1. What the client says of user, URI and quality must be ours, or the result cannot match.
fn expected(
    call: &Call<'_>,
    algorithm: Algorithm,
    qop: &str,
    answer: &HashMap<&str, &str>,
) -> Result<String, Refusal> {
    let field = |name| answer.get(name).copied().unwrap_or_default();
    let (user, password) = (call.arg(1)?, call.arg(2)?);
    let secret = algorithm.hex(format!("{user}:{REALM}:{password}"));
    let (method, uri) = (&call.head.method, target(&call.head.uri));
    let request = match qop {
        "auth" => algorithm.hex(format!("{method}:{uri}")),
        _ => algorithm.hex(format!("{method}:{uri}:{}", algorithm.hex(&call.body.bytes))),
    };
    let (nonce, count, own) = (field("nonce"), field("nc"), field("cnonce"));
    Ok(algorithm.hex(format!("{secret}:{nonce}:{count}:{own}:{qop}:{request}")))
}

const REALM: &str = "squall";

/// `name=value` and `name="value"` between commas. Commas within quotes do not part.
fn parse(text: &str) -> Option<HashMap<&str, &str>> {
    let mut fields = HashMap::new();
    let mut rest = text.trim();
    while !rest.is_empty() {
        let (name, after) = rest.split_once('=')?;
        let (value, after) = match after.strip_prefix('"') {
            Some(quoted) => quoted.split_once('"')?,
            None => after.split_at(after.find(',').unwrap_or(after.len())),
        };
        fields.insert(name.trim(), value.trim());
        rest = after.trim_start().trim_start_matches(',').trim_start();
    }
    Some(fields)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_may_be_quoted_and_hold_commas() {
        let fields = parse(r#"username="a,b", qop=auth , nc=00000001,uri="/x=y""#).unwrap();
        assert_eq!(fields["username"], "a,b");
        assert_eq!(fields["qop"], "auth");
        assert_eq!(fields["nc"], "00000001");
        assert_eq!(fields["uri"], "/x=y");
        assert_eq!(parse("nonsense"), None);
        assert_eq!(parse("a=\"b"), None);
    }
}
