//! Bytes that a socket, or a stream, has not taken. Data only.

/// What was to be written and is not, or not all of it.
#[derive(Debug, Default)]
pub(in crate::shard) struct HeldBytes {
    /// Bytes that the socket did not take; `written_bytes` of them it took since.
    pub(in crate::shard) rest: Vec<u8>,
    pub(in crate::shard) written_bytes: usize,
    /// How many bytes of all that was ever kept the socket has taken.
    pub(in crate::shard) taken_bytes: u64,
    /// Slots of the requests that end in them, or in what the TLS session holds.
    pub(in crate::shard) ending: Vec<u32>,
}

impl HeldBytes {
    /// Bytes that the socket has not taken yet.
    pub(in crate::shard) fn left_bytes(&self) -> usize {
        self.rest.len() - self.written_bytes
    }

    /// The socket has taken so many. They are forgotten once they are more than half: what is left is moved as seldom as the buffer grows.
    pub(in crate::shard) fn take(&mut self, count: usize) {
        self.written_bytes += count;
        self.taken_bytes += count as u64;
        if self.written_bytes > self.rest.len() / 2 {
            self.rest.drain(..self.written_bytes);
            self.written_bytes = 0;
        }
        if self.rest.is_empty() {
            self.rest.shrink_to(KEPT_BYTES);
        }
    }
}

/// What stays allocated for bytes that a socket does not take at once.
const KEPT_BYTES: usize = 64 * 1024;
