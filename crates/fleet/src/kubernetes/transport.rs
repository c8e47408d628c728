//! The way to the agent of one pod: `kubectl exec`, and on its other end a shell that fetches the program, or the image's own squall.

use std::collections::BTreeMap;
use std::process::Command;
use std::sync::{Arc, OnceLock};

use squall_plan::file::kubernetes::PodProgram;

use super::kubectl::{self, Failed};
use super::manifest::CONTAINER;
use super::pods::Pod;
use super::pool::Pool;
use crate::attach::{self, ATTACHED, GONE};
use crate::attempt::{Attempt, Awaited, Opened};
use crate::protocol::{Trouble, WayBack};
use crate::terms::Terms;
use crate::transport::{Transport, Ways};

/// A pod of a pool.
pub(crate) struct PodTransport {
    pub(crate) pool: Arc<Pool>,
    pub(crate) index: usize,
    pub(crate) terms: Terms,
    pub(crate) ways: Arc<Ways>,
    /// The pod, when it is known.
    pub(crate) pod: OnceLock<Pod>,
}

impl Transport for PodTransport {
    fn open(&self, attempt: &Attempt, note: &dyn Fn(&str)) -> Result<Opened, Trouble> {
        // The pool has its own time limit.
        attempt.works();
        let pod = self.pool.pod(self.index, attempt, note)?;
        let pod = self.pod.get_or_init(|| pod);
        if self.pool.spec.program == PodProgram::Image {
            return Opened::spawn(self.exec(pod, &["squall", "agent"]), attempt);
        }
        let binary = &self.ways.binary;
        let script = binary.fetch_script(&self.terms);
        let (mut opened, greeting) = self.greeted(self.exec(pod, &["/bin/sh", "-c", &script]), attempt)?;
        match binary.hand_over(&mut opened, &greeting, (attempt, note)) {
            Ok(()) => Ok(opened),
            Err(reported) => {
                let errors = opened.end().text();
                Err(reported.unwrap_or_else(|| self.explain(errors)))
            }
        }
    }

    fn can_return(&self) -> bool {
        true
    }

    fn attach(&self, way_back: &WayBack, attempt: &Attempt) -> Result<Option<Opened>, Trouble> {
        let Some(pod) = self.pod.get() else { return Ok(None) };
        let script;
        let words: &[&str] = match self.pool.spec.program {
            PodProgram::Image => &["squall", "agent", "--attach", &way_back.socket],
            PodProgram::Sent => {
                script = attach::script(way_back, squall_plan::shell::quoted);
                &["/bin/sh", "-c", &script]
            }
        };
        let permit = self.ways.execs.wait();
        let mut opened = Opened::spawn(self.exec(pod, words), attempt)?;
        let greeting = opened.line();
        drop(permit);
        match greeting.as_deref() {
            Some(ATTACHED) => Ok(Some(opened)),
            Some(GONE) => {
                opened.end();
                Ok(None)
            }
            _ => {
                let errors = opened.end().text();
                if kubectl::is_gone(&errors) { Ok(None) } else { Err(self.explain(errors)) }
            }
        }
    }

    fn facts(&self) -> BTreeMap<String, String> {
        self.pod.get().map_or_else(BTreeMap::new, |pod| pod.facts.clone())
    }

    fn fate(&self) -> Option<String> {
        self.pod.get().map(|pod| self.pool.fate(pod))
    }
}

impl PodTransport {
    /// `kubectl exec` of a program in the pod.
    fn exec(&self, pod: &Pod, words: &[&str]) -> Command {
        let namespace = format!("--namespace={}", self.pool.namespace());
        let container = format!("--container={CONTAINER}");
        let mut command =
            self.pool.kubectl.command(&["exec", "--stdin", &namespace, &pod.name, &container, "--"]);
        command.args(words);
        command
    }

    /// Starts it; gives its first line as well.
    fn greeted(&self, command: Command, attempt: &Attempt) -> Result<(Opened, String), Trouble> {
        let permit = self.ways.execs.wait();
        let mut opened = Opened::spawn(command, attempt)?;
        attempt.awaits(Awaited::Exec);
        let greeting = opened.line();
        drop(permit);
        match greeting {
            Some(greeting) => Ok((opened, greeting)),
            None => Err(self.explain(opened.end().text())),
        }
    }

    fn explain(&self, errors: String) -> Trouble {
        let trouble = self.pool.kubectl.explain(&Failed::Said(errors));
        Trouble { message: format!("no agent could be started in its pod: {}", trouble.message), ..trouble }
    }
}
