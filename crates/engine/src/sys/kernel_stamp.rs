//! Reads with the time at which the kernel received the data (Linux `SO_TIMESTAMPING`), so that a loop may batch its reads
//! without adding the batch's wait to the latencies.
#![expect(unsafe_code, reason = "rustix lacks the control message")]

use std::io;
use std::mem;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::OnceLock;

use super::socket::{Recv, set_option};

/// One read and the wall-clock time at which the kernel received its last segment.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StampedRead {
    /// Bytes read; 0: the peer has closed.
    pub(crate) bytes: usize,
    /// Nanoseconds since the epoch; `None` when the kernel gave no stamp.
    pub(crate) wall_ns: Option<u64>,
}

/// Asks the kernel to stamp what it receives on this socket. Without effect on sockets that cannot (Unix sockets).
pub(crate) fn enable_receive_stamps(socket: &impl AsFd) -> io::Result<()> {
    let flags = libc::SOF_TIMESTAMPING_RX_SOFTWARE | libc::SOF_TIMESTAMPING_SOFTWARE;
    set_option(socket.as_fd(), libc::SOL_SOCKET, libc::SO_TIMESTAMPING, flags.cast_signed())
}

/// A socket that does nothing but keep stamping switched on: the kernel switches it on in the background when the first
/// socket asks, and would leave the first responses of a run unstamped.
///
/// `None` where the system has no stamps, as emulators and some sandboxes.
pub(crate) fn keep_stamping() -> io::Result<Option<OwnedFd>> {
    let socket = std::net::UdpSocket::bind("127.0.0.1:0")?;
    match enable_receive_stamps(&socket) {
        Ok(()) => Ok(Some(socket.into())),
        Err(error) if error.raw_os_error() == Some(libc::ENOPROTOOPT) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Whether this system stamps what it receives. Without stamps answers are read as soon as they come, never in batches.
pub(crate) fn has_stamps() -> bool {
    static HAS_STAMPS: OnceLock<bool> = OnceLock::new();
    *HAS_STAMPS.get_or_init(|| keep_stamping().is_ok_and(|socket| socket.is_some()))
}

/// When the first byte came that the next read will give, in nanoseconds since the epoch; `None`: nothing is there, or it
/// has no stamp.
pub(crate) fn peek_stamp(socket: &impl AsFd) -> Option<u64> {
    recv_stamped(socket, &mut [0], Recv::Peek).ok()?.wall_ns
}

/// Reads up to `buf.len()` bytes.
pub(crate) fn recv_stamped(socket: &impl AsFd, buf: &mut [u8], how: Recv) -> io::Result<StampedRead> {
    let socket = socket.as_fd();
    let flags = how.flags().bits() as libc::c_int;
    let mut control = ControlBuffer([0; CONTROL_BYTES]);
    let mut part = libc::iovec { iov_base: buf.as_mut_ptr().cast(), iov_len: buf.len() };
    // SAFETY: `msghdr` is a plain C struct for which all zeroes is a valid value.
    let mut message: libc::msghdr = unsafe { mem::zeroed() };
    message.msg_iov = &raw mut part;
    message.msg_iovlen = 1;
    message.msg_control = control.0.as_mut_ptr().cast();
    message.msg_controllen = CONTROL_BYTES as _;
    // The call itself instead of the C library's function, which keeps book of where a thread may be cancelled.
    // SAFETY: `message` points to one buffer that is exclusively borrowed and to an aligned control buffer, both with
    // their true lengths, and all of them outlive the call.
    let bytes = unsafe { libc::syscall(libc::SYS_recvmsg, socket.as_raw_fd(), &raw mut message, flags) };
    match usize::try_from(bytes) {
        Ok(bytes) => Ok(StampedRead { bytes, wall_ns: stamp_of(&message) }),
        Err(_) => Err(io::Error::last_os_error()),
    }
}

/// The software stamp among the control messages of a received message.
fn stamp_of(message: &libc::msghdr) -> Option<u64> {
    // SAFETY: `message` was filled by a successful recvmsg, so its control buffer holds well-formed messages within
    // `msg_controllen`, which is what these macros walk; a stamp's data are three `timespec`s (read unaligned).
    unsafe {
        let mut header = libc::CMSG_FIRSTHDR(message);
        while !header.is_null() {
            if (*header).cmsg_level == libc::SOL_SOCKET && (*header).cmsg_type == libc::SCM_TIMESTAMPING {
                let software: libc::timespec =
                    libc::CMSG_DATA(header).cast::<libc::timespec>().read_unaligned();
                let wall_ns = software.tv_sec as u64 * 1_000_000_000 + software.tv_nsec as u64;
                return (wall_ns != 0).then_some(wall_ns);
            }
            header = libc::CMSG_NXTHDR(message, header);
        }
    }
    None
}

/// Control messages must be aligned like `cmsghdr`.
#[repr(align(8))]
struct ControlBuffer([u8; CONTROL_BYTES]);

/// Space for one `scm_timestamping` (three `timespec`s) and some slack.
const CONTROL_BYTES: usize = 128;

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::BorrowedFd;
    use std::time::Duration;

    use super::*;
    use crate::sys::{Clock, monotonic_ns};

    #[test]
    fn stamp_is_the_time_of_arrival_not_of_reading() {
        check_stamps(|receiver, buf| {
            let read = recv_stamped(&receiver, buf, Recv::Take).unwrap();
            assert_eq!(&buf[..read.bytes], b"hello");
            read
        });
    }

    #[test]
    fn what_is_dropped_has_its_stamp_too() {
        check_stamps(|receiver, buf| {
            let read = recv_stamped(&receiver, buf, Recv::Drop).unwrap();
            assert_eq!((read.bytes, buf), (5, [0; 16].as_mut_slice()));
            read
        });
    }

    /// `read` takes `hello` off the socket, long after it came.
    #[track_caller]
    fn check_stamps(read: impl Fn(BorrowedFd<'_>, &mut [u8]) -> StampedRead) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut sender = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (receiver, _) = listener.accept().unwrap();
        enable_receive_stamps(&receiver).unwrap();
        // The kernel switches stamping on in the background: the first segments may come without.
        let (before, after, wall_ns) = loop {
            let before = monotonic_ns();
            sender.write_all(b"hello").unwrap();
            let after = monotonic_ns();
            std::thread::sleep(Duration::from_millis(30));
            if let Some(wall_ns) = read(receiver.as_fd(), &mut [0; 16]).wall_ns {
                break (before, after, wall_ns);
            }
        };
        let stamp = Clock::new().monotonic_of(wall_ns);
        let slack = 1_000_000;
        assert!(stamp + slack >= before && stamp <= after + 20 * slack, "{before} {stamp} {after}");
    }
}
