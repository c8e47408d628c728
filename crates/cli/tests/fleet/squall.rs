//! The binary under test, a target with a log, and what a run said.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use squall_server::{Options, Target};

/// A folder with a target that logs, and the plans and runs of one test.
pub(crate) struct Place {
    pub(crate) folder: tempfile::TempDir,
    pub(crate) target: Target,
}

impl Place {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let log = Some(folder.path().join("log"));
        let target = Target::start(&Options { log, ..Options::default() }).unwrap();
        Self { folder, target }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.target.address())
    }

    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        self.write_as_is(name, &text.replace("TARGET", &self.url()))
    }

    pub(crate) fn write_as_is(&self, name: &str, text: &str) -> PathBuf {
        let path = self.folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    /// Runs a plan; gives the record, and all that the binary said.
    pub(crate) fn run(&self, plan: &str, flags: &[&str]) -> (Value, Output) {
        let plan = self.write("plan.yaml", plan);
        let results = self.folder.path().join("runs");
        let output =
            squall().arg("run").arg(plan).arg("--results").arg(&results).args(flags).output().unwrap();
        (record(&results), output)
    }

    /// Requests that the target saw, by its own log.
    pub(crate) fn logged(self) -> u64 {
        self.log().len() as u64
    }

    /// The target's own log, complete.
    pub(crate) fn log(self) -> Vec<String> {
        self.target.stop();
        let text = fs::read_to_string(self.folder.path().join("log")).unwrap();
        text.lines().map(str::to_owned).collect()
    }
}

pub(crate) fn squall() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_squall"));
    command.env("NO_COLOR", "1");
    command
}

/// The newest saved record; `Null` when there is none.
pub(crate) fn record(results: &Path) -> Value {
    let mut runs: Vec<PathBuf> =
        fs::read_dir(results).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    runs.sort();
    let text = runs.pop().and_then(|run| fs::read_to_string(run.join("run.json")).ok());
    text.map_or(Value::Null, |text| serde_json::from_str(&text).unwrap())
}

/// Requests that ended well in a record's total, or in a part's.
pub(crate) fn ok(total: &Value) -> u64 {
    total["rows"].as_array().unwrap().iter().map(|row| row["ok"].as_u64().unwrap()).sum()
}

/// The parts of one kind: their names and requests.
pub(crate) fn parts(record: &Value, kind: &str) -> Vec<(String, u64)> {
    let parts = record["parts"].as_array().unwrap().iter().filter(|part| part["kind"] == kind);
    parts.map(|part| (part["name"].as_str().unwrap().to_owned(), ok(&part["total"]))).collect()
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Waits for something that must come; the test's own time limit is generous.
pub(crate) fn wait_until(is_so: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(90);
    while !is_so() {
        assert!(Instant::now() < deadline, "it did not come within 90 s");
        thread::sleep(Duration::from_millis(10));
    }
}

/// The exit code is this one, or the one of a generator that could not keep up where the verdict says so: that is the machine's affair.
#[track_caller]
pub(crate) fn assert_code(record: &Value, output: &Output, code: i32) {
    let code = if record["verdict"]["status"] == "INVALID" { 5 } else { code };
    assert_eq!(output.status.code(), Some(code), "{}", text(&output.stderr));
}
