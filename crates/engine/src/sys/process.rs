//! Limits of this process, and what the scheduler did to its threads.
#![expect(unsafe_code, reason = "rustix lacks getrusage")]

use std::io;
use std::mem;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the soft limit of open descriptors to the hard one; returns the limit then in force.
pub(crate) fn raise_nofile() -> io::Result<u64> {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current != maximum {
        setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum })?;
    }
    Ok(nofile_limit())
}

/// How many descriptors this process may be allowed: it allows them to itself.
pub(crate) fn nofile_limit_hard() -> u64 {
    getrlimit(Resource::Nofile).maximum.unwrap_or(u64::MAX)
}

/// How many descriptors this process may have open.
pub(crate) fn nofile_limit() -> u64 {
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

/// How often the scheduler has taken the core from the calling thread, since the thread's start.
pub(crate) fn involuntary_switch_count() -> u64 {
    // SAFETY: `rusage` is a plain C struct for which all zeroes is a valid value.
    let mut usage: libc::rusage = unsafe { mem::zeroed() };
    // SAFETY: `usage` is exclusively borrowed for the call, which writes one `rusage` to it.
    let result = unsafe { libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage) };
    if result == 0 { u64::try_from(usage.ru_nivcsw).unwrap_or(0) } else { 0 }
}
