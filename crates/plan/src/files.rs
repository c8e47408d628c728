//! Files of the user: read within a bound that applies before the reading, written whole or not at all.
//!
//! Owns: how much of a file is read, who may read what is written, how a temporary file is made. Never: what a file means.

use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;

/// Who may read a file that is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Its owner alone, an existing file too: it can hold secrets.
    Private,
    /// As the file was, or as the mask of the process says.
    Shared,
}

/// The whole file, if it has no more than so many bytes. A device or a pipe is read up to the bound, too.
///
/// # Errors
/// When it cannot be read, or is larger ([`ErrorKind::FileTooLarge`]).
pub fn read(path: &Path, bytes_max: u64) -> io::Result<Vec<u8>> {
    let file = File::open(path)?;
    if file.metadata()?.len() > bytes_max {
        return Err(too_large(bytes_max));
    }
    read_from(file, bytes_max)
}

/// As [`read`], for text.
///
/// # Errors
/// As [`read`], and when it is not UTF-8.
pub fn read_text(path: &Path, bytes_max: u64) -> io::Result<String> {
    text_of(read(path, bytes_max)?)
}

/// All that a reader gives, if that is no more than so many bytes: standard input, a response.
///
/// # Errors
/// As [`read_text`].
pub fn read_text_from(reader: impl Read, bytes_max: u64) -> io::Result<String> {
    text_of(read_from(reader, bytes_max)?)
}

fn read_from(reader: impl Read, bytes_max: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    reader.take(bytes_max.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > bytes_max { Err(too_large(bytes_max)) } else { Ok(bytes) }
}

fn text_of(bytes: Vec<u8>) -> io::Result<String> {
    String::from_utf8(bytes).map_err(|_| io::Error::new(ErrorKind::InvalidData, "it is not UTF-8 text"))
}

fn too_large(bytes_max: u64) -> io::Error {
    io::Error::new(ErrorKind::FileTooLarge, format!("it is larger than {}", size(bytes_max)))
}

fn size(bytes: u64) -> String {
    match bytes {
        0..0x10_0000 => format!("{} KiB", bytes >> 10),
        _ => format!("{} MiB", bytes >> 20),
    }
}

/// Opens a file that only its owner may read. One that exists and that others could read is closed to them before a byte is
/// written. Devices and pipes stay as they are.
///
/// # Errors
/// When it cannot be opened, or belongs to another user.
pub fn open_private(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    let file = options.mode(PRIVATE_MODE).open(path)?;
    let metadata = file.metadata()?;
    if metadata.is_file() && metadata.permissions().mode() & 0o077 != 0 {
        file.set_permissions(Permissions::from_mode(PRIVATE_MODE))?;
    }
    Ok(file)
}

/// Creates or empties a file that only its owner may read.
///
/// # Errors
/// As [`open_private`].
pub fn create_private(path: &Path) -> io::Result<File> {
    // Emptied only when it is closed to others: no one shall read it while it is being filled.
    let file = open_private(path, OpenOptions::new().write(true).create(true).truncate(false))?;
    if file.metadata()?.is_file() {
        file.set_len(0)?;
    }
    Ok(file)
}

/// Replaces a regular file by this content in one step, or creates it. Readers and a crash never meet half of it.
///
/// # Errors
/// When it cannot be written; what was there is still there.
pub fn replace(path: &Path, content: &[u8], access: Access) -> io::Result<()> {
    let mut temporary = temporary_next_to(path, access)?;
    temporary.write_all(content)?;
    // A full disk may say so only now (delayed allocation), so this comes before the rename.
    temporary.as_file().sync_data()?;
    temporary.persist(path).map(drop).map_err(|error| error.error)
}

/// A temporary file in the same folder, so that a rename stays within one file system. It is made exclusively, under a name
/// that cannot be foreseen: a link that lies in wait there is never followed. Dropped, it is gone.
///
/// # Errors
/// When the folder does not allow it.
pub fn temporary_next_to(path: &Path, access: Access) -> io::Result<tempfile::NamedTempFile> {
    let folder =
        path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or_else(|| Path::new("."));
    let mut builder = tempfile::Builder::new();
    builder.prefix(".squall-").suffix(".tmp");
    let known = path.metadata().ok().filter(|_| access == Access::Shared);
    if access == Access::Shared && known.is_none() {
        builder.permissions(Permissions::from_mode(SHARED_MODE));
    }
    let temporary = builder.tempfile_in(folder)?;
    if let Some(known) = known {
        temporary.as_file().set_permissions(known.permissions())?;
    }
    Ok(temporary)
}

/// Read and written by the owner.
const PRIVATE_MODE: u32 = 0o600;

/// What the mask of the process leaves of this.
const SHARED_MODE: u32 = 0o666;

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    fn mode(path: &Path) -> u32 {
        path.metadata().unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn a_bound_applies_to_files_devices_and_pipes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        fs::write(&path, "12345678").unwrap();
        assert_eq!(read_text(&path, 8).unwrap(), "12345678");
        assert_eq!(read(Path::new("/dev/null"), 8).unwrap(), b"");
        for (path, bytes_max) in [(path.as_path(), 7), (Path::new("/dev/zero"), 1 << 20)] {
            let error = read(path, bytes_max).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::FileTooLarge, "{}", path.display());
        }
        assert_eq!(read_text_from(&b"123"[..], 2).unwrap_err().kind(), ErrorKind::FileTooLarge);
        assert_eq!(read_text_from(&b"\xff"[..], 2).unwrap_err().kind(), ErrorKind::InvalidData);
        // A sparse file takes no space on the disk, and none here.
        let sparse = folder.path().join("sparse");
        File::create(&sparse).unwrap().set_len(1 << 40).unwrap();
        assert_eq!(read(&sparse, 1 << 20).unwrap_err().to_string(), "it is larger than 1 MiB");
    }

    #[test]
    fn private_files_are_closed_to_others_even_where_they_were_open() {
        let folder = tempfile::tempdir().unwrap();
        let [new, open, whole] = ["new", "open", "whole"].map(|name| folder.path().join(name));
        for path in [&open, &whole] {
            fs::write(path, "before").unwrap();
            fs::set_permissions(path, Permissions::from_mode(0o666)).unwrap();
        }
        create_private(&new).unwrap();
        create_private(&open).unwrap();
        replace(&whole, b"after", Access::Private).unwrap();
        for path in [&new, &open, &whole] {
            assert_eq!(mode(path), 0o600, "{}", path.display());
        }
        assert_eq!(fs::read(&open).unwrap(), b"");
        assert_eq!(fs::read(&whole).unwrap(), b"after");
        create_private(Path::new("/dev/null")).unwrap();
        assert_ne!(mode(Path::new("/dev/null")), 0o600);
    }

    #[test]
    fn shared_files_keep_their_permissions() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        fs::write(&path, "before").unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
        replace(&path, b"after", Access::Shared).unwrap();
        assert_eq!((mode(&path), fs::read(&path).unwrap()), (0o640, b"after".to_vec()));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_link_in_wait_is_replaced_and_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let [path, victim] = ["file", "victim"].map(|name| folder.path().join(name));
        fs::write(&victim, "mine").unwrap();
        symlink(&victim, &path).unwrap();
        replace(&path, b"new", Access::Private).unwrap();
        assert_eq!(
            (fs::read(&victim).unwrap(), fs::read(&path).unwrap()),
            (b"mine".to_vec(), b"new".to_vec())
        );
    }
}
