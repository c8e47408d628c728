//! Reads the workspace's Rust files, and checks what each must have and must not have.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::Findings;

/// One Rust file.
pub(super) struct Source {
    /// Relative to the root.
    pub(super) path: PathBuf,
    pub(super) text: String,
}

/// Reads every Rust file of the project.
pub(super) fn read(root: &Path, findings: &mut Findings) -> Vec<Source> {
    let mut files = Vec::new();
    for folder in ["crates", "dev", "bench", "fuzz"] {
        if let Err(error) = read_folder(root, &root.join(folder), &mut files) {
            findings.push(folder, error);
        }
    }
    files.sort_by(|a, b| a.path.cmp(&b.path));
    files
}

/// Checks headers and leftovers.
pub(super) fn check(files: &[Source], findings: &mut Findings) {
    for file in files {
        if !file.text.starts_with("//! ") {
            findings.push(file.path.display(), "has no `//!` header that says what it is for");
        }
        for (idx, line) in file.text.lines().enumerate() {
            if let Some(word) = leftover(line) {
                findings
                    .push(format!("{}:{}", file.path.display(), idx + 1), format!("`{word}` is left over"));
            }
        }
    }
}

fn read_folder(root: &Path, folder: &Path, files: &mut Vec<Source>) -> io::Result<()> {
    if !folder.exists() {
        return Ok(());
    }
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            // What cargo built, as that file says; a crate may be called `target` as well.
            if !path.join("CACHEDIR.TAG").exists() {
                read_folder(root, &path, files)?;
            }
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path)?;
            let path = path.strip_prefix(root).unwrap_or(&path).to_owned();
            files.push(Source { path, text });
        }
    }
    Ok(())
}

fn leftover(line: &str) -> Option<&'static str> {
    LEFTOVERS.iter().copied().find(|word| line.contains(word))
}

/// Written in two parts so that this file does not find itself.
const LEFTOVERS: &[&str] = &[
    concat!("TO", "DO"),
    concat!("FIX", "ME"),
    concat!("XX", "X:"),
    concat!("to", "do!("),
    concat!("db", "g!("),
    concat!("unimpl", "emented!("),
    concat!("#[ig", "nore"),
];
