//! Files that the machines need: sends them, and says what they are called there.

use std::path::Path;

use squall_plan::file::Reach;

use super::Fleet;
use crate::order::Word;
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
            for (word_idx, word) in load.words.iter().enumerate() {
                let remote = load.parts.iter().map(|(idx, _)| *idx).filter(|&idx| !self.is_local(idx));
                let remote: Vec<usize> = remote.collect();
                for (from, path) in sent_files(load_idx, word_idx, word) {
                    let to = Destination { path, mode: 0o600, overwrite: false };
                    remote.iter().for_each(|&idx| self.send_file(idx, from, &to));
                }
            }
        }
    }

    fn send_file(&mut self, machine_idx: usize, from: &Path, to: &Destination) {
        if let Err(error) = self.links[machine_idx].send_file(from, to) {
            let message = format!("cannot read `{}`: {error}", from.display());
            self.troubles.push(Trouble::new(message, "check the path and its permissions"));
        }
    }

    /// The words of a load for a machine: paths of files are those that they have there.
    pub(super) fn words(&self, load_idx: usize, machine_idx: usize) -> Vec<String> {
        let word = |(word_idx, word): (usize, &Word)| match word {
            Word::Text(text) => text.clone(),
            Word::File(path) | Word::Tree { entry: path, .. } if self.is_local(machine_idx) => {
                path.to_string_lossy().into_owned()
            }
            Word::File(path) => sent_name(load_idx, word_idx, path.file_name().unwrap_or_default().as_ref()),
            Word::Tree { root, entry, .. } => sent_name(load_idx, word_idx, below(root, entry)),
        };
        self.plan.loads[load_idx].words.iter().enumerate().map(word).collect()
    }

    fn is_local(&self, machine_idx: usize) -> bool {
        self.plan.machines[machine_idx].reach == Reach::Local
    }
}

/// The files of a word, each with its name on machines that it is sent to.
fn sent_files(load_idx: usize, word_idx: usize, word: &Word) -> Vec<(&Path, String)> {
    let named = |path: &Path| sent_name(load_idx, word_idx, path);
    match word {
        Word::Text(_) => Vec::new(),
        Word::File(path) => vec![(path, named(path.file_name().unwrap_or_default().as_ref()))],
        Word::Tree { root, files, .. } => {
            files.iter().map(|path| (path.as_path(), named(below(root, path)))).collect()
        }
    }
}

/// A file's name on machines that it was sent to.
fn sent_name(load_idx: usize, word_idx: usize, path: &Path) -> String {
    format!("{SENT_FILES}{load_idx}-{word_idx}/{}", path.to_string_lossy())
}

/// A path as seen from a folder above it.
fn below<'a>(root: &Path, path: &'a Path) -> &'a Path {
    path.strip_prefix(root).unwrap_or(path)
}
