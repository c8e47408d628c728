//! The flags of `squall replay`.

use std::path::PathBuf;

use clap::Args;
use squall_plan::LoadSpec;

use super::OutputArgs;
use super::load::{LoadFlags, OfReplay};

/// `squall replay`.
#[derive(Debug, Args)]
#[command(mut_arg("name", |arg| arg.help(NAME_HELP).long_help(NAME_HELP)))]
pub(crate) struct ReplayArgs {
    /// The recording: HAR, .gor, RRPair, access log, mitmproxy, curl commands, Postman or .squall; - is stdin
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    #[command(flatten)]
    pub load: LoadFlags<OfReplay>,
    #[command(flatten)]
    pub output: OutputArgs,
}

impl ReplayArgs {
    /// The load as typed.
    pub(crate) fn spec(&self) -> LoadSpec {
        self.load.spec([self.file.to_string_lossy()], self.output.name.as_deref())
    }
}

const NAME_HELP: &str = "Name of the run, in its folder and reports [default: the file's name]";
