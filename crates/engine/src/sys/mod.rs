//! The operating system, and the only place where `unsafe` is allowed: clocks, epoll, sockets, process limits.
//!
//! Nearly everything goes through `rustix`, which is safe; `unsafe` remains for what it does not offer.

mod clock;
mod kernel_stamp;
mod machine;
mod poll;
mod process;
mod socket;

pub(crate) use clock::{Clock, monotonic_ns, nanoseconds, sleep_until, thread_cpu, wait_until};
pub(crate) use kernel_stamp::{enable_receive_stamps, has_stamps, keep_stamping, peek_stamp, recv_stamped};
pub(crate) use machine::{MachineProbe, ports_available, process_data_bytes};
pub(crate) use poll::{Poller, Readiness};
pub(crate) use process::{involuntary_switch_count, nofile_limit_hard, raise_nofile};
pub(crate) use socket::{
    Connect, Fd, Recv, Segments, connect_tcp, connect_unix, connection_error, recv, reset_on_close, segments,
    send, send_file,
};
