//! Logins that many machines share: one connection to each jump host, and a bound on how many log in at the same time.
//!
//! OpenSSH's default `MaxStartups 10:30:100` drops logins at random as soon as ten are under way. So there is one login at a jump
//! host, whose connection forwards to all machines behind it, and few at a time at the machines.
//! Owns: the connections to jump hosts and their control sockets. Never: what goes through them.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};
use squall_plan::limits::{LOGIN_TRY_COUNT_MAX, LOGINS_AT_ONCE_MAX};

use crate::attempt::{Attempt, Awaited, Errors, Opened};
use crate::janitor::make_folder;
use crate::protocol::Trouble;
use crate::ssh::{self, Jump, LoginFailure};

/// The logins of one controller.
#[derive(Debug)]
pub(crate) struct Logins {
    pub(crate) permits: Permits,
    jumps: Mutex<BTreeMap<Jump, Arc<Mutex<JumpConnection>>>>,
}

/// Bounds how many logins are under way.
#[derive(Debug)]
pub(crate) struct Permits {
    count_max: usize,
    under_way: Mutex<usize>,
    one_ended: Condvar,
}

/// One of the logins that may be under way; dropped when it has succeeded or failed.
pub(crate) struct Permit<'p>(&'p Permits);

/// The connection to a jump host, opened when the first machine needs it.
#[derive(Debug, Default)]
enum JumpConnection {
    #[default]
    Closed,
    Open(Master),
    Failed(Trouble),
}

impl Permits {
    pub(crate) fn new(count_max: usize) -> Self {
        Self { count_max, under_way: Mutex::default(), one_ended: Condvar::new() }
    }

    /// Waits until another login may begin.
    pub(crate) fn wait(&self) -> Permit<'_> {
        let mut under_way = locked(&self.under_way);
        while *under_way >= self.count_max {
            under_way = self.one_ended.wait(under_way).unwrap_or_else(PoisonError::into_inner);
        }
        *under_way += 1;
        Permit(self)
    }
}

impl Default for Logins {
    fn default() -> Self {
        Self { permits: Permits::new(LOGINS_AT_ONCE_MAX), jumps: Mutex::default() }
    }
}

impl Logins {
    /// The control socket of the connection to a jump host. The first caller opens it while the others wait.
    ///
    /// # Errors
    /// When the jump host cannot be reached: for every machine behind it the same.
    pub(crate) fn control_socket(
        &self,
        jump: &Jump,
        attempt: &Attempt,
        note: &dyn Fn(&str),
    ) -> Result<PathBuf, Trouble> {
        let connection = Arc::clone(locked(&self.jumps).entry(jump.clone()).or_default());
        let mut connection = locked(&connection);
        if let JumpConnection::Open(master) = &mut *connection {
            if master.is_alive() {
                return Ok(master.socket.clone());
            }
            *connection = JumpConnection::Closed;
        }
        if let JumpConnection::Failed(trouble) = &*connection {
            return Err(trouble.clone());
        }
        match retried(attempt, note, || Master::open(jump, attempt)) {
            Ok(master) => {
                let socket = master.socket.clone();
                *connection = JumpConnection::Open(master);
                Ok(socket)
            }
            Err(trouble) => {
                *connection = JumpConnection::Failed(trouble.clone());
                Err(trouble)
            }
        }
    }

    /// Forgets that jump hosts could not be reached: a later login tries again.
    pub(crate) fn forget_failures(&self) {
        for connection in locked(&self.jumps).values() {
            let mut connection = locked(connection);
            if matches!(&*connection, JumpConnection::Failed(_)) {
                *connection = JumpConnection::Closed;
            }
        }
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        *locked(&self.0.under_way) -= 1;
        self.0.one_ended.notify_one();
    }
}

/// Why a login failed, and what ssh wrote about it.
pub(crate) struct FailedLogin {
    pub(crate) trouble: Trouble,
    pub(crate) errors: String,
}

impl FailedLogin {
    /// A failure before ssh was started, or one that the other end described.
    pub(crate) fn plain(trouble: Trouble) -> Self {
        Self { trouble, errors: String::new() }
    }

    /// What went wrong, by what was reported or by what the process said on standard error.
    pub(crate) fn of(opened: Opened, reported: Option<Trouble>, by_errors: impl Fn(&str) -> Trouble) -> Self {
        let errors = opened.end();
        if let Some(trouble) = reported {
            return Self::plain(trouble);
        }
        let errors = errors.text();
        Self { trouble: by_errors(&errors), errors }
    }
}

/// Tries a login again while the server drops it. `note` gets the cause and the next try.
pub(crate) fn retried<T>(
    attempt: &Attempt,
    note: &dyn Fn(&str),
    mut login: impl FnMut() -> Result<T, FailedLogin>,
) -> Result<T, Trouble> {
    let mut try_count = 1;
    loop {
        let FailedLogin { trouble, errors } = match login() {
            Ok(value) => return Ok(value),
            Err(failed) => failed,
        };
        let is_dropped = LoginFailure::of(&errors) == LoginFailure::Dropped;
        if !is_dropped || attempt.is_given_up() {
            return Err(trouble);
        }
        if try_count == LOGIN_TRY_COUNT_MAX {
            let message = format!("{}, after {try_count} attempts", trouble.message);
            return Err(Trouble { message, ..trouble });
        }
        let pause = RETRY_PAUSE * 2_u32.pow(try_count - 1);
        try_count += 1;
        let seconds = pause.as_secs_f64();
        note(&format!(
            "the login was dropped{}, attempt {try_count} of {LOGIN_TRY_COUNT_MAX} in {seconds} s",
            ssh::cause(&errors)
        ));
        attempt.works();
        thread::sleep(pause);
    }
}

/// An ssh that has a connection open and lets others use it.
#[derive(Debug)]
struct Master {
    process: Child,
    folder: PathBuf,
    socket: PathBuf,
}

impl Master {
    fn open(jump: &Jump, attempt: &Attempt) -> Result<Self, FailedLogin> {
        let folder = make_folder("squall-ssh").map_err(|error| {
            let message = format!("cannot create a folder in `{}`: {error}", std::env::temp_dir().display());
            FailedLogin::plain(Trouble::new(
                message,
                "free some space there, or set TMPDIR to another folder",
            ))
        })?;
        let socket = folder.join("s");
        let (process, errors) = match start(jump, &folder, &socket) {
            Ok(started) => started,
            Err(error) => {
                let _ = fs::remove_dir_all(&folder);
                let trouble =
                    Trouble::new(format!("cannot start `ssh`: {error}"), "install OpenSSH's client");
                return Err(FailedLogin::plain(trouble));
            }
        };
        attempt.started(&process);
        let mut master = Self { process, folder, socket };
        master.wait_for_socket().map_err(|why| {
            master.close();
            let errors = errors.text();
            let trouble = match why {
                Unopened::Ended => ssh::explain_jump(jump, &errors),
                Unopened::Silent => {
                    let trouble = Awaited::Login.trouble();
                    let message = format!("jump host `{}`: {}", jump.hosts, trouble.message);
                    Trouble { message, ..trouble }
                }
            };
            FailedLogin { trouble, errors }
        })?;
        Ok(master)
    }

    fn is_alive(&mut self) -> bool {
        matches!(self.process.try_wait(), Ok(None)) && self.socket.exists()
    }

    /// ssh makes its control socket after the login.
    fn wait_for_socket(&mut self) -> Result<(), Unopened> {
        let begin = Instant::now();
        while !self.socket.exists() {
            if !matches!(self.process.try_wait(), Ok(None)) {
                return Err(Unopened::Ended);
            }
            if begin.elapsed() > JUMP_LOGIN_MAX {
                return Err(Unopened::Silent);
            }
            thread::sleep(POLL);
        }
        Ok(())
    }

    fn close(&mut self) {
        if let Some(group) = i32::try_from(self.process.id()).ok().and_then(Pid::from_raw) {
            // One that has ended meanwhile needs no signal.
            let _ = kill_process_group(group, Signal::TERM);
        }
        let _ = self.process.wait();
        let _ = fs::remove_dir_all(&self.folder);
    }
}

impl Drop for Master {
    fn drop(&mut self) {
        self.close();
    }
}

/// Why there is no control socket.
enum Unopened {
    Ended,
    Silent,
}

/// Starts ssh below a shell that ends it, and removes its folder, when this process is gone.
fn start(jump: &Jump, folder: &Path, socket: &Path) -> io::Result<(Child, Errors)> {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", KEEP_WHILE_READ, "squall-jump"]).arg(folder).arg("ssh");
    command.args(jump.master_arguments(socket)).process_group(0);
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut process = command.spawn()?;
    let errors = Errors::default();
    if let Some(stderr) = process.stderr.take() {
        errors.follow(stderr);
    }
    Ok((process, errors))
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs a command until it ends, or the pipe of standard input does, which then takes its folder along.
const KEEP_WHILE_READ: &str = r#"dir=$1; shift; exec 3<&0
"$@" </dev/null 3<&- & pid=$!
{ cat <&3; kill "$pid"; rm -rf -- "$dir"; } >/dev/null 2>&1 &
exec 3<&-
wait "$pid""#;

/// Before the second try of a login; doubled before each later one.
const RETRY_PAUSE: Duration = Duration::from_millis(500);

/// As long as a machine's login may take.
const JUMP_LOGIN_MAX: Duration = Duration::from_secs(30);

const POLL: Duration = Duration::from_millis(10);

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use squall_plan::limits::EXECS_AT_ONCE_MAX;

    use super::*;

    fn failed(errors: &str) -> FailedLogin {
        FailedLogin { trouble: Trouble::new("no login", "look"), errors: errors.to_owned() }
    }

    #[test]
    fn dropped_logins_are_tried_again_and_refused_ones_are_not() {
        let dropped = "kex_exchange_identification: Connection closed by remote host";
        for (results, expected) in [
            (vec![Err(dropped), Ok(())], Ok(2)),
            (vec![Err("Permission denied"), Ok(())], Err(1)),
            (vec![Err(dropped), Err("Permission denied")], Err(2)),
        ] {
            let (notes, mut results) = (RefCell::new(Vec::new()), results.into_iter());
            let mut count = 0;
            let login = || {
                count += 1;
                results.next().unwrap().map_err(failed)
            };
            let note = |text: &str| notes.borrow_mut().push(text.to_owned());
            let result = retried(&Attempt::default(), &note, login);
            assert_eq!(result.map(|()| count).map_err(|_| count), expected);
            let expected = "the login was dropped (kex_exchange_identification: Connection closed by remote host), attempt 2 of 5 in 0.5 s";
            assert!(notes.borrow().iter().all(|note| note == expected), "{notes:?}");
        }
    }

    #[test]
    fn only_so_many_logins_are_under_way() {
        for count_max in [LOGINS_AT_ONCE_MAX, EXECS_AT_ONCE_MAX] {
            let permits = Permits::new(count_max);
            let taken: Vec<Permit<'_>> = (0..count_max).map(|_| permits.wait()).collect();
            thread::scope(|scope| {
                let waiting = scope.spawn(|| drop(permits.wait()));
                assert!(!waiting.is_finished());
                drop(taken);
                waiting.join().unwrap();
            });
            assert_eq!(*locked(&permits.under_way), 0);
        }
    }
}
