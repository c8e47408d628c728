//! The pairs of `Cookie` and `Set-Cookie` fields (RFC 6265 4.1, 4.2, 5.2).
//!
//! Never: what a cookie's attributes mean; a jar decides that.

/// Names and values of a `Cookie` field, without the blanks around them.
pub fn cookie_pairs(field: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    field.split(|byte| *byte == b';').filter_map(pair)
}

/// Name and value of a `Set-Cookie` field.
pub fn set_cookie_pair(field: &[u8]) -> Option<(&[u8], &[u8])> {
    field.split(|byte| *byte == b';').next().and_then(pair)
}

fn pair(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let at = text.iter().position(|byte| *byte == b'=')?;
    Some((text[..at].trim_ascii(), text[at + 1..].trim_ascii()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_split_at_the_first_equals_sign() {
        let pairs = |text: &'static str| cookie_pairs(text.as_bytes()).collect::<Vec<_>>();
        assert_eq!(pairs("a=1; b = x=y ;flag; c="), [(&b"a"[..], &b"1"[..]), (b"b", b"x=y"), (b"c", b"")]);
        assert_eq!(pairs(""), []);
        assert_eq!(set_cookie_pair(b"sid=abc%3D; Path=/"), Some((&b"sid"[..], &b"abc%3D"[..])));
        assert_eq!(set_cookie_pair(b"broken; Path=/"), None);
    }
}
