//! Which requests are of one client: those that carry what a response gave to it, or what else identifies it.
//!
//! Owns: the identities that responses gave, in bounded memory. Never: keeps a secret; it is known by a hash with its own key.
//!
//! A request belongs to the session whose cookie or token it carries. One that carries nothing of the kind, and is given a session cookie or a
//! token, begins a session: behind a load balancer many clients share an address and a connection. Else its own session cookie
//! tells, then `Authorization`, then `X-Forwarded-For`, then address, user agent and connection.

use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::str::FromStr;

use squall_plan::cookies::cookie_pairs;
use squall_plan::secret::{Secrecy, looks_random};

use crate::play::{Locator, ResponseText, tokens};
use crate::{Record, Request, Response, decode};

/// What identifies a client.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum SessionBy {
    /// Whatever does.
    #[default]
    Auto,
    /// This cookie.
    Cookie(String),
    /// This header field.
    Header(String),
    /// Address and user agent.
    Address,
    /// The connection.
    Connection,
}

impl FromStr for SessionBy {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once(':') {
            Some(("cookie", name)) if squall_plan::urls::is_token(name) => Ok(Self::Cookie(name.to_owned())),
            Some(("header", name)) if squall_plan::urls::is_token(name) => Ok(Self::Header(name.to_owned())),
            Some(("cookie" | "header", name)) => {
                Err(format!("`{name}` is not a valid cookie or header name"))
            }
            _ => match text {
                "auto" => Ok(Self::Auto),
                "address" => Ok(Self::Address),
                "connection" => Ok(Self::Connection),
                _ => Err(format!("`{text}` does not identify a client")),
            },
        }
    }
}

/// The sessions of a recording, while it is read or made.
#[derive(Debug, Default)]
pub struct Sessions {
    by: SessionBy,
    key: RandomState,
    recent: HashMap<u64, u64>,
    older: HashMap<u64, u64>,
}

impl Sessions {
    /// Sessions by this.
    pub fn new(by: SessionBy) -> Self {
        Self { by, ..Self::default() }
    }

    /// Finds the session of a record, which must come after those before it in time. `address`: the client's, where it is known.
    pub fn assign(&mut self, record: &mut Record, address: &str) {
        let request = &record.request;
        let agent = request.header("user-agent").unwrap_or_default();
        let own = match &self.by {
            SessionBy::Auto => return self.assign_auto(record, address),
            SessionBy::Cookie(name) => {
                cookies(request).find(|(own, _)| own == name).map(|(_, value)| value.as_bytes().to_vec())
            }
            SessionBy::Header(name) => request.header(name).map(<[u8]>::to_vec),
            SessionBy::Address => Some([address.as_bytes(), b" ", agent].concat()),
            SessionBy::Connection => None,
        };
        record.session = match own {
            Some(own) => self.hash(&own),
            None => record.connection,
        };
    }

    fn assign_auto(&mut self, record: &mut Record, address: &str) {
        let given = record.response.as_ref().map_or_else(Vec::new, given);
        let session = self
            .known(&record.request)
            .or_else(|| self.own(&record.request))
            .or_else(|| given.iter().find(|one| one.begins_session).map(|one| self.hash(&one.value)))
            .or_else(|| self.by_network(record, address));
        let Some(session) = session else { return };
        record.session = session;
        for one in given {
            self.give(&one.value, session);
        }
    }

    /// The session that was given something that this request carries.
    fn known(&self, request: &Request) -> Option<u64> {
        let mut found = None;
        tokens::each(request, &mut |value| {
            if found.is_none() && looks_random(value) {
                found = self.session_of(value);
            }
        });
        found
    }

    /// A session that began before the recording.
    fn own(&self, request: &Request) -> Option<u64> {
        let session_cookies = || cookies(request).filter(|(_, value)| looks_random(value.as_bytes()));
        let cookie = session_cookies()
            .filter(|(name, _)| Secrecy::of(name) > Secrecy::No && !name.to_ascii_lowercase().contains("srf"))
            .max_by_key(|(name, _)| Secrecy::of(name));
        match cookie {
            Some((_, value)) => Some(self.hash(value.as_bytes())),
            None => request.header("authorization").map(|value| self.hash(value)),
        }
    }

    fn by_network(&self, record: &Record, address: &str) -> Option<u64> {
        let request = &record.request;
        let agent = request.header("user-agent").unwrap_or_default();
        let forwarded =
            request.header("x-forwarded-for").and_then(|list| list.split(|byte| *byte == b',').next());
        match forwarded {
            Some(client) => Some(self.hash(&[client.trim_ascii(), b" ", agent].concat())),
            None if record.connection == 0 => None,
            None => {
                let connection = record.connection.to_le_bytes();
                Some(self.hash(&[address.as_bytes(), b" ", agent, &connection].concat()))
            }
        }
    }

    fn session_of(&self, value: &[u8]) -> Option<u64> {
        let key = self.hash(value);
        let session = self.recent.get(&key).or_else(|| self.older.get(&key)).copied();
        session.filter(|session| *session != SHARED)
    }

    /// A response gave this value to a session. What is given to several identifies none of them.
    fn give(&mut self, value: &[u8], session: u64) {
        let key = self.hash(value);
        let before = self.recent.get(&key).or_else(|| self.older.get(&key)).copied();
        if self.recent.len() >= GIVEN_COUNT_MAX {
            self.older = std::mem::take(&mut self.recent);
        }
        let is_shared = before.is_some_and(|before| before != session);
        self.recent.insert(key, if is_shared { SHARED } else { session });
    }

    fn hash(&self, value: &[u8]) -> u64 {
        self.key.hash_one(value).max(1)
    }
}

/// What a response gives to the client that identifies it.
struct Given {
    value: Vec<u8>,
    /// It is a session's cookie or a token, and not just any cookie.
    begins_session: bool,
}

fn given(response: &Response) -> Vec<Given> {
    let headers: Vec<_> =
        response.headers.iter().map(|field| (field.name.clone(), field.value.clone())).collect();
    let body = response.body.as_deref().filter(|body| body.len() <= BODY_BYTES_MAX).unwrap_or_default();
    let body = decode::decoded(body, response.header("content-encoding")).unwrap_or_default();
    let mut given = Vec::new();
    ResponseText { headers: &headers, body: &body }.each(&mut |locator, value| {
        let name = match &locator {
            Locator::Cookie(name) | Locator::Header(name) | Locator::Input(name) | Locator::Meta(name) => {
                name
            }
            Locator::CookieDecoded(name) | Locator::LocationParameter(name) | Locator::Named(name) => name,
            Locator::Json(pointer) => pointer.rsplit('/').next().unwrap_or_default(),
            Locator::LocationSegment(_) | Locator::LinkParameter(_) => return,
        };
        let begins_session = Secrecy::of(name) > Secrecy::No;
        let is_cookie = matches!(locator, Locator::Cookie(_));
        if (begins_session || is_cookie) && given.len() < GIVEN_PER_RESPONSE_MAX && looks_random(value) {
            given.push(Given { value: value.to_vec(), begins_session });
        }
    });
    given
}

fn cookies(request: &Request) -> impl Iterator<Item = (&str, &str)> {
    let text = |(name, value)| Some((str::from_utf8(name).ok()?, str::from_utf8(value).ok()?));
    cookie_pairs(request.header("cookie").unwrap_or_default()).filter_map(text)
}

/// Marks what was given to several sessions.
const SHARED: u64 = 0;

/// Values of a generation; there are two: 3 MB.
const GIVEN_COUNT_MAX: usize = 100_000;

/// Values of one response: a list of a thousand tokens identifies no one.
const GIVEN_PER_RESPONSE_MAX: usize = 16;

/// A longer response gives no token.
const BODY_BYTES_MAX: usize = 4 << 20;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Field;

    struct Exchange {
        connection: u64,
        headers: &'static [(&'static str, &'static str)],
        body: &'static str,
        given: &'static [(&'static str, &'static str)],
        given_body: &'static str,
    }

    const PLAIN: Exchange = Exchange { connection: 1, headers: &[], body: "", given: &[], given_body: "" };

    fn sessions_of(by: &str, exchanges: &[Exchange]) -> Vec<usize> {
        let mut sessions = Sessions::new(by.parse().unwrap());
        let mut seen: Vec<u64> = Vec::new();
        let fields =
            |pairs: &[(&str, &str)]| pairs.iter().map(|(name, value)| Field::new(*name, *value)).collect();
        let number = |exchange: &Exchange| {
            let mut response = Response { headers: fields(exchange.given), ..Response::default() };
            response.set_body(exchange.given_body.into());
            let request = Request {
                headers: fields(exchange.headers),
                body: exchange.body.into(),
                target: "/".into(),
                ..Request::default()
            };
            let mut record = Record {
                connection: exchange.connection,
                request,
                response: Some(response),
                ..Record::default()
            };
            sessions.assign(&mut record, "10.0.0.1");
            seen.iter().position(|session| *session == record.session).unwrap_or_else(|| {
                seen.push(record.session);
                seen.len() - 1
            })
        };
        exchanges.iter().map(number).collect()
    }

    #[test]
    fn users_behind_one_connection_are_distinguished() {
        let sid = |given| Exchange { given, ..PLAIN };
        let with = |headers| Exchange { headers, ..PLAIN };
        assert_eq!(
            sessions_of(
                "auto",
                &[
                    sid(&[("Set-Cookie", "sid=alice00001"), ("Set-Cookie", "node=eu-west-1a")]),
                    sid(&[("Set-Cookie", "sid=bobby00001"), ("Set-Cookie", "node=eu-west-1a")]),
                    with(&[("Cookie", "node=eu-west-1a; sid=alice00001")]),
                    Exchange {
                        headers: &[("Cookie", "sid=bobby00001")],
                        given: &[("Set-Cookie", "sid=bobby00002")],
                        ..PLAIN
                    },
                    with(&[("Cookie", "sid=bobby00002; node=eu-west-1a")]),
                    with(&[("Cookie", "sessionid=carol0000001")]),
                    with(&[("Authorization", "Bearer dave0000001")]),
                    with(&[("X-Forwarded-For", "10.1.1.1, 10.0.0.9")]),
                    with(&[("X-Forwarded-For", "10.1.1.2")]),
                    with(&[("X-Forwarded-For", "10.1.1.1")]),
                    with(&[]),
                ]
            ),
            [0, 1, 0, 1, 1, 2, 3, 4, 5, 4, 6]
        );
    }

    #[test]
    fn tokens_lead_from_one_connection_to_the_next() {
        assert_eq!(
            sessions_of(
                "auto",
                &[
                    Exchange { given_body: r#"{"access_token":"abcdefgh0001"}"#, ..PLAIN },
                    Exchange { given_body: r#"{"access_token":"abcdefgh0002"}"#, ..PLAIN },
                    Exchange { connection: 2, headers: &[("Authorization", "Bearer abcdefgh0001")], ..PLAIN },
                    Exchange { connection: 3, body: "csrf=abcdefgh0002&x=1", ..PLAIN },
                    Exchange { connection: 4, ..PLAIN },
                ]
            ),
            [0, 1, 0, 1, 2]
        );
    }

    #[test]
    fn users_say_what_identifies_a_client() {
        let exchanges = || {
            [
                Exchange {
                    headers: &[("Cookie", "u=1; v=1"), ("X-User", "a"), ("User-Agent", "x")],
                    ..PLAIN
                },
                Exchange {
                    headers: &[("Cookie", "u=2; v=1"), ("X-User", "a"), ("User-Agent", "y")],
                    connection: 2,
                    ..PLAIN
                },
                Exchange {
                    headers: &[("Cookie", "u=1; v=2"), ("X-User", "b"), ("User-Agent", "x")],
                    connection: 2,
                    ..PLAIN
                },
            ]
        };
        for (by, expected) in [
            ("cookie:u", [0, 1, 0]),
            ("header:x-user", [0, 0, 1]),
            ("address", [0, 1, 0]),
            ("connection", [0, 1, 1]),
        ] {
            assert_eq!(sessions_of(by, &exchanges()), expected, "{by}");
        }
        for by in ["", "cookie:", "cookie:a b", "user"] {
            assert!(by.parse::<SessionBy>().is_err(), "{by}");
        }
    }
}
