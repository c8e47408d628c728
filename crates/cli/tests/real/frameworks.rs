//! The login of six web frameworks, with the names, encodings and rules of their tokens: recorded with the defaults, no secret is in the
//! file, and every request of a replay against another instance is valid.
//!
//! In each a page has a form with a token that goes with the session's cookie, the login begins another session and leads to a page
//! that calls an API with the token in a header, and the API answers with an id that is asked for next.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

use std::collections::{BTreeMap, HashMap};
use std::env;
use std::fs;
use std::hash::{BuildHasher, RandomState};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::Command;
use std::sync::{Arc, Mutex};

use percent_encoding::{NON_ALPHANUMERIC, percent_decode_str, percent_encode};
use tempfile::TempDir;

use crate::site;
use crate::squall;
use crate::traffic::{Serving, path};

const PASSWORD: &str = "c0rrect & h0rse+battery";

/// Where a page's script has the token from that it sends in a header.
#[derive(Clone, Copy)]
enum HeaderFrom {
    /// The cookie of that name, decoded.
    Cookie(&'static str),
    /// The `meta` element of that name.
    Meta(&'static str),
    /// The variable of that name in a script of the page.
    Script(&'static str),
    /// The answer to the login, as a bearer token.
    Json,
}

/// What a framework calls things, and how it writes them.
struct Framework {
    name: &'static str,
    session_cookie: &'static str,
    /// The session's cookie is another one in each response.
    rotates: bool,
    /// The value of a cookie or token as it is in a cookie.
    cookie: fn(&mut Random) -> String,
    /// A second cookie that forms must go with.
    csrf_cookie: Option<&'static str>,
    field: &'static str,
    /// A token as it is in a page, before escaping.
    token: fn(&mut Random) -> String,
    header: &'static str,
    header_from: HeaderFrom,
    /// The first redirect has the session in its path.
    session_in_path: bool,
}

static FRAMEWORKS: [Framework; 6] = [
    Framework {
        name: "Django",
        session_cookie: "sessionid",
        rotates: false,
        cookie: |random| random.text(ALPHANUMERIC, 32),
        csrf_cookie: Some("csrftoken"),
        field: "csrfmiddlewaretoken",
        token: |random| random.text(ALPHANUMERIC, 64),
        header: "X-CSRFToken",
        header_from: HeaderFrom::Cookie("csrftoken"),
        session_in_path: false,
    },
    Framework {
        name: "Rails",
        session_cookie: "_shop_session",
        rotates: true,
        cookie: |random| {
            let part = |random: &mut Random, length| encoded(&(random.text(BASE64, length) + "+/=="));
            format!("{}--{}--{}", part(random, 200), part(random, 12), part(random, 18))
        },
        csrf_cookie: None,
        field: "authenticity_token",
        token: |random| random.text(BASE64, 84) + "/+==",
        header: "X-CSRF-Token",
        header_from: HeaderFrom::Meta("csrf-token"),
        session_in_path: false,
    },
    Framework {
        name: "Laravel",
        session_cookie: "laravel_session",
        rotates: true,
        cookie: |random| encoded(&format!("eyJpdiI6{}+/==", random.text(BASE64, 220))),
        csrf_cookie: Some("XSRF-TOKEN"),
        field: "_token",
        token: |random| random.text(ALPHANUMERIC, 40),
        header: "X-XSRF-TOKEN",
        header_from: HeaderFrom::Cookie("XSRF-TOKEN"),
        session_in_path: false,
    },
    Framework {
        name: "ASP.NET",
        session_cookie: ".AspNetCore.Identity.Application",
        rotates: false,
        cookie: |random| format!("CfDJ8{}", random.text(BASE64_URL, 180)),
        csrf_cookie: Some(".AspNetCore.Antiforgery.w5W7x28NAIs"),
        field: "__RequestVerificationToken",
        token: |random| format!("CfDJ8{}", random.text(BASE64_URL, 150)),
        header: "RequestVerificationToken",
        header_from: HeaderFrom::Script("requestToken"),
        session_in_path: false,
    },
    Framework {
        name: "Spring",
        session_cookie: "JSESSIONID",
        rotates: false,
        cookie: |random| random.text(b"0123456789ABCDEF", 32),
        csrf_cookie: None,
        field: "_csrf",
        token: |random| random.text(BASE64_URL, 96),
        header: "X-CSRF-TOKEN",
        header_from: HeaderFrom::Meta("_csrf"),
        session_in_path: true,
    },
    Framework {
        name: "Express",
        session_cookie: "connect.sid",
        rotates: false,
        cookie: |random| encoded(&format!("s:{}.{}+/", random.text(BASE64_URL, 32), random.text(BASE64, 41))),
        csrf_cookie: Some("_csrf"),
        field: "_csrf",
        token: |random| format!("{}-{}", random.text(ALPHANUMERIC, 8), random.text(BASE64_URL, 27)),
        header: "Authorization",
        header_from: HeaderFrom::Json,
        session_in_path: false,
    },
];

const ALPHANUMERIC: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
const BASE64: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const BASE64_URL: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

fn encoded(text: &str) -> String {
    percent_encode(text.as_bytes(), NON_ALPHANUMERIC).to_string()
}

fn decoded(text: &str) -> String {
    percent_decode_str(text).decode_utf8_lossy().into_owned()
}

/// Values that cannot be guessed, others in each instance of a site.
#[derive(Default)]
struct Random {
    key: RandomState,
    drawn: u64,
}

impl Random {
    fn text(&mut self, letters: &[u8], length: usize) -> String {
        let mut draw = || {
            self.drawn += 1;
            char::from(letters[self.key.hash_one(self.drawn) as usize % letters.len()])
        };
        (0..length).map(|_| draw()).collect()
    }
}

/// One instance of a framework's site.
struct Site {
    framework: &'static Framework,
    state: Mutex<State>,
    /// Every secret that was given out.
    secrets: Arc<Mutex<Vec<String>>>,
}

#[derive(Default)]
struct State {
    random: Random,
    session_count: u64,
    /// Sessions by their cookies, tokens and bearer tokens.
    session_of: HashMap<String, u64>,
    logged_in: Vec<u64>,
    item_count: u64,
}

/// What a response is made of.
#[derive(Default)]
struct Page {
    status: u16,
    headers: String,
    body: String,
}

impl Site {
    /// Its URL, and the secrets that it gives.
    fn start(framework: &'static Framework) -> (String, Arc<Mutex<Vec<String>>>) {
        let secrets = Arc::default();
        let site = Self { framework, state: Mutex::default(), secrets: Arc::clone(&secrets) };
        let url = site::serve(move |request| {
            let page = site.answer(request);
            (page.status, page.headers, page.body.into_bytes())
        });
        (url, secrets)
    }

    fn answer(&self, request: &str) -> Page {
        let mut state = self.state.lock().unwrap();
        let state = &mut *state;
        let target = request.split(' ').nth(1).unwrap().to_owned();
        let session = cookie_of(request, self.framework.session_cookie)
            .and_then(|value| state.session_of.get(&value).copied());
        let is_in = session.is_some_and(|session| state.logged_in.contains(&session));
        let is_authorized = is_in && self.has_token_in_header(state, request, session);
        let path = target.split([';', '?']).next().unwrap();
        let mut page = match (request.split(' ').next().unwrap(), path) {
            ("GET", "/") => self.begin(state),
            ("GET", "/login")
                if session.is_some() || self.framework.session_in_path && target.contains(";jsessionid=") =>
            {
                self.form(
                    state,
                    session.or_else(|| state.session_of.get(target.rsplit('=').next()?).copied()),
                )
            }
            ("POST", "/login") => self.login(state, request, session),
            ("GET", "/account") if is_in => self.form(state, session),
            ("POST", "/api/items") if is_authorized => {
                state.item_count += 1;
                let id = state.random.text(b"123456789", 9);
                state.session_of.insert(id.clone(), session.unwrap());
                let headers =
                    format!("Location: http://{}/api/items/{id}\r\n", header_of(request, "host").unwrap());
                Page { status: 201, headers, body: format!("{{\"id\":{id}}}") }
            }
            ("GET", path) if is_authorized && path.starts_with("/api/items/") => {
                let is_theirs =
                    state.session_of.get(path.trim_start_matches("/api/items/")).copied() == session;
                Page { status: if is_theirs { 200 } else { 404 }, body: "{}".to_owned(), ..Page::default() }
            }
            _ => Page { status: 403, ..Page::default() },
        };
        if self.framework.rotates
            && page.status < 400
            && !page.headers.contains(self.framework.session_cookie)
        {
            self.set_cookies(state, session.unwrap(), &mut page);
        }
        page
    }

    /// A visitor without a session gets one.
    fn begin(&self, state: &mut State) -> Page {
        state.session_count += 1;
        let session = state.session_count;
        let mut page = Page { status: 302, ..Page::default() };
        let cookie = self.set_cookies(state, session, &mut page);
        let suffix =
            if self.framework.session_in_path { format!(";jsessionid={cookie}") } else { String::new() };
        page.headers += &format!("Location: /login{suffix}\r\n");
        page
    }

    /// The page with the form, whose token is another one each time.
    fn form(&self, state: &mut State, session: Option<u64>) -> Page {
        let Some(session) = session else { return Page { status: 403, ..Page::default() } };
        let token = self.secret(state, self.framework.token, session);
        let escaped = token.replace('+', "&#x2B;").replace('=', "&#x3D;");
        let name = self.framework.field;
        let head = match self.framework.header_from {
            HeaderFrom::Meta(meta) => {
                let token = self.secret(state, self.framework.token, session);
                format!(
                    "<meta name=\"{meta}\" content=\"{token}\"><meta name=\"_csrf_header\" content=\"{}\">",
                    self.framework.header
                )
            }
            HeaderFrom::Script(variable) => {
                let token = self.secret(state, self.framework.token, session);
                format!("<script>var {variable} = \"{token}\";</script>")
            }
            HeaderFrom::Cookie(_) | HeaderFrom::Json => String::new(),
        };
        let body = format!(
            "<!DOCTYPE html><html><head>{head}</head><form action=\"/login\" method=\"post\"><input name=\"user\">\
             <input type=\"password\" name=\"password\"><input type=\"hidden\" name=\"{name}\" value=\"{escaped}\"></form></html>"
        );
        Page { status: 200, headers: "Content-Type: text/html; charset=utf-8\r\n".to_owned(), body }
    }

    fn login(&self, state: &mut State, request: &str, session: Option<u64>) -> Page {
        let refused = Page { status: 403, ..Page::default() };
        let origin_fits =
            header_of(request, "origin") == header_of(request, "host").map(|host| format!("http://{host}"));
        let body = request.split_once("\r\n\r\n").unwrap().1;
        let form: HashMap<String, String> = form_urlencoded::parse(body.as_bytes()).into_owned().collect();
        let token = form.get(self.framework.field).and_then(|token| state.session_of.get(token).copied());
        let csrf_cookie_fits = self.framework.csrf_cookie.is_none_or(|name| {
            cookie_of(request, name).and_then(|value| state.session_of.get(&value).copied()) == session
        });
        let password_fits = form.get("password").is_some_and(|password| password == PASSWORD);
        if session.is_none() || token != session || !csrf_cookie_fits || !password_fits || !origin_fits {
            return refused;
        }
        state.session_of.retain(|_, owner| Some(*owner) != session);
        state.session_count += 1;
        let session = state.session_count;
        state.logged_in.push(session);
        let mut page = Page { status: 302, headers: "Location: /account\r\n".to_owned(), ..Page::default() };
        if let HeaderFrom::Json = self.framework.header_from {
            let jwt = |random: &mut Random| {
                format!(
                    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiI3IiwiZXhwIjoxOTk5OTk5OTk5fQ.{}",
                    random.text(BASE64_URL, 43)
                )
            };
            let token = self.secret(state, jwt, session);
            page = Page {
                status: 200,
                body: format!("{{\"user\":\"u\",\"token\":\"{token}\"}}"),
                ..Page::default()
            };
        }
        self.set_cookies(state, session, &mut page);
        page
    }

    fn has_token_in_header(&self, state: &State, request: &str, session: Option<u64>) -> bool {
        let value = header_of(request, self.framework.header).unwrap_or_default();
        let value = value.trim_start_matches("Bearer ").to_owned();
        let value = match self.framework.header_from {
            // It is the cookie, decoded.
            HeaderFrom::Cookie(_) => encoded(&value),
            HeaderFrom::Meta(_) | HeaderFrom::Script(_) | HeaderFrom::Json => value,
        };
        session.is_some() && state.session_of.get(&value).copied() == session
    }

    fn set_cookies(&self, state: &mut State, session: u64, page: &mut Page) -> String {
        let value = self.secret(state, self.framework.cookie, session);
        page.headers +=
            &format!("Set-Cookie: {}={value}; Path=/; HttpOnly\r\n", self.framework.session_cookie);
        if let Some(name) = self.framework.csrf_cookie {
            let value = self.secret(state, self.framework.cookie, session);
            page.headers += &format!("Set-Cookie: {name}={value}; Path=/\r\n");
        }
        value
    }

    fn secret(&self, state: &mut State, make: fn(&mut Random) -> String, session: u64) -> String {
        let value = make(&mut state.random);
        state.session_of.insert(value.clone(), session);
        self.secrets.lock().unwrap().push(value.clone());
        value
    }
}

fn header_of(request: &str, name: &str) -> Option<String> {
    let head = request.split("\r\n\r\n").next()?;
    let fields = head.lines().filter_map(|line| line.split_once(':'));
    fields
        .into_iter()
        .find(|(own, _)| own.eq_ignore_ascii_case(name))
        .map(|(_, value)| value.trim().to_owned())
}

fn cookie_of(request: &str, name: &str) -> Option<String> {
    let cookies = header_of(request, "cookie")?;
    let pairs = cookies.split("; ").filter_map(|pair| pair.split_once('='));
    pairs.into_iter().find(|(own, _)| *own == name).map(|(_, value)| value.to_owned())
}

/// What a browser does: it keeps cookies, reads pages, and names its origin.
struct Browser {
    address: String,
    cookies: BTreeMap<String, String>,
}

impl Browser {
    fn ask(&mut self, method: &str, path: &str, fields: &str, body: &str) -> String {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let cookies: Vec<String> =
            self.cookies.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let cookies =
            if cookies.is_empty() { String::new() } else { format!("Cookie: {}\r\n", cookies.join("; ")) };
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: {0}\r\nUser-Agent: browser\r\nOrigin: http://{0}\r\nConnection: close\r\n{cookies}{fields}\
             Content-Length: {1}\r\n\r\n{body}",
            self.address,
            body.len()
        );
        stream.write_all(head.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(!answer.starts_with("HTTP/1.1 4"), "{method} {path}: {answer}");
        for line in answer.lines() {
            if let Some(("set-cookie", cookie)) = line
                .split_once(": ")
                .map(|(name, value)| (name.to_ascii_lowercase(), value))
                .as_ref()
                .map(|(name, value)| (name.as_str(), *value))
            {
                let (name, value) = cookie.split(';').next().unwrap().split_once('=').unwrap();
                self.cookies.insert(name.to_owned(), value.to_owned());
            }
        }
        answer
    }

    fn walk(mut self, framework: &Framework) {
        let first = self.ask("GET", "/", "", "");
        let page = self.ask("GET", between(&first, "ocation: ", "\r\n"), "", "");
        let token = between(&page, &format!("name=\"{}\" value=\"", framework.field), "\"")
            .replace("&#x2B;", "+")
            .replace("&#x3D;", "=");
        let mut form = form_urlencoded::Serializer::new(String::new());
        form.append_pair("user", "u").append_pair("password", PASSWORD).append_pair(framework.field, &token);
        let login =
            self.ask("POST", "/login", "Content-Type: application/x-www-form-urlencoded\r\n", &form.finish());
        let page = self.ask("GET", "/account", "", "");
        let token = match framework.header_from {
            HeaderFrom::Cookie(name) => decoded(&self.cookies[name]),
            HeaderFrom::Meta(name) => between(&page, &format!("name=\"{name}\" content=\""), "\"").to_owned(),
            HeaderFrom::Script(name) => between(&page, &format!("{name} = \""), "\"").to_owned(),
            HeaderFrom::Json => format!("Bearer {}", between(&login, "\"token\":\"", "\"")),
        };
        let fields = format!("{}: {token}\r\nContent-Type: application/json\r\n", framework.header);
        let made = self.ask("POST", "/api/items", &fields, "{\"article\":1}");
        let id = between(&made, "\"id\":", "}");
        assert!(
            made.contains(&format!("ocation: http://{}/api/items/{id}", self.address)),
            "it leads back to the proxy: {made}"
        );
        self.ask("GET", &format!("/api/items/{id}"), &fields, "");
    }
}

fn between<'t>(text: &'t str, begin: &str, end: &str) -> &'t str {
    let from = text.find(begin).unwrap_or_else(|| panic!("no {begin} in {text}")) + begin.len();
    text[from..].split(end).next().unwrap()
}

/// Requests of one walk.
const REQUEST_COUNT: u64 = 6;

#[test]
fn logins_of_frameworks_are_recorded_without_secrets_and_replayed_without_failures() {
    squall::assert_none_complains(&[0, 1, 2, 3, 4, 5], |idx: &usize| {
        let framework = &FRAMEWORKS[*idx];
        let folder = TempDir::new().unwrap();
        let recording = path(&folder, "r.squall");
        let (url, secrets) = Site::start(framework);
        let proxy = Serving::start(&["record", &recording, "--to", &url], folder.path());
        let address = proxy.url.trim_start_matches("http://").to_owned();
        Browser { address, cookies: BTreeMap::new() }.walk(framework);
        proxy.stop();
        let complaint = left_secret(&recording, &secrets.lock().unwrap());
        // Another instance: nothing that the recording has is known there.
        let (other, _) = Site::start(framework);
        let password = format!("password={PASSWORD}");
        let replay = ["replay", &recording, "--to", &other, "--set-form", &password];
        let complaints =
            [(&[][..], 1), (&["--speed", "10"], 1), (&["--users", "20", "--user-shift", "10ms"], 20)].map(
                |(how, users)| {
                    let played = squall::run(&[&replay, how].concat());
                    let (ok, failed) = (played.count("/totals/ok"), played.count("/totals/failed"));
                    let is_valid = (ok, failed) == (REQUEST_COUNT * users, 0);
                    (!is_valid).then(|| {
                        format!("{how:?}: {ok} valid, {failed} failed: {}", played.json()["totals"]["replay"])
                    })
                },
            );
        let complaints = complaint
            .into_iter()
            .chain(complaints.into_iter().flatten())
            .chain(script_failures(framework, &recording, &folder));
        let complaints: Vec<String> = complaints.collect();
        (!complaints.is_empty()).then(|| format!("{}: {}", framework.name, complaints.join("; ")))
    });
}

/// What fails when the recording is a k6 script that gets the password from its environment, in squall and in k6 where it is installed.
fn script_failures(framework: &'static Framework, recording: &str, folder: &TempDir) -> Vec<String> {
    let (url, _) = Site::start(framework);
    let script = path(folder, "script.js");
    let written = squall::start(&["convert", recording, &script, "--to", &url]).wait();
    if !written.stderr.contains("-e PASSWORD=VALUE") {
        return vec![format!("convert does not say which variable the script needs: {written:?}")];
    }
    let password = format!("PASSWORD={PASSWORD}");
    let own = squall::start(&["run", "--no-save", "-e", &password, &script]).wait();
    let own = (own.code != Some(0)).then(|| format!("the script fails in squall: {own:?}"));
    let peer = k6().and_then(|k6| {
        let run = ["run", "--no-usage-report", "--address", "", "-e", &password, &script];
        let ended = Command::new(k6).args(run).output().unwrap();
        (!ended.status.success()).then(|| format!("the script fails in k6: {ended:?}"))
    });
    own.into_iter().chain(peer).collect()
}

/// The k6 of this machine, or the one that `K6` names.
fn k6() -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let installed = || env::split_paths(&path).map(|folder| folder.join("k6")).find(|file| file.is_file());
    env::var_os("K6").map(PathBuf::from).or_else(installed)
}

/// The first secret that the recording has in any encoding.
fn left_secret(recording: &str, secrets: &[String]) -> Option<String> {
    let bytes = fs::read(recording).unwrap();
    let has = |text: &str| memchr::memmem::find(&bytes, text.as_bytes()).is_some();
    let password = [PASSWORD.to_owned(), form_urlencoded::byte_serialize(PASSWORD.as_bytes()).collect()];
    let all =
        secrets.iter().flat_map(|secret| [secret.clone(), encoded(secret), decoded(secret)]).chain(password);
    // The header and claims of a token say who it was for; its signature makes it valid.
    let mut parts = all.map(|secret| secret.rsplit('.').next().unwrap_or_default().to_owned());
    parts.find(|secret| has(secret)).map(|secret| format!("`{secret}` is in the recording"))
}

#[test]
fn a_replay_without_the_password_says_which_flag_gives_it() {
    let folder = TempDir::new().unwrap();
    let recording = path(&folder, "r.squall");
    let framework = &FRAMEWORKS[0];
    let (url, _) = Site::start(framework);
    let proxy = Serving::start(&["record", &recording, "--to", &url], folder.path());
    let address = proxy.url.trim_start_matches("http://").to_owned();
    Browser { address, cookies: BTreeMap::new() }.walk(framework);
    proxy.stop();
    let played = squall::start(&["replay", &recording, "--to", &url, "--no-save"]).wait();
    assert!(played.stderr.contains("redacted values are sent unchanged"), "{played:#?}");
    let line = "password in the form of POST http://127.0.0.1";
    assert!(
        played.stderr.contains(line) && played.stderr.contains("--set-form 'password=VALUE'"),
        "{played:#?}"
    );
    assert_eq!(played.code, Some(3), "most responses differ: {played:#?}");
}
