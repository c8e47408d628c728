//! Files that the controller sends: written part by part, with their permissions, and noted for removal.

use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;

use crate::janitor::{FOLDER_HELP, Janitor};
use crate::protocol::{FilePart, Trouble};

/// Writes one part. A file that was there before is never overwritten: it is not ours to remove.
pub(crate) fn receive(part: &FilePart, janitor: &Janitor) -> Result<(), Trouble> {
    let path = janitor.folder().join(&part.path);
    let failed = |error: io::Error| {
        let help = match error.kind() {
            _ if path.starts_with(janitor.folder()) => FOLDER_HELP,
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => "free some space there",
            io::ErrorKind::AlreadyExists => {
                "choose another path: files that are there already are not overwritten"
            }
            _ => "check that its folder exists there and may be written to",
        };
        Trouble::new(format!("cannot write `{}`: {error}", path.display()), help)
    };
    write(part, &path, janitor).map_err(failed)
}

fn write(part: &FilePart, path: &Path, janitor: &Janitor) -> io::Result<()> {
    let bytes = BASE64_STANDARD.decode(&part.data).map_err(io::Error::other)?;
    let mut file = if part.is_first { create(path, janitor)? } else { append(path)? };
    file.write_all(&bytes)?;
    // Only now: it may be one that forbids to write. The mask of the process may have taken bits away, too.
    if part.is_last { file.set_permissions(Permissions::from_mode(part.mode)) } else { Ok(()) }
}

fn create(path: &Path, janitor: &Janitor) -> io::Result<File> {
    let own_folder: PathBuf = janitor.folder().to_owned();
    if path.starts_with(&own_folder) {
        std::fs::create_dir_all(path.parent().unwrap_or(&own_folder))?;
    }
    let file = OpenOptions::new().write(true).create_new(true).mode(UNFINISHED_MODE).open(path)?;
    if !path.starts_with(&own_folder) {
        janitor.also_remove(path)?;
    }
    Ok(file)
}

fn append(path: &Path) -> io::Result<File> {
    OpenOptions::new().append(true).open(path)
}

/// Permissions while parts are missing: nobody else reads or runs half a file.
const UNFINISHED_MODE: u32 = 0o600;

#[cfg(test)]
mod tests {
    use super::*;

    fn part(path: &Path, (is_first, is_last): (bool, bool), text: &str) -> FilePart {
        let path = path.to_str().unwrap().to_owned();
        FilePart { path, mode: 0o440, is_first, is_last, data: BASE64_STANDARD.encode(text) }
    }

    #[test]
    fn files_have_their_content_and_permissions_and_go_with_the_agent() {
        let elsewhere = tempfile::tempdir().unwrap();
        let path = elsewhere.path().join("data");
        let janitor = Janitor::start(None).unwrap();
        let mode = || path.metadata().unwrap().permissions().mode() & 0o777;
        receive(&part(&path, (true, false), "first, "), &janitor).unwrap();
        assert_eq!(mode(), UNFINISHED_MODE, "root writes to anything: others need this to go on");
        receive(&part(&path, (false, true), "second"), &janitor).unwrap();
        receive(&part(Path::new("a/b"), (true, true), "own"), &janitor).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "first, second");
        assert_eq!(mode(), 0o440);
        assert_eq!(std::fs::read_to_string(janitor.folder().join("a/b")).unwrap(), "own");
        janitor.finish();
        assert!(!path.exists());
    }

    #[test]
    fn what_was_there_stays() {
        let elsewhere = tempfile::tempdir().unwrap();
        let path = elsewhere.path().join("precious");
        std::fs::write(&path, "mine").unwrap();
        let janitor = Janitor::start(None).unwrap();
        let trouble = receive(&part(&path, (true, true), "x"), &janitor).unwrap_err();
        assert!(trouble.help.contains("not overwritten"), "{trouble:?}");
        janitor.finish();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "mine");
    }
}
