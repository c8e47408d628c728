//! Files that the machines need: sends them, and says what they are called there.

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
            for (from, path) in sent_files(load_idx, load) {
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
            for (file_idx, path) in work.files_mut().into_iter().enumerate() {
                *path = sent_name(load_idx, file_idx, load.below_root(path)).into();
            }
        }
        work
    }

    fn is_local(&self, machine_idx: usize) -> bool {
        self.plan.machines[machine_idx].reach == Reach::Local
    }
}

/// The files of a load, each with its name on machines that it is sent to.
fn sent_files(load_idx: usize, load: &FleetLoad) -> Vec<(PathBuf, String)> {
    let mut sent = Vec::new();
    for (file_idx, path) in load.work.clone().files_mut().into_iter().enumerate() {
        let together =
            if load.sources.contains(path) { &load.sources[..] } else { std::slice::from_ref(path) };
        let named = |path: &PathBuf| (path.clone(), sent_name(load_idx, file_idx, load.below_root(path)));
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
