//! A small data centre in network namespaces: a controller, a bastion, generators and a target with addresses of their own, and a
//! real `sshd` in each. The generators and the target are reachable only through the bastion. Needs root, also where the logins are
//! those of a user without privileges: that user is in files of the lab, which its machines see in `/etc`.
//!
//! ```text
//! controller 10.88.1.1 --- 10.88.1.2 bastion 10.88.2.2 --+-- 10.88.2.11.. generators
//!                                                        +-- 10.88.2.100  target
//!                                                        +-- 10.88.2.101.. the farm, where there is one
//! ```

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::path::PathBuf;
use std::process::{Command, Output};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use crate::Process;

/// The namespaces, their servers, and a folder for keys and logs; all of it goes on drop.
#[derive(Debug)]
pub struct Lab {
    prefix: String,
    folder: tempfile::TempDir,
    hosts: Vec<Host>,
    /// File systems of machines.
    mounts: Vec<PathBuf>,
    /// Who logs in.
    user: &'static str,
}

/// One machine of the lab.
#[derive(Debug)]
struct Host {
    name: String,
    sshd: Option<Process>,
}

impl Lab {
    /// Builds the lab with so many generators: `g1`, `g2` and so on.
    ///
    /// # Panics
    /// When namespaces cannot be made: without root, or without the programs that `dev/setup test` installs.
    pub fn new(generator_count: u32) -> Self {
        Self::build((generator_count, 0), "root")
    }

    /// The lab whose machines are logged in to as a user without privileges, whose shell is dash.
    ///
    /// # Panics
    /// As [`Self::new`].
    pub fn without_privileges(generator_count: u32) -> Self {
        Self::build((generator_count, 0), USER)
    }

    /// Builds the lab with a `farm` instead of generators: one machine with so many addresses, each of which stands for a generator.
    ///
    /// # Panics
    /// As [`Self::new`].
    pub fn with_farm(address_count: u32) -> Self {
        let lab = Self::build((0, address_count), "root");
        for number in 2..=address_count {
            lab.run(&[
                "-n",
                &lab.namespace("farm"),
                "address",
                "add",
                &format!("{}/24", Self::farm_address(number)),
                "dev",
                "eth0",
            ]);
        }
        lab
    }

    fn build((generator_count, farm_address_count): (u32, u32), user: &'static str) -> Self {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let prefix = format!("sq{}x{number}", std::process::id());
        let folder = tempfile::tempdir().expect("a folder for the lab");
        let mut lab = Self { prefix, folder, hosts: Vec::new(), mounts: Vec::new(), user };
        lab.make_keys();
        lab.make_user();
        let names = ["controller".to_owned(), "bastion".to_owned(), "switch".to_owned(), "target".to_owned()];
        let generators = (1..=generator_count).map(|number| format!("g{number}"));
        let farm = (farm_address_count > 0).then(|| "farm".to_owned());
        for name in names.into_iter().chain(generators).chain(farm) {
            lab.add(&name);
        }
        lab.connect();
        lab.start_servers();
        lab
    }

    /// A file in the lab's folder.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The address of a machine on the generators' side.
    pub fn address(name: &str) -> String {
        match name {
            "bastion" => "10.88.2.2".to_owned(),
            "target" => "10.88.2.100".to_owned(),
            "farm" => Self::farm_address(1),
            generator => format!("10.88.2.{}", 10 + generator[1..].parse::<u32>().expect("a number")),
        }
    }

    /// One of the farm's addresses, counted from 1.
    pub fn farm_address(number: u32) -> String {
        format!("10.88.2.{}", 100 + number)
    }

    /// The bastion as the controller sees it.
    pub const BASTION: &str = "10.88.1.2";

    /// The key that opens every machine.
    pub fn key(&self) -> PathBuf {
        self.path("client-key")
    }

    /// Who logs in to its machines.
    pub fn user(&self) -> &'static str {
        self.user
    }

    /// A folder on all machines that belongs to who logs in.
    pub fn home(&self) -> PathBuf {
        self.path("home")
    }

    /// Lets the user without privileges do everything on a machine by `sudo`, without a password.
    ///
    /// # Panics
    /// When the file cannot be written.
    pub fn allow_sudo(&self, host: &str) {
        // The file itself is mounted: it is written to, not replaced.
        fs::write(self.path(&format!("sudoers-{host}")), format!("{USER} ALL=(ALL) NOPASSWD: ALL\n"))
            .expect("a file in the lab's folder");
    }

    /// A program that runs on a machine.
    pub fn command(&self, host: &str, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.namespace(host)]).arg(program);
        command
    }

    /// Takes a machine's cable out, or puts it back.
    pub fn set_link(&self, host: &str, is_up: bool) {
        let port = format!("p-{host}");
        self.run(&["-n", &self.namespace("switch"), "link", "set", &port, if is_up { "up" } else { "down" }]);
    }

    /// Has a machine drop what it would send to another one.
    pub fn drop_packets_to(&self, host: &str, other: &str) {
        let address = format!("{}/32", Self::address(other));
        self.run(&["-n", &self.namespace(host), "route", "add", "blackhole", &address]);
    }

    /// Kills the programs of that name on a machine.
    pub fn kill_programs(&self, host: &str, name: &str) {
        for pid in self.pids_of(host, name) {
            // What has ended meanwhile is gone.
            let _ = Command::new("kill").args(["-KILL", &pid]).output();
        }
    }

    /// Puts a program where a machine looks for programs first.
    ///
    /// # Panics
    /// When the file cannot be written.
    pub fn install(&self, host: &str, name: &str, script: &str) {
        let path = self.path(&format!("bin-{host}")).join(name);
        fs::write(&path, script).expect("a file in the lab's folder");
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("a file of our own");
    }

    /// Gives a machine its own temporary folder. `options`: those of a `tmpfs`, such as `size=64k`, in which no program fits.
    pub fn limit_disk(&mut self, host: &str, options: &str) {
        // A machine sees the file systems that were there when its `sshd` started.
        self.host_mut(host).sshd.take().expect("a running sshd").kill();
        let folder = self.path(&format!("tmp-{host}"));
        self.run_program("mount", &["-t", "tmpfs", "-o", options, "tmpfs", &folder.to_string_lossy()]);
        self.mounts.push(folder);
        self.restart_sshd(host);
    }

    /// Starts a machine's `sshd` again.
    pub fn restart_sshd(&mut self, host: &str) {
        let sshd = self.start_sshd(host, "host-key");
        self.host_mut(host).sshd = Some(sshd);
    }

    /// Starts a machine's `sshd` again, with more lines of configuration.
    ///
    /// # Panics
    /// When the lines cannot be written.
    pub fn configure_sshd(&mut self, host: &str, lines: &str) {
        fs::write(self.path(&format!("sshd-more-{host}")), lines).expect("a file in the lab's folder");
        self.host_mut(host).sshd.take().expect("a running sshd").kill();
        self.restart_sshd(host);
    }

    /// Ends a machine's `sshd` and every session of it, as a crash of the machine would.
    pub fn stop_sshd(&mut self, host: &str) {
        self.host_mut(host).sshd.take().expect("a running sshd").kill();
        for pid in self.pids(host) {
            // What has ended meanwhile is gone.
            let _ = Command::new("kill").args(["-KILL", &pid]).output();
        }
    }

    /// Processes that run on a machine besides `sshd`.
    pub fn programs(&self, host: &str) -> Vec<String> {
        let names = self.pids(host).into_iter().filter_map(|pid| name_of(&pid));
        names.filter(|name| !name.starts_with("sshd")).collect()
    }

    /// Arguments of the programs of that name that run on a machine, with spaces between.
    pub fn arguments(&self, host: &str, name: &str) -> Vec<String> {
        let lines = self
            .pids_of(host, name)
            .filter_map(|pid| fs::read_to_string(format!("/proc/{pid}/cmdline")).ok());
        lines.map(|line| line.replace('\0', " ")).collect()
    }

    fn pids_of(&self, host: &str, name: &str) -> impl Iterator<Item = String> {
        self.pids(host).into_iter().filter(move |pid| name_of(pid).is_some_and(|own| own == name))
    }

    fn pids(&self, host: &str) -> Vec<String> {
        let output = self.command_output("ip", &["netns", "pids", &self.namespace(host)]);
        String::from_utf8_lossy(&output.stdout).split_whitespace().map(str::to_owned).collect()
    }

    fn host_mut(&mut self, host: &str) -> &mut Host {
        self.hosts.iter_mut().find(|known| known.name == host).expect("a machine of the lab")
    }

    /// What lies in a machine's temporary folder.
    pub fn files(&self, host: &str) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.path(&format!("tmp-{host}"))).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).collect()
    }

    /// Gives a machine another host key, as if another host answered there.
    pub fn change_host_key(&mut self, host: &str) {
        self.run_program("ssh-keygen", &["-q", "-t", "ed25519", "-N", "", "-f", &self.text("other-key")]);
        self.host_mut(host).sshd.take().expect("a running sshd").kill();
        let sshd = self.start_sshd(host, "other-key");
        self.host_mut(host).sshd = Some(sshd);
    }

    /// What a machine's `sshd` wrote.
    ///
    /// # Panics
    /// When it has none.
    pub fn sshd_log(&self, host: &str) -> String {
        fs::read_to_string(self.path(&format!("sshd-{host}.log"))).expect("a running sshd")
    }

    /// The `ssh:` part of a plan that reaches the lab.
    pub fn ssh_settings(&self) -> String {
        format!(
            "{{ user: {0}, key: {1}, jump: '{0}@{2}', options: ['UserKnownHostsFile={3}'] }}",
            self.user,
            self.text("client-key"),
            Self::BASTION,
            self.text("known_hosts"),
        )
    }

    fn make_keys(&self) {
        for name in ["host-key", "client-key"] {
            self.run_program("ssh-keygen", &["-q", "-t", "ed25519", "-N", "", "-f", &self.text(name)]);
        }
        let public = fs::read_to_string(self.path("host-key.pub")).expect("the key that was made");
        fs::write(self.path("known_hosts"), format!("10.88.*.* {public}"))
            .expect("a file in the lab's folder");
        let public = fs::read_to_string(self.path("client-key.pub")).expect("the key that was made");
        fs::write(self.path("authorized_keys"), public).expect("a file in the lab's folder");
    }

    /// Folders of who logs in, and the files of `/etc` by which machines know the user without privileges.
    fn make_user(&self) {
        for name in ["home", "etc"] {
            fs::create_dir(self.path(name)).expect("a folder in the lab's folder");
        }
        if self.user == "root" {
            return;
        }
        // Keys in it are readable by root alone.
        fs::set_permissions(self.folder.path(), fs::Permissions::from_mode(0o711)).expect("our own folder");
        chown(self.home(), Some(USER_ID), Some(USER_ID)).expect("a folder of our own");
        let home = self.text("home");
        for (name, line) in [
            ("passwd", format!("{USER}:x:{USER_ID}:{USER_ID}::{home}:/bin/dash")),
            ("group", format!("{USER}:x:{USER_ID}:")),
            ("shadow", format!("{USER}:*:19000:0:99999:7:::")),
        ] {
            let known = fs::read_to_string(format!("/etc/{name}")).expect("a file of every machine");
            let path = self.path("etc").join(name);
            fs::write(&path, format!("{line}\n{known}")).expect("a file in the lab's folder");
            let mode = if name == "shadow" { 0o600 } else { 0o644 };
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("a file of our own");
        }
    }

    /// A machine's own `sudoers`, and its folders that who logs in may write to.
    fn make_user_of(&self, host: &str) {
        if self.user == "root" {
            return;
        }
        let sudoers = self.path(&format!("sudoers-{host}"));
        fs::write(&sudoers, "").expect("a file in the lab's folder");
        fs::set_permissions(sudoers, fs::Permissions::from_mode(0o440)).expect("a file of our own");
        for kind in ["tmp", "cache"] {
            let folder = self.path(&format!("{kind}-{host}"));
            fs::create_dir_all(&folder).expect("a folder in the lab's folder");
            chown(folder, Some(USER_ID), Some(USER_ID)).expect("a folder of our own");
        }
    }

    fn add(&mut self, name: &str) {
        self.run(&["netns", "add", &self.namespace(name)]);
        self.hosts.push(Host { name: name.to_owned(), sshd: None });
        self.run(&["-n", &self.namespace(name), "link", "set", "lo", "up"]);
        for kind in ["tmp", "bin"] {
            fs::create_dir(self.path(&format!("{kind}-{name}"))).expect("a folder in the lab's folder");
        }
        self.make_user_of(name);
    }

    fn connect(&self) {
        let (controller, bastion, switch) =
            (self.namespace("controller"), self.namespace("bastion"), self.namespace("switch"));
        self.run(&[
            "-n",
            &controller,
            "link",
            "add",
            "eth0",
            "type",
            "veth",
            "peer",
            "eth1",
            "netns",
            &bastion,
        ]);
        self.give(&controller, "eth0", "10.88.1.1/24");
        self.give(&bastion, "eth1", "10.88.1.2/24");
        self.run(&["-n", &switch, "link", "add", "bridge", "type", "bridge"]);
        self.run(&["-n", &switch, "link", "set", "bridge", "up"]);
        for host in self.hosts.iter().filter(|host| !["controller", "switch"].contains(&host.name.as_str())) {
            let (namespace, port) = (self.namespace(&host.name), format!("p-{}", host.name));
            self.run(&[
                "-n", &switch, "link", "add", &port, "type", "veth", "peer", "eth0", "netns", &namespace,
            ]);
            self.run(&["-n", &switch, "link", "set", &port, "master", "bridge", "up"]);
            self.give(&namespace, "eth0", &format!("{}/24", Self::address(&host.name)));
        }
    }

    fn give(&self, namespace: &str, interface: &str, address: &str) {
        self.run(&["-n", namespace, "address", "add", address, "dev", interface]);
        self.run(&["-n", namespace, "link", "set", interface, "up"]);
    }

    fn start_servers(&mut self) {
        fs::create_dir_all("/run/sshd").expect("sshd's own folder");
        for idx in 0..self.hosts.len() {
            let name = self.hosts[idx].name.clone();
            if !["controller", "switch"].contains(&name.as_str()) {
                self.hosts[idx].sshd = Some(self.start_sshd(&name, "host-key"));
            }
        }
    }

    fn start_sshd(&self, host: &str, key: &str) -> Process {
        let config = self.path(&format!("sshd-{host}"));
        let more = fs::read_to_string(self.path(&format!("sshd-more-{host}"))).unwrap_or_default();
        let text = format!(
            "{more}Port 22\nHostKey {}\nPidFile none\nAuthorizedKeysFile {}\nStrictModes no\nUsePAM no\n\
             PasswordAuthentication no\nPermitRootLogin prohibit-password\n\
             AllowTcpForwarding yes\nSetEnv TMPDIR={} PATH={}:/usr/local/bin:/usr/bin:/bin XDG_CACHE_HOME={}\n",
            self.text(key),
            self.text("authorized_keys"),
            self.text(&format!("tmp-{host}")),
            self.text(&format!("bin-{host}")),
            self.text(&format!("cache-{host}")),
        );
        fs::write(&config, text).expect("a file in the lab's folder");
        let log =
            fs::File::create(self.path(&format!("sshd-{host}.log"))).expect("a file in the lab's folder");
        // `ip netns exec` gives it its own mounts, which end with it.
        let mut command = self.command(host, "sh");
        command.args(["-c", &format!("{}exec /usr/sbin/sshd -D -e -f \"$0\"", self.mounted_etc(host))]);
        command.arg(&config).stderr(log);
        let process = Process::start(&mut command);
        self.wait_for_port(host, 22);
        process
    }

    /// Shell commands that let a machine see the user without privileges, and its own `sudoers`.
    fn mounted_etc(&self, host: &str) -> String {
        if self.user == "root" {
            return String::new();
        }
        let of_all = ["passwd", "group", "shadow"].map(|name| (self.path("etc").join(name), name));
        let own = (self.path(&format!("sudoers-{host}")), "sudoers");
        let mounts = of_all.into_iter().chain([own]);
        mounts.map(|(file, name)| format!("mount --bind {} /etc/{name} && ", file.display())).collect()
    }

    /// Waits until something listens on a port of a machine.
    ///
    /// # Panics
    /// When nothing does within ten seconds.
    pub fn wait_for_port(&self, host: &str, port: u16) {
        let wanted = format!("sport = :{port}");
        for _ in 0..2000 {
            let output = self.command(host, "ss").args(["-Hltn", &wanted]).output().expect("ss of iproute2");
            if !output.stdout.is_empty() {
                return;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        panic!("nothing listens on port {port} of {host}");
    }

    fn namespace(&self, host: &str) -> String {
        format!("{}-{host}", self.prefix)
    }

    fn text(&self, name: &str) -> String {
        self.path(name).to_string_lossy().into_owned()
    }

    fn run(&self, args: &[&str]) {
        self.run_program("ip", args);
    }

    fn run_program(&self, program: &str, args: &[&str]) {
        let output = self.command_output(program, args);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{program} {}: {said} (the lab needs root)", args.join(" "));
    }

    fn command_output(&self, program: &str, args: &[&str]) -> Output {
        Command::new(program).args(args).output().unwrap_or_else(|error| panic!("{program}: {error}"))
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        for host in &mut self.hosts {
            host.sshd = None;
            let namespace = format!("{}-{}", self.prefix, host.name);
            if let Ok(pids) = Command::new("ip").args(["netns", "pids", &namespace]).output() {
                for pid in String::from_utf8_lossy(&pids.stdout).split_whitespace() {
                    let _ = Command::new("kill").args(["-KILL", pid]).output();
                }
            }
            let _ = Command::new("ip").args(["netns", "del", &namespace]).output();
        }
        for mount in &self.mounts {
            let _ = Command::new("umount").arg(mount).output();
        }
    }
}

/// The name of a process's program.
fn name_of(pid: &str) -> Option<String> {
    fs::read_to_string(format!("/proc/{pid}/comm")).ok().map(|name| name.trim().to_owned())
}

/// The user without privileges.
const USER: &str = "load";

/// An unused id: programs of that user can signal each other's alone.
const USER_ID: u32 = 64_321;

static NEXT: AtomicU32 = AtomicU32::new(0);
