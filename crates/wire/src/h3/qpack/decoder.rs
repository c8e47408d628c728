//! Decodes field sections (RFC 9204 4.5), and keeps the dynamic table that the peer's encoder stream fills (RFC 9204 3.2, 4.3).

use super::static_table::entry;
use crate::compression::{CodingError, DynamicTable, ENTRY_OVERHEAD, Scratch, take, take_string};
use crate::h3::Error;
use crate::h3::error::{decompression, encoder_stream};
use crate::message::{Found, Meaning};

/// The decoder of one connection.
#[derive(Debug)]
pub(in crate::h3) struct Decoder {
    table: DynamicTable,
    table_bytes_max: usize,
    blocked_stream_count: u32,
    /// Entries that were ever inserted.
    insert_count: u64,
    /// Those of them that the peer knows were received.
    known_count: u64,
    /// An instruction that came in part.
    partial: Vec<u8>,
    scratch: Scratch,
}

/// What precedes the fields of a section (RFC 9204 4.5.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::h3) struct Prefix<'a> {
    /// Insertions that the section needs.
    pub(in crate::h3) insert_count: u64,
    base: u64,
    fields: &'a [u8],
}

impl Decoder {
    /// `table_bytes_max`: 0 for no dynamic table; at most 65,535.
    pub(in crate::h3) fn new(table_bytes_max: u32, blocked_stream_count: u32) -> Self {
        let table_bytes_max = table_bytes_max as usize;
        Self {
            table: DynamicTable::new(0, table_bytes_max),
            table_bytes_max,
            blocked_stream_count,
            insert_count: 0,
            known_count: 0,
            partial: Vec::new(),
            scratch: Scratch::default(),
        }
    }

    pub(in crate::h3) const fn has_table(&self) -> bool {
        self.table_bytes_max > 0
    }

    pub(in crate::h3) const fn blocked_stream_count(&self) -> u32 {
        self.blocked_stream_count
    }

    pub(in crate::h3) const fn insert_count(&self) -> u64 {
        self.insert_count
    }

    /// The peer learns from an acknowledgement that so many insertions were received (RFC 9204 2.1.4).
    pub(in crate::h3) fn note_known(&mut self, insert_count: u64) {
        self.known_count = self.known_count.max(insert_count);
    }

    /// How many insertions the peer must learn of; it learns of them now.
    pub(in crate::h3) fn take_unknown(&mut self) -> u64 {
        self.insert_count - std::mem::replace(&mut self.known_count, self.insert_count)
    }

    /// Reads bytes of the peer's encoder stream. Whether anything was inserted.
    pub(in crate::h3) fn insert(&mut self, input: &[u8]) -> Result<bool, Error> {
        let before = self.insert_count;
        if self.partial.is_empty() {
            let read_bytes = self.read_instructions(input)?;
            self.partial.extend_from_slice(&input[read_bytes..]);
        } else {
            let mut partial = std::mem::take(&mut self.partial);
            partial.extend_from_slice(input);
            let read_bytes = self.read_instructions(&partial)?;
            partial.drain(..read_bytes);
            self.partial = partial;
        }
        Ok(self.insert_count > before)
    }

    /// Reads whole instructions; how many bytes they have.
    fn read_instructions(&mut self, input: &[u8]) -> Result<usize, Error> {
        let mut scratch = std::mem::take(&mut self.scratch);
        let mut rest = input;
        let result = loop {
            let mut after = rest;
            if rest.is_empty() {
                break Ok(());
            }
            match self.read_instruction(&mut after, &mut scratch) {
                Ok(()) => rest = after,
                Err(CodingError::Incomplete) => break Ok(()),
                Err(CodingError::Invalid(text)) => break Err(encoder_stream(text)),
            }
        };
        self.scratch = scratch;
        result.map(|()| input.len() - rest.len())
    }

    fn read_instruction(&mut self, rest: &mut &[u8], scratch: &mut Scratch) -> Result<(), CodingError> {
        let Scratch { name: name_buffer, value: value_buffer } = scratch;
        let first = rest.first().copied().unwrap_or_default();
        match first {
            // RFC 9204 4.3.2.
            0x80.. => {
                let index = take(rest, 6)?;
                if first & 0x40 != 0 {
                    let (name, ..) = entry(index).ok_or(NO_STATIC_ENTRY)?;
                    let value = self.take_string(rest, 7, value_buffer)?;
                    return self.insert_entry(name, value);
                }
                // Inserting may evict the entry that lends its name.
                let (name, ..) = self.table.get(index).ok_or(NO_ENTRY)?;
                name_buffer.clear();
                name_buffer.extend_from_slice(name);
                let value = self.take_string(rest, 7, value_buffer)?;
                self.insert_entry(name_buffer, value)
            }
            // RFC 9204 4.3.3.
            0x40.. => {
                let name = self.take_string(rest, 5, name_buffer)?;
                let value = self.take_string(rest, 7, value_buffer)?;
                self.insert_entry(name, value)
            }
            // RFC 9204 4.3.1.
            0x20.. => {
                let capacity = take(rest, 5)?;
                if capacity > self.table_bytes_max {
                    return Err(CodingError::Invalid("table capacity above the announced limit"));
                }
                self.table.set_capacity(capacity);
                Ok(())
            }
            // RFC 9204 4.3.4.
            _ => {
                let index = take(rest, 5)?;
                let (name, value, _) = self.table.get(index).ok_or(NO_ENTRY)?;
                name_buffer.clear();
                value_buffer.clear();
                name_buffer.extend_from_slice(name);
                value_buffer.extend_from_slice(value);
                self.insert_entry(name_buffer, value_buffer)
            }
        }
    }

    /// Takes a string of an instruction. One that fits into no table is refused before its bytes are kept.
    fn take_string<'i: 'o, 'o>(
        &self,
        rest: &mut &'i [u8],
        prefix_bits: u32,
        buffer: &'o mut Vec<u8>,
    ) -> Result<&'o [u8], CodingError> {
        let bytes = take(&mut &**rest, prefix_bits)?;
        // No symbol of the Huffman code has more than 30 bits.
        if bytes > 4 * self.table_bytes_max {
            return Err(TOO_LARGE);
        }
        take_string(rest, prefix_bits, buffer)
    }

    fn insert_entry(&mut self, name: &[u8], value: &[u8]) -> Result<(), CodingError> {
        if name.len() + value.len() + ENTRY_OVERHEAD > self.table.capacity() {
            return Err(TOO_LARGE);
        }
        self.table.insert(name, value, Meaning::of(name, value));
        self.insert_count += 1;
        Ok(())
    }

    /// Reads the beginning of a section. `insert_count`: what it said when it came, if it had to wait; the number is relative to the insertions
    /// at that time.
    pub(in crate::h3) fn read_prefix<'a>(
        &self,
        section: &'a [u8],
        insert_count: Option<u64>,
    ) -> Result<Prefix<'a>, Error> {
        let mut rest = section;
        let encoded = take(&mut rest, 8).map_err(failed)? as u64;
        let insert_count = insert_count.map_or_else(|| self.required_insert_count(encoded), Ok)?;
        let is_negative = rest.first().is_some_and(|first| first & 0x80 != 0);
        let delta = take(&mut rest, 7).map_err(failed)? as u64;
        let base = if is_negative {
            insert_count.checked_sub(delta).and_then(|base| base.checked_sub(1))
        } else {
            insert_count.checked_add(delta)
        };
        let base = base.ok_or_else(|| decompression("base out of its range"))?;
        Ok(Prefix { insert_count, base, fields: rest })
    }

    /// RFC 9204 4.5.1.1.
    fn required_insert_count(&self, encoded: u64) -> Result<u64, Error> {
        const WRONG: Error = decompression("required insert count out of its range");
        if encoded == 0 {
            return Ok(0);
        }
        let entries_max = (self.table_bytes_max / ENTRY_OVERHEAD) as u64;
        let full_range = 2 * entries_max;
        if encoded > full_range {
            return Err(WRONG);
        }
        let max_value = self.insert_count + entries_max;
        let max_wrapped = max_value / full_range * full_range;
        let count = max_wrapped + encoded - 1;
        if count <= max_value {
            return if count == 0 { Err(WRONG) } else { Ok(count) };
        }
        if count <= full_range { Err(WRONG) } else { Ok(count - full_range) }
    }

    /// Decodes the fields of a section, all of whose insertions have come.
    pub(in crate::h3) fn decode(
        &self,
        prefix: Prefix<'_>,
        scratch: &mut Scratch,
        visit: &mut impl FnMut(&Found<'_>),
    ) -> Result<(), Error> {
        let mut rest = prefix.fields;
        while !rest.is_empty() {
            self.decode_field(prefix, &mut rest, scratch, visit).map_err(failed)?;
        }
        Ok(())
    }

    fn decode_field(
        &self,
        prefix: Prefix<'_>,
        rest: &mut &[u8],
        scratch: &mut Scratch,
        visit: &mut impl FnMut(&Found<'_>),
    ) -> Result<(), CodingError> {
        let Scratch { name: name_buffer, value: value_buffer } = scratch;
        let first = rest.first().copied().unwrap_or_default();
        let (name, value, meaning) = match first {
            // RFC 9204 4.5.2.
            0x80.. => {
                let index = take(rest, 6)?;
                self.entry(prefix, first & 0x40 != 0, index)?
            }
            // RFC 9204 4.5.4.
            0x40.. => {
                let index = take(rest, 4)?;
                let (name, ..) = self.entry(prefix, first & 0x10 != 0, index)?;
                let value = take_string(rest, 7, value_buffer)?;
                (name, value, Meaning::of(name, value))
            }
            // RFC 9204 4.5.6.
            0x20.. => {
                let name = take_string(rest, 3, name_buffer)?;
                let value = take_string(rest, 7, value_buffer)?;
                (name, value, Meaning::of(name, value))
            }
            // RFC 9204 4.5.3.
            0x10.. => {
                let index = take(rest, 4)?;
                self.entry_after_base(prefix, index)?
            }
            // RFC 9204 4.5.5.
            _ => {
                let index = take(rest, 3)?;
                let (name, ..) = self.entry_after_base(prefix, index)?;
                let value = take_string(rest, 7, value_buffer)?;
                (name, value, Meaning::of(name, value))
            }
        };
        visit(&Found { name, value, meaning });
        Ok(())
    }

    fn entry(
        &self,
        prefix: Prefix<'_>,
        is_static: bool,
        index: usize,
    ) -> Result<(&[u8], &[u8], Meaning), CodingError> {
        if is_static {
            return entry(index).ok_or(NO_STATIC_ENTRY);
        }
        let absolute = prefix.base.checked_sub(index as u64 + 1).ok_or(NO_ENTRY)?;
        self.dynamic_entry(prefix, absolute)
    }

    fn entry_after_base(
        &self,
        prefix: Prefix<'_>,
        index: usize,
    ) -> Result<(&[u8], &[u8], Meaning), CodingError> {
        self.dynamic_entry(prefix, prefix.base.checked_add(index as u64).ok_or(NO_ENTRY)?)
    }

    /// RFC 9204 2.2.3: an entry that the section did not say it needs, or that was evicted, is an error.
    fn dynamic_entry(
        &self,
        prefix: Prefix<'_>,
        absolute: u64,
    ) -> Result<(&[u8], &[u8], Meaning), CodingError> {
        if absolute >= prefix.insert_count {
            return Err(NO_ENTRY);
        }
        let index = self.insert_count.checked_sub(absolute + 1).ok_or(NO_ENTRY)?;
        usize::try_from(index).ok().and_then(|index| self.table.get(index)).ok_or(NO_ENTRY)
    }
}

const fn failed(error: CodingError) -> Error {
    match error {
        CodingError::Incomplete => decompression("field section ends within a field"),
        CodingError::Invalid(text) => decompression(text),
    }
}

const NO_ENTRY: CodingError = CodingError::Invalid("index of no entry in the dynamic table");
const TOO_LARGE: CodingError = CodingError::Invalid("insertion of an entry that is larger than the table");
const NO_STATIC_ENTRY: CodingError = CodingError::Invalid("index of no entry in the static table");

#[cfg(test)]
mod tests;
