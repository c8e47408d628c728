//! Requests that were asked for before: what a script asks for again in the same words is not built again.
//!
//! The words are written into one buffer (the URL, the body, the params by name and value), which is then looked up as a whole: a
//! request that is known costs neither an allocation nor a header list.

use std::rc::Rc;

use crate::host::Host;
use crate::vm::{JsResult, Value};

use super::state::BuiltRequest;

/// A request's words; `None` where they do not say all of it.
pub(super) type Words = Option<Vec<u8>>;

/// The request that was asked for in the same words before, or the words.
pub(super) fn look_up(host: &Host, asked: &Asked<'_, '_>) -> JsResult<Result<BuiltRequest, Words>> {
    let requests = &host.shared.requests;
    let mut words = std::mem::take(&mut requests.borrow_mut().words);
    words.clear();
    let is_whole = asked.write_words(host, &mut words)?;
    if !is_whole || words.len() > WORDS_BYTES_MAX {
        requests.borrow_mut().words = words;
        return Ok(Err(None));
    }
    let found = requests.borrow().find(&words);
    Ok(match found {
        Some(prepared) => {
            requests.borrow_mut().words = words;
            Ok(prepared)
        }
        None => Err(Some(words)),
    })
}

/// Keeps a request under the words that it was looked up by.
pub(super) fn keep(host: &Host, words: Words, prepared: &BuiltRequest) {
    if let Some(words) = words {
        let mut requests = host.shared.requests.borrow_mut();
        requests.keep(&words, prepared);
        requests.words = words;
    }
}

/// A request as the script asked for it.
pub(super) struct Asked<'a, 'js> {
    pub(super) method: &'a str,
    pub(super) url: Value<'js>,
    pub(super) body: Value<'js>,
    pub(super) params: Value<'js>,
}

impl Asked<'_, '_> {
    /// Writes all that the request depends on; false where it depends on something that has no words, such as a jar object.
    fn write_words(&self, host: &Host, words: &mut Vec<u8>) -> JsResult<bool> {
        let scenario = host.scenario.borrow();
        // The known request holds its scenario's name, so that no other can have this address.
        let scenario = scenario.as_ref().map_or(0, |scenario| Rc::as_ptr(&scenario.name).addr());
        words.extend(scenario.to_ne_bytes());
        write_bytes(self.method.as_bytes(), words);
        if !self.url.is_string() || !host.jar.borrow().write_words(words) {
            return Ok(false);
        }
        write_value(&self.url, words)?;
        if !write_flat(&self.body, words)? {
            return Ok(false);
        }
        if !self.params.is_plain_object() {
            return Ok(self.params.is_nullish());
        }
        for key in self.params.keys()? {
            let name = key.borrow_text();
            if matches!(&*name, "jar" | "responseCallback") {
                return Ok(false);
            }
            write_bytes(name.as_bytes(), words);
            if !write_flat(&self.params.get_key(&key)?, words)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// Writes a plain value, or an object of plain values; false for anything else.
fn write_flat(value: &Value<'_>, words: &mut Vec<u8>) -> JsResult<bool> {
    if !value.is_plain_object() {
        return write_value(value, words);
    }
    words.push(b'{');
    for key in value.keys()? {
        write_bytes(key.borrow_text().as_bytes(), words);
        if !write_value(&value.get_key(&key)?, words)? {
            return Ok(false);
        }
    }
    words.push(b'}');
    Ok(true)
}

fn write_value(value: &Value<'_>, words: &mut Vec<u8>) -> JsResult<bool> {
    if value.is_object() {
        return Ok(false);
    }
    // A number and the text of it are not the same: a time-out is one, a header the other.
    words.push(if value.is_string() { b's' } else { b'v' });
    write_bytes(value.to_text()?.as_bytes(), words);
    Ok(true)
}

fn write_bytes(bytes: &[u8], words: &mut Vec<u8>) {
    words.extend((bytes.len() as u32).to_ne_bytes());
    words.extend(bytes);
}

/// Most bytes of words of one: larger bodies are sent as they come.
const WORDS_BYTES_MAX: usize = 64 << 10;
