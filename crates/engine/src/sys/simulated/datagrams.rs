//! The simulated network for datagrams: each is lost, doubled, spoilt, late or out of order by the seed, and ports may be unreachable.

use std::io;

use super::http3::Effect;
use super::world::{Action, Edge, World};
use crate::sys::OutgoingDatagrams;

impl World {
    /// A UDP socket that sends to the server.
    pub(super) fn connect_udp(&mut self) -> usize {
        let idx = self.connect_nothing();
        self.sockets[idx].is_udp = true;
        idx
    }

    /// Sends some of the list, or none where the socket is full; then it is writable later.
    pub(super) fn send_datagrams(&mut self, idx: usize, list: &[OutgoingDatagrams]) -> io::Result<usize> {
        if self.sockets[idx].is_blocked || self.one_in(200) {
            if !std::mem::replace(&mut self.sockets[idx].is_blocked, true) {
                let at_ns = self.now_ns + 1 + self.below(200_000);
                self.at(at_ns, idx, Action::Drained(0));
            }
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let count = if self.one_in(8) { 1 + self.below(list.len() as u64) as usize } else { list.len() };
        for datagrams in &list[..count] {
            let size = match datagrams.segment_bytes {
                0 => datagrams.bytes.len().max(1),
                size => usize::from(size),
            };
            for bytes in datagrams.bytes.chunks(size) {
                self.pass_to_server(idx, bytes);
            }
        }
        Ok(count)
    }

    fn pass_to_server(&mut self, idx: usize, bytes: &[u8]) {
        // A long header of the type Initial, and padded: a client's first packet (RFC 9000 14.1).
        let is_initial = bytes.len() >= 1200 && bytes[0] & 0xf0 == 0xc0;
        if is_initial && self.has_fault(self.behaviour.refused) {
            let at_ns = self.now_ns + 1 + self.below(300_000);
            return self.at(at_ns, idx, Action::Unreachable);
        }
        for (bytes, delay_ns) in self.fates_of(bytes) {
            let at_ns = self.arrival_ns(self.sockets[idx].last_to_server_ns, delay_ns);
            if delay_ns == 0 {
                self.sockets[idx].last_to_server_ns = at_ns;
            }
            self.at(at_ns, idx, Action::DatagramToServer(bytes));
        }
    }

    fn pass_to_client(&mut self, idx: usize, bytes: &[u8]) {
        for (bytes, delay_ns) in self.fates_of(bytes) {
            let at_ns = self.arrival_ns(self.sockets[idx].last_to_client_ns, delay_ns);
            if delay_ns == 0 {
                self.sockets[idx].last_to_client_ns = at_ns;
            }
            self.at(at_ns, idx, Action::DatagramToClient(bytes));
        }
    }

    /// In order, unless it is held up on its way.
    fn arrival_ns(&mut self, last_ns: u64, delay_ns: u64) -> u64 {
        let begin_ns = if delay_ns == 0 { last_ns.max(self.now_ns) } else { self.now_ns + delay_ns };
        begin_ns + 1 + self.below(20_000)
    }

    /// What arrives of a datagram, and how much later than the others: 0 is in order.
    fn fates_of(&mut self, bytes: &[u8]) -> Vec<(Vec<u8>, u64)> {
        let rate = self.behaviour.datagrams;
        let before = self.fault_count;
        let fates = self.draw_fates(rate, bytes);
        self.lost_count += self.fault_count - before;
        fates
    }

    fn draw_fates(&mut self, rate: u32, bytes: &[u8]) -> Vec<(Vec<u8>, u64)> {
        if self.has_fault(rate) {
            return Vec::new();
        }
        let mut bytes = bytes.to_vec();
        if self.has_fault(rate) {
            let at = self.below(bytes.len() as u64) as usize;
            bytes[at] ^= 1 << self.below(8);
        }
        let delay_ns = if self.has_fault(rate) { 1 + self.below(10_000_000) } else { 0 };
        let mut fates = vec![(bytes.clone(), delay_ns)];
        if self.has_fault(rate) {
            fates.push((bytes, 1 + self.below(5_000_000)));
        }
        fates
    }

    /// Some of the datagrams that have come.
    pub(super) fn recv_datagrams(&mut self, idx: usize, count_max: usize) -> io::Result<Vec<Vec<u8>>> {
        let socket = &mut self.sockets[idx];
        if std::mem::take(&mut socket.is_unreachable) {
            return Err(io::Error::from_raw_os_error(libc::ECONNREFUSED));
        }
        let count = socket.datagrams.len().min(count_max);
        if count == 0 {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        Ok(socket.datagrams.drain(..count).collect())
    }

    /// Something happens to a datagram, or to the server of HTTP/3.
    pub(super) fn act_on_datagrams(&mut self, idx: usize, action: Action) {
        match action {
            Action::DatagramToClient(bytes) => {
                self.sockets[idx].datagrams.push_back(bytes);
                self.list(idx, Edge { readable: true, ..Edge::default() });
            }
            Action::Unreachable => {
                self.note(|| format!("{idx} is unreachable"));
                self.sockets[idx].is_unreachable = true;
                self.list(idx, Edge { readable: true, closed: true, ..Edge::default() });
            }
            Action::DatagramToServer(bytes) => {
                self.ask_quic(|server, at, chance| server.receive((at, idx), &bytes, chance));
            }
            Action::QuicTimer(handle) => {
                self.ask_quic(|server, at, chance| server.expire((at, handle), chance));
            }
            Action::QuicAnswer(handle, stream) => {
                self.ask_quic(|server, at, chance| server.answer((at, handle, stream), chance));
            }
            _ => unreachable!("what happens to streams of TCP is elsewhere"),
        }
    }

    fn ask_quic(
        &mut self,
        ask: impl FnOnce(
            &mut super::http3::QuicServer,
            u64,
            (&super::Behaviour, &mut crate::pace::SplitMix),
        ) -> Vec<Effect>,
    ) {
        let Some(server) = &mut self.quic else { return };
        let effects = ask(server, self.now_ns, (&self.behaviour, &mut self.random));
        for effect in effects {
            match effect {
                Effect::Send(idx, bytes) => self.pass_to_client(idx, &bytes),
                Effect::Timer { socket_idx, handle, at_ns } => {
                    self.at(at_ns, socket_idx, Action::QuicTimer(handle));
                }
                Effect::Answer { socket_idx, handle, stream, delay_ns } => {
                    self.at(self.now_ns + delay_ns, socket_idx, Action::QuicAnswer(handle, stream));
                }
            }
        }
    }
}
