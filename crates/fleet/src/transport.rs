//! How an agent is reached: a process here whose standard input and output carry it. Local, through OpenSSH or
//! `kubectl exec`, or any command.
//!
//! One connection for each machine carries everything: the program itself, files, orders, figures. Nothing listens anywhere.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Command;
use std::sync::{Arc, OnceLock};

use squall_plan::file::{Machine, MachineSettings, Reach, SshSpec};

use crate::attach::{self, ATTACHED};
use crate::attempt::{Attempt, Awaited, Opened};
use crate::binary::Binary;
use crate::kubernetes::{PodTransport, Pools};
use crate::logins::{FailedLogin, Logins, Permits, retried};
use crate::order::FleetPlan;
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

    /// Facts about the machine that its agent cannot know; complete once it is open.
    fn facts(&self) -> BTreeMap<String, String> {
        BTreeMap::new()
    }

    /// Why the agent is gone, where the way to it knows more than that.
    fn fate(&self) -> Option<String> {
        None
    }

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
    /// `kubectl exec` that are being established.
    pub execs: Permits,
}

/// The transport of a machine.
pub(crate) fn of(
    machine: &Machine,
    (plan, pools): (&FleetPlan, &Pools),
    ways: &Arc<Ways>,
) -> Arc<dyn Transport> {
    let terms = Terms { settings: machine.settings.clone(), keeps_program: ways.keeps_program };
    match &machine.reach {
        Reach::Local => {
            let words = vec![ways.own_program.clone().into_os_string(), "agent".into()];
            Arc::new(Words { words, terms })
        }
        Reach::Command(words) => Arc::new(Words { words: words.iter().map(Into::into).collect(), terms }),
        Reach::Ssh(spec) => Arc::new(Ssh { spec: spec.clone(), terms, ways: Arc::clone(ways) }),
        Reach::Pod { pool: spec, index } => {
            // Its folder goes with the pod.
            let terms = Terms { keeps_program: false, ..terms };
            let (pool, ways) = (pools.pool(spec, plan, &machine.settings), Arc::clone(ways));
            Arc::new(PodTransport { pool, index: *index, terms, ways, pod: OnceLock::new() })
        }
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
            Err(reported) => Err(FailedLogin::of(opened, reported, |errors| self.explain(errors)).trouble),
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
        FailedLogin::of(opened, None, |errors| self.explain(errors));
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
        let permit = self.ways.logins.permits.wait();
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
            None => Err(FailedLogin::of(opened, None, |errors| self.explain(errors))),
        }
    }

    fn explain(&self, errors: &str) -> Trouble {
        ssh::explain(&self.spec, ssh::port(&self.spec), errors)
    }
}
