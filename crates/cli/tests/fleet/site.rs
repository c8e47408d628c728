//! The lab with a target that logs, and runs of the binary in it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use squall_testkit::Process;
use squall_testkit::lab::Lab;

use crate::squall::record;

/// The lab with a target that logs.
pub(crate) struct Site {
    pub(crate) lab: Lab,
    target: Option<Process>,
}

impl Site {
    pub(crate) fn new() -> Self {
        let lab = Lab::new(3);
        let mut site = Self { lab, target: None };
        site.start_target();
        site
    }

    /// The lab whose generators have the program already, as from a run before: sending it takes most of a short run.
    pub(crate) fn with_program() -> Self {
        let site = Self::new();
        place_program(&site.lab);
        site
    }

    /// Starts the target; its log begins anew.
    pub(crate) fn start_target(&mut self) {
        self.listen(80, &[]);
    }

    /// Starts the target with TLS and HTTP/3 on port 443 instead of the other one.
    pub(crate) fn start_secure_target(&mut self) {
        self.kill_target();
        self.listen(443, &["--tls", "--http3", "--tls-name", &Lab::address("target")]);
    }

    fn listen(&mut self, port: u16, options: &[&str]) {
        let mut command = self.lab.command("target", env!("CARGO_BIN_EXE_squall"));
        command.args(["target", "--listen", &format!("0.0.0.0:{port}"), "--log"]).arg(self.lab.path("log"));
        command.args(options).stdout(fs::File::create(self.lab.path("target.out")).unwrap());
        self.target = Some(Process::start(&mut command));
        self.lab.wait_for_port("target", port);
    }

    /// Ends the target as a crash would.
    pub(crate) fn kill_target(&mut self) {
        self.target.take().unwrap().kill();
    }

    /// A plan whose machines are the three generators; `TARGET` is the target's watched machine.
    pub(crate) fn plan(&self, rest: &str) -> PathBuf {
        let machines = ["g1", "g2", "g3"].map(|name| format!("  {name}: {}\n", Lab::address(name)));
        let text = format!(
            "target: http://{}\nssh: {}\nmachines:\n{}{rest}",
            Lab::address("target"),
            self.lab.ssh_settings(),
            machines.concat(),
        );
        let path = self.lab.path("plan.yaml");
        fs::write(&path, text).unwrap();
        path
    }

    pub(crate) fn controller(&self, rest: &str) -> Command {
        let mut command = self.lab.command("controller", env!("CARGO_BIN_EXE_squall"));
        command.arg("run").arg(self.plan(rest)).arg("--results").arg(self.lab.path("runs"));
        command.env("NO_COLOR", "1");
        command
    }

    pub(crate) fn run(&self, rest: &str) -> (Value, Output) {
        let output = self.controller(rest).output().unwrap();
        (record(&self.lab.path("runs")), output)
    }

    /// Starts a run, whose words go to the lab's `controller.err`.
    pub(crate) fn start(&self, rest: &str) -> Process {
        let mut command = self.controller(rest);
        command.stderr(fs::File::create(self.lab.path("controller.err")).unwrap());
        Process::start(command.stdout(std::process::Stdio::null()))
    }

    /// Whether the first generator has connections to the target: those of machines whose cable was pulled live on at the target.
    pub(crate) fn has_load(&self) -> bool {
        let mut command = self.lab.command("g1", "ss");
        let output = command.args(["-Htn", "state", "established", "dport = :80"]).output().unwrap();
        !output.stdout.is_empty()
    }

    /// The target's log, complete.
    pub(crate) fn log(mut self) -> Vec<String> {
        let mut target = self.target.take().unwrap();
        let _ = Command::new("kill").args(["-TERM", &target.pid().to_string()]).status();
        target.wait(Duration::from_secs(20)).unwrap();
        fs::read_to_string(self.lab.path("log")).unwrap().lines().map(str::to_owned).collect()
    }

    /// Waits until nothing of ours runs or lies on any generator.
    pub(crate) fn wait_until_clean(&self) {
        wait_until_clean(&self.lab);
    }
}

/// Puts the program where three generators would have kept it: in a copy, which every login may read.
pub(crate) fn place_program(lab: &Lab) {
    let output = Command::new("sha256sum").arg(env!("CARGO_BIN_EXE_squall")).output().unwrap();
    let digest = String::from_utf8_lossy(&output.stdout).split(' ').next().unwrap().to_owned();
    let program = place(lab, Path::new(env!("CARGO_BIN_EXE_squall")));
    for host in ["g1", "g2", "g3"] {
        let folder = lab.path(&format!("cache-{host}")).join("squall").join(&digest);
        fs::create_dir_all(&folder).unwrap();
        std::os::unix::fs::symlink(&program, folder.join("squall")).unwrap();
    }
}

/// A copy of a program in the lab's folder: ours may be where only root looks.
pub(crate) fn place(lab: &Lab, program: &Path) -> PathBuf {
    let copy = lab.path(&program.file_name().unwrap().to_string_lossy());
    fs::copy(program, &copy).unwrap();
    copy
}

/// Waits until nothing of ours runs or lies on any of three generators.
pub(crate) fn wait_until_clean(lab: &Lab) {
    for host in ["g1", "g2", "g3"] {
        let is_clean = || lab.programs(host).is_empty() && lab.files(host).is_empty();
        let deadline = Instant::now() + Duration::from_secs(30);
        while !is_clean() {
            let left = (lab.programs(host), lab.files(host));
            assert!(Instant::now() < deadline, "on {host} there still are {left:?}");
            thread::sleep(Duration::from_millis(10));
        }
    }
}
