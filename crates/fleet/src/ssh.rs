//! The system's OpenSSH client: its command line, and what its complaints mean.
//!
//! The user's configuration, agent, keys, jumps and known hosts are ssh's own business; host keys are always verified.

use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use rustix::process::{Pid, Signal, kill_process_group};
use squall_plan::file::SshSpec;
use squall_plan::shell::quoted;

use crate::protocol::Trouble;

/// `ssh` that runs a script on the machine. `shared`: the control socket of a connection to its jump host that is open already.
pub(crate) fn command(spec: &SshSpec, shared: Option<(&Jump, &Path)>, script: &str) -> Command {
    let mut command = Command::new("ssh");
    command.args(arguments(spec, shared));
    command.arg("--").arg(&spec.host).arg(remote_command(script));
    command
}

/// A command line that is the same to every login shell, csh and fish included: their quotes and newlines differ, so the script is
/// encoded.
fn remote_command(script: &str) -> String {
    let encoded = BASE64_STANDARD.encode(script);
    format!(r#"exec /bin/sh -c 'eval "$(echo "$0" | base64 -d)"' {encoded}"#)
}

/// Everything between `ssh` and the host.
fn arguments(spec: &SshSpec, shared: Option<(&Jump, &Path)>) -> Vec<String> {
    let mut arguments = vec!["-T".to_owned()];
    arguments.extend(common(spec));
    if let Some(user) = &spec.user {
        arguments.extend(["-l".to_owned(), user.clone()]);
    }
    if let Some(port) = spec.port {
        arguments.extend(["-p".to_owned(), port.to_string()]);
    }
    match shared {
        Some((jump, socket)) => {
            let control = ["-S".to_owned(), socket.to_string_lossy().into_owned()];
            arguments.extend(proxy(control.into_iter().chain(jump.config_file()), jump));
        }
        None => arguments.extend(own_jump(spec)),
    }
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

/// A connection to the jump host for this machine alone. `ProxyJump` would take neither the key nor the options along: one jump
/// is written out. Several are left to `ProxyJump`, and to the user's configuration of those hosts.
fn own_jump(spec: &SshSpec) -> Vec<String> {
    match &spec.jump {
        None => Vec::new(),
        Some(hosts) if hosts.contains(',') => vec!["-J".to_owned(), hosts.clone()],
        Some(hosts) => proxy(common(spec), &Jump::new(spec, hosts)),
    }
}

/// A `ProxyCommand` that has ssh with these options forward to the machine from the last jump host.
fn proxy(options: impl IntoIterator<Item = String>, jump: &Jump) -> Vec<String> {
    let mut words = vec!["ssh".to_owned()];
    words.extend(options);
    words.extend(jump.login.iter().cloned());
    words.extend(["-W".to_owned(), FORWARD_TO.to_owned(), "--".to_owned(), jump.host.clone()]);
    let words: Vec<String> = words
        .iter()
        .map(|word| if word == FORWARD_TO { quoted(word) } else { quoted(&word.replace('%', "%%")) })
        .collect();
    vec!["-o".to_owned(), format!("ProxyCommand={}", words.join(" "))]
}

/// The hosts on the way to a machine, and how the last of them is reached.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Jump {
    /// As the user wrote them.
    pub hosts: String,
    /// Options of ssh for the last host: keys, configuration, and the hosts before it.
    options: Vec<String>,
    config: Option<String>,
    /// Port and user of the last host.
    login: Vec<String>,
    /// The last host.
    host: String,
}

impl Jump {
    /// The jump of a machine: the plan's, or that of the user's configuration of ssh.
    pub(crate) fn of(spec: &SshSpec) -> Option<Self> {
        if let Some(hosts) = &spec.jump {
            return Some(Self::new(spec, hosts));
        }
        let hosts = configured(spec, "proxyjump")?;
        // Neither the machine's key nor its options hold for a jump host of the configuration.
        let bare = SshSpec { config: spec.config.clone(), ..SshSpec::default() };
        Some(Self::new(&bare, &hosts))
    }

    fn new(spec: &SshSpec, hosts: &str) -> Self {
        let (before, last) =
            hosts.rsplit_once(',').map_or((None, hosts), |(before, last)| (Some(before), last));
        let (rest, port) = match last.rsplit_once(':') {
            Some((rest, port))
                if port.parse::<u16>().is_ok() && (!rest.contains(':') || rest.ends_with(']')) =>
            {
                (rest, Some(port))
            }
            _ => (last, None),
        };
        let user = rest.rsplit_once('@').map(|(user, _)| user).or(spec.user.as_deref());
        let host = rest.rsplit_once('@').map_or(rest, |(_, host)| host).trim_matches(['[', ']']);
        let mut options = common(spec);
        options.extend(before.into_iter().flat_map(|before| ["-J".to_owned(), before.to_owned()]));
        let mut login: Vec<String> =
            port.into_iter().flat_map(|port| ["-p".to_owned(), port.to_owned()]).collect();
        login.extend(user.into_iter().flat_map(|user| ["-l".to_owned(), user.to_owned()]));
        let (hosts, host, config) = (hosts.to_owned(), host.to_owned(), spec.config.clone());
        Self { hosts, options, config, login, host }
    }

    fn config_file(&self) -> impl Iterator<Item = String> {
        self.config.iter().flat_map(|config| ["-F".to_owned(), config.clone()])
    }

    /// Arguments of an ssh that connects to the last jump host and offers the connection at a control socket.
    pub(crate) fn master_arguments(&self, socket: &Path) -> Vec<String> {
        let mut arguments = vec!["-M".to_owned(), "-N".to_owned(), "-T".to_owned()];
        arguments.extend(["-S".to_owned(), socket.to_string_lossy().into_owned()]);
        arguments.extend(["-o".to_owned(), "ControlPersist=no".to_owned()]);
        arguments.extend(self.options.iter().chain(&self.login).cloned());
        arguments.extend(["--".to_owned(), self.host.clone()]);
        arguments
    }
}

/// The port that ssh takes: the plan's, or that of the user's configuration.
pub(crate) fn port(spec: &SshSpec) -> Option<u16> {
    spec.port.or_else(|| configured(spec, "port")?.parse().ok())
}

/// A setting that ssh would use for the machine, as `ssh -G` prints it. A configuration may run programs that take long: they are not
/// waited for.
fn configured(spec: &SshSpec, name: &str) -> Option<String> {
    let mut command = Command::new("ssh");
    command.args(arguments(spec, None)).args(["-G", "--", &spec.host]).process_group(0);
    let mut process =
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().ok()?;
    let deadline = Instant::now() + CONFIGURED_MAX;
    // What it prints fits into the pipe.
    while let Ok(None) = process.try_wait() {
        if Instant::now() > deadline {
            let group = i32::try_from(process.id()).ok().and_then(Pid::from_raw)?;
            let _ = kill_process_group(group, Signal::KILL);
            let _ = process.wait();
            return None;
        }
        thread::sleep(Duration::from_millis(2));
    }
    let mut text = String::new();
    process.stdout.take()?.read_to_string(&mut text).ok()?;
    let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    value.map(|value| value.trim().to_owned())
}

/// What the end of a login means, as far as the next step depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LoginFailure {
    /// The shared connection to the jump host did not reach the machine; it does not say why.
    OfSharedConnection,
    /// The server dropped the connection before the login: with many logins at once `sshd` does so (`MaxStartups`).
    Dropped,
    /// Another try would fail as well.
    Final,
}

impl LoginFailure {
    /// By ssh's messages.
    pub(crate) fn of(errors: &str) -> Self {
        let has = |words: &[&str]| words.iter().any(|words| errors.contains(words));
        if has(SHARED_CONNECTION_FAILED) {
            Self::OfSharedConnection
        } else if has(DROPPED) && !COMPLAINTS.iter().any(|(words, _, _)| errors.contains(words)) {
            Self::Dropped
        } else {
            Self::Final
        }
    }
}

/// What ssh's messages on the way to a machine mean. `port`: where it tried, if that is known.
pub(crate) fn explain(spec: &SshSpec, port: Option<u16>, errors: &str) -> Trouble {
    let place = SshSpec { port, ..spec.clone() }.destination();
    let by = match &spec.jump {
        Some(jump) => format!("`{place}` through `{jump}`"),
        None => format!("`{place}`"),
    };
    meaning(&by, errors)
}

/// What ssh's messages on the way to a jump host mean.
pub(crate) fn explain_jump(jump: &Jump, errors: &str) -> Trouble {
    meaning(&format!("jump host `{}`", jump.hosts), errors)
}

fn meaning(by: &str, errors: &str) -> Trouble {
    let known = COMPLAINTS.iter().find(|(words, _, _)| errors.contains(words));
    match known {
        Some((_, meaning, help)) => Trouble::new(format!("{by}: {meaning}{}", last_words(errors)), *help),
        None if LoginFailure::of(errors) == LoginFailure::Dropped => {
            let message = format!("{by}: the connection was dropped before the login{}", cause(errors));
            Trouble::new(
                message,
                "sshd drops logins above its `MaxStartups`: see its log there, or raise the limit",
            )
        }
        None if errors.is_empty() => {
            Trouble::new(format!("{by}: ssh ended without a message"), "try it by hand: `ssh -v HOST`")
        }
        None => {
            Trouble::new(format!("{by}: ssh failed{}", last_words(errors)), "try it by hand: `ssh -v HOST`")
        }
    }
}

/// The line that says why a connection was dropped, in brackets.
pub(crate) fn cause(errors: &str) -> String {
    let lines = || errors.lines().map(|line| line.trim().trim_end_matches('.'));
    let dropped = |line: &&str| DROPPED.iter().any(|words| line.contains(words));
    let telling = lines().find(|line| dropped(line) && !line.contains("UNKNOWN"));
    telling.or_else(|| lines().find(dropped)).map_or_else(String::new, |line| format!(" ({line})"))
}

/// The last line that says something, in brackets.
fn last_words(errors: &str) -> String {
    let lines = errors.lines().map(str::trim).filter(|line| !line.is_empty());
    let mut telling = lines.rev().filter(|line| !NOISE.iter().any(|noise| line.contains(noise)));
    telling.next().map_or_else(String::new, |line| format!(" ({})", line.trim_end_matches('.')))
}

/// No question is ever asked; a connection that is gone is noticed within four seconds; the first one takes ten at most.
const OPTIONS: &[&str] = &[
    "BatchMode=yes",
    "ConnectTimeout=10",
    "ServerAliveInterval=1",
    "ServerAliveCountMax=3",
    "StrictHostKeyChecking=yes",
];

/// ssh reads a few files for it.
const CONFIGURED_MAX: Duration = Duration::from_secs(5);

/// ssh's messages where the control socket or the forwarding through it failed.
const SHARED_CONNECTION_FAILED: &[&str] = &["stdio forward", "mux_client", "Control socket", "ControlSocket"];

/// ssh's messages where the server closed the connection before the login.
const DROPPED: &[&str] = &[
    "kex_exchange_identification",
    "ssh_exchange_identification",
    "banner exchange",
    "Connection closed by",
    "Connection reset by",
    "Not allowed at this time",
];

/// What ssh replaces with the machine's address and port.
const FORWARD_TO: &str = "[%h]:%p";

/// Lines about the route, not about the error.
const NOISE: &[&str] =
    &["Connection closed by UNKNOWN", "kex_exchange_identification", "@@@@", "Warning: Permanently added"];

/// Parts of ssh's messages, what they mean, and what helps. The most specific first: the error of a jump host comes before its end.
const COMPLAINTS: &[(&str, &str, &str)] = &[
    (
        "REMOTE HOST IDENTIFICATION HAS CHANGED",
        "its host key has changed and was rejected",
        "find out why; if the machine was reinstalled, `ssh-keygen -R HOST` removes its old key",
    ),
    (
        "Host key verification failed",
        "its host key is unknown and was rejected",
        "log in once by hand and compare the key, or add it to known_hosts",
    ),
    (
        "Permission denied",
        "it rejected the key",
        "name the right user and key (`user`, `key`), or add the key to your ssh agent; squall cannot ask for passwords",
    ),
    ("Could not resolve hostname", "its name cannot be resolved", "check the spelling"),
    ("Connection refused", "nothing listens on its ssh port", "check the port, and that sshd runs there"),
    ("Connection timed out", "it does not answer", "check the address, the network and its firewall"),
    ("Operation timed out", "it does not answer", "check the address, the network and its firewall"),
    ("No route to host", "there is no route to it", "check the address and the network"),
    ("Network is unreachable", "there is no route to it", "check the address and the network"),
    ("No such file or directory", "a file that ssh needs is missing", "check `key` and `config`"),
    ("not accessible", "a file that ssh needs is missing", "check `key` and `config`"),
    ("administratively prohibited", "the jump host does not allow the connection", "allow forwarding there"),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn words(spec: &SshSpec) -> String {
        arguments(spec, None).join(" ")
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
    fn complaints_are_reported_as_what_they_mean() {
        let spec = SshSpec { host: "g1".to_owned(), user: Some("me".to_owned()), ..SshSpec::default() };
        for (errors, meaning) in [
            (
                "me@g1: Permission denied (publickey).",
                "`me@g1:2200`: it rejected the key (me@g1: Permission denied (publickey))",
            ),
            (
                "ssh: connect to host g1 port 22: Connection refused\n",
                "`me@g1:2200`: nothing listens on its ssh port",
            ),
            (
                "@@@@@\nWARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!\nHost key verification failed.",
                "`me@g1:2200`: its host key has changed",
            ),
            ("", "`me@g1:2200`: ssh ended without a message"),
            ("bogus", "`me@g1:2200`: ssh failed (bogus)"),
        ] {
            let message = explain(&spec, Some(2200), errors).message;
            assert!(message.starts_with(meaning), "{message}");
        }
    }

    #[test]
    fn a_shared_connection_is_used_by_its_control_socket() {
        let spec = SshSpec {
            host: "10.0.0.1".to_owned(),
            user: Some("load".to_owned()),
            key: Some("/keys/a".to_owned()),
            jump: Some("first,jump@[::1]:2222".to_owned()),
            ..SshSpec::default()
        };
        let jump = Jump::of(&spec).unwrap();
        let words = arguments(&spec, Some((&jump, Path::new("/run/100%/s")))).join(" ");
        let proxy =
            "ProxyCommand='ssh' '-S' '/run/100%%/s' '-p' '2222' '-l' 'jump' '-W' '[%h]:%p' '--' '::1'";
        assert!(words.ends_with(proxy), "{words}");
        let master = jump.master_arguments(Path::new("/run/s")).join(" ");
        assert!(master.starts_with("-M -N -T -S /run/s ") && master.contains("-i /keys/a"), "{master}");
        assert!(master.ends_with("-J first -p 2222 -l jump -- ::1"), "{master}");
    }

    #[test]
    fn a_dropped_login_is_distinguished_from_a_refused_one() {
        for (errors, expected) in [
            ("kex_exchange_identification: Connection closed by remote host", LoginFailure::Dropped),
            (
                "kex_exchange_identification: read: Connection reset by peer\nConnection closed by UNKNOWN port 65535",
                LoginFailure::Dropped,
            ),
            ("Not allowed at this time\r\nConnection closed by UNKNOWN port 65535", LoginFailure::Dropped),
            (
                "root@b: Permission denied (publickey).\nkex_exchange_identification: Connection closed by remote host",
                LoginFailure::Final,
            ),
            ("ssh: connect to host g1 port 22: Connection refused", LoginFailure::Final),
            ("", LoginFailure::Final),
            (
                "mux_client_request_stdio_fwd: session request failed: Session open refused by peer\nkex_exchange_identification: Connection closed by remote host",
                LoginFailure::OfSharedConnection,
            ),
        ] {
            assert_eq!(LoginFailure::of(errors), expected, "{errors}");
        }
        let text = "Connection closed by UNKNOWN port 65535\nkex_exchange_identification: Connection closed by remote host";
        assert_eq!(cause(text), " (kex_exchange_identification: Connection closed by remote host)");
    }

    #[test]
    fn login_shells_of_every_kind_pass_the_script_on() {
        let script = "for word in 'a b' \"it's!\" '\\\\n' '^' '`x`'; do\nprintf '<%s>\\n' \"$word\"\ndone\n";
        for shell in ["sh", "bash", "tcsh"] {
            let output = Command::new(shell).arg("-c").arg(remote_command(script)).output().unwrap();
            let printed = String::from_utf8_lossy(&output.stdout).into_owned();
            assert_eq!(
                printed.lines().collect::<Vec<_>>(),
                ["<a b>", "<it's!>", r"<\\n>", "<^>", "<`x`>"],
                "{shell}"
            );
        }
    }
}
