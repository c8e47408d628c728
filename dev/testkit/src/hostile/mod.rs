//! Servers that break every rule, as a table: what each does, and what a client that counts well says about it.
//!
//! Owns: the acts and who performs them ([`HostileServer`]). The table itself is [`PEERS`].

mod backlog;
mod peers;
mod tls;

use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::thread;
use std::time::Duration;

use rustls::{ServerConnection, StreamOwned};
use squall_measure::{Cause, Phase};

use crate::acceptor::{Acceptor, Socket};
use crate::request::Requests;

pub use backlog::FullBacklog;
pub use peers::PEERS;
pub use tls::Tls;

/// One misbehaving server.
#[derive(Debug, Clone, Copy)]
pub struct Peer {
    /// Names it in a test's output.
    pub name: &'static str,
    /// How TLS goes wrong, if it is spoken.
    pub tls: Tls,
    /// What it does on each connection, in order; then it closes.
    pub acts: &'static [Act],
    /// Flags that make the client meet the misbehaviour; [`BODY_FILE`] stands for the path of a large file.
    pub args: &'static [&'static str],
    /// What each request may come to.
    pub expect: Expect,
}

/// What a request to a hostile server may come to. More than one where the order of two packets decides.
#[derive(Debug, Clone, Copy)]
pub struct Expect {
    /// Success is right too: the fault lies outside the response, or the rules leave a choice.
    pub ok: bool,
    /// Right causes and phases of a failure.
    pub failures: &'static [(Cause, Phase)],
}

/// A step of a hostile server on one connection.
#[derive(Debug, Clone, Copy)]
pub enum Act {
    /// Reads one request, its body included.
    ReadRequest,
    /// Reads a request's head and leaves its body unread.
    ReadHead,
    /// Reads whatever comes first, such as a `ClientHello`.
    ReadSome,
    /// Sends these bytes.
    Send(&'static [u8]),
    /// Sends these bytes again and again until the client leaves.
    SendForever(&'static [u8]),
    /// Sends this many zero bytes.
    SendZeros(u64),
    /// Sends these bytes one by one with a pause after each, over and over until the client leaves.
    Drip(&'static [u8], Duration),
    /// Reads and discards until the client leaves.
    Hold,
    /// Reads nothing until the client leaves.
    HoldUnread,
    /// Does nothing for this long.
    Pause(Duration),
    /// The connection will end with RST instead of FIN.
    Reset,
}

/// In [`Peer::args`]: the path of a file that is larger than all socket buffers on the way.
pub const BODY_FILE: &str = "{BODY_FILE}";

/// A running [`Peer`]; stopped on drop.
#[derive(Debug)]
pub struct HostileServer {
    acceptor: Acceptor,
    is_tls: bool,
    ca_pem: Option<String>,
}

impl HostileServer {
    /// Starts on a free port of 127.0.0.1.
    pub fn start(peer: &Peer) -> Self {
        let tls = peer.tls.set_up();
        let ca_pem = tls.ca_pem.clone();
        let acts = peer.acts;
        // A client that leaves early is what most of these servers are for.
        let acceptor = Acceptor::start(move |socket| _ = serve(socket, &tls, acts));
        Self { acceptor, is_tls: peer.tls != Tls::No, ca_pem }
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.acceptor.address()
    }

    /// What to ask for.
    pub fn url(&self) -> String {
        let scheme = if self.is_tls { "https" } else { "http" };
        format!("{scheme}://{}/", self.address())
    }

    /// The authority that the client should trust, as PEM; `None` when it should trust none.
    pub fn ca_pem(&self) -> Option<&str> {
        self.ca_pem.as_deref()
    }
}

fn serve(mut socket: Socket, tls: &tls::SetUp, acts: &[Act]) -> io::Result<()> {
    let raw = socket.clone();
    let Some(config) = &tls.config else { return perform_all(&mut socket, &raw, acts) };
    let session = ServerConnection::new(config.clone()).map_err(io::Error::other)?;
    match tls.after_hello {
        None => perform_all(&mut StreamOwned::new(session, socket), &raw, acts),
        Some(bytes) => {
            tls::answer_hello_only(session, &mut socket)?;
            socket.write_all(bytes)?;
            perform_all(&mut socket, &raw, acts)
        }
    }
}

fn perform_all(stream: &mut (impl Read + Write), socket: &Socket, acts: &[Act]) -> io::Result<()> {
    let mut requests = Requests::default();
    acts.iter().try_for_each(|act| perform(*act, stream, socket, &mut requests))
}

fn perform(
    act: Act,
    stream: &mut (impl Read + Write),
    socket: &Socket,
    requests: &mut Requests,
) -> io::Result<()> {
    match act {
        Act::ReadRequest => requests.next(stream).map(drop),
        Act::ReadHead => requests.read_head(stream).map(drop),
        Act::ReadSome => stream.read(&mut [0; 16 * 1024]).map(drop),
        Act::Send(bytes) => send(stream, bytes),
        Act::SendForever(bytes) => send_forever(stream, bytes),
        Act::SendZeros(count) => send_zeros(stream, count),
        Act::Drip(bytes, pause) => drip(stream, bytes, pause),
        Act::Hold => io::copy(stream, &mut io::sink()).map(drop),
        Act::HoldUnread => socket.wait_for_hangup(),
        Act::Pause(length) => {
            thread::sleep(length);
            Ok(())
        }
        Act::Reset => socket.reset_on_close(),
    }
}

fn send(stream: &mut impl Write, bytes: &[u8]) -> io::Result<()> {
    stream.write_all(bytes)?;
    stream.flush()
}

fn send_forever(stream: &mut impl Write, bytes: &[u8]) -> io::Result<()> {
    let many = bytes.repeat(1 + 16 * 1024 / bytes.len());
    loop {
        send(stream, &many)?;
    }
}

fn send_zeros(stream: &mut impl Write, count: u64) -> io::Result<()> {
    io::copy(&mut io::repeat(0).take(count), stream)?;
    stream.flush()
}

fn drip(stream: &mut impl Write, bytes: &[u8], pause: Duration) -> io::Result<()> {
    for byte in bytes.iter().cycle() {
        send(stream, &[*byte])?;
        thread::sleep(pause);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::net::TcpStream;

    use super::*;

    fn talk(peer: &Peer) -> io::Result<Vec<u8>> {
        let server = HostileServer::start(peer);
        let mut stream = TcpStream::connect(server.address())?;
        stream.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer)?;
        Ok(answer)
    }

    fn peer(acts: &'static [Act]) -> Peer {
        Peer { name: "", tls: Tls::No, acts, args: &[], expect: Expect { ok: true, failures: &[] } }
    }

    #[test]
    fn acts_are_performed_in_order_and_the_connection_closes() {
        assert_eq!(
            talk(&peer(&[Act::ReadRequest, Act::Send(b"ab"), Act::SendZeros(3)])).unwrap(),
            b"ab\0\0\0"
        );
    }

    #[test]
    fn a_reset_reaches_the_client_as_one() {
        let error = talk(&peer(&[Act::ReadRequest, Act::Reset])).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
    }

    #[test]
    fn a_server_that_holds_its_connection_stops_when_dropped() {
        for acts in [&[Act::Hold], &[Act::HoldUnread]] {
            let server = HostileServer::start(&peer(acts));
            let stream = TcpStream::connect(server.address()).unwrap();
            drop(server);
            drop(stream);
        }
    }

    #[test]
    fn every_peer_has_a_name_of_its_own_and_an_expectation() {
        let names: HashSet<&str> = PEERS.iter().map(|peer| peer.name).collect();
        assert_eq!(names.len(), PEERS.len());
        assert!(PEERS.len() >= 30);
        assert!(PEERS.iter().all(|peer| peer.expect.ok || !peer.expect.failures.is_empty()));
    }
}
