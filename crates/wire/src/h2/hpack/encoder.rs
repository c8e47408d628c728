//! Encodes request heads: each field once in full, then as an index of a byte or two.
//!
//! What requests to one origin have in common is known before the run, so it is laid out once in a [`FieldTable`]; a request is a
//! [`FieldBlock`], a list of places in it. Only which of them a connection's peer has learned already is kept for each connection, in
//! its [`Encoder`]. Nothing is ever evicted: what does not fit into the peer's table is sent in full each time.

use std::collections::HashMap;

use super::super::limits::HEADER_TABLE_BYTES_MAX;
use super::static_table::{index_of_field, index_of_name};
use crate::compression::{ENTRY_OVERHEAD, put, put_string};

/// The fields that the requests to one origin share. Grows while requests are prepared, and is read-only after that.
#[derive(Debug, Default)]
pub struct FieldTable {
    entries: Vec<Entry>,
    places: HashMap<(String, String), u16>,
    size: usize,
}

/// A field in the forms in which it is sent.
#[derive(Debug)]
struct Entry {
    /// Literal with incremental indexing (RFC 7541 6.2.1).
    teaching: Box<[u8]>,
    /// Literal without indexing (RFC 7541 6.2.2).
    plain: Box<[u8]>,
    /// By RFC 7541 4.1.
    size: usize,
}

/// The fields of one request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FieldBlock {
    parts: Vec<Part>,
    /// Names and values alone.
    bytes: usize,
    field_count: usize,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    /// Means the same whatever was sent before.
    Fixed(Vec<u8>),
    /// Place in the table.
    Shared(u16),
}

/// What one connection's peer has learned.
#[derive(Debug)]
pub(crate) struct Encoder {
    /// By place in the table: the how-manieth insertion it was, from 1; 0: none.
    ordinals: Vec<u16>,
    insert_count: u16,
    size: usize,
    capacity: usize,
    /// The peer must learn the capacity before the next field (RFC 7541 4.2).
    is_resized: bool,
}

impl FieldBlock {
    /// Adds a field that is not shared: it is sent in full each time, or as an index of the static table.
    pub(crate) fn push(&mut self, name: &str, value: &str) {
        self.count(name, value);
        let bytes = match index_of_field(name, value) {
            Some(index) => indexed(index),
            None => literal(name, value, 4, 0),
        };
        match self.parts.last_mut() {
            Some(Part::Fixed(fixed)) => fixed.extend_from_slice(&bytes),
            _ => self.parts.push(Part::Fixed(bytes)),
        }
    }

    /// Adds a field that other requests to the same origin may have as well.
    pub(crate) fn push_shared(&mut self, name: &str, value: &str, table: &mut FieldTable) {
        let place = if index_of_field(name, value).is_some() { None } else { table.place_of(name, value) };
        match place {
            None => self.push(name, value),
            Some(place) => {
                self.count(name, value);
                self.parts.push(Part::Shared(place));
            }
        }
    }

    /// Length of names and values, before compression.
    pub const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Size of the list as a peer's `SETTINGS_MAX_HEADER_LIST_SIZE` counts it (RFC 9113 6.5.2).
    pub const fn list_bytes(&self) -> usize {
        self.bytes + self.field_count * ENTRY_OVERHEAD
    }

    fn count(&mut self, name: &str, value: &str) {
        self.bytes += name.len() + value.len();
        self.field_count += 1;
    }
}

impl FieldTable {
    /// Where a field is, or would be; `None`: the table is full.
    fn place_of(&mut self, name: &str, value: &str) -> Option<u16> {
        let key = (name.to_owned(), value.to_owned());
        if let Some(place) = self.places.get(&key) {
            return Some(*place);
        }
        let size = name.len() + value.len() + ENTRY_OVERHEAD;
        if self.size + size > HEADER_TABLE_BYTES_MAX {
            return None;
        }
        let place = self.entries.len() as u16;
        self.size += size;
        let entry = Entry {
            teaching: literal(name, value, 6, 0x40).into_boxed_slice(),
            plain: literal(name, value, 4, 0).into_boxed_slice(),
            size,
        };
        self.entries.push(entry);
        self.places.insert(key, place);
        Some(place)
    }
}

impl Encoder {
    pub(crate) const fn new() -> Self {
        Self {
            ordinals: Vec::new(),
            insert_count: 0,
            size: 0,
            capacity: HEADER_TABLE_BYTES_MAX,
            is_resized: false,
        }
    }

    /// The peer's table has another size. It is emptied, so that what remains in it is no question.
    pub(crate) fn set_capacity(&mut self, announced: usize) {
        let capacity = announced.min(HEADER_TABLE_BYTES_MAX);
        if capacity != self.capacity {
            self.ordinals.fill(0);
            (self.insert_count, self.size, self.capacity, self.is_resized) = (0, 0, capacity, true);
        }
    }

    /// Appends a request's header block. All blocks of a connection are made with one table.
    pub(crate) fn encode(&mut self, table: &FieldTable, block: &FieldBlock, out: &mut Vec<u8>) {
        if self.is_resized {
            self.is_resized = false;
            put(0, 5, 0x20, out);
            put(self.capacity as u64, 5, 0x20, out);
        }
        self.ordinals.resize(table.entries.len(), 0);
        for part in &block.parts {
            match part {
                Part::Fixed(bytes) => out.extend_from_slice(bytes),
                Part::Shared(place) => self.encode_shared(table, *place, out),
            }
        }
    }

    fn encode_shared(&mut self, table: &FieldTable, place: u16, out: &mut Vec<u8>) {
        let ordinal = &mut self.ordinals[usize::from(place)];
        if *ordinal != 0 {
            return put(DYNAMIC_INDEX_MIN + u64::from(self.insert_count - *ordinal), 7, 0x80, out);
        }
        let entry = &table.entries[usize::from(place)];
        if self.size + entry.size > self.capacity {
            return out.extend_from_slice(&entry.plain);
        }
        self.insert_count += 1;
        *ordinal = self.insert_count;
        self.size += entry.size;
        out.extend_from_slice(&entry.teaching);
    }
}

fn indexed(index: usize) -> Vec<u8> {
    let mut out = Vec::new();
    put(index as u64, 7, 0x80, &mut out);
    out
}

fn literal(name: &str, value: &str, prefix_bits: u32, pattern: u8) -> Vec<u8> {
    let mut out = Vec::new();
    match index_of_name(name) {
        Some(index) => put(index as u64, prefix_bits, pattern, &mut out),
        None => {
            out.push(pattern);
            put_string(name.as_bytes(), 7, 0, &mut out);
        }
    }
    put_string(value.as_bytes(), 7, 0, &mut out);
    out
}

/// RFC 7541 2.3.3: the newest entry comes right after the static table.
const DYNAMIC_INDEX_MIN: u64 = 62;
