//! curl command lines, as browsers copy them ("Copy as cURL") and as people keep them in notes.
//!
//! They have no times: each follows the one before it by a millisecond, so that their order is kept.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::{Notes, Source, http1, time};
use crate::input::Input;
use crate::limits::RECORD_BYTES_MAX;
use crate::{Field, Place, Problem, Record, Request};

/// The reader.
pub(super) struct Curl {
    input: Input,
    notes: Notes,
    command_count: u64,
    is_at_end: bool,
}

/// What the options of one command say.
#[derive(Default)]
struct Command {
    method: Option<String>,
    urls: Vec<String>,
    headers: Vec<Field>,
    data: Vec<String>,
    data_in_query: bool,
}

impl Curl {
    pub(super) fn new(input: Input) -> Self {
        Self { input, notes: Notes::default(), command_count: 0, is_at_end: false }
    }

    /// One command: a line, and those that a backslash or an open quote joins to it.
    fn command(&mut self) -> Result<Option<(String, Place)>, Problem> {
        let (mut text, mut quote) = (String::new(), None);
        let place = self.input.place(self.command_count + 1);
        loop {
            let mut line = Vec::new();
            self.is_at_end = !self.input.read_record(b"\n", &mut line, RECORD_BYTES_MAX, place)?;
            let line =
                String::from_utf8(line).map_err(|_| Problem::record(place, "the line is not UTF-8"))?;
            let line = line.trim_end_matches('\r');
            if text.is_empty() && (line.trim().is_empty() || line.trim_start().starts_with('#')) {
                return Ok(None);
            }
            let is_joined = line.ends_with('\\') && !line.ends_with("\\\\");
            let line = if is_joined { &line[..line.len() - 1] } else { line };
            text.push_str(line);
            quote = quote_after(quote, line);
            if !self.is_at_end && text.len() < RECORD_BYTES_MAX && (is_joined || quote.is_some()) {
                text.push(if is_joined { ' ' } else { '\n' });
                continue;
            }
            return Ok(Some((text, place)));
        }
    }

    fn record(&mut self, text: &str, place: Place) -> Result<Record, String> {
        let words = split(text).ok_or("a quote is not closed")?;
        let mut words = words.into_iter();
        match words.next().as_deref() {
            Some("curl" | "$") => {}
            _ => return Err("no curl command".to_owned()),
        }
        let command = Command::read(words, &mut self.notes, place)?;
        let request = command.request()?;
        self.command_count += 1;
        let time_ns = time::ANY_NS + self.command_count * 1_000_000;
        Ok(Record { time_ns, connection: 1, session: 1, request, response: None, place })
    }
}

impl Source for Curl {
    fn next(&mut self) -> Result<Option<Record>, Problem> {
        while !self.is_at_end {
            if let Some((text, place)) = self.command()? {
                return self.record(&text, place).map(Some).map_err(|reason| Problem::record(place, reason));
            }
        }
        Ok(None)
    }

    fn notes(&self) -> &Notes {
        &self.notes
    }

    fn bytes_read(&self) -> u64 {
        self.input.byte()
    }
}

impl Command {
    fn read(words: impl Iterator<Item = String>, notes: &mut Notes, place: Place) -> Result<Self, String> {
        let mut command = Self::default();
        let mut words = words.peekable();
        while let Some(word) = words.next() {
            if word == "curl" || word == "--next" || word == "-:" {
                return Err("several commands in one: write each on its own line".to_owned());
            }
            let (name, mut value) = match word.strip_prefix("--") {
                Some(_) => (word, None),
                None if word.starts_with('-') && word.len() > 1 => short(&word),
                None => {
                    command.urls.push(word);
                    continue;
                }
            };
            if takes_value(&name) && value.is_none() {
                value = Some(words.next().ok_or_else(|| format!("`{}` has no value", time::cut(&name)))?);
            }
            command.set(&name, value.unwrap_or_default(), notes, place)?;
        }
        Ok(command)
    }

    fn set(&mut self, name: &str, value: String, notes: &mut Notes, place: Place) -> Result<(), String> {
        let mut add = |name: &str, value: String| self.headers.push(Field::new(name, value));
        match name {
            "-X" | "--request" => self.method = Some(value),
            "-I" | "--head" => self.method = Some("HEAD".to_owned()),
            "-G" | "--get" => self.data_in_query = true,
            "--url" => self.urls.push(value),
            "-A" | "--user-agent" => add("User-Agent", value),
            "-e" | "--referer" => add("Referer", value),
            "-b" | "--cookie" if value.contains('=') => add("Cookie", value),
            "-u" | "--user" => add("Authorization", format!("Basic {}", STANDARD.encode(value))),
            "--oauth2-bearer" => add("Authorization", format!("Bearer {value}")),
            "--compressed" => add("Accept-Encoding", "gzip, deflate, br".to_owned()),
            "-H" | "--header" => {
                let (name, value) =
                    value.split_once(':').ok_or_else(|| format!("`{}` is no header", time::cut(&value)))?;
                add(name.trim(), value.trim().to_owned());
            }
            "-d" | "--data" | "--data-ascii" | "--data-binary" if value.starts_with('@') => {
                notes.add("bodies from files (-d @FILE): sent without", place);
            }
            "-d" | "--data" | "--data-ascii" | "--data-binary" | "--data-raw" => self.data.push(value),
            "--data-urlencode" => self.data.push(urlencode(&value)),
            "--json" => {
                add("Content-Type", "application/json".to_owned());
                self.headers.push(Field::new("Accept", "application/json"));
                self.data.push(value);
            }
            "-F" | "--form" => notes.add("multipart forms (-F): sent without", place),
            _ => {}
        }
        Ok(())
    }

    fn request(mut self) -> Result<Request, String> {
        let url = match self.urls.as_slice() {
            [url] => with_scheme(url),
            [] => return Err("no URL".to_owned()),
            _ => return Err("several URLs in one command".to_owned()),
        };
        let mut request = Request::default();
        http1::set_url(&mut request, &url)?;
        let data = self.data.join("&");
        let has_body = !self.data.is_empty() && !self.data_in_query;
        if self.data_in_query && !data.is_empty() {
            request.target.push(if request.target.contains('?') { '&' } else { '?' });
            request.target.push_str(&data);
        }
        if has_body && !self.headers.iter().any(|field| field.is("content-type")) {
            self.headers.push(Field::new("Content-Type", "application/x-www-form-urlencoded"));
        }
        let method = self.method.unwrap_or_else(|| if has_body { "POST" } else { "GET" }.to_owned());
        let is_sendable = |field: &Field| {
            squall_plan::urls::is_token(&field.name)
                && !field.value.iter().any(|byte| matches!(byte, b'\r' | b'\n' | 0))
        };
        if !squall_plan::urls::is_token(&method)
            || !self.headers.iter().all(is_sendable)
            || !request.target.bytes().all(|byte| byte > b' ' && byte != 0x7f)
        {
            return Err("a method, header or URL that cannot be sent".to_owned());
        }
        request.method = method;
        request.headers = self.headers;
        request.body = if has_body { data.into_bytes() } else { Vec::new() };
        request.drop_connection_fields();
        Ok(request)
    }
}

/// `-XPOST` is `-X POST`; several flags in one (`-sSL`) are none that matter here.
fn short(word: &str) -> (String, Option<String>) {
    let name = word.get(..2).unwrap_or(word).to_owned();
    let rest = word.get(2..).unwrap_or_default();
    match rest {
        "" => (name, None),
        rest if takes_value(&name) => (name, Some(rest.to_owned())),
        _ => (name, Some(String::new())),
    }
}

/// Options with a value, of those that people use; the rest are switches.
fn takes_value(name: &str) -> bool {
    WITH_VALUE.split_ascii_whitespace().any(|one| one == name)
}

const WITH_VALUE: &str = "
    -A --user-agent  -b --cookie  -c --cookie-jar  -D --dump-header  -d --data  -E --cert  -e --referer  -F --form
    -H --header  -m --max-time  -o --output  -r --range  -T --upload-file  -u --user  -w --write-out  -X --request
    -x --proxy  --cacert --ciphers --connect-timeout --connect-to --data-ascii --data-binary --data-raw
    --data-urlencode --interface --json --key --limit-rate --max-redirs --oauth2-bearer --resolve --retry --url
";

fn with_scheme(url: &str) -> String {
    if url.contains("://") { url.to_owned() } else { format!("http://{url}") }
}

/// curl's rule: `name=text` encodes the text, `=text` and `text` all of it.
fn urlencode(value: &str) -> String {
    let encode =
        |text: &str| form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>().replace('+', "%20");
    match value.split_once('=') {
        Some(("", text)) => encode(text),
        Some((name, text)) => format!("{name}={}", encode(text)),
        None => encode(value),
    }
}

/// The quote that is open behind a text, before which `open` was.
fn quote_after(mut open: Option<Quoting>, text: &str) -> Option<Quoting> {
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match (open, c) {
            (None | Some(Quoting::Weak | Quoting::AnsiC), '\\') => drop(chars.next()),
            (None, '\'') => open = Some(Quoting::Plain),
            (None, '"') => open = Some(Quoting::Weak),
            (None, '$') if chars.next_if_eq(&'\'').is_some() => open = Some(Quoting::AnsiC),
            (Some(Quoting::Plain | Quoting::AnsiC), '\'') | (Some(Quoting::Weak), '"') => open = None,
            _ => {}
        }
    }
    open
}

/// Splits as a shell does: quotes, `$'..'` with its escapes, backslashes. `None`: a quote is open at the end.
fn split(text: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            ' ' | '\t' | '\n' | '\r' => words.extend(word.take()),
            '\'' => read_quoted(&mut chars, '\'', Quoting::Plain, word.get_or_insert_default())?,
            '"' => read_quoted(&mut chars, '"', Quoting::Weak, word.get_or_insert_default())?,
            '$' if chars.peek() == Some(&'\'') => {
                chars.next();
                read_quoted(&mut chars, '\'', Quoting::AnsiC, word.get_or_insert_default())?;
            }
            '\\' => {
                let word = word.get_or_insert_default();
                match chars.next() {
                    Some('\n') | None => {}
                    Some(escaped) => word.push(escaped),
                }
            }
            c => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    Some(words)
}

#[derive(Clone, Copy, PartialEq)]
enum Quoting {
    /// `'..'`
    Plain,
    /// `".."`
    Weak,
    /// `$'..'`
    AnsiC,
}

fn read_quoted(
    chars: &mut std::iter::Peekable<std::str::Chars<'_>>,
    end: char,
    quoting: Quoting,
    word: &mut String,
) -> Option<()> {
    loop {
        match chars.next()? {
            c if c == end => return Some(()),
            '\\' if quoting == Quoting::Weak => match chars.next()? {
                '\n' => {}
                c @ ('"' | '\\' | '$' | '`') => word.push(c),
                c => word.extend(['\\', c]),
            },
            '\\' if quoting == Quoting::AnsiC => match chars.next()? {
                'n' => word.push('\n'),
                'r' => word.push('\r'),
                't' => word.push('\t'),
                'u' => {
                    let digits: String = chars.by_ref().take(4).collect();
                    word.push(
                        u32::from_str_radix(&digits, 16).ok().and_then(char::from_u32).unwrap_or('\u{fffd}'),
                    );
                }
                c => word.push(c),
            },
            c => word.push(c),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Format;
    use super::super::tests::{all, good};
    use super::{quote_after, split};

    #[test]
    fn an_open_quote_is_followed_from_line_to_line() {
        for (text, is_open) in [
            ("curl 'a", true),
            ("curl 'a\\", true),
            ("curl \"it's\" 'x'", false),
            ("curl \"a\\\"", true),
            ("curl $'a\\'", true),
            ("curl \\' x", false),
            ("curl 'a\" \nb'", false),
        ] {
            assert_eq!(quote_after(None, text).is_some(), is_open, "{text}");
            assert_eq!(split(text).is_none(), is_open, "{text}");
        }
    }

    #[test]
    fn commands_as_browsers_copy_them() {
        let text = "# a note\ncurl 'https://x/a?b=c' \\\n  -H 'Accept: */*' \\\n  -b 'sid=1; t=2' \\\n  --data-raw $'a=\\u0041\\'b' \\\n  --compressed\n\ncurl -sS -XPUT \"http://y\" -u u:p\ncurl -G -d q=1 z/p\n";
        let records = good(Format::Curl, text.into());
        let [first, second, third] = records.as_slice() else { panic!("{records:?}") };
        assert_eq!(
            (first.request.method.as_str(), first.request.url().as_str()),
            ("POST", "https://x/a?b=c")
        );
        assert_eq!(first.request.body, b"a=A'b");
        assert_eq!(first.request.header("cookie"), Some(&b"sid=1; t=2"[..]));
        assert_eq!(
            (second.request.method.as_str(), second.request.header("authorization")),
            ("PUT", Some(&b"Basic dTpw"[..]))
        );
        assert_eq!((third.request.method.as_str(), third.request.url().as_str()), ("GET", "http://z/p?q=1"));
    }

    #[test]
    fn bad_commands_say_why() {
        let (records, problems) =
            all(Format::Curl, b"curl\ncurl -X\nwget x\ncurl ftp://x\ncurl http://ok\ncurl 'open".to_vec());
        assert_eq!((records.len(), problems.len()), (1, 5), "{problems:?}");
    }
}
