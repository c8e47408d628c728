//! How an agent is reached: a process here whose standard input and output carry it. Local, through OpenSSH, or any command.
//!
//! One connection for each machine carries everything: the program itself, files, orders, figures. Nothing listens anywhere.

use std::ffi::OsString;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};
use squall_plan::file::{Machine, MachineSettings, Reach, SshSpec};

use crate::attach::{self, ATTACHED};
use crate::binary::Binary;
use crate::link::no_agent;
use crate::logins::{FailedLogin, Logins, retried};
use crate::protocol::{Trouble, WayBack};
use crate::ssh::{self, Jump, LoginFailure};
use crate::terms::{Terms, prelude};

/// Opens the way to an agent.
pub(crate) trait Transport: Send + Sync {
    /// Starts the agent. `note` reports what takes long.
    ///
    /// # Errors
    /// When there is no way, in words for people.
    fn open(&self, attempt: &Attempt, note: &dyn Fn(&str)) -> Result<Opened, Trouble>;

    /// Whether a lost connection can be replaced.
    fn can_return(&self) -> bool {
        false
    }

    /// Opens another connection to an agent that runs; `None` when it does not run any more.
    ///
    /// # Errors
    /// When its machine cannot be reached.
    fn attach(&self, _way_back: &WayBack, _attempt: &Attempt) -> Result<Option<Opened>, Trouble> {
        Ok(None)
    }
}

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
            Self::Login => LOGIN_MAX,
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
            Self::Program => Trouble::new(
                format!("squall was sent there, but has not responded for {seconds} s"),
                "check the network and the disk there, or install squall there",
            ),
            Self::Answer => no_agent(&format!("nothing was received from it for {seconds} s")),
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

/// What the ways to all machines share.
#[derive(Debug)]
pub(crate) struct Ways {
    /// This program's own file.
    pub own_program: PathBuf,
    /// What machines are sent that do not have it.
    pub binary: Binary,
    /// Whether they keep it for the next run.
    pub keeps_program: bool,
    pub logins: Logins,
}

/// The transport of a machine.
pub(crate) fn of(machine: &Machine, ways: &Arc<Ways>) -> Arc<dyn Transport> {
    let terms = Terms { settings: machine.settings.clone(), keeps_program: ways.keeps_program };
    match &machine.reach {
        Reach::Local => {
            let words = vec![ways.own_program.clone().into_os_string(), "agent".into()];
            Arc::new(Words { words, terms })
        }
        Reach::Command(words) => Arc::new(Words { words: words.iter().map(Into::into).collect(), terms }),
        Reach::Ssh(spec) => Arc::new(Ssh { spec: spec.clone(), terms, ways: Arc::clone(ways) }),
    }
}

/// A command that is an agent.
struct Words {
    words: Vec<OsString>,
    terms: Terms,
}

impl Transport for Words {
    fn open(&self, attempt: &Attempt, _: &dyn Fn(&str)) -> Result<Opened, Trouble> {
        let (program, arguments) = self
            .words
            .split_first()
            .ok_or_else(|| Trouble::new("the command is empty", "write `command: [program, argument]`"))?;
        let mut command = Command::new(program);
        if self.terms.settings != MachineSettings::default() {
            command = Command::new("/bin/sh");
            let script = format!("{SAY}\n{}\nbecome \"$0\" \"$@\"", prelude(&self.terms));
            command.arg("-c").arg(script).arg(program);
        }
        command.args(arguments);
        Opened::spawn(command, attempt)
    }
}

/// Reports a failure as an agent does.
const SAY: &str = r#"say() { kind=$1; shift; [ "$kind" = NOTE ] || printf 'error: %s\nhelp: allow it there, or correct the machine entry\n' "$*" >&2; }"#;

/// OpenSSH, and on its other end a shell that fetches the program and becomes the agent.
struct Ssh {
    spec: SshSpec,
    terms: Terms,
    ways: Arc<Ways>,
}

impl Transport for Ssh {
    fn open(&self, attempt: &Attempt, note: &dyn Fn(&str)) -> Result<Opened, Trouble> {
        let own;
        let binary = match &self.spec.binary {
            Some(path) => {
                own = Binary::chosen(&PathBuf::from(path))?;
                &own
            }
            None => &self.ways.binary,
        };
        let (mut opened, greeting) = self.log_in(&binary.fetch_script(&self.terms), attempt, note)?;
        match binary.hand_over(&mut opened, &greeting, (attempt, note)) {
            Ok(()) => Ok(opened),
            Err(told) => Err(opened.explain(told, |errors| self.explain(errors)).trouble),
        }
    }

    fn can_return(&self) -> bool {
        true
    }

    fn attach(&self, way_back: &WayBack, attempt: &Attempt) -> Result<Option<Opened>, Trouble> {
        self.ways.logins.forget_failures();
        let script = attach::script(way_back, squall_plan::shell::quoted);
        let (opened, greeting) = self.log_in(&script, attempt, &|_| {})?;
        if greeting == ATTACHED {
            return Ok(Some(opened));
        }
        opened.explain(None, |errors| self.explain(errors));
        Ok(None)
    }
}

impl Ssh {
    /// Has a shell run the script on the machine; gives its first line as well.
    fn log_in(
        &self,
        script: &str,
        attempt: &Attempt,
        note: &dyn Fn(&str),
    ) -> Result<(Opened, String), Trouble> {
        let jump = Jump::of(&self.spec);
        retried(attempt, note, || {
            if let Some(jump) = &jump {
                let socket =
                    self.ways.logins.control_socket(jump, attempt, note).map_err(FailedLogin::plain)?;
                let command = ssh::command(&self.spec, Some((jump, &socket)), script);
                match self.log_in_once(command, attempt, note) {
                    // A separate connection works where forwarding is limited, and shows why there is none: a shared one does not.
                    Err(failed) if LoginFailure::of(&failed.errors) != LoginFailure::Final => {}
                    result => return result,
                }
            }
            self.log_in_once(ssh::command(&self.spec, None, script), attempt, note)
        })
    }

    fn log_in_once(
        &self,
        command: Command,
        attempt: &Attempt,
        note: &dyn Fn(&str),
    ) -> Result<(Opened, String), FailedLogin> {
        let permit = self.ways.logins.permit();
        let mut opened = Opened::spawn(command, attempt).map_err(FailedLogin::plain)?;
        attempt.awaits(Awaited::Login);
        let mut greeting = opened.line();
        drop(permit);
        while let Some(text) = greeting.as_ref().and_then(|line| line.strip_prefix("NOTE ")) {
            note(text);
            greeting = opened.line();
        }
        match greeting {
            Some(greeting) => Ok((opened, greeting)),
            None => Err(opened.explain(None, |errors| self.explain(errors))),
        }
    }

    fn explain(&self, errors: &str) -> Trouble {
        ssh::explain(&self.spec, ssh::port(&self.spec), errors)
    }
}

impl Opened {
    /// Starts a process in a group of its own: Ctrl-C here is for the controller to pass on.
    fn spawn(mut command: Command, attempt: &Attempt) -> Result<Self, Trouble> {
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

    /// What went wrong, by what was reported or by what the process said on standard error.
    fn explain(mut self, told: Option<Trouble>, by_errors: impl Fn(&str) -> Trouble) -> FailedLogin {
        let _ = self.orders.flush();
        drop(self.orders);
        drop(self.reports);
        let _ = self.child.kill();
        let _ = self.child.wait();
        if let Some(trouble) = told {
            return FailedLogin::plain(trouble);
        }
        let errors = self.errors.text();
        FailedLogin { trouble: by_errors(&errors), errors }
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
