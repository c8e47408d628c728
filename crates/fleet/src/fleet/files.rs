//! Files that the machines need: sends them, and says what they are called there.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use squall_plan::file::Reach;

use super::Fleet;
use crate::order::{FleetLoad, LoadWork};
use crate::protocol::{Destination, SENT_FILES, Trouble};

impl Fleet<'_> {
    pub(super) fn send_files(&mut self) {
        for file in &self.plan.files {
            for &machine_idx in &file.machine_idxs {
                let to = Destination { path: file.to.clone(), mode: file.mode, overwrite: file.overwrite };
                self.send_file(machine_idx, &file.from, &to);
            }
        }
        for (load_idx, load) in self.plan.loads.iter().enumerate() {
            let remote = load.parts.iter().map(|(idx, _)| *idx).filter(|&idx| !self.is_local(idx));
            let remote: Vec<usize> = remote.collect();
            for (path, from) in sent_files(load_idx, load) {
                let to = Destination { path, mode: 0o600, overwrite: false };
                remote.iter().for_each(|&idx| self.send_file(idx, &from, &to));
            }
        }
    }

    fn send_file(&mut self, machine_idx: usize, from: &Path, to: &Destination) {
        if let Err(error) = self.links[machine_idx].send_file(from, to) {
            let message = format!("cannot read `{}`: {error}", from.display());
            self.troubles.push(Trouble::new(message, "check the path and its permissions"));
        }
    }

    /// A load for a machine: paths of files are those that they have there.
    pub(super) fn work(&self, load_idx: usize, machine_idx: usize) -> LoadWork {
        let load = &self.plan.loads[load_idx];
        let mut work = load.work.clone();
        if !self.is_local(machine_idx) {
            for (file_idx, path) in work.numbered_files_mut() {
                *path = sent_name(load_idx, file_idx, load.below_root(path)).into();
            }
        }
        work
    }

    fn is_local(&self, machine_idx: usize) -> bool {
        self.plan.machines[machine_idx].reach == Reach::Local
    }
}

/// The files of a load by the names that they get on machines: each is sent once, however often the load names it.
fn sent_files(load_idx: usize, load: &FleetLoad) -> BTreeMap<String, PathBuf> {
    let mut sent = BTreeMap::new();
    for (file_idx, path) in load.work.clone().numbered_files_mut() {
        let together =
            if load.sources.contains(path) { &load.sources[..] } else { std::slice::from_ref(path) };
        let named = |path: &PathBuf| (sent_name(load_idx, file_idx, load.below_root(path)), path.clone());
        sent.extend(together.iter().map(named));
    }
    sent
}

/// A file's name on machines that it was sent to.
fn sent_name(load_idx: usize, file_idx: usize, path: &Path) -> String {
    format!("{SENT_FILES}{load_idx}-{file_idx}/{}", path.to_string_lossy())
}

impl FleetLoad {
    /// A path as seen from the folder in which all files of the script lie; of any other file, its name.
    fn below_root<'p>(&self, path: &'p Path) -> &'p Path {
        let name = || path.file_name().map_or(path, Path::new);
        let Some((first, rest)) =
            self.sources.split_first().filter(|_| self.sources.contains(&path.to_owned()))
        else {
            return name();
        };
        let root = rest.iter().fold(first.parent(), |root, source| {
            root?.ancestors().find(|ancestor| source.starts_with(ancestor))
        });
        root.and_then(|root| path.strip_prefix(root).ok()).unwrap_or_else(name)
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;
    use std::time::Duration;

    use squall_plan::{
        Body, ConnectionPolicy, Expect, ExpectBody, HttpLoad, HttpVersion, Load, Network, Plan, Profile,
        RequestPlan, Segment, Stop, TlsPolicy, What, When,
    };

    use super::*;
    use crate::order::tests::load as fleet_load;

    /// A load that sends these files as bodies.
    fn uploads(paths: &[&str]) -> FleetLoad {
        let request = |path: &&str| RequestPlan {
            weight: NonZeroU32::MIN,
            method: "POST".to_owned(),
            url: "http://x/".parse().unwrap(),
            pattern: String::new(),
            headers: Vec::new(),
            body: Body::File { path: path.into(), bytes: 1 },
            http: HttpVersion::default(),
        };
        let http = HttpLoad {
            requests: paths.iter().map(request).collect(),
            user_agents: Vec::new(),
            follow_count_max: 0,
            expect: Expect { status: Vec::new(), body: ExpectBody::Any },
            timeout: Duration::ZERO,
        };
        let load = Load {
            name: String::new(),
            what: What::Http(http),
            when: When::Closed { connections: Profile::constant(1.0), users: None },
            stop: Stop { duration: None, count: None },
            connections: ConnectionPolicy::default(),
            network: Network::default(),
            tls: TlsPolicy::default(),
            segment: Segment::WHOLE,
        };
        let plan = Plan {
            name: String::new(),
            loads: vec![load],
            thresholds: Vec::new(),
            warmup: Duration::ZERO,
            threads: None,
        };
        FleetLoad { work: LoadWork::Plan(Box::new(plan.into())), ..fleet_load(0, None) }
    }

    #[test]
    fn a_file_of_several_requests_is_sent_once() {
        let load = uploads(&["a/body", "b/body", "a/body", "b/other"]);
        let sent = sent_files(2, &load);
        let from: Vec<&str> = sent.values().map(|path| path.to_str().unwrap()).collect();
        assert_eq!(from, ["a/body", "b/body", "b/other"]);
        let mut work = load.work;
        let numbers: Vec<usize> = work.numbered_files_mut().into_iter().map(|(idx, _)| idx).collect();
        assert_eq!(numbers, [0, 1, 0, 2]);
    }
}
