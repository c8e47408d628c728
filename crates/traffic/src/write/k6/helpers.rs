//! The functions of a script: how it sends, and how it finds in a live response what replay finds at the same [`Locator`].

use serde_json::Value;

use crate::play::Locator;

/// The call that finds a value in the response `res`, and the functions that it needs.
pub(super) fn extraction(locator: &Locator) -> (String, &'static [&'static str]) {
    let quoted = |name: &str| Value::from(name).to_string();
    match locator {
        Locator::Cookie(name) => (format!("cookie(res, {})", quoted(name)), &[COOKIE]),
        Locator::CookieDecoded(name) => {
            (format!("decoded(cookie(res, {}))", quoted(name)), &[COOKIE, DECODED])
        }
        Locator::Header(name) => (format!("header(res, {})", quoted(name)), &[HEADER]),
        Locator::LocationParameter(name) => {
            (format!("locationParameter(res, {})", quoted(name)), &[LOCATION_PARAMETER, DECODED])
        }
        Locator::LocationSegment(nth) => (format!("locationSegment(res, {nth})"), &[LOCATION_SEGMENT]),
        Locator::Json(pointer) => (format!("json(res, {})", quoted(pointer)), &[JSON]),
        Locator::Input(name) => (format!("element(res, 'input', {}, 'value')", quoted(name)), &[ELEMENT]),
        Locator::Meta(name) => (format!("element(res, 'meta', {}, 'content')", quoted(name)), &[ELEMENT]),
        Locator::Named(name) => (format!("named(res, {})", quoted(name)), &[NAMED, LOOKS_RANDOM]),
        Locator::LinkParameter(name) => {
            (format!("linkParameter(res, {})", quoted(name)), &[LINK_PARAMETER, LOOKS_RANDOM, DECODED])
        }
    }
}

pub(super) const SEND: &str = "
// Cookies are among the headers, as recorded: k6's own jar would send them twice.
function send(method, url, body, headers, name) {
  const tags = name ? { name } : {};
  return http.request(method, url, body, { headers, tags, redirects: 0, jar: new http.CookieJar() });
}
";

/// A body that is no text: pieces of it, and texts that are put in between.
pub(super) const BYTES: &str = "function bytes(parts) {
  const arrays = parts.map((part) => new Uint8Array(typeof part === 'string' ? encoding.b64decode(encoding.b64encode(part)) : part));
  const all = new Uint8Array(arrays.reduce((length, array) => length + array.length, 0));
  let at = 0;
  for (const array of arrays) {
    all.set(array, at);
    at += array.length;
  }
  return all.buffer;
}
";

const COOKIE: &str = "function cookie(res, name) {
  const found = res.cookies[name];
  return found && found.length ? found[0].value : undefined;
}
";

const DECODED: &str = "function decoded(text) {
  try {
    return text === undefined ? undefined : decodeURIComponent(text);
  } catch (_) {
    return text;
  }
}
";

const HEADER: &str = "function header(res, name) {
  const key = Object.keys(res.headers).find((key) => key.toLowerCase() === name);
  return key && res.headers[key].replace(/^Bearer /, '');
}
";

// Behind `;` in the path, in the query, and in the fragment.
const LOCATION_PARAMETER: &str = r"function locationParameter(res, name) {
  const [, path, query, fragment] = /^([^?#]*)(?:\?([^#]*))?(?:#(.*))?$/.exec(res.headers.Location || '');
  const inPath = path.split('/').flatMap((segment) => segment.split(';').slice(1)).map((pair) => pair.split('='));
  const inForms = `${query || ''}&${fragment || ''}`.split('&').map((pair) => pair.split('='));
  const own = inPath.find(([key]) => key === name);
  const pair = own || inForms.find(([key]) => decoded(key) === name);
  if (!pair) return undefined;
  const value = pair.slice(1).join('=');
  return own ? value : decoded(value.replace(/\+/g, ' '));
}
";

const LOCATION_SEGMENT: &str = r"function locationSegment(res, nth) {
  const path = (res.headers.Location || '').split(/[?#]/)[0].replace(/^[^/]*:\/\/[^/]*/, '');
  return path.split('/').reverse()[nth] || undefined;
}
";

const JSON: &str = "function json(res, pointer) {
  let value;
  try {
    value = JSON.parse(res.body);
  } catch (_) {
    return undefined;
  }
  for (const name of pointer.split('/').slice(1)) {
    value = value === undefined || value === null ? undefined : value[name.replace(/~1/g, '/').replace(/~0/g, '~')];
  }
  return value === undefined || value === null ? undefined : String(value);
}
";

const ELEMENT: &str = "function element(res, tag, name, attribute) {
  const quoted = JSON.stringify(name);
  const selectors = ['name', 'id', 'property'].map((by) => `${tag}[${by}=${quoted}][${attribute}]`);
  return res.html().find(selectors.join(',')).first().attr(attribute);
}
";

const NAMED: &str = r#"function named(res, name) {
  const assignments = /([A-Za-z_$][\w$.-]*)\\?["']?[ \t]*[:=][ \t]*\\?["'`]((?:[^"'`\\<>\r\n]|\\u[0-9A-Fa-f]{4}|\\\/)+)/g;
  const elements = /<(?:[\w.-]+:)?([A-Za-z_][\w.-]*)(?:[ \t\r\n][^<>]*)?>([^<>]+)<\//g;
  const entities = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" };
  for (const pattern of [assignments, elements]) {
    for (let found; (found = pattern.exec(res.body)); ) {
      if (found[1] !== name) continue;
      const value = found[2]
        .replace(/\\u([0-9A-Fa-f]{4})/g, (_, code) => String.fromCharCode(parseInt(code, 16)))
        .replace(/\\\//g, '/')
        .replace(/&(amp|lt|gt|quot|apos);/g, (_, entity) => entities[entity])
        .replace(/&#(\d+);/g, (_, code) => String.fromCharCode(parseInt(code, 10)))
        .replace(/&#[xX]([0-9A-Fa-f]+);/g, (_, code) => String.fromCharCode(parseInt(code, 16)));
      if (looksRandom(value)) return value;
    }
  }
  return undefined;
}
"#;

const LINK_PARAMETER: &str = r#"function linkParameter(res, name) {
  const parameters = /(?:[?&]|&amp;)([A-Za-z_$][\w.$-]*)=([^&"'<>\s#;\\`)]+)/g;
  for (let found; (found = parameters.exec(res.body)); ) {
    const value = decoded(found[2]);
    if (found[1] === name && looksRandom(value)) return value;
  }
  return undefined;
}
"#;

/// As `squall_plan::secret::looks_random`: it distinguishes two places of the same name in a page.
const LOOKS_RANDOM: &str = r"function looksRandom(text) {
  const count = (pattern) => (text.match(pattern) || []).length;
  const digits = count(/\d/g);
  if (digits >= 13 && digits <= 19 && /^[\d -]+$/.test(text)) return true;
  if (!/^[!-~]+$/.test(text)) return false;
  const isMixedCase = count(/[A-Z]/g) > 2 && count(/[a-z]/g) > 2;
  return (text.length >= 8 && digits > 0 && /[A-Za-z]/.test(text)) || (text.length >= 16 && isMixedCase);
}
";
