//! What a container of a pod runs: a process that waits for the agent to come, and ends with it. So the Job ends, too, and the cluster
//! deletes it, however the controller ended.

use std::fs;
use std::path::{Path, PathBuf};
use std::process;
use std::thread;
use std::time::{Duration, Instant};

/// Names the file in which an agent leaves its process number.
pub(crate) const PID_FILE_VARIABLE: &str = "SQUALL_PID_FILE";

/// The same as [`standby`], for images with a shell but without squall; the argument is how many seconds it waits.
pub(crate) const STANDBY_SCRIPT: &str = r#"trap 'exit 0' TERM INT
waited=0
until [ -s "$SQUALL_PID_FILE" ]; do
  [ "$waited" -lt "$1" ] || exit 0
  waited=$((waited + 1))
  sleep 1
done
while kill -0 "$(cat "$SQUALL_PID_FILE")" 2>/dev/null; do sleep 1; done"#;

/// Leaves this process's number where the variable says, for the standby process to find.
pub(crate) fn write_pid_file() {
    let Some(path) = std::env::var_os(PID_FILE_VARIABLE).map(PathBuf::from) else { return };
    let begun = path.with_extension("new");
    // Without it the pod ends too early, which is reported as its loss.
    let _ = fs::write(&begun, process::id().to_string()).and_then(|()| fs::rename(&begun, &path));
}

/// Waits for an agent, and until it has ended. `wait_max`: how long it waits for it to come.
pub fn standby(wait_max: Duration) {
    let Some(path) = std::env::var_os(PID_FILE_VARIABLE).map(PathBuf::from) else { return };
    follow(&path, wait_max, &|pid| Path::new("/proc").join(pid).exists());
}

fn follow(path: &Path, wait_max: Duration, lives: &dyn Fn(&str) -> bool) {
    let begin = Instant::now();
    let pid = loop {
        match fs::read_to_string(path) {
            Ok(text) if !text.trim().is_empty() => break text.trim().to_owned(),
            _ if begin.elapsed() > wait_max => return,
            _ => thread::sleep(LOOK_EVERY),
        }
    };
    while lives(&pid) {
        thread::sleep(LOOK_EVERY);
    }
}

const LOOK_EVERY: Duration = Duration::from_millis(500);

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::process::Command;

    use super::*;

    #[test]
    fn it_ends_with_the_agent_or_without_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pid");
        follow(&path, Duration::ZERO, &|_| unreachable!("no agent came"));
        fs::write(&path, "17\n").unwrap();
        let looks = Cell::new(0);
        follow(&path, Duration::ZERO, &|pid| {
            assert_eq!(pid, "17");
            looks.set(looks.get() + 1);
            looks.get() < 2
        });
        assert_eq!(looks.get(), 2);
    }

    #[test]
    fn the_script_does_the_same() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pid");
        let standby = |seconds: &str| {
            let mut command = Command::new("/bin/sh");
            command.args(["-c", STANDBY_SCRIPT, "squall-standby", seconds]);
            command.env(PID_FILE_VARIABLE, &path).status().unwrap()
        };
        assert!(standby("0").success());
        let mut agent = Command::new("sleep").arg("600").spawn().unwrap();
        fs::write(&path, agent.id().to_string()).unwrap();
        thread::scope(|scope| {
            let standby = scope.spawn(|| standby("0"));
            agent.kill().unwrap();
            agent.wait().unwrap();
            standby.join().unwrap();
        });
    }
}
