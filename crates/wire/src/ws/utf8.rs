//! UTF-8 checked piece by piece: text arrives in any number of frames and reads, which may end within a character.

/// What is left of a character whose end has not arrived.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Utf8 {
    bytes: [u8; 4],
    count: u8,
}

impl Utf8 {
    /// Checks the next bytes; false as soon as nothing that follows can make them valid.
    pub(super) fn push(&mut self, mut bytes: &[u8]) -> bool {
        while self.count > 0 && !bytes.is_empty() {
            self.bytes[usize::from(self.count)] = bytes[0];
            self.count += 1;
            bytes = &bytes[1..];
            match check(&self.bytes[..usize::from(self.count)]) {
                Some(0) => self.count = 0,
                Some(_) => {}
                None => return false,
            }
        }
        if self.count > 0 {
            return true;
        }
        let Some(rest) = check(bytes) else { return false };
        let rest = &bytes[bytes.len() - rest..];
        self.bytes[..rest.len()].copy_from_slice(rest);
        self.count = rest.len() as u8;
        true
    }

    /// Whether the text ends with a whole character; begins anew.
    pub(super) fn finish(&mut self) -> bool {
        std::mem::take(&mut self.count) == 0
    }
}

/// How many bytes at the end begin a character that is not whole; `None`: some are invalid.
fn check(bytes: &[u8]) -> Option<usize> {
    match std::str::from_utf8(bytes) {
        Ok(_) => Some(0),
        Err(error) => error.error_len().is_none().then(|| bytes.len() - error.valid_up_to()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_valid_or_not_wherever_it_is_cut() {
        let cases: [(&[u8], bool); 6] = [
            ("κόσμε 𐍈 x".as_bytes(), true),
            (b"\xed\xa0\x80", false),
            (b"\xf4\x90\x80\x80", false),
            (b"ab\xce", false),
            (b"\xc0\xaf", false),
            (b"", true),
        ];
        for (text, is_valid) in cases {
            for cut in 0..=text.len() {
                for second in cut..=text.len() {
                    let mut utf8 = Utf8::default();
                    let pieces = [&text[..cut], &text[cut..second], &text[second..]];
                    let found = pieces.iter().all(|piece| utf8.push(piece)) && utf8.finish();
                    assert_eq!(found, is_valid, "{text:?} cut at {cut} and {second}");
                }
            }
        }
    }
}
