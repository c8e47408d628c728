//! What a cluster reports of pods and nodes: their usage, and what happened to pods since they were looked at last.
//!
//! Owns: the forms of the answers (`metrics.k8s.io/v1beta1`, the kubelet's `/stats/summary`, lists of pods). Never: calls anything.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde_json::Value;
use squall_measure::MonitorUnit;
use squall_plan::file::kubernetes::quantity;

/// A value of a pod or node.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ClusterSample {
    pub name: String,
    pub unit: MonitorUnit,
    /// When it was measured, by the cluster's clock.
    pub at_unix_ns: u64,
    pub value: f64,
}

/// Something that happened to a pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ClusterEvent {
    /// `None`: since the last look.
    pub at_unix_ns: Option<u64>,
    pub label: String,
    pub is_restart: bool,
}

/// What a pod or node used.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Usage {
    name: String,
    at_unix_ns: u64,
    cpus: Option<f64>,
    memory_bytes: Option<f64>,
    received_bytes: Option<f64>,
    sent_bytes: Option<f64>,
}

/// Of a `PodMetricsList` or `NodeMetricsList`; a pod's containers add up.
pub(super) fn of_metrics(list: &Value) -> Vec<Usage> {
    let usage = |item: &Value| {
        let containers = items(&item["containers"]).iter().map(|container| &container["usage"]);
        let parts: Vec<&Value> =
            containers.chain([&item["usage"]]).filter(|usage| usage.is_object()).collect();
        let sum = |name: &str| parts.iter().map(|usage| quantity(text(&usage[name]))).sum::<Option<f64>>();
        Some(Usage {
            name: text(&item["metadata"]["name"]).to_owned(),
            at_unix_ns: unix_ns(text(&item["timestamp"]))?,
            cpus: sum("cpu"),
            memory_bytes: sum("memory"),
            ..Usage::default()
        })
    };
    items(&list["items"]).iter().filter_map(usage).collect()
}

/// Of a node, and of those of its pods that are wanted, by namespace and name, in the kubelet's summary.
pub(super) fn of_summary(summary: &Value, is_wanted: &dyn Fn(&str, &str) -> bool) -> Vec<Usage> {
    let pods = items(&summary["pods"]).iter().filter_map(|pod| {
        let (namespace, name) = (text(&pod["podRef"]["namespace"]), text(&pod["podRef"]["name"]));
        is_wanted(namespace, name).then(|| summed(name, pod)).flatten()
    });
    pods.collect()
}

/// Of the node itself.
pub(super) fn of_node(summary: &Value) -> Option<Usage> {
    summed(text(&summary["node"]["nodeName"]), &summary["node"])
}

fn summed(name: &str, stats: &Value) -> Option<Usage> {
    Some(Usage {
        name: name.to_owned(),
        at_unix_ns: unix_ns(text(&stats["cpu"]["time"]))?,
        cpus: stats["cpu"]["usageNanoCores"].as_f64().map(|nano| nano / 1e9),
        memory_bytes: stats["memory"]["workingSetBytes"].as_f64(),
        received_bytes: stats["network"]["rxBytes"].as_f64(),
        sent_bytes: stats["network"]["txBytes"].as_f64(),
    })
}

/// What was reported before: clusters measure less often than they are asked, and the same measurement counts once.
#[derive(Debug, Default)]
pub(super) struct UsageHistory(HashMap<String, Usage>);

impl UsageHistory {
    /// What is new, as samples; bytes of the network as their growth per second.
    pub(super) fn take(&mut self, usages: Vec<Usage>) -> Vec<ClusterSample> {
        let mut samples = Vec::new();
        for usage in usages {
            let before = self.0.get(&usage.name);
            if before.is_some_and(|before| before.at_unix_ns >= usage.at_unix_ns)
                || (before.is_none() && self.0.len() >= OBJECT_COUNT_MAX)
            {
                continue;
            }
            let rate = |of: fn(&Usage) -> Option<f64>| {
                let before = before?;
                let seconds = (usage.at_unix_ns - before.at_unix_ns) as f64 / 1e9;
                // A new pod of the same name begins again.
                Some((of(&usage)? - of(before)?) / seconds).filter(|rate| *rate >= 0.0)
            };
            for (what, unit, value) in [
                ("cpu", MonitorUnit::Percent, usage.cpus.map(|cpus| cpus * 100.0)),
                ("memory", MonitorUnit::Bytes, usage.memory_bytes),
                ("received bytes", MonitorUnit::PerSecond, rate(|usage| usage.received_bytes)),
                ("sent bytes", MonitorUnit::PerSecond, rate(|usage| usage.sent_bytes)),
            ] {
                let name = format!("{} {what}", usage.name);
                samples.extend(value.map(|value| ClusterSample {
                    name,
                    unit,
                    at_unix_ns: usage.at_unix_ns,
                    value,
                }));
            }
            self.0.insert(usage.name.clone(), usage);
        }
        samples
    }
}

/// The pods as they were at the last look.
#[derive(Debug, Default)]
pub(super) struct PodHistory {
    /// By name.
    pods: BTreeMap<String, SeenPod>,
    /// The templates that each workload's pods had when it had any last.
    templates: BTreeMap<String, BTreeSet<String>>,
    has_looked: bool,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct SeenPod {
    /// Another pod of the same name has another one.
    uid: String,
    workload: String,
    /// The hash of the revision of its workload that it belongs to.
    template: Option<String>,
    /// It is being deleted.
    is_leaving: bool,
    /// By container.
    restart_counts: BTreeMap<String, u64>,
    /// Why it was ended from outside, where it was.
    end: Option<String>,
    /// Containers that have failed for good, and how.
    failures: BTreeMap<String, String>,
}

impl PodHistory {
    /// What happened to the pods of a list since the last one; nothing has happened before the first.
    pub(super) fn take(&mut self, list: &Value) -> Vec<ClusterEvent> {
        let name = |pod: &Value| text(&pod["metadata"]["name"]).to_owned();
        // A new pod does not push another one out of the history, which would look like its deletion.
        let (known, new): (Vec<_>, Vec<_>) =
            items(&list["items"]).iter().partition(|pod| self.pods.contains_key(&name(pod)));
        let mut events = Vec::new();
        let mut now = BTreeMap::new();
        for pod in known.into_iter().chain(new).take(OBJECT_COUNT_MAX) {
            let (name, seen) = (name(pod), SeenPod::of(pod));
            match self.pods.get(&name) {
                Some(before) if before.uid == seen.uid => events.extend(seen.changes(before, &name, pod)),
                Some(_) => events.push(self.begun(&seen, (&name, "was replaced"), pod)),
                None => events.push(self.begun(&seen, (&name, "was created"), pod)),
            }
            now.insert(name, seen);
        }
        let gone = self.pods.iter().filter(|(name, before)| !now.contains_key(*name) && before.end.is_none());
        events.extend(gone.map(|(name, _)| event(format!("{name} was deleted"))));
        self.pods = now;
        self.remember_templates();
        if std::mem::replace(&mut self.has_looked, true) { events } else { Vec::new() }
    }

    /// Pods of one revision of a workload have a label with its hash: one that no pod of the workload had at the last look is a rollout.
    fn begun(&self, seen: &SeenPod, (name, what): (&str, &str), pod: &Value) -> ClusterEvent {
        let known = self.templates.get(&seen.workload);
        let rolled_out =
            seen.template.as_ref().filter(|template| !known.is_some_and(|known| known.contains(*template)));
        let label = match rolled_out {
            Some(template) => format!("rollout: {name} is the first pod of {template}"),
            None => format!("{name} {what}"),
        };
        let at_unix_ns = unix_ns(text(&pod["metadata"]["creationTimestamp"]));
        ClusterEvent { at_unix_ns, label, is_restart: rolled_out.is_some() }
    }

    /// A workload without any pod, for a moment, has its last templates.
    fn remember_templates(&mut self) {
        let mut now: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for pod in self.pods.values().filter(|pod| !pod.is_leaving) {
            now.entry(pod.workload.clone()).or_default().extend(pod.template.clone());
        }
        let room = OBJECT_COUNT_MAX.saturating_sub(now.len());
        let before = std::mem::take(&mut self.templates);
        let absent: Vec<_> = before.into_iter().filter(|(of, _)| !now.contains_key(of)).take(room).collect();
        now.extend(absent);
        self.templates = now;
    }
}

impl SeenPod {
    fn of(pod: &Value) -> Self {
        let (metadata, status) = (&pod["metadata"], &pod["status"]);
        let counts = items(&status["containerStatuses"]).iter().map(|container| {
            (text(&container["name"]).to_owned(), container["restartCount"].as_u64().unwrap_or(0))
        });
        let template = TEMPLATE_LABELS.iter().find_map(|label| metadata["labels"][label].as_str());
        Self {
            uid: text(&metadata["uid"]).to_owned(),
            workload: workload(metadata, template),
            template: template.map(str::to_owned),
            is_leaving: !metadata["deletionTimestamp"].is_null(),
            restart_counts: counts.collect(),
            end: end(status),
            failures: failures(pod),
        }
    }

    fn changes(&self, before: &Self, name: &str, pod: &Value) -> Vec<ClusterEvent> {
        let ended =
            self.end.iter().filter(|_| before.end.is_none()).map(|why| event(format!("{name}: {why}")));
        let failed = self.failures.iter().filter(|(own, _)| !before.failures.contains_key(*own));
        let failed = failed.map(|(own, how)| event(format!("{name}: container {own} ended{how}")));
        let containers = items(&pod["status"]["containerStatuses"]).iter().filter(|container| {
            let own = text(&container["name"]);
            self.restart_counts.get(own) > Some(before.restart_counts.get(own).unwrap_or(&0))
        });
        let restarted = containers.map(|container| {
            let last = &container["lastState"]["terminated"];
            // It may have ended long before: the cluster waits before it starts a container that fails again and again.
            let started = unix_ns(text(&container["state"]["running"]["startedAt"]));
            ClusterEvent {
                at_unix_ns: started.or_else(|| unix_ns(text(&last["finishedAt"]))),
                label: format!("{name}: container {} was restarted{}", text(&container["name"]), cause(last)),
                is_restart: true,
            }
        });
        ended.chain(failed).chain(restarted).collect()
    }
}

/// What a pod belongs to. A `ReplicaSet` is one revision of a `Deployment`, and has its hash in its name.
fn workload(metadata: &Value, template: Option<&str>) -> String {
    let owner = text(&metadata["ownerReferences"][0]["name"]);
    let suffix = template.map(|template| format!("-{template}"));
    suffix.and_then(|suffix| owner.strip_suffix(&suffix)).unwrap_or(owner).to_owned()
}

/// Containers that have failed and are not started again.
fn failures(pod: &Value) -> BTreeMap<String, String> {
    if text(&pod["spec"]["restartPolicy"]) != "Never" {
        return BTreeMap::new();
    }
    let failed = items(&pod["status"]["containerStatuses"]).iter().filter_map(|container| {
        let ended = &container["state"]["terminated"];
        let has_failed = ended["exitCode"].as_i64().is_some_and(|code| code != 0);
        has_failed.then(|| (text(&container["name"]).to_owned(), cause(ended)))
    });
    failed.collect()
}

/// How a container ended, in brackets.
fn cause(ended: &Value) -> String {
    match (text(&ended["reason"]), ended["exitCode"].as_i64()) {
        ("", None) => String::new(),
        ("", Some(code)) => format!(" (exit code {code})"),
        (reason, None) => format!(" ({reason})"),
        (reason, Some(code)) => format!(" ({reason}, exit code {code})"),
    }
}

/// Why a pod ended that was not to end: evictions, deletions by the node's manager, and so on.
fn end(status: &Value) -> Option<String> {
    let conditions = items(&status["conditions"]).iter();
    let disrupted = conditions
        .filter(|found| text(&found["type"]) == "DisruptionTarget" && text(&found["status"]) == "True")
        .map(|found| (text(&found["reason"]), text(&found["message"])));
    let own = (text(&status["reason"]), text(&status["message"]));
    let (reason, message) = [own].into_iter().chain(disrupted).find(|(reason, _)| !reason.is_empty())?;
    Some(format!("{reason}: {message}").trim_end_matches([':', ' ']).to_owned())
}

fn event(label: String) -> ClusterEvent {
    ClusterEvent { at_unix_ns: None, label, is_restart: false }
}

/// A time of Kubernetes (RFC 3339 in UTC: `2026-11-24T02:30:00.5Z`) in nanoseconds since 1970.
fn unix_ns(time: &str) -> Option<u64> {
    let (date, clock) = time.strip_suffix('Z')?.split_once('T')?;
    let [year, month, day] = numbers(date, '-')?;
    let (clock, fraction) = clock.split_once('.').unwrap_or((clock, "0"));
    let [hour, minute, second] = numbers(clock, ':')?;
    let is_possible = (1970..=9999).contains(&year) && (1..=12).contains(&month) && (1..=31).contains(&day);
    if !is_possible || hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    // Days since 1 March of the year 0 of the Gregorian calendar, so that leap days are the last of their years.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = year * 365 + year / 4 - year / 100 + year / 400 + (month * 153 + 2) / 5 + day - 1;
    let seconds = (days.checked_sub(719_468)? * 24 + hour) * 3600 + minute * 60 + second;
    let nanoseconds = format!("0.{fraction}").parse::<f64>().ok()? * 1e9;
    seconds.checked_mul(1_000_000_000)?.checked_add(nanoseconds as u64)
}

fn numbers(text: &str, mark: char) -> Option<[u64; 3]> {
    let parts: Option<Vec<u64>> = text.split(mark).map(|part| part.parse().ok()).collect();
    parts?.try_into().ok()
}

pub(super) fn items(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

pub(super) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// Of Deployments; of StatefulSets and DaemonSets.
const TEMPLATE_LABELS: &[&str] = &["pod-template-hash", "controller-revision-hash"];

/// Pods, workloads and series that are remembered.
const OBJECT_COUNT_MAX: usize = 500;

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn times_of_kubernetes_are_read() {
        for (time, expected) in [
            ("1970-01-01T00:00:00Z", Some(0)),
            ("2000-02-29T23:59:59Z", Some(951_868_799_000_000_000)),
            ("2026-11-24T02:30:00.5Z", Some(1_795_487_400_500_000_000)),
            ("2026-11-24T02:30:00+01:00", None),
            ("2026-13-24T02:30:00Z", None),
            ("2026-11-24", None),
            ("", None),
            ("9999999999999999999-1-1T1:1:1Z", None),
        ] {
            assert_eq!(unix_ns(time), expected, "{time}");
        }
    }

    #[test]
    fn a_measurement_counts_once() {
        let list = |time: &str, cpu: &str| {
            json!({ "kind": "PodMetricsList", "apiVersion": "metrics.k8s.io/v1beta1", "metadata": {}, "items": [{
                "metadata": { "name": "shop-1", "namespace": "shop" }, "timestamp": time, "window": "15.1s",
                "containers": [
                    { "name": "shop", "usage": { "cpu": cpu, "memory": "1024Ki" } },
                    { "name": "proxy", "usage": { "cpu": "500m", "memory": "1Mi" } },
                ],
            }] })
        };
        let mut history = UsageHistory::default();
        let mut values = |time, cpu| {
            let samples = history.take(of_metrics(&list(time, cpu)));
            samples.into_iter().map(|sample| (sample.name, sample.value)).collect::<Vec<_>>()
        };
        let first = values("2026-11-24T02:30:00Z", "250000000n");
        assert_eq!(first, [("shop-1 cpu".to_owned(), 75.0), ("shop-1 memory".to_owned(), 2_097_152.0)]);
        assert_eq!(values("2026-11-24T02:30:00Z", "250000000n"), []);
        assert_eq!(values("2026-11-24T02:30:15Z", "1")[0].1, 150.0);
    }

    #[test]
    fn nodes_have_their_usage_too() {
        let list = json!({ "items": [{
            "metadata": { "name": "node-1" }, "timestamp": "2026-11-24T02:30:00Z", "window": "20s",
            "usage": { "cpu": "329087452n", "memory": "2748180Ki" },
        }, { "metadata": { "name": "no time" }, "usage": {} }] });
        let [usage] = &of_metrics(&list)[..] else { panic!() };
        assert_eq!((usage.cpus, usage.memory_bytes), (Some(0.329_087_452), Some(2_748_180.0 * 1024.0)));
    }

    #[test]
    fn the_kubelet_s_summary_has_the_network_as_well() {
        let stats = |second: u32, bytes: u64| {
            let time = format!("2026-11-24T02:30:{second:02}Z");
            json!({
                "cpu": { "time": time, "usageNanoCores": 1_500_000_000_u64, "usageCoreNanoSeconds": 9 },
                "memory": { "time": time, "workingSetBytes": 4096, "rssBytes": 1 },
                "network": { "time": time, "name": "eth0", "rxBytes": bytes, "txBytes": 2 * bytes },
            })
        };
        let summary = |second, bytes| {
            let mut node = stats(second, bytes);
            node["nodeName"] = json!("node-1");
            let mut pod = stats(second, bytes);
            pod["podRef"] = json!({ "name": "shop-1", "namespace": "shop", "uid": "1" });
            let mut other = pod.clone();
            other["podRef"]["namespace"] = json!("other");
            json!({ "node": node, "pods": [pod, other] })
        };
        let is_wanted = |namespace: &str, name: &str| (namespace, name) == ("shop", "shop-1");
        let mut history = UsageHistory::default();
        let mut take = |second, bytes| {
            let summary = summary(second, bytes);
            let usages = of_summary(&summary, &is_wanted).into_iter().chain(of_node(&summary)).collect();
            history.take(usages).into_iter().map(|sample| (sample.name, sample.value)).collect::<Vec<_>>()
        };
        assert_eq!(take(0, 1000).len(), 4);
        let second = take(10, 6000);
        let expected =
            [("cpu", 150.0), ("memory", 4096.0), ("received bytes", 500.0), ("sent bytes", 1000.0)];
        let expected = ["shop-1", "node-1"]
            .into_iter()
            .flat_map(|of| expected.map(|(what, value)| (format!("{of} {what}"), value)));
        assert_eq!(second, expected.collect::<Vec<_>>());
    }

    fn pod(name: &str, template: &str, restarts: u64) -> Value {
        json!({
            "metadata": { "name": name, "uid": format!("{name} {template}"), "labels": { "app": "shop", "pod-template-hash": template }, "creationTimestamp": "2026-11-24T02:30:00Z" },
            "status": { "phase": "Running", "containerStatuses": [{ "name": "shop", "restartCount": restarts,
                "state": { "running": { "startedAt": "2026-11-24T02:36:00Z" } },
                "lastState": if restarts > 0 { json!({ "terminated": { "exitCode": 137, "reason": "OOMKilled", "finishedAt": "2026-11-24T02:31:00Z" } }) } else { json!({}) },
            }] },
        })
    }

    #[test]
    fn what_happens_to_pods_is_an_event() {
        let mut history = PodHistory::default();
        let mut labels = |pods: &[Value]| {
            let events = history.take(&json!({ "items": pods }));
            events.into_iter().map(|event| (event.label, event.is_restart)).collect::<Vec<_>>()
        };
        assert_eq!(labels(&[pod("a-1", "a", 0), pod("a-2", "a", 0)]), []);
        let expected = ("a-2: container shop was restarted (OOMKilled, exit code 137)".to_owned(), true);
        assert_eq!(labels(&[pod("a-1", "a", 0), pod("a-2", "a", 1)]), [expected]);
        let mut evicted = pod("a-1", "a", 0);
        evicted["status"]["reason"] = json!("Evicted");
        evicted["status"]["message"] = json!("The node was low on resource: memory.");
        let expected = ("a-1: Evicted: The node was low on resource: memory.".to_owned(), false);
        assert_eq!(labels(&[evicted.clone(), pod("a-2", "a", 1)]), [expected]);
        assert_eq!(labels(&[evicted.clone(), pod("a-2", "a", 1)]), []);
        // One that replaces it is no rollout.
        assert_eq!(
            labels(&[pod("a-2", "a", 1), pod("a-3", "a", 0)]),
            [("a-3 was created".to_owned(), false)]
        );
        let expected =
            [("rollout: b-1 is the first pod of b".to_owned(), true), ("a-3 was deleted".to_owned(), false)];
        assert_eq!(labels(&[pod("a-2", "a", 1), pod("b-1", "b", 0)]), expected);
    }

    fn take(history: &mut PodHistory, pods: &[Value]) -> Vec<String> {
        history.take(&json!({ "items": pods })).into_iter().map(|event| event.label).collect()
    }

    #[test]
    fn a_pod_of_the_same_name_is_another_one_and_its_template_may_be_new() {
        let mut history = PodHistory::default();
        let with_uid = |uid: &str, template: &str| {
            let mut pod = pod("web-0", template, 0);
            pod["metadata"]["uid"] = json!(uid);
            pod
        };
        assert_eq!(take(&mut history, &[with_uid("1", "r1")]), [""; 0]);
        assert_eq!(take(&mut history, &[with_uid("2", "r2")]), ["rollout: web-0 is the first pod of r2"]);
        assert_eq!(take(&mut history, &[with_uid("3", "r2")]), ["web-0 was replaced"]);
        assert_eq!(take(&mut history, &[]), ["web-0 was deleted"]);
        assert_eq!(take(&mut history, &[with_uid("4", "r2")]), ["web-0 was created"]);
        // Back to an earlier template.
        assert_eq!(take(&mut history, &[with_uid("5", "r1")]), ["rollout: web-0 is the first pod of r1"]);
    }

    #[test]
    fn each_workload_has_templates_of_its_own() {
        let mut history = PodHistory::default();
        let owned = |name: &str, owner: &str, template: &str| {
            let mut pod = pod(name, template, 0);
            pod["metadata"]["ownerReferences"] =
                json!([{ "kind": "ReplicaSet", "name": format!("{owner}-{template}") }]);
            pod
        };
        assert_eq!(take(&mut history, &[owned("a", "shop", "1"), owned("b", "cart", "2")]), [""; 0]);
        let events = take(&mut history, &[owned("c", "shop", "2"), owned("b", "cart", "2")]);
        assert_eq!(events, ["rollout: c is the first pod of 2", "a was deleted"]);
        // The old pod takes its time to end.
        let mut leaving = owned("c", "shop", "2");
        leaving["metadata"]["deletionTimestamp"] = json!("2026-11-24T02:30:00Z");
        let events = take(&mut history, &[leaving.clone(), owned("d", "shop", "3"), owned("b", "cart", "2")]);
        assert_eq!(events, ["rollout: d is the first pod of 3"]);
        let events = take(&mut history, &[leaving, owned("e", "shop", "2"), owned("b", "cart", "2")]);
        assert_eq!(events, ["rollout: e is the first pod of 2", "d was deleted"]);
    }

    #[test]
    fn a_restart_is_when_the_container_started_again() {
        let mut history = PodHistory::default();
        history.take(&json!({ "items": [pod("a", "a", 3)] }));
        let mut times = |pod: &Value| {
            let events = history.take(&json!({ "items": [pod] }));
            events.into_iter().map(|event| event.at_unix_ns).collect::<Vec<_>>()
        };
        assert_eq!(times(&pod("a", "a", 4)), [unix_ns("2026-11-24T02:36:00Z")]);
        let mut crashed = pod("a", "a", 5);
        crashed["status"]["containerStatuses"][0]["state"] =
            json!({ "waiting": { "reason": "CrashLoopBackOff" } });
        assert_eq!(times(&crashed), [unix_ns("2026-11-24T02:31:00Z")]);
    }

    #[test]
    fn a_container_that_is_not_started_again_ends_with_an_event() {
        let mut history = PodHistory::default();
        let ended = |policy: &str, code: i64| {
            let mut pod = pod("a", "a", 0);
            pod["spec"]["restartPolicy"] = json!(policy);
            let terminated = json!({ "exitCode": code, "reason": "OOMKilled" });
            pod["status"]["containerStatuses"][0]["state"] = json!({ "terminated": terminated });
            pod
        };
        let mut after = |pods: &Value| {
            take(&mut history, &[pod("a", "a", 0)]);
            take(&mut history, std::slice::from_ref(pods))
        };
        assert_eq!(after(&ended("Never", 137)), ["a: container shop ended (OOMKilled, exit code 137)"]);
        assert_eq!(after(&ended("Never", 0)), [""; 0]);
        // The cluster starts it again, which is the event.
        assert_eq!(after(&ended("Always", 137)), [""; 0]);
    }

    #[test]
    fn a_new_pod_pushes_none_out_of_a_long_list() {
        let mut history = PodHistory::default();
        let mut pods: Vec<Value> =
            (0..OBJECT_COUNT_MAX).map(|idx| pod(&format!("m-{idx}"), "a", 0)).collect();
        take(&mut history, &pods);
        pods.insert(0, pod("a-new", "a", 0));
        assert_eq!(take(&mut history, &pods), [""; 0]);
        pods.pop();
        let last = format!("m-{} was deleted", OBJECT_COUNT_MAX - 1);
        assert_eq!(take(&mut history, &pods), ["a-new was created", &last]);
    }
}
