//! JSON web tokens (RFC 7519) signed again: valid now for as long as they were when they were recorded, with claims of one's own.
//!
//! The algorithm stays the token's where the key can do it; else it becomes the key's.

use std::sync::LazyLock;

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{self, EcdsaKeyPair, RsaKeyPair};
use aws_lc_rs::{hmac, rsa};
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use regex::bytes::Regex;
use serde_json::{Map, Value};
use squall_plan::InputError;

use super::template::{Table, Template};
use super::{Context, found, refused};
use crate::Request;

/// How tokens are signed.
#[derive(Debug)]
pub(super) struct Signer {
    key: Key,
    claims: Vec<(String, Template)>,
}

enum Key {
    Secret(Vec<u8>),
    Rsa(Box<RsaKeyPair>),
    P256(Box<EcdsaKeyPair>),
    P384(Box<EcdsaKeyPair>),
}

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.default_algorithm())
    }
}

impl Signer {
    /// A PEM file with an RSA or EC (P-256, P-384) private key, or the bytes of a secret.
    pub(super) fn new(key: &str, claims: &[(String, String)], table: &Table) -> Result<Self, InputError> {
        let claims = claims
            .iter()
            .map(|(name, value)| Ok((name.clone(), Template::with(value, table)?)))
            .collect::<Result<_, InputError>>()?;
        Ok(Self { key: Key::read(key)?, claims })
    }

    pub(super) fn replace(&self, request: &mut Request, table: &Table, context: &Context<'_>) {
        found::each(request, &TOKEN, &mut |token| self.signed(token, table, context));
    }

    /// The token with its times moved to the present; `None` where it is none.
    fn signed(&self, token: &[u8], table: &Table, context: &Context<'_>) -> Option<Vec<u8>> {
        let mut parts = std::str::from_utf8(token).ok()?.split('.');
        let mut header = object(parts.next()?)?;
        let mut claims = object(parts.next()?)?;
        let by_s = (context.now_ns / 1_000_000_000) as i64 - (context.recorded_ns / 1_000_000_000) as i64;
        for name in ["iat", "nbf", "exp", "auth_time"] {
            if let Some(time) = claims.get(name).and_then(Value::as_i64) {
                claims.insert(name.to_owned(), time.saturating_add(by_s).into());
            }
        }
        for (name, value) in &self.claims {
            let value = value.fill(table, context);
            claims.insert(name.clone(), serde_json::from_str(&value).unwrap_or(Value::String(value)));
        }
        let asked = header.get("alg").and_then(Value::as_str).unwrap_or_default();
        let algorithm = self.key.algorithm(asked);
        header.insert("alg".to_owned(), algorithm.into());
        let encode = |map: Map<String, Value>| URL_SAFE_NO_PAD.encode(Value::Object(map).to_string());
        let text = format!("{}.{}", encode(header), encode(claims));
        let signature = self.key.sign(algorithm, text.as_bytes())?;
        Some(format!("{text}.{}", URL_SAFE_NO_PAD.encode(signature)).into_bytes())
    }
}

impl Key {
    fn read(text: &str) -> Result<Self, InputError> {
        if !text.contains("-----BEGIN") {
            let secret = text.trim_end_matches(['\r', '\n']);
            return match secret.is_empty() {
                true => Err(refused("the key is empty", KEY_HELP)),
                false => Ok(Self::Secret(secret.as_bytes().to_vec())),
            };
        }
        let der = der(text).ok_or_else(|| refused("the key is not a PEM private key", KEY_HELP))?;
        Self::of_der(&der).ok_or_else(|| refused("the key is neither RSA nor EC (P-256, P-384)", KEY_HELP))
    }

    fn of_der(der: &[u8]) -> Option<Self> {
        if let Ok(pair) = rsa::KeyPair::from_pkcs8(der).or_else(|_| rsa::KeyPair::from_der(der)) {
            return Some(Self::Rsa(Box::new(pair)));
        }
        let ec = |algorithm| {
            EcdsaKeyPair::from_pkcs8(algorithm, der)
                .or_else(|_| EcdsaKeyPair::from_private_key_der(algorithm, der))
                .ok()
                .map(Box::new)
        };
        ec(&signature::ECDSA_P256_SHA256_FIXED_SIGNING)
            .map(Self::P256)
            .or_else(|| ec(&signature::ECDSA_P384_SHA384_FIXED_SIGNING).map(Self::P384))
    }

    const fn default_algorithm(&self) -> &'static str {
        match self {
            Self::Secret(_) => "HS256",
            Self::Rsa(_) => "RS256",
            Self::P256(_) => "ES256",
            Self::P384(_) => "ES384",
        }
    }

    /// The token's own algorithm where this key can do it. RFC 7518 3.1.
    fn algorithm(&self, asked: &str) -> &'static str {
        let able: &[&'static str] = match self {
            Self::Secret(_) => &["HS256", "HS384", "HS512"],
            Self::Rsa(_) => &["RS256", "RS384", "RS512", "PS256", "PS384", "PS512"],
            Self::P256(_) => &["ES256"],
            Self::P384(_) => &["ES384"],
        };
        able.iter().find(|one| **one == asked).copied().unwrap_or_else(|| self.default_algorithm())
    }

    fn sign(&self, algorithm: &str, text: &[u8]) -> Option<Vec<u8>> {
        let random = SystemRandom::new();
        match self {
            Self::Secret(secret) => {
                let hash = match algorithm {
                    "HS384" => hmac::HMAC_SHA384,
                    "HS512" => hmac::HMAC_SHA512,
                    _ => hmac::HMAC_SHA256,
                };
                Some(hmac::sign(&hmac::Key::new(hash, secret), text).as_ref().to_vec())
            }
            Self::Rsa(pair) => {
                let encoding: &dyn signature::RsaEncoding = match algorithm {
                    "RS384" => &signature::RSA_PKCS1_SHA384,
                    "RS512" => &signature::RSA_PKCS1_SHA512,
                    "PS256" => &signature::RSA_PSS_SHA256,
                    "PS384" => &signature::RSA_PSS_SHA384,
                    "PS512" => &signature::RSA_PSS_SHA512,
                    _ => &signature::RSA_PKCS1_SHA256,
                };
                let mut signed = vec![0; pair.public_modulus_len()];
                pair.sign(encoding, &random, text, &mut signed).ok()?;
                Some(signed)
            }
            Self::P256(pair) | Self::P384(pair) => Some(pair.sign(&random, text).ok()?.as_ref().to_vec()),
        }
    }
}

/// The bytes of the first private key in a PEM file.
fn der(text: &str) -> Option<Vec<u8>> {
    let begin = text.find("PRIVATE KEY-----")? + "PRIVATE KEY-----".len();
    let end = begin + text[begin..].find("-----END")?;
    let encoded: String = text[begin..end].chars().filter(|c| !c.is_whitespace()).collect();
    STANDARD.decode(encoded).ok()
}

fn object(part: &str) -> Option<Map<String, Value>> {
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).ok()?).ok()
}

/// Two objects in base64url and a signature, which may be empty.
static TOKEN: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?-u)eyJ[0-9A-Za-z_-]+\.eyJ[0-9A-Za-z_-]+\.[0-9A-Za-z_-]*").expect("the pattern is constant")
});

const KEY_HELP: &str =
    "name a file with an RSA or EC private key (PEM) for RS and ES tokens, or with the secret of HS tokens";
