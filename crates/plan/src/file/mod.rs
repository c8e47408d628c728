//! Plan files: steps in sequence, loads side by side, on many machines. `docs/plans.md` is the user's page.
//!
//! Read in three passes, so that all problems are reported at once: `document` makes a tree with places, `variables` fills in
//! `${NAME}`, `read` makes the [`PlanFile`]. What a load's own keys mean is for the command of that name to say: they are its
//! flags.

mod addition;
mod document;
mod inventory;
pub mod kubernetes;
mod ptr;
mod read;
mod variables;

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

pub use addition::ptr_target;
pub use inventory::{HostList, HostSource};
use kubernetes::KubernetesPool;
pub use ptr::{PtrFile, PtrOptions, is_ptr, parse_ptr, ptr_plan_text};
pub use read::{LOAD_KINDS, check_destination, parse_kubernetes, parse_lost_after, parse_program_path};
pub use variables::Variables;

use crate::spec::{LoadSpec, Place, PlanRule, Text};

/// A whole plan file.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PlanFile {
    /// Names the run; the file's name when `None`.
    pub name: Option<String>,
    /// The target that every load gets: a URL.
    pub target: Option<Text>,
    /// Machines by name, in the order of the file; empty: this machine alone.
    pub machines: Vec<Machine>,
    /// What is watched.
    pub monitors: Vec<MonitorSpec>,
    /// Files that the loads need on their machines.
    pub files: Vec<FileSpec>,
    /// Commands before each step.
    pub before: Vec<Hook>,
    /// Commands after each step.
    pub after: Vec<Hook>,
    /// Steps in sequence; at least one.
    pub steps: Vec<Step>,
    /// Rules for the whole run.
    pub thresholds: Vec<PlanRule>,
    /// A machine that is silent for so long is lost.
    pub lost_after: Option<Duration>,
    /// Machines that may be lost in a run that succeeds.
    pub lost_count_allowed: usize,
}

/// A machine that makes load, or is watched.
#[derive(Debug, Clone, PartialEq)]
pub struct Machine {
    /// Its name in the plan and in reports.
    pub name: Text,
    /// How it is reached.
    pub reach: Reach,
    /// Its share of every load, relative to the others.
    pub weight: NonZeroU32,
    /// What holds for its agent.
    pub settings: MachineSettings,
}

/// What holds for an agent and the loads that it makes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MachineSettings {
    /// Variables of its environment.
    pub env: BTreeMap<String, String>,
    /// Most open files; `None`: as many as its login allows.
    pub open_file_count_max: Option<u64>,
    /// Settings of its kernel while it is used: names, such as `net.core.somaxconn`, and values.
    pub sysctl: BTreeMap<String, String>,
    /// Whether `sudo` may be used for them.
    pub sudo: bool,
}

/// How a machine is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reach {
    /// It is this one.
    Local,
    /// By OpenSSH.
    Ssh(SshSpec),
    /// A program and its arguments whose standard input and output carry the agent: `kubectl exec -i pod -- squall agent`.
    Command(Vec<String>),
    /// It is a pod of a Kubernetes cluster.
    Pod {
        /// All that are started together.
        pool: Arc<KubernetesPool>,
        /// Its index among them.
        index: usize,
    },
}

/// How OpenSSH reaches a machine. What is `None` is for the user's own configuration of ssh to say.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SshSpec {
    /// Host name, address, or an alias of ssh's configuration.
    pub host: String,
    /// User.
    pub user: Option<String>,
    /// Port.
    pub port: Option<u16>,
    /// Private key file.
    pub key: Option<String>,
    /// Hosts to go through (`ProxyJump`), such as `user@bastion:22`.
    pub jump: Option<String>,
    /// ssh's configuration file, instead of the user's.
    pub config: Option<String>,
    /// More options of ssh, as `Name=value`.
    pub options: Vec<String>,
    /// The squall to send there, where it has another kind of processor.
    pub binary: Option<String>,
}

impl SshSpec {
    /// `[user@]host[:port]`, as one writes it; an IPv6 address before a port is in brackets.
    pub fn destination(&self) -> String {
        let user = self.user.as_ref().map_or_else(String::new, |user| format!("{user}@"));
        match self.port {
            Some(port) if self.host.contains(':') => format!("{user}[{}]:{port}", self.host),
            Some(port) => format!("{user}{}:{port}", self.host),
            None => format!("{user}{}", self.host),
        }
    }
}

/// What is watched.
#[derive(Debug, Clone, PartialEq)]
pub struct MonitorSpec {
    /// Where the entry begins.
    pub place: Place,
    /// Names the source in reports; made from the rest when `None`.
    pub name: Option<String>,
    /// The machine that reads a page; `None`: the first one that can reach it.
    pub from: Option<Text>,
    /// What is read.
    pub what: Watched,
}

/// What a monitor reads.
#[derive(Debug, Clone, PartialEq)]
pub enum Watched {
    /// A machine of the plan: its CPUs, memory, sockets, NICs, and processes by name or number.
    Machine {
        /// Its name.
        machine: Text,
        /// Processes, by name or pid.
        processes: Vec<String>,
    },
    /// Series of a Prometheus endpoint.
    Prometheus {
        /// Its URL.
        url: Text,
        /// Names of series, with labels where wanted; empty: the first ones it has.
        series: Vec<String>,
    },
    /// nginx's `stub_status` page.
    Nginx {
        /// Its URL.
        url: Text,
    },
    /// h2o's status page, as JSON.
    H2o {
        /// Its URL.
        url: Text,
    },
    /// Pods or nodes of a Kubernetes cluster, which the controller reads through `kubectl`.
    Kubernetes(ClusterObjects),
}

/// Pods or nodes of a cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterObjects {
    /// Nodes instead of pods.
    pub are_nodes: bool,
    /// The labels that they have, as Kubernetes selects by them; empty: all of them.
    pub selector: String,
    /// How their cluster is reached: of a pool only its namespace, context, kubeconfig and `kubectl`.
    pub cluster: Arc<KubernetesPool>,
}

/// A file that is copied before the run and removed after it.
#[derive(Debug, Clone, PartialEq)]
pub struct FileSpec {
    /// Where it is here.
    pub from: Text,
    /// Where it goes.
    pub to: Text,
    /// Permission bits.
    pub mode: u32,
    /// Machines; empty: all that make load.
    pub on: Vec<Text>,
    /// Replace a file that is there already, for good; without it that is an error.
    pub overwrite: bool,
}

/// A command that runs on machines before or after a step, such as the restart of the target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hook {
    /// The command as people read it.
    pub text: Text,
    /// Program and arguments.
    pub words: Vec<String>,
    /// Machines that run it; empty: this machine.
    pub on: Vec<Text>,
    /// How long it may take.
    pub timeout: Duration,
}

/// One step: loads that run side by side.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Step {
    /// Its name in reports.
    pub name: String,
    /// At least one.
    pub loads: Vec<LoadSpec>,
    /// How long nothing happens after it.
    pub pause: Duration,
    /// Rules for this step.
    pub thresholds: Vec<PlanRule>,
    /// Commands before it, after those before each step.
    pub before: Vec<Hook>,
    /// Commands after it, ahead of those after each step.
    pub after: Vec<Hook>,
}

/// One thing that is wrong with a plan file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {message}")]
pub struct Problem {
    /// Where.
    pub place: Place,
    /// What: lowercase, without a final period.
    pub message: String,
    /// What to write instead.
    pub help: String,
}

impl PlanFile {
    /// Reads a plan file: YAML, of which JSON is a part.
    ///
    /// # Errors
    /// All that is wrong with it, in the order of the file.
    pub fn parse(text: &str, variables: &Variables<'_>) -> Result<Self, Vec<Problem>> {
        let (file, problems) = Self::read(text, variables);
        if problems.is_empty() { Ok(file) } else { Err(problems) }
    }

    /// What can be read of a plan file, and all that is wrong with it, in the order of the file. Who finds more that is wrong with
    /// the rest can tell it, too.
    pub fn read(text: &str, variables: &Variables<'_>) -> (Self, Vec<Problem>) {
        Self::read_next_to(None, text, variables)
    }

    /// The same of a plan that is added to another, which has the loads.
    fn read_next_to(base: Option<&Self>, text: &str, variables: &Variables<'_>) -> (Self, Vec<Problem>) {
        let mut problems = Vec::new();
        let file = document::parse(text, &mut problems).map(|mut root| {
            let unfilled = variables.fill(&mut root);
            let places: Vec<Place> = unfilled.iter().map(|problem| problem.place).collect();
            let file = read::plan_file(&root, base, variables.hosts, &mut problems);
            // What is not filled in cannot be read either.
            problems.retain(|problem| !places.contains(&problem.place));
            problems.extend(unfilled);
            file
        });
        problems.sort_by_key(|problem| problem.place);
        (file.unwrap_or_default(), problems)
    }

    /// The machine of that name.
    pub fn machine(&self, name: &str) -> Option<&Machine> {
        self.machines.iter().find(|machine| machine.name.value == name)
    }

    /// The machines that make load when a load does not say which: those that no monitor and no hook names.
    pub fn generators(&self) -> impl Iterator<Item = &Machine> {
        let named = |machine: &Machine| {
            self.loads().any(|load| load.on.iter().any(|name| name.value == machine.name.value))
        };
        let is_watched = |machine: &Machine| {
            self.monitors.iter().any(|monitor| {
                matches!(&monitor.what, Watched::Machine { machine: watched, .. } if watched.value == machine.name.value)
            })
        };
        let is_hooked = |machine: &Machine| {
            self.hooks().any(|hook| hook.on.iter().any(|name| name.value == machine.name.value))
        };
        self.machines
            .iter()
            .filter(move |machine| !(is_watched(machine) || is_hooked(machine)) || named(machine))
    }

    /// The hooks of the plan and of all steps.
    pub fn hooks(&self) -> impl Iterator<Item = &Hook> {
        let of_steps = self.steps.iter().flat_map(|step| step.before.iter().chain(&step.after));
        self.before.iter().chain(&self.after).chain(of_steps)
    }

    /// The loads of all steps.
    pub fn loads(&self) -> impl Iterator<Item = &LoadSpec> {
        self.steps.iter().flat_map(|step| &step.loads)
    }
}

impl ClusterObjects {
    /// As people read it: `pods app=shop`.
    pub fn text(&self) -> String {
        let kind = if self.are_nodes { "nodes" } else { "pods" };
        format!("{kind} {}", self.selector).trim_end().to_owned()
    }
}

impl MonitorSpec {
    /// Who it is about, as rules name it: its own name, that of a machine, or the host of a page.
    pub fn source(&self) -> String {
        let url = match (&self.name, &self.what) {
            (Some(name), _) => return name.clone(),
            (None, Watched::Machine { machine, .. }) => return machine.value.clone(),
            (None, Watched::Kubernetes(objects)) => return objects.text(),
            (None, Watched::Prometheus { url, .. } | Watched::Nginx { url } | Watched::H2o { url }) => url,
        };
        let rest = url.value.split("://").nth(1).unwrap_or(&url.value);
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        // Reports and saved files name it: user information does not belong there.
        authority.rsplit('@').next().unwrap_or_default().to_owned()
    }
}

impl Problem {
    /// A problem at a place.
    pub fn at(place: Place, message: impl Into<String>, help: impl Into<String>) -> Self {
        Self { place, message: message.into(), help: help.into() }
    }
}

#[cfg(test)]
mod tests;
