//! Digest authentication (RFC 7616): MD5, SHA-256 and SHA-512-256, for a session too, of the request or of its body as well (`auth-int`).
//!
//! Own code because the crate for it, `digest_auth`, was last released in 2023 and needs earlier versions of the hashes.

use aws_lc_rs::digest::{Algorithm, SHA256, SHA512_256};
use md5::{Digest, Md5};
use squall_plan::Body;
use url::Url;

use crate::api::hex;

/// The request that is to be authorised.
pub(super) struct ChallengedRequest<'a> {
    pub(super) method: &'a str,
    pub(super) url: &'a Url,
    pub(super) body: &'a Body,
}

impl ChallengedRequest<'_> {
    /// The value of `Authorization` for a challenge, as it is in `WWW-Authenticate`; `None`: it is of another kind.
    pub(super) fn authorization(
        &self,
        challenge: &str,
        (name, password): &(String, String),
    ) -> Option<String> {
        let (scheme, challenge) = challenge.split_once(' ')?;
        if !scheme.eq_ignore_ascii_case("digest") {
            return None;
        }
        let parameters = parameters(challenge);
        let parameter = |wanted: &str| {
            let found = parameters.iter().find(|(key, _)| key.eq_ignore_ascii_case(wanted));
            found.map(|(_, value)| value.as_str())
        };
        let (realm, nonce) = (parameter("realm").unwrap_or_default(), parameter("nonce")?);
        let algorithm = parameter("algorithm").unwrap_or("MD5");
        let hash = |text: &[u8]| hash(algorithm, text);
        let target = &self.url[url::Position::BeforePath..url::Position::AfterQuery];
        let client_nonce = &hex(&Md5::digest(format!("{nonce}{target}")))[..16];
        let mut user = hash(format!("{name}:{}:{password}", unescaped(realm)).as_bytes());
        if algorithm.to_ascii_lowercase().ends_with("-sess") {
            user = hash(format!("{user}:{nonce}:{client_nonce}").as_bytes());
        }
        let quality = self.quality(parameter("qop"));
        let what = match (quality, self.body) {
            (Some("auth-int"), Body::Bytes(body)) => format!("{}:{target}:{}", self.method, hash(body)),
            (Some("auth-int"), _) => format!("{}:{target}:{}", self.method, hash(b"")),
            _ => format!("{}:{target}", self.method),
        };
        let what = hash(what.as_bytes());
        let middle = quality.map_or_else(String::new, |quality| format!("{COUNT}:{client_nonce}:{quality}:"));
        let response = hash(format!("{user}:{nonce}:{middle}{what}").as_bytes());
        let name = name.replace('\\', r"\\").replace('"', r#"\""#);
        let mut text = format!(
            "Digest username=\"{name}\", realm=\"{realm}\", nonce=\"{nonce}\", uri=\"{target}\", response=\"{response}\", algorithm={algorithm}"
        );
        if let Some(quality) = quality {
            text.push_str(&format!(", qop={quality}, nc={COUNT}, cnonce=\"{client_nonce}\""));
        }
        if let Some(opaque) = parameter("opaque") {
            text.push_str(&format!(", opaque=\"{opaque}\""));
        }
        Some(text)
    }

    /// The quality of protection: `auth` where it is offered, else that of the body too, unless the body is a file.
    fn quality(&self, offered: Option<&str>) -> Option<&'static str> {
        let offers = |wanted: &str| offered.is_some_and(|all| all.split(',').any(|one| one.trim() == wanted));
        let is_file = matches!(self.body, Body::File { .. });
        if offers("auth") {
            return Some("auth");
        }
        (offers("auth-int") && !is_file).then_some("auth-int")
    }
}

/// Each nonce is used once.
const COUNT: &str = "00000001";

fn hash(algorithm: &str, text: &[u8]) -> String {
    let sha = |algorithm: &'static Algorithm| hex(aws_lc_rs::digest::digest(algorithm, text).as_ref());
    match algorithm.to_ascii_uppercase().trim_end_matches("-SESS") {
        "SHA-256" => sha(&SHA256),
        "SHA-512-256" => sha(&SHA512_256),
        _ => hex(&Md5::digest(text)),
    }
}

/// `a="b, \"c\"", d=e` as pairs; what is quoted stays escaped.
fn parameters(text: &str) -> Vec<(String, String)> {
    let (mut pairs, mut begin, mut is_quoted, mut is_escaped) = (Vec::new(), 0, false, false);
    for (at, byte) in text.bytes().chain([b',']).enumerate() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if is_quoted => is_escaped = true,
            b'"' => is_quoted = !is_quoted,
            b',' if !is_quoted || at == text.len() => {
                if let Some((key, value)) = text[begin..at].split_once('=') {
                    let value = value.trim();
                    let inner = value.strip_prefix('"').and_then(|value| value.strip_suffix('"'));
                    pairs.push((key.trim().to_owned(), inner.unwrap_or(value).to_owned()));
                }
                begin = at + 1;
            }
            _ => {}
        }
    }
    pairs
}

/// The text of a quoted string (RFC 9110 5.6.4).
fn unescaped(text: &str) -> String {
    let mut letters = text.chars();
    let mut out = String::with_capacity(text.len());
    while let Some(letter) = letters.next() {
        out.push(if letter == '\\' { letters.next().unwrap_or(letter) } else { letter });
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_those_of_the_standard() {
        let url = Url::parse("http://www.example.org/dir/index.html?a=1").unwrap();
        let user = ("Mufasa".to_owned(), "Circle of Life".to_owned());
        let body = Body::Bytes(b"hello".to_vec());
        // Computed with Python's hashlib.
        for (challenge, body, expected) in [
            (r#"Digest realm="r", nonce="n1""#, &Body::Empty, "17006477beb8b53dc6d50708f2efc912"),
            (
                r#"digest realm="r", nonce="n1", qop="auth,auth-int""#,
                &body,
                "bac5f6d7193f32cb01fe1dffded0ece4",
            ),
            (r#"Digest realm="r", nonce="n1", qop="auth-int""#, &body, "3db89111d61a125f18cdeb659b1751de"),
            (
                r#"Digest realm="r", nonce="n1", qop="auth-int""#,
                &Body::Empty,
                "3194aa085aa7c8a192866e7474847932",
            ),
            (
                r#"Digest realm="r", nonce="n1", qop=auth, algorithm=MD5-sess"#,
                &body,
                "e50807f36706bcf4e1869df7122a1257",
            ),
            (
                r#"Digest realm="a, \"c\"", nonce="n1", qop="auth", algorithm="SHA-256""#,
                &body,
                "91a571d147d2f2141dbfe45619cb445ede49eb062acaa8d043cfa38e160e0005",
            ),
            (
                r#"Digest realm="r", nonce="n1", qop="auth", algorithm=SHA-512-256"#,
                &body,
                "cf68003d4621e3128567a51b3b70b2c2706a480744e0d58c8f644320832a1194",
            ),
        ] {
            let request = ChallengedRequest { method: "POST", url: &url, body };
            let answer = request.authorization(challenge, &user).unwrap();
            let response = answer.split("response=\"").nth(1).and_then(|rest| rest.split('"').next());
            assert_eq!(response, Some(expected), "{challenge}: {answer}");
        }
        let request = ChallengedRequest { method: "GET", url: &url, body: &Body::Empty };
        for challenge in ["Basic realm=\"r\"", "Digest realm=\"r\"", "Digest", "Digest nonce=\"unclosed, \\"]
        {
            assert_eq!(request.authorization(challenge, &user), None, "{challenge}");
        }
    }
}
