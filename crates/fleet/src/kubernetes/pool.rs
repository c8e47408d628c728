//! Brings up the pods of a pool: asks what is allowed, creates the Job, and follows the pods until they are ready or cannot be.
//!
//! The first machine of the pool that is opened does it, while the others wait for their own pods.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use sha2::{Digest, Sha256};
use squall_plan::file::MachineSettings;
use squall_plan::file::kubernetes::KubernetesPool;

use super::access;
use super::kubectl::{Failed, Kubectl};
use super::manifest::{self, INSTANCE_LABEL, Name, Terms};
use super::pods::{self, NODE_FACT, Pod, PodState};
use crate::attempt::Attempt;
use crate::clock::unix_ns;
use crate::order::FleetPlan;
use crate::protocol::Trouble;

/// The pods of one Job.
#[derive(Debug)]
pub(crate) struct Pool {
    pub(crate) spec: Arc<KubernetesPool>,
    pub(crate) kubectl: Kubectl,
    /// The Job's name.
    job: String,
    manifest_terms: Terms,
    state: Mutex<State>,
    changed: Condvar,
    /// Held while the Job is created or deleted: whether it may exist, and where.
    existing: Mutex<Option<String>>,
    /// The pool is not wanted any more.
    is_over: AtomicBool,
}

#[derive(Debug, Default)]
struct State {
    is_rising: bool,
    namespace: String,
    pods: BTreeMap<usize, PodState>,
    /// Why there are no pods.
    failed: Option<Trouble>,
}

type Noting<'n> = &'n dyn Fn(&str);

impl Pool {
    /// Nothing is created yet.
    pub(crate) fn new(spec: &Arc<KubernetesPool>, plan: &FleetPlan, settings: &MachineSettings) -> Self {
        Self {
            spec: Arc::clone(spec),
            kubectl: Kubectl::of(spec),
            job: format!("{}-{}", manifest::stem(spec), suffix(&spec.name)),
            manifest_terms: Terms::of(spec, plan, settings),
            state: Mutex::default(),
            changed: Condvar::new(),
            existing: Mutex::default(),
            is_over: AtomicBool::new(false),
        }
    }

    /// The pod of that index, when it is ready.
    ///
    /// # Errors
    /// When it will not be, with the reason that Kubernetes gives.
    pub(crate) fn pod(&self, index: usize, attempt: &Attempt, note: Noting<'_>) -> Result<Pod, Trouble> {
        let is_first = !std::mem::replace(&mut self.state().is_rising, true);
        if is_first && let Err(trouble) = self.rise(attempt, note) {
            self.publish(|state| state.failed = Some(trouble));
        }
        let mut state = self.state();
        loop {
            match (state.pods.get(&index), &state.failed) {
                (Some(PodState::Ready(pod)), _) => return Ok(pod.clone()),
                (Some(PodState::Failed(trouble)), _) | (_, Some(trouble)) => return Err(trouble.clone()),
                _ if attempt.is_given_up() => return Err(ended()),
                _ => {}
            }
            let waited = self.changed.wait_timeout(state, LOOK_EVERY);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// The namespace of its pods.
    pub(crate) fn namespace(&self) -> String {
        self.state().namespace.clone()
    }

    /// What ended a pod.
    pub(crate) fn fate(&self, pod: &Pod) -> String {
        let namespace = format!("--namespace={}", self.namespace());
        match self.call(&["get", "pod", &pod.name, &namespace, "--output=json"], "") {
            Ok(output) => {
                pods::fate(&pods::object(&output)).unwrap_or_else(|| "its agent has ended".to_owned())
            }
            Err(Failed::Said(errors)) if super::kubectl::is_gone(&errors) => "its pod was deleted".to_owned(),
            Err(_) => "its agent has ended".to_owned(),
        }
    }

    /// Deletes the Job and its pods, if there are any.
    ///
    /// # Errors
    /// What is left, in words for people.
    pub(crate) fn remove(&self) -> Result<(), String> {
        self.is_over.store(true, Ordering::Relaxed);
        let Some(namespace) = locked(&self.existing).take() else { return Ok(()) };
        let flag = format!("--namespace={namespace}");
        let deletion =
            ["delete", "job", &self.job, &flag, "--cascade=background", "--wait=false", "--ignore-not-found"];
        let deleted = self.kubectl.run(&deletion, "", &AtomicBool::new(false));
        deleted.map(drop).map_err(|failed| {
            let why = self.kubectl.explain(&failed).message;
            format!("the Job `{}` in namespace `{namespace}` could not be deleted, {why}; it ends with its agents, and is then deleted by the cluster", self.job)
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        locked(&self.state)
    }

    fn publish(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state());
        self.changed.notify_all();
    }

    fn call(&self, arguments: &[&str], input: &str) -> Result<Vec<u8>, Failed> {
        self.kubectl.run(arguments, input, &self.is_over)
    }

    fn asked(&self, arguments: &[&str], input: &str) -> Result<Vec<u8>, Trouble> {
        self.call(arguments, input).map_err(|failed| self.kubectl.explain(&failed))
    }

    /// Creates the Job, and follows it until nothing more can change.
    fn rise(&self, attempt: &Attempt, note: Noting<'_>) -> Result<(), Trouble> {
        let namespace = self.find_namespace()?;
        self.state().namespace.clone_from(&namespace);
        let questions = access::questions(&namespace).to_string();
        let denied = access::denied(&self.asked(&[CREATE, &["--output=json"]].concat(), &questions)?);
        if !denied.is_empty() {
            return Err(access::trouble(&denied, &namespace));
        }
        if !self.spec.requests.contains_key("cpu") && !self.spec.limits.contains_key("cpu") {
            note("its pods reserve no CPU (`resources`): other pods on their nodes may slow them down");
        }
        self.create(&namespace)?;
        note(&format!("starting {} pods as Job {} in namespace {namespace}", self.spec.replicas, self.job));
        self.follow(&namespace, attempt, note)
    }

    fn create(&self, namespace: &str) -> Result<(), Trouble> {
        let mut existing = locked(&self.existing);
        if self.is_over.load(Ordering::Relaxed) {
            return Err(ended());
        }
        let job = manifest::job(&self.spec, Name::Whole(&self.job), &self.manifest_terms);
        let flag = format!("--namespace={namespace}");
        // It may exist although kubectl failed.
        *existing = Some(namespace.to_owned());
        let creation = [CREATE, &[&flag, "--output=name"]].concat();
        // Not cut short when the run is ended: the API server might create the Job after it was deleted.
        let created = self.kubectl.run(&creation, &job.to_string(), &AtomicBool::new(false));
        created.map(drop).map_err(|failed| self.kubectl.explain(&failed))
    }

    /// The plan's namespace, that of the context, or, in a pod without a kubeconfig, that of its service account.
    fn find_namespace(&self) -> Result<String, Trouble> {
        if let Some(namespace) = &self.spec.namespace {
            return Ok(namespace.clone());
        }
        let config = pods::object(
            &self
                .asked(&["config", "view", "--minify", "--output=json"], "")
                .or_else(|trouble| if is_in_cluster() { Ok(Vec::new()) } else { Err(trouble) })?,
        );
        let of_context = config["contexts"][0]["context"]["namespace"].as_str().map(str::to_owned);
        let own = || std::fs::read_to_string(OWN_NAMESPACE).ok().map(|text| text.trim().to_owned());
        let has_context = config["contexts"][0].is_object();
        Ok(of_context.or_else(|| own().filter(|_| !has_context)).unwrap_or_else(|| "default".to_owned()))
    }

    /// Looks at the pods once a second.
    fn follow(&self, namespace: &str, attempt: &Attempt, note: Noting<'_>) -> Result<(), Trouble> {
        let deadline = Instant::now() + self.spec.ready_within;
        let mut noted = String::new();
        loop {
            let look = self.look(namespace)?;
            let waiting = look.waiting(self.spec.replicas);
            if waiting.is_empty() {
                placed(&look.pods).iter().for_each(|placed| note(placed));
                self.publish(|state| state.pods = look.pods);
                return Ok(());
            }
            if Instant::now() > deadline {
                let pods = look.pods.into_iter().chain(self.overdue(&waiting));
                self.publish(|state| state.pods.extend(pods));
                return Ok(());
            }
            let summary = summary(self.spec.replicas, &waiting);
            if summary != noted && waiting.iter().any(|(_, reason)| !reason.is_empty()) {
                note(&summary);
                noted = summary;
            }
            self.publish(|state| state.pods = look.pods);
            for _ in 0..LOOKS_PER_SECOND {
                if attempt.is_given_up() || self.is_over.load(Ordering::Relaxed) {
                    return Err(ended());
                }
                thread::sleep(LOOK_EVERY);
            }
        }
    }

    fn look(&self, namespace: &str) -> Result<Look, Trouble> {
        let flag = format!("--namespace={namespace}");
        let selector = format!("--selector={INSTANCE_LABEL}={}", self.job);
        let list = match self.call(&["get", "pods", &flag, &selector, "--output=json"], "") {
            Ok(list) => pods::object(&list),
            Err(failed @ (Failed::NotStarted(_) | Failed::Ended)) => {
                return Err(self.kubectl.explain(&failed));
            }
            // The API server may be back at the next look.
            Err(failed) => {
                return Ok(Look {
                    pods: BTreeMap::new(),
                    why_missing: self.kubectl.explain(&failed).message,
                });
            }
        };
        let pods = pods::states(&list);
        let mut why_missing = String::new();
        if pods.len() < self.spec.replicas {
            let field = format!("--field-selector=involvedObject.kind=Job,involvedObject.name={}", self.job);
            let events =
                self.call(&["get", "events", &flag, &field, "--output=json"], "").unwrap_or_default();
            match pods::creation_failure(&pods::object(&events)) {
                Some((message, true)) => {
                    return Err(Trouble::new(format!("its pod cannot be created: {message}"), CREATION_HELP));
                }
                Some((message, false)) => why_missing = message,
                None => {}
            }
        }
        Ok(Look { pods, why_missing })
    }

    /// What is wrong with the pods that are not ready in time.
    fn overdue<'l>(&self, waiting: &'l [(usize, String)]) -> impl Iterator<Item = (usize, PodState)> + 'l {
        let seconds = self.spec.ready_within.as_secs();
        waiting.iter().map(move |(index, reason)| {
            let why = if reason.is_empty() { String::new() } else { format!(": {reason}") };
            let message = format!("its pod is not ready after {seconds} s{why}");
            let help = WAITING_HELP
                .iter()
                .find(|(part, _)| reason.contains(part))
                .map_or(READY_HELP, |(_, help)| help);
            (*index, PodState::Failed(Trouble::new(message, help)))
        })
    }
}

/// The pods at one moment.
struct Look {
    pods: BTreeMap<usize, PodState>,
    /// Why pods do not exist yet; empty where that is not known.
    why_missing: String,
}

impl Look {
    /// The pods that may still become ready, and why they are not.
    fn waiting(&self, replicas: usize) -> Vec<(usize, String)> {
        let of = |index: usize| match self.pods.get(&index) {
            Some(PodState::Waiting(reason)) => Some((index, reason.clone().unwrap_or_default())),
            Some(PodState::Ready(_) | PodState::Failed(_)) => None,
            None => Some((index, self.why_missing.clone())),
        };
        (0..replicas).filter_map(of).collect()
    }
}

/// On how many nodes the pods are; `None` for a single pod.
fn placed(pods: &BTreeMap<usize, PodState>) -> Option<String> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for pod in pods.values() {
        let PodState::Ready(pod) = pod else { continue };
        *counts.entry(pod.facts.get(NODE_FACT)?).or_default() += 1;
    }
    let (pod_count, node_count) = (counts.values().sum::<usize>(), counts.len());
    let nodes = if node_count == 1 { "node" } else { "nodes" };
    let most = counts.into_values().max().filter(|_| pod_count > 1)?;
    Some(format!("{pod_count} pods on {node_count} {nodes}, up to {most} on one"))
}

/// How many are not ready, and the reason of most.
fn summary(replicas: usize, waiting: &[(usize, String)]) -> String {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for (_, reason) in waiting.iter().filter(|(_, reason)| !reason.is_empty()) {
        *counts.entry(reason).or_default() += 1;
    }
    let most = counts.into_iter().max_by_key(|(_, count)| *count);
    let reason = most.map_or_else(String::new, |(reason, _)| format!(": {reason}"));
    format!("{} of {replicas} pods are not ready{reason}", waiting.len())
}

/// Differs between controllers and runs.
fn suffix(name: &str) -> String {
    let seed = format!("{name} {} {}", std::process::id(), unix_ns(SystemTime::now()));
    Sha256::digest(seed.as_bytes()).iter().take(4).map(|byte| format!("{byte:02x}")).collect()
}

fn is_in_cluster() -> bool {
    std::env::var_os("KUBERNETES_SERVICE_HOST").is_some()
}

fn ended() -> Trouble {
    Trouble::new("the run was ended", "run again")
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The namespace of the pod that this process runs in.
const OWN_NAMESPACE: &str = "/var/run/secrets/kubernetes.io/serviceaccount/namespace";

/// The API server validates what it gets; kubectl would fetch the schema of everything first, and hide what the API server says.
const CREATE: &[&str] = &["create", "--validate=false", "--filename=-"];

const LOOK_EVERY: Duration = Duration::from_millis(100);
const LOOKS_PER_SECOND: u32 = 10;

const CREATION_HELP: &str = "correct what it names in the pool's entry, or have the cluster allow it";
const READY_HELP: &str = "`kubectl describe pod` says more; `ready_within` sets how long they may take";

/// Parts of reasons, and what helps.
const WAITING_HELP: &[(&str, &str)] = &[
    ("exceeded quota", "lower `replicas` or `resources`, or raise the namespace's quota"),
    ("anti-affinity", "lower `replicas`, or let nodes run several agents: `spread: even`"),
    (
        "nodes are available",
        "lower `replicas` or `resources`, add nodes, or correct `node_selector` and `tolerations`",
    ),
    ("ErrImagePull", "correct `image`, or name a secret for the registry: `pull_secrets`"),
];

#[cfg(test)]
mod tests {
    use std::fs;
    use std::process::Command;

    use super::*;

    /// An API server that is slow to create a Job.
    const SLOW: &str = r#"#!/bin/sh
cd "$(dirname "$0")"
case "$*" in
create*) echo begun >> log; sleep 0.5; echo created >> log ;;
delete*) echo deleted >> log ;;
esac
"#;

    #[test]
    fn a_job_that_is_being_created_when_the_run_ends_is_deleted_after_that() {
        let folder = tempfile::tempdir().unwrap();
        let (kubectl, log) = (folder.path().join("kubectl"), folder.path().join("log"));
        // A file that this process has open for writing cannot be run, and processes that other tests start inherit it for a moment.
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", r#"printf %s "$1" > "$0" && chmod +x "$0""#]).arg(&kubectl).arg(SLOW);
        assert!(shell.status().unwrap().success());
        let spec = KubernetesPool { kubectl: kubectl.display().to_string(), ..KubernetesPool::default() };
        let pool = Pool {
            kubectl: Kubectl::of(&spec),
            spec: Arc::new(spec),
            job: "squall-pods-1".to_owned(),
            manifest_terms: Terms { deadline: TIME, env: BTreeMap::new(), standby: TIME },
            state: Mutex::default(),
            changed: Condvar::new(),
            existing: Mutex::default(),
            is_over: AtomicBool::new(false),
        };
        thread::scope(|scope| {
            scope.spawn(|| pool.create("load"));
            while !log.exists() {
                thread::yield_now();
            }
            pool.remove().unwrap();
        });
        assert_eq!(fs::read_to_string(&log).unwrap(), "begun\ncreated\ndeleted\n");
    }

    const TIME: Duration = Duration::from_secs(60);

    #[test]
    fn the_reason_of_most_pods_is_reported() {
        let reasons = ["", "quota", "nodes", "nodes"];
        let waiting: Vec<(usize, String)> =
            reasons.iter().map(|reason| (*reason).to_owned()).enumerate().collect();
        assert_eq!(summary(40, &waiting), "4 of 40 pods are not ready: nodes");
        assert_eq!(summary(40, &waiting[..1]), "1 of 40 pods are not ready");
    }

    #[test]
    fn the_nodes_of_pods_are_counted() {
        let pods = |nodes: &[&str]| {
            let pod = |node: &&str| {
                let facts = BTreeMap::from([(NODE_FACT.to_owned(), (*node).to_owned())]);
                PodState::Ready(Pod { name: String::new(), facts })
            };
            placed(&nodes.iter().map(pod).enumerate().collect())
        };
        assert_eq!(pods(&["a"]), None);
        assert_eq!(pods(&["a", "b", "a"]).unwrap(), "3 pods on 2 nodes, up to 2 on one");
        assert_eq!(pods(&["a", "a"]).unwrap(), "2 pods on 1 node, up to 2 on one");
    }

    #[test]
    fn two_controllers_have_jobs_of_two_names() {
        assert_ne!(suffix("pods"), suffix("other"));
        assert_eq!(suffix("pods").len(), 8);
    }
}
