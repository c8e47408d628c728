//! Reads the usage of pods or nodes of the target's cluster, and what happens to the pods, on a thread of its own.
//!
//! Owns: which API has it. Never: what its answers mean; `observed` reads them.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};
use std::{io, thread};

use serde_json::Value;
use squall_plan::file::ClusterObjects;

use super::kubectl::{Failed, Kubectl};
use super::observed::{
    ClusterEvent, ClusterSample, PodHistory, Usage, UsageHistory, items, of_metrics, of_node, of_summary,
    text,
};
use super::pods::object;
use crate::protocol::Trouble;

/// What a cluster showed at a look.
#[derive(Debug, Default)]
pub(crate) struct ClusterLook {
    pub samples: Vec<ClusterSample>,
    pub events: Vec<ClusterEvent>,
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
}

/// Where usage comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Api {
    /// `metrics.k8s.io`, of the metrics server.
    Metrics,
    /// Each node's kubelet, through the API server.
    Kubelet,
}

impl Looker {
    fn go_on(mut self, ended: &Receiver<()>, report: &dyn Fn(Result<ClusterLook, Trouble>) -> bool) {
        let mut next = Instant::now();
        let mut has_looked = false;
        while let Err(RecvTimeoutError::Timeout) =
            ended.recv_timeout(next.saturating_duration_since(Instant::now()))
        {
            next = Instant::now() + LOOK_EVERY;
            let look = match (self.look(), has_looked) {
                // Later it is a gap.
                (Err(_), true) => continue,
                (Err(failed), false) => Err(failed),
                (Ok(look), _) => Ok(look),
            };
            let is_first_failed = look.is_err();
            has_looked = true;
            if !report(look) || is_first_failed {
                return;
            }
        }
    }

    fn look(&mut self) -> Result<ClusterLook, Trouble> {
        let listed = if self.objects.are_nodes { None } else { Some(self.list("pods")?) };
        let usages = match (self.usages(listed.as_ref()), self.api) {
            (Ok(usages), _) => usages,
            (Err(failed), Api::Metrics) => {
                self.api = Api::Kubelet;
                self.usages(listed.as_ref()).map_err(|_| self.explain(&failed))?
            }
            (Err(failed), Api::Kubelet) => return Err(self.explain(&failed)),
        };
        let events = listed.map_or_else(Vec::new, |list| self.pods.take(&list));
        Ok(ClusterLook { samples: self.usages.take(usages), events })
    }

    /// The objects as the API server has them; there must be some.
    fn list(&self, kind: &str) -> Result<Value, Trouble> {
        let selector = format!("--selector={}", self.objects.selector);
        let mut arguments = vec!["get", kind, "--output=json", &selector];
        let namespace = self.objects.cluster.namespace.as_ref().map(|name| format!("--namespace={name}"));
        arguments.extend(namespace.as_deref().filter(|_| kind == "pods"));
        let output = self.kubectl.run(&arguments, "", &self.is_over);
        let list = object(&output.map_err(|failed| self.explain(&failed))?);
        if items(&list["items"]).is_empty() {
            let message = format!("monitor `{}`: the cluster has none", self.objects.text());
            return Err(Trouble::new(message, "`kubectl get pods --show-labels` shows what can be selected"));
        }
        Ok(list)
    }

    fn usages(&self, pods: Option<&Value>) -> Result<Vec<Usage>, Failed> {
        match self.api {
            Api::Metrics => self.metrics(pods),
            Api::Kubelet => self.summaries(pods),
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
            None => self.list("nodes").map_err(|trouble| Failed::Said(trouble.message))?,
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
            let summary = self.raw(&format!("/api/v1/nodes/{}/proxy/stats/summary", escaped(node)))?;
            match pods {
                Some(_) => usages
                    .extend(of_summary(&summary, &|namespace, name| wanted.contains(&(namespace, name)))),
                None => usages.extend(of_node(&summary)),
            }
        }
        Ok(usages)
    }

    fn raw(&self, path: &str) -> Result<Value, Failed> {
        self.kubectl.run(&["get", "--raw", path], "", &self.is_over).map(|output| object(&output))
    }

    fn explain(&self, failed: &Failed) -> Trouble {
        let trouble = self.kubectl.explain(failed);
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

/// Each is a call of kubectl at every look.
const NODE_COUNT_MAX: usize = 20;
