//! A path that loses, reorders, duplicates and corrupts datagrams, as networks do.

use std::collections::BTreeMap;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Of a hundred datagrams, in either direction, how many meet which fault.
#[derive(Debug, Clone, Copy, Default)]
pub struct PathFaults {
    /// Not passed on.
    pub lost: u64,
    /// Passed on after the next one.
    pub late: u64,
    /// Passed on twice.
    pub twice: u64,
    /// Passed on with a byte inverted.
    pub corrupt: u64,
    /// A client's second datagram waits until the server has answered its first, which divides a ClientHello that needs two.
    pub is_first_alone: bool,
}

/// Passes datagrams between clients and a server; stopped on drop. The same ones meet faults each time, as far as they come in the same order.
#[derive(Debug)]
pub struct LossyRelay {
    address: SocketAddr,
    is_stopping: Arc<AtomicBool>,
    thread: Option<JoinHandle<u64>>,
}

impl LossyRelay {
    /// Starts on a free port of 127.0.0.1.
    pub fn start(server: SocketAddr, faults: PathFaults) -> Self {
        let near = bind();
        let address = near.local_addr().expect("a bound socket has an address");
        let is_stopping = Arc::new(AtomicBool::new(false));
        let stops = Arc::clone(&is_stopping);
        let thread = thread::spawn(move || relay(&near, server, faults, &stops));
        Self { address, is_stopping, thread: Some(thread) }
    }

    /// Where clients send to.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Ends it; how many datagrams clients have sent to it.
    pub fn finish(mut self) -> u64 {
        self.stop()
    }

    fn stop(&mut self) -> u64 {
        self.is_stopping.store(true, Ordering::SeqCst);
        self.thread.take().and_then(|thread| thread.join().ok()).unwrap_or_default()
    }
}

impl Drop for LossyRelay {
    fn drop(&mut self) {
        self.stop();
    }
}

/// The way to the server of one client.
struct Far {
    socket: UdpSocket,
    /// What comes from the client waits here.
    waiting: Option<Vec<Vec<u8>>>,
}

fn relay(near: &UdpSocket, server: SocketAddr, faults: PathFaults, is_stopping: &AtomicBool) -> u64 {
    let mut fars: BTreeMap<SocketAddr, Far> = BTreeMap::new();
    let mut path = Path { random: 1, faults, held: None };
    let mut room = vec![0; 1 << 16];
    let mut client_datagram_count = 0;
    loop {
        // What was sent before it stops is read.
        let (is_last, mut is_idle) = (is_stopping.load(Ordering::SeqCst), true);
        while let Ok((count, client)) = near.recv_from(&mut room) {
            is_idle = false;
            client_datagram_count += 1;
            if let Some(Far { waiting: Some(waiting), .. }) = fars.get_mut(&client) {
                waiting.push(room[..count].to_vec());
                continue;
            }
            let new = || Far { socket: bind(), waiting: faults.is_first_alone.then(Vec::new) };
            path.pass(&mut room[..count], &fars.entry(client).or_insert_with(new).socket, server);
        }
        for (client, far) in &mut fars {
            while let Ok((count, _)) = far.socket.recv_from(&mut room) {
                is_idle = false;
                path.pass(&mut room[..count], near, *client);
                for mut datagram in far.waiting.take().into_iter().flatten() {
                    path.pass(&mut datagram, &far.socket, server);
                }
            }
        }
        if is_last {
            return client_datagram_count;
        }
        if is_idle {
            thread::sleep(Duration::from_micros(200));
        }
    }
}

struct Path {
    random: u64,
    faults: PathFaults,
    held: Option<(Vec<u8>, UdpSocket, SocketAddr)>,
}

impl Path {
    fn pass(&mut self, datagram: &mut [u8], socket: &UdpSocket, to: SocketAddr) {
        if self.hits(self.faults.lost) {
            return;
        }
        if self.hits(self.faults.corrupt) {
            let place = self.next() as usize % datagram.len().max(1);
            datagram[place..].iter_mut().take(1).for_each(|byte| *byte = !*byte);
        }
        if self.held.is_none() && self.hits(self.faults.late) {
            let socket = socket.try_clone().expect("a descriptor");
            self.held = Some((datagram.to_vec(), socket, to));
            return;
        }
        let copies = if self.hits(self.faults.twice) { 2 } else { 1 };
        for _ in 0..copies {
            let _ = socket.send_to(datagram, to);
        }
        if let Some((late, socket, to)) = self.held.take() {
            let _ = socket.send_to(&late, to);
        }
    }

    fn hits(&mut self, percent: u64) -> bool {
        self.next() % 100 < percent
    }

    /// Numerical Recipes' generator.
    fn next(&mut self) -> u64 {
        self.random =
            self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.random >> 33
    }
}

fn bind() -> UdpSocket {
    let socket = UdpSocket::bind(("127.0.0.1", 0)).expect("a free port on loopback");
    socket.set_nonblocking(true).expect("a socket that does not block");
    socket
}
