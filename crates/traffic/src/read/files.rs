//! Files that a recording names: request bodies of curl commands and Postman collections.
//!
//! Owns: where they are looked for: in the recording's folder and below. Never: writes, or reads a file elsewhere, because a
//! recording may come from anybody and what it names is sent.

use std::io;
use std::path::{Component, Path, PathBuf};

use super::time;
use crate::limits::RECORD_BYTES_MAX;

/// Where a recording's files are: names are relative to its own folder.
#[derive(Debug, Clone, Default)]
pub(super) struct Files {
    /// `None`: nothing is read, because the recording itself is no file.
    folder: Option<PathBuf>,
    /// What `-` names.
    stdin: Option<Vec<u8>>,
}

impl Files {
    /// The files next to this recording; of standard input, those in the working directory.
    pub(super) fn next_to(recording: &Path) -> Self {
        let folder = recording.parent().filter(|folder| !folder.as_os_str().is_empty());
        Self { folder: Some(folder.unwrap_or_else(|| Path::new(".")).to_owned()), stdin: None }
    }

    /// The same, and `-` is these bytes.
    pub(super) fn with_stdin(&self, stdin: Option<Vec<u8>>) -> Self {
        Self { stdin, ..self.clone() }
    }

    /// Whether this is curl's name for standard input.
    pub(super) fn is_stdin(name: &str) -> bool {
        matches!(name, "-" | ".")
    }

    /// The contents of a file.
    ///
    /// # Errors
    /// When there is none, it is outside the recording's folder, or it is larger than a record.
    pub(super) fn read(&self, name: &str) -> Result<Vec<u8>, String> {
        if Self::is_stdin(name) {
            let unknown = || "the body comes from standard input, which is not recorded".to_owned();
            return self.stdin.clone().ok_or_else(unknown);
        }
        let Some(folder) = &self.folder else {
            return Err(format!("the file `{}` cannot be read from here", time::cut(name)));
        };
        if !stays_below(Path::new(name)) {
            return Err(outside(name));
        }
        let path = folder.join(name);
        let unreadable = |error: io::Error| format!("cannot read the file `{}`: {error}", path.display());
        // Symbolic links are followed as long as they end in the folder.
        let real = path.canonicalize().map_err(unreadable)?;
        if !real.starts_with(folder.canonicalize().map_err(unreadable)?) {
            return Err(outside(name));
        }
        squall_plan::files::read(&real, RECORD_BYTES_MAX as u64).map_err(unreadable)
    }
}

/// Whether a name leads neither to the root nor to a folder above.
fn stays_below(name: &Path) -> bool {
    name.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir))
}

fn outside(name: &str) -> String {
    format!(
        "the file `{}` is outside the recording's folder, so it is not read: copy it there, and name it without its folder",
        time::cut(name)
    )
}
