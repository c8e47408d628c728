//! Splits a `multipart/form-data` body (RFC 7578) that is wholly in memory.

use memchr::memmem;

use crate::{limits::PART_COUNT_MAX, reply::Refusal};

/// One field of a form.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Part<'a> {
    pub(crate) name: String,
    /// Present when the field is a file.
    pub(crate) file_name: Option<String>,
    pub(crate) content_type: Option<String>,
    pub(crate) bytes: &'a [u8],
}

/// The boundary, when `content_type` is that of a multipart form.
pub(crate) fn boundary(content_type: &str) -> Option<String> {
    let (kind, parameters) = content_type.split_once(';')?;
    kind.trim().eq_ignore_ascii_case("multipart/form-data").then(|| parameter(parameters, "boundary"))?
}

/// All parts in order.
pub(crate) fn split<'a>(body: &'a [u8], boundary: &str) -> Result<Vec<Part<'a>>, Refusal> {
    let delimiter = format!("--{boundary}");
    let start = memmem::find(body, delimiter.as_bytes()).ok_or_else(|| refuse("has no boundary"))?;
    let mut rest = &body[start + delimiter.len()..];
    let next = format!("\r\n{delimiter}");
    let mut parts = Vec::new();
    while !rest.starts_with(b"--") {
        let content = rest.strip_prefix(b"\r\n").ok_or_else(|| refuse("has a bad boundary"))?;
        let end = memmem::find(content, next.as_bytes()).ok_or_else(|| refuse("ends within a part"))?;
        parts.push(parse(&content[..end])?);
        if parts.len() > PART_COUNT_MAX {
            return Err(refuse("has too many parts"));
        }
        rest = &content[end + next.len()..];
    }
    Ok(parts)
}

fn parse(part: &[u8]) -> Result<Part<'_>, Refusal> {
    let head_end = memmem::find(part, b"\r\n\r\n").ok_or_else(|| refuse("has a part without a head"))?;
    let head = std::str::from_utf8(&part[..head_end]).map_err(|_| refuse("has a head that is not UTF-8"))?;
    let disposition =
        header(head, "content-disposition").ok_or_else(|| refuse("has a part without a name"))?;
    Ok(Part {
        name: parameter(disposition, "name").ok_or_else(|| refuse("has a part without a name"))?,
        file_name: parameter(disposition, "filename"),
        content_type: header(head, "content-type").map(str::to_owned),
        bytes: &part[head_end + 4..],
    })
}

fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    let mut fields = head.split("\r\n").filter_map(|line| line.split_once(':'));
    fields.find(|(key, _)| key.trim().eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
}

/// The value of `name=value` or `name="value"` among parameters that semicolons part.
fn parameter(text: &str, name: &str) -> Option<String> {
    let mut rest = text;
    loop {
        let (key, after) = rest.split_once('=')?;
        let is_ours = key.rsplit(';').next().is_some_and(|key| key.trim().eq_ignore_ascii_case(name));
        let (value, after) = match after.strip_prefix('"') {
            Some(quoted) => quoted.split_once('"')?,
            None => after.split_once(';').map_or((after, ""), |(value, _)| (value, &after[value.len()..])),
        };
        if is_ours {
            return Some(value.trim().to_owned());
        }
        rest = after;
    }
}

fn refuse(reason: &str) -> Refusal {
    Refusal::new(format!("the multipart body {reason}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_and_files_are_distinguished() {
        let body = b"preamble\r\n--XX\r\nContent-Disposition: form-data; name=\"a; b\"\r\n\r\n1\r\n2\r\n--XX\r\n\
            content-disposition: form-data; name=f; filename=\"x.bin\"\r\nContent-Type: image/png\r\n\r\n\xff\r\n--XX--\r\n";
        let parts = split(body, "XX").unwrap();
        let field = Part { name: "a; b".into(), file_name: None, content_type: None, bytes: b"1\r\n2" };
        let file = Part {
            name: "f".into(),
            file_name: Some("x.bin".into()),
            content_type: Some("image/png".into()),
            bytes: b"\xff",
        };
        assert_eq!(parts, [field, file]);
    }

    #[test]
    fn broken_bodies_are_refused() {
        let bodies: [&[u8]; 6] = [
            b"",
            b"--X",
            b"--X\r\n",
            b"--X\r\n\r\n--X--",
            b"--X\r\nA: b\r\n\r\nc\r\n--X--",
            b"--X\r\nContent-Disposition: form-data; name=\"a\r\n\r\nc\r\n--X--",
        ];
        for body in bodies {
            assert!(split(body, "X").is_err(), "{}", body.escape_ascii());
        }
    }

    #[test]
    fn boundary_is_found_in_the_content_type() {
        let check = |text, expected: Option<&str>| assert_eq!(boundary(text).as_deref(), expected, "{text}");
        check("multipart/form-data; boundary=abc", Some("abc"));
        check("Multipart/Form-Data; charset=utf-8; boundary=\"a b\"", Some("a b"));
        check("multipart/form-data", None);
        check("text/plain; boundary=abc", None);
    }
}
