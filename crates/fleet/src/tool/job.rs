//! A foreign tool as a load: started at the common moment, ended with the run, and with the agent however that ends.

use std::io::{self, Read};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use squall_measure::{StoppedBy, ToolFigures, ToolRun};
use squall_plan::files;
use squall_plan::{Plan, Segment};

use super::{Tool, ToolLoad, by_name, masked_words};
use crate::agent::{Job, Port};
use crate::protocol::{self, LoadEnd, LoadOrder, Ready, Trouble};

/// A tool that can be started.
pub struct ToolJob {
    tool: &'static dyn Tool,
    load: ToolLoad,
    name: String,
    program: PathBuf,
    words: Vec<String>,
    env: Vec<(String, String)>,
    /// What of it the tool itself needs, as a shell writes it.
    own_env: Option<String>,
    folder: PathBuf,
    wanted: Arc<AtomicU8>,
}

impl ToolJob {
    /// Finds the tool, and its words for this machine's part.
    ///
    /// # Errors
    /// When the tool cannot do it, or is not installed here.
    pub fn new(order: &LoadOrder, load: &ToolLoad, folder: &Path) -> Result<Self, Trouble> {
        let (tool, mut load) = (by_name(&load.name)?, load.clone());
        load.divide(tool, &order.segment);
        load.report_file =
            folder.join(format!("report-{}.json", order.load_idx)).to_string_lossy().into_owned();
        let (program, words) = match load.command.split_first() {
            Some((program, words)) => (find(program, folder)?, words.to_vec()),
            None => {
                let words = tool.words(&load)?;
                let own = load.path.as_deref().unwrap_or_else(|| tool.name());
                let installed = find(own, folder)?;
                // vegeta is two programs and a pipe.
                let program = if words.first().is_some_and(|word| word == "-c") && tool.name() == "vegeta" {
                    PathBuf::from("/bin/sh")
                } else {
                    installed
                };
                (program, words)
            }
        };
        let mut words = words;
        if load.is_divided_by(tool) && !order.segment.is_whole() {
            words.splice(1..1, segment_words(&order.segment));
        }
        let own = tool.env(&load).map(|(name, value)| (name.to_owned(), value));
        let env = order.env.clone().into_iter().chain(own.clone()).collect();
        let folder = folder.to_owned();
        let wanted = Arc::default();
        let own_env = own.map(|(name, value)| format!("{name}={value}"));
        Ok(Self { tool, load, name: order.name.clone(), program, words, env, own_env, folder, wanted })
    }

    /// Waits for the moment of the start; not when the user stops it before.
    fn wait_for_start(&self, at: SystemTime) {
        while self.stopped_by().is_none() {
            let Ok(left) = at.duration_since(SystemTime::now()) else { return };
            thread::sleep(left.min(LOOK_EVERY));
        }
    }

    /// What the user wants; `None`: that it goes on.
    fn stopped_by(&self) -> Option<StoppedBy> {
        match self.wanted.load(Ordering::Relaxed) {
            0 => None,
            DRAIN => Some(StoppedBy::Drained),
            _ => Some(StoppedBy::Aborted),
        }
    }

    /// Starts it in a group of its own, with a watch that ends the group when the agent is gone, also when that was killed.
    fn start(&self) -> io::Result<Child> {
        let limit = self.load.ulimit.map_or_else(|| "$(ulimit -Hn)".to_owned(), |limit| limit.to_string());
        let script = format!("ulimit -n {limit} 2>/dev/null; {WATCHED}");
        let mut command = Command::new("/bin/sh");
        command.arg("-c").arg(script).arg("squall-tool").arg(&self.program).args(&self.words);
        command.envs(self.env.iter().map(|(name, value)| (name, value))).current_dir(&self.folder);
        command.process_group(0).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn()
    }

    /// Waits for its end, and passes on what the user wants: an interrupt first, then the end of everything it started.
    fn wait(&self, child: &mut Child) -> io::Result<std::process::ExitStatus> {
        let mut sent = 0;
        let mut drained_at = None;
        loop {
            if let Some(status) = child.try_wait()? {
                return Ok(status);
            }
            let mut wanted = self.wanted.load(Ordering::Relaxed);
            if drained_at.is_some_and(|at: Instant| at.elapsed() > DRAIN_MAX) {
                wanted = ABORT;
            }
            if wanted > sent {
                sent = wanted;
                drained_at.get_or_insert_with(Instant::now);
                end(child.id(), wanted);
            }
            thread::sleep(LOOK_EVERY);
        }
    }

    fn tool_run(&self, status: std::process::ExitStatus, printed: &Printed, took: Duration) -> ToolRun {
        let file = files::read_text(Path::new(&self.load.report_file), PRINTED_BYTES_MAX).unwrap_or_default();
        let mut figures = finite(self.tool.read(&printed.all(), &file));
        figures.asked_per_s = self.load.rate;
        let was_stopped = self.wanted.load(Ordering::Relaxed) > 0;
        let problem = self.problem(status, &figures).filter(|_| !was_stopped);
        let has_failed = status.code() != Some(0) || figures.requests.unwrap_or(0) == 0;
        let problem = problem.map(|problem| match printed.last_words().filter(|_| has_failed) {
            Some(words) => format!("{problem}: {words}"),
            None => problem,
        });
        let shown = match self.load.command.is_empty() {
            true => self.tool.shown(&self.load, &self.words),
            false => masked_words(&self.words),
        };
        let program = self.program.to_string_lossy().into_owned();
        ToolRun {
            tool: self.tool.name().to_owned(),
            version: String::new(),
            load: self.name.clone(),
            machine: String::new(),
            at_s: 0.0,
            duration: took,
            command: self.own_env.iter().cloned().chain([program]).chain(shown).collect(),
            exit_code: status.code(),
            problem,
            figures,
            raw_file: String::new(),
        }
    }

    /// Its exit code, its silence, and a rate that it missed are all part of the verdict.
    fn problem(&self, status: std::process::ExitStatus, figures: &ToolFigures) -> Option<String> {
        let name = self.tool.name();
        match status.code() {
            Some(0) => {}
            Some(code) => {
                let meaning =
                    self.tool.exit_meaning(code).map_or_else(String::new, |text| format!(": {text}"));
                return Some(format!("{name} ended with exit code {code}{meaning}"));
            }
            None => return Some(format!("{name} was ended by a signal")),
        }
        let Some(rate) = figures.rate_per_s else {
            return Some(format!("the output of {name} contains no rate: see its raw output"));
        };
        if figures.requests == Some(0) {
            return Some(format!("{name} made no requests"));
        }
        let asked = figures.asked_per_s.filter(|asked| (rate - asked).abs() > RATE_SHARE_ALLOWED * asked)?;
        Some(format!("{name} should have made {asked:.0} requests/s but made {rate:.0}"))
    }
}

impl Job for ToolJob {
    fn stopper(&self) -> Box<dyn Fn(bool) + Send> {
        let wanted = Arc::clone(&self.wanted);
        Box::new(move |at_once| {
            wanted.fetch_max(if at_once { ABORT } else { DRAIN }, Ordering::Relaxed);
        })
    }

    fn run(self: Box<Self>, port: &mut Port) -> Result<LoadEnd, Trouble> {
        let Some(at) = port.start(self.ready()) else { return Ok(nothing()) };
        self.wait_for_start(at);
        if let Some(stopped_by) = self.stopped_by() {
            return Ok(LoadEnd { started_unix_ns: port.started_unix_ns(), stopped_by, ..nothing() });
        }
        port.note_late(SystemTime::now().duration_since(at).unwrap_or_default());
        let begun = Instant::now();
        let failed = |error: io::Error| {
            Trouble::new(
                format!("cannot run {}: {error}", self.tool.name()),
                "check the process limits there",
            )
        };
        let mut child = self.start().map_err(failed)?;
        let printed = collect(&mut child);
        let status = self.wait(&mut child).map_err(failed)?;
        // The watch ends with the pipe.
        drop(child.stdin.take());
        let printed = printed.map(|part| part.and_then(|part| part.join().ok()).unwrap_or_default());
        let [out, errors] = printed;
        let printed = Printed { out, errors };
        let tool = self.tool_run(status, &printed, begun.elapsed());
        let stopped_by = self.stopped_by().unwrap_or(StoppedBy::Duration);
        Ok(LoadEnd {
            started_unix_ns: port.started_unix_ns(),
            duration: tool.duration,
            stopped_by,
            trouble: None,
            tool: Some(Box::new((tool, cut(printed.all(), SHOWN_BYTES_MAX)))),
        })
    }
}

impl ToolJob {
    fn ready(&self) -> Ready {
        let plan = Plan {
            name: self.name.clone(),
            loads: Vec::new(),
            thresholds: Vec::new(),
            warmup: Duration::ZERO,
            threads: None,
        };
        Ready {
            plan,
            rows: Vec::new(),
            open_model: false,
            lag_allowed: Duration::ZERO,
            environment: std::collections::BTreeMap::new(),
        }
    }
}

fn nothing() -> LoadEnd {
    LoadEnd {
        started_unix_ns: 0,
        duration: Duration::ZERO,
        stopped_by: StoppedBy::Aborted,
        trouble: None,
        tool: None,
    }
}

/// k6 divides users and iterations itself: it is given which part is this machine's.
pub(super) fn segment_words(segment: &Segment) -> Vec<String> {
    // The places of a machine are in a row.
    let (first, of) = (segment.whole_idx(0), segment.of());
    let end = first + u64::from(segment.width());
    let places: Vec<String> = (0..=of).map(|place| format!("{place}/{of}")).collect();
    let sequence = places.join(",").replace(&format!("{of}/{of}"), "1").replacen(&places[0], "0", 1);
    vec![
        "--execution-segment".to_owned(),
        format!("{first}/{of}:{end}/{of}"),
        "--execution-segment-sequence".to_owned(),
        sequence,
    ]
}

/// What a tool printed.
struct Printed {
    out: String,
    errors: String,
}

impl Printed {
    fn all(&self) -> String {
        format!("{}{}", self.out, self.errors)
    }

    /// The last lines that say something: those about errors, where there are any.
    fn last_words(&self) -> Option<String> {
        let lines = |text: &str| -> Vec<String> {
            let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
            let mut last: Vec<String> = lines.rev().take(LAST_LINE_COUNT).map(last_line).collect();
            last.reverse();
            last
        };
        let words = [&self.errors, &self.out].map(|text| lines(text));
        words.into_iter().find(|lines| !lines.is_empty()).map(|lines| lines.join(" / "))
    }
}

/// A line as it is shown: without secrets, and not longer than a screen is wide.
fn last_line(line: &str) -> String {
    let masked = masked_words(&line.split(' ').map(str::to_owned).collect::<Vec<_>>()).join(" ");
    let plain = masked.chars().filter(|c| !c.is_control());
    plain.take(LAST_LINE_CHARS_MAX).collect()
}

/// Reads both streams to their ends; standard output first.
fn collect(child: &mut Child) -> [Option<thread::JoinHandle<String>>; 2] {
    let follow = |mut stream: Box<dyn Read + Send>| {
        thread::spawn(move || {
            let mut bytes = Vec::new();
            let _ = (&mut stream).take(PRINTED_BYTES_MAX).read_to_end(&mut bytes);
            // More than that is thrown away, so that the tool does not wait for a reader.
            let _ = io::copy(&mut stream, &mut io::sink());
            String::from_utf8_lossy(&bytes).into_owned()
        })
    };
    let stdout = child.stdout.take().map(|stream| follow(Box::new(stream)));
    let stderr = child.stderr.take().map(|stream| follow(Box::new(stream)));
    [stdout, stderr]
}

/// Without figures that are no numbers: JSON cannot express them.
fn finite(mut figures: ToolFigures) -> ToolFigures {
    figures.rate_per_s = figures.rate_per_s.filter(|rate| rate.is_finite());
    figures.duration_s = figures.duration_s.filter(|seconds| seconds.is_finite());
    figures.latency_us.retain(|_, time| time.is_finite());
    figures
}

/// As much of a text as fits into so many bytes of a message, where some characters are written as several.
fn cut(mut printed: String, bytes_max: usize) -> String {
    let mut left = bytes_max;
    let is_too_much = |(_, c): &(usize, char)| {
        let written = match c {
            '"' | '\\' => 2,
            '\0'..='\x1f' => ESCAPE_BYTES,
            _ => c.len_utf8(),
        };
        let is_too_much = written > left;
        left = left.saturating_sub(written);
        is_too_much
    };
    if let Some((at, _)) = printed.char_indices().find(is_too_much) {
        printed.truncate(at);
        printed.push_str("\n(truncated)\n");
    }
    printed
}

/// Interrupts a tool, or ends its whole group.
fn end(pid: u32, wanted: u8) {
    let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) else { return };
    // One that has ended meanwhile needs no signal.
    let _ =
        if wanted == DRAIN { kill_process(pid, Signal::INT) } else { kill_process_group(pid, Signal::KILL) };
}

/// A program by its path, as seen from the folder in which it will run, or by its name in `PATH`.
fn find(program: &str, folder: &Path) -> Result<PathBuf, Trouble> {
    let found = match program.contains('/') {
        true => Some(folder.join(program)).filter(|path| path.is_file()),
        false => {
            let path = std::env::var_os("PATH").unwrap_or_default();
            std::env::split_paths(&path).map(|folder| folder.join(program)).find(|path| path.is_file())
        }
    };
    let found = found.and_then(|path| std::path::absolute(path).ok());
    found.ok_or_else(|| {
        let help = "install it there, name it by `path`, or use a native load (`http`, `handshake`, `idle`)";
        Trouble::new(format!("`{program}` is not installed"), help)
    })
}

/// The tool takes the shell's place; what waits next to it ends the group when the agent's end of the pipe is gone.
const WATCHED: &str = r#"exec 3<&0 </dev/null; (cat <&3 >/dev/null 2>&1; kill -KILL 0) 3<&3 >/dev/null 2>&1 & exec 3<&-; exec "$@""#;

const DRAIN: u8 = 1;
const ABORT: u8 = 2;

const LOOK_EVERY: Duration = Duration::from_millis(10);

/// A tool that an interrupt does not end within it is ended.
const DRAIN_MAX: Duration = Duration::from_secs(35);

/// A tool that prints more prints no figures.
const PRINTED_BYTES_MAX: u64 = 16 << 20;

/// What is kept of it, as written in a message: half of the longest one.
const SHOWN_BYTES_MAX: usize = protocol::FRAME_BYTES_MAX as usize / 2;

/// `\u001b`.
const ESCAPE_BYTES: usize = 6;

/// What is shown of a failed tool's output: a message and its cause.
const LAST_LINE_COUNT: usize = 2;
const LAST_LINE_CHARS_MAX: usize = 200;

/// A rate further off than this was missed.
const RATE_SHARE_ALLOWED: f64 = 0.05;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_printed_fits_into_a_message_whatever_it_is() {
        assert_eq!(cut("a \"b\"\n".to_owned(), 13), "a \"b\"\n");
        for part in ["\u{1b}", "\"", "\u{fffd}", "x"] {
            let text = cut(part.repeat(1000), 600);
            let shown = text.strip_suffix("\n(truncated)\n").unwrap();
            let written = serde_json::to_string(shown).unwrap().len() - "\"\"".len();
            assert_eq!(written, 600, "{part:?}");
        }
    }

    #[test]
    fn programs_by_relative_paths_are_found_in_the_folder_that_they_run_in() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("own/tool");
        std::fs::create_dir(folder.path().join("own")).unwrap();
        std::fs::write(&path, "").unwrap();
        for program in ["own/tool", path.to_str().unwrap()] {
            assert_eq!(find(program, folder.path()).unwrap(), path, "{program}");
        }
        assert!(find("own/other", folder.path()).is_err());
        assert!(find("sh", folder.path()).unwrap().is_absolute());
    }
}
