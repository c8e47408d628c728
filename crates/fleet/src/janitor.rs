//! Removes what an agent leaves behind, also when the agent was killed: a shell that waits for the end of a pipe.

use std::fs;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::protocol::Trouble;

/// A folder that goes away with the process that has this value.
#[derive(Debug)]
pub(crate) struct Janitor {
    folder: PathBuf,
    /// `None`: there is no shell, as in a container whose image has nothing but squall; its files go with the container.
    shell: Option<Child>,
}

impl Janitor {
    /// Takes over a folder, or makes one.
    ///
    /// # Errors
    /// When the folder or the shell cannot be made.
    pub(crate) fn start(folder: Option<PathBuf>) -> Result<Self, Trouble> {
        let folder = match folder {
            Some(folder) => folder,
            None => make_folder("squall-agent").map_err(|error| {
                let message =
                    format!("cannot create a folder in `{}`: {error}", std::env::temp_dir().display());
                Trouble::new(message, FOLDER_HELP)
            })?,
        };
        // A group of its own, so that a signal to the agent's group does not end it.
        let mut command = Command::new("/bin/sh");
        command.args(["-c", CLEAN, "squall-janitor"]).arg(&folder).process_group(0);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let shell = match command.spawn() {
            Ok(shell) => Some(shell),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => {
                let message = format!("cannot start `/bin/sh`: {error}");
                return Err(Trouble::new(message, "squall needs a POSIX shell there"));
            }
        };
        Ok(Self { folder, shell })
    }

    /// The folder.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Notes a file elsewhere that is to be removed as well.
    ///
    /// # Errors
    /// When the note cannot be written.
    pub(crate) fn also_remove(&self, path: &Path) -> io::Result<()> {
        use std::io::Write as _;
        let name = path.to_str().filter(|name| !name.contains('\n'));
        let name = name.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "not a plain path"))?;
        let Some(mut pipe) = self.shell.as_ref().and_then(|shell| shell.stdin.as_ref()) else {
            return Ok(());
        };
        writeln!(pipe, "{name}")
    }

    /// Removes everything now, and returns when that is done.
    pub(crate) fn finish(mut self) {
        let Some(shell) = &mut self.shell else {
            let _ = fs::remove_dir_all(&self.folder);
            return;
        };
        drop(shell.stdin.take());
        let _ = shell.wait();
    }
}

/// Makes a folder for this user alone. `mkdir` fails where the name is taken, so no other user's folder is used.
pub(crate) fn make_folder(stem: &str) -> io::Result<PathBuf> {
    use std::os::unix::fs::DirBuilderExt as _;
    let base = std::env::temp_dir();
    let pid = std::process::id();
    for number in 0..NAME_TRY_COUNT {
        let path = base.join(format!("{stem}-{pid}-{number}"));
        match fs::DirBuilder::new().mode(0o700).create(&path) {
            Ok(()) => return Ok(path),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::Error::new(io::ErrorKind::AlreadyExists, format!("no free name in {}", base.display())))
}

/// What to do where the temporary folder does not take what is sent.
pub(crate) const FOLDER_HELP: &str = "free some space there, or set TMPDIR there to a writable folder";

/// Reads paths until the agent is gone, then removes them and the folder, and sets back what was set for the run ([`crate::terms`]).
const CLEAN: &str = r#"paths=$(cat); printf '%s\n' "$paths" | while IFS= read -r path; do [ -n "$path" ] && rm -f -- "$path"; done; rm -rf -- "$1"; eval "$SQUALL_AT_END""#;

const NAME_TRY_COUNT: u32 = 1000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folder_and_noted_files_go() {
        let elsewhere = tempfile::tempdir().unwrap();
        let noted = elsewhere.path().join("a file with 'quotes' and blanks");
        fs::write(&noted, "x").unwrap();
        let janitor = Janitor::start(None).unwrap();
        let folder = janitor.folder().to_owned();
        fs::write(folder.join("inside"), "x").unwrap();
        janitor.also_remove(&noted).unwrap();
        janitor.finish();
        assert!(!folder.exists() && !noted.exists());
        assert!(elsewhere.path().exists());
    }
}
