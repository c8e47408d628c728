//! A server under the proxy's name: what clients say of the proxy is said of the server, and the other way round.

use hyper::header::{CONTENT_LOCATION, HeaderMap, HeaderValue, LOCATION, ORIGIN, REFERER, SET_COOKIE};
use squall_traffic::Redirect;

/// The two names of one server.
#[derive(Debug)]
pub(crate) struct ServerNames<'a> {
    /// `http://127.0.0.1:4000`, as the client calls the proxy.
    pub(crate) proxy: String,
    pub(crate) server: &'a Redirect,
}

impl ServerNames<'_> {
    /// `Origin` and `Referer` of a request: servers compare them with their own name.
    pub(crate) fn to_server(&self, headers: &mut HeaderMap) {
        for name in [ORIGIN, REFERER] {
            let value = headers.get(&name).and_then(|value| {
                self.server.followed(name.as_str(), value.as_bytes(), &|origin| {
                    origin.eq_ignore_ascii_case(&self.proxy)
                })
            });
            if let Some(value) = value.and_then(|value| HeaderValue::from_bytes(&value).ok()) {
                headers.insert(name, value);
            }
        }
    }

    /// Where a response leads, and which host its cookies are for; whether it leads the client away from the proxy, to another server.
    pub(crate) fn to_client(&self, headers: &mut HeaderMap) -> bool {
        let mut leads_away = false;
        for name in [LOCATION, CONTENT_LOCATION] {
            let Some(text) = headers.get(&name).and_then(|value| value.to_str().ok()) else { continue };
            match self.seen_from_client(text) {
                Some(seen) => {
                    if let Ok(value) = HeaderValue::from_str(&seen) {
                        headers.insert(name, value);
                    }
                }
                None => leads_away |= name == LOCATION,
            }
        }
        let cookies: Vec<HeaderValue> = headers
            .get_all(SET_COOKIE)
            .iter()
            .map(|value| self.cookie(value).unwrap_or_else(|| value.clone()))
            .collect();
        headers.remove(SET_COOKIE);
        headers.extend(cookies.into_iter().map(|value| (SET_COOKIE, value)));
        leads_away
    }

    /// A URL of the server as the client finds it; `None`: of another server.
    fn seen_from_client(&self, url: &str) -> Option<String> {
        let without_prefix = |path: &str| match path.strip_prefix(self.server.prefix.as_str()) {
            Some(rest) if rest.starts_with('/') => rest.to_owned(),
            Some(rest) => format!("/{rest}"),
            None => path.to_owned(),
        };
        let behind_scheme = match url.split_once("://") {
            Some((scheme, rest))
                if scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https") =>
            {
                rest
            }
            _ => match url.strip_prefix("//") {
                Some(rest) => rest,
                None if url.starts_with('/') => return Some(without_prefix(url)),
                None => return Some(url.to_owned()),
            },
        };
        let path_at = behind_scheme.find(['/', '?', '#']).unwrap_or(behind_scheme.len());
        let (authority, path) = behind_scheme.split_at(path_at);
        let bare = |authority: &str| {
            let authority = authority.to_ascii_lowercase();
            authority
                .strip_suffix(":80")
                .or_else(|| authority.strip_suffix(":443"))
                .unwrap_or(&authority)
                .to_owned()
        };
        let proxy = self.proxy.split_once("://").map_or("", |(_, authority)| authority);
        let is_ours =
            bare(authority) == bare(&self.server.authority) || authority.eq_ignore_ascii_case(proxy);
        is_ours.then(|| {
            format!("{}{}", self.proxy, if path.is_empty() { path.to_owned() } else { without_prefix(path) })
        })
    }

    /// A cookie without the server's domain and prefix; `None` where it has neither.
    fn cookie(&self, value: &HeaderValue) -> Option<HeaderValue> {
        let text = value.to_str().ok()?;
        let kept = |attribute: &&str| {
            let attribute = attribute.trim_start();
            !attribute.get(..7).is_some_and(|name| name.eq_ignore_ascii_case("domain="))
        };
        let seen = |attribute: &str| match attribute.trim_start().split_once('=') {
            Some((name, path)) if name.eq_ignore_ascii_case("path") && !self.server.prefix.is_empty() => {
                let path = path.strip_prefix(self.server.prefix.as_str()).unwrap_or(path);
                format!(" Path={}", if path.is_empty() { "/" } else { path })
            }
            _ => attribute.to_owned(),
        };
        let mut parts = text.split(';');
        let pair = parts.next()?.to_owned();
        let parts: Vec<String> = std::iter::once(pair).chain(parts.filter(kept).map(seen)).collect();
        HeaderValue::from_str(&parts.join(";")).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::header::HeaderName;

    const SERVER: &str = "http://shop.example:8080/base";

    fn headers(name: &str, value: &str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(HeaderName::try_from(name).unwrap(), HeaderValue::from_str(value).unwrap());
        headers
    }

    fn names(server: &Redirect) -> ServerNames<'_> {
        ServerNames { proxy: "http://127.0.0.1:4000".to_owned(), server }
    }

    #[test]
    fn responses_lead_back_to_the_proxy() {
        let server = Redirect::to(&SERVER.parse().unwrap());
        for (name, value, expected, leads_away) in [
            ("location", "http://shop.example:8080/base/a?b", "http://127.0.0.1:4000/a?b", false),
            ("location", "HTTPS://Shop.example:8080/base", "http://127.0.0.1:4000/", false),
            ("location", "/base/a", "/a", false),
            ("location", "/other", "/other", false),
            ("location", "next", "next", false),
            ("location", "//shop.example:8080/base/x", "http://127.0.0.1:4000/x", false),
            ("location", "https://login.example/a", "https://login.example/a", true),
            ("set-cookie", "a=1; Domain=shop.example; Path=/base; Secure", "a=1; Path=/; Secure", false),
            ("set-cookie", "a=1", "a=1", false),
        ] {
            let mut headers = headers(name, value);
            assert_eq!(names(&server).to_client(&mut headers), leads_away, "{value}");
            assert_eq!(headers[name].to_str().unwrap(), expected, "{value}");
        }
    }

    #[test]
    fn requests_name_the_server() {
        let server = Redirect::to(&SERVER.parse().unwrap());
        for (name, value, expected) in [
            ("origin", "http://127.0.0.1:4000", "http://shop.example:8080"),
            ("referer", "http://127.0.0.1:4000/a?b", "http://shop.example:8080/base/a?b"),
            ("origin", "http://elsewhere", "http://elsewhere"),
            ("origin", "null", "null"),
        ] {
            let mut headers = headers(name, value);
            names(&server).to_server(&mut headers);
            assert_eq!(headers[name].to_str().unwrap(), expected, "{value}");
        }
    }
}
