//! The flags of `squall run`, `squall plan`, `squall new` and `squall agent`: everything about runs that are written in files.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};

use squall_plan::InputError;
use squall_plan::file::{Machine, check_destination, parse_kubernetes, parse_program_path};
use squall_plan::units::parse_duration;

use super::OutputArgs;
use super::load::{LoadFlags, OfScript};
use super::values::refused;

/// Heading of the flags that only plans have.
pub(crate) const PLAN_FLAGS: &str = "Plans";

/// Heading of the flags about pods.
pub(crate) const KUBERNETES_FLAGS: &str = "Kubernetes";

/// Heading of the flags that only PTR files have.
pub(crate) const PTR_FLAGS: &str = "PTR files";

/// `squall run`.
#[derive(Debug, Clone, Args)]
pub(crate) struct RunArgs {
    /// What to run: a plan (.yaml, .json), a k6 script (.js, .ts) or recorded traffic (.har, .gor, .squall)
    #[arg(value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Repeat a saved run: the folder it was saved in
    #[arg(long, value_name = "DIR", conflicts_with = "files")]
    pub again: Option<PathBuf>,
    #[command(flatten)]
    pub plan: PlanArgs,
    #[command(flatten)]
    pub fleet: FleetArgs,
    #[command(flatten)]
    pub kubernetes: KubernetesArgs,
    #[command(flatten)]
    pub load: LoadFlags<OfScript>,
    #[command(flatten)]
    pub script: Box<super::ScriptArgs>,
    #[command(flatten)]
    pub ptr: PtrArgs,
    #[command(flatten)]
    pub output: OutputArgs,
}

/// Options that apply to a plan file from outside.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = PLAN_FLAGS)]
pub(crate) struct PlanArgs {
    /// Value of a variable, NAME=VALUE, that the plan uses as ${NAME} (repeatable)
    ///
    /// It takes precedence over the plan's own `variables`, which take precedence over the environment.
    #[arg(long, value_name = "NAME=VALUE", value_parser = variable)]
    pub var: Vec<(String, String)>,
}

/// How a run on many machines goes on when machines are lost.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = PLAN_FLAGS)]
pub(crate) struct FleetArgs {
    /// Time without any message after which a machine counts as lost, 3s to 10m [default: 10s]
    ///
    /// If the connection is re-established within this time, nothing is lost. A machine that receives nothing from the controller for this long stops its load.
    /// It takes precedence over the plan's `lost_after`.
    #[arg(long, value_name = "TIME", value_parser = squall_plan::file::parse_lost_after)]
    pub lost_after: Option<Duration>,
    /// Machines that may be lost without exit code 6 [default: 0]
    ///
    /// It takes precedence over the plan's `allow_lost`.
    #[arg(long, value_name = "N")]
    pub allow_lost: Option<usize>,
    /// Do not cache the squall binary on the machines for the next run
    #[arg(long)]
    pub no_keep: bool,
}

/// Pods that make the load.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = KUBERNETES_FLAGS)]
pub(crate) struct KubernetesArgs {
    /// Run on pods of a Kubernetes cluster, with the keys of a plan's pool: replicas=40,image=busybox:stable,namespace=load
    ///
    /// Keys within others have a dot: resources.limits.cpu=2. `docs/kubernetes.md` lists them. --dry-run prints the manifests.
    #[arg(long, value_name = "KEY=VALUE,...", value_parser = pods)]
    pub kubernetes: Option<Pods>,
    /// Program that reaches the cluster, such as oc [default: kubectl]
    #[arg(long, value_name = "PROGRAM", value_parser = parse_program_path)]
    pub kubectl: Option<String>,
}

/// The machines of a pool.
#[derive(Debug, Clone)]
pub(crate) struct Pods(pub Vec<Machine>);

fn pods(text: &str) -> Result<Pods, InputError> {
    parse_kubernetes(text).map(Pods)
}

/// PTR configuration files, and how their generators are reached.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = PTR_FLAGS)]
pub(crate) struct PtrArgs {
    /// PTR configuration files, separated by commas, which run at the same time
    ///
    /// A plan file without loads may follow them: its machines, monitors, files, hooks and thresholds are added.
    #[arg(long, value_name = "FILES", value_delimiter = ',')]
    pub test_config: Vec<PathBuf>,
    /// Additional monitors, such as `target: process=h2o` or `nginx=http://10.0.0.9/nginx_status` (repeatable)
    #[arg(long, value_name = "MONITOR")]
    pub monitor: Vec<String>,
    #[command(flatten)]
    pub reading: PtrReadingArgs,
}

/// What PTR files leave to the command line: how generators are reached, and who makes the load.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = PTR_FLAGS)]
pub(crate) struct PtrReadingArgs {
    /// ssh user on the generators and the bastion
    #[arg(long, value_name = "USER")]
    pub user: Option<String>,
    /// Private key for ssh
    #[arg(long, value_name = "FILE")]
    pub ssh_keyfile: Option<PathBuf>,
    /// Jump host for reaching the generators: [USER@]HOST[:PORT]
    #[arg(long, value_name = "HOST", value_parser = check_destination)]
    pub bastion_host: Option<String>,
    /// Configuration file of ssh, instead of the user's
    #[arg(long, value_name = "FILE")]
    pub ssh_config: Option<PathBuf>,
    /// What generates the load: native (squall itself) or external (the real tools) [default: native]
    #[arg(long, value_name = "WHO", value_enum, hide_possible_values = true)]
    pub drivers: Option<DriversArg>,
    /// Divide each scenario's load among the generators; by default each generator runs all of it, as in PTR
    #[arg(long)]
    pub divide: bool,
}

impl PtrReadingArgs {
    /// One of these flags that was given: where no PTR file is read it would do nothing.
    pub(crate) fn given(&self) -> Option<&'static str> {
        let flags = [
            ("--user", self.user.is_some()),
            ("--ssh-keyfile", self.ssh_keyfile.is_some()),
            ("--bastion-host", self.bastion_host.is_some()),
            ("--ssh-config", self.ssh_config.is_some()),
            ("--drivers", self.drivers.is_some()),
            ("--divide", self.divide),
        ];
        flags.into_iter().find_map(|(name, is_given)| is_given.then_some(name))
    }
}

/// `--drivers`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum DriversArg {
    Native,
    External,
}

/// `squall plan`.
#[derive(Debug, Subcommand)]
pub(crate) enum PlanCommand {
    /// Report every problem in a plan or PTR files; sends nothing
    Check(PlanFileArgs),
    /// Show what would run where, and when; sends nothing
    Show(PlanFileArgs),
    /// Print the Kubernetes objects of a plan's pools, and the Role that running it needs, as YAML
    Manifests(PlanFileArgs),
    /// Print the JSON Schema of plan files, for editors
    Schema,
}

/// A plan file, to be looked at.
#[derive(Debug, Args)]
pub(crate) struct PlanFileArgs {
    /// The plan; or PTR configuration files, which run at the same time
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,
    #[command(flatten)]
    pub plan: PlanArgs,
    #[command(flatten)]
    pub ptr: PtrReadingArgs,
}

/// `squall new`.
#[derive(Debug, Args)]
pub(crate) struct NewArgs {
    /// Where to write it: a plan, or a k6 script if the name ends in .js or .ts; existing files are not overwritten [default: stdout]
    #[arg(value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// URL of the target
    #[arg(long, value_name = "URL", default_value = "http://localhost:8080/")]
    pub target: String,
}

/// `squall agent`.
#[derive(Debug, Args)]
pub(crate) struct AgentArgs {
    /// A folder that the agent owns and removes
    #[arg(long, value_name = "DIR")]
    pub folder: Option<PathBuf>,
    /// Carry a new connection to the agent that listens at this socket
    #[arg(long, value_name = "SOCKET", conflicts_with = "folder")]
    pub attach: Option<PathBuf>,
    /// Keep a container alive: wait this long for an agent to come, and until it has ended
    #[arg(long, value_name = "TIME", conflicts_with_all = ["folder", "attach"], value_parser = parse_duration)]
    pub standby: Option<Duration>,
}

fn variable(text: &str) -> Result<(String, String), InputError> {
    match text.split_once('=') {
        Some((name, value)) => Ok((name.to_owned(), value.to_owned())),
        None => Err(refused("no `=`", "write NAME=VALUE, such as `users=100`")),
    }
}
