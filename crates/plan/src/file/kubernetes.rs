//! Pods of a Kubernetes cluster as machines: what a pool of them is.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::{Machine, Reach, Text};

/// Pods that one Job starts, each of which is a machine of the plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KubernetesPool {
    /// Its name in the plan.
    pub name: String,
    /// How many pods.
    pub replicas: usize,
    /// The container's image.
    pub image: String,
    /// Namespace; `None`: that of the context.
    pub namespace: Option<String>,
    /// Context of the kubeconfig; `None`: the current one.
    pub context: Option<String>,
    /// The kubeconfig; `None`: the one that `kubectl` finds.
    pub kubeconfig: Option<String>,
    /// The program that reaches the cluster: `kubectl`, `oc`, or a path.
    pub kubectl: String,
    /// What the scheduler reserves for each pod, such as `cpu` and `memory`.
    pub requests: BTreeMap<String, String>,
    /// What each pod may use at most.
    pub limits: BTreeMap<String, String>,
    /// Labels that a node must have.
    pub node_selector: BTreeMap<String, String>,
    /// Taints of nodes that the pods tolerate, with the fields of Kubernetes: `key`, `operator`, `value`, `effect`.
    pub tolerations: Vec<BTreeMap<String, String>>,
    /// The service account of the pods; its token is not mounted.
    pub service_account: Option<String>,
    /// Secrets for pulling the image.
    pub pull_secrets: Vec<String>,
    /// Further labels of the Job and its pods.
    pub labels: BTreeMap<String, String>,
    /// Annotations of the pods.
    pub annotations: BTreeMap<String, String>,
    /// How the pods are distributed over the nodes.
    pub spread: Spread,
    /// Where the pods have squall from.
    pub program: PodProgram,
    /// How long all pods may take to become ready.
    pub ready_within: Duration,
}

/// How pods are distributed over nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Spread {
    /// As evenly as possible; a node may run several.
    #[default]
    Even,
    /// At most one on each node.
    Node,
    /// As the scheduler likes.
    Any,
}

/// Where a pod has squall from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PodProgram {
    /// It is sent, as over ssh; the image needs a shell and the usual small tools.
    #[default]
    Sent,
    /// It is `squall` in the image, which needs nothing else.
    Image,
}

impl Default for KubernetesPool {
    fn default() -> Self {
        Self {
            name: String::new(),
            replicas: 1,
            image: IMAGE.to_owned(),
            namespace: None,
            context: None,
            kubeconfig: None,
            kubectl: "kubectl".to_owned(),
            requests: BTreeMap::new(),
            limits: BTreeMap::new(),
            node_selector: BTreeMap::new(),
            tolerations: Vec::new(),
            service_account: None,
            pull_secrets: Vec::new(),
            labels: BTreeMap::new(),
            annotations: BTreeMap::new(),
            spread: Spread::default(),
            program: PodProgram::default(),
            ready_within: READY_WITHIN,
        }
    }
}

/// The machines of a pool: `pods-0`, `pods-1` and so on.
pub(super) fn machines(like: &Machine) -> Vec<Machine> {
    let Reach::Pod { pool, .. } = &like.reach else { return vec![like.clone()] };
    let pod = |index: usize| Machine {
        name: Text { value: format!("{}-{index}", like.name.value), place: like.name.place },
        reach: Reach::Pod { pool: Arc::clone(pool), index },
        ..like.clone()
    };
    (0..pool.replicas).map(pod).collect()
}

/// A quantity of Kubernetes: a decimal number with an optional suffix or exponent; `None` when it is none.
pub fn quantity(text: &str) -> Option<f64> {
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let number: f64 = text[..digits].parse().ok()?;
    let suffix = &text[digits..];
    let known = SUFFIXES.iter().find(|(name, _)| *name == suffix).map(|(_, factor)| *factor);
    let exponent = || suffix.strip_prefix(['e', 'E'])?.parse::<i8>().ok();
    Some(number * known.or_else(|| Some(10_f64.powi(exponent()?.into())))?)
}

/// A name of a namespace (RFC 1123).
pub(super) fn is_namespace(text: &str) -> bool {
    let is_inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    (1..=NAME_LENGTH_MAX).contains(&text.len()) && text.chars().all(is_inner) && has_letters_at_ends(text)
}

/// A key of a label or an annotation: a name, which may follow a domain and a slash.
pub(super) fn is_label_key(text: &str) -> bool {
    let (domain, name) = text.split_once('/').map_or((None, text), |(domain, name)| (Some(domain), name));
    let is_domain = |domain: &str| domain.len() <= DOMAIN_LENGTH_MAX && domain.split('.').all(is_namespace);
    domain.is_none_or(is_domain) && !name.is_empty() && is_label_value(name)
}

/// The value of a label.
pub(super) fn is_label_value(text: &str) -> bool {
    let is_inner = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    text.len() <= NAME_LENGTH_MAX && text.chars().all(is_inner) && has_letters_at_ends(text)
}

/// Whether it begins and ends with a letter or a digit, where it is not empty.
fn has_letters_at_ends(text: &str) -> bool {
    let ends = [text.chars().next(), text.chars().next_back()];
    ends.into_iter().flatten().all(|c| c.is_ascii_alphanumeric())
}

/// Of Kubernetes' names and labels.
const NAME_LENGTH_MAX: usize = 63;
const DOMAIN_LENGTH_MAX: usize = 253;

/// Small, and it has what is needed to receive squall.
const IMAGE: &str = "busybox:stable";

/// Time for an image to be pulled and for an autoscaler to add nodes.
const READY_WITHIN: Duration = Duration::from_secs(120);

/// Kubernetes' suffixes of quantities.
const SUFFIXES: &[(&str, f64)] = &[
    ("", 1.0),
    ("n", 1e-9),
    ("u", 1e-6),
    ("m", 1e-3),
    ("k", 1e3),
    ("M", 1e6),
    ("G", 1e9),
    ("T", 1e12),
    ("P", 1e15),
    ("E", 1e18),
    ("Ki", 1024.0),
    ("Mi", 1_048_576.0),
    ("Gi", 1_073_741_824.0),
    ("Ti", 1_099_511_627_776.0),
    ("Pi", 1_125_899_906_842_624.0),
    ("Ei", 1_152_921_504_606_846_976.0),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_labels_are_those_that_kubernetes_accepts() {
        let long = "x".repeat(64);
        for (text, expected) in [
            ("load", true),
            ("load-2", true),
            ("Load", false),
            ("-load", false),
            ("load_2", false),
            ("", false),
            (&long, false),
        ] {
            assert_eq!(is_namespace(text), expected, "{text}");
        }
        for (text, expected) in [
            ("team", true),
            ("app.kubernetes.io/part-of", true),
            ("Team_1.x", true),
            ("", false),
            ("a b", false),
            ("a/b/c", false),
            ("/b", false),
            ("example.com/", false),
            ("UPPER.com/b", false),
            ("team-", false),
            (&long, false),
        ] {
            assert_eq!(is_label_key(text), expected, "{text}");
        }
        assert!(is_label_value("") && !is_label_value("not ok"));
    }

    #[test]
    fn quantities_are_read_as_kubernetes_does() {
        for (text, expected) in [
            ("2", Some(2.0)),
            ("500m", Some(0.5)),
            ("1.5", Some(1.5)),
            ("1Gi", Some(1_073_741_824.0)),
            ("100k", Some(100_000.0)),
            ("1E", Some(1e18)),
            ("1Ei", Some(1_152_921_504_606_846_976.0)),
            ("1e1", Some(10.0)),
            ("12E-2", Some(0.12)),
            ("1e", None),
            ("1e1.5", None),
            ("1e999", None),
            ("", None),
            ("two", None),
            ("1 Gi", None),
            ("1GB", None),
        ] {
            assert_eq!(quantity(text), expected, "{text}");
        }
    }
}
