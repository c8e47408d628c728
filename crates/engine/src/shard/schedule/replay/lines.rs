//! Which connection slot stands for which recorded connection.

use std::collections::HashMap;

/// A recorded connection of one copy, to one origin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Line {
    pub(super) user: u32,
    pub(super) connection: u64,
    pub(super) origin_idx: u32,
}

/// The slots in use; never more lines than slots.
#[derive(Debug, Default)]
pub(super) struct Lines {
    slots: HashMap<Line, u32>,
    /// By slot.
    lines: Vec<Option<Line>>,
}

impl Lines {
    /// The slot of a line.
    pub(super) fn slot(&self, line: Line) -> Option<usize> {
        self.slots.get(&line).map(|slot| *slot as usize)
    }

    /// A slot stands for this line from now on, and for no other.
    pub(super) fn set(&mut self, line: Line, slot: usize) {
        if self.lines.len() <= slot {
            self.lines.resize(slot + 1, None);
        }
        if let Some(before) = self.lines[slot].replace(line)
            && self.slots.get(&before) == Some(&(slot as u32))
        {
            self.slots.remove(&before);
        }
        self.slots.insert(line, slot as u32);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_stands_for_one_line() {
        let line = |connection| Line { user: 0, connection, origin_idx: 0 };
        let mut lines = Lines::default();
        lines.set(line(1), 4);
        lines.set(line(2), 4);
        assert_eq!((lines.slot(line(1)), lines.slot(line(2))), (None, Some(4)));
        lines.set(line(2), 5);
        lines.set(line(3), 4);
        assert_eq!((lines.slot(line(2)), lines.slot(line(3))), (Some(5), Some(4)));
    }
}
