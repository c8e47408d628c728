//! `kubectl` as a child process: how it is called, how long it may take, and what its complaints mean.

use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};
use squall_plan::file::kubernetes::KubernetesPool;
use squall_plan::limits::KUBECTL_OUTPUT_BYTES_MAX;

use crate::protocol::Trouble;

/// How a cluster is reached.
#[derive(Debug, Clone)]
pub(crate) struct Kubectl {
    program: String,
    /// Context and kubeconfig.
    common: Vec<String>,
}

/// Why `kubectl` did not do what it was asked to.
#[derive(Debug)]
pub(crate) enum Failed {
    /// It could not be started.
    NotStarted(std::io::Error),
    /// It did not end in its time.
    Silent,
    /// What was waited for is not wanted any more.
    Ended,
    /// It failed, with this on standard error.
    Said(String),
}

impl Kubectl {
    pub(crate) fn of(pool: &KubernetesPool) -> Self {
        let context = pool.context.as_ref().map(|context| format!("--context={context}"));
        let kubeconfig = pool.kubeconfig.as_deref().map(|path| format!("--kubeconfig={}", at_home(path)));
        Self { program: at_home(&pool.kubectl), common: context.into_iter().chain(kubeconfig).collect() }
    }

    /// A call of it.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.common).args(arguments);
        command
    }

    /// Calls it to its end, with `input` on its standard input; gives its standard output.
    pub(crate) fn run(
        &self,
        arguments: &[&str],
        input: &str,
        is_over: &AtomicBool,
    ) -> Result<Vec<u8>, Failed> {
        let mut command = self.command(arguments);
        // A group of its own: Ctrl-C is the controller's, and login plugins end with it.
        command.process_group(0).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(Failed::NotStarted)?;
        let result = exchange(&mut child, input, is_over);
        if result.is_err()
            && let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw)
        {
            // One that has ended meanwhile needs no signal.
            let _ = kill_process_group(group, Signal::KILL);
        }
        let status = child.wait().map_err(Failed::NotStarted)?;
        let (output, errors) = result?;
        match status.success() {
            true => Ok(output),
            false => Err(Failed::Said(String::from_utf8_lossy(&errors).trim().to_owned())),
        }
    }

    /// What its failure means for the user.
    pub(crate) fn explain(&self, failed: &Failed) -> Trouble {
        match failed {
            Failed::NotStarted(error) => Trouble::new(
                format!("cannot start `{}`: {error}", self.program),
                "install kubectl, or name the program: `kubectl: oc` in the pool's entry, or `--kubectl oc`",
            ),
            Failed::Silent => Trouble::new(
                format!("`{}` has not answered for {} s", self.program, CALL_MAX.as_secs()),
                "check that `kubectl get pods` answers without a question",
            ),
            Failed::Ended => Trouble::new("the run was ended", "run again"),
            Failed::Said(errors) => self.meaning(errors),
        }
    }

    /// The same for a monitor, which has no pool and needs another Role.
    pub(crate) fn explain_monitor(&self, failed: &Failed) -> Trouble {
        let trouble = self.explain(failed);
        let help = match (failed, trouble.help.as_str()) {
            (Failed::NotStarted(_), _) => MONITOR_PROGRAM_HELP.to_owned(),
            (_, ROLE_HELP) => MONITOR_ROLE_HELP.to_owned(),
            (_, help) => help.replace("the pool's entry", "the monitor's entry"),
        };
        Trouble { help, ..trouble }
    }

    fn meaning(&self, errors: &str) -> Trouble {
        if errors.trim().is_empty() {
            let message = format!("`{}` has ended without a reason", self.program);
            return Trouble::new(message, "a proxy or the cluster may end idle connections: try again");
        }
        let known = COMPLAINTS.iter().find(|(part, _, _)| errors.contains(part));
        let (meaning, help) =
            known.map_or(("failed", "try it by hand"), |(_, meaning, help)| (*meaning, *help));
        Trouble::new(format!("`{}`: {meaning}{}", self.program, last_words(errors)), help)
    }
}

/// Writes its input and reads what it says, until it has said all.
fn exchange(child: &mut Child, input: &str, is_over: &AtomicBool) -> Result<(Vec<u8>, Vec<u8>), Failed> {
    let (sender, parts) = mpsc::channel();
    let streams: [Option<Box<dyn Read + Send>>; 2] = [
        child.stdout.take().map(|stream| Box::new(stream) as _),
        child.stderr.take().map(|stream| Box::new(stream) as _),
    ];
    for (number, stream) in streams.into_iter().enumerate() {
        let sender = sender.clone();
        let read = move || {
            let mut bytes = Vec::new();
            if let Some(stream) = stream {
                // What is missing makes the answer unreadable, which is reported.
                let _ = stream.take(KUBECTL_OUTPUT_BYTES_MAX).read_to_end(&mut bytes);
            }
            // Nobody waits any more where it was given up.
            let _ = sender.send((number, bytes));
        };
        thread::Builder::new().name("kubectl".to_owned()).spawn(read).map_err(Failed::NotStarted)?;
    }
    if let Some(mut stdin) = child.stdin.take() {
        let input = input.to_owned();
        // A pipe that nobody reads is full some time; and a program that ends before it has read all says why.
        let write = move || drop(stdin.write_all(input.as_bytes()));
        thread::Builder::new().name("kubectl".to_owned()).spawn(write).map_err(Failed::NotStarted)?;
    }
    let mut outputs = [Vec::new(), Vec::new()];
    let deadline = Instant::now() + CALL_MAX;
    let mut missing = outputs.len();
    while missing > 0 {
        match parts.recv_timeout(LOOK_EVERY) {
            Ok((number, bytes)) => (outputs[number], missing) = (bytes, missing - 1),
            Err(RecvTimeoutError::Timeout) if is_over.load(Ordering::Relaxed) => return Err(Failed::Ended),
            Err(RecvTimeoutError::Timeout) if Instant::now() < deadline => {}
            Err(_) => return Err(Failed::Silent),
        }
    }
    let [output, errors] = outputs;
    Ok((output, errors))
}

/// A path that may begin with `~/`, which no shell expands here.
fn at_home(path: &str) -> String {
    match (path.strip_prefix("~/"), std::env::var("HOME")) {
        (Some(rest), Ok(home)) => format!("{home}/{rest}"),
        _ => path.to_owned(),
    }
}

/// The last line that says something, in brackets.
fn last_words(errors: &str) -> String {
    let mut lines = errors.lines().map(str::trim).filter(|line| !line.is_empty()).rev();
    lines.next().map_or_else(String::new, |line| {
        let line = PREFIXES.iter().fold(line, |line, prefix| line.trim_start_matches(prefix));
        format!(" ({})", line.trim_end_matches('.'))
    })
}

/// Whether an `exec` failed because its pod, or the container in it, is gone.
pub(crate) fn is_gone(errors: &str) -> bool {
    // Proxies have a page that is not found, too.
    let is_missing = |line: &str| line.contains("pods \"") && line.contains("\" not found");
    errors.lines().any(is_missing) || GONE.iter().any(|part| errors.contains(part))
}

/// A login plugin may ask an identity provider first.
const CALL_MAX: Duration = Duration::from_secs(30);

/// How often it looks whether the run was ended.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Complaints of `kubectl exec` about a container that will not come back.
const GONE: &[&str] = &["completed pod", "container not found", "is not running"];

const CONTEXT_HELP: &str =
    "`kubectl config get-contexts` lists the contexts; correct `context` or `kubeconfig`";

const ROLE_HELP: &str = "`squall plan manifests PLAN` prints the Role that is needed";
const MONITOR_ROLE_HELP: &str =
    "`squall plan manifests PLAN` prints the Role `squall-monitor`: have it created and bound to this user";
const MONITOR_PROGRAM_HELP: &str =
    "install kubectl, or name the program: `kubectl: oc` in the monitor's entry, or `--kubectl oc`";

/// What kubectl begins its complaints with, which says nothing.
const PREFIXES: &[&str] = &["error: ", "Error from server ", "unable to recognize \"STDIN\": "];

/// Parts of kubectl's complaints, what they mean, and what helps. The most specific first.
const COMPLAINTS: &[(&str, &str, &str)] = &[
    ("does not exist", "the kubeconfig has no such entry", CONTEXT_HELP),
    ("context was not found", "the kubeconfig has no such entry", CONTEXT_HELP),
    (
        // What kubectl takes for the API server then.
        "localhost:8080",
        "there is no kubeconfig",
        "set KUBECONFIG, or `kubeconfig` in the pool's entry",
    ),
    (
        "current-context must exist",
        "there is no kubeconfig, or it has no current context",
        "set KUBECONFIG, or `kubeconfig` or `context` in the pool's entry",
    ),
    ("no such file or directory", "the kubeconfig cannot be read", "correct `kubeconfig` or KUBECONFIG"),
    (
        "namespaces \"",
        "the namespace does not exist, or is not yours",
        "create it with `kubectl create namespace NAME`, or correct `namespace`",
    ),
    (
        "must be logged in",
        "the login has expired",
        "log in to the cluster again, then check with `kubectl get pods`",
    ),
    (
        "Unauthorized",
        "the login has expired",
        "log in to the cluster again, then check with `kubectl get pods`",
    ),
    (
        "violates PodSecurity",
        "the namespace's Pod Security Standard forbids the pods",
        "they meet the standard `restricted`: see which field of the plan does not",
    ),
    ("forbidden", "the cluster forbids it", ROLE_HELP),
    ("connection refused", "the API server does not answer", "check that `kubectl get pods` works"),
    ("was refused", "the API server does not answer", "check that `kubectl get pods` works"),
    ("no such host", "the API server's name is not known", "check that `kubectl get pods` works"),
    (
        "unknown authority",
        "the API server's certificate is not trusted",
        "check that `kubectl get pods` works",
    ),
    // Not `timeout`, which kubectl writes into URLs.
    ("i/o timeout", "the API server does not answer in time", "check that `kubectl get pods` works"),
    ("handshake timeout", "the API server does not answer in time", "check that `kubectl get pods` works"),
    ("(Timeout)", "the API server does not answer in time", "check that `kubectl get pods` works"),
    ("timed out", "the API server does not answer in time", "check that `kubectl get pods` works"),
    ("deadline exceeded", "the API server does not answer in time", "check that `kubectl get pods` works"),
    ("Unable to connect", "the API server cannot be reached", "check that `kubectl get pods` works"),
    ("is invalid", "the API server rejects the Job", "correct the field that it names in the pool's entry"),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn of(program: &str) -> Kubectl {
        Kubectl::of(&KubernetesPool { kubectl: program.to_owned(), ..KubernetesPool::default() })
    }

    #[test]
    fn paths_may_be_those_of_the_home_folder() {
        let pool = KubernetesPool {
            kubectl: "~/bin/kubectl".to_owned(),
            kubeconfig: Some("~/.kube/far".to_owned()),
            context: Some("east".to_owned()),
            ..KubernetesPool::default()
        };
        let home = std::env::var("HOME").unwrap();
        let command = Kubectl::of(&pool).command(&["get"]);
        let arguments: Vec<_> = command.get_args().map(|word| word.to_string_lossy().into_owned()).collect();
        assert_eq!(command.get_program().to_string_lossy(), format!("{home}/bin/kubectl"));
        assert_eq!(arguments, ["--context=east", &format!("--kubeconfig={home}/.kube/far"), "get"]);
    }

    #[test]
    fn complaints_mean_something() {
        for (errors, expected) in [
            ("error: context \"x\" does not exist", "has no such entry (context \"x\" does not exist)"),
            (
                "E1124 memcache.go\nThe connection to the server localhost:8080 was refused - did you specify the right host or port?",
                "there is no kubeconfig",
            ),
            (
                "error: unable to recognize \"STDIN\": Get \"http://localhost:8080/api?timeout=32s\": dial tcp 127.0.0.1:8080: connect: connection refused",
                "there is no kubeconfig (Get \"http",
            ),
            (
                "Get \"https://far.invalid/api?timeout=32s\": dial tcp: lookup far.invalid: no such host",
                "the API server's name is not known",
            ),
            (
                "Get \"https://10.0.0.1/api?timeout=32s\": dial tcp 10.0.0.1:443: connect: connection refused",
                "the API server does not answer (",
            ),
            (
                "Error from server (NotFound): error when creating \"STDIN\": namespaces \"load\" not found",
                "the namespace does not exist",
            ),
            ("error: You must be logged in to the server (Unauthorized)", "the login has expired"),
            (
                "Error from server (Forbidden): pods is forbidden: User \"a\" cannot list",
                "the cluster forbids it ((Forbidden): pods",
            ),
            (
                "Error in configuration: context was not found for specified context: x",
                "has no such entry (Error in",
            ),
            ("error: current-context must exist in order to minify", "there is no kubeconfig, or it has"),
            ("bogus", "failed (bogus)"),
            ("\n", "has ended without a reason"),
        ] {
            let trouble = of("kubectl").explain(&Failed::Said(errors.to_owned()));
            assert!(trouble.message.contains(expected), "{trouble:?}");
        }
    }

    #[test]
    fn a_pod_is_gone_where_the_cluster_says_so_of_the_pod() {
        for (errors, expected) in [
            ("Error from server (NotFound): pods \"squall-pods-0-abcde\" not found", true),
            ("error: cannot exec into a container in a completed pod; current phase is Succeeded", true),
            (
                "error: Internal error occurred: unable to upgrade connection: container not found (\"squall\")",
                true,
            ),
            ("error: unable to upgrade connection: 404 page not found", false),
            ("Error from server (NotFound): the server could not find the requested resource", false),
            ("Error from server (NotFound): namespaces \"load\" not found", false),
            ("dial tcp: lookup api.example: host not found", false),
            ("", false),
        ] {
            assert_eq!(is_gone(errors), expected, "{errors}");
        }
    }

    #[test]
    fn complaints_of_monitors_are_about_monitors() {
        let said = |errors: &str| Failed::Said(errors.to_owned());
        for (failed, expected) in [
            (Failed::NotStarted(std::io::ErrorKind::NotFound.into()), MONITOR_PROGRAM_HELP),
            (said("pods is forbidden: User \"a\" cannot list"), MONITOR_ROLE_HELP),
            (said("localhost:8080 was refused"), "set KUBECONFIG, or `kubeconfig` in the monitor's entry"),
        ] {
            assert_eq!(of("kubectl").explain_monitor(&failed).help, expected);
        }
    }

    #[test]
    fn a_program_that_is_missing_or_fails_or_is_ended_is_an_error() {
        let live = AtomicBool::new(false);
        let missing = of("/nonexistent/kubectl").run(&[], "", &live);
        assert!(matches!(missing, Err(Failed::NotStarted(_))));
        assert!(matches!(of("cat").run(&["-"], "text", &live), Ok(output) if output == b"text"));
        let failed = of("sh").run(&["-c", "echo no >&2; exit 1"], "", &live);
        assert!(matches!(failed, Err(Failed::Said(words)) if words == "no"));
        for input in ["", &"more than a pipe takes".repeat(10_000)] {
            let ended = of("sleep").run(&["600"], input, &AtomicBool::new(true));
            assert!(matches!(ended, Err(Failed::Ended)));
        }
    }
}
