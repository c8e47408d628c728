//! Servers to test against, all on loopback: scripted ones that know the truth, hostile ones that break every rule, and
//! real ones (nginx, h2o, haproxy, caddy) started as children; and a lab of machines with `sshd`, in network namespaces.
//!
//! Owns: what it starts; everything is stopped and removed on drop. Never: used outside tests and benchmarks.
//! A helper that cannot do its work panics with the reason, because a test cannot go on without it.

mod acceptor;
mod broadcast;
mod clock;
pub mod h2;
pub mod hostile;
mod identity;
pub mod lab;
mod process;
pub mod quic;
pub mod real;
mod request;
mod scripted;

pub use broadcast::{BroadcastScript, BroadcastServer};
pub use clock::sleep_until;
pub use identity::{Authority, Identity, Validity};
pub use process::{Process, free_port, program, wait_until};
pub use scripted::{Script, ScriptedServer, Served, ServedRequest, Stall};
