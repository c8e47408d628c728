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
*"get nodes"*) echo '{"items":[{"metadata":{"name":"n1"}}]}' ;;
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
