//! The flags of `squall run`, `squall plan`, `squall new` and `squall agent`: everything about runs that are written in files.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::OutputArgs;

/// `squall run`.
#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// What to run: a plan (.yaml, .json), a k6 script (.js, .ts) or recorded traffic (.har, .gor, .squall)
    #[arg(value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Make a saved run again: the folder that it is kept in
    #[arg(long, value_name = "DIR", conflicts_with = "files")]
    pub again: Option<PathBuf>,
    #[command(flatten)]
    pub plan: PlanArgs,
    #[command(flatten)]
    pub script: Box<super::ScriptArgs>,
    #[command(flatten)]
    pub output: OutputArgs,
}

/// What a plan file is told from outside.
#[derive(Debug, Args)]
#[command(next_help_heading = "Plans")]
pub(crate) struct PlanArgs {
    /// Value of a variable, NAME=VALUE, that the plan uses as ${NAME} (repeatable)
    ///
    /// It wins over the plan's own `variables`, and those over the environment.
    #[arg(long, value_name = "NAME=VALUE", value_parser = variable)]
    pub var: Vec<(String, String)>,
}

/// `squall plan`.
#[derive(Debug, Subcommand)]
pub(crate) enum PlanCommand {
    /// Tell everything that is wrong with a plan; sends nothing
    Check(PlanFileArgs),
    /// Show what would run where, and when; sends nothing
    Show(PlanFileArgs),
    /// Print the JSON Schema of plan files, for editors
    Schema,
}

/// A plan file, to be looked at.
#[derive(Debug, Args)]
pub(crate) struct PlanFileArgs {
    /// The plan
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    #[command(flatten)]
    pub plan: PlanArgs,
}

/// `squall new`.
#[derive(Debug, Args)]
pub(crate) struct NewArgs {
    /// Where to write it; a file that exists is not overwritten [default: stdout]
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
}

fn variable(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) => Ok((name.to_owned(), value.to_owned())),
        None => Err("write NAME=VALUE".to_owned()),
    }
}
