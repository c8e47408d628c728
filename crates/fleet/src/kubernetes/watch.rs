//! Reads the usage of pods or nodes of the target's cluster, and what happens to the pods, on a thread of its own.
//!
//! Owns: which API has it. Never: what its answers mean; `observed` reads them.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant, SystemTime};
use std::{io, thread};

use serde_json::Value;
use squall_plan::file::ClusterObjects;

use super::kubectl::{Failed, Kubectl};
use super::observed::{
    ClusterEvent, ClusterSample, PodHistory, Usage, UsageHistory, items, of_metrics, of_node, of_summary,
    text,
};
use super::pods::object;
use crate::clock::unix_ns;
use crate::protocol::Trouble;

/// What a cluster showed at a look.
#[derive(Debug, Default)]
pub(crate) struct ClusterLook {
    pub samples: Vec<ClusterSample>,
    pub events: Vec<ClusterEvent>,
    /// What it cannot show.
    pub note: Option<String>,
}

/// A monitor of a cluster that goes on until this is dropped.
#[derive(Debug)]
pub(crate) struct ClusterWatch {
    is_over: Arc<AtomicBool>,
    /// The thread ends when the other end is gone.
    _alive: Sender<()>,
}

impl ClusterWatch {
    /// Looks at once, and every few seconds from then on. `report` gets each look, and why the first was impossible; it ends the watch
    /// by giving false.
    ///
    /// # Errors
    /// When the thread cannot be started.
    pub(crate) fn start(
        objects: &ClusterObjects,
        report: impl Fn(Result<ClusterLook, Trouble>) -> bool + Send + 'static,
    ) -> io::Result<Self> {
        let (alive, ended) = mpsc::channel();
        let is_over = Arc::new(AtomicBool::new(false));
        let looker = Looker {
            kubectl: Kubectl::of(&objects.cluster),
            objects: objects.clone(),
            is_over: Arc::clone(&is_over),
            api: Api::Metrics,
            usages: UsageHistory::default(),
            pods: PodHistory::default(),
            looked_unix_ns: 0,
            failed_count: 0,
        };
        thread::Builder::new().name("cluster".to_owned()).spawn(move || looker.go_on(&ended, &report))?;
        Ok(Self { is_over, _alive: alive })
    }
}

impl Drop for ClusterWatch {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
    }
}

struct Looker {
    kubectl: Kubectl,
    objects: ClusterObjects,
    is_over: Arc<AtomicBool>,
    api: Api,
    usages: UsageHistory,
    pods: PodHistory,
    /// When it looked last.
    looked_unix_ns: u64,
    /// Looks in a row that had no usage.
    failed_count: u32,
}

/// Where usage comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Api {
    /// `metrics.k8s.io`, of the metrics server.
    Metrics,
    /// Each node's kubelet, through the API server.
    Kubelet,
    /// This user may not read either.
    Neither,
}

impl Looker {
    fn go_on(mut self, ended: &Receiver<()>, report: &dyn Fn(Result<ClusterLook, Trouble>) -> bool) {
        let mut next = Instant::now() + LOOK_EVERY;
        let first = self.first_look();
        let is_usable = first.is_ok();
        if !report(first) || !is_usable {
            return;
        }
        while let Err(RecvTimeoutError::Timeout) =
            ended.recv_timeout(next.saturating_duration_since(Instant::now()))
        {
            next = Instant::now() + LOOK_EVERY;
            if !report(Ok(self.look())) {
                return;
            }
        }
    }

    /// Finds which API has the usage. Without one, what happens to pods is worth a monitor all the same.
    fn first_look(&mut self) -> Result<ClusterLook, Trouble> {
        self.looked_unix_ns = unix_ns(SystemTime::now());
        let listed = self.listed().map_err(|failed| self.explain(&failed))?;
        if listed.as_ref().is_some_and(|list| items(&list["items"]).is_empty()) {
            return Err(self.none());
        }
        listed.iter().for_each(|list| drop(self.pods.take(list)));
        let (usages, note) = match self.usages(listed.as_ref()) {
            Ok(usages) if usages.is_empty() && listed.is_none() => return Err(self.none()),
            Ok(usages) => (usages, None),
            Err(failed) => self.other_usages(listed.as_ref(), &failed)?,
        };
        Ok(ClusterLook { samples: self.usages.take(usages), note, ..ClusterLook::default() })
    }

    /// The kubelets' usage, where the metrics server has none.
    fn other_usages(
        &mut self,
        listed: Option<&Value>,
        failed: &Failed,
    ) -> Result<(Vec<Usage>, Option<String>), Trouble> {
        self.api = Api::Kubelet;
        match self.usages(listed) {
            Ok(usages) if usages.is_empty() && listed.is_none() => return Err(self.none()),
            Ok(usages) => return Ok((usages, None)),
            Err(_) => {}
        }
        let trouble = self.explain(failed);
        if listed.is_none() {
            return Err(trouble);
        }
        self.api = Api::Neither;
        Ok((Vec::new(), Some(format!("{}: events only, no CPU and memory", trouble.message))))
    }

    /// A later look. What fails is tried again at the next one.
    fn look(&mut self) -> ClusterLook {
        let before = std::mem::replace(&mut self.looked_unix_ns, unix_ns(SystemTime::now()));
        let mut look = ClusterLook::default();
        let listed = self.listed();
        if let Ok(Some(list)) = &listed {
            look.events = self.pods.take(list);
        }
        match listed.and_then(|listed| self.usages(listed.as_ref())) {
            Ok(usages) => {
                look.samples = self.usages.take(usages);
                look.events.extend(self.speaks_again());
            }
            Err(failed) => look.events.extend(self.fell_silent(&failed)),
        }
        for event in &mut look.events {
            // Nothing of it had happened at the last look, whatever the cluster's clock says.
            event.at_unix_ns = event.at_unix_ns.map(|at| at.clamp(before, self.looked_unix_ns));
        }
        look
    }

    /// Reports a monitor that has failed more than once.
    fn fell_silent(&mut self, failed: &Failed) -> Option<ClusterEvent> {
        self.failed_count += 1;
        let label = format!("{}: it has reported nothing since", self.explain(failed).message);
        (self.failed_count == FAILED_COUNT_NOTED).then_some(ClusterEvent {
            at_unix_ns: None,
            label,
            is_restart: false,
        })
    }

    fn speaks_again(&mut self) -> Option<ClusterEvent> {
        let label = format!("monitor `{}` reports again", self.objects.text());
        let was_silent = std::mem::take(&mut self.failed_count) >= FAILED_COUNT_NOTED;
        was_silent.then_some(ClusterEvent { at_unix_ns: None, label, is_restart: false })
    }

    /// The pods as the API server has them; `None` for nodes.
    fn listed(&self) -> Result<Option<Value>, Failed> {
        if self.objects.are_nodes { Ok(None) } else { self.list("pods").map(Some) }
    }

    fn list(&self, kind: &str) -> Result<Value, Failed> {
        let selector = format!("--selector={}", self.objects.selector);
        let mut arguments = vec!["get", kind, "--output=json", &selector];
        let namespace = self.objects.cluster.namespace.as_ref().map(|name| format!("--namespace={name}"));
        arguments.extend(namespace.as_deref().filter(|_| kind == "pods"));
        self.kubectl.run(&arguments, "", &self.is_over).map(|output| object(&output))
    }

    fn none(&self) -> Trouble {
        let message = format!("monitor `{}`: the cluster has none", self.objects.text());
        Trouble::new(message, "`kubectl get pods --show-labels` shows what can be selected")
    }

    fn usages(&self, pods: Option<&Value>) -> Result<Vec<Usage>, Failed> {
        match self.api {
            Api::Metrics => self.metrics(pods),
            Api::Kubelet => self.summaries(pods),
            Api::Neither => Ok(Vec::new()),
        }
    }

    fn metrics(&self, pods: Option<&Value>) -> Result<Vec<Usage>, Failed> {
        let selector = escaped(&self.objects.selector);
        let of = match pods {
            Some(pods) => {
                let namespace = text(&pods["items"][0]["metadata"]["namespace"]);
                format!("namespaces/{}/pods", escaped(namespace))
            }
            None => "nodes".to_owned(),
        };
        let path = format!("/apis/metrics.k8s.io/v1beta1/{of}?labelSelector={selector}");
        Ok(of_metrics(&self.raw(&path)?))
    }

    /// One call for each node that has any of the pods, or is one of the nodes.
    fn summaries(&self, pods: Option<&Value>) -> Result<Vec<Usage>, Failed> {
        let list = match pods {
            Some(pods) => pods.clone(),
            None => self.list("nodes")?,
        };
        let names = items(&list["items"]).iter().map(|item| match pods {
            Some(_) => text(&item["spec"]["nodeName"]),
            None => text(&item["metadata"]["name"]),
        });
        let nodes: BTreeSet<&str> = names.filter(|name| !name.is_empty()).take(NODE_COUNT_MAX).collect();
        let wanted: BTreeSet<(&str, &str)> = items(&list["items"])
            .iter()
            .map(|item| (text(&item["metadata"]["namespace"]), text(&item["metadata"]["name"])))
            .collect();
        let mut usages = Vec::new();
        for node in nodes {
            let summary = self.summary(node)?;
            match pods {
                Some(_) => usages
                    .extend(of_summary(&summary, &|namespace, name| wanted.contains(&(namespace, name)))),
                None => usages.extend(of_node(&summary)),
            }
        }
        Ok(usages)
    }

    /// What a kubelet reports of its node. One that fails to measure its disks still has CPU and memory, without the network.
    fn summary(&self, node: &str) -> Result<Value, Failed> {
        let path = format!("/api/v1/nodes/{}/proxy/stats/summary", escaped(node));
        let less = || self.raw(&format!("{path}?only_cpu_and_memory=true"));
        self.raw(&path).or_else(|failed| less().map_err(|_| failed))
    }

    fn raw(&self, path: &str) -> Result<Value, Failed> {
        self.kubectl.run(&["get", "--raw", path], "", &self.is_over).map(|output| object(&output))
    }

    fn explain(&self, failed: &Failed) -> Trouble {
        let trouble = self.kubectl.explain_monitor(failed);
        let message = format!("monitor `{}`: {}", self.objects.text(), trouble.message);
        Trouble { message, ..trouble }
    }
}

/// Text as a part of a URL's path or query.
fn escaped(text: &str) -> String {
    text.bytes().fold(String::new(), |mut escaped, byte| {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => escaped.push(byte.into()),
            _ => drop(write!(escaped, "%{byte:02X}")),
        }
        escaped
    })
}

/// Metrics servers and kubelets measure every 10 to 60 seconds; what happens to pods is to be seen sooner.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// One failure is a gap of a few seconds.
const FAILED_COUNT_NOTED: u32 = 2;

/// Each is a call of kubectl at every look.
const NODE_COUNT_MAX: usize = 20;
