//! Files that the controller sends: written part by part next to their destination, put there when they are complete, and noted for removal.
//!
//! Owns: what happens to a file that is there already. Never: leaves half a file at its place.

use std::fs::{self, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;

use crate::janitor::{FOLDER_HELP, Janitor};
use crate::protocol::{FilePart, Trouble};

/// Writes one part. A file that was there before is replaced only where the order says so, and then it stays: it is not ours to
/// remove.
pub(crate) fn receive(part: &FilePart, janitor: &Janitor) -> Result<(), Trouble> {
    let path = janitor.folder().join(&part.to.path);
    let failed = |error: io::Error| {
        let help = match error.kind() {
            _ if path.starts_with(janitor.folder()) => FOLDER_HELP,
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => "free some space there",
            io::ErrorKind::AlreadyExists => {
                "choose another path, or set `overwrite: true` to replace an existing file"
            }
            _ => "check that its folder exists there and is writable",
        };
        Trouble::new(format!("cannot write `{}`: {error}", path.display()), help)
    };
    write(part, &path, janitor).map_err(failed)
}

fn write(part: &FilePart, path: &Path, janitor: &Janitor) -> io::Result<()> {
    let bytes = BASE64_STANDARD.decode(&part.data).map_err(io::Error::other)?;
    let unfinished = unfinished(path);
    let mut file = if part.is_first {
        prepare(part, path, &unfinished, janitor)?;
        OpenOptions::new().write(true).create_new(true).mode(UNFINISHED_MODE).open(&unfinished)?
    } else {
        OpenOptions::new().append(true).open(&unfinished)?
    };
    file.write_all(&bytes)?;
    if !part.is_last {
        return Ok(());
    }
    // Only now: it may be one that forbids to write. The mask of the process may have taken bits away, too.
    file.set_permissions(Permissions::from_mode(part.to.mode))?;
    if !exists(path) && !path.starts_with(janitor.folder()) {
        janitor.also_remove(path)?;
    }
    fs::rename(unfinished, path)
}

/// Refuses a file that may not be replaced, and makes sure that an unfinished one does not stay.
fn prepare(part: &FilePart, path: &Path, unfinished: &Path, janitor: &Janitor) -> io::Result<()> {
    if path.starts_with(janitor.folder()) {
        return fs::create_dir_all(path.parent().unwrap_or_else(|| janitor.folder()));
    }
    if exists(path) && !part.to.overwrite {
        return Err(io::ErrorKind::AlreadyExists.into());
    }
    janitor.also_remove(unfinished)
}

fn exists(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

/// Where a file is until it is complete; agents of several machines may share a file system.
fn unfinished(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.squall-{}", std::process::id()))
}

/// Permissions while parts are missing: no other user reads or runs half a file.
const UNFINISHED_MODE: u32 = 0o600;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::Destination;

    fn part(path: &Path, (is_first, is_last): (bool, bool), text: &str) -> FilePart {
        let to = Destination { path: path.to_str().unwrap().to_owned(), mode: 0o440, overwrite: false };
        FilePart { to, is_first, is_last, data: BASE64_STANDARD.encode(text) }
    }

    fn replacing(mut part: FilePart) -> FilePart {
        part.to.overwrite = true;
        part
    }

    #[test]
    fn files_have_their_content_and_permissions_and_go_with_the_agent() {
        let elsewhere = tempfile::tempdir().unwrap();
        let path = elsewhere.path().join("data");
        let janitor = Janitor::start(None).unwrap();
        let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
        receive(&part(&path, (true, false), "first, "), &janitor).unwrap();
        assert_eq!(
            mode(&unfinished(&path)),
            UNFINISHED_MODE,
            "root reads anything: others need this to go on"
        );
        assert!(!path.exists(), "half a file is not at its place");
        receive(&part(&path, (false, true), "second"), &janitor).unwrap();
        receive(&part(Path::new("a/b"), (true, true), "own"), &janitor).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "first, second");
        assert_eq!(mode(&path), 0o440);
        assert_eq!(fs::read_to_string(janitor.folder().join("a/b")).unwrap(), "own");
        janitor.finish();
        assert_eq!(fs::read_dir(elsewhere.path()).unwrap().count(), 0);
    }

    #[test]
    fn what_was_there_stays() {
        let elsewhere = tempfile::tempdir().unwrap();
        let path = elsewhere.path().join("precious");
        fs::write(&path, "mine").unwrap();
        let janitor = Janitor::start(None).unwrap();
        let trouble = receive(&part(&path, (true, true), "x"), &janitor).unwrap_err();
        assert!(trouble.help.contains("overwrite: true"), "{trouble:?}");
        janitor.finish();
        assert_eq!(fs::read_to_string(&path).unwrap(), "mine");
    }

    #[test]
    fn what_is_replaced_is_replaced_for_good_and_every_time() {
        let elsewhere = tempfile::tempdir().unwrap();
        let path = elsewhere.path().join("data");
        fs::write(&path, "before").unwrap();
        for text in ["first run", "second run"] {
            let janitor = Janitor::start(None).unwrap();
            receive(&replacing(part(&path, (true, false), text)), &janitor).unwrap();
            receive(&replacing(part(&path, (false, true), "!")), &janitor).unwrap();
            janitor.finish();
            assert_eq!(fs::read_to_string(&path).unwrap(), format!("{text}!"));
        }
        assert_eq!(fs::read_dir(elsewhere.path()).unwrap().count(), 1);
    }
}
