//! What the place of pods does to their measurement, as their facts show it: nodes that they share, and CPUs that are not reserved.

use std::collections::{BTreeMap, HashMap};

use squall_plan::file::kubernetes::quantity;
use squall_plan::file::{Machine, Reach};

use super::pods::{CPU_LIMIT_FACT, CPU_REQUEST_FACT, NODE_FACT};

/// How many pods may have been slowed down by their place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Placement {
    /// All of them.
    pub pod_count: usize,
    /// Pods that may use more CPU than was reserved for them.
    pub not_reserved_count: usize,
    /// Pods on a node that runs another pod of the plan.
    pub sharing_count: usize,
}

impl Placement {
    /// Of a plan's machines, each with its facts.
    pub(crate) fn of<'m>(
        machines: impl Iterator<Item = (&'m Machine, &'m BTreeMap<String, String>)>,
    ) -> Self {
        let mut placement = Self::default();
        let mut nodes: HashMap<_, usize> = HashMap::new();
        for (machine, facts) in machines {
            let Reach::Pod { pool, .. } = &machine.reach else { continue };
            placement.pod_count += 1;
            placement.not_reserved_count += usize::from(!is_reserved(facts));
            if let Some(node) = facts.get(NODE_FACT) {
                // Nodes of different clusters may have the same name.
                *nodes.entry((&pool.kubeconfig, &pool.context, node)).or_default() += 1;
            }
        }
        placement.sharing_count = nodes.into_values().filter(|count| *count > 1).sum();
        placement
    }
}

/// Whether all CPU time that a pod counts on is reserved for it. One without a limit may use what others leave as well.
fn is_reserved(facts: &BTreeMap<String, String>) -> bool {
    let cpus = |name| facts.get(name).and_then(|text: &String| quantity(text));
    let request = cpus(CPU_REQUEST_FACT).unwrap_or(0.0);
    cpus(CPU_LIMIT_FACT).map_or(request > 0.0, |limit| request >= limit)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use squall_plan::file::MachineSettings;
    use squall_plan::file::kubernetes::KubernetesPool;

    use super::*;

    #[test]
    fn shared_nodes_and_cpus_that_are_not_reserved_are_counted() {
        let machine = |context: Option<&str>, facts: &[(&str, &str)]| {
            let pool = KubernetesPool { context: context.map(str::to_owned), ..KubernetesPool::default() };
            let machine = Machine {
                name: squall_plan::Text::default(),
                reach: Reach::Pod { pool: Arc::new(pool), index: 0 },
                weight: std::num::NonZeroU32::MIN,
                settings: MachineSettings::default(),
            };
            let facts = facts.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
            (machine, facts.collect::<BTreeMap<_, _>>())
        };
        let cpu = |request, limit| [("cpu_request", request), ("cpu_limit", limit)];
        let on = |node| [(NODE_FACT, node), ("cpu_request", "1")];
        for (machines, not_reserved_count, sharing_count) in [
            (vec![machine(None, &on("a")), machine(None, &on("b"))], 0, 0),
            (vec![machine(None, &on("a")), machine(None, &on("b")), machine(None, &on("a"))], 0, 2),
            (vec![machine(Some("east"), &on("a")), machine(Some("west"), &on("a"))], 0, 0),
            (vec![machine(None, &[]), machine(None, &[])], 2, 0),
            (vec![machine(None, &cpu("2", "2")), machine(None, &cpu("2000m", "2"))], 0, 0),
            (vec![machine(None, &cpu("500m", "2")), machine(None, &[("cpu_limit", "1")])], 2, 0),
            (vec![machine(None, &[("cpu_request", "1")])], 0, 0),
        ] {
            let local = Machine { reach: Reach::Local, ..machines[0].0.clone() };
            let no_facts = BTreeMap::new();
            let all = machines.iter().map(|(machine, facts)| (machine, facts)).chain([(&local, &no_facts)]);
            let expected = Placement { pod_count: machines.len(), not_reserved_count, sharing_count };
            assert_eq!(Placement::of(all), expected, "{machines:?}");
        }
    }
}
