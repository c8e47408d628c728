//! The operating system, and the only place where `unsafe` is allowed: clocks, epoll, sockets, process limits.
//!
//! Nearly everything goes through `rustix`, which is safe; `unsafe` remains for what it does not offer.

mod clock;
mod cpu_limit;
mod kernel_stamp;
mod machine;
mod poll;
mod process;
#[cfg(test)]
pub(crate) mod simulated;
mod socket;
mod udp;

pub(crate) use clock::{Clock, nanoseconds};
pub(crate) use kernel_stamp::keep_stamping;
pub(crate) use machine::{MachineProbe, ports_available, process_data_bytes};
pub(crate) use poll::Readiness;
pub(crate) use process::{involuntary_switch_count, nofile_limit_hard, raise_nofile};
pub(crate) use socket::{Recv, Segments};
pub(crate) use udp::{OutgoingDatagrams, ReceivedBatch};

// What an event loop asks of the system: the time, readiness, and bytes in and out. In tests, a simulated network may answer instead.
#[cfg(not(test))]
pub(crate) use self::{
    clock::{monotonic_ns, sleep_until, thread_cpu, wait_until},
    kernel_stamp::{enable_receive_stamps, has_stamps, peek_stamp, recv_stamped},
    poll::Poller,
    socket::{
        Connect, Fd, connect_tcp, connect_unix, connection_error, recv, reset_on_close, segments, send,
        send_file,
    },
    udp::{
        connect_udp, dropped_count, enlarge_buffers, has_segmentation, quic_seed, recv_datagrams,
        send_datagrams,
    },
};
#[cfg(test)]
pub(crate) use simulated::{
    Connect, Fd, Poller, connect_tcp, connect_udp, connect_unix, connection_error, dropped_count,
    enable_receive_stamps, enlarge_buffers, has_segmentation, has_stamps, monotonic_ns, peek_stamp,
    quic_seed, recv, recv_datagrams, recv_stamped, reset_on_close, segments, send, send_datagrams, send_file,
    sleep_until, thread_cpu, wait_until,
};
