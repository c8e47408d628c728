//! Pods of a cluster, behind a `kubectl` that answers as recorded and runs `exec` here.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use crate::squall::{Place, assert_code, ok, parts, text};

/// Answers of an API server that has three pods. `DENIED`: the verb that this user lacks; `PODS`: the status of each pod.
const KUBECTL: &str = r#"#!/bin/sh
here=$(dirname "$0")
echo "$*" | head -n 1 | cut -c1-60 >> "$here/calls"
case "$*" in
*"exec --stdin"*) while [ "$1" != -- ]; do shift; done; shift; exec "$@" ;;
*"config view"*) echo '{"contexts":[{"context":{"namespace":"load"}}]}' ;;
*delete*) rm "$here/job" ;;
*output=name*) cat > "$here/job"; echo job.batch/x ;;
*create*) sed 's/"spec":{"resourceAttributes"/"status":{"allowed":ALLOWED},"spec":{"resourceAttributes"/g' ;;
*"get pods"*)
  printf '{"items":['
  for i in 0 1 2; do
    [ $i = 0 ] || printf ,
    printf '{"metadata":{"name":"p-%s","annotations":{"batch.kubernetes.io/job-completion-index":"%s"}},"spec":{"nodeName":"n","containers":[{"name":"squall","resources":{"requests":{"cpu":"500m"},"limits":{"cpu":"2"}}}]},"status":STATUS}' $i $i
  done
  echo ']}' ;;
*) echo '{"items":[]}' ;;
esac
"#;

const READY: &str = r#"{"phase":"Running","conditions":[{"type":"Ready","status":"True"}],"containerStatuses":[{"name":"squall","imageID":"busybox@sha256:1","state":{"running":{}}}]}"#;

const PLAN: &str = "
target: TARGET
kubernetes: { kubectl: KUBECTL }
machines: { pods: { kubernetes: { replicas: 3, ready_within: 3s } } }
loads:
  - { http: /, requests: 300, connections: 6, name: plain }
  - { http: /bytes/10, requests: 10, connections: 1, name: one, on: pods-1 }
";

/// A place with such a `kubectl`, and a plan for it.
fn lab(is_allowed: bool, status: &str) -> (Place, String) {
    let place = Place::new();
    let kubectl = place.folder.path().join("kubectl");
    let script = KUBECTL.replace("ALLOWED", &is_allowed.to_string()).replace("STATUS", status);
    fs::write(&kubectl, script).unwrap();
    fs::set_permissions(&kubectl, fs::Permissions::from_mode(0o755)).unwrap();
    let plan = PLAN.replace("KUBECTL", &kubectl.display().to_string());
    (place, plan)
}

#[test]
fn pods_share_a_load_and_their_job_is_deleted() {
    let (place, plan) = lab(true, READY);
    let (record, output) = place.run(&plan, &[]);
    assert_code(&record, &output, 0);
    assert_eq!(ok(&record["total"]), 310);
    let machines = parts(&record, "machine");
    let expected = [("pods-0", 100), ("pods-1", 110), ("pods-2", 100)];
    assert_eq!(machines, expected.map(|(name, count)| (name.to_owned(), count)));
    let calls = fs::read_to_string(place.folder.path().join("calls")).unwrap();
    let facts = &record["parts"].as_array().unwrap().last().unwrap()["facts"];
    let shown =
        ["pod", "node", "image", "cpu_request", "cpu_limit"].map(|name| facts[name].as_str().unwrap());
    assert_eq!(shown, ["p-2", "n", "busybox@sha256:1", "500m", "2"]);
    for (kind, count) in [("cpu_not_reserved", 3.0), ("node_shared", 3.0)] {
        let reasons = record["verdict"]["reasons"].as_array().unwrap();
        let reason = reasons.iter().find(|reason| reason["kind"] == kind).unwrap();
        assert_eq!((&reason["severity"], &reason["worst"]), (&"SUSPECT".into(), &count.into()), "{reason}");
    }
    assert_eq!(calls.matches("exec --stdin").count(), 3, "{calls}");
    assert!(calls.contains("delete job squall-pods-"), "{calls}");
    assert!(!place.folder.path().join("job").exists());
    assert_eq!(place.logged(), 310);
}

#[test]
fn why_pods_cannot_be_used_is_reported_in_kubernetes_words() {
    let waiting = |reason: &str, message: &str| {
        format!(
            r#"{{"phase":"Pending","containerStatuses":[{{"name":"squall","state":{{"waiting":{{"reason":"{reason}","message":"{message}"}}}}}}]}}"#
        )
    };
    let unschedulable = r#"{"phase":"Pending","conditions":[{"type":"PodScheduled","status":"False","reason":"Unschedulable","message":"0/3 nodes are available: 3 Insufficient cpu."}]}"#;
    for (is_allowed, status, expected) in [
        (false, READY.to_owned(), "this user may not `create jobs`, `delete jobs`"),
        (true, unschedulable.to_owned(), "0/3 nodes are available: 3 Insufficient cpu."),
        (true, waiting("ImagePullBackOff", "Back-off pulling image x"), "Back-off pulling image x"),
    ] {
        let (place, plan) = lab(is_allowed, &status);
        let (_, output) = place.run(&plan, &[]);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(expected), "{said}");
        assert!(!place.folder.path().join("job").exists(), "{said}");
        assert_eq!(place.logged(), 0, "{said}");
    }
}
