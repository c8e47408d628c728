//! Runs the binary and reads what it says.

use std::env;
use std::ffi::OsString;
use std::fs::{self, File};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::thread;
use std::time::Duration;

use serde_json::Value;
use squall_testkit::{Process, wait_until};
use tempfile::TempDir;

/// No run here takes nearly as long; what does is hanging.
const PATIENCE: Duration = Duration::from_secs(90);

/// Tests that judge latencies have the machine to themselves.
static MACHINE: RwLock<()> = RwLock::new(());

/// A run under way.
pub(crate) struct Running {
    pub(crate) process: Process,
    folder: TempDir,
    _share: Option<RwLockReadGuard<'static, ()>>,
}

/// A run that has ended.
#[derive(Debug, Clone)]
pub(crate) struct Ended {
    /// `None`: killed by a signal.
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    /// Peak resident memory in bytes, as last seen while it ran.
    pub(crate) rss_bytes: u64,
}

/// Waits until no run of another test is under way, and keeps them waiting. Runs must then be started by
/// [`start_alone`].
pub(crate) fn quiet_machine() -> RwLockWriteGuard<'static, ()> {
    MACHINE.write().unwrap_or_else(PoisonError::into_inner)
}

/// Starts squall with these arguments, while other tests run.
pub(crate) fn start(args: &[&str]) -> Running {
    let share = MACHINE.read().unwrap_or_else(PoisonError::into_inner);
    Running { _share: Some(share), ..start_alone(args) }
}

/// Starts squall with these arguments while this test has the machine to itself.
pub(crate) fn start_alone(args: &[&str]) -> Running {
    let mut command = Command::new(binary());
    command.args(args);
    start_command(command)
}

/// The binary that was built with the tests, or the one that `SQUALL_BINARY` names, such as a release build.
pub(crate) fn binary() -> OsString {
    env::var_os("SQUALL_BINARY").unwrap_or_else(|| env!("CARGO_BIN_EXE_squall").into())
}

/// Starts any command that becomes squall in the end.
pub(crate) fn start_command(mut command: Command) -> Running {
    let folder = TempDir::new().expect("a temporary folder");
    let create =
        |name: &str| File::create(folder.path().join(name)).expect("the temporary folder is writable");
    command.stdout(create("stdout")).stderr(create("stderr")).env("XDG_STATE_HOME", folder.path());
    Running { process: Process::start(&mut command), folder, _share: None }
}

/// Tries every peer of a table, four at a time; panics with all that is wrong, if anything is.
#[track_caller]
pub(crate) fn assert_none_complains<P: Sync>(peers: &[P], complaint: impl Fn(&P) -> Option<String> + Sync) {
    let complaints = Mutex::new(Vec::new());
    let next = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while let Some(peer) = peers.get(next.fetch_add(1, Ordering::Relaxed)) {
                    complaints.lock().unwrap_or_else(PoisonError::into_inner).extend(complaint(peer));
                }
            });
        }
    });
    let complaints = complaints.into_inner().unwrap_or_else(PoisonError::into_inner);
    assert!(complaints.is_empty(), "{} of {}:\n{}", complaints.len(), peers.len(), complaints.join("\n"));
}

/// Runs squall to its end with JSON on standard output, saving nothing.
pub(crate) fn run(args: &[&str]) -> Ended {
    start(&with_json(args)).wait()
}

/// Arguments, and those that make the output JSON alone.
pub(crate) fn with_json<'a>(args: &[&'a str]) -> Vec<&'a str> {
    [args, &["--json", "-", "--quiet", "--no-save"]].concat()
}

impl Running {
    /// Waits for the end. Panics when there is none.
    pub(crate) fn wait(mut self) -> Ended {
        let mut rss_bytes = 0;
        let mut status = None;
        let ended = wait_until(PATIENCE, || {
            rss_bytes = peak_rss(self.process.pid()).unwrap_or(rss_bytes);
            status = self.process.wait(Duration::ZERO);
            status.is_some()
        });
        let (stdout, stderr) = (self.read("stdout"), self.read("stderr"));
        assert!(ended, "squall hangs; it said:\n{stdout}\n{stderr}");
        Ended { code: status.and_then(|status| status.code()), stdout, stderr, rss_bytes }
    }

    /// What it has written to standard error so far.
    pub(crate) fn said(&self) -> String {
        self.read("stderr")
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.folder.path().join(name)).expect("squall writes UTF-8")
    }
}

impl Ended {
    /// The whole result. Panics when there is none on standard output.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("no JSON ({error}) from {self:#?}"))
    }

    /// A whole number of the result, such as `/totals/ok`.
    pub(crate) fn count(&self, pointer: &str) -> u64 {
        let json = self.json();
        let number = json.pointer(pointer).and_then(Value::as_u64);
        number.unwrap_or_else(|| panic!("no number at {pointer} in {json:#}"))
    }

    /// A number of the result, such as `/latency_us/p99`.
    pub(crate) fn number(&self, pointer: &str) -> f64 {
        let json = self.json();
        let number = json.pointer(pointer).and_then(Value::as_f64);
        number.unwrap_or_else(|| panic!("no number at {pointer} in {json:#}"))
    }

    /// Cause, phase and count of every kind of failure.
    pub(crate) fn errors(&self) -> Vec<(String, String, u64)> {
        let text = |error: &Value, key: &str| error[key].as_str().unwrap_or_default().to_owned();
        let row = |error: &Value| {
            (text(error, "cause"), text(error, "phase"), error["count"].as_u64().unwrap_or(0))
        };
        self.json()["errors"].as_array().into_iter().flatten().map(row).collect()
    }

    /// Asserts that every request ended in exactly one count, and returns how many there were.
    #[track_caller]
    pub(crate) fn assert_all_counted(&self) -> u64 {
        let [requests, ok, failed, interrupted] =
            ["requests", "ok", "failed", "interrupted"].map(|name| self.count(&format!("/totals/{name}")));
        assert_eq!(requests, ok + failed + interrupted, "{self:#?}");
        assert_eq!(failed, self.errors().iter().map(|(_, _, count)| count).sum::<u64>(), "{self:#?}");
        assert_eq!(ok, self.count("/latency_us/count"), "{self:#?}");
        requests
    }
}

pub(crate) fn peak_rss(pid: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kibibytes: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kibibytes * 1024)
}
