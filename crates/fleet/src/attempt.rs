//! The opening of one way to an agent: its process, what it says before it speaks the protocol, and how long each answer may take.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

use crate::protocol::Trouble;

/// The opening of one way, which another thread may give up: what is read from a process cannot be waited for with a limit.
#[derive(Debug, Clone, Default)]
pub(crate) struct Attempt(Arc<Mutex<Trying>>);

#[derive(Debug, Default)]
struct Trying {
    process: Option<Pid>,
    /// What is awaited, and since when.
    awaited: Option<(Awaited, Instant)>,
    is_given_up: bool,
}

/// What the other end owes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Awaited {
    /// The first word after ssh was started: hosts are reached, and who logs in is known.
    Login,
    /// The first word after `kubectl exec` was started.
    Exec,
    /// That the program arrived, which was handed to ssh: the last of it may still be on its way.
    Program,
    /// An answer of the agent.
    Answer,
}

impl Attempt {
    fn trying(&self) -> MutexGuard<'_, Trying> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Its process: given up, it is killed.
    pub(crate) fn started(&self, child: &Child) {
        let mut trying = self.trying();
        trying.process = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        if trying.is_given_up {
            trying.end();
        }
    }

    /// Whether it is to end.
    pub(crate) fn is_given_up(&self) -> bool {
        self.trying().is_given_up
    }

    /// From now on this is awaited.
    pub(crate) fn awaits(&self, what: Awaited) {
        self.trying().awaited = Some((what, Instant::now()));
    }

    /// From now on nothing is awaited: something is being done that takes as long as it takes.
    pub(crate) fn works(&self) {
        self.trying().awaited = None;
    }

    /// What has not come in its time.
    pub(crate) fn overdue(&self) -> Option<Awaited> {
        let (what, since) = self.trying().awaited?;
        (since.elapsed() > what.time_max()).then_some(what)
    }

    /// Ends the process, and all that it has started.
    pub(crate) fn give_up(&self) {
        let mut trying = self.trying();
        trying.is_given_up = true;
        trying.end();
    }
}

impl Awaited {
    fn time_max(self) -> Duration {
        match self {
            Self::Login | Self::Exec => LOGIN_MAX,
            Self::Program => ARRIVAL_MAX,
            Self::Answer => ANSWER_MAX,
        }
    }

    /// That it did not come.
    pub(crate) fn trouble(self) -> Trouble {
        let seconds = self.time_max().as_secs();
        match self {
            Self::Login => Trouble::new(
                format!("its login printed nothing for {seconds} s"),
                "try it by hand: `ssh HOST true` must finish without a prompt",
            ),
            Self::Exec => Trouble::new(
                format!("`kubectl exec` into its pod printed nothing for {seconds} s"),
                "try it by hand: `kubectl exec -i POD -- true`; proxies between here and the API server must let WebSockets through",
            ),
            Self::Program => Trouble::new(
                format!("squall was sent there, but has not responded for {seconds} s"),
                "check the network and the disk there, or install squall there",
            ),
            Self::Answer => Trouble::no_agent(&format!("nothing was received from it for {seconds} s")),
        }
    }
}

impl Trying {
    fn end(&mut self) {
        if let Some(process) = self.process.take() {
            // One that has ended meanwhile needs no signal.
            let _ = kill_process_group(process, Signal::KILL);
        }
    }
}

/// An agent that was started.
#[derive(Debug)]
pub(crate) struct Opened {
    /// The process that carries it.
    pub child: Child,
    /// Orders go here.
    pub orders: ChildStdin,
    /// Reports come from here.
    pub reports: BufReader<ChildStdout>,
    /// What it said on standard error, the last part.
    pub errors: Errors,
}

/// The last part of what a process says on standard error.
#[derive(Debug, Clone, Default)]
pub(crate) struct Errors(Arc<Mutex<String>>);

impl Opened {
    /// Starts a process in a group of its own: Ctrl-C here is for the controller to pass on.
    pub(crate) fn spawn(mut command: Command, attempt: &Attempt) -> Result<Self, Trouble> {
        let program = command.get_program().to_string_lossy().into_owned();
        command.process_group(0);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let refused = |error: std::io::Error| {
            Trouble::new(format!("cannot start `{program}`: {error}"), "install it, or correct its name")
        };
        let mut child = command.spawn().map_err(refused)?;
        attempt.started(&child);
        let (Some(orders), Some(reports), Some(stderr)) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            return Err(Trouble::new(format!("`{program}` has no streams"), "try again"));
        };
        let errors = Errors::default();
        errors.follow(stderr);
        Ok(Self { child, orders, reports: BufReader::new(reports), errors })
    }

    /// A line that the other end writes before it speaks the protocol; what does not begin with [`MARK`] is noise of a shell.
    pub(crate) fn line(&mut self) -> Option<String> {
        for _ in 0..NOISE_LINE_COUNT_MAX {
            let mut line = Vec::new();
            let length = (&mut self.reports).take(LINE_BYTES_MAX).read_until(b'\n', &mut line).ok()?;
            if length == 0 {
                return None;
            }
            if let Some(text) = String::from_utf8_lossy(&line).trim_end().strip_prefix(MARK) {
                return Some(text.trim_start().to_owned());
            }
        }
        None
    }
}

impl Opened {
    /// Ends the process; gives what it says on standard error.
    pub(crate) fn end(mut self) -> Errors {
        let _ = self.orders.flush();
        drop(self.orders);
        drop(self.reports);
        let _ = self.child.kill();
        let _ = self.child.wait();
        self.errors
    }
}

impl Errors {
    /// Reads the stream to its end, on a thread of its own.
    pub(crate) fn follow(&self, mut stream: impl Read + Send + 'static) {
        let text = Arc::clone(&self.0);
        let follow = move || {
            let mut part = [0; 4096];
            while let Ok(length @ 1..) = stream.read(&mut part) {
                let Ok(mut text) = text.lock() else { return };
                text.push_str(&String::from_utf8_lossy(&part[..length]));
                let excess = text.len().saturating_sub(ERROR_BYTES_MAX);
                let cut = (excess..=text.len()).find(|&at| text.is_char_boundary(at)).unwrap_or(0);
                text.drain(..cut);
            }
        };
        // Without the thread there is no explanation, and the pipe's capacity is enough for most.
        let _ = thread::Builder::new().name("stderr".to_owned()).spawn(follow);
    }

    /// What was said.
    pub(crate) fn text(&self) -> String {
        // The process may have ended this moment: its last words are on their way.
        thread::sleep(LAST_WORDS_WAIT);
        self.0.lock().map_or_else(|_| String::new(), |text| text.trim().to_owned())
    }
}

/// Begins each line that the fetching script writes.
pub(crate) const MARK: &str = "squall-agent:";

/// Ten seconds for each of two hosts to be reached, as ssh is configured, and ten to log in.
const LOGIN_MAX: Duration = Duration::from_secs(30);

/// Megabytes may lie in buffers, and networks may be slow.
const ARRIVAL_MAX: Duration = Duration::from_secs(120);

/// How long an agent that was started may be silent while it is greeted: each of its answers is ready at once.
const ANSWER_MAX: Duration = Duration::from_secs(20);

const LAST_WORDS_WAIT: Duration = Duration::from_millis(50);
const ERROR_BYTES_MAX: usize = 8192;
const NOISE_LINE_COUNT_MAX: usize = 1000;
const LINE_BYTES_MAX: u64 = 8192;
