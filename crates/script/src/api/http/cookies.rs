//! `CookieJar`: the user's own, and those that a script makes.

use std::cell::RefCell;
use std::rc::Rc;

use url::Url;

use crate::cookies::{Cookie, Jar, date_ms};
use crate::host::Host;
use crate::vm::{Call, Ctx, Fun, JsResult, Value};

/// What a script holds of a jar.
#[derive(Debug)]
pub(crate) struct JarObject(Option<Rc<RefCell<Jar>>>);

impl JarObject {
    /// The jar that a script made; `None`: the user's own.
    pub(crate) fn jar(&self) -> Option<Rc<RefCell<Jar>>> {
        self.0.clone()
    }

    fn with<T>(&self, ctx: Ctx<'_>, use_jar: impl FnOnce(&mut Jar) -> T) -> T {
        match &self.0 {
            Some(jar) => use_jar(&mut jar.borrow_mut()),
            None => use_jar(&mut Host::of(ctx).jar.borrow_mut()),
        }
    }
}

/// The class.
pub(super) fn class(ctx: Ctx<'_>) -> JsResult<Value<'_>> {
    let proto = Host::of(ctx).kept(ctx, "jar prototype", || prototype(ctx))?;
    ctx.constructor(
        &Fun::new(c"CookieJar", 0, |call: &Call<'_>| make(call.ctx(), Some(Rc::default()))),
        &proto,
    )
}

/// `http.cookieJar()`.
pub(super) fn jar_of_user<'js>(call: &Call<'js>) -> JsResult<Value<'js>> {
    make(call.ctx(), None)
}

fn make(ctx: Ctx<'_>, jar: Option<Rc<RefCell<Jar>>>) -> JsResult<Value<'_>> {
    let proto = Host::of(ctx).kept(ctx, "jar prototype", || prototype(ctx))?;
    ctx.native(&proto, Box::new(JarObject(jar)))
}

fn prototype(ctx: Ctx<'_>) -> JsResult<Value<'_>> {
    let proto = ctx.object();
    ctx.set_functions(
        &proto,
        &[
            Fun::new(c"cookiesForURL", 1, cookies_for_url),
            Fun::new(c"set", 4, set),
            Fun::new(c"clear", 1, clear),
            Fun::new(c"delete", 2, delete),
        ],
    )?;
    Ok(proto)
}

fn with<'js, T>(call: &Call<'js>, use_jar: impl FnOnce(&mut Jar, &Url) -> T) -> JsResult<T> {
    let (ctx, this) = (call.ctx(), call.this());
    let Some(jar) = this.opaque::<JarObject>() else {
        return Err(ctx.throw_type("this is not a CookieJar"));
    };
    let text = call.arg(0).to_string()?;
    let url =
        Url::parse(&text).map_err(|error| ctx.throw_error(&format!("invalid URL \"{text}\": {error}")))?;
    Ok(jar.with(ctx, |jar| use_jar(jar, &url)))
}

fn cookies_for_url<'js>(call: &Call<'js>) -> JsResult<Value<'js>> {
    let ctx = call.ctx();
    let owned = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
    let pairs: Vec<_> = with(call, |jar, url| jar.for_url(url).into_iter().map(owned).collect())?;
    let object = ctx.object();
    for (name, value) in pairs {
        let known = object.get(&name)?;
        let list = if known.is_array() { known } else { ctx.array() };
        list.set_idx(list.length()?, ctx.string(&value))?;
        object.set(&name, list)?;
    }
    Ok(object)
}

fn set<'js>(call: &Call<'js>) -> JsResult<Value<'js>> {
    let (ctx, options) = (call.ctx(), call.arg(3));
    let mut cookie = Cookie::default();
    cookie.name = call.arg(1).to_string()?;
    cookie.value = call.arg(2).to_string()?;
    for key in if options.is_object() { options.keys()? } else { Vec::new() } {
        let value = options.get_key(&key)?;
        match key.text().as_str() {
            "domain" => cookie.domain = value.to_string()?,
            "path" => cookie.path = value.to_string()?,
            "secure" => cookie.secure = value.is_truthy(),
            "http_only" => cookie.http_only = value.is_truthy(),
            "max_age" => cookie.max_age = value.to_number()? as i64,
            "expires" => {
                let text = value.to_string()?;
                let parsed = if text.is_empty() { None } else { date_ms(&text) };
                let problem = || {
                    ctx.throw_error(&format!("unable to parse \"expires\" date string \"{text}\": write it like \"Mon, 02 Jan 2006 15:04:05 MST\""))
                };
                cookie.expires_ms = Some(parsed.ok_or_else(problem)?);
            }
            _ => {}
        }
    }
    with(call, |jar, url| jar.set(url, cookie))?;
    Ok(ctx.bool(true))
}

fn clear<'js>(call: &Call<'js>) -> JsResult<Value<'js>> {
    with(call, |jar, url| jar.remove(url, None))?;
    Ok(call.ctx().undefined())
}

fn delete<'js>(call: &Call<'js>) -> JsResult<Value<'js>> {
    let name = call.arg(1).to_string()?;
    with(call, |jar, url| jar.remove(url, Some(&name)))?;
    Ok(call.ctx().undefined())
}
