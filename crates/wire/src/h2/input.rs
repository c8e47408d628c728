//! What of the peer's bytes has been read of a frame, or of a header block, that is not whole yet.

/// Where in the peer's bytes we are.
#[derive(Debug, Default)]
pub(super) struct Input {
    /// A frame that came in pieces; DATA frames keep nothing here but their head.
    pub(super) partial: Vec<u8>,
    pub(super) data: Option<Data>,
    pub(super) block: Block,
    pub(super) has_settings: bool,
    /// A ping of ours is not answered yet.
    pub(super) awaits_pong: bool,
    pub(super) idle_frame_count: u32,
}

impl Input {
    /// What is still to come of a DATA frame belongs to no request, where it was this request's.
    pub(super) fn disown(&mut self, slot: u32) {
        if let Some(data) = &mut self.data {
            data.slot = data.slot.filter(|one| *one != slot);
        }
    }
}

/// The rest of a DATA frame.
#[derive(Debug, Clone, Copy)]
pub(super) struct Data {
    /// `None`: it is not wanted.
    pub(super) slot: Option<u32>,
    pub(super) bytes_left: u32,
    pub(super) padding_left: u32,
    /// The first byte says how much padding there is.
    pub(super) awaits_padding: bool,
    pub(super) is_end: bool,
}

/// A header block that goes on in CONTINUATION frames.
#[derive(Debug, Default)]
pub(super) struct Block {
    /// 0: none is open.
    pub(super) stream_id: u32,
    pub(super) is_end: bool,
    pub(super) bytes: Vec<u8>,
    pub(super) frame_count: u32,
    /// Of all its frames, heads included.
    pub(super) frame_bytes: u32,
}
