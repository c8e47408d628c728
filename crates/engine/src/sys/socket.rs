//! Non-blocking stream sockets.
#![expect(unsafe_code, reason = "rustix lacks IP_BIND_ADDRESS_NO_PORT and TCP_INFO")]

use std::fs::File;
use std::io;
use std::mem;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::time::Duration;

use rustix::fs::sendfile;
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketAddrUnix, SocketFlags, SocketType, bind, connect, ipproto,
    socket_with, sockopt,
};

/// An open socket.
pub(crate) type Fd = OwnedFd;

/// A connect that has been started.
#[derive(Debug)]
pub(crate) struct Connect {
    /// The socket.
    pub(crate) socket: Fd,
    /// Whether it is already connected; else writability shows it.
    pub(crate) done: bool,
}

/// Starts connecting to `address`, from `source` where given. `writes_twice`: a short write may follow another that is not acknowledged
/// yet, and must not wait for that (tcp(7), `TCP_NODELAY`).
pub(crate) fn connect_tcp(
    address: &SocketAddr,
    source: Option<IpAddr>,
    writes_twice: bool,
) -> io::Result<Connect> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let socket = stream_socket(family, Some(ipproto::TCP))?;
    if writes_twice {
        sockopt::set_tcp_nodelay(&socket, true)?;
    }
    if let Some(source) = source {
        set_bind_address_no_port(socket.as_fd())?;
        bind(&socket, &SocketAddr::new(source, 0))?;
    }
    started(connect(&socket, address), socket)
}

/// Starts connecting to a Unix socket.
pub(crate) fn connect_unix(path: &Path) -> io::Result<Connect> {
    let socket = stream_socket(AddressFamily::UNIX, None)?;
    let address = SocketAddrUnix::new(path)?;
    started(connect(&socket, &address), socket)
}

fn stream_socket(family: AddressFamily, protocol: Option<rustix::net::Protocol>) -> io::Result<Fd> {
    Ok(socket_with(family, SocketType::STREAM, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC, protocol)?)
}

fn started(result: Result<(), Errno>, socket: Fd) -> io::Result<Connect> {
    match result {
        Ok(()) => Ok(Connect { socket, done: true }),
        Err(Errno::INPROGRESS) => Ok(Connect { socket, done: false }),
        Err(error) => Err(error.into()),
    }
}

/// The port is chosen at connect, when the whole 4-tuple is known, so that one address serves many targets (ip(7)).
fn set_bind_address_no_port(socket: BorrowedFd<'_>) -> io::Result<()> {
    set_option(socket, libc::IPPROTO_IP, libc::IP_BIND_ADDRESS_NO_PORT, 1)
}

/// Sets an option that rustix has not, whose value is an int.
pub(super) fn set_option(
    socket: BorrowedFd<'_>,
    level: libc::c_int,
    name: libc::c_int,
    value: libc::c_int,
) -> io::Result<()> {
    // SAFETY: the option's value is an int that lives until the call returns, and its exact size is passed.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            level,
            name,
            (&raw const value).cast(),
            size_of_val(&value) as libc::socklen_t,
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Closing this socket will reset the connection, whatever is still on its way (socket(7), `SO_LINGER` of 0).
pub(crate) fn reset_on_close(socket: &Fd) -> io::Result<()> {
    Ok(sockopt::set_socket_linger(socket, Some(Duration::ZERO))?)
}

/// Takes the socket's pending error: how a connect ended.
pub(crate) fn connection_error(socket: &Fd) -> io::Result<()> {
    Ok(sockopt::socket_error(socket)??)
}

/// What becomes of received bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Recv {
    /// They are copied, and gone from the socket.
    Take,
    /// They are copied, and the next read gives them again.
    Peek,
    /// They are gone from the socket without being copied (tcp(7), `MSG_TRUNC`): the buffer is never written to.
    Drop,
}

impl Recv {
    pub(super) const fn flags(self) -> RecvFlags {
        match self {
            Self::Take => RecvFlags::empty(),
            Self::Peek => RecvFlags::PEEK,
            Self::Drop => RecvFlags::TRUNC,
        }
    }
}

/// Reads up to `buf.len()` bytes; 0: the peer has closed.
pub(crate) fn recv(socket: &Fd, buf: &mut [u8], how: Recv) -> io::Result<usize> {
    Ok(rustix::net::recv(socket, buf, how.flags())?.1)
}

/// What a TCP connection has counted since it was established.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Segments {
    /// Sent without data: acknowledgements, nearly all.
    pub(crate) bare_sent: u32,
    /// Received with data.
    pub(crate) data_received: u32,
}

impl Segments {
    /// What was counted after `begin`.
    pub(crate) const fn since(self, begin: Self) -> Self {
        Self {
            bare_sent: self.bare_sent.wrapping_sub(begin.bare_sent),
            data_received: self.data_received.wrapping_sub(begin.data_received),
        }
    }
}

/// Asks the kernel what it has counted (tcp(7), `TCP_INFO`; the fields are Linux 4.6's); `None`: the socket is not one of TCP.
pub(crate) fn segments(socket: &Fd) -> Option<Segments> {
    // SAFETY: `tcp_info` is a plain C struct for which all zeroes is a valid value.
    let mut info: libc::tcp_info = unsafe { mem::zeroed() };
    let mut bytes = size_of_val(&info) as libc::socklen_t;
    // SAFETY: the value is a struct that lives until the call returns, and its exact size is passed; the kernel writes no more.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            (&raw mut info).cast(),
            &raw mut bytes,
        )
    };
    (result == 0).then(|| Segments {
        bare_sent: info.tcpi_segs_out.wrapping_sub(info.tcpi_data_segs_out),
        data_received: info.tcpi_data_segs_in,
    })
}

/// Writes `bytes`; `more`: another write follows at once, so the kernel may wait with a short segment.
pub(crate) fn send(socket: &Fd, bytes: &[u8], more: bool) -> io::Result<usize> {
    let flags = if more { SendFlags::NOSIGNAL | SendFlags::MORE } else { SendFlags::NOSIGNAL };
    Ok(rustix::net::send(socket, bytes, flags)?)
}

/// Writes `bytes` of `file` from `offset`, inside the kernel.
pub(crate) fn send_file(socket: &Fd, file: &File, offset: u64, bytes: u64) -> io::Result<usize> {
    let mut position = offset;
    let count = usize::try_from(bytes).unwrap_or(usize::MAX).min(SEND_FILE_BYTES_MAX);
    Ok(sendfile(socket, file, Some(&mut position), count)?)
}

/// Bytes of a file handed to the kernel in one go, so that one large body does not stall the loop.
const SEND_FILE_BYTES_MAX: usize = 1 << 20;
