//! Reads header blocks, and recognises the one that comes again.
//!
//! A block that says nothing of the dynamic table means the same each time; the last such block is remembered. Servers that ask for
//! each field to be inserted with every response (nginx) are no exception, once the table is full of what they insert.

use super::Error;
use super::hpack::{Decoder, Traits};
use super::limits::CACHED_BLOCK_BYTES_MAX;
use crate::compression::Scratch;
use crate::message::{Head, HeadText, HeadWanted};

/// Recognises a header block that equals the last one, and lends space to decode the others. One for each event loop.
#[derive(Debug, Default)]
pub struct HeadCache {
    /// The remembered block; empty: none.
    block: Vec<u8>,
    /// Its number among all that were remembered.
    block_id: u64,
    /// Sizes of the fields that it inserts into the dynamic table.
    inserted_bytes: usize,
    head: Head,
    text: HeadText,
    has_text: bool,
    scratch: Scratch,
}

impl HeadCache {
    /// The block that was read last.
    pub(super) fn text(&self) -> &HeadText {
        &self.text
    }

    /// Reads a whole block.
    pub(super) fn read(
        &mut self,
        decoder: &mut Decoder,
        block: &[u8],
        wanted: HeadWanted,
    ) -> Result<Head, Error> {
        if self.recognises(decoder, block, wanted) {
            return Ok(self.head);
        }
        let mut head = Head::default();
        let Self { text, scratch, .. } = self;
        text.begin(b"HTTP/2\r\n", wanted);
        let traits = decoder.decode(block, scratch, &mut |found| text.note(&mut head, found));
        text.end();
        let Ok(Traits { uses_table: false, inserted_bytes }) = traits else {
            self.block.clear();
            decoder.forget_repeated();
            return traits.map(|_| head);
        };
        self.remember(block, inserted_bytes);
        (self.head, self.has_text) = (head, wanted == HeadWanted::Text);
        if inserted_bytes > 0 {
            decoder.note_inserting(self.block_id, inserted_bytes);
        }
        Ok(head)
    }

    fn remember(&mut self, block: &[u8], inserted_bytes: usize) {
        if block == self.block && !block.is_empty() {
            return;
        }
        self.block.clear();
        if block.len() <= CACHED_BLOCK_BYTES_MAX {
            self.block.extend_from_slice(block);
        }
        self.block_id += 1;
        self.inserted_bytes = inserted_bytes;
    }

    fn recognises(&self, decoder: &Decoder, block: &[u8], wanted: HeadWanted) -> bool {
        block == self.block
            && !block.is_empty()
            && (self.inserted_bytes == 0 || decoder.is_unmoved_by(self.block_id))
            && (self.has_text || wanted == HeadWanted::Meaning)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A literal field that is inserted (RFC 7541 6.2.1), name and value as they are.
    fn inserted(name: &str, value: &str) -> Vec<u8> {
        let mut block = vec![0x40];
        for text in [name, value] {
            block.push(text.len() as u8);
            block.extend_from_slice(text.as_bytes());
        }
        block
    }

    /// All entries of the dynamic table, the newest first.
    fn entries(decoder: &mut Decoder) -> Vec<String> {
        let entry = |index: u8| {
            let mut cache = HeadCache::default();
            cache.read(decoder, &[0x80 | index], HeadWanted::Text).ok()?;
            Some(String::from_utf8_lossy(cache.text().lines()).into_owned())
        };
        (62..127).map_while(entry).collect()
    }

    #[test]
    fn a_table_full_of_a_repeated_block_is_what_reading_it_again_would_make() {
        let long = "v".repeat(90);
        let blocks = [
            [inserted("a", "1"), inserted("bb", "22"), inserted("c", &long)].concat(),
            [inserted("d", "1"), inserted("e", &long)].concat(),
        ];
        for capacity in [0_u8, 30] {
            let mut cache = HeadCache::default();
            let (mut cached, mut plain) = (Decoder::new(), Decoder::new());
            for decoder in [&mut cached, &mut plain] {
                HeadCache::default().read(decoder, &[0x20 | capacity], HeadWanted::Meaning).unwrap();
            }
            for turn in 0..200 {
                let block = &blocks[turn / 60 % 2];
                let head = cache.read(&mut cached, block, HeadWanted::Meaning).unwrap();
                let expected = HeadCache::default().read(&mut plain, block, HeadWanted::Meaning).unwrap();
                assert_eq!(head.bytes, expected.bytes, "turn {turn}");
                if turn % 60 == 59 {
                    assert!(cache.recognises(&cached, block, HeadWanted::Meaning), "turn {turn}");
                    assert_eq!(entries(&mut cached), entries(&mut plain), "turn {turn}");
                    cached.forget_repeated();
                }
            }
        }
    }

    #[test]
    fn a_repeated_block_is_recognised_only_once_the_table_is_full_of_it() {
        let block = inserted("server", &"s".repeat(62));
        let (mut cache, mut decoder) = (HeadCache::default(), Decoder::new());
        let mut recognised = |decoder: &mut Decoder| {
            let is_known = cache.recognises(decoder, &block, HeadWanted::Meaning);
            cache.read(decoder, &block, HeadWanted::Meaning).unwrap();
            is_known
        };
        // The table holds 40 entries of 100 bytes.
        let known = (0..60).filter(|_| recognised(&mut decoder)).count();
        assert_eq!(known, 60 - 41);
        assert!(!recognised(&mut Decoder::new()), "another connection has another table");
        decoder.forget_repeated();
        assert!(!recognised(&mut decoder));
    }
}
