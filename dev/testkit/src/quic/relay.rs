//! A path that loses and reorders datagrams, as networks do.

use std::collections::BTreeMap;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Passes datagrams between clients and a server; stopped on drop. The same seed drops the same ones, as far as they come in the same order.
#[derive(Debug)]
pub struct LossyRelay {
    address: SocketAddr,
    is_stopping: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl LossyRelay {
    /// Of `percent` datagrams in a hundred each, in either direction: lost, and passed on after the next one.
    pub fn start(server: SocketAddr, percent: u64) -> Self {
        let near = bind();
        let address = near.local_addr().expect("a bound socket has an address");
        let is_stopping = Arc::new(AtomicBool::new(false));
        let stops = Arc::clone(&is_stopping);
        let thread = thread::spawn(move || relay(&near, server, percent, &stops));
        Self { address, is_stopping, thread: Some(thread) }
    }

    /// Where clients send to.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for LossyRelay {
    fn drop(&mut self) {
        self.is_stopping.store(true, Ordering::SeqCst);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn relay(near: &UdpSocket, server: SocketAddr, percent: u64, is_stopping: &AtomicBool) {
    let mut fars: BTreeMap<SocketAddr, UdpSocket> = BTreeMap::new();
    let mut path = Path { random: 1, percent, held: None };
    let mut room = vec![0; 1 << 16];
    while !is_stopping.load(Ordering::SeqCst) {
        let mut is_idle = true;
        while let Ok((count, client)) = near.recv_from(&mut room) {
            is_idle = false;
            let far = fars.entry(client).or_insert_with(bind);
            path.pass(&room[..count], far, server);
        }
        for (client, far) in &fars {
            while let Ok((count, _)) = far.recv_from(&mut room) {
                is_idle = false;
                path.pass(&room[..count], near, *client);
            }
        }
        if is_idle {
            thread::sleep(Duration::from_micros(200));
        }
    }
}

struct Path {
    random: u64,
    percent: u64,
    held: Option<(Vec<u8>, UdpSocket, SocketAddr)>,
}

impl Path {
    fn pass(&mut self, datagram: &[u8], socket: &UdpSocket, to: SocketAddr) {
        if self.hits() {
            return;
        }
        if self.held.is_none() && self.hits() {
            let socket = socket.try_clone().expect("a descriptor");
            self.held = Some((datagram.to_vec(), socket, to));
            return;
        }
        let _ = socket.send_to(datagram, to);
        if let Some((late, socket, to)) = self.held.take() {
            let _ = socket.send_to(&late, to);
        }
    }

    /// Numerical Recipes' generator.
    fn hits(&mut self) -> bool {
        self.random =
            self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.random >> 33) % 100 < self.percent
    }
}

fn bind() -> UdpSocket {
    let socket = UdpSocket::bind(("127.0.0.1", 0)).expect("a free port on loopback");
    socket.set_nonblocking(true).expect("a socket that does not block");
    socket
}
