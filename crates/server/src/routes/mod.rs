//! The table of routes: what the server answers, and the one place that lists it. `docs/target.md` is checked against it.

mod auth;
mod bodies;
mod caching;
mod cookies;
mod digest;
mod echo;
mod encodings;
mod events;
mod faults;
mod pages;
mod redirects;
mod status;
mod timing;
mod websocket;

use std::fmt::Write;

use hyper::{Method, StatusCode, header::ALLOW, http::request::Parts};

use crate::{
    call::{Args, Call},
    reply::{Refusal, Reply},
};

/// One row of the table.
pub(crate) struct Route {
    /// Segments, of which `{name}` stands for any one and `{...}` for any number.
    pattern: &'static str,
    /// Any method when absent. GET allows HEAD too.
    method: Option<&'static str>,
    pub(crate) intake: Intake,
    pub(crate) handler: Handler,
    doc: &'static str,
}

/// What is done with a request's body. It is always read to its end, so that the connection can be used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Intake {
    Count,
    Keep,
}

type Handler = fn(&Call<'_>) -> Result<Reply, Refusal>;

/// A route as people read it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RouteDoc {
    /// Such as `/bytes/{n}`.
    pub pattern: &'static str,
    /// One sentence about what it answers.
    pub doc: &'static str,
}

/// All routes in the order of the documentation.
pub fn route_docs() -> impl Iterator<Item = RouteDoc> {
    ROUTES.iter().map(|route| RouteDoc { pattern: route.pattern, doc: route.doc })
}

/// The route of a request, or why it has none.
pub(crate) fn find(head: &Parts) -> Result<(&'static Route, Args<'_>), Refusal> {
    let path = head.uri.path();
    let first = path.get(1..).and_then(|rest| rest.split('/').next()).ok_or_else(not_found)?;
    let mut fitting = ROUTES
        .iter()
        .filter(|route| route.pattern[1..].starts_with(first))
        .filter_map(|route| capture(route.pattern, path).map(|args| (route, args)));
    let (route, args) = fitting.next().ok_or_else(not_found)?;
    if route.allows(&head.method) { Ok((route, args)) } else { Err(route.refuse_method()) }
}

impl Route {
    /// Any method, and the body is only counted.
    const fn new(pattern: &'static str, handler: Handler, doc: &'static str) -> Self {
        Self { pattern, method: None, intake: Intake::Count, handler, doc }
    }

    const fn only(self, method: &'static str) -> Self {
        Self { method: Some(method), ..self }
    }

    const fn keeping_body(self) -> Self {
        Self { intake: Intake::Keep, ..self }
    }

    fn allows(&self, method: &Method) -> bool {
        self.method.is_none_or(|only| *method == *only || (only == "GET" && *method == Method::HEAD))
    }

    fn refuse_method(&self) -> Refusal {
        let only = self.method.unwrap_or_default();
        let refusal =
            Refusal::new(format!("{} accepts only {only}; /anything accepts every method", self.pattern));
        let allow = if only == "GET" { "GET, HEAD" } else { only };
        refusal.with_status(StatusCode::METHOD_NOT_ALLOWED).with_header(ALLOW, allow)
    }
}

/// Fits the path to the pattern, segment by segment.
fn capture<'p>(pattern: &str, path: &'p str) -> Option<Args<'p>> {
    let mut args = Args::default();
    let mut segments = path.split('/');
    for part in pattern.split('/') {
        if part == "{...}" {
            return Some(args);
        }
        let segment = segments.next()?;
        match part.starts_with('{') {
            true => args.push(segment),
            false if part == segment => {}
            false => return None,
        }
    }
    segments.next().is_none().then_some(args)
}

fn not_found() -> Refusal {
    let mut text = "no such route; the routes are:\n".to_owned();
    for RouteDoc { pattern, doc } in route_docs() {
        writeln!(text, "  {pattern:32} {doc}").expect("a string takes everything");
    }
    Refusal::new(text).with_status(StatusCode::NOT_FOUND)
}

/// The first that fits is taken. The busiest come first, since the table is searched from the top.
static ROUTES: &[Route] = &[
    Route::new("/", pages::index, "A few bytes of text; the cheapest response."),
    Route::new("/health", pages::health, "`ok`."),
    Route::new("/stats", pages::stats, "The server's own counters as JSON."),
    // Bodies.
    Route::new("/bytes/{n}", bodies::bytes, "N pseudo-random bytes, at most 1 GiB; `?seed=` changes them."),
    Route::new("/stream-bytes/{n}", bodies::stream_bytes, "The same bytes with chunked transfer encoding."),
    Route::new(
        "/stream/{n}",
        echo::stream,
        "N lines of JSON, numbered by `id`, one every `interval` (0), with chunked transfer encoding.",
    ),
    Route::new("/range/{n}", bodies::range, "N letters; answers `Range: bytes=` with 206 or 416."),
    Route::new(
        "/sse",
        events::sse,
        "Server-sent events: `count` (10) of them, one every `interval` (100 ms), with `data` of `size` bytes.",
    ),
    Route::new(
        "/drip",
        timing::drip,
        "Sends `numbytes` (10) asterisks over `duration` (2 s) after `delay` (0), with status `code` (200).",
    ),
    Route::new("/upload", bodies::upload, "Reads a request body of any length and returns its size."),
    // WebSocket.
    Route::new(
        "/ws/echo",
        websocket::echo,
        "A WebSocket that returns each message, after `delay`; `?close-after=N&code=` closes after N.",
    ),
    Route::new(
        "/ws/broadcast",
        websocket::broadcast,
        "A WebSocket that sends each message to all connections of the same `?channel=`.",
    ),
    // Time.
    Route::new(
        "/delay/{duration}",
        timing::delay,
        "Waits that long (a plain number is milliseconds), then responds like `/anything`.",
    )
    .keeping_body(),
    Route::new("/delay/uniform/{a}/{b}", timing::uniform, "Waits between A and B, uniformly distributed."),
    Route::new("/latency", timing::latency, "Waits with the given percentiles, such as `?p50=5ms&p99=80ms`."),
    Route::new("/hang", faults::hang, "Never responds."),
    // Status.
    Route::new(
        "/status/{codes}",
        status::status,
        "Returns this status; `200:0.9,500:0.1` picks one by weight, `random` one of nine.",
    ),
    // What was sent.
    Route::new("/get", echo::without_body, "Echoes the request; GET only.").only("GET"),
    Route::new("/post", echo::with_body, "Echoes the request and its body; POST only.")
        .only("POST")
        .keeping_body(),
    Route::new("/put", echo::with_body, "Echoes the request and its body; PUT only.")
        .only("PUT")
        .keeping_body(),
    Route::new("/patch", echo::with_body, "Echoes the request and its body; PATCH only.")
        .only("PATCH")
        .keeping_body(),
    Route::new("/delete", echo::with_body, "Echoes the request and its body; DELETE only.")
        .only("DELETE")
        .keeping_body(),
    Route::new("/anything", echo::anything, "Echoes the request, its body and its method.").keeping_body(),
    Route::new("/anything/{...}", echo::anything, "The same under any path.").keeping_body(),
    Route::new("/headers", echo::headers, "Echoes the request's headers."),
    Route::new("/ip", echo::ip, "The client's address."),
    Route::new("/user-agent", echo::user_agent, "The `User-Agent` header."),
    // Content codings.
    Route::new(
        "/gzip",
        encodings::gzip,
        "Echoes the request, compressed with gzip regardless of `Accept-Encoding`.",
    ),
    Route::new("/deflate", encodings::deflate, "The same with deflate (zlib)."),
    Route::new("/brotli", encodings::brotli, "The same with brotli."),
    Route::new("/zstd", encodings::zstd, "The same with zstd."),
    Route::new("/encoding/utf8", pages::utf8, "UTF-8 text in many scripts."),
    // Redirects.
    Route::new(
        "/redirect/{n}",
        redirects::redirect,
        "N redirects to relative URLs, then `/get`; `?absolute=true` uses absolute URLs.",
    ),
    Route::new("/relative-redirect/{n}", redirects::relative, "N redirects to relative URLs, then `/get`."),
    Route::new("/absolute-redirect/{n}", redirects::absolute, "N redirects to absolute URLs, then `/get`."),
    Route::new(
        "/redirect-to",
        redirects::redirect_to,
        "One redirect to `?url=`, with `status_code` if given.",
    ),
    // Cookies.
    Route::new("/cookies", cookies::list, "Returns the request's cookies."),
    Route::new(
        "/cookies/set",
        cookies::set,
        "Sets each parameter of the query, then redirects to `/cookies`.",
    ),
    Route::new(
        "/cookies/set/{name}/{value}",
        cookies::set_one,
        "Sets one cookie, then redirects to `/cookies`.",
    ),
    Route::new(
        "/cookies/delete",
        cookies::delete,
        "Deletes each parameter of the query, then redirects to `/cookies`.",
    ),
    // Authentication.
    Route::new("/basic-auth/{user}/{password}", auth::basic, "200 for these credentials, else 401."),
    Route::new(
        "/hidden-basic-auth/{user}/{password}",
        auth::hidden_basic,
        "200 for these credentials, else 404.",
    ),
    Route::new("/bearer", auth::bearer, "200 for any bearer token, else 401."),
    Route::new(
        "/digest-auth/{qop}/{user}/{password}",
        digest::md5,
        "Digest authentication with MD5; qop `auth` or `auth-int`.",
    )
    .keeping_body(),
    Route::new(
        "/digest-auth/{qop}/{user}/{password}/{algorithm}",
        digest::chosen,
        "The same with `MD5` or `SHA-256`.",
    )
    .keeping_body(),
    // Headers and caches.
    Route::new(
        "/response-headers",
        caching::response_headers,
        "Returns each query parameter as a response header.",
    ),
    Route::new(
        "/cache",
        caching::cache,
        "304 for any `If-None-Match` or `If-Modified-Since`, otherwise echoes the request.",
    ),
    Route::new("/cache/{seconds}", caching::cache_for, "`Cache-Control: public, max-age=SECONDS`."),
    Route::new(
        "/etag/{etag}",
        caching::etag,
        "This ETag; answers `If-None-Match` with 304, `If-Match` with 412.",
    ),
    // Faults.
    Route::new("/close", faults::close, "Closes the connection after the response."),
    Route::new(
        "/abort",
        faults::abort,
        "Resets the connection, immediately or after `?after=` body bytes; `?how=close` sends FIN instead.",
    ),
    // Pages.
    Route::new("/html", pages::html, "An HTML page."),
    Route::new("/json", pages::json, "A small JSON document."),
    Route::new("/xml", pages::xml, "The same as XML."),
    Route::new("/robots.txt", pages::robots, "Disallows `/deny`."),
    Route::new("/deny", pages::deny, "A page that `/robots.txt` disallows."),
    Route::new("/forms/post", pages::form, "A form that posts to `/post`."),
    Route::new("/links/{n}", pages::links_start, "Redirects to `/links/N/0`."),
    Route::new("/links/{n}/{i}", pages::links, "Page I of N, with links to the others."),
    Route::new("/image/png", pages::png, "A PNG image of one pixel."),
    Route::new("/image/jpeg", pages::jpeg, "A JPEG image of one pixel."),
    Route::new("/image/webp", pages::webp, "A WebP image of one pixel."),
    Route::new("/image/svg", pages::svg, "An SVG image of a square."),
    Route::new("/base64/{value}", pages::base64, "Returns the Base64-decoded value."),
    Route::new("/uuid", pages::uuid, "A UUID (version 8) made from a request counter."),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::ARG_COUNT_MAX;

    #[test]
    fn patterns_capture_their_parameters() {
        let check = |pattern, path, expected: Option<&[&str]>| {
            let expected = expected.map(|values| {
                let mut args = Args::default();
                values.iter().for_each(|value| args.push(value));
                args
            });
            assert_eq!(capture(pattern, path), expected, "{path} on {pattern}");
        };
        check("/", "/", Some(&[]));
        check("/", "/x", None);
        check("/bytes/{n}", "/bytes/12", Some(&["12"]));
        check("/bytes/{n}", "/bytes", None);
        check("/bytes/{n}", "/bytes/12/", None);
        check("/bytes/{n}", "/bytes/", Some(&[""]));
        check("/cookies/set/{name}/{value}", "/cookies/set/a/b", Some(&["a", "b"]));
        check("/anything/{...}", "/anything/a/b/c", Some(&[]));
        check("/get", "/getter", None);
    }

    #[test]
    fn table_is_well_formed() {
        for route in ROUTES {
            let parameters = route.pattern.matches('{').count();
            assert!(route.pattern.starts_with('/') && parameters <= ARG_COUNT_MAX, "{}", route.pattern);
            assert!(route.doc.ends_with('.') && !route.doc.contains('|'), "{}", route.doc);
        }
    }

    #[test]
    fn docs_list_exactly_these_routes() {
        let page = include_str!("../../../../docs/target.md");
        let rows: Vec<String> = route_docs().map(|r| format!("| `{}` | {} |", r.pattern, r.doc)).collect();
        let listed: Vec<&str> = page.lines().filter(|line| line.starts_with("| `/")).collect();
        assert_eq!(listed, rows, "docs/target.md should list:\n{}\n", rows.join("\n"));
    }
}
