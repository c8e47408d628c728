//! The keys of a pool of pods: `kubernetes` of a machine, and the plan's own with what holds for all pools.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::super::document::{Node, Value};
use super::super::kubernetes::{KubernetesPool, PodProgram, Spread, machines, quantity};
use super::super::{ClusterObjects, Machine, Problem, Reach};
use super::{Keys, each, single};
use crate::InputError;
use crate::limits::MACHINE_COUNT_MAX;
use crate::spec::{Place, Text};
use crate::units::parse_duration;

/// The plan's own `kubernetes`: what holds for all pools.
pub(super) fn defaults(node: &Node, problems: &mut Vec<Problem>) -> KubernetesPool {
    pool(node, &KubernetesPool::default(), problems)
}

/// The machines of `--kubernetes replicas=40,image=busybox`: the keys of a pool, those within others with a dot
/// (`resources.limits.cpu=2` is `resources: { limits: { cpu: 2 } }`).
///
/// # Errors
/// When a key or a value is wrong.
pub fn parse_kubernetes(text: &str) -> Result<Vec<Machine>, InputError> {
    let mut root = Node { place: Place::START, value: Value::Map(Vec::new()) };
    for pair in text.split(',').filter(|pair| !pair.is_empty()) {
        let Some((path, value)) = pair.split_once('=') else {
            let help = "write `replicas=40,image=busybox:stable`";
            return Err(InputError::at(text, 0, format!("`{pair}` has no `=`"), help));
        };
        if !insert(&mut root, &path_keys(path), value) {
            let message = format!("`{path}` is given twice");
            return Err(InputError::at(text, 0, message, "write each key once"));
        }
    }
    let mut problems = Vec::new();
    let pool = pool(&root, &KubernetesPool::default(), &mut problems);
    if let Some(problem) = problems.into_iter().next() {
        return Err(InputError::at(text, 0, problem.message, problem.help));
    }
    let name = Text { value: "pods".to_owned(), place: Place::START };
    let pool = Arc::new(KubernetesPool { name: name.value.clone(), ..pool });
    let reach = Reach::Pod { pool, index: 0 };
    let like = Machine {
        name,
        reach,
        weight: std::num::NonZeroU32::MIN,
        settings: super::MachineSettings::default(),
    };
    Ok(machines(&like))
}

/// The keys on the way to a value. Names of labels and resources have dots of their own.
fn path_keys(path: &str) -> Vec<&str> {
    let is_deep = ["resources.requests.", "resources.limits."].iter().any(|begin| path.starts_with(begin));
    path.splitn(if is_deep { 3 } else { 2 }, '.').collect()
}

/// Puts a value below these keys; false where there is one already.
fn insert(node: &mut Node, keys: &[&str], value: &str) -> bool {
    let (Value::Map(entries), [key, rest @ ..]) = (&mut node.value, keys) else { return false };
    if let Some((_, inner)) = entries.iter_mut().find(|(known, _)| known.value == *key) {
        return insert(inner, rest, value);
    }
    let new = |value| Node { place: Place::START, value };
    let entry = |key: &str, node| (Text { value: key.to_owned(), place: Place::START }, node);
    let scalar = new(Value::Scalar(value.to_owned()));
    let inner = rest.iter().rev().fold(scalar, |inner, key| new(Value::Map(vec![entry(key, inner)])));
    entries.push(entry(key, inner));
    true
}

/// Reads the keys of a pool; what is not given is as in `defaults`.
pub(super) fn pool(node: &Node, defaults: &KubernetesPool, problems: &mut Vec<Problem>) -> KubernetesPool {
    let mut keys = Keys::of(node, "`kubernetes`", problems);
    let defaults = defaults.clone();
    let (requests, limits) = keys.resources().unwrap_or((defaults.requests, defaults.limits));
    let pool = KubernetesPool {
        name: defaults.name,
        replicas: keys.parsed("replicas", parse_replicas).unwrap_or(defaults.replicas),
        image: keys.parsed("image", word).unwrap_or(defaults.image),
        namespace: keys.parsed("namespace", word).or(defaults.namespace),
        context: keys.parsed("context", word).or(defaults.context),
        kubeconfig: keys.parsed("kubeconfig", word).or(defaults.kubeconfig),
        kubectl: keys.parsed("kubectl", word).unwrap_or(defaults.kubectl),
        requests,
        limits,
        node_selector: keys.pairs("node_selector").unwrap_or(defaults.node_selector),
        tolerations: match keys.take("tolerations") {
            Some(node) => each(node, keys.problems, toleration),
            None => defaults.tolerations,
        },
        service_account: keys.parsed("service_account", word).or(defaults.service_account),
        pull_secrets: Some(keys.strings("pull_secrets"))
            .filter(|names| !names.is_empty())
            .unwrap_or(defaults.pull_secrets),
        labels: keys.pairs("labels").unwrap_or(defaults.labels),
        annotations: keys.pairs("annotations").unwrap_or(defaults.annotations),
        spread: keys.parsed("spread", parse_spread).unwrap_or(defaults.spread),
        program: keys.parsed("binary", parse_program).unwrap_or(defaults.program),
        ready_within: keys.parsed("ready_within", parse_duration).unwrap_or(defaults.ready_within),
    };
    keys.finish(POOL_KEYS);
    pool
}

/// Reads what a monitor reads of a cluster; how it is reached, where that is not given, is as in `defaults`.
pub(super) fn watched(
    node: &Node,
    defaults: &KubernetesPool,
    problems: &mut Vec<Problem>,
) -> Option<ClusterObjects> {
    let mut keys = Keys::of(node, "`kubernetes`", problems);
    let (pods, nodes) = (keys.string("pods"), keys.string("nodes"));
    let defaults = defaults.clone();
    let cluster = Arc::new(KubernetesPool {
        namespace: keys.parsed("namespace", word).or(defaults.namespace),
        context: keys.parsed("context", word).or(defaults.context),
        kubeconfig: keys.parsed("kubeconfig", word).or(defaults.kubeconfig),
        kubectl: keys.parsed("kubectl", word).unwrap_or(defaults.kubectl),
        ..defaults
    });
    keys.finish(&["pods", "nodes", "namespace", "context", "kubeconfig", "kubectl"]);
    match (pods, nodes) {
        (Some(selector), None) => Some(ClusterObjects { are_nodes: false, selector, cluster }),
        (None, Some(selector)) => Some(ClusterObjects { are_nodes: true, selector, cluster }),
        _ => {
            let help = "write `pods: app=shop`, or `nodes: ''` for all nodes; a monitor has one of them";
            problems.push(Problem::at(node.place, "`kubernetes` needs `pods` or `nodes`", help));
            None
        }
    }
}

impl Keys<'_, '_> {
    /// `resources`: requests and limits, or values that hold for both.
    fn resources(&mut self) -> Option<(BTreeMap<String, String>, BTreeMap<String, String>)> {
        let node = self.take("resources")?;
        let mut keys = Keys::of(node, "`resources`", self.problems);
        let (requests, limits) = (keys.quantities("requests"), keys.quantities("limits"));
        let rest = std::mem::take(&mut keys.entries);
        let both: BTreeMap<String, String> =
            rest.into_iter().filter_map(|(name, node)| read_quantity(name, node, keys.problems)).collect();
        let with = |own: Option<BTreeMap<String, String>>| {
            both.clone().into_iter().chain(own.unwrap_or_default()).collect()
        };
        Some((with(requests), with(limits)))
    }

    fn quantities(&mut self, key: &str) -> Option<BTreeMap<String, String>> {
        let node = self.take(key)?;
        let entries = Keys::of(node, "a list of resources", self.problems).entries;
        Some(
            entries.into_iter().filter_map(|(name, node)| read_quantity(name, node, self.problems)).collect(),
        )
    }

    /// A mapping of texts.
    fn pairs(&mut self, key: &'static str) -> Option<BTreeMap<String, String>> {
        let node = self.take(key)?;
        let entries = Keys::of(node, key, self.problems).entries;
        let pair =
            |(name, node): (&Text, &Node)| Some((name.value.clone(), single(node, self.problems)?.value));
        Some(entries.into_iter().filter_map(pair).collect())
    }
}

fn read_quantity(name: &Text, node: &Node, problems: &mut Vec<Problem>) -> Option<(String, String)> {
    let text = single(node, problems)?;
    if quantity(&text.value).is_none() {
        let message = format!("`{}: {}`: not a quantity of Kubernetes", name.value, text.value);
        problems.push(Problem::at(
            text.place,
            message,
            "write a number with a suffix where needed, such as `2`, `500m` or `1Gi`",
        ));
        return None;
    }
    Some((name.value.clone(), text.value))
}

fn toleration(node: &Node, problems: &mut Vec<Problem>) -> Option<BTreeMap<String, String>> {
    let mut keys = Keys::of(node, "a toleration", problems);
    let fields = TOLERATION_KEYS.iter().filter_map(|key| Some(((*key).to_owned(), keys.string(key)?)));
    let fields = fields.collect();
    keys.finish(TOLERATION_KEYS);
    Some(fields)
}

fn parse_replicas(text: &str) -> Result<usize, InputError> {
    let count = text.parse().ok().filter(|count| (1..=MACHINE_COUNT_MAX).contains(count));
    let reason = || format!("not a number of pods from 1 to {MACHINE_COUNT_MAX}");
    count.ok_or_else(|| InputError::at(text, 0, reason(), "write a whole number, such as `40`"))
}

/// A text that is not empty and that no program could take for a flag.
fn word(text: &str) -> Result<String, InputError> {
    match text.is_empty() || text.starts_with('-') || text.contains(char::is_whitespace) {
        false => Ok(text.to_owned()),
        true => Err(InputError::at(
            text,
            0,
            "not a name",
            "write a name without blanks that does not begin with `-`",
        )),
    }
}

fn parse_spread(text: &str) -> Result<Spread, InputError> {
    match text {
        "even" => Ok(Spread::Even),
        "node" => Ok(Spread::Node),
        "any" => Ok(Spread::Any),
        _ => {
            let help = "write `even`, `node` (one pod per node) or `any`";
            Err(InputError::at(text, 0, "not a way to distribute pods", help))
        }
    }
}

fn parse_program(text: &str) -> Result<PodProgram, InputError> {
    match text {
        "send" => Ok(PodProgram::Sent),
        "image" => Ok(PodProgram::Image),
        _ => {
            let help = "write `send`, or `image` where the image contains squall";
            Err(InputError::at(text, 0, "neither `send` nor `image`", help))
        }
    }
}

const TOLERATION_KEYS: &[&str] = &["key", "operator", "value", "effect"];

const POOL_KEYS: &[&str] = &[
    "replicas",
    "image",
    "namespace",
    "context",
    "kubeconfig",
    "kubectl",
    "resources",
    "node_selector",
    "tolerations",
    "service_account",
    "pull_secrets",
    "labels",
    "annotations",
    "spread",
    "binary",
    "ready_within",
];
