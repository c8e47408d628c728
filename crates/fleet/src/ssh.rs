//! The system's OpenSSH client: its command line, and what its complaints mean.
//!
//! The user's configuration, agent, keys, jumps and known hosts are ssh's own business; host keys are always verified.

use std::process::Command;

use squall_plan::file::SshSpec;

use crate::protocol::Trouble;

/// `ssh` that runs a script on the machine.
pub(crate) fn command(spec: &SshSpec, script: &str) -> Command {
    let mut command = Command::new("ssh");
    command.args(arguments(spec));
    command.arg("--").arg(&spec.host).arg(format!("exec /bin/sh -c {}", quoted(script)));
    command
}

/// Everything between `ssh` and the host.
fn arguments(spec: &SshSpec) -> Vec<String> {
    let mut arguments = vec!["-T".to_owned()];
    arguments.extend(common(spec));
    if let Some(user) = &spec.user {
        arguments.extend(["-l".to_owned(), user.clone()]);
    }
    if let Some(port) = spec.port {
        arguments.extend(["-p".to_owned(), port.to_string()]);
    }
    arguments.extend(jump(spec));
    arguments
}

/// What holds for the machine and for the hosts on the way to it.
fn common(spec: &SshSpec) -> Vec<String> {
    let mut arguments = Vec::new();
    if let Some(config) = &spec.config {
        arguments.extend(["-F".to_owned(), config.clone()]);
    }
    if let Some(key) = &spec.key {
        arguments.extend(["-i".to_owned(), key.clone(), "-o".to_owned(), "IdentitiesOnly=yes".to_owned()]);
    }
    for option in OPTIONS.iter().map(|option| (*option).to_owned()).chain(spec.options.iter().cloned()) {
        arguments.extend(["-o".to_owned(), option]);
    }
    arguments
}

/// `ProxyJump` would take neither the key nor the options along: the way through one host is written out. Through several it is
/// left to `ProxyJump`, and to the user's configuration of those hosts.
fn jump(spec: &SshSpec) -> Vec<String> {
    let Some(jump) = &spec.jump else { return Vec::new() };
    if jump.contains(',') {
        return vec!["-J".to_owned(), jump.clone()];
    }
    let (rest, port) = match jump.rsplit_once(':') {
        Some((rest, port)) if port.parse::<u16>().is_ok() && (!rest.contains(':') || rest.ends_with(']')) => {
            (rest, Some(port))
        }
        _ => (jump.as_str(), None),
    };
    let mut words = vec!["ssh".to_owned()];
    words.extend(common(spec));
    words.extend(port.into_iter().flat_map(|port| ["-p".to_owned(), port.to_owned()]));
    let user = rest.rsplit_once('@').map(|(user, _)| user).or(spec.user.as_deref());
    words.extend(user.into_iter().flat_map(|user| ["-l".to_owned(), user.to_owned()]));
    let host = rest.rsplit_once('@').map_or(rest, |(_, host)| host).trim_matches(['[', ']']);
    words.extend(["-W".to_owned(), "[%h]:%p".to_owned(), "--".to_owned(), host.to_owned()]);
    let words: Vec<String> = words
        .iter()
        .map(|word| if word == "[%h]:%p" { quoted(word) } else { quoted(&word.replace('%', "%%")) })
        .collect();
    vec!["-o".to_owned(), format!("ProxyCommand={}", words.join(" "))]
}

/// A word for a POSIX shell.
pub(crate) fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// The port that ssh takes: the plan's, or that of the user's configuration.
pub(crate) fn port(spec: &SshSpec) -> Option<u16> {
    let asked = || {
        let output =
            Command::new("ssh").args(arguments(spec)).args(["-G", "--", &spec.host]).output().ok()?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        text.lines().find_map(|line| line.strip_prefix("port ")?.trim().parse().ok())
    };
    spec.port.or_else(asked)
}

/// What ssh's last words mean. `port`: where it tried, if that is known.
pub(crate) fn explain(spec: &SshSpec, port: Option<u16>, errors: &str) -> Trouble {
    let known = COMPLAINTS.iter().find(|(words, _, _)| errors.contains(words));
    let place = SshSpec { port, ..spec.clone() }.destination();
    let by = match &spec.jump {
        Some(jump) => format!("`{place}` through `{jump}`"),
        None => format!("`{place}`"),
    };
    match known {
        Some((_, meaning, help)) => Trouble::new(format!("{by}: {meaning}{}", last_words(errors)), *help),
        None if errors.is_empty() => {
            Trouble::new(format!("{by}: ssh ended without a word"), "try it by hand: `ssh -v HOST`")
        }
        None => {
            Trouble::new(format!("{by}: ssh failed{}", last_words(errors)), "try it by hand: `ssh -v HOST`")
        }
    }
}

/// The last line that says something, in brackets.
fn last_words(errors: &str) -> String {
    let lines = errors.lines().map(str::trim).filter(|line| !line.is_empty());
    let mut telling = lines.rev().filter(|line| !NOISE.iter().any(|noise| line.contains(noise)));
    telling.next().map_or_else(String::new, |line| format!(" ({})", line.trim_end_matches('.')))
}

/// No question is ever asked; a connection that is gone is noticed within six seconds; the first one takes ten at most.
const OPTIONS: &[&str] = &[
    "BatchMode=yes",
    "ConnectTimeout=10",
    "ServerAliveInterval=2",
    "ServerAliveCountMax=3",
    "StrictHostKeyChecking=yes",
];

/// Lines that are about the way, not about the trouble.
const NOISE: &[&str] =
    &["Connection closed by UNKNOWN", "kex_exchange_identification", "@@@@", "Warning: Permanently added"];

/// Parts of ssh's messages, what they mean, and what helps. The most telling first: a jump's trouble comes before its end.
const COMPLAINTS: &[(&str, &str, &str)] = &[
    (
        "REMOTE HOST IDENTIFICATION HAS CHANGED",
        "its host key has changed, and is refused",
        "find out why; if the machine was made anew, `ssh-keygen -R HOST` forgets its old key",
    ),
    (
        "Host key verification failed",
        "its host key is not known, and is refused",
        "log in once by hand and compare the key, or add it to known_hosts",
    ),
    (
        "Permission denied",
        "it refuses the key",
        "name the right user and key (`user`, `key`), or add the key to your ssh agent; passwords are not asked for",
    ),
    ("Could not resolve hostname", "its name has no address", "check the spelling"),
    ("Connection refused", "nothing listens on its ssh port", "check the port, and that sshd runs there"),
    ("Connection timed out", "it does not answer", "check the address, the network and its firewall"),
    ("Operation timed out", "it does not answer", "check the address, the network and its firewall"),
    ("No route to host", "there is no way to it", "check the address and the network"),
    ("Network is unreachable", "there is no way to it", "check the address and the network"),
    ("No such file or directory", "a file for ssh is missing", "check `key` and `config`"),
    ("not accessible", "a file for ssh is missing", "check `key` and `config`"),
    ("administratively prohibited", "the host on the way forbids the connection", "allow forwarding there"),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn words(spec: &SshSpec) -> String {
        arguments(spec).join(" ")
    }

    #[test]
    fn what_the_plan_leaves_open_is_for_the_users_configuration() {
        let spec = SshSpec { host: "g1".to_owned(), ..SshSpec::default() };
        let words = words(&spec);
        assert!(words.starts_with("-T -o BatchMode=yes"), "{words}");
        assert!(!words.contains(" -l ") && !words.contains(" -i ") && !words.contains("Proxy"), "{words}");
    }

    #[test]
    fn the_key_goes_along_to_the_bastion() {
        let spec = SshSpec {
            host: "10.0.0.1".to_owned(),
            user: Some("load".to_owned()),
            key: Some("/keys/a b".to_owned()),
            jump: Some("jump@bastion:2222".to_owned()),
            ..SshSpec::default()
        };
        let words = words(&spec);
        assert!(words.contains("-i /keys/a b -o IdentitiesOnly=yes"), "{words}");
        assert!(words.contains("ProxyCommand='ssh' '-i' '/keys/a b'"), "{words}");
        assert!(words.ends_with("'-p' '2222' '-l' 'jump' '-W' '[%h]:%p' '--' 'bastion'"), "{words}");
    }

    #[test]
    fn several_jumps_are_left_to_ssh() {
        let spec = SshSpec { host: "a".to_owned(), jump: Some("b,c".to_owned()), ..SshSpec::default() };
        assert!(words(&spec).ends_with("-J b,c"));
    }

    #[test]
    fn complaints_are_told_as_what_they_mean() {
        let spec = SshSpec { host: "g1".to_owned(), user: Some("me".to_owned()), ..SshSpec::default() };
        for (errors, meaning) in [
            (
                "me@g1: Permission denied (publickey).",
                "`me@g1:2200`: it refuses the key (me@g1: Permission denied (publickey))",
            ),
            (
                "ssh: connect to host g1 port 22: Connection refused\n",
                "`me@g1:2200`: nothing listens on its ssh port",
            ),
            (
                "@@@@@\nWARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!\nHost key verification failed.",
                "`me@g1:2200`: its host key has changed",
            ),
            ("", "`me@g1:2200`: ssh ended without a word"),
            ("bogus", "`me@g1:2200`: ssh failed (bogus)"),
        ] {
            let told = explain(&spec, Some(2200), errors).message;
            assert!(told.starts_with(meaning), "{told}");
        }
    }

    #[test]
    fn words_survive_a_shell() {
        assert_eq!(quoted("it's"), r"'it'\''s'");
    }
}
