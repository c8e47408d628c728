//! Decodes header blocks, and keeps the dynamic table that they build up.

use super::super::Error;
use super::super::error::compression;
use super::super::limits::HEADER_TABLE_BYTES_MAX;
use super::static_table::STATIC_TABLE;
use crate::compression::{DynamicTable, ENTRY_OVERHEAD, Scratch, take, take_string};
use crate::message::{Found, Meaning};

/// The decoder of one connection.
#[derive(Debug)]
pub(crate) struct Decoder {
    table: DynamicTable,
    repeated: Repeated,
}

/// A block that came again and again, and nothing else that touches the table.
#[derive(Debug, Clone, Copy, Default)]
struct Repeated {
    block_id: u64,
    /// Sizes of what all its readings inserted.
    inserted_bytes: usize,
}

/// What a block says besides its fields: whether the same bytes mean the same again.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Traits {
    /// It refers to the dynamic table, or changes its size.
    pub(crate) uses_table: bool,
    /// Sizes of the fields that it inserts, by RFC 7541 4.1.
    pub(crate) inserted_bytes: usize,
}

impl Decoder {
    pub(crate) const fn new() -> Self {
        Self {
            table: DynamicTable::new(HEADER_TABLE_BYTES_MAX, HEADER_TABLE_BYTES_MAX),
            repeated: Repeated { block_id: 0, inserted_bytes: 0 },
        }
    }

    /// Whether reading this block once more leaves the dynamic table as it is: its earlier readings have filled the table, so
    /// that each field inserted again pushes out its own copy.
    pub(crate) const fn is_unmoved_by(&self, block_id: u64) -> bool {
        self.repeated.block_id == block_id && self.repeated.inserted_bytes >= self.table.capacity()
    }

    /// Counts the readings of a block that inserts fields, and does not use the table otherwise.
    pub(crate) fn note_inserting(&mut self, block_id: u64, inserted_bytes: usize) {
        if self.repeated.block_id != block_id {
            self.repeated = Repeated { block_id, inserted_bytes: 0 };
        }
        self.repeated.inserted_bytes = self.repeated.inserted_bytes.saturating_add(inserted_bytes);
    }

    /// A block was read that may have changed the table in another way.
    pub(crate) fn forget_repeated(&mut self) {
        self.repeated = Repeated::default();
    }

    /// Decodes a whole block, field by field.
    pub(crate) fn decode(
        &mut self,
        block: &[u8],
        scratch: &mut Scratch,
        visit: &mut impl FnMut(&Found<'_>),
    ) -> Result<Traits, Error> {
        let mut traits = Traits::default();
        let mut rest = block;
        let mut is_first = true;
        while let Some(&first) = rest.first() {
            match first {
                0x80.. => traits.uses_table |= self.indexed(&mut rest, visit)?,
                0x40.. => {
                    let mut visit_inserted = |found: &Found<'_>| {
                        traits.inserted_bytes += found.name.len() + found.value.len() + ENTRY_OVERHEAD;
                        visit(found);
                    };
                    traits.uses_table |= self.literal(&mut rest, 6, scratch, &mut visit_inserted)?;
                }
                0x20.. if is_first => {
                    traits.uses_table = true;
                    self.resize(&mut rest)?;
                    continue;
                }
                0x20.. => return Err(compression("table size update after a field")),
                _ => traits.uses_table |= self.literal(&mut rest, 4, scratch, visit)?,
            }
            is_first = false;
        }
        Ok(traits)
    }

    /// RFC 7541 6.1. Returns whether it comes from the dynamic table.
    fn indexed(&self, rest: &mut &[u8], visit: &mut impl FnMut(&Found<'_>)) -> Result<bool, Error> {
        let index = take(rest, 7)?;
        let (name, value, meaning) = match static_entry(index) {
            Some((name, value)) => (name, value, Meaning::of_static(index)),
            None => self.dynamic_entry(index)?,
        };
        visit(&Found { name, value, meaning });
        Ok(index > STATIC_TABLE.len())
    }

    /// RFC 7541 6.2: with a prefix of six bits it is inserted, with one of four it is not.
    fn literal(
        &mut self,
        rest: &mut &[u8],
        prefix_bits: u32,
        scratch: &mut Scratch,
        visit: &mut impl FnMut(&Found<'_>),
    ) -> Result<bool, Error> {
        let Scratch { name: name_buffer, value: value_buffer } = scratch;
        let index = take(rest, prefix_bits)?;
        let name = match index {
            0 => take_string(rest, 7, name_buffer)?,
            _ => match static_entry(index) {
                Some((name, _)) => name,
                None => {
                    // Inserting may evict the entry that lends its name.
                    let (name, _, _) = self.dynamic_entry(index)?;
                    name_buffer.clear();
                    name_buffer.extend_from_slice(name);
                    &name_buffer[..]
                }
            },
        };
        let value = take_string(rest, 7, value_buffer)?;
        let meaning = Meaning::of(name, value);
        visit(&Found { name, value, meaning });
        if prefix_bits == 6 {
            self.table.insert(name, value, meaning);
        }
        Ok(index > STATIC_TABLE.len())
    }

    /// RFC 7541 6.3.
    fn resize(&mut self, rest: &mut &[u8]) -> Result<(), Error> {
        let capacity = take(rest, 5)?;
        if capacity > HEADER_TABLE_BYTES_MAX {
            return Err(compression("table size update above the announced limit"));
        }
        self.table.set_capacity(capacity);
        Ok(())
    }

    fn dynamic_entry(&self, index: usize) -> Result<(&[u8], &[u8], Meaning), Error> {
        let entry = index.checked_sub(STATIC_TABLE.len() + 1).and_then(|idx| self.table.get(idx));
        entry.ok_or_else(|| compression("index in neither table"))
    }
}

fn static_entry(index: usize) -> Option<(&'static [u8], &'static [u8])> {
    let (name, value) = STATIC_TABLE.get(index.checked_sub(1)?)?;
    Some((name.as_bytes(), value.as_bytes()))
}

#[cfg(test)]
mod tests;
