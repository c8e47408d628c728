//! UDP sockets that are connected to one peer, and batches of datagrams: many in one call each way, with segmentation by the kernel.
#![expect(
    unsafe_code,
    reason = "rustix has neither sendmmsg nor the control messages of UDP_SEGMENT and UDP_GRO"
)]

use std::io;
use std::mem;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, connect, ipproto, socket_with, sockopt};

use super::socket::set_option;

/// Datagrams of one connection that leave together: all of the same size, but for the last one, which may be shorter.
#[derive(Debug, Default)]
pub(crate) struct OutgoingDatagrams {
    pub(crate) bytes: Vec<u8>,
    /// Size of each; 0: it is one.
    pub(crate) segment_bytes: u16,
    /// Explicit congestion notification: the two bits of the IP header.
    pub(crate) ecn: u8,
}

/// What one call has received: some messages, each of one datagram or of several that the kernel has put together.
pub(crate) struct ReceivedBatch {
    bytes: Vec<u8>,
    messages: Vec<ReceivedMessage>,
}

/// One of them.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ReceivedMessage {
    pub(crate) len: usize,
    /// Size of each datagram but the last.
    pub(crate) segment_bytes: usize,
    /// The two bits of the IP header.
    pub(crate) ecn: u8,
    /// When the kernel received it, in nanoseconds since the epoch, where it was asked to say so.
    pub(crate) wall_ns: Option<u64>,
}

impl ReceivedBatch {
    pub(crate) fn new() -> Self {
        Self { bytes: vec![0; MESSAGE_COUNT * MESSAGE_BYTES], messages: Vec::with_capacity(MESSAGE_COUNT) }
    }

    /// Messages that no kernel has received.
    #[cfg(test)]
    pub(crate) fn fill(&mut self, datagrams: &[Vec<u8>]) {
        self.messages.clear();
        for (space, bytes) in self.bytes.chunks_exact_mut(MESSAGE_BYTES).zip(datagrams) {
            space[..bytes.len()].copy_from_slice(bytes);
            let len = bytes.len();
            self.messages.push(ReceivedMessage { len, segment_bytes: len, ..ReceivedMessage::default() });
        }
    }

    /// The `idx`-th message.
    pub(crate) fn message(&self, idx: usize) -> (ReceivedMessage, &[u8]) {
        let message = self.messages[idx];
        let begin = idx * MESSAGE_BYTES;
        (message, &self.bytes[begin..begin + message.len])
    }

    /// Whether a call that brought so many may have left some that epoll will not report.
    ///
    /// A call also stops early where an ICMP error arrives while it runs. The kernel keeps that error for the next call, and its arrival is an
    /// edge of its own (EPOLLERR) after the one that is being handled: the socket is reported again, and what is left is read then. An error
    /// that came before the call is returned by it alone, before any message.
    pub(crate) fn is_full(count: usize) -> bool {
        count == MESSAGE_COUNT
    }
}

/// A socket that sends to `remote`, and receives from there only. Datagrams are never fragmented, so that a size that the path does not carry is
/// seen as a loss. `wants_ecn`: the two bits of what is received are wanted.
pub(crate) fn connect_udp(
    remote: &SocketAddr,
    source: Option<IpAddr>,
    wants_ecn: bool,
) -> io::Result<OwnedFd> {
    let is_ipv4 = remote.is_ipv4();
    let family = if is_ipv4 { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = socket_with(family, SocketType::DGRAM, flags, Some(ipproto::UDP))?;
    let fd = socket.as_fd();
    let (level, discover, probe, receive_ecn) = if is_ipv4 {
        (libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, libc::IP_PMTUDISC_PROBE, libc::IP_RECVTOS)
    } else {
        (libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER, libc::IPV6_PMTUDISC_PROBE, libc::IPV6_RECVTCLASS)
    };
    // What a system lacks of these (emulators, some sandboxes) costs speed, not correctness.
    let _ = set_option(fd, level, discover, probe);
    let _ = set_option(fd, libc::SOL_UDP, libc::UDP_GRO, 1);
    if wants_ecn {
        let _ = set_option(fd, level, receive_ecn, 1);
    }
    if let Some(source) = source {
        bind(&socket, &SocketAddr::new(source, 0))?;
    }
    connect(&socket, remote)?;
    Ok(socket)
}

/// Asks for buffers of this size; returns the size that the kernel gives for receiving.
pub(crate) fn enlarge_buffers(socket: &impl AsFd, bytes: usize) -> io::Result<usize> {
    let socket = socket.as_fd();
    for (force, usual) in [(libc::SO_RCVBUFFORCE, libc::SO_RCVBUF), (libc::SO_SNDBUFFORCE, libc::SO_SNDBUF)] {
        let value = i32::try_from(bytes).unwrap_or(i32::MAX);
        // Beyond the system's limit with CAP_NET_ADMIN only.
        if set_option(socket, libc::SOL_SOCKET, force, value).is_err() {
            set_option(socket, libc::SOL_SOCKET, usual, value)?;
        }
    }
    // The kernel doubles the value for its own needs (socket(7)).
    Ok(sockopt::socket_recv_buffer_size(socket)? / 2)
}

/// Whether the kernel cuts what is sent into datagrams (udp(7), `UDP_SEGMENT`, Linux 4.18).
pub(crate) fn has_segmentation(socket: &impl AsFd) -> bool {
    set_option(socket.as_fd(), libc::SOL_UDP, libc::UDP_SEGMENT, 0).is_ok()
}

/// Datagrams that the kernel has dropped because the socket's buffer was full (`SO_MEMINFO`, Linux 4.12); it counts from the socket's beginning.
pub(crate) fn dropped_count(socket: &impl AsFd) -> u32 {
    let mut info = [0_u32; MEMINFO_COUNT];
    let mut bytes = size_of_val(&info) as libc::socklen_t;
    // SAFETY: the value is an array that lives until the call returns, and its exact size is passed; the kernel writes no more.
    let result = unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            libc::SOL_SOCKET,
            SO_MEMINFO,
            info.as_mut_ptr().cast(),
            &raw mut bytes,
        )
    };
    if result == 0 && bytes as usize == size_of_val(&info) { info[MEMINFO_DROPS] } else { 0 }
}

/// Sends as many of `list` as the socket takes, in one call; returns how many that were.
///
/// # Errors
/// When it takes not even the first.
pub(crate) fn send_datagrams(
    socket: &impl AsFd,
    is_ipv4: bool,
    list: &[OutgoingDatagrams],
) -> io::Result<usize> {
    let list = &list[..list.len().min(SEND_COUNT_MAX)];
    let mut control = [Control::default(); SEND_COUNT_MAX];
    // SAFETY: both are plain C structs for which all zeroes is a valid value.
    let (mut parts, mut messages): ([libc::iovec; SEND_COUNT_MAX], [libc::mmsghdr; SEND_COUNT_MAX]) =
        unsafe { (mem::zeroed(), mem::zeroed()) };
    for (idx, datagrams) in list.iter().enumerate() {
        parts[idx] = libc::iovec {
            iov_base: datagrams.bytes.as_ptr().cast_mut().cast(),
            iov_len: datagrams.bytes.len(),
        };
        let head = &mut messages[idx].msg_hdr;
        head.msg_iov = &raw mut parts[idx];
        head.msg_iovlen = 1;
        control[idx].write(head, datagrams, is_ipv4);
    }
    // SAFETY: each message points to bytes that are borrowed for the call and only read, and to its own control buffer, all with their true
    // lengths; as many messages as are passed were filled in.
    let count = unsafe {
        libc::sendmmsg(
            socket.as_fd().as_raw_fd(),
            messages.as_mut_ptr(),
            list.len() as libc::c_uint,
            libc::MSG_NOSIGNAL,
        )
    };
    usize::try_from(count).map_err(|_| io::Error::last_os_error())
}

/// Receives what is there, in one call; returns how many messages there are in `batch`.
pub(crate) fn recv_datagrams(socket: &impl AsFd, batch: &mut ReceivedBatch) -> io::Result<usize> {
    let mut control = [Control::default(); MESSAGE_COUNT];
    // SAFETY: both are plain C structs for which all zeroes is a valid value.
    let (mut parts, mut messages): ([libc::iovec; MESSAGE_COUNT], [libc::mmsghdr; MESSAGE_COUNT]) =
        unsafe { (mem::zeroed(), mem::zeroed()) };
    for (idx, space) in batch.bytes.chunks_exact_mut(MESSAGE_BYTES).enumerate() {
        parts[idx] = libc::iovec { iov_base: space.as_mut_ptr().cast(), iov_len: space.len() };
        let head = &mut messages[idx].msg_hdr;
        head.msg_iov = &raw mut parts[idx];
        head.msg_iovlen = 1;
        head.msg_control = control[idx].0.as_mut_ptr().cast();
        head.msg_controllen = CONTROL_BYTES as _;
    }
    // SAFETY: each message points to a part of the batch that is exclusively borrowed, no two to the same, and to its own control buffer, all
    // with their true lengths.
    let count = unsafe {
        libc::recvmmsg(
            socket.as_fd().as_raw_fd(),
            messages.as_mut_ptr(),
            MESSAGE_COUNT as libc::c_uint,
            libc::MSG_DONTWAIT,
            std::ptr::null_mut(),
        )
    };
    let count = usize::try_from(count).map_err(|_| io::Error::last_os_error())?;
    batch.messages.clear();
    batch.messages.extend(messages[..count].iter().map(received));
    Ok(count)
}

/// What the control messages of a received message say.
fn received(message: &libc::mmsghdr) -> ReceivedMessage {
    let len = message.msg_len as usize;
    let mut received = ReceivedMessage { len, segment_bytes: len, ..ReceivedMessage::default() };
    let head = &message.msg_hdr;
    // SAFETY: `head` was filled by a successful recvmmsg, so its control buffer holds well-formed messages within `msg_controllen`, which is what
    // these macros walk; each kind is read as the type that the kernel writes for it, unaligned.
    unsafe {
        let mut control = libc::CMSG_FIRSTHDR(head);
        while !control.is_null() {
            let data = libc::CMSG_DATA(control);
            match ((*control).cmsg_level, (*control).cmsg_type) {
                (libc::SOL_UDP, libc::UDP_GRO) => {
                    let bytes = data.cast::<libc::c_int>().read_unaligned();
                    received.segment_bytes = usize::try_from(bytes).unwrap_or(len).max(1);
                }
                (libc::IPPROTO_IP, libc::IP_TOS) => received.ecn = *data & ECN_BITS,
                (libc::IPPROTO_IPV6, libc::IPV6_TCLASS) => {
                    received.ecn = data.cast::<libc::c_int>().read_unaligned() as u8 & ECN_BITS;
                }
                (libc::SOL_SOCKET, libc::SCM_TIMESTAMPING) => {
                    let stamp = data.cast::<libc::timespec>().read_unaligned();
                    let wall_ns = stamp.tv_sec as u64 * 1_000_000_000 + stamp.tv_nsec as u64;
                    received.wall_ns = (wall_ns != 0).then_some(wall_ns);
                }
                _ => {}
            }
            control = libc::CMSG_NXTHDR(head, control);
        }
    }
    received
}

/// Control messages must be aligned like `cmsghdr`.
#[derive(Clone, Copy, Default)]
#[repr(align(8))]
struct Control([[u64; 8]; 2]);

impl Control {
    /// Says how large the datagrams of a message are, and what their IP headers say of congestion.
    fn write(&mut self, head: &mut libc::msghdr, datagrams: &OutgoingDatagrams, is_ipv4: bool) {
        head.msg_control = self.0.as_mut_ptr().cast();
        head.msg_controllen = CONTROL_BYTES as _;
        let mut written_bytes = 0;
        let is_cut =
            datagrams.segment_bytes > 0 && datagrams.bytes.len() > usize::from(datagrams.segment_bytes);
        // SAFETY: the control buffer is zeroed, aligned and is large enough for both messages with their padding (88 of 128 bytes), which is what these
        // macros compute addresses in; `msg_controllen` is set to what was written before the buffer is used.
        unsafe {
            let mut control = libc::CMSG_FIRSTHDR(head);
            if datagrams.ecn != 0 && !control.is_null() {
                let (level, kind) = match is_ipv4 {
                    true => (libc::IPPROTO_IP, libc::IP_TOS),
                    false => (libc::IPPROTO_IPV6, libc::IPV6_TCLASS),
                };
                (*control).cmsg_level = level;
                (*control).cmsg_type = kind;
                (*control).cmsg_len = libc::CMSG_LEN(size_of::<libc::c_int>() as u32) as _;
                libc::CMSG_DATA(control).cast::<libc::c_int>().write_unaligned(datagrams.ecn.into());
                written_bytes += libc::CMSG_SPACE(size_of::<libc::c_int>() as u32);
                control = libc::CMSG_NXTHDR(head, control);
            }
            if is_cut && !control.is_null() {
                (*control).cmsg_level = libc::SOL_UDP;
                (*control).cmsg_type = libc::UDP_SEGMENT;
                (*control).cmsg_len = libc::CMSG_LEN(size_of::<u16>() as u32) as _;
                libc::CMSG_DATA(control).cast::<u16>().write_unaligned(datagrams.segment_bytes);
                written_bytes += libc::CMSG_SPACE(size_of::<u16>() as u32);
            }
        }
        if written_bytes == 0 {
            head.msg_control = std::ptr::null_mut();
        }
        head.msg_controllen = written_bytes as _;
    }
}

const CONTROL_BYTES: usize = size_of::<Control>();

/// What quinn-proto draws its random numbers from; `None`: the system.
#[cfg(not(test))]
pub(crate) const fn quic_seed() -> Option<[u8; 32]> {
    None
}

/// The bits of explicit congestion notification.
const ECN_BITS: u8 = 0b11;

/// Messages that one call receives, each as large as the kernel makes them of several datagrams.
const MESSAGE_COUNT: usize = 16;
const MESSAGE_BYTES: usize = 1 << 16;

/// Messages that one call sends.
const SEND_COUNT_MAX: usize = 32;

/// Linux's `sock_diag.h`; libc does not have them.
const SO_MEMINFO: libc::c_int = 55;
const MEMINFO_COUNT: usize = 9;
const MEMINFO_DROPS: usize = 8;

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;
    use std::time::{Duration, Instant};

    use super::*;
    use crate::sys::poll::Poller;

    fn receive(socket: &OwnedFd, batch: &mut ReceivedBatch) -> usize {
        let until = Instant::now() + Duration::from_secs(5);
        loop {
            match recv_datagrams(socket, batch) {
                Ok(count) => return count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock && Instant::now() < until => {}
                Err(error) => panic!("{error}"),
            }
        }
    }

    #[test]
    fn datagrams_arrive_with_their_sizes_and_their_marks() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(peer) = UdpSocket::bind(address) else { continue };
            let near = connect_udp(&peer.local_addr().unwrap(), None, true).unwrap();
            let name: SocketAddr = rustix::net::getsockname(&near).unwrap().try_into().unwrap();
            peer.connect(name).unwrap();
            let peer: OwnedFd = peer.into();
            let list = [
                OutgoingDatagrams { bytes: vec![1; 2500], segment_bytes: 1000, ecn: 2 },
                OutgoingDatagrams { bytes: vec![2; 300], segment_bytes: 0, ecn: 0 },
            ];
            assert_eq!(send_datagrams(&peer, address.starts_with('1'), &list).unwrap(), 2);
            let mut batch = ReceivedBatch::new();
            let mut sizes = Vec::new();
            while sizes.iter().sum::<usize>() < 2800 {
                for idx in 0..receive(&near, &mut batch) {
                    let (message, bytes) = batch.message(idx);
                    assert_eq!(message.ecn, if bytes[0] == 1 { 2 } else { 0 }, "{address}");
                    sizes.extend(bytes.chunks(message.segment_bytes).map(<[u8]>::len));
                }
            }
            assert_eq!(sizes, [1000, 1000, 500, 300], "{address}");
        }
    }

    #[test]
    fn datagrams_that_find_no_space_are_counted() {
        let peer = UdpSocket::bind("127.0.0.1:0").unwrap();
        let near = connect_udp(&peer.local_addr().unwrap(), None, false).unwrap();
        let name: SocketAddr = rustix::net::getsockname(&near).unwrap().try_into().unwrap();
        assert_eq!(dropped_count(&near), 0);
        set_option(near.as_fd(), libc::SOL_SOCKET, libc::SO_RCVBUF, 4096).unwrap();
        (0..64).for_each(|_| assert_eq!(peer.send_to(&[0; 1000], name).unwrap(), 1000));
        assert!(dropped_count(&near) > 0);
    }

    #[test]
    fn an_error_is_reported_although_the_socket_has_been_and_hides_no_datagram() {
        let peer = UdpSocket::bind("127.0.0.1:0").unwrap();
        let near = connect_udp(&peer.local_addr().unwrap(), None, false).unwrap();
        let name: SocketAddr = rustix::net::getsockname(&near).unwrap().try_into().unwrap();
        let mut poller = Poller::new().unwrap();
        poller.watch_reading(&near, 7).unwrap();
        let timeout = Duration::from_secs(5);
        peer.send_to(&[1; 10], name).unwrap();
        assert_eq!(poller.wait(timeout).unwrap(), 1);
        // What is sent now meets a closed port, as may happen while datagrams are received.
        drop(peer);
        let datagram = OutgoingDatagrams { bytes: vec![0; 10], ..OutgoingDatagrams::default() };
        send_datagrams(&near, true, &[datagram]).unwrap();
        assert_eq!(poller.wait(timeout).unwrap(), 1, "the error is an edge");
        assert!(poller.event(0).readable);
        let mut batch = ReceivedBatch::new();
        let error = recv_datagrams(&near, &mut batch).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
        assert_eq!(recv_datagrams(&near, &mut batch).unwrap(), 1);
    }

    #[test]
    fn a_port_where_nothing_listens_is_reported() {
        let closed = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let near = connect_udp(&closed, None, false).unwrap();
        send_datagrams(
            &near,
            true,
            &[OutgoingDatagrams { bytes: vec![0; 10], ..OutgoingDatagrams::default() }],
        )
        .unwrap();
        let error = recv_datagrams(&near, &mut ReceivedBatch::new()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
    }
}
