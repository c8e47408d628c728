//! The state of a pool's pods, as `kubectl get` prints it: who is ready, and what the others wait for, in Kubernetes' own words.

use std::collections::BTreeMap;

use serde_json::{Deserializer, Value};

use super::manifest::CONTAINER;
use crate::protocol::Trouble;

/// What became of a pod so far.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum PodState {
    /// It is not ready; and why not, where that is known.
    Waiting(Option<String>),
    /// It runs.
    Ready(Pod),
    /// It will never be ready.
    Failed(Trouble),
}

/// A pod that runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pod {
    pub name: String,
    /// Facts for reports: node, image, requests and limits.
    pub facts: BTreeMap<String, String>,
}

/// The first JSON object of a text; `Null` where there is none.
pub(crate) fn object(text: &[u8]) -> Value {
    Deserializer::from_slice(text).into_iter::<Value>().next().and_then(Result::ok).unwrap_or(Value::Null)
}

/// The pods of a list by their index.
pub(crate) fn states(list: &Value) -> BTreeMap<usize, PodState> {
    let pods = list["items"].as_array().map_or(&[][..], Vec::as_slice);
    pods.iter().filter_map(|pod| Some((index(pod)?, state(pod)))).collect()
}

fn index(pod: &Value) -> Option<usize> {
    pod["metadata"]["annotations"][INDEX].as_str()?.parse().ok()
}

fn state(pod: &Value) -> PodState {
    let status = &pod["status"];
    if !pod["metadata"]["deletionTimestamp"].is_null()
        || matches!(text(&status["phase"]), "Failed" | "Succeeded")
    {
        let fate = fate(pod).unwrap_or_else(|| "it has ended".to_owned());
        let help = final_help(&container_status(status)["state"]["terminated"]).unwrap_or(END_HELP);
        return PodState::Failed(Trouble::new(format!("its pod ended before the run: {fate}"), help));
    }
    if let Some(message) = condition(status, "PodScheduled", "False") {
        return PodState::Waiting(Some(message));
    }
    let waiting = &container_status(status)["state"]["waiting"];
    let words = joined(text(&waiting["reason"]), text(&waiting["message"]));
    if let Some(help) = final_help(waiting) {
        return PodState::Failed(Trouble::new(format!("its container does not start: {words}"), help));
    }
    if condition(status, "Ready", "True").is_some() {
        return PodState::Ready(Pod { name: text(&pod["metadata"]["name"]).to_owned(), facts: facts(pod) });
    }
    PodState::Waiting(Some(words).filter(|words| !words.is_empty()))
}

/// What helps where a container's state has a reason that time does not remedy.
fn final_help(state: &Value) -> Option<&'static str> {
    FINAL_REASONS.iter().find(|(name, _)| *name == text(&state["reason"])).map(|(_, help)| *help)
}

/// What ended a pod, as far as its object says; `None` while it runs.
pub(crate) fn fate(pod: &Value) -> Option<String> {
    let status = &pod["status"];
    let reason = text(&status["reason"]);
    if !reason.is_empty() {
        return Some(joined(reason, text(&status["message"])));
    }
    if let Some(message) = condition(status, "DisruptionTarget", "True") {
        return Some(message);
    }
    if !pod["metadata"]["deletionTimestamp"].is_null() {
        return Some("its pod was deleted".to_owned());
    }
    let ended = &container_status(status)["state"]["terminated"];
    let code = ended["exitCode"].as_i64()?;
    let words = joined(text(&ended["reason"]), text(&ended["message"]));
    Some(format!(
        "its container ended with exit code {code}{}",
        if words.is_empty() { String::new() } else { format!(" ({words})") }
    ))
}

/// Why a Job has fewer pods than it asks for, by its events; and whether that cannot change.
pub(crate) fn creation_failure(events: &Value) -> Option<(String, bool)> {
    let events = events["items"].as_array()?;
    let failed = events.iter().rfind(|event| text(&event["reason"]) == "FailedCreate")?;
    let message = text(&failed["message"]).trim_start_matches("Error creating: ").to_owned();
    let may_change = MAY_CHANGE.iter().any(|part| message.contains(part));
    Some((message, !may_change))
}

fn joined(reason: &str, message: &str) -> String {
    let parts = [reason, message];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(": ")
}

/// The message of a condition that has this status; its reason where it has none.
fn condition(status: &Value, kind: &str, wanted: &str) -> Option<String> {
    let conditions = status["conditions"].as_array()?;
    let found =
        conditions.iter().find(|found| text(&found["type"]) == kind && text(&found["status"]) == wanted)?;
    let words = [&found["message"], &found["reason"]].map(text);
    Some(words.into_iter().find(|words| !words.is_empty()).unwrap_or_default().to_owned())
}

fn container_status(status: &Value) -> &Value {
    let all = status["containerStatuses"].as_array().map_or(&[][..], Vec::as_slice);
    all.iter().find(|own| text(&own["name"]) == CONTAINER).unwrap_or(&Value::Null)
}

fn facts(pod: &Value) -> BTreeMap<String, String> {
    let mut facts = BTreeMap::new();
    let mut fact = |name: &str, value: &Value| {
        if let Some(value) = value.as_str().filter(|value| !value.is_empty()) {
            facts.insert(name.to_owned(), value.to_owned());
        }
    };
    fact("pod", &pod["metadata"]["name"]);
    fact("namespace", &pod["metadata"]["namespace"]);
    fact(NODE_FACT, &pod["spec"]["nodeName"]);
    fact("image", &container_status(&pod["status"])["imageID"]);
    let containers = pod["spec"]["containers"].as_array().map_or(&[][..], Vec::as_slice);
    let resources =
        containers.iter().find(|own| text(&own["name"]) == CONTAINER).map(|own| &own["resources"]);
    if let Some(resources) = resources {
        fact(CPU_REQUEST_FACT, &resources["requests"]["cpu"]);
        fact(CPU_LIMIT_FACT, &resources["limits"]["cpu"]);
        fact("memory_request", &resources["requests"]["memory"]);
        fact("memory_limit", &resources["limits"]["memory"]);
    }
    facts
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// A machine's fact that names the node of its pod.
pub(crate) const NODE_FACT: &str = "node";

/// CPUs that are reserved for a pod, and those that it may use, as quantities of Kubernetes.
pub(crate) const CPU_REQUEST_FACT: &str = "cpu_request";
pub(crate) const CPU_LIMIT_FACT: &str = "cpu_limit";

/// The Job controller's annotation, older than the label of the same name.
const INDEX: &str = "batch.kubernetes.io/job-completion-index";

const END_HELP: &str = "`kubectl describe pod` says more; check the node, its memory and who deletes pods";

/// Parts of reasons for which pods are not created yet. A namespace has its default service account a moment after itself.
const MAY_CHANGE: &[&str] = &["exceeded quota", "timeout", "serviceaccount \"default\" not found"];

const PROGRAM_HELP: &str = "use an image with /bin/sh, or one with squall and `binary: image`";

/// Reasons for which a container waits or has ended that time does not remedy, and what helps. `ErrImagePull` is tried again first.
const FINAL_REASONS: &[(&str, &str)] = &[
    ("ImagePullBackOff", "correct `image`, or name a secret for the registry: `pull_secrets`"),
    ("InvalidImageName", "correct `image`"),
    ("ErrImageNeverPull", "correct `image`, or put it on the nodes"),
    ("CreateContainerConfigError", "correct what it names in the pool's entry"),
    ("CreateContainerError", PROGRAM_HELP),
    ("RunContainerError", PROGRAM_HELP),
    ("StartError", PROGRAM_HELP),
    ("ContainerCannotRun", PROGRAM_HELP),
    ("CrashLoopBackOff", PROGRAM_HELP),
];

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod(status: &Value) -> Value {
        json!({
            "metadata": { "name": "squall-pods-0-abcde", "annotations": { INDEX: "0" } },
            "spec": {
                "nodeName": "node-1",
                "containers": [{ "name": "squall", "resources": { "limits": { "cpu": "2" }, "requests": { "cpu": "500m" } } }],
            },
            "status": status,
        })
    }

    fn waiting(reason: &str, message: &str) -> Value {
        let state = json!({ "waiting": { "reason": reason, "message": message } });
        pod(&json!({ "phase": "Pending", "containerStatuses": [{ "name": "squall", "state": state }] }))
    }

    #[test]
    fn a_pod_is_ready_with_its_facts() {
        let status = json!({
            "phase": "Running",
            "conditions": [{ "type": "Ready", "status": "True" }],
            "containerStatuses": [{ "name": "squall", "imageID": "busybox@sha256:1", "state": { "running": {} } }],
        });
        let PodState::Ready(pod) = &states(&json!({ "items": [pod(&status)] }))[&0] else { panic!() };
        let facts: Vec<String> = pod.facts.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let expected = [
            "cpu_limit=2",
            "cpu_request=500m",
            "image=busybox@sha256:1",
            "node=node-1",
            "pod=squall-pods-0-abcde",
        ];
        assert_eq!(facts, expected);
    }

    #[test]
    fn what_a_pod_waits_for_is_reported_in_the_words_of_kubernetes() {
        let unschedulable = json!({ "phase": "Pending", "conditions": [
            { "type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes are available: 3 Insufficient cpu." },
        ] });
        for (pod, expected) in [
            (pod(&unschedulable), "Waiting(Some(\"0/3 nodes are available: 3 Insufficient cpu.\"))"),
            (pod(&json!({ "phase": "Pending" })), "Waiting(None)"),
            (waiting("ContainerCreating", ""), "Waiting(Some(\"ContainerCreating\"))"),
            (waiting("ErrImagePull", "not found"), "Waiting(Some(\"ErrImagePull: not found\"))"),
        ] {
            assert_eq!(format!("{:?}", state(&pod)), expected);
        }
        for (pod, expected) in [
            (
                waiting("ImagePullBackOff", "Back-off pulling image \"x\""),
                "does not start: ImagePullBackOff: Back-off",
            ),
            (waiting("InvalidImageName", ""), "does not start: InvalidImageName"),
            (
                pod(&json!({ "phase": "Failed", "reason": "Evicted", "message": "low on memory" })),
                "Evicted: low on memory",
            ),
        ] {
            let PodState::Failed(trouble) = state(&pod) else { panic!("{pod}") };
            assert!(trouble.message.contains(expected), "{trouble:?}");
        }
    }

    #[test]
    fn an_image_without_the_program_is_a_wrong_image() {
        let ended = json!({ "terminated": { "exitCode": 128, "reason": "StartError", "message": "exec: \"/bin/sh\": no such file or directory" } });
        let status =
            json!({ "phase": "Failed", "containerStatuses": [{ "name": "squall", "state": ended }] });
        let PodState::Failed(trouble) = state(&pod(&status)) else { panic!() };
        assert_eq!(trouble.help, PROGRAM_HELP);
    }

    #[test]
    fn the_end_of_a_pod_has_a_cause() {
        let ended = json!({ "containerStatuses": [{ "name": "squall", "state": { "terminated": { "exitCode": 137, "reason": "OOMKilled" } } }] });
        assert_eq!(fate(&pod(&ended)).unwrap(), "its container ended with exit code 137 (OOMKilled)");
        let taint = json!({ "conditions": [{ "type": "DisruptionTarget", "status": "True", "reason": "DeletionByTaintManager", "message": "Taint manager: deleting due to NoExecute taint" }] });
        assert_eq!(fate(&pod(&taint)).unwrap(), "Taint manager: deleting due to NoExecute taint");
        assert_eq!(fate(&pod(&json!({ "phase": "Running" }))), None);
    }

    #[test]
    fn a_job_without_pods_says_why_in_its_events() {
        let events = |message: &str| json!({ "items": [{ "reason": "FailedCreate", "message": message }] });
        let quota = "Error creating: pods \"x\" is forbidden: exceeded quota: small";
        assert_eq!(creation_failure(&events(quota)), Some((quota[16..].to_owned(), false)));
        let is_final = |message: &str| creation_failure(&events(message)).unwrap().1;
        assert!(is_final("Error creating: pods \"x\" is forbidden: violates PodSecurity"));
        let account = "pods \"x\" is forbidden: error looking up service account load/";
        assert!(is_final(&format!("{account}other: serviceaccount \"other\" not found")));
        assert!(!is_final(&format!("{account}default: serviceaccount \"default\" not found")));
        assert_eq!(creation_failure(&json!({ "items": [] })), None);
    }
}
