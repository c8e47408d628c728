//! Children: found on the machine, started in a process group and a folder of their own, ended with everything they started.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};

/// A child and its process group; killed on drop.
#[derive(Debug)]
pub struct Process {
    child: Child,
    name: String,
}

impl Process {
    /// Starts `command` in a new process group, without standard input.
    pub fn start(command: &mut Command) -> Self {
        let name = command.get_program().to_string_lossy().into_owned();
        let child = command.process_group(0).stdin(Stdio::null()).spawn();
        let child = child.unwrap_or_else(|error| panic!("{name} does not start: {error}"));
        Self { child, name }
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal to the child alone.
    pub fn signal(&self, signal: Signal) {
        kill_process(self.raw_pid(), signal)
            .unwrap_or_else(|error| panic!("cannot signal {}: {error}", self.name));
    }

    /// Kills the child and everything in its group, at once, and waits for the child.
    pub fn kill(&mut self) {
        // The group is gone when all of its processes have ended.
        let _ = kill_process_group(self.raw_pid(), Signal::KILL);
        let _ = self.child.wait();
    }

    /// Waits for the child's own end; `None` when `limit` passes first.
    pub fn wait(&mut self, limit: Duration) -> Option<ExitStatus> {
        let deadline = Instant::now() + limit;
        loop {
            let ended = self.child.try_wait();
            match ended.unwrap_or_else(|error| panic!("cannot wait for {}: {error}", self.name)) {
                Some(status) => return Some(status),
                None if Instant::now() >= deadline => return None,
                None => thread::sleep(Duration::from_millis(2)),
            }
        }
    }

    /// Waits until `address` accepts. Panics with `log`'s content when the child ends before, or after ten seconds.
    pub fn wait_until_accepting(&mut self, address: SocketAddr, log: &Path) {
        let accepting = wait_until(Duration::from_secs(10), || {
            let ended = self.child.try_wait().is_ok_and(|status| status.is_some());
            ended || TcpStream::connect(address).is_ok()
        });
        let running = self.wait(Duration::ZERO).is_none();
        if !(accepting && running) {
            let said = std::fs::read_to_string(log).unwrap_or_default();
            panic!("{} does not listen on {address}; its log says:\n{said}", self.name);
        }
    }

    fn raw_pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The path of an installed program. Panics with the remedy when it is missing: a test that skips proves nothing.
pub fn program(name: &str) -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    // Debian keeps servers in sbin, which is not on every user's PATH.
    let folders = std::env::split_paths(&path).chain(["/usr/sbin".into(), "/usr/local/sbin".into()]);
    let found = folders.map(|folder| folder.join(name)).find(|candidate| candidate.is_file());
    found.unwrap_or_else(|| panic!("{name} is not installed: run `make test-deps`"))
}

/// A port of 127.0.0.1 that was free a moment ago, never given twice by one process. It lies below the range from which
/// the kernel takes clients' ports, so no load of a concurrent test can take it meanwhile.
pub fn free_port() -> u16 {
    const FIRST: u32 = 10_000;
    const COUNT: u32 = 20_000;
    static TRIED: AtomicU32 = AtomicU32::new(0);
    let offset = std::process::id().wrapping_mul(97);
    loop {
        let tried = TRIED.fetch_add(1, Ordering::Relaxed);
        assert!(tried < COUNT, "no port is free below the ephemeral range");
        let port = (FIRST + offset.wrapping_add(tried) % COUNT) as u16;
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}

/// Asks until `condition` holds; false when `limit` passes first.
pub fn wait_until(limit: Duration, mut condition: impl FnMut() -> bool) -> bool {
    let deadline = Instant::now() + limit;
    loop {
        if condition() {
            return true;
        }
        if Instant::now() >= deadline {
            return false;
        }
        thread::sleep(Duration::from_millis(2));
    }
}
