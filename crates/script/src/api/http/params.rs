//! The `params` of a request, and which responses are expected.

use std::rc::Rc;
use std::time::Duration;

use squall_plan::HttpVersion;

use crate::api::{string_pairs, tag_pairs};
use crate::host::Host;
use crate::vm::{Call, Ctx, JsResult, Thrown, Value};

use super::cookies::JarObject;
use super::state::{Callback, RequestParams, ResponseType};

/// Why params cannot be used.
#[derive(Debug)]
pub(crate) enum Flaw {
    /// An exception is pending.
    Thrown(Thrown),
    /// What k6 refuses: the request fails, and the iteration goes on.
    Bad(String),
}

impl From<Thrown> for Flaw {
    fn from(thrown: Thrown) -> Self {
        Self::Thrown(thrown)
    }
}

impl Flaw {
    /// As an exception, where nothing else is made of it.
    pub(crate) fn thrown(self, ctx: Ctx<'_>) -> Thrown {
        match self {
            Self::Thrown(thrown) => thrown,
            Self::Bad(text) => ctx.throw_error(&text),
        }
    }
}

type Checked<T> = Result<T, Flaw>;

impl RequestParams {
    /// Reads a params object.
    pub(super) fn read(object: &Value<'_>) -> Checked<Self> {
        let mut params = Self::default();
        if !object.is_object() {
            return Ok(params);
        }
        for key in object.keys()? {
            let value = object.get_key(&key)?;
            if !value.is_nullish() || key.text() == "responseCallback" {
                params.read_one(&key.text(), &value)?;
            }
        }
        Ok(params)
    }

    fn read_one(&mut self, name: &str, value: &Value<'_>) -> Checked<()> {
        match name {
            "headers" => self.headers = string_pairs(value)?,
            "tags" => self.tags = tag_pairs(value)?.map_err(Flaw::Bad)?,
            "timeout" => self.timeout = Some(timeout(value)?),
            "cookies" => self.cookies = cookies(value)?,
            "jar" => self.jar = value.opaque::<JarObject>().and_then(JarObject::jar),
            "redirects" => self.redirects = Some(value.to_number()?.max(0.0) as u32),
            "responseType" => self.response_type = Some(response_type(value)?),
            "responseCallback" => self.callback = Some(callback(value).map_err(bad)?),
            "auth" => self.auth = Some(auth(value)?),
            "compression" => {
                let text = value.to_string()?;
                self.compression = text.split(',').map(|part| part.trim().to_owned()).collect();
            }
            "http" => self.http = Some(http_version(value)?),
            "throw" => self.throws = Some(value.is_truthy()),
            _ => {}
        }
        Ok(())
    }
}

/// What k6 does not know it passes over, and so do we; NTLM it knows.
fn auth(value: &Value<'_>) -> JsResult<String> {
    let auth = value.to_string()?;
    if auth == "ntlm" {
        let problem = "`auth: 'ntlm'` is not supported: use 'basic' or 'digest'";
        return Err(value.ctx().throw_error(problem));
    }
    Ok(auth)
}

fn http_version(value: &Value<'_>) -> JsResult<HttpVersion> {
    let text = value.to_text()?;
    crate::options::http_version(&text).ok_or_else(|| {
        let problem = format!("invalid `http: '{}'` in the params: {}", &*text, crate::options::HTTP_HELP);
        value.ctx().throw_error(&problem)
    })
}

/// A number of milliseconds, or a duration as text.
fn timeout(value: &Value<'_>) -> Checked<Duration> {
    let parsed = match value.as_number() {
        Some(millis) => crate::options::milliseconds(millis),
        None => crate::options::duration(&value.to_text()?),
    };
    parsed.ok_or_else(|| bad("invalid timeout value: write milliseconds, or a text like \"10s\""))
}

fn cookies(object: &Value<'_>) -> JsResult<Vec<(String, String, bool)>> {
    let mut cookies = Vec::new();
    for key in if object.is_object() { object.keys()? } else { Vec::new() } {
        let value = object.get_key(&key)?;
        if value.is_nullish() {
            continue;
        }
        cookies.push(if value.is_object() && !value.is_array() {
            let text = value.get("value")?;
            let text = if text.is_undefined() { String::new() } else { text.to_string()? };
            (key.text(), text, value.get("replace")?.is_truthy())
        } else {
            (key.text(), value.to_string()?, false)
        });
    }
    Ok(cookies)
}

fn response_type(value: &Value<'_>) -> Checked<ResponseType> {
    match value.as_text().as_deref() {
        Some("text") => Ok(ResponseType::Text),
        Some("binary") => Ok(ResponseType::Binary),
        Some("none") => Ok(ResponseType::None),
        _ => Err(bad("invalid responseType: use \"text\", \"binary\" or \"none\"")),
    }
}

/// Reads what `expectedStatuses` made, or null.
fn callback(value: &Value<'_>) -> Result<Callback, &'static str> {
    if value.is_nullish() {
        return Ok(Callback::Off);
    }
    value.opaque::<Callback>().cloned().ok_or("unsupported responseCallback: use http.expectedStatuses()")
}

fn bad(text: &str) -> Flaw {
    Flaw::Bad(text.to_owned())
}

/// `http.setResponseCallback(callback | null)`.
pub(super) fn set_response_callback<'js>(call: &Call<'js>) -> JsResult<Value<'js>> {
    let callback = callback(&call.arg(0)).map_err(|text| call.ctx().throw_type(text))?;
    *Host::of(call.ctx()).http.callback.borrow_mut() = callback;
    Ok(call.ctx().undefined())
}

/// `http.expectedStatuses(200, {min: 300, max: 399})`.
pub(super) fn expected_statuses<'js>(call: &Call<'js>) -> JsResult<Value<'js>> {
    let ctx = call.ctx();
    let ranges = call.rest(0).iter().map(|value| range(ctx, value)).collect::<JsResult<Rc<[_]>>>()?;
    if ranges.is_empty() {
        return Err(ctx.throw_error("no arguments"));
    }
    ctx.native(&ctx.object(), Box::new(Callback::Statuses(ranges)))
}

fn range(ctx: Ctx<'_>, value: &Value<'_>) -> JsResult<(u16, u16)> {
    if let Some(status) = value.as_number() {
        return Ok((status as u16, status as u16));
    }
    let bound = |name| Ok(value.get(name)?.as_number());
    match value.is_object().then(|| Ok((bound("min")?, bound("max")?))).transpose()? {
        Some((Some(min), Some(max))) => Ok((min as u16, max as u16)),
        _ => Err(ctx.throw_error("expectedStatuses takes status codes and objects with `min` and `max`")),
    }
}
