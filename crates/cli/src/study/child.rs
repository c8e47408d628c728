//! Makes the runs of a study, each in a process of its own, and reads their records.
//!
//! Owns: the process of the current run, and what a signal to the study does to it. Never: which runs are made.

use std::ffi::OsString;
use std::io::{self, Read};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, PidfdFlags, Signal, getpid, getppid, kill_process, pidfd_open};
use squall_measure::{Monitor, RunRecord};
use squall_report::store::{self, RunFolder, Store};

use super::watch::Watch;
use crate::faces::refused;
use crate::failure::{ExitCode, Failure};
use crate::{output, signals};

/// A run that was made.
pub(crate) struct Made {
    pub record: RunRecord,
    pub folder: PathBuf,
}

/// Says whether these arguments could be run, in the words that running them would have; nothing is sent.
pub(crate) fn check(args: &[String]) -> Result<(), Failure> {
    let output =
        command(args, &["--dry-run", "--no-save"])?.output().map_err(|error| cannot_start(&error))?;
    if output.status.success() {
        return Ok(());
    }
    Err(failure_of(ExitCode::Usage, &output.stderr))
}

/// The words in which a run failed.
fn failure_of(code: ExitCode, stderr: &[u8]) -> Failure {
    let text = String::from_utf8_lossy(stderr);
    let part = |name: &str| {
        text.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default().trim().to_owned()
    };
    Failure { code, message: part("error:"), help: part("help:") }
}

/// Makes runs, one at a time, until a signal stops the study.
pub(crate) struct Maker {
    shared: Arc<Shared>,
    _signals: signals::Watch,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    has_signal: Condvar,
}

#[derive(Default)]
struct State {
    signal_count: u32,
    /// The process of the current run; cleared before it is reaped, so that its number is never another process's.
    current: Option<Pid>,
}

impl Maker {
    /// The first signal drains the current run and makes it the last, the second ends it at once, the third ends the study with it.
    pub(crate) fn start() -> Result<Self, Failure> {
        let shared = Arc::<Shared>::default();
        let to_signal = Arc::clone(&shared);
        let signals = signals::Watch::start(move |number| to_signal.pass_on(number))?;
        Ok(Self { shared, _signals: signals })
    }

    /// Waits between two runs; a signal ends the wait. False: it has stopped the study.
    pub(crate) fn pause(&self, time: Duration) -> bool {
        let waits = |state: &mut State| state.signal_count == 0;
        drop(self.shared.has_signal.wait_timeout_while(self.shared.lock(), time, waits));
        !self.is_stopped()
    }

    /// Runs squall with these arguments, saved below `place`, while `watched` processes are looked at. `None`: stopped by a signal.
    ///
    /// A run that missed its thresholds or overloaded the generator is a run; one without a record is a failure, and so is the first
    /// one below `place` when it cannot reach its target.
    pub(crate) fn make(
        &self,
        args: &[String],
        place: &Path,
        watched: &[String],
    ) -> Result<Option<Made>, Failure> {
        let before = Store::at(place).latest().ok();
        let watch = Watch::start(watched);
        let results = place.to_string_lossy();
        let ended = self.run(command(args, &["--quiet", "--quiet", "--results", &results])?)?;
        let monitors = watch.stop();
        let Some((status, stderr)) = ended else { return Ok(None) };
        // A run that ended by a signal of its own was meant to be the last, too.
        if self.is_stopped() || matches!(status.code(), None | Some(STOPPED)) {
            self.shared.lock().signal_count |= 1;
            return Ok(None);
        }
        let folder = Store::at(place).latest().ok().filter(|folder| Some(folder) != before.as_ref());
        let is_unreachable = status.code() == Some(ExitCode::TargetUnreachable as i32);
        let folder = match folder {
            Some(folder) if before.is_some() || !is_unreachable => folder,
            _ => return Err(without_record(args, is_unreachable, &stderr)),
        };
        let mut record = store::open(&folder).map_err(|error| refused(&error))?;
        refuse_incomplete(status.code(), &record)?;
        add_monitors(&mut record, &folder, monitors)?;
        Ok(Some(Made { record, folder }))
    }

    /// The exit code of a study, unless a signal stopped it.
    pub(crate) fn finish(self, code: ExitCode) -> Result<ExitCode, Failure> {
        if !self.is_stopped() {
            return Ok(code);
        }
        Err(Failure {
            code: ExitCode::Aborted,
            message: "stopped".to_owned(),
            help: "the completed runs are saved in the folder of the study".to_owned(),
        })
    }

    fn is_stopped(&self) -> bool {
        self.shared.lock().signal_count > 0
    }

    /// Runs it to its end: its status, and the last of what it wrote to standard error.
    fn run(&self, mut command: Command) -> Result<Option<(ExitStatus, Vec<u8>)>, Failure> {
        // In a group of its own, Ctrl-C on the terminal reaches it once, through the study.
        command.process_group(0).stdout(Stdio::null()).stderr(Stdio::piped());
        command.env(STUDY, getpid().as_raw_pid().to_string());
        let mut state = self.shared.lock();
        if state.signal_count > 0 {
            return Ok(None);
        }
        let mut child = command.spawn().map_err(|error| cannot_start(&error))?;
        state.current = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        drop(state);
        let stderr = child.stderr.take().map(end_of).unwrap_or_default();
        self.shared.lock().current = None;
        let status = child.wait().map_err(|error| cannot_start(&error))?;
        Ok(Some((status, stderr)))
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn pass_on(&self, number: u32) {
        let mut state = self.lock();
        state.signal_count = number;
        if let Some(current) = state.current {
            // Two of a kind could become one on their way. A run that has just ended needs none.
            let signal = if number == 1 { Signal::TERM } else { Signal::INT };
            let _ = kill_process(current, signal);
        }
        drop(state);
        self.has_signal.notify_all();
        match number {
            1 => output::note("\nstopping after the current run; press Ctrl-C again to stop it at once"),
            2 => {}
            _ => signals::leave(),
        }
    }
}

/// In a run of a study: ends it in order when the study is gone, since nothing else would then.
///
/// Not by the kernel's parent-death signal: that comes once for each thread of the parent, and a second signal means something else.
pub(crate) fn follow_study() {
    let study = std::env::var(STUDY).ok().and_then(|pid| Pid::from_raw(pid.parse().ok()?));
    // Whatever a run starts inherits the variable, and has another parent.
    let Some(study) = study.filter(|study| getppid() == Some(*study)) else { return };
    let Ok(process) = pidfd_open(study, PidfdFlags::empty()) else { return };
    let wait = move || {
        // It became ready by ending, or had ended and left its number to another process.
        while getppid() == Some(study) && poll(&mut [PollFd::new(&process, PollFlags::IN)], None).is_err() {}
        let _ = kill_process(getpid(), Signal::TERM);
    };
    // Without a thread for it, the run goes on to its end.
    let _ = thread::Builder::new().name("study".to_owned()).spawn(wait);
}

/// The last bytes that a reader gives, once it has ended.
fn end_of(mut reader: impl Read) -> Vec<u8> {
    let (mut kept, mut piece) = (Vec::new(), [0; 8192]);
    loop {
        match reader.read(&mut piece) {
            Ok(count @ 1..) => kept.extend_from_slice(&piece[..count]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            _ => return kept,
        }
        let surplus = kept.len().saturating_sub(STDERR_BYTES_MAX);
        kept.drain(..surplus);
    }
}

fn without_record(args: &[String], is_unreachable: bool, stderr: &[u8]) -> Failure {
    let code = if is_unreachable { ExitCode::TargetUnreachable } else { ExitCode::Usage };
    let failure = failure_of(code, stderr);
    if failure.message.is_empty() {
        let message = format!("a run failed: `squall {}`", args.join(" "));
        return Failure::usage(message, "run it alone");
    }
    failure
}

/// A run whose hook failed did not measure what is compared.
fn refuse_incomplete(code: Option<i32>, record: &RunRecord) -> Result<(), Failure> {
    if code != Some(ExitCode::Incomplete as i32) {
        return Ok(());
    }
    let problem = record.parts.iter().find_map(|part| part.problem.as_deref()).unwrap_or("a step failed");
    Err(Failure {
        code: ExitCode::Incomplete,
        message: problem.to_owned(),
        help: "run that plan alone".to_owned(),
    })
}

/// What was watched from here belongs to the run as if it had watched itself.
fn add_monitors(record: &mut RunRecord, folder: &Path, monitors: Vec<(u64, Monitor)>) -> Result<(), Failure> {
    if monitors.is_empty() {
        return Ok(());
    }
    for (since_unix_ms, mut monitor) in monitors {
        let shift_s = (since_unix_ms as f64 - record.started_unix_ms as f64) / 1e3;
        monitor.samples.iter_mut().for_each(|sample| sample.0 += shift_s);
        monitor.samples.retain(|sample| sample.0 >= 0.0);
        record.monitors.push(monitor);
    }
    RunFolder::reopen(folder)
        .fill(record, &squall_report::Summary::from(&*record))
        .map_err(|error| refused(&error))
}

fn command(args: &[String], more: &[&str]) -> Result<Command, Failure> {
    let program = std::env::current_exe().map_err(|error| cannot_start(&error))?;
    let mut command = Command::new(program);
    // What follows a lone `--` would be taken for URLs, so our own flags come first.
    let (first, rest) = args.split_first().map_or((None, args), |(first, rest)| (Some(first), rest));
    command.args(first).args(more.iter().map(OsString::from)).args(rest);
    command.stdin(Stdio::null());
    Ok(command)
}

fn cannot_start(error: &io::Error) -> Failure {
    Failure::usage(format!("cannot start squall: {error}"), "check this process's limits: `ulimit -a`")
}

/// The environment variable that gives a run the process id of its study.
const STUDY: &str = "SQUALL_STUDY_PID";

const STOPPED: i32 = ExitCode::Aborted as i32;

/// The message and the help of a failure come last.
const STDERR_BYTES_MAX: usize = 64 << 10;
