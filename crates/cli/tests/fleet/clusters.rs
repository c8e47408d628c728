//! Monitors of a cluster, behind a `kubectl` whose answers have the forms of the API server, the metrics server and the kubelet.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use crate::squall::{Place, assert_code, text};

/// At the second look one container was killed, and a pod of another template is there.
const KUBECTL: &str = r#"#!/bin/sh
here=$(dirname "$0")
now=$(date -u +%Y-%m-%dT%H:%M:%SZ)
echo "$*" >> "$here/calls"
pod() {
  printf '{"metadata":{"name":"%s","namespace":"shop","labels":{"app":"shop","pod-template-hash":"%s"},"creationTimestamp":"%s"},"spec":{"nodeName":"n1"},"status":{"phase":"Running","containerStatuses":[{"name":"web","restartCount":%s,"lastState":{"terminated":{"exitCode":137,"reason":"OOMKilled","finishedAt":"%s"}}}]}}' "$1" "$2" "$now" "$3" "$now"
}
case "$*" in
*"--raw /apis/metrics.k8s.io/v1beta1/namespaces/shop/pods?labelSelector=app%3Dshop"*)
  printf '{"kind":"PodMetricsList","apiVersion":"metrics.k8s.io/v1beta1","metadata":{},"items":[{"metadata":{"name":"shop-a","namespace":"shop"},"timestamp":"%s","window":"15s","containers":[{"name":"web","usage":{"cpu":"250m","memory":"64Mi"}}]}]}' "$now" ;;
*"--raw /apis/"*) echo 'Error from server (NotFound): the server could not find the requested resource' >&2; exit 1 ;;
*"--raw /api/v1/nodes/n1/proxy/stats/summary")
  printf '{"node":{"nodeName":"n1","cpu":{"time":"%s","usageNanoCores":1500000000},"memory":{"time":"%s","workingSetBytes":4096},"network":{"time":"%s","rxBytes":1,"txBytes":2}},"pods":[]}' "$now" "$now" "$now" ;;
*"--raw /api/v1/nodes/n2/proxy/stats/summary?only_cpu_and_memory=true")
  printf '{"node":{"nodeName":"n2","cpu":{"time":"%s","usageNanoCores":500000000}},"pods":[]}' "$now" ;;
*"--raw /api/v1/nodes/n2/"*) echo 'Error from server (InternalError): failed to get rootFs stats' >&2; exit 1 ;;
*"get nodes"*) echo '{"items":[{"metadata":{"name":"n1"}},{"metadata":{"name":"n2"}}]}' ;;
*app=none*) echo '{"items":[]}' ;;
*"get pods"*)
  echo >> "$here/looks"
  if [ "$(wc -l < "$here/looks")" = 1 ]; then pods=$(pod shop-a a 0); else pods=$(pod shop-a a 1),$(pod shop-b b 0); fi
  printf '{"items":[%s]}' "$pods" ;;
*) echo 'error: unknown' >&2; exit 1 ;;
esac
"#;

fn run(monitors: &str, load: &str) -> (serde_json::Value, std::process::Output, String) {
    let place = Place::new();
    let kubectl = place.folder.path().join("kubectl");
    fs::write(&kubectl, KUBECTL).unwrap();
    fs::set_permissions(&kubectl, fs::Permissions::from_mode(0o755)).unwrap();
    let plan = format!(
        "target: TARGET\nkubernetes: {{ kubectl: {}, namespace: shop }}\nmonitors: {monitors}\nloads: [{load}]\n",
        kubectl.display()
    );
    let (record, output) = place.run(&plan, &[]);
    let calls = fs::read_to_string(place.folder.path().join("calls")).unwrap_or_default();
    (record, output, calls)
}

#[test]
fn pods_and_nodes_of_the_target_are_on_the_timeline() {
    let monitors = "[{ kubernetes: { pods: app=shop } }, { name: pool, kubernetes: { nodes: '' } }]";
    let (record, output, calls) = run(monitors, "{ http: /, rate: 20/s, duration: 8s }");
    assert_code(&record, &output, 0);
    let value = |source: &str, name: &str| {
        let monitors = record["monitors"].as_array().unwrap();
        let found = monitors.iter().find(|found| found["source"] == source && found["name"] == name);
        found.unwrap_or_else(|| panic!("{source} {name}: {monitors:?}"))["samples"][0][1].as_f64().unwrap()
    };
    assert_eq!(value("target pods app=shop", "shop-a cpu"), 25.0);
    assert_eq!(value("target pods app=shop", "shop-a memory"), f64::from(64 << 20));
    assert_eq!((value("pool", "n1 cpu"), value("pool", "n1 memory")), (150.0, 4096.0));
    // Its kubelet cannot measure its disks.
    assert_eq!(value("pool", "n2 cpu"), 50.0);
    let events = record["events"].as_array().unwrap();
    for label in [
        "shop-a: container web was restarted (OOMKilled, exit code 137)",
        "rollout: shop-b is the first pod of b",
    ] {
        let event =
            events.iter().find(|event| event["label"] == label).unwrap_or_else(|| panic!("{events:?}"));
        assert_eq!(event["kind"], "restart", "{event}");
    }
    assert!(calls.contains("get pods --output=json --selector=app=shop --namespace=shop"), "{calls}");
}

#[test]
fn a_monitor_that_finds_nothing_is_reported_before_the_load() {
    for (monitor, expected) in [
        ("{ pods: app=none }", "monitor `pods app=none`: the cluster has none"),
        ("{ pods: app=shop, kubectl: /none/kubectl }", "cannot start `/none/kubectl`"),
        ("{ pods: a, nodes: b }", "`kubernetes` needs `pods` or `nodes`"),
    ] {
        let (record, output, _) = run(&format!("[{{ kubernetes: {monitor} }}]"), "{ http: /, requests: 1 }");
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(expected), "{said}");
        assert!(record.is_null());
    }
}

/// What the calls of one kind answer in a scene, by how many there were before; the last one goes on.
const SCENE: &str = r#"#!/bin/sh
here=$(dirname "$0")
now=$(date -u +%Y-%m-%dT%H:%M:%SZ)
pod() { # name template restarts uid finished
  printf '{"metadata":{"name":"%s","namespace":"shop","uid":"%s","labels":{"pod-template-hash":"%s"},"creationTimestamp":"%s"},"spec":{"nodeName":"n1"},"status":{"phase":"Running","containerStatuses":[{"name":"web","restartCount":%s,"state":{"running":{"startedAt":"%s"}},"lastState":{"terminated":{"exitCode":1,"finishedAt":"%s"}}}]}}' "$1" "$4" "$2" "$now" "$3" "$now" "$5"
}
nth() { echo >> "$here/$1"; count=$(wc -l < "$here/$1"); shift; [ "$count" -le $# ] || count=$#; shift $((count - 1)); echo "$1"; }
fails() { echo 'error: the server is currently unable to handle the request' >&2; exit 1; }
case "$*" in
*"--raw /apis/metrics"*)
  [ "$(nth metrics METRICS)" = yes ] || fails
  printf '{"items":[{"metadata":{"name":"shop-a","namespace":"shop"},"timestamp":"%s","containers":[{"name":"web","usage":{"cpu":"250m","memory":"64Mi"}}]}]}' "$now" ;;
*"--raw /api/v1/nodes"*) echo 'Error from server (Forbidden): nodes "n1" is forbidden' >&2; exit 1 ;;
*"get pods"*) printf '{"items":[%s]}' "$(pod $(nth pods PODS))" ;;
*) exit 1 ;;
esac
"#;

/// A run with a monitor of such a cluster.
fn scene(metrics: &str, pods: &[&str], seconds: u32) -> (serde_json::Value, String) {
    let place = Place::new();
    let kubectl = place.folder.path().join("kubectl");
    let pods: Vec<String> = pods.iter().map(|pod| format!("\"{pod}\"")).collect();
    fs::write(&kubectl, SCENE.replace("METRICS", metrics).replace("PODS", &pods.join(" "))).unwrap();
    fs::set_permissions(&kubectl, fs::Permissions::from_mode(0o755)).unwrap();
    let plan = format!(
        "target: TARGET\nmonitors: [{{ kubernetes: {{ pods: app=shop, namespace: shop }} }}]\nloads: [{{ http: /, rate: 5/s, duration: {seconds}s }}]\n",
    );
    let (record, output) = place.run(&plan, &["--kubectl", kubectl.to_str().unwrap()]);
    assert_code(&record, &output, 0);
    (record, text(&output.stderr))
}

fn labels(record: &serde_json::Value) -> Vec<&str> {
    let events = record["events"].as_array().unwrap().iter();
    events.filter(|event| event["kind"] != "step").map(|event| event["label"].as_str().unwrap()).collect()
}

#[test]
fn what_happens_to_pods_between_two_looks_is_an_event() {
    let long_ago = "2026-11-24T00:00:00Z";
    for (pods, expected) in [
        (&[("web-0", "r1 3 u1"), ("web-0", "r2 0 u2")][..], "rollout: web-0 is the first pod of r2"),
        (&[("web-0", "r1 3 u1"), ("web-0", "r1 0 u2")], "web-0 was replaced"),
        (&[("shop-a", "a 3 u1"), ("shop-a", "a 4 u1")], "shop-a: container web was restarted (exit code 1)"),
    ] {
        let pods: Vec<String> = pods.iter().map(|(name, rest)| format!("{name} {rest} {long_ago}")).collect();
        let pods: Vec<&str> = pods.iter().map(String::as_str).collect();
        let (record, _) = scene("yes", &pods, 7);
        assert_eq!(labels(&record), [expected]);
    }
}

#[test]
fn going_back_to_an_earlier_template_is_a_rollout() {
    let (record, _) = scene("yes", &["shop-a a 0 u1 x", "shop-b b 0 u2 x", "shop-c a 0 u3 x"], 12);
    let labels = labels(&record);
    assert!(labels.contains(&"rollout: shop-b is the first pod of b"), "{labels:?}");
    assert!(labels.contains(&"rollout: shop-c is the first pod of a"), "{labels:?}");
}

#[test]
fn a_call_that_fails_is_a_gap_and_not_the_end_of_a_monitor() {
    let (record, _) = scene("yes no yes", &["shop-a a 0 u1 x", "shop-a a 5 u1 x"], 12);
    assert_eq!(labels(&record), ["shop-a: container web was restarted (exit code 1)"]);
    let of_pods = |monitor: &&serde_json::Value| monitor["source"] == "target pods app=shop";
    let names: Vec<_> =
        record["monitors"].as_array().unwrap().iter().filter(of_pods).map(|one| &one["name"]).collect();
    assert_eq!(names, ["shop-a cpu", "shop-a memory"]);
}

#[test]
fn a_monitor_that_falls_silent_is_an_event() {
    let (record, _) = scene("yes no", &["shop-a a 0 u1 x"], 12);
    let labels = labels(&record);
    assert!(labels.iter().any(|label| label.contains("it has reported nothing since")), "{labels:?}");
    assert!(labels.iter().any(|label| label.contains("has no samples")), "{labels:?}");
}

#[test]
fn events_need_no_access_to_metrics() {
    let (record, said) = scene("no", &["shop-a a 0 u1 x", "shop-a a 1 u1 x"], 7);
    assert!(said.contains("events only, no CPU and memory"), "{said}");
    assert!(labels(&record).contains(&"shop-a: container web was restarted (exit code 1)"), "{said}");
}
