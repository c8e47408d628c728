//! Files that a recording names: request bodies of curl commands and Postman collections.
//!
//! Owns: where they are looked for. Never: writes, or reads anything that the recording does not name.

use std::path::{Path, PathBuf};

use super::time;
use crate::limits::RECORD_BYTES_MAX;

/// Where a recording's files are: relative names are relative to its own folder.
#[derive(Debug, Clone, Default)]
pub(super) struct Files {
    /// `None`: nothing is read, because the recording itself is no file.
    folder: Option<PathBuf>,
}

impl Files {
    /// The files next to this recording; of standard input, those in the working directory.
    pub(super) fn next_to(recording: &Path) -> Self {
        Self { folder: Some(recording.parent().unwrap_or_else(|| Path::new("")).to_owned()) }
    }

    /// The contents of a file.
    ///
    /// # Errors
    /// When there is none, or it is larger than a record.
    pub(super) fn read(&self, name: &str) -> Result<Vec<u8>, String> {
        let Some(folder) = &self.folder else {
            return Err(format!("the file `{}` cannot be read from here", time::cut(name)));
        };
        if matches!(name, "-" | ".") {
            return Err("the body comes from standard input, which is not recorded".to_owned());
        }
        let path = folder.join(name);
        let refused = |error: std::io::Error| format!("cannot read the file `{}`: {error}", path.display());
        squall_plan::files::read(&path, RECORD_BYTES_MAX as u64).map_err(refused)
    }
}
