//! A hook on this machine: a command that runs before or after a step, such as the restart of the target.
//!
//! What it starts in the background lives on. The hook itself ends with the agent, also when the agent is killed.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

use crate::protocol::{HookOrder, Trouble};

/// Runs it to its end. `folder`: where its output lies meanwhile. `is_over`: it shall end at once.
///
/// # Errors
/// When it cannot be started, fails, or does not end in time.
pub(crate) fn run(order: &HookOrder, folder: &Path, is_over: &AtomicBool) -> Result<(), Trouble> {
    let cannot_run = |error: io::Error| failed(order, &format!("cannot be run: {error}"));
    let mut output = output_file(order, folder).map_err(cannot_run)?;
    let mut child = start(order, &output).map_err(cannot_run)?;
    let status = wait(order, &mut child, is_over)?;
    if let Some(mut pipe) = child.stdin.take() {
        // The watch has gone where the hook ended everything in its group.
        let _ = pipe.write_all(b"done\n");
    }
    match status {
        status if status.success() => Ok(()),
        status => {
            let how = status.code().map_or_else(
                || "was ended by a signal".to_owned(),
                |code| format!("ended with exit code {code}"),
            );
            let last = last_line(&mut output);
            Err(failed(order, &if last.is_empty() { how } else { format!("{how}: {last}") }))
        }
    }
}

fn failed(order: &HookOrder, how: &str) -> Trouble {
    let help = "run the command there by hand; add `|| true` if its failure does not matter";
    Trouble::new(format!("hook `{}` {how}", order.text), help)
}

/// A file, not a pipe: a server that the hook starts may keep it open.
fn output_file(order: &HookOrder, folder: &Path) -> io::Result<File> {
    let path = folder.join(format!("hook-{}", order.hook_idx));
    File::options().read(true).write(true).create(true).truncate(true).open(path)
}

fn start(order: &HookOrder, output: &File) -> io::Result<Child> {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", WATCHED, "squall-hook"]).args(&order.words).envs(&order.env);
    command.process_group(0).stdin(Stdio::piped()).stdout(output.try_clone()?).stderr(output.try_clone()?);
    command.spawn()
}

fn wait(order: &HookOrder, child: &mut Child, is_over: &AtomicBool) -> Result<ExitStatus, Trouble> {
    let begun = Instant::now();
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Ok(status),
            Ok(None) => {}
            Err(error) => return Err(failed(order, &format!("cannot be followed: {error}"))),
        }
        let is_late = begun.elapsed() >= order.timeout;
        if is_late || is_over.load(Ordering::Relaxed) {
            if let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
                // One that has ended meanwhile needs no signal.
                let _ = kill_process_group(group, Signal::KILL);
            }
            let _ = child.wait();
            let seconds = order.timeout.as_secs_f64();
            let how =
                if is_late { format!("did not end within {seconds} s") } else { "was stopped".to_owned() };
            return Err(failed(order, &how));
        }
        thread::sleep(LOOK_EVERY);
    }
}

/// The last line that says anything, of the end of what it printed.
fn last_line(output: &mut File) -> String {
    let mut bytes = Vec::new();
    let length = output.metadata().map_or(0, |metadata| metadata.len());
    let read = output
        .seek(SeekFrom::Start(length.saturating_sub(OUTPUT_BYTES_MAX)))
        .and_then(|_| output.take(OUTPUT_BYTES_MAX).read_to_end(&mut bytes));
    let text = String::from_utf8_lossy(&bytes);
    let last = text.lines().map(str::trim).rfind(|line| !line.is_empty());
    last.filter(|_| read.is_ok()).unwrap_or_default().to_owned()
}

/// The command takes the shell's place. What waits next to it ends the group when the agent's end of the pipe goes away without a
/// word: the agent says `done` where the hook has ended, so that what it started lives on.
const WATCHED: &str = r#"exec 3<&0 </dev/null; (read -r word <&3; [ "$word" = done ] || kill -KILL 0) 3<&3 >/dev/null 2>&1 & exec 3<&-; exec "$@""#;

const LOOK_EVERY: Duration = Duration::from_millis(10);

/// A last line is shorter.
const OUTPUT_BYTES_MAX: u64 = 4096;

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn outcome(line: &str, timeout: Duration) -> Result<(), String> {
        let folder = tempfile::tempdir().unwrap();
        let words = ["/bin/sh", "-c", line].map(str::to_owned).to_vec();
        let env = BTreeMap::from([("STEP".to_owned(), "peak".to_owned())]);
        let order = HookOrder { hook_idx: 0, text: "it".to_owned(), words, env, timeout };
        run(&order, folder.path(), &AtomicBool::new(false)).map_err(|trouble| trouble.message)
    }

    #[test]
    fn a_hook_that_fails_says_how_in_its_last_words() {
        let long = Duration::from_secs(60);
        for (line, expected) in [
            ("[ $STEP = peak ]", Ok(())),
            (
                "echo one; echo 'no such unit' >&2; exit 3",
                Err("hook `it` ended with exit code 3: no such unit"),
            ),
            ("kill -TERM $$", Err("hook `it` was ended by a signal")),
        ] {
            assert_eq!(outcome(line, long), expected.map_err(str::to_owned), "{line}");
        }
        let late = outcome("sleep 600", Duration::from_millis(100));
        assert_eq!(late, Err("hook `it` did not end within 0.1 s".to_owned()));
    }

    #[test]
    fn what_a_hook_starts_in_the_background_is_not_waited_for_and_lives_on() {
        let folder = tempfile::tempdir().unwrap();
        let (pid_file, word) = (folder.path().join("pid"), folder.path().join("word"));
        Command::new("mkfifo").arg(&word).status().unwrap();
        let line = format!("sh -c 'read x < {}' & echo $! > {}", word.display(), pid_file.display());
        assert_eq!(outcome(&line, Duration::from_secs(60)), Ok(()));
        let pid = std::fs::read_to_string(&pid_file).unwrap();
        assert!(Path::new("/proc").join(pid.trim()).exists());
        // Opening the other end lets it go on to its end.
        std::fs::write(&word, "x\n").unwrap();
    }
}
