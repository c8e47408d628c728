//! Requests sent elsewhere than they went: scheme, host and a prefix of the path; `Origin` and `Referer` follow, as a browser's would.

use url::{Position, Url};

use crate::{Request, Scheme};

/// Where requests go instead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Redirect {
    /// Scheme.
    pub scheme: Scheme,
    /// Host and port as in URLs.
    pub authority: String,
    /// What paths begin with there; empty, or beginning with `/` and not ending with it.
    pub prefix: String,
}

impl Redirect {
    /// To `http://host:port`, or `http://host:port/prefix`.
    pub fn to(url: &Url) -> Self {
        Self {
            scheme: Scheme::of(url.scheme()).unwrap_or_default(),
            authority: url[Position::BeforeHost..Position::AfterPort].to_owned(),
            prefix: url.path().trim_end_matches('/').to_owned(),
        }
    }

    /// `http://host:port`
    pub fn origin(&self) -> String {
        format!("{}://{}", self.scheme.text(), self.authority)
    }

    /// The target of a request there.
    pub fn target(&self, target: &str) -> String {
        if target.starts_with('/') { format!("{}{target}", self.prefix) } else { target.to_owned() }
    }

    /// Sends a request there.
    pub fn apply(&self, request: &mut Request) {
        let recorded = format!("{}://{}", request.scheme.text(), request.authority);
        for field in &mut request.headers {
            if let Some(value) = self.followed(&field.name, &field.value, &|origin| origin == recorded) {
                field.value = value;
            }
        }
        request.target = self.target(&request.target);
        request.scheme = self.scheme;
        request.authority.clone_from(&self.authority);
    }

    /// What an `Origin` or `Referer` says there that named one of the origins that are left; `None` for everything else.
    pub fn followed(&self, name: &str, value: &[u8], is_left: &dyn Fn(&str) -> bool) -> Option<Vec<u8>> {
        let is_referer = name.eq_ignore_ascii_case("referer");
        if !is_referer && !name.eq_ignore_ascii_case("origin") {
            return None;
        }
        let text = std::str::from_utf8(value).ok()?;
        let host_at = text.find("://")? + 3;
        let path_at = text[host_at..].find('/').map_or(text.len(), |at| host_at + at);
        let (origin, path) = text.split_at(path_at);
        if !is_left(origin) {
            return None;
        }
        let prefix = if is_referer { self.prefix.as_str() } else { "" };
        Some(format!("{}{prefix}{path}", self.origin()).into_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Field;

    #[test]
    fn requests_follow_with_all_that_names_the_host() {
        let recorded = Request {
            authority: "a.example:81".into(),
            target: "/x?y".into(),
            headers: vec![
                Field::new("Origin", "http://a.example:81"),
                Field::new("referer", "http://a.example:81/p?q"),
                Field::new("X-Other", "http://a.example:81"),
            ],
            ..Request::default()
        };
        for (to, url, origin, referer) in [
            ("https://b/", "https://b/x?y", "https://b", "https://b/p?q"),
            ("http://b:9/base/", "http://b:9/base/x?y", "http://b:9", "http://b:9/base/p?q"),
        ] {
            let mut request = recorded.clone();
            Redirect::to(&Url::parse(to).unwrap()).apply(&mut request);
            let header = |name| String::from_utf8_lossy(request.header(name).unwrap()).into_owned();
            assert_eq!(
                (request.url(), header("origin"), header("referer")),
                (url.into(), origin.into(), referer.into())
            );
            assert_eq!(header("x-other"), "http://a.example:81");
        }
        let redirect = Redirect::to(&Url::parse("http://b/").unwrap());
        for (name, value) in
            [("origin", "null"), ("origin", "http://other"), ("referer", ""), ("host", "http://a")]
        {
            assert_eq!(
                redirect.followed(name, value.as_bytes(), &|origin| origin == "http://a"),
                None,
                "{name}"
            );
        }
    }
}
