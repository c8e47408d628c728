//! The fields of forms: `a=1&b=2`, and the parts of multipart bodies ([RFC 7578]).
//!
//! [RFC 7578]: https://www.rfc-editor.org/rfc/rfc7578

use std::ops::Range;

use memchr::memmem;

use crate::Request;

/// A part of a multipart body: its name, and where its value is.
pub(crate) struct Part {
    pub(crate) name: String,
    pub(crate) value: Range<usize>,
}

/// What is between the value of a part and the next part.
pub(crate) fn boundary(content_type: &[u8]) -> Option<Vec<u8>> {
    let text = std::str::from_utf8(content_type).ok()?;
    let lower = text.to_ascii_lowercase();
    let at = lower.starts_with("multipart/").then(|| lower.find("boundary="))?? + "boundary=".len();
    let boundary = text[at..].split(';').next()?.trim().trim_matches('"');
    (!boundary.is_empty()).then(|| format!("\r\n--{boundary}").into_bytes())
}

/// The parts of a body, in order.
pub(crate) fn parts<'b>(body: &'b [u8], boundary: &'b [u8]) -> impl Iterator<Item = Part> + 'b {
    let mut at = 0;
    std::iter::from_fn(move || {
        let head_end = at + memmem::find(&body[at..], b"\r\n\r\n")? + 4;
        let name = part_name(&body[at..head_end]).unwrap_or_default();
        let end = memmem::find(&body[head_end..], boundary).map_or(body.len(), |end| head_end + end);
        at = end;
        Some(Part { name, value: head_end..end })
    })
}

/// The name of a part, of the lines before its value.
fn part_name(head: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(head);
    let (_, behind) = text.rsplit_once(" name=")?;
    let name = match behind.strip_prefix('"') {
        Some(quoted) => quoted.split('"').next(),
        None => behind.split([';', '\r']).next(),
    };
    Some(name?.trim().to_owned())
}

/// Names and values of a request's form, of either kind.
pub(crate) fn each_field(request: &Request, give: &mut dyn FnMut(&str, &[u8])) {
    match boundary(request.header("content-type").unwrap_or_default()) {
        Some(boundary) => {
            parts(&request.body, &boundary).for_each(|part| give(&part.name, &request.body[part.value]));
        }
        None => form_urlencoded::parse(&request.body).for_each(|(name, value)| give(&name, value.as_bytes())),
    }
}

/// Sets the fields of that name in a request's form, where it has any.
pub(crate) fn set_field(request: &mut Request, name: &str, value: &str) {
    let body = std::mem::take(&mut request.body);
    let Some(boundary) = boundary(request.header("content-type").unwrap_or_default()) else {
        request.body = with_pair(&body, name, value).unwrap_or(body);
        return;
    };
    let mut from = 0;
    for part in parts(&body, &boundary).filter(|part| part.name == name) {
        request.body.extend_from_slice(&body[from..part.value.start]);
        request.body.extend_from_slice(value.as_bytes());
        from = part.value.end;
    }
    request.body.extend_from_slice(&body[from..]);
}

/// The form with that field set; `None` where it has none.
fn with_pair(body: &[u8], name: &str, value: &str) -> Option<Vec<u8>> {
    let text = std::str::from_utf8(body).ok()?;
    let mut is_set = false;
    let pairs = text.split('&').map(|pair| {
        let (own, _) = pair.split_once('=')?;
        let (own_plain, _) = form_urlencoded::parse(own.as_bytes()).next()?;
        (own_plain == name)
            .then(|| {
                is_set = true;
                format!("{own}={}", form_urlencoded::byte_serialize(value.as_bytes()).collect::<String>())
            })
            .or_else(|| Some(pair.to_owned()))
    });
    let pairs: Vec<String> =
        pairs.zip(text.split('&')).map(|(pair, as_is)| pair.unwrap_or_else(|| as_is.to_owned())).collect();
    let joined = pairs.join("&");
    is_set.then(|| joined.into_bytes())
}
