//! Writes files whole or not at all: readers and a crash never meet half of one.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::Error;

/// Replaces a regular file by `content` in one step, or creates it.
pub(crate) fn replace(path: &Path, content: &[u8]) -> Result<(), Error> {
    let temporary = beside(path);
    let written = write_synced(&temporary, content)
        .and_then(|()| keep_permissions(path, &temporary))
        .and_then(|()| fs::rename(&temporary, path));
    written.map_err(|source| {
        // Nothing depends on its success: what matters is the error that led here.
        let _ = fs::remove_file(&temporary);
        Error::write(path, source)
    })
}

/// Whether a file can be made beside this one: not in a folder closed to us, nor when the name has no room for more.
pub(crate) fn can_replace(path: &Path) -> bool {
    let temporary = beside(path);
    File::create(&temporary).and_then(|_| fs::remove_file(&temporary)).is_ok()
}

/// A full disk may say so only when the file is synchronised (delayed allocation), so that comes before the rename.
fn write_synced(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut file = File::create(path)?;
    file.write_all(content)?;
    file.sync_data()
}

fn keep_permissions(old: &Path, new: &Path) -> io::Result<()> {
    match fs::metadata(old) {
        Ok(metadata) => fs::set_permissions(new, metadata.permissions()),
        Err(_) => Ok(()),
    }
}

/// A name in the same folder, so that the rename stays within one file system.
fn beside(path: &Path) -> PathBuf {
    let mut name = OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(format!(".{}.tmp", std::process::id()));
    path.with_file_name(name)
}
