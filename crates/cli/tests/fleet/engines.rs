//! Schedulers and container engines that start agents: Slurm for real where it is installed, the others by their command lines.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::squall::{Place, assert_code, ok, parts, squall, text, wait_until};

/// One node that is controller and worker, with an authentication service of its own.
struct Slurm {
    folder: tempfile::TempDir,
    daemons: Vec<Child>,
}

impl Slurm {
    /// `None` where Slurm is not installed, or does not run as this user.
    fn start() -> Option<Self> {
        let is_root = rustix::process::geteuid().is_root();
        let is_installed = ["munged", "slurmctld", "slurmd", "srun"].iter().all(|program| {
            let found = Command::new("/bin/sh").args(["-c", &format!("command -v {program}")]).output();
            found.is_ok_and(|output| output.status.success())
        });
        if !is_root || !is_installed {
            return None;
        }
        let mut slurm = Self { folder: tempfile::tempdir().unwrap(), daemons: Vec::new() };
        slurm.configure();
        let [socket, key, pid, log, seed] =
            ["socket", "key-file", "pid-file", "log-file", "seed-file"].map(|flag| slurm.munge_flag(flag));
        slurm.daemon("munged", &["--foreground", "--force", &socket, &key, &pid, &log, &seed]);
        wait_until(|| slurm.folder.path().join("munge.socket").exists());
        let (configuration, node) = (slurm.configuration(), node());
        slurm.daemon("slurmctld", &["-D", "-f", &configuration]);
        slurm.daemon("slurmd", &["-D", "-f", &configuration, "-N", &node]);
        let deadline = Instant::now() + Duration::from_secs(60);
        while Instant::now() < deadline {
            let mut sinfo = Command::new("sinfo");
            let state = sinfo.args(["--noheader", "--format=%T"]).env("SLURM_CONF", &configuration).output();
            if text(&state.unwrap().stdout).trim() == "idle" {
                return Some(slurm);
            }
            thread::sleep(Duration::from_millis(100));
        }
        panic!(
            "no node of Slurm is idle: {:?}",
            fs::read_to_string(slurm.folder.path().join("slurmctld.log"))
        );
    }

    fn configure(&self) {
        use std::os::unix::fs::OpenOptionsExt as _;
        let folder = self.folder.path();
        ["state", "spool"].iter().for_each(|name| fs::create_dir(folder.join(name)).unwrap());
        let mut key = fs::File::options();
        let mut key = key.create_new(true).write(true).mode(0o400).open(folder.join("munge.key")).unwrap();
        std::io::Write::write_all(&mut key, &[7; 1024]).unwrap();
        // They listen on all addresses, for the length of the test.
        let ports = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
        let [controller, worker] = ports.map(|listener| listener.local_addr().unwrap().port());
        let (place, node) = (folder.display(), node());
        let configuration = format!(
            "ClusterName=test\nSlurmctldHost={node}(127.0.0.1)\nSlurmctldPort={controller}\nSlurmdPort={worker}\nSlurmUser=root\n\
             AuthType=auth/munge\nCredType=cred/munge\nAuthInfo=socket={place}/munge.socket\nStateSaveLocation={place}/state\n\
             SlurmdSpoolDir={place}/spool\nSlurmctldPidFile={place}/slurmctld.pid\nSlurmdPidFile={place}/slurmd.pid\n\
             ProctrackType=proctrack/linuxproc\nTaskPlugin=task/none\nSwitchType=switch/none\nMpiDefault=none\n\
             SelectType=select/cons_tres\nSelectTypeParameters=CR_CPU\nReturnToService=2\nKillWait=1\nSlurmdParameters=config_overrides\n\
             NodeName={node} NodeAddr=127.0.0.1 CPUs=8 State=UNKNOWN\nPartitionName=test Nodes={node} Default=YES State=UP\n"
        );
        fs::write(self.configuration(), configuration).unwrap();
    }

    fn configuration(&self) -> String {
        self.folder.path().join("slurm.conf").display().to_string()
    }

    fn munge_flag(&self, flag: &str) -> String {
        let extension = flag.trim_end_matches("-file");
        format!("--{flag}={}", self.folder.path().join(format!("munge.{extension}")).display())
    }

    fn daemon(&mut self, program: &str, arguments: &[&str]) {
        let log = fs::File::create(self.folder.path().join(format!("{program}.log"))).unwrap();
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log);
        self.daemons.push(command.spawn().unwrap());
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.env("SLURM_CONF", self.configuration());
        command
    }
}

impl Drop for Slurm {
    fn drop(&mut self) {
        for mut daemon in self.daemons.drain(..).rev() {
            let pid = rustix::process::Pid::from_child(&daemon);
            // One that has ended already needs no signal.
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
            let _ = daemon.wait();
        }
    }
}

fn node() -> String {
    let name = fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    name.trim().split('.').next().unwrap().to_owned()
}

#[test]
fn slurm_starts_agents_and_a_job_that_is_cancelled_is_a_lost_machine() {
    let Some(slurm) = Slurm::start() else { return };
    let place = Place::new();
    let machine = format!(
        "{{ command: [srun, --ntasks=1, --cpus-per-task=2, --job-name=NAME, --quiet, --unbuffered, {}, agent] }}",
        env!("CARGO_BIN_EXE_squall")
    );
    let plan = |load: &str| {
        let machines = ["n1", "n2"].map(|name| format!("{name}: {}", machine.replace("NAME", name)));
        format!("target: TARGET\nmachines: {{ {} }}\nloads: [{load}]\n", machines.join(", "))
    };
    let run = |name: &str, load: &str| {
        let path = place.write(name, &plan(load));
        let mut command = squall();
        command.arg("run").arg(path).arg("--results").arg(place.folder.path().join(name).with_extension(""));
        command.env("SLURM_CONF", slurm.configuration()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().unwrap()
    };
    let record = |name: &str| crate::squall::record(&place.folder.path().join(name));

    let output = run("whole.yaml", "{ http: /, requests: 301, connections: 4 }").wait_with_output().unwrap();
    let whole = record("whole");
    assert_code(&whole, &output, 0);
    assert_eq!(parts(&whole, "machine"), [("n1".to_owned(), 151), ("n2".to_owned(), 150)]);

    let running = run("lost.yaml", "{ http: /, rate: 100/s, duration: 10s }");
    let log = place.folder.path().join("log");
    wait_until(|| fs::read_to_string(&log).is_ok_and(|log| log.lines().count() > 301 + 100));
    assert!(slurm.command("scancel").arg("--name=n2").status().unwrap().success());
    let output = running.wait_with_output().unwrap();
    let lost = record("lost");
    assert_code(&lost, &output, 6);
    assert!(text(&output.stderr).contains("lost machine n2"), "{}", text(&output.stderr));
    assert!(ok(&lost["total"]) > 300, "n1 continues");
    let squeue = slurm.command("squeue").arg("--noheader").output().unwrap();
    assert_eq!(text(&squeue.stdout), "");
}

/// Stands in for an engine: checks how it was called, and runs what it was to run.
fn stand_in(folder: &Path, name: &str, expected: &str) {
    let script = format!(
        "#!/bin/sh\ncase \"$*\" in\n'{expected} squall agent') exec {} agent ;;\n*) echo \"unexpected: $*\" >&2; exit 1 ;;\nesac\n",
        env!("CARGO_BIN_EXE_squall")
    );
    let path = folder.join(name);
    fs::write(&path, script).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn engines_are_called_as_documented() {
    let place = Place::new();
    let documented =
        fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/fleet.md")).unwrap();
    let mut machines = Vec::new();
    for line in documented.lines().filter(|line| line.trim_end().ends_with(", squall, agent] }")) {
        let (name, rest) = line.trim().split_once(": { command: [").unwrap();
        let words = rest.strip_suffix(", squall, agent] }").unwrap().replace(", ", " ");
        let (engine, arguments) = words.split_once(' ').unwrap();
        stand_in(place.folder.path(), engine, arguments);
        machines.push((name.to_owned(), line.trim().to_owned()));
    }
    let names: Vec<&str> = machines.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["pod", "batch", "container", "task"]);
    let lines: Vec<&str> = machines.iter().map(|(_, line)| line.as_str()).collect();
    let plan = format!(
        "target: TARGET\nmachines:\n  {}\nloads: [{{ http: /, requests: 100, connections: 4 }}]\n",
        lines.join("\n  ")
    );
    let path = format!("{}:{}", place.folder.path().display(), std::env::var("PATH").unwrap());
    let results = place.folder.path().join("runs");
    let mut command = squall();
    command.arg("run").arg(place.write("plan.yaml", &plan)).arg("--results").arg(&results).env("PATH", path);
    let output = command.output().unwrap();
    let record = crate::squall::record(&results);
    assert_code(&record, &output, 0);
    assert_eq!(ok(&record["total"]), 100);
}
