//! The keys of a pool of pods: `kubernetes` of a machine, and the plan's own with what holds for all pools.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::super::document::{Node, Value};
use super::super::kubernetes::{
    KubernetesPool, PodProgram, Spread, is_label_key, is_label_value, is_namespace, machines, quantity,
};
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
    let is_label = |(key, value): (&str, &str)| is_label_key(key) && is_label_value(value);
    let is_annotation = |(key, _): (&str, &str)| is_label_key(key);
    let pool = KubernetesPool {
        name: defaults.name,
        replicas: keys.parsed("replicas", parse_replicas).unwrap_or(defaults.replicas),
        image: keys.parsed("image", word).unwrap_or(defaults.image),
        namespace: keys.parsed("namespace", parse_namespace).or(defaults.namespace),
        context: keys.parsed("context", parse_program_path).or(defaults.context),
        kubeconfig: keys.parsed("kubeconfig", parse_program_path).or(defaults.kubeconfig),
        kubectl: keys.parsed("kubectl", parse_program_path).unwrap_or(defaults.kubectl),
        requests,
        limits,
        node_selector: keys.pairs("node_selector", is_label).unwrap_or(defaults.node_selector),
        tolerations: match keys.take("tolerations") {
            Some(node) => each(node, keys.problems, toleration),
            None => defaults.tolerations,
        },
        service_account: keys.parsed("service_account", word).or(defaults.service_account),
        pull_secrets: Some(keys.strings("pull_secrets"))
            .filter(|names| !names.is_empty())
            .unwrap_or(defaults.pull_secrets),
        labels: keys.pairs("labels", is_label).unwrap_or(defaults.labels),
        annotations: keys.pairs("annotations", is_annotation).unwrap_or(defaults.annotations),
        spread: keys.parsed("spread", parse_spread).unwrap_or(defaults.spread),
        program: keys.parsed("binary", parse_program).unwrap_or(defaults.program),
        ready_within: keys.parsed("ready_within", parse_ready_within).unwrap_or(defaults.ready_within),
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
        namespace: keys.parsed("namespace", parse_namespace).or(defaults.namespace),
        context: keys.parsed("context", parse_program_path).or(defaults.context),
        kubeconfig: keys.parsed("kubeconfig", parse_program_path).or(defaults.kubeconfig),
        kubectl: keys.parsed("kubectl", parse_program_path).unwrap_or(defaults.kubectl),
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
        let (requests, limits) = (with(requests), with(limits));
        self.problems.extend(too_high(node, &requests, &limits));
        Some((requests, limits))
    }

    fn quantities(&mut self, key: &str) -> Option<BTreeMap<String, String>> {
        let node = self.take(key)?;
        let entries = Keys::of(node, "a list of resources", self.problems).entries;
        Some(
            entries.into_iter().filter_map(|(name, node)| read_quantity(name, node, self.problems)).collect(),
        )
    }

    /// A mapping of texts that Kubernetes accepts.
    fn pairs(
        &mut self,
        key: &'static str,
        is_valid: impl Fn((&str, &str)) -> bool,
    ) -> Option<BTreeMap<String, String>> {
        let node = self.take(key)?;
        let mut pairs = BTreeMap::new();
        for (name, node) in Keys::of(node, key, self.problems).entries {
            let Some(text) = single(node, self.problems) else { continue };
            if !is_valid((&name.value, &text.value)) {
                let message =
                    format!("`{}: {}`: Kubernetes does not accept it in `{key}`", name.value, text.value);
                self.problems.push(Problem::at(name.place, message, LABEL_HELP));
            }
            pairs.insert(name.value.clone(), text.value);
        }
        Some(pairs)
    }
}

/// Requests that no pod can have, because its limits are lower.
fn too_high(
    resources: &Node,
    requests: &BTreeMap<String, String>,
    limits: &BTreeMap<String, String>,
) -> Vec<Problem> {
    let amount = |text: &String| quantity(text).unwrap_or_default();
    let both = requests.iter().filter_map(|(name, request)| Some((name, request, limits.get(name)?)));
    let wrong = both.filter(|(_, request, limit)| amount(request) > amount(limit));
    wrong
        .map(|(name, request, limit)| {
            let message = format!("the request `{name}: {request}` is above the limit `{limit}`");
            Problem::at(resources.place, message, "request at most as much as the limit")
        })
        .collect()
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

fn parse_ready_within(text: &str) -> Result<Duration, InputError> {
    let time = parse_duration(text)?;
    match time.is_zero() {
        false => Ok(time),
        true => Err(InputError::at(text, 0, "no pod is ready at once", "write a time, such as `2m`")),
    }
}

fn parse_namespace(text: &str) -> Result<String, InputError> {
    let help = "write lower-case letters, digits and `-`, such as `load-test`";
    let error = || InputError::at(text, 0, "not a name of a namespace", help);
    is_namespace(text).then(|| text.to_owned()).ok_or_else(error)
}

/// A program or a path, which may have blanks.
///
/// # Errors
/// When it is empty, or looks like a flag.
pub fn parse_program_path(text: &str) -> Result<String, InputError> {
    let help = "write a name or a path, such as `kubectl` or `oc`";
    match text.trim().is_empty() || text.starts_with('-') {
        false => Ok(text.to_owned()),
        true => Err(InputError::at(text, 0, "neither a name nor a path", help)),
    }
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

const LABEL_HELP: &str =
    "write letters, digits, `-`, `_` and `.`, at most 63; a key may have a domain and `/` before it";

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
