//! Hides what must not be shown or saved: credentials in headers, URLs and proxies, and bodies.
//!
//! Errs on the side of hiding: whatever its value, a field that may carry a secret is taken for one.

use serde_json::Value as Json;
use url::Url;

use crate::secret::Secrecy;
pub use crate::secret::is_secret_name;
use crate::urls::is_token;
use crate::{
    Body, Header, HttpLoad, Load, MessagePayload, Plan, RequestPlan, ScriptLoad, StreamLoad, WebSocketLoad,
    What,
};

/// What replaces a secret.
pub const MASK: &str = "***";

impl Header {
    /// Whether the value must not be shown or saved, judged by the name.
    pub fn is_secret(&self) -> bool {
        is_secret_name(&self.name)
    }

    fn masked(&self) -> Self {
        let value = if self.is_secret() { MASK.to_owned() } else { self.value.clone() };
        Self { name: self.name.clone(), value }
    }
}

impl Plan {
    /// A copy to show and to save: no credentials, and of bodies in memory only the size.
    pub fn masked(&self) -> Self {
        Self { loads: self.loads.iter().map(Load::masked).collect(), ..self.clone() }
    }
}

impl Load {
    fn masked(&self) -> Self {
        let mut copy = self.clone();
        match &self.what {
            What::Http(http) => copy.what = What::Http(http.masked()),
            What::Stream(stream) => {
                copy.what = What::Stream(StreamLoad { http: stream.http.masked(), ..stream.clone() });
            }
            What::WebSocket(load) => copy.what = What::WebSocket(load.masked()),
            What::Replay(replay) => copy.what = What::Replay(replay.masked()),
            What::Script(script) => copy.what = What::Script(script.masked()),
            What::Handshake(_) | What::Idle(_) => {}
        }
        if let Some(proxy) = &mut copy.network.proxy {
            proxy.authorization = proxy.authorization.as_ref().map(|_| MASK.to_owned());
        }
        copy
    }
}

impl HttpLoad {
    fn masked(&self) -> Self {
        Self { requests: self.requests.iter().map(RequestPlan::masked).collect(), ..self.clone() }
    }
}

impl WebSocketLoad {
    /// A table may have what each user logs in with.
    fn masked(&self) -> Self {
        let table = self.message.table.as_ref().map(|_| MASK.to_owned());
        let message = MessagePayload { table, ..self.message.clone() };
        Self { http: self.http.masked(), message, ..self.clone() }
    }
}

impl RequestPlan {
    fn masked(&self) -> Self {
        let body = match &self.body {
            Body::Bytes(bytes) => Body::Bytes(format!("({} bytes left out)", bytes.len()).into_bytes()),
            other => other.clone(),
        };
        Self {
            url: masked_url(&self.url),
            headers: self.headers.iter().map(Header::masked).collect(),
            body,
            ..self.clone()
        }
    }
}

impl ScriptLoad {
    fn masked(&self) -> Self {
        let options = match serde_json::from_str(&self.options) {
            Ok(options) => masked_option(None, options).to_string(),
            Err(_) => MASK.to_owned(),
        };
        Self { options, ..self.clone() }
    }
}

/// A script's option, by the name that it has.
fn masked_option(name: Option<&str>, option: Json) -> Json {
    match (name, option) {
        (Some("tlsAuth"), Json::Array(clients)) => clients.into_iter().map(masked_tls_client).collect(),
        // These are named by the user, and named after what they try and measure.
        (Some("scenarios" | "thresholds"), Json::Object(named)) => {
            named.into_iter().map(|(name, value)| (name, masked_option(None, value))).collect()
        }
        (Some(name), option) if is_secret_name(name) => hidden(option),
        (_, Json::Object(fields)) => fields
            .into_iter()
            .map(|(name, value)| {
                let value = masked_option(Some(&name), value);
                (name, value)
            })
            .collect(),
        (_, Json::Array(items)) => items.into_iter().map(|item| masked_option(None, item)).collect(),
        (_, Json::String(text)) if text.contains("://") => masked_text(&text).into(),
        (_, option) => option,
    }
}

/// Whom a script says it is over TLS: everything else may be, or may open, the private key.
fn masked_tls_client(client: Json) -> Json {
    let Json::Object(fields) = client else { return hidden(client) };
    let shown = |name: &str, value: &Json| match name {
        "domains" => true,
        "cert" => !value.as_str().is_some_and(|pem| pem.contains("PRIVATE KEY")),
        _ => false,
    };
    fields
        .into_iter()
        .map(|(name, value)| {
            let value = if shown(&name, &value) { value } else { hidden(value) };
            (name, value)
        })
        .collect()
}

/// Switches reveal nothing: `noCookiesReset`.
fn hidden(option: Json) -> Json {
    match option {
        Json::Null | Json::Bool(_) => option,
        _ => MASK.into(),
    }
}

/// The URL without user information and without the values of query parameters that are named like secrets.
pub fn masked_url(url: &Url) -> Url {
    let mut masked = url.clone();
    // Both fail only for URLs without a host, which have no user information either.
    let _ = masked.set_username("");
    let _ = masked.set_password(None);
    let query = url.query().map(|query| query.split('&').map(masked_parameter).collect::<Vec<_>>().join("&"));
    masked.set_query(query.as_deref());
    masked
}

/// A text as typed, to be quoted in an error: without the value of a secret header, user information and secret parameters.
pub fn masked_text(text: &str) -> String {
    if let Some((name, _)) = text.split_once(':').filter(|(name, _)| is_token(name) && is_secret_name(name)) {
        return format!("{name}: {MASK}");
    }
    let (place, query) = text.split_once('?').map_or((text, None), |(place, query)| (place, Some(query)));
    let place = match (place.find("://").map_or(0, |at| at + 3), place.rfind('@')) {
        (start, Some(end)) if start < end && is_user_information(&place[start..end]) => {
            format!("{}{MASK}{}", &place[..start], &place[end..])
        }
        _ => place.to_owned(),
    };
    match query {
        Some(query) => {
            format!("{place}?{}", query.split('&').map(masked_parameter).collect::<Vec<_>>().join("&"))
        }
        None => place,
    }
}

/// `user:password`. A name alone is no secret, and may be a weight.
fn is_user_information(text: &str) -> bool {
    text.contains(':') && !text.contains(' ')
}

fn masked_parameter(parameter: &str) -> String {
    match parameter.split_once('=') {
        Some((name, value))
            if is_secret_name(name) || Secrecy::of_parameter(name).covers(value.as_bytes()) =>
        {
            format!("{name}={MASK}")
        }
        _ => parameter.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoted_texts_lose_their_secrets() {
        for (text, masked) in [
            ("ftp://u:p@x/?token=1&q=2", "ftp://***@x/?token=***&q=2"),
            ("u:p@x", "***@x"),
            ("3@http://u:p@x/", "3@http://***@x/"),
            ("Authorization: Bearer x\r\n", "Authorization: ***"),
            ("Accept: x@y", "Accept: x@y"),
            ("3@http://x/", "3@http://x/"),
            ("http://x:99999/", "http://x:99999/"),
            ("€://@:€@", "€://***@"),
        ] {
            assert_eq!(masked_text(text), masked, "{text}");
        }
    }

    #[test]
    fn options_of_scripts_lose_their_secrets() {
        for (options, masked) in [
            (
                r#"{"tlsAuth":[{"cert":"PEM","domains":["x"],"key":"PRIVATE","passphrase":"p","password":"q"}]}"#,
                r#"{"tlsAuth":[{"cert":"PEM","domains":["x"],"key":"***","passphrase":"***","password":"***"}]}"#,
            ),
            (r#"{"tlsAuth":[{"cert":"CERT and PRIVATE KEY"}]}"#, r#"{"tlsAuth":[{"cert":"***"}]}"#),
            (
                r#"{"scenarios":{"session":{"env":{"API_TOKEN":"t","BASE":"http://u:p@x/"},"vus":2}}}"#,
                r#"{"scenarios":{"session":{"env":{"API_TOKEN":"***","BASE":"http://***@x/"},"vus":2}}}"#,
            ),
            (
                r#"{"ext":[{"credentials":{"user":"u"},"tokens":["t"]}]}"#,
                r#"{"ext":[{"credentials":"***","tokens":"***"}]}"#,
            ),
            (
                r#"{"noCookiesReset":true,"thresholds":{"login_session":["p(95)<200"]},"vus":2}"#,
                r#"{"noCookiesReset":true,"thresholds":{"login_session":["p(95)<200"]},"vus":2}"#,
            ),
            ("no JSON: secret", MASK),
        ] {
            let path = "script.js".into();
            let script =
                ScriptLoad { path, options: options.to_owned(), scenarios: Vec::new(), speaks_http3: false };
            assert_eq!(script.masked().options, masked, "{options}");
        }
    }

    #[test]
    fn urls_lose_user_information_and_secret_parameters() {
        for (text, masked) in [
            ("http://u:p@x/a?token=1&q=2&q", "http://x/a?token=***&q=2&q"),
            ("http://x/", "http://x/"),
            ("http://x/?", "http://x/?"),
            ("http://x/cb?code=4f9Xa82bQ1&c=us", "http://x/cb?code=***&c=us"),
            ("http://x/?code=us&sig=abc&jwt=eyJ&pass=1", "http://x/?code=us&sig=***&jwt=***&pass=***"),
        ] {
            assert_eq!(masked_url(&Url::parse(text).unwrap()).as_str(), masked, "{text}");
        }
    }
}
