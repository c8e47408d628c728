//! The objects of a pool: its Job, and the Role that running it needs, which is namespaced. Written as YAML, too, for people and GitOps.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use serde_json::{Map, Value, json};
use squall_plan::file::kubernetes::{KubernetesPool, PodProgram, Spread};
use squall_plan::file::{ClusterObjects, MachineSettings, Reach, Watched};
use squall_plan::printable::{is_unsafe, printable_json};

use super::access::{NEEDED, NEEDED_FOR_NODES, NEEDED_FOR_PODS, NeededAccess};
use super::standby::{PID_FILE_VARIABLE, STANDBY_SCRIPT};
use crate::order::FleetPlan;

/// What a plan needs of its clusters, as YAML: a Role and its binding once for each namespace of its pools and of the pods that it
/// monitors, and a Job for each pool.
pub fn manifests(plan: &FleetPlan) -> String {
    let mut objects: Vec<Value> = Vec::new();
    for machine in &plan.machines {
        let Reach::Pod { pool, index: 0 } = &machine.reach else { continue };
        add_new(&mut objects, granted("squall", pool.namespace.as_deref(), NEEDED));
        objects.push(job(pool, Name::Prefix(&stem(pool)), &Terms::of(pool, plan, &machine.settings)));
    }
    for monitor in &plan.monitors {
        let Watched::Kubernetes(ClusterObjects { are_nodes, cluster, .. }) = &monitor.what else { continue };
        add_new(
            &mut objects,
            match are_nodes {
                true => granted_everywhere("squall-monitor", NEEDED_FOR_NODES),
                false => granted("squall-monitor", cluster.namespace.as_deref(), NEEDED_FOR_PODS),
            },
        );
    }
    let texts: Vec<String> = objects.iter().map(yaml).collect();
    texts.join("---\n")
}

fn add_new(objects: &mut Vec<Value>, new: [Value; 2]) {
    for object in new {
        if !objects.contains(&object) {
            objects.push(object);
        }
    }
}

/// What a Job is called.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Name<'n> {
    /// The API server adds to it.
    Prefix(&'n str),
    Whole(&'n str),
}

/// On which terms the pods of a Job run.
#[derive(Debug, Clone)]
pub(crate) struct Terms {
    /// When the Job is ended, whatever happens.
    pub deadline: Duration,
    /// Environment of containers whose agents no shell starts.
    pub env: BTreeMap<String, String>,
    /// How long a pod waits for its agent.
    pub standby: Duration,
}

impl Terms {
    pub(crate) fn of(pool: &KubernetesPool, plan: &FleetPlan, settings: &MachineSettings) -> Self {
        let hooks = plan.steps.iter().flat_map(|step| step.before.iter().chain(&step.after));
        let hooks: Duration = hooks.map(|hook| hook.timeout).sum();
        let length = plan.length_max().map_or(LENGTH_UNKNOWN, |length| length + hooks);
        let env = match pool.program {
            PodProgram::Sent => BTreeMap::new(),
            PodProgram::Image => settings.env.clone(),
        };
        let standby = pool.ready_within + STANDBY_MARGIN;
        Self { deadline: length + standby + DEADLINE_MARGIN, env, standby }
    }
}

/// A name that Kubernetes accepts, made of the pool's.
pub(crate) fn stem(pool: &KubernetesPool) -> String {
    let letter = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    let name: String = pool.name.chars().take(NAME_LENGTH_MAX).map(letter).collect();
    format!("squall-{}", name.trim_matches('-')).trim_end_matches('-').to_owned()
}

/// The Job: as many pods as the pool has, none of which is started twice. It ends by itself, and is deleted after that.
pub(crate) fn job(pool: &KubernetesPool, name: Name<'_>, terms: &Terms) -> Value {
    let mut metadata = with_namespace(
        pool.namespace.as_deref(),
        match name {
            Name::Prefix(prefix) => json!({ "generateName": format!("{prefix}-") }),
            Name::Whole(name) => json!({ "name": name }),
        },
    );
    let instance = match name {
        Name::Prefix(name) | Name::Whole(name) => name,
    };
    let labels = labels(pool, instance);
    metadata["labels"] = json!(labels);
    let mut template_metadata = json!({ "labels": labels });
    if !pool.annotations.is_empty() {
        template_metadata["annotations"] = json!(pool.annotations);
    }
    json!({
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": metadata,
        "spec": {
            "completionMode": "Indexed",
            "completions": pool.replicas,
            "parallelism": pool.replicas,
            // Not `backoffLimit`: with the first pod that is lost, it ends all others.
            "backoffLimitPerIndex": 0,
            "activeDeadlineSeconds": terms.deadline.as_secs(),
            "ttlSecondsAfterFinished": TTL.as_secs(),
            "template": { "metadata": template_metadata, "spec": pod(pool, instance, terms) },
        },
    })
}

fn labels(pool: &KubernetesPool, instance: &str) -> BTreeMap<String, String> {
    let own = [(NAME_LABEL, "squall"), (INSTANCE_LABEL, instance)];
    let own = own.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned()));
    pool.labels.clone().into_iter().chain(own).collect()
}

/// Meets the Pod Security Standard `restricted`.
fn pod(pool: &KubernetesPool, instance: &str, terms: &Terms) -> Value {
    let mut security = json!({ "runAsNonRoot": true, "seccompProfile": { "type": "RuntimeDefault" } });
    // OpenShift assigns users itself, and rejects others.
    if Path::new(&pool.kubectl).file_name() != Some(OsStr::new("oc")) {
        for field in ["runAsUser", "runAsGroup", "fsGroup"] {
            security[field] = json!(USER_ID);
        }
    }
    let mut spec = json!({
        "restartPolicy": "Never",
        "automountServiceAccountToken": false,
        "enableServiceLinks": false,
        "terminationGracePeriodSeconds": GRACE.as_secs(),
        "securityContext": security,
        "containers": [container(pool, terms)],
        "volumes": [{ "name": "work", "emptyDir": {} }],
    });
    if let Some(account) = &pool.service_account {
        spec["serviceAccountName"] = json!(account);
    }
    if !pool.pull_secrets.is_empty() {
        spec["imagePullSecrets"] = pool.pull_secrets.iter().map(|name| json!({ "name": name })).collect();
    }
    if !pool.node_selector.is_empty() {
        spec["nodeSelector"] = json!(pool.node_selector);
    }
    if !pool.tolerations.is_empty() {
        spec["tolerations"] = json!(pool.tolerations);
    }
    match pool.spread {
        Spread::Even => {
            spec["topologySpreadConstraints"] = json!([{
                "maxSkew": 1,
                "topologyKey": "kubernetes.io/hostname",
                "whenUnsatisfiable": "ScheduleAnyway",
                "labelSelector": { "matchLabels": { INSTANCE_LABEL: instance } },
            }]);
        }
        Spread::Node => {
            spec["affinity"] = json!({ "podAntiAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": [{
                "topologyKey": "kubernetes.io/hostname",
                "labelSelector": { "matchLabels": { NAME_LABEL: "squall" } },
            }] } });
        }
        Spread::Any => {}
    }
    spec
}

fn container(pool: &KubernetesPool, terms: &Terms) -> Value {
    let seconds = terms.standby.as_secs().to_string();
    let command = match pool.program {
        PodProgram::Sent => json!(["/bin/sh", "-c", STANDBY_SCRIPT, "squall-standby", seconds]),
        PodProgram::Image => json!(["squall", "agent", "--standby", format!("{seconds}s")]),
    };
    let own = [("HOME", FOLDER), ("TMPDIR", FOLDER), (PID_FILE_VARIABLE, PID_FILE)];
    let mut env: BTreeMap<&str, &str> = own.into_iter().collect();
    env.extend(terms.env.iter().map(|(name, value)| (name.as_str(), value.as_str())));
    let env: Vec<Value> = env.iter().map(|(name, value)| json!({ "name": name, "value": value })).collect();
    let mut container = json!({
        "name": CONTAINER,
        "image": pool.image,
        "command": command,
        "env": env,
        "securityContext": {
            "allowPrivilegeEscalation": false,
            "capabilities": { "drop": ["ALL"] },
            "readOnlyRootFilesystem": true,
        },
        "volumeMounts": [{ "name": "work", "mountPath": FOLDER }],
    });
    let mut resources = Map::new();
    for (name, quantities) in [("requests", &pool.requests), ("limits", &pool.limits)] {
        if !quantities.is_empty() {
            resources.insert(name.to_owned(), json!(quantities));
        }
    }
    if !resources.is_empty() {
        container["resources"] = Value::Object(resources);
    }
    container
}

/// A Role with exactly the verbs that are used, and its binding to a service account: the user replaces that by who runs squall.
fn granted(name: &str, namespace: Option<&str>, needed: &[NeededAccess]) -> [Value; 2] {
    let metadata = with_namespace(namespace, json!({ "name": name }));
    [role("Role", &metadata, needed), binding("Role", &metadata, &with_namespace(namespace, subject()))]
}

/// The same for objects that are in no namespace.
fn granted_everywhere(name: &str, needed: &[NeededAccess]) -> [Value; 2] {
    let metadata = json!({ "name": name });
    let subject = with_namespace(Some("default"), subject());
    [role("ClusterRole", &metadata, needed), binding("ClusterRole", &metadata, &subject)]
}

fn role(kind: &str, metadata: &Value, needed: &[NeededAccess]) -> Value {
    let mut rules: Vec<(&str, String, Vec<&str>)> = Vec::new();
    for access in needed {
        let resource = access.full_resource();
        match rules
            .iter_mut()
            .find(|(group, known, _)| (*group, known.as_str()) == (access.group, resource.as_str()))
        {
            Some((_, _, verbs)) => verbs.push(access.verb),
            None => rules.push((access.group, resource, vec![access.verb])),
        }
    }
    let rule = |(group, resource, verbs): (&str, String, Vec<&str>)| json!({ "apiGroups": [group], "resources": [resource], "verbs": verbs });
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": kind,
        "metadata": metadata,
        "rules": rules.into_iter().map(rule).collect::<Vec<_>>(),
    })
}

fn binding(kind: &str, metadata: &Value, subject: &Value) -> Value {
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": format!("{kind}Binding"),
        "metadata": metadata,
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": metadata["name"] },
        "subjects": [subject],
    })
}

fn subject() -> Value {
    json!({ "kind": "ServiceAccount", "name": "squall" })
}

fn with_namespace(namespace: Option<&str>, mut object: Value) -> Value {
    if let Some(namespace) = namespace {
        object["namespace"] = json!(namespace);
    }
    object
}

/// An object as a YAML document.
fn yaml(object: &Value) -> String {
    let mut text = String::new();
    block(&mut text, object, 0);
    text
}

/// Writes a value in lines of its own.
fn block(text: &mut String, value: &Value, depth: usize) {
    let indent = "  ".repeat(depth);
    match value {
        Value::Object(entries) => {
            // What names an object comes first.
            let rank =
                |key: &str| FIRST_KEYS.iter().position(|first| *first == key).unwrap_or(FIRST_KEYS.len());
            let mut entries: Vec<(&String, &Value)> = entries.iter().collect();
            entries.sort_by_key(|(key, _)| (rank(key), *key));
            for (key, value) in entries {
                let _ = write!(text, "{indent}{}:", word(key));
                after_mark(text, value, depth + 1);
            }
        }
        Value::Array(items) => {
            for item in items {
                let _ = write!(text, "{indent}-");
                after_mark(text, item, depth + 1);
            }
        }
        scalar => {
            let _ = writeln!(text, "{indent}{}", flow(scalar));
        }
    }
}

/// Writes what follows a key or a dash: on the same line where it fits, else below it.
fn after_mark(text: &mut String, value: &Value, depth: usize) {
    let is_plain = |value: &Value| !value.is_object() && !value.is_array();
    let is_on_line = match value {
        Value::Object(entries) => entries.is_empty(),
        Value::Array(items) => items.iter().all(is_plain) && flow(value).len() < LINE_LENGTH_MAX,
        _ => true,
    };
    if let Value::String(text_lines) = value
        && is_block(text_lines)
    {
        let indent = "  ".repeat(depth);
        let lines: Vec<String> = text_lines.lines().map(|line| format!("{indent}{line}\n")).collect();
        let _ = write!(text, " |-\n{}", lines.concat());
    } else if is_on_line {
        let _ = writeln!(text, " {}", flow(value));
    } else {
        text.push('\n');
        block(text, value, depth);
    }
}

/// JSON, which YAML includes; words that mean nothing else need no quotes.
fn flow(value: &Value) -> String {
    match value {
        Value::String(text) => word(text),
        Value::Array(items) => format!("[{}]", items.iter().map(flow).collect::<Vec<_>>().join(", ")),
        other => other.to_string(),
    }
}

/// Whether a string can be written line by line: its first line sets the indent, and its end is that of the last one.
fn is_block(text: &str) -> bool {
    text.contains('\n')
        && !text.starts_with(char::is_whitespace)
        && !text.ends_with('\n')
        && !text.contains(|c| is_unsafe(c) || c == '\t')
}

/// A string, in quotes where it would mean something else without them.
fn word(text: &str) -> String {
    if is_plain_word(text) { text.to_owned() } else { printable_json(json!(text).to_string()) }
}

fn is_plain_word(word: &str) -> bool {
    let is_letter = |c: char| c.is_ascii_alphanumeric() || "-_./".contains(c);
    let is_other = matches!(
        word.to_ascii_lowercase().as_str(),
        "true" | "false" | "null" | "yes" | "no" | "on" | "off" | "y" | "n"
    );
    word.starts_with(|c: char| c.is_ascii_alphabetic() || c == '/')
        && word.chars().all(is_letter)
        && !is_other
}

pub(crate) const CONTAINER: &str = "squall";
pub(crate) const INSTANCE_LABEL: &str = "app.kubernetes.io/instance";
const NAME_LABEL: &str = "app.kubernetes.io/name";
const FOLDER: &str = "/squall";
const PID_FILE: &str = "/squall/agent.pid";

/// Of no user of any system.
const USER_ID: u32 = 65532;

/// A Job of a plan that no time ends.
const LENGTH_UNKNOWN: Duration = Duration::from_secs(24 * 3600);

/// A run also prepares its loads, sends files, and waits for open requests.
const DEADLINE_MARGIN: Duration = Duration::from_secs(600);

/// The pods that are ready first wait for the others, and for squall to be sent to them.
const STANDBY_MARGIN: Duration = Duration::from_secs(180);

/// A controller that ended normally has deleted the Job by then.
const TTL: Duration = Duration::from_secs(60);

/// The agent is ended in other ways.
const GRACE: Duration = Duration::from_secs(5);

/// Names of Jobs have at most 63 characters, those of their pods two dozen more than the Job's.
const NAME_LENGTH_MAX: usize = 30;

const FIRST_KEYS: &[&str] = &["apiVersion", "kind", "metadata", "name", "generateName"];
const LINE_LENGTH_MAX: usize = 80;

#[cfg(test)]
mod tests {
    use super::*;

    fn terms() -> Terms {
        let env = BTreeMap::from([("A".to_owned(), "b c".to_owned())]);
        Terms { deadline: Duration::from_secs(900), env, standby: Duration::from_secs(300) }
    }

    fn pool() -> KubernetesPool {
        KubernetesPool { name: "EU pods".to_owned(), replicas: 3, ..KubernetesPool::default() }
    }

    #[test]
    fn a_job_is_indexed_restricted_and_ends_by_itself() {
        let pool = pool();
        assert_eq!(stem(&pool), "squall-eu-pods");
        // Labels end with a letter or a digit.
        assert_eq!(stem(&KubernetesPool { name: "日本".to_owned(), ..pool.clone() }), "squall");
        let job = job(&pool, Name::Whole("squall-eu-pods-1"), &terms());
        let spec = &job["spec"];
        assert_eq!((&spec["completionMode"], &spec["completions"]), (&json!("Indexed"), &json!(3)));
        assert_eq!((&spec["backoffLimitPerIndex"], &spec["activeDeadlineSeconds"]), (&json!(0), &json!(900)));
        assert!(spec.get("backoffLimit").is_none());
        let pod = &spec["template"]["spec"];
        assert_eq!(pod["securityContext"]["runAsNonRoot"], true);
        assert_eq!(pod["automountServiceAccountToken"], false);
        let container = &pod["containers"][0];
        assert_eq!(container["securityContext"]["capabilities"]["drop"], json!(["ALL"]));
        assert!(container.get("resources").is_none() && pod.get("affinity").is_none());
        assert_eq!(
            pod["topologySpreadConstraints"][0]["labelSelector"]["matchLabels"][INSTANCE_LABEL],
            "squall-eu-pods-1"
        );
    }

    #[test]
    fn an_image_with_squall_needs_no_shell() {
        let pool = KubernetesPool { program: PodProgram::Image, spread: Spread::Node, ..pool() };
        let job = job(&pool, Name::Prefix("squall-eu"), &terms());
        let pod = &job["spec"]["template"]["spec"];
        assert_eq!(pod["containers"][0]["command"], json!(["squall", "agent", "--standby", "300s"]));
        assert!(
            pod["containers"][0]["env"].as_array().unwrap().contains(&json!({ "name": "A", "value": "b c" }))
        );
        assert!(pod.get("topologySpreadConstraints").is_none() && pod["affinity"].is_object());
        assert_eq!(job["metadata"]["generateName"], "squall-eu-");
    }

    #[test]
    fn openshift_assigns_the_user_itself() {
        for (kubectl, user) in [
            ("kubectl", json!(USER_ID)),
            ("oc", Value::Null),
            ("/usr/local/bin/oc", Value::Null),
            ("/opt/oc/kubectl", json!(USER_ID)),
        ] {
            let pool = KubernetesPool { kubectl: kubectl.to_owned(), ..pool() };
            let job = job(&pool, Name::Prefix("squall-eu"), &terms());
            let security = &job["spec"]["template"]["spec"]["securityContext"];
            for field in ["runAsUser", "runAsGroup", "fsGroup"] {
                assert_eq!(security[field], user, "{kubectl} {field}");
            }
            assert_eq!(security["runAsNonRoot"], true);
        }
    }

    #[test]
    fn objects_are_written_as_yaml() {
        let object = json!({
            "kind": "Job", "apiVersion": "batch/v1",
            "spec": { "a": 1, "list": [{ "name": "x", "b": true }, "two words"], "none": {}, "text": "a\n  b", "on": "true" },
        });
        let expected = "apiVersion: batch/v1\nkind: Job\nspec:\n  a: 1\n  list:\n    -\n      name: x\n      b: true\n    - \"two words\"\n  none: {}\n  \"on\": \"true\"\n  text: |-\n    a\n      b\n";
        assert_eq!(yaml(&object), expected);
    }

    #[test]
    fn texts_that_lines_cannot_hold_are_quoted() {
        for (value, expected) in [
            ("a\nb", "k: |-\n  a\n  b\n"),
            ("a\nb\n", "k: \"a\\nb\\n\"\n"),
            ("  a\nb", "k: \"  a\\nb\"\n"),
            ("a\r\nb", "k: \"a\\r\\nb\"\n"),
            ("a\n\u{1b}b", "k: \"a\\n\\u001bb\"\n"),
            ("a\u{7f}\u{2028}", "k: \"a\\u007f\\u2028\"\n"),
        ] {
            assert_eq!(yaml(&json!({ "k": value })), expected);
        }
    }

    #[test]
    fn the_role_is_that_of_the_verbs_that_are_used() {
        let [role, _] = granted("squall", Some("load"), NEEDED);
        assert_eq!((&role["kind"], &role["metadata"]["namespace"]), (&json!("Role"), &json!("load")));
        let rules = role["rules"].as_array().unwrap();
        let expected = json!({ "apiGroups": [""], "resources": ["pods/exec"], "verbs": ["create", "get"] });
        assert!(rules.contains(&expected), "{rules:?}");
    }
}
