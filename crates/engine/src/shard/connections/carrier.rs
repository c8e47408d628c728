//! A connection of HTTP/2 or HTTP/3 that carries WebSockets, and a WebSocket that is one of its streams (RFC 8441, RFC 9220). Data only: `carried`
//! moves them from state to state.

use std::collections::VecDeque;

use crate::shard::connections::unsent::HeldBytes;

/// What a connection has that carries WebSockets.
#[derive(Debug, Default)]
pub(in crate::shard) struct Carrier {
    /// Slots of WebSockets that get a stream once the server's settings are here.
    pub(super) waiting: VecDeque<u32>,
    /// What each stream is used for, by the request's slot in the client.
    streams: Vec<StreamUse>,
    /// Streams that are WebSockets.
    pub(super) websocket_count: u32,
    /// It is in the list of those that may have streams left.
    pub(super) is_listed: bool,
}

/// What a stream is used for.
#[derive(Debug, Default)]
pub(super) enum StreamUse {
    #[default]
    None,
    /// A WebSocket, by its slot in the table of connections.
    WebSocket(u32),
    /// The WebSocket is over on our side: what it has still to send, and the wait for the server's end.
    Ending(Box<HeldBytes>),
}

/// The stream that a WebSocket is.
#[derive(Debug, Clone, Copy)]
pub(in crate::shard) struct CarriedStream {
    /// The connection that has it.
    pub(super) carrier_idx: u32,
    /// Its slot there; `None`: it waits for one, or the server has ended it.
    pub(super) slot: Option<u32>,
    /// It ends in order, by END_STREAM; else it is reset.
    pub(in crate::shard) is_ending: bool,
    /// The connection is protected.
    pub(in crate::shard) is_secure: bool,
}

impl Carrier {
    /// What a stream is used for.
    pub(super) fn stream(&mut self, slot: u32) -> &mut StreamUse {
        let slot = slot as usize;
        if self.streams.len() <= slot {
            self.streams.resize_with(slot + 1, StreamUse::default);
        }
        &mut self.streams[slot]
    }

    /// The WebSocket on a stream.
    pub(super) fn websocket(&self, slot: u32) -> Option<usize> {
        match self.streams.get(slot as usize)? {
            StreamUse::WebSocket(conn_idx) => Some(*conn_idx as usize),
            StreamUse::None | StreamUse::Ending(_) => None,
        }
    }

    /// Everything that was to be, or is, a WebSocket on it.
    pub(super) fn websockets(&self) -> Vec<usize> {
        let open = (0..self.streams.len() as u32).filter_map(|slot| self.websocket(slot));
        self.waiting.iter().map(|conn_idx| *conn_idx as usize).chain(open).collect()
    }

    /// Takes the streams that only wait for the server's end.
    pub(super) fn take_ending(&mut self) -> Vec<u32> {
        let is_ending = |slot: &u32| matches!(self.streams[*slot as usize], StreamUse::Ending(_));
        let ending: Vec<u32> = (0..self.streams.len() as u32).filter(is_ending).collect();
        ending.iter().for_each(|slot| self.streams[*slot as usize] = StreamUse::None);
        ending
    }

    /// Nothing is on it, and nothing waits for it.
    pub(super) fn is_unused(&self) -> bool {
        self.websocket_count == 0 && self.waiting.is_empty()
    }
}
