//! Pods of a cluster, behind a `kubectl` that answers as recorded and runs `exec` here.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use crate::squall::{Place, assert_code, ok, parts, squall, text};

/// Answers as a cluster of version 1.37 gave them (`suites/kubernetes/record`). `ANSWERS`: the folder of one case; `ALLOWED`: whether
/// this user may do what it needs to.
const KUBECTL: &str = r#"#!/bin/sh
here=$(dirname "$0")
echo "$*" | head -n 1 | cut -c1-60 >> "$here/calls"
case "$*" in
*"exec --stdin"*) while [ "$1" != -- ]; do shift; done; shift; exec "$@" ;;
*"config view"*) echo '{"contexts":[{"context":{"namespace":"load"}}]}' ;;
*delete*) [ ! -e "$here/hangs" ] || exec sleep 30; rm "$here/job" ;;
*output=name*) cat > "$here/job"; echo job.batch/x ;;
*create*) cat > /dev/null; sed 's/"allowed": true/"allowed": ALLOWED/' ANSWERS/../ready/reviews.json ;;
*"get pods"*) sed '/"requests": {/,/}/s/500m/250m/' ANSWERS/pods.json ;;
*"get events"*) cat ANSWERS/events.json ;;
*) exit 1 ;;
esac
"#;

const PLAN: &str = "
target: TARGET
kubernetes: { kubectl: KUBECTL }
machines: { pods: { kubernetes: { replicas: 3, ready_within: 3s } } }
loads:
  - { http: /, requests: 300, connections: 6, name: plain }
  - { http: /bytes/10, requests: 10, connections: 1, name: one, on: pods-1 }
";

/// A place with such a `kubectl`, and a plan for it.
pub(crate) fn lab(is_allowed: bool, case: &str) -> (Place, String) {
    let place = Place::new();
    let kubectl = place.folder.path().join("kubectl");
    let answers = format!("{}/tests/fleet/kubernetes/{case}", env!("CARGO_MANIFEST_DIR"));
    let script = KUBECTL.replace("ALLOWED", &is_allowed.to_string()).replace("ANSWERS", &answers);
    fs::write(&kubectl, script).unwrap();
    fs::set_permissions(&kubectl, fs::Permissions::from_mode(0o755)).unwrap();
    let plan = PLAN.replace("KUBECTL", &kubectl.display().to_string());
    (place, plan)
}

#[test]
fn pods_share_a_load_and_their_job_is_deleted() {
    let (place, plan) = lab(true, "ready");
    let (record, output) = place.run(&plan, &[]);
    assert_code(&record, &output, 0);
    assert_eq!(ok(&record["total"]), 310);
    let machines = parts(&record, "machine");
    let expected = [("pods-0", 100), ("pods-1", 110), ("pods-2", 100)];
    assert_eq!(machines, expected.map(|(name, count)| (name.to_owned(), count)));
    for machine in record["parts"].as_array().unwrap().iter().filter(|part| part["kind"] == "machine") {
        assert_eq!([&machine["facts"]["cpu_request"], &machine["facts"]["cpu_limit"]], ["250m", "500m"]);
        assert!(machine["facts"]["node"].as_str().unwrap().starts_with("node-"));
    }
    let said = text(&output.stderr);
    assert!(said.contains("3 pods on 2 nodes, up to 2 on one"), "{said}");
    let calls = fs::read_to_string(place.folder.path().join("calls")).unwrap();
    for (kind, count) in [("cpu_not_reserved", 3.0), ("node_shared", 2.0)] {
        let reasons = record["verdict"]["reasons"].as_array().unwrap();
        let reason = reasons.iter().find(|reason| reason["kind"] == kind).unwrap();
        assert_eq!((&reason["severity"], &reason["worst"]), (&"SUSPECT".into(), &count.into()), "{reason}");
    }
    assert_eq!(calls.matches("exec --stdin").count(), 3, "{calls}");
    assert!(calls.contains("delete job squall-pods-"), "{calls}");
    assert!(!place.folder.path().join("job").exists());
    assert_eq!(place.logged(), 310);
}

/// The stand-in for `kubectl` keeps the state of each context in a folder of its own.
#[test]
fn pools_of_two_contexts_and_this_machine_share_a_load() {
    let (place, plan) = lab(true, "ready");
    let kubectl = place.folder.path().join("kubectl");
    let script = fs::read_to_string(&kubectl).unwrap();
    let by_context = script.replace(r#"$(dirname "$0")"#, r#"$(dirname "$0")/${1#--context=}"#);
    assert_ne!(script, by_context);
    fs::write(&kubectl, by_context).unwrap();
    for context in ["east", "west"] {
        fs::create_dir(place.folder.path().join(context)).unwrap();
    }
    let (head, _) = plan.split_once("machines:").unwrap();
    let plan = format!(
        "{head}
machines:
  a: {{ kubernetes: {{ context: east }} }}
  b: {{ kubernetes: {{ context: west }} }}
  c: local
loads: [{{ http: /, requests: 30, connections: 3 }}]
"
    );
    let (record, output) = place.run(&plan, &[]);
    assert_code(&record, &output, 0);
    let expected = ["a-0", "b-0", "c"].map(|name| (name.to_owned(), 10));
    assert_eq!(parts(&record, "machine"), expected);
    for context in ["east", "west"] {
        let folder = place.folder.path().join(context);
        let calls = fs::read_to_string(folder.join("calls")).unwrap();
        assert!(calls.contains("delete job squall-") && !folder.join("job").exists(), "{calls}");
    }
    // Their nodes have the same names.
    let reasons = record["verdict"]["reasons"].to_string();
    assert!(!reasons.contains("node_shared"), "{reasons}");
}

#[test]
fn why_pods_cannot_be_used_is_reported_in_kubernetes_words() {
    for (is_allowed, case, expected) in [
        (false, "ready", "this user may not `create jobs`, `delete jobs`"),
        (true, "unschedulable", "0/2 nodes are available: 2 Insufficient cpu."),
        (true, "image", "ErrImagePull: failed to pull and unpack image"),
        (true, "shell", "exec: \"/bin/sh\": stat /bin/sh: no such file or directory"),
        (true, "shell", "help: use an image with /bin/sh"),
        (true, "quota", "exceeded quota: small, requested: pods=1, used: pods=1, limited: pods=1"),
    ] {
        let (place, plan) = lab(is_allowed, case);
        let (_, output) = place.run(&plan, &[]);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(expected), "{said}");
        assert!(!place.folder.path().join("job").exists(), "{said}");
        assert_eq!(place.logged(), 0, "{said}");
    }
}

/// What `squall` prints with these arguments in a place with `plan.yaml` and `s.js`, and the lines of interest with how often they are there.
fn printed(plan: &str, args: &[&str]) -> String {
    let place = Place::new();
    place.write("plan.yaml", plan);
    place.write("s.js", "export default function () {}\n");
    let output = squall().args(args).current_dir(place.folder.path()).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    text(&output.stdout)
}

#[test]
fn monitors_have_a_role_in_the_namespace_of_their_target() {
    let monitors = "
monitors:
  - { name: shop, kubernetes: { pods: app=shop, namespace: shop } }
  - { name: cart, kubernetes: { pods: app=cart, namespace: shop } }
  - { name: pool, kubernetes: { nodes: '' } }
loads: [{ http: /, requests: 6 }]
";
    let pool = "machines: { a: { kubernetes: { namespace: load } } }";
    for (machines, roles) in [("", 1), (pool, 2)] {
        let printed =
            printed(&format!("target: TARGET\n{machines}{monitors}"), &["plan", "manifests", "plan.yaml"]);
        let count = |line: &str| printed.lines().filter(|own| *own == line).count();
        let kinds =
            ["kind: Role", "kind: RoleBinding", "kind: ClusterRole", "kind: ClusterRoleBinding"].map(count);
        assert_eq!(kinds, [roles, roles, 1, 1], "{printed}");
        assert!(printed.contains("name: squall-monitor\n  namespace: shop\n"), "{printed}");
        assert_eq!(printed.matches("apiGroups: [metrics.k8s.io]").count(), 2, "{printed}");
    }
}

#[test]
fn a_dry_run_prints_the_manifests() {
    let plan = "target: TARGET\nmachines: { a: { kubernetes: { replicas: 2, namespace: load } } }\nloads: [{ http: /, rate: 1/s, duration: 100s }]\n";
    let of_plan = printed(plan, &["run", "plan.yaml", "--dry-run"]);
    let of_script =
        ["run", "s.js", "--kubernetes", "replicas=2,namespace=load", "--vus", "2", "-d", "1s", "--dry-run"];
    let of_script = printed(plan, &of_script);
    // Five minutes until its agent comes and ten to spare; a script has `setup()`, `teardown()` and open iterations as well.
    for (printed, deadline) in [(of_plan, 100 + 300 + 600), (of_script, 60 + 1 + 30 + 60 + 300 + 600)] {
        assert!(printed.contains("kind: Role\n") && printed.contains("kind: Job\n"), "{printed}");
        assert!(printed.contains(&format!("activeDeadlineSeconds: {deadline}\n")), "{printed}");
    }
}

#[test]
fn pools_of_one_namespace_need_one_role() {
    let place = Place::new();
    let plan = "
target: TARGET
machines:
  a: { kubernetes: { replicas: 2, namespace: load } }
  b: { kubernetes: { replicas: 3, namespace: load, image: other } }
  c: { kubernetes: { namespace: far } }
loads: [{ http: /, requests: 6 }]
";
    let plan = place.write("plan.yaml", plan);
    let output = squall().args(["plan", "manifests"]).arg(plan).output().unwrap();
    let printed = text(&output.stdout);
    let count = |line: &str| printed.lines().filter(|own| *own == line).count();
    assert_eq!(["kind: Role", "kind: RoleBinding", "kind: Job"].map(count), [2, 2, 3], "{printed}");
}
