//! Private keys for ssh: whether one can be used without a question, as OpenSSH itself says.
//!
//! Owns: that answer, before anything starts. Never: reads a key's content, or asks for a passphrase.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::protocol::Trouble;

/// Checks a private key file as a plan or a flag names it.
///
/// # Errors
/// When it cannot be read, is no private key, or has a passphrase and is not in the ssh agent.
pub fn check_key(key: &str) -> Result<(), Trouble> {
    let path = expanded(key);
    File::open(&path).map_err(|error| {
        let message = format!("cannot read the ssh key `{key}`: {error}");
        Trouble::new(message, "check its path and permissions; no other key is tried")
    })?;
    // Where ssh-keygen is missing, ssh is missing too, and that has a message of its own.
    let Some((is_usable, said)) = ask("ssh-keygen", &["-y", "-P", "", "-f"], Some(&path)) else {
        return Ok(());
    };
    if is_usable || is_in_agent(&path) {
        return Ok(());
    }
    let said = said.trim();
    Err(if said.contains("incorrect passphrase") {
        let help =
            format!("add it to the ssh agent with `ssh-add {key}`: squall cannot ask for the passphrase");
        Trouble::new(format!("the ssh key `{key}` has a passphrase"), help)
    } else if said.contains("UNPROTECTED PRIVATE KEY FILE") {
        let help = format!("ssh refuses such a key: `chmod 600 {key}`");
        Trouble::new(format!("other users can read the ssh key `{key}`"), help)
    } else {
        let last = said.lines().last().unwrap_or_default();
        Trouble::new(
            format!("`{key}` is not a private key for ssh ({last})"),
            "give the file of the private key",
        )
    })
}

/// The agent has the key itself, without its passphrase.
fn is_in_agent(path: &Path) -> bool {
    let fingerprint = |text: &str| text.split(' ').nth(1).map(str::to_owned);
    let own = ask("ssh-keygen", &["-l", "-f"], Some(path)).and_then(|(_, said)| fingerprint(&said));
    let held = ask("ssh-add", &["-l"], None).map(|(_, said)| said).unwrap_or_default();
    own.is_some_and(|own| held.lines().filter_map(fingerprint).any(|held| held == own))
}

/// Whether a program succeeds, and what it says; `None` when it is not installed.
fn ask(program: &str, words: &[&str], path: Option<&Path>) -> Option<(bool, String)> {
    let mut command = Command::new(program);
    command.args(words).args(path).stdin(Stdio::null()).env("SSH_ASKPASS_REQUIRE", "never");
    let output = command.output().ok()?;
    let said = if output.status.success() { output.stdout } else { output.stderr };
    Some((output.status.success(), String::from_utf8_lossy(&said).into_owned()))
}

/// `~/` as ssh understands it.
fn expanded(key: &str) -> PathBuf {
    match (key.strip_prefix("~/"), std::env::var_os("HOME")) {
        (Some(rest), Some(home)) => PathBuf::from(home).join(rest),
        _ => PathBuf::from(key),
    }
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_key_that_would_need_a_question_is_reported() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name).to_string_lossy().into_owned();
        for (name, passphrase) in [("good", ""), ("locked", "secret")] {
            let words = ["-q", "-t", "ed25519", "-N", passphrase, "-f", &path(name)];
            assert!(Command::new("ssh-keygen").args(words).status().unwrap().success());
        }
        for (name, mode) in [("text", 0o600), ("open", 0o644)] {
            std::fs::write(path(name), "no key").unwrap();
            std::fs::set_permissions(path(name), Permissions::from_mode(mode)).unwrap();
        }
        for (name, expected) in [
            ("good", ""),
            ("locked", "has a passphrase"),
            ("text", "is not a private key for ssh"),
            ("open", "other users can read the ssh key"),
            ("missing", "No such file or directory"),
        ] {
            let message = check_key(&path(name)).map_or_else(|trouble| trouble.message, |()| String::new());
            assert!(
                message.contains(expected) && message.is_empty() == expected.is_empty(),
                "{name}: {message}"
            );
        }
    }
}
