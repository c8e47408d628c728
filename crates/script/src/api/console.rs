//! `console`: k6's five methods, and how it writes values.

use crate::console::Level;
use crate::host::Host;
use crate::vm::{Call, Ctx, Fun, JsResult, Value};

/// Makes `console` a global.
pub(super) fn install(ctx: Ctx<'_>) -> JsResult<()> {
    let console = ctx.object();
    ctx.set_functions(&console, METHODS)?;
    ctx.global().set("console", console)
}

const METHODS: &[Fun] = &[
    Fun::new(c"log", 1, |call: &Call<'_>| say(call, Level::Info)),
    Fun::new(c"info", 1, |call: &Call<'_>| say(call, Level::Info)),
    Fun::new(c"debug", 1, |call: &Call<'_>| say(call, Level::Debug)),
    Fun::new(c"warn", 1, |call: &Call<'_>| say(call, Level::Warning)),
    Fun::new(c"error", 1, |call: &Call<'_>| say(call, Level::Error)),
];

fn say<'js>(call: &Call<'js>, level: Level) -> JsResult<Value<'js>> {
    let mut text = String::new();
    for (idx, value) in call.rest(0).iter().enumerate() {
        if idx > 0 {
            text.push(' ');
        }
        Writer { text: &mut text, open: Vec::new() }.top(value)?;
    }
    Host::of(call.ctx()).shared.console.line(level, &text, "console");
    Ok(call.ctx().undefined())
}

/// Writes one value.
struct Writer<'a, 'js> {
    text: &'a mut String,
    /// Objects that are being written, to find cycles.
    open: Vec<Value<'js>>,
}

impl<'js> Writer<'_, 'js> {
    /// A single value: strings are not quoted.
    fn top(&mut self, value: &Value<'js>) -> JsResult<()> {
        if value.is_object() && !value.is_error() && !value.is_function() {
            return self.object(value);
        }
        if value.is_function() {
            self.text.push_str("[object Function]");
            return Ok(());
        }
        self.text.push_str(&plain(value)?);
        Ok(())
    }

    /// A value inside of another one.
    fn member(&mut self, value: &Value<'js>) -> JsResult<()> {
        if value.is_nullish() {
            self.text.push_str("null");
        } else if value.is_string() || value.is_symbol() {
            self.text.push_str(&serde_json::Value::from(plain(value)?).to_string());
        } else {
            return self.top(value);
        }
        Ok(())
    }

    fn object(&mut self, value: &Value<'js>) -> JsResult<()> {
        if value.is_date() {
            let text = value.to_json()?.unwrap_or_else(|| "null".to_owned());
            self.text.push_str(&text);
            return Ok(());
        }
        if let Some(bytes) = value.bytes() {
            return self.buffer(value, &bytes);
        }
        if self.open.iter().any(|open| value.is_same(open)) || self.open.len() >= DEPTH_MAX {
            self.text.push_str("[Circular]");
            return Ok(());
        }
        self.open.push(value.clone());
        let result = if value.is_array() { self.array(value) } else { self.members(value) };
        self.open.pop();
        result
    }

    fn array(&mut self, value: &Value<'js>) -> JsResult<()> {
        let elements = value.elements()?;
        if elements.is_empty() {
            self.text.push_str("[]");
            return Ok(());
        }
        self.text.push_str("[ ");
        for (idx, element) in elements.iter().enumerate() {
            self.text.push_str(if idx > 0 { ", " } else { "" });
            self.member(element)?;
        }
        self.text.push_str(" ]");
        Ok(())
    }

    fn members(&mut self, value: &Value<'js>) -> JsResult<()> {
        let shown = match value.get("toJSON")? {
            method if method.is_function() => method.call(value, &[])?,
            _ => value.clone(),
        };
        let keys = if shown.is_object() { shown.keys()? } else { Vec::new() };
        if keys.is_empty() {
            self.text.push_str("{}");
            return Ok(());
        }
        self.text.push_str("{ ");
        for (idx, key) in keys.iter().enumerate() {
            self.text.push_str(if idx > 0 { ", " } else { "" });
            self.text.push_str(&key.text());
            self.text.push_str(": ");
            self.member(&shown.get_key(key)?)?;
        }
        self.text.push_str(" }");
        Ok(())
    }

    fn buffer(&mut self, value: &Value<'js>, bytes: &[u8]) -> JsResult<()> {
        if value.get("length")?.is_undefined() {
            let hex: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            let (hex, len) = (hex.join(" "), bytes.len());
            self.text.push_str(&format!("ArrayBuffer {{ [Uint8Contents]: <{hex}>, byteLength: {len} }}"));
            return Ok(());
        }
        let name = value.get("constructor")?.get("name")?.to_string()?;
        self.text.push_str(&format!("{name}({}) ", value.length()?));
        self.array(value)
    }
}

/// As a string; of a symbol, which is none, what it stands for.
fn plain(value: &Value<'_>) -> JsResult<String> {
    if value.is_symbol() { value.get("description")?.to_string() } else { value.to_string() }
}

/// Deeper objects are not written.
const DEPTH_MAX: usize = 16;
