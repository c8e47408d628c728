//! Plans, agents and fleets with the whole binary: local agents here, ssh in namespaces of the kernel's in [`ssh`].

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]
#![expect(clippy::print_stdout, reason = "measured times are told, not asserted")]

mod clusters;
mod deploy;
mod engines;
mod faults;
mod hooks;
mod http3;
mod kubernetes;
mod local;
mod logins;
mod lost;
mod monitors;
mod ports;
mod ptr;
mod servers;
mod site;
mod squall;
mod ssh;
mod stopping;
mod streams;
mod tools;
mod unprivileged;
mod websockets;
