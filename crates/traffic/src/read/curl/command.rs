//! One curl command: its options, and the requests that curl would send for them.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::options::{Effect, option};
use crate::read::files::Files;
use crate::read::multipart::{self, Part};
use crate::read::{Notes, http1, time};
use crate::{Field, Place, Request, Version};

/// What the options of one command say.
#[derive(Default)]
pub(super) struct Command {
    method: Option<String>,
    urls: Vec<String>,
    query: Vec<Data>,
    target: Option<String>,
    headers: Vec<Header>,
    user: Option<String>,
    /// Authentication other than Basic, which takes a challenge of the server.
    is_challenged: bool,
    data: Vec<Data>,
    form: Vec<String>,
    uploads: Vec<String>,
    data_in_query: bool,
    is_head: bool,
    is_json: bool,
    version: Version,
}

/// A `-H`.
enum Header {
    Field(Field),
    /// `Name:` takes a field away that curl would send.
    Removed(String),
    /// `@FILE` has one a line.
    File(String),
}

/// A piece of a body.
enum Data {
    Text(String),
    /// The contents of a file.
    File {
        name: String,
        is_text: bool,
    },
    /// `name@FILE` of `--data-urlencode`.
    EncodedFile {
        prefix: String,
        name: String,
    },
    Json(Box<Self>),
}

impl Command {
    /// Reads the words behind `curl`.
    ///
    /// # Errors
    /// When an option is not known or has no value.
    pub(super) fn read(words: &[String], notes: &mut Notes, place: Place) -> Result<Self, String> {
        let mut command = Self::default();
        let mut words = words.iter();
        let mut are_urls = false;
        while let Some(word) = words.next() {
            match word.as_str() {
                "--" => are_urls = true,
                name if name.starts_with("--") && !are_urls => {
                    command.long(name, &mut words, notes, place)?;
                }
                flags if flags.starts_with('-') && flags.len() > 1 && !are_urls => {
                    command.short(flags, &mut words, notes, place)?;
                }
                url => command.urls.push(url.to_owned()),
            }
        }
        Ok(command)
    }

    fn long<'a>(
        &mut self,
        name: &str,
        words: &mut impl Iterator<Item = &'a String>,
        notes: &mut Notes,
        place: Place,
    ) -> Result<(), String> {
        let option = option(name).ok_or_else(|| unknown(name))?;
        let value = if option.takes_value { words.next().ok_or_else(|| no_value(name))? } else { "" };
        self.set(option.name, option.effect, value, notes, place)
    }

    /// `-XPOST` is `-X POST`, and `-sSL` are three.
    fn short<'a>(
        &mut self,
        flags: &str,
        words: &mut impl Iterator<Item = &'a String>,
        notes: &mut Notes,
        place: Place,
    ) -> Result<(), String> {
        for (at, flag) in flags.char_indices().skip(1) {
            let name = format!("-{flag}");
            let option = option(&name).ok_or_else(|| unknown(&name))?;
            if option.takes_value {
                let value = match &flags[at + flag.len_utf8()..] {
                    "" => words.next().ok_or_else(|| no_value(&name))?,
                    rest => rest,
                };
                return self.set(&name, option.effect, value, notes, place);
            }
            self.set(&name, option.effect, "", notes, place)?;
        }
        Ok(())
    }

    fn set(
        &mut self,
        name: &str,
        effect: Effect,
        value: &str,
        notes: &mut Notes,
        place: Place,
    ) -> Result<(), String> {
        match effect {
            Effect::Output => {}
            Effect::Connection => {
                notes.add(&format!("`{name}`: not recorded, it says how curl connects"), place);
            }
            Effect::Request => self.set_request(name, value, notes, place)?,
        }
        Ok(())
    }

    fn set_request(
        &mut self,
        name: &str,
        value: &str,
        notes: &mut Notes,
        place: Place,
    ) -> Result<(), String> {
        let text = value.to_owned();
        match name {
            "-X" | "--request" => self.method = Some(text),
            "-I" | "--head" => self.is_head = true,
            "-G" | "--get" => self.data_in_query = true,
            "--url" => self.urls.push(text),
            "--url-query" => self.query.push(url_query(value)),
            "--request-target" => self.target = Some(text),
            "-T" | "--upload-file" => self.uploads.push(text),
            "-F" | "--form" => self.form.push(text),
            "--form-string" => self.form.push(format!("={text}")),
            "-u" | "--user" => self.user = Some(text),
            "--basic" => self.is_challenged = false,
            "-0" | "--http1.0" => self.version = Version::Http10,
            "--http2" | "--http2-prior-knowledge" => self.version = Version::Http2,
            "--http3" | "--http3-only" => self.version = Version::Http3,
            "--http1.1" | "--proto-default" => {}
            "--digest" | "--ntlm" | "--negotiate" | "--anyauth" => {
                self.is_challenged = true;
                notes.add(&format!("`{name}`: answers a challenge of the server; sent without"), place);
            }
            "-b" | "--cookie" if !value.contains('=') => {
                notes.add("cookies from a file (`-b FILE`): sent without", place);
            }
            "-H" | "--header" => self.headers.push(Header::of(value)?),
            "-A" | "--user-agent" => self.add("User-Agent", text),
            "-e" | "--referer" => self.add("Referer", value.trim_end_matches(";auto").to_owned()),
            "-b" | "--cookie" => self.add("Cookie", text),
            "-r" | "--range" => self.add("Range", format!("bytes={text}")),
            "--oauth2-bearer" => self.add("Authorization", format!("Bearer {text}")),
            "--compressed" => self.add("Accept-Encoding", "gzip, deflate, br".to_owned()),
            name if name == "--json" || name.starts_with("--data") || name == "-d" => {
                self.add_data(name, value);
            }
            _ => notes.add(&format!("`{name}`: sent without"), place),
        }
        Ok(())
    }

    fn add(&mut self, name: &str, value: String) {
        if !value.is_empty() {
            self.headers.push(Header::Field(Field::new(name, value)));
        }
    }

    fn add_data(&mut self, name: &str, value: &str) {
        let is_text = matches!(name, "-d" | "--data" | "--data-ascii");
        let of_file = value.strip_prefix('@').filter(|_| !matches!(name, "--data-raw" | "--data-urlencode"));
        let data = match of_file {
            Some(file) => Data::File { name: file.to_owned(), is_text },
            None if name == "--data-urlencode" => urlencoded(value),
            None => Data::Text(value.to_owned()),
        };
        self.is_json |= name == "--json";
        self.data.push(if name == "--json" { Data::Json(Box::new(data)) } else { data });
    }

    /// What curl would send: a request for each URL.
    ///
    /// # Errors
    /// When there is no URL, a file cannot be read, or something cannot be sent.
    pub(super) fn requests(
        &self,
        files: &Files,
        notes: &mut Notes,
        place: Place,
    ) -> Result<Vec<Request>, String> {
        if self.urls.is_empty() {
            return Err("no URL".to_owned());
        }
        let headers = self.fields(files)?;
        let data = self.body(files, notes, place)?;
        let query = self.query(files, notes, place)?;
        let mut requests = Vec::new();
        for (nth, url) in self.urls.iter().enumerate() {
            if let Some((_, rest)) =
                url.split_once("://").filter(|(scheme, _)| matches!(*scheme, "ws" | "wss"))
            {
                notes.web_socket(rest.split(['/', '?']).next().unwrap_or_default(), place);
                continue;
            }
            let upload = self.uploads.get(nth).map(String::as_str);
            let url = self.url(url, upload, notes, place);
            let mut request =
                Request { headers: headers.clone(), version: self.version, ..Request::default() };
            http1::set_url(&mut request, &url)?;
            self.fill(&mut request, query.clone(), &data)?;
            if let Some(name) = upload {
                request.body = read_file(files, name, notes, place)?;
            }
            request.method = self.method(&request, upload.is_some());
            check(&request)?;
            request.drop_connection_fields();
            requests.push(request);
        }
        Ok(requests)
    }

    fn method(&self, request: &Request, is_upload: bool) -> String {
        let implied = match () {
            () if self.is_head => "HEAD",
            () if is_upload => "PUT",
            () if !self.data_in_query && (!self.data.is_empty() || !self.form.is_empty()) => "POST",
            () if !request.body.is_empty() => "POST",
            () => "GET",
        };
        self.method.clone().unwrap_or_else(|| implied.to_owned())
    }

    /// The URL with its scheme; uploads into a folder have the file's name added, as curl does.
    fn url(&self, url: &str, upload: Option<&str>, notes: &mut Notes, place: Place) -> String {
        if url.contains(['{', '[']) && !url.contains("://[") {
            notes.add("URLs with `{..}` or `[..]`: sent as they are written", place);
        }
        let mut url = if url.contains("://") { url.to_owned() } else { format!("http://{url}") };
        if let Some(name) = upload.filter(|_| url.ends_with('/')) {
            url.push_str(name.rsplit('/').next().unwrap_or_default());
        }
        url
    }

    /// The parameters that `--url-query` adds; a file's are encoded, and so are text.
    fn query(&self, files: &Files, notes: &mut Notes, place: Place) -> Result<Vec<String>, String> {
        let part = |data: &Data| {
            data.bytes(files, notes, place).map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
        };
        self.query.iter().map(part).collect()
    }

    /// Puts query, body and what follows from it into a request.
    fn fill(&self, request: &mut Request, mut query: Vec<String>, data: &[u8]) -> Result<(), String> {
        if self.data_in_query && !data.is_empty() {
            query.push(String::from_utf8(data.to_vec()).map_err(|_| "the data of -G is not text")?);
        }
        if let Some(target) = &self.target {
            request.target.clone_from(target);
        }
        if !query.is_empty() {
            request.target.push(if request.target.contains('?') { '&' } else { '?' });
            request.target.push_str(&query.join("&"));
        }
        if self.data_in_query {
            return Ok(());
        }
        request.body = data.to_vec();
        if !self.form.is_empty() {
            multipart::set_content_type(&mut request.headers);
        } else if self.is_json {
            self.set_default(request, "Content-Type", "application/json");
            self.set_default(request, "Accept", "application/json");
        } else if !self.data.is_empty() {
            self.set_default(request, "Content-Type", "application/x-www-form-urlencoded");
        }
        Ok(())
    }

    fn set_default(&self, request: &mut Request, name: &str, value: &str) {
        let is_removed =
            |header: &Header| matches!(header, Header::Removed(one) if one.eq_ignore_ascii_case(name));
        if request.header(name).is_none() && !self.headers.iter().any(is_removed) {
            request.headers.push(Field::new(name, value));
        }
    }

    fn fields(&self, files: &Files) -> Result<Vec<Field>, String> {
        let mut fields: Vec<Field> = Vec::new();
        for header in &self.headers {
            match header {
                Header::Field(field) => fields.push(field.clone()),
                Header::Removed(_) => {}
                Header::File(name) => {
                    let text = String::from_utf8(files.read(name)?)
                        .map_err(|_| format!("the file `{name}` is not UTF-8"))?;
                    for line in text.lines().filter(|line| !line.trim().is_empty()) {
                        if let Header::Field(field) = Header::of(line)? {
                            fields.push(field);
                        }
                    }
                }
            }
        }
        let has_authorization = fields.iter().any(|field| field.is("authorization"));
        if let Some(user) = self.user.as_ref().filter(|_| !self.is_challenged && !has_authorization) {
            let user = if user.contains(':') { user.clone() } else { format!("{user}:") };
            fields.push(Field::new("Authorization", format!("Basic {}", STANDARD.encode(user))));
        }
        Ok(fields)
    }

    fn body(&self, files: &Files, notes: &mut Notes, place: Place) -> Result<Vec<u8>, String> {
        if !self.form.is_empty() {
            let mut parts = Vec::new();
            for text in &self.form {
                parts.extend(form_parts(text, files, notes, place)?);
            }
            return Ok(multipart::body(&parts));
        }
        let mut body = Vec::new();
        for data in &self.data {
            // What is JSON is joined as it is.
            if !body.is_empty() && !matches!(data, Data::Json(_)) {
                body.push(b'&');
            }
            body.extend(data.bytes(files, notes, place)?);
        }
        Ok(body)
    }
}

impl Header {
    fn of(text: &str) -> Result<Self, String> {
        if let Some(file) = text.strip_prefix('@') {
            return Ok(Self::File(file.to_owned()));
        }
        if let Some((name, value)) = text.split_once(':') {
            let (name, value) = (name.trim(), value.trim());
            return Ok(match value {
                "" => Self::Removed(name.to_owned()),
                value => Self::Field(Field::new(name, value)),
            });
        }
        match text.strip_suffix(';') {
            Some(name) => Ok(Self::Field(Field::new(name, ""))),
            None => Err(format!("`{}` is not a header", time::cut(text))),
        }
    }
}

impl Data {
    fn bytes(&self, files: &Files, notes: &mut Notes, place: Place) -> Result<Vec<u8>, String> {
        match self {
            Self::Text(text) => Ok(text.clone().into_bytes()),
            Self::Json(data) => data.bytes(files, notes, place),
            Self::File { name, is_text } => {
                let mut bytes = read_file(files, name, notes, place)?;
                if *is_text {
                    bytes.retain(|byte| !matches!(byte, b'\r' | b'\n' | 0));
                }
                Ok(bytes)
            }
            Self::EncodedFile { prefix, name } => {
                let bytes = read_file(files, name, notes, place)?;
                Ok(format!("{prefix}{}", encoded(&bytes)).into_bytes())
            }
        }
    }
}

/// `name=content`, `name=@file;type=..;filename=..`, `name=<file`; what `--form-string` says begins with `=`.
fn form_parts(text: &str, files: &Files, notes: &mut Notes, place: Place) -> Result<Vec<Part>, String> {
    if let Some((name, content)) = text.strip_prefix('=').and_then(|text| text.split_once('=')) {
        let content = content.as_bytes().to_vec();
        return Ok(vec![Part { name: name.to_owned(), content, ..Part::default() }]);
    }
    let (name, rest) = text.split_once('=').ok_or_else(|| format!("`-F {}` has no `=`", time::cut(text)))?;
    let (source, rest) = match rest.chars().next() {
        Some(source @ ('@' | '<')) => (Some(source), &rest[1..]),
        _ => (None, rest),
    };
    let (content, attributes) = attributes(rest);
    let attribute = |key: &str| {
        attributes.iter().find_map(|one| Some(one.trim().strip_prefix(key)?.trim_matches('"').to_owned()))
    };
    let part = |content: Vec<u8>, file: Option<&str>| Part {
        name: name.to_owned(),
        file_name: attribute("filename=").or_else(|| Some(file?.rsplit('/').next()?.to_owned())),
        content_type: attribute("type=").or_else(|| file.map(|file| type_of(file).to_owned())),
        content,
    };
    match source {
        None => Ok(vec![part(content.into_bytes(), None)]),
        Some('<') => Ok(vec![part(read_file(files, &content, notes, place)?, None)]),
        Some(_) => {
            let names = content.split(',');
            names.map(|file| Ok(part(read_file(files, file, notes, place)?, Some(file)))).collect()
        }
    }
}

/// What a form's part has behind its content: only words that curl knows end it. Quotes keep semicolons.
fn attributes(text: &str) -> (String, Vec<&str>) {
    if let Some((content, rest)) = text.strip_prefix('"').and_then(|rest| rest.rsplit_once('"'))
        && (rest.is_empty() || rest.starts_with(';'))
    {
        return (content.replace("\\\"", "\"").replace("\\\\", "\\"), rest.split(';').skip(1).collect());
    }
    let is_known = |rest: &str| {
        ["type=", "filename=", "headers=", "encoder="].iter().any(|key| rest.trim_start().starts_with(key))
    };
    let end =
        text.match_indices(';').find(|(at, _)| is_known(&text[at + 1..])).map_or(text.len(), |(at, _)| at);
    (text[..end].to_owned(), text[end..].split(';').skip(1).collect())
}

/// curl's own list, and what it takes for the others.
fn type_of(file: &str) -> &'static str {
    match file.rsplit('.').next().unwrap_or_default().to_ascii_lowercase().as_str() {
        "gif" => "image/gif",
        "jpg" | "jpeg" => "image/jpeg",
        "png" => "image/png",
        "svg" => "image/svg+xml",
        "txt" => "text/plain",
        "htm" | "html" => "text/html",
        "pdf" => "application/pdf",
        "xml" => "application/xml",
        _ => "application/octet-stream",
    }
}

fn read_file(files: &Files, name: &str, notes: &mut Notes, place: Place) -> Result<Vec<u8>, String> {
    let bytes = files.read(name)?;
    if !Files::is_stdin(name) {
        notes.add("bodies read from the files that the commands name", place);
    }
    Ok(bytes)
}

/// curl's rule: `name=text` encodes the text, `=text` and `text` all of it; `name@file` and `@file` a file.
fn urlencoded(value: &str) -> Data {
    match value.find(['=', '@']).map(|at| (&value[..at], value.as_bytes()[at], &value[at + 1..])) {
        Some(("", b'=', text)) => Data::Text(encoded(text.as_bytes())),
        Some((name, b'=', text)) => Data::Text(format!("{name}={}", encoded(text.as_bytes()))),
        Some((name, _, file)) => Data::EncodedFile {
            prefix: if name.is_empty() { String::new() } else { format!("{name}=") },
            name: file.to_owned(),
        },
        None => Data::Text(encoded(value.as_bytes())),
    }
}

/// As `--data-urlencode`; `+` keeps it as it is.
fn url_query(value: &str) -> Data {
    value.strip_prefix('+').map_or_else(|| urlencoded(value), |raw| Data::Text(raw.to_owned()))
}

fn encoded(bytes: &[u8]) -> String {
    form_urlencoded::byte_serialize(bytes).collect::<String>().replace('+', "%20")
}

/// What no message can carry.
fn check(request: &Request) -> Result<(), String> {
    let is_sendable = |field: &Field| {
        squall_plan::urls::is_token(&field.name)
            && !field.value.iter().any(|byte| matches!(byte, b'\r' | b'\n' | 0))
    };
    if !squall_plan::urls::is_token(&request.method) {
        return Err(format!("`{}` is not a method", time::cut(&request.method)));
    }
    if let Some(field) = request.headers.iter().find(|field| !is_sendable(field)) {
        return Err(format!("the header `{}` cannot be sent", time::cut(&field.name)));
    }
    match request.target.bytes().all(|byte| byte > b' ' && byte != 0x7f) {
        true => Ok(()),
        false => Err(format!("the URL `{}` cannot be sent", time::cut(&request.target))),
    }
}

fn unknown(name: &str) -> String {
    format!("curl option `{}` is not known", time::cut(name))
}

fn no_value(name: &str) -> String {
    format!("curl option `{}` has no value", time::cut(name))
}
