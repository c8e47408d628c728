//! The dynamic table of a decoder (RFC 7541 2.3.2 and 4, RFC 9204 3.2): entries in order of insertion, their bytes in one buffer.
//!
//! Each entry keeps what it means, so that a field that is an index alone costs one look.

use std::collections::VecDeque;

use crate::message::Meaning;

#[derive(Debug)]
pub(crate) struct DynamicTable {
    /// The newest at the back.
    entries: VecDeque<Entry>,
    /// Bytes of the entries, the oldest first; before them maybe those of entries that are gone.
    bytes: Vec<u8>,
    /// By RFC 7541 4.1.
    size: usize,
    capacity: usize,
    capacity_max: usize,
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    begin: u32,
    name_len: u16,
    value_len: u16,
    meaning: Meaning,
}

impl DynamicTable {
    /// `capacity_max`: no capacity will be larger; at most 65,535.
    pub(crate) const fn new(capacity: usize, capacity_max: usize) -> Self {
        Self { entries: VecDeque::new(), bytes: Vec::new(), size: 0, capacity, capacity_max }
    }

    pub(crate) const fn capacity(&self) -> usize {
        self.capacity
    }

    pub(crate) fn set_capacity(&mut self, capacity: usize) {
        self.capacity = capacity;
        self.evict_down_to(capacity);
    }

    /// The entry `idx` insertions ago; 0 is the newest.
    pub(crate) fn get(&self, idx: usize) -> Option<(&[u8], &[u8], Meaning)> {
        let entry = self.entries.get(self.entries.len().checked_sub(idx + 1)?)?;
        let begin = entry.begin as usize;
        let value_begin = begin + usize::from(entry.name_len);
        let value_end = value_begin + usize::from(entry.value_len);
        Some((&self.bytes[begin..value_begin], &self.bytes[value_begin..value_end], entry.meaning))
    }

    /// RFC 7541 4.4: evicts first; what is larger than the whole table only empties it.
    pub(crate) fn insert(&mut self, name: &[u8], value: &[u8], meaning: Meaning) {
        let size = name.len() + value.len() + ENTRY_OVERHEAD;
        self.evict_down_to(self.capacity.saturating_sub(size));
        if size > self.capacity {
            return;
        }
        if self.bytes.len() + name.len() + value.len() > 2 * self.capacity_max {
            self.compact();
        }
        self.entries.push_back(Entry {
            begin: self.bytes.len() as u32,
            name_len: name.len() as u16,
            value_len: value.len() as u16,
            meaning,
        });
        self.bytes.extend_from_slice(name);
        self.bytes.extend_from_slice(value);
        self.size += size;
    }

    fn evict_down_to(&mut self, size: usize) {
        while self.size > size
            && let Some(entry) = self.entries.pop_front()
        {
            self.size -= usize::from(entry.name_len) + usize::from(entry.value_len) + ENTRY_OVERHEAD;
        }
        if self.entries.is_empty() {
            self.bytes.clear();
        }
    }

    fn compact(&mut self) {
        let Some(begin) = self.entries.front().map(|entry| entry.begin) else { return self.bytes.clear() };
        self.bytes.drain(..begin as usize);
        self.entries.iter_mut().for_each(|entry| entry.begin -= begin);
    }
}

/// RFC 7541 4.1.
pub(crate) const ENTRY_OVERHEAD: usize = 32;
