//! The flags of `squall run`: one command for everything that is written in a file.

use std::path::PathBuf;

use clap::Args;

use super::OutputArgs;

/// `squall run`.
#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// What to run: a plan (.yaml, .json), a k6 script (.js, .ts) or recorded traffic (.har, .gor, .squall)
    #[arg(value_name = "FILE")]
    pub files: Vec<PathBuf>,
    #[command(flatten)]
    pub output: OutputArgs,
}
