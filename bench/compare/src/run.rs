//! Runs one tool once and measures what it cost.

use std::io::Read;
use std::net::{SocketAddr, TcpStream};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use squall_testkit::real::Server;
use squall_testkit::{Process, free_port, wait_until};
use wait4::Wait4;

use crate::case::Case;
use crate::script::write_messages;
use crate::tool::{Ask, Tool};

/// The core of the tool.
pub(crate) const CLIENT_CPU: u32 = 0;

/// The core of nginx's worker.
pub(crate) const SERVER_CPU: u32 = 1;

/// What one run of a tool came to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sample {
    /// User and system time of the whole process, its start and its connecting included.
    pub(crate) cpu_us_per_request: f64,
    pub(crate) requests_per_s: f64,
    /// Peak resident memory.
    pub(crate) rss_bytes: u64,
}

/// Lets every child open as many connections as the system allows: ten thousand exceed the usual soft limit.
pub(crate) fn raise_descriptor_limit() {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    // Where it is refused, the tools that need more say so.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
}

/// Whom a case asks.
pub(crate) struct Subject {
    url: String,
    ca_file: String,
    /// squall's own server, where it is that.
    _target: Option<Process>,
}

impl Subject {
    pub(crate) fn of(case: &Case, server: &Server) -> Self {
        let url = match (case.is_tls, case.stream_count) {
            (true, _) => server.tls_url(case.path),
            (false, None) => server.url(case.path),
            (false, Some(_)) => server.h2c_url(case.path).replace("h2c:", "http:"),
        };
        Self { url, ca_file: server.ca_file().display().to_string(), _target: None }
    }

    /// `squall target` on [`SERVER_CPU`].
    pub(crate) fn target(case: &Case) -> Result<Self, String> {
        let program = Tool::Squall.program().ok_or("squall is not built")?;
        let port = free_port();
        let mut command = Command::new("taskset");
        command.args(["-c", &SERVER_CPU.to_string()]).arg(program);
        command.args(["target", "--port", &port.to_string(), "--threads", "1"]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let target = Process::start(&mut command);
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        if !wait_until(Duration::from_secs(10), || TcpStream::connect(address).is_ok()) {
            return Err("squall's own server does not accept connections".to_owned());
        }
        let url = format!("http://{address}{}", case.path);
        Ok(Self { url, ca_file: String::new(), _target: Some(target) })
    }
}

/// Runs `tool` for a case on its core.
pub(crate) fn run(tool: Tool, case: &Case, subject: &Subject, seconds: u32) -> Result<Sample, String> {
    let Subject { url, ca_file, .. } = subject;
    let mut command = pinned(tool)?;
    // One thread, as the others have: the Go runtime would start one for each core of the machine.
    command.env("GOMAXPROCS", "1");
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let script =
        case.script.map(|script| script.write(url, tool == Tool::K6Fasthttp, folder.path())).transpose();
    let script = script
        .and_then(|script| Ok(script.or(write_messages(tool, case, (url, seconds), folder.path())?)))
        .map_err(|error| error.to_string())?;
    let script = script.map(|path| path.display().to_string());
    command.args(tool.args(case, &Ask { url, ca_file, seconds, script: script.as_deref() }));
    let started = Instant::now();
    let mut child = command.spawn().map_err(|error| error.to_string())?;
    let mut output = String::new();
    child.stdout.take().ok_or("no output")?.read_to_string(&mut output).map_err(|error| error.to_string())?;
    let used = child.wait4().map_err(|error| error.to_string())?;
    let count = tool.completed_count(&output).filter(|count| *count > 0);
    let count = count
        .ok_or_else(|| format!("{tool} ended with {} and completed nothing:\n{output}", used.status))?
        as f64;
    let cpu = used.rusage.utime + used.rusage.stime;
    Ok(Sample {
        cpu_us_per_request: cpu.as_secs_f64() * 1e6 / count,
        requests_per_s: count / started.elapsed().as_secs_f64(),
        rss_bytes: used.rusage.maxrss,
    })
}

/// The tool on [`CLIENT_CPU`] with its output in a pipe; arguments are still to come.
pub(crate) fn pinned(tool: Tool) -> Result<Command, String> {
    let program = tool.program().ok_or_else(|| format!("{tool} is not installed"))?;
    let mut command = Command::new("taskset");
    command.args(["-c", &CLIENT_CPU.to_string()]).arg(program);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    Ok(command)
}
