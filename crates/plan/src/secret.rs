//! Which names carry secrets: header fields, cookies, parameters, JSON and form fields, options of scripts.
//!
//! Owns: the one list that recordings, saved runs and logs share. Never: replaces anything.

/// Which values of a field are secrets, judged by the field's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Secrecy {
    /// None.
    #[default]
    No,
    /// Those that look random: `key`, `session` and `code` name harmless things, too.
    Random,
    /// All but short numbers: `max_tokens: 100` is no secret.
    Text,
    /// All: a PIN has four digits.
    Any,
}

impl Secrecy {
    /// The secrecy of a header field, a cookie, a JSON or form field, or an option of this name.
    pub fn of(name: &str) -> Self {
        let words = words(name);
        let (Some(first), Some(last)) = (words.first(), words.last()) else { return Self::No };
        if words.len() > 1 && DESCRIPTIONS.contains(&last.as_str()) || PUBLIC.contains(&first.as_str()) {
            return Self::No;
        }
        let joined = words.concat();
        let has_word = |list: &[&str]| words.iter().any(|word| list.contains(&word.as_str()));
        let has_part = |list: &[&str]| list.iter().any(|part| joined.contains(part));
        match () {
            () if has_word(ANY_WORDS) || has_part(ANY_PARTS) => Self::Any,
            () if has_word(TEXT_WORDS) || has_part(TEXT_PARTS) => Self::Text,
            () if has_word(RANDOM_WORDS) || joined.ends_with("key") || joined.contains("session") => {
                Self::Random
            }
            () => Self::No,
        }
    }

    /// The secrecy of a parameter of a query or of a form sent by a client, which also carry the codes of OAuth and tickets of CAS.
    pub fn of_parameter(name: &str) -> Self {
        let is_code = ["code", "ticket", "assertion"].iter().any(|code| name.eq_ignore_ascii_case(code));
        Self::of(name).max(if is_code { Self::Random } else { Self::No })
    }

    /// Whether this value of such a field is a secret.
    pub fn covers(self, value: &[u8]) -> bool {
        let is_word = || WORDS.iter().any(|word| value.eq_ignore_ascii_case(word.as_bytes()));
        let is_short_number = || {
            value.len() < NUMBER_BYTES_MIN && value.iter().all(|byte| byte.is_ascii_digit() || *byte == b'.')
        };
        match self {
            Self::No => false,
            _ if value.is_empty() || is_word() => false,
            Self::Random => looks_random(value),
            Self::Text => !is_short_number(),
            Self::Any => true,
        }
    }
}

/// Whether a field of this name may carry a secret.
pub fn is_secret_name(name: &str) -> bool {
    Secrecy::of(name) > Secrecy::No
}

/// Whether no person would have typed this: a token, an id, the number of a card.
pub fn looks_random(value: &[u8]) -> bool {
    let count = |is: fn(&u8) -> bool| value.iter().filter(|byte| is(byte)).count();
    let is_opaque = !value.iter().any(|byte| byte.is_ascii_whitespace() || *byte < b' ' || *byte >= 0x7f);
    let (digit_count, letter_count) = (count(u8::is_ascii_digit), count(u8::is_ascii_alphabetic));
    let is_mixed_case = count(u8::is_ascii_uppercase) > 2 && count(u8::is_ascii_lowercase) > 2;
    let is_card = (13..=19).contains(&digit_count)
        && value.iter().all(|byte| byte.is_ascii_digit() || matches!(byte, b' ' | b'-'));
    let is_token = is_opaque
        && (value.len() >= 8 && digit_count > 0 && letter_count > 0 || value.len() >= 16 && is_mixed_case);
    is_card || is_token
}

/// `__RequestVerificationToken`, `X-CSRF-Token` and `JSESSIONID` in words, in lower case.
fn words(name: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut before = b' ';
    let bytes = name.as_bytes();
    for (at, byte) in bytes.iter().enumerate() {
        let is_next_lower = bytes.get(at + 1).is_some_and(u8::is_ascii_lowercase);
        let begins = !before.is_ascii_alphanumeric()
            || byte.is_ascii_uppercase() && (before.is_ascii_lowercase() || is_next_lower);
        if byte.is_ascii_alphanumeric() {
            let letter = char::from(byte.to_ascii_lowercase());
            match words.last_mut().filter(|_| !begins) {
                Some(word) => word.push(letter),
                None => words.push(letter.into()),
            }
        }
        before = *byte;
    }
    words
}

/// Names whose every value is a secret, however short.
const ANY_WORDS: &[&str] = &["cvc", "cvv", "otp", "pass", "pin", "pw", "ssn", "totp"];

const ANY_PARTS: &[&str] = &["cardnumber", "passcode", "passphrase", "passw", "pwd"];

const TEXT_WORDS: &[&str] = &["auth", "bearer", "cookies", "sid", "sig"];

const TEXT_PARTS: &[&str] = &[
    "accesskey",
    "apikey",
    "authkey",
    "authoriz",
    "cookie",
    "credential",
    "csrf",
    "jwt",
    "oauth",
    "privatekey",
    "samlre",
    "secret",
    "sessid",
    "sessionid",
    "signature",
    "token",
    "xsrf",
];

const RANDOM_WORDS: &[&str] = &["card", "keys", "session", "sess"];

/// What a name ends with that is about a secret, and none itself: `token_type`, `csrf-param`, `auth_url`.
const DESCRIPTIONS: &[&str] = &[
    "age",
    "alg",
    "algorithm",
    "count",
    "enabled",
    "endpoint",
    "expires",
    "expiry",
    "field",
    "header",
    "hint",
    "in",
    "label",
    "length",
    "lifetime",
    "limit",
    "method",
    "name",
    "param",
    "parameter",
    "path",
    "policy",
    "required",
    "size",
    "status",
    "strength",
    "timeout",
    "ttl",
    "type",
    "uri",
    "url",
    "version",
];

/// What a name begins with whose value everybody may know.
const PUBLIC: &[&str] = &["cache", "foreign", "idempotency", "primary", "public", "publishable", "sort"];

/// Values that are never secrets.
const WORDS: &[&str] = &["basic", "bearer", "false", "none", "null", "true", "undefined"];

/// A shorter number counts something.
const NUMBER_BYTES_MIN: usize = 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_words() {
        for (name, expected) in [
            ("__RequestVerificationToken", "request verification token"),
            ("X-CSRF-Token", "x csrf token"),
            ("connect.sid", "connect sid"),
            ("userAPIKey", "user api key"),
            ("user[password]", "user password"),
            ("", ""),
            ("__", ""),
        ] {
            assert_eq!(words(name).join(" "), expected, "{name}");
        }
    }

    #[test]
    fn names_of_secrets_are_known() {
        for (secrecy, names) in [
            (
                Secrecy::Any,
                "PASSWORD passwd pwd pass user[password] passphrase pin otp cvv cvc ssn card_number newPassword",
            ),
            (
                Secrecy::Text,
                "Authorization proxy-authorization Cookie Set-Cookie X-Api-Key apikey X-Auth-Token access_token \
                 X-Amz-Signature client_secret csrfmiddlewaretoken csrftoken csrf-token authenticity_token _token \
                 XSRF-TOKEN X-XSRF-TOKEN __RequestVerificationToken _csrf JSESSIONID PHPSESSID ASP.NET_SessionId \
                 connect.sid sid jwt sig credentials tokens secret session_id SAMLResponse oauth_verifier",
            ),
            (Secrecy::Random, "key keys laravel_session card session __session"),
            (
                Secrecy::No,
                "Accept Host Content-Type page q User-Agent author token_type csrf-param _csrf_header sort_key \
                 publicKey monkeys pinned passenger code Idempotency-Key authentication-method",
            ),
        ] {
            for name in names.split_whitespace() {
                assert_eq!(Secrecy::of(name), secrecy, "{name}");
            }
        }
        assert_eq!(Secrecy::of_parameter("code"), Secrecy::Random);
    }

    #[test]
    fn values_are_secrets_by_the_secrecy_of_their_names() {
        for (name, value, expected) in [
            ("pin", "1234", true),
            ("max_tokens", "100", false),
            ("access_token", "true", false),
            ("access_token", "abc", true),
            ("key", "created_at", false),
            ("key", "sk1live0abcdef", true),
            ("session", "morning", false),
            ("card", "4111 1111 1111 1111", true),
            ("card", "small", false),
            ("password", "", false),
        ] {
            assert_eq!(Secrecy::of(name).covers(value.as_bytes()), expected, "{name}={value}");
        }
    }
}
