//! The request that follows a redirect.

use squall_plan::{Body, RequestPlan};
use url::Url;

/// RFC 9110 15.4: 303 becomes GET (HEAD stays); 301 and 302 turn POST into GET, as every browser does; 307 and 308
/// change nothing. Credentials do not follow to another host, port or scheme, as in curl since 7.83 (CVE-2022-27774).
pub(super) fn redirect_plan(source: &RequestPlan, status: u16, url: Url) -> RequestPlan {
    let mut plan = RequestPlan { url, ..source.clone() };
    if plan.url.host_str() != source.url.host_str() {
        plan.headers.retain(|header| !header.name.eq_ignore_ascii_case("host"));
    }
    if plan.url.origin() != source.url.origin() {
        plan.headers.retain(|header| !header.is_secret());
    }
    let becomes_get = match status {
        303 => source.method != "HEAD",
        301 | 302 => source.method == "POST",
        _ => false,
    };
    if becomes_get {
        plan.method = "GET".to_owned();
        plan.body = Body::Empty;
        plan.headers.retain(|header| !header.name.to_ascii_lowercase().starts_with("content-"));
    }
    plan
}

#[cfg(test)]
mod tests {
    use squall_plan::{Header, HttpVersion};

    use super::*;

    #[test]
    fn a_redirect_keeps_what_the_rfc_says() {
        let source = RequestPlan {
            weight: std::num::NonZeroU32::MIN,
            method: "POST".to_owned(),
            url: Url::parse("http://a.example/x").unwrap(),
            pattern: "x".to_owned(),
            headers: ["Authorization", "Content-Type", "X-Trace"]
                .map(|name| Header { name: name.to_owned(), value: "v".to_owned() })
                .to_vec(),
            body: Body::Bytes(b"x".to_vec()),
            http: HttpVersion::Http11,
        };
        let to = |status, url| {
            let plan = redirect_plan(&source, status, Url::parse(url).unwrap());
            let names: Vec<String> = plan.headers.iter().map(|header| header.name.clone()).collect();
            (plan.method.clone(), plan.body != Body::Empty, names.join(" "))
        };
        let expected = |method: &str, body, names: &str| (method.to_owned(), body, names.to_owned());
        assert_eq!(to(302, "http://a.example/y"), expected("GET", false, "Authorization X-Trace"));
        assert_eq!(
            to(307, "http://a.example/y"),
            expected("POST", true, "Authorization Content-Type X-Trace")
        );
        for elsewhere in ["http://b.example/y", "https://a.example/y", "http://a.example:81/y"] {
            assert_eq!(to(308, elsewhere), expected("POST", true, "Content-Type X-Trace"), "{elsewhere}");
        }
    }
}
