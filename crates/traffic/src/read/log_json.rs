//! Access logs of JSON objects, one a line: field names say what is where.

use serde_json::Value;

use super::log_line::{Line, Var, header_name};
use super::time;

/// Where in an object things are.
#[derive(Debug, Clone, Default)]
pub(super) struct JsonFields {
    vars: Vec<(Var, String)>,
    /// An object with all header fields: texts, or lists of them.
    headers: Option<String>,
    /// Fields of the outermost object that begin so are header fields.
    header_prefix: Option<&'static str>,
    /// Something that is there when the request came over TLS.
    tls: Option<&'static str>,
}

impl JsonFields {
    /// Reads `ts=time,method=request.method,..`, or the name of a server. The bool says whether the time is that of the request.
    pub(super) fn parse(text: &str) -> Result<(Self, bool), String> {
        match text {
            "caddy" => {
                let (fields, logs_start) = Self::parse(CADDY)?;
                return Ok((Self { tls: Some("request.tls"), ..fields }, logs_start));
            }
            "traefik" => {
                let (fields, logs_start) = Self::parse(TRAEFIK)?;
                return Ok((Self { header_prefix: Some("request_"), ..fields }, logs_start));
            }
            _ => {}
        }
        let mut fields = Self::default();
        let mut logs_start = false;
        for pair in text.split(',').map(str::trim).filter(|pair| !pair.is_empty()) {
            let (name, path) = pair.split_once('=').ok_or_else(|| format!("`{pair}` has no `=`"))?;
            let (name, path) = (name.trim(), path.trim().to_owned());
            logs_start |= name == "start";
            match name {
                "headers" => fields.headers = Some(path),
                name => fields.vars.push((var(name)?, path)),
            }
        }
        let has = |wanted: Var| fields.vars.iter().any(|(var, _)| *var == wanted);
        match () {
            () if !has(Var::AnyTime) => Err("no field for the time: add ts=NAME or start=NAME".to_owned()),
            () if !has(Var::Target) && !has(Var::RequestLine) => {
                Err("no field for the URL: add url=NAME or request=NAME".to_owned())
            }
            () => Ok((fields, logs_start)),
        }
    }

    /// Reads a line.
    pub(super) fn read(&self, text: &str, line: &mut Line) -> Result<(), String> {
        let object: Value =
            serde_json::from_str(text).map_err(|error| format!("not a JSON object: {error}"))?;
        if !object.is_object() {
            return Err(format!("not a JSON object: `{}`", time::cut(text)));
        }
        if self.tls.is_some_and(|path| find(&object, path).is_some()) {
            line.set(&Var::Scheme, "https".to_owned())?;
        }
        for (var, path) in &self.vars {
            if let Some(value) = find(&object, path).filter(|value| !value.is_null()) {
                line.set(var, plain(value))?;
            }
        }
        if let Some(Value::Object(fields)) = self.headers.as_ref().and_then(|path| find(&object, path)) {
            for (name, value) in fields {
                set_header(line, name, value)?;
            }
        }
        let of_prefix = |name: &str| name.strip_prefix(self.header_prefix?).map(str::to_owned);
        for (name, value) in object.as_object().into_iter().flatten() {
            if let Some(name) = of_prefix(name) {
                set_header(line, &name, value)?;
            }
        }
        Ok(())
    }
}

fn set_header(line: &mut Line, name: &str, value: &Value) -> Result<(), String> {
    let values = value.as_array().map_or_else(|| std::slice::from_ref(value), Vec::as_slice);
    for value in values {
        line.set(&Var::Header(name.to_owned()), plain(value))?;
    }
    Ok(())
}

/// The value at `a.b.c`; names may have dots themselves.
fn find<'a>(value: &'a Value, path: &str) -> Option<&'a Value> {
    if let Some(found) = value.get(path) {
        return Some(found);
    }
    let mut dots = path.match_indices('.');
    dots.find_map(|(at, _)| find(value.get(&path[..at])?, &path[at + 1..]))
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn var(name: &str) -> Result<Var, String> {
    Ok(match name {
        "ts" | "start" => Var::AnyTime,
        "method" => Var::Method,
        "url" => Var::Target,
        "query" => Var::Query,
        "host" => Var::Host,
        "port" => Var::Port,
        "scheme" => Var::Scheme,
        "protocol" => Var::Protocol,
        "request" => Var::RequestLine,
        "status" => Var::Status,
        "bytes" => Var::Bytes,
        "duration" => Var::Seconds,
        "duration_ms" => Var::Millis,
        "duration_us" => Var::Micros,
        "duration_ns" => Var::Nanos,
        "client" => Var::Client,
        "client_port" => Var::ClientPort,
        "session" => Var::Session,
        "body" => Var::Body,
        "user_agent" | "referer" | "cookie" => Var::Header(header_name(name)),
        name => match name.strip_prefix("header.") {
            Some(header) => Var::Header(header.to_owned()),
            None => return Err(format!("no field `{name}`: there are {NAMES}, and header.NAME")),
        },
    })
}

const NAMES: &str = "ts, start, method, url, query, host, port, scheme, protocol, status, bytes, duration, duration_ms, duration_us, \
                     duration_ns, client, session, user_agent, referer, cookie, headers, body";

const CADDY: &str = "ts=ts,method=request.method,url=request.uri,host=request.host,protocol=request.proto,status=status,\
                     bytes=size,duration=duration,client=request.remote_ip,headers=request.headers";

const TRAEFIK: &str = "start=StartLocal,start=StartUTC,method=RequestMethod,url=RequestPath,host=RequestHost,scheme=RequestScheme,\
                       protocol=RequestProtocol,status=DownstreamStatus,bytes=DownstreamContentSize,duration_ns=Duration,\
                       client_port=ClientAddr";
