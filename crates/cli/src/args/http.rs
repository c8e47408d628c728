//! The flags of `squall http`, and those of every run about its output.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;
use squall_plan::LoadSpec;

use super::load::{LoadFlags, OfHttp, OfStream};
use super::{FaceArgs, values};

/// `squall http`, and `squall` without a command.
#[derive(Debug, Args)]
pub(crate) struct HttpArgs {
    /// URLs to request: `[WEIGHT@]URL`; the scheme defaults to http
    ///
    /// Several URLs are requested in rotation according to their weights: `3@http://a/ 1@http://b/`. User and password in a URL
    /// become Basic authorization.
    #[arg(id = "URL", value_name = "URL")]
    pub urls: Vec<String>,
    #[command(flatten)]
    pub load: LoadFlags<OfHttp>,
    #[command(flatten)]
    pub output: OutputArgs,
}

impl HttpArgs {
    /// The load as typed.
    pub(crate) fn spec(&self) -> LoadSpec {
        self.load.spec(&self.urls, self.output.name.as_deref())
    }
}

/// `squall stream`.
#[derive(Debug, Args)]
pub(crate) struct StreamArgs {
    /// URLs to request: `[WEIGHT@]URL`; the scheme defaults to http
    #[arg(id = "URL", value_name = "URL")]
    pub urls: Vec<String>,
    #[command(flatten)]
    pub load: LoadFlags<OfStream>,
    #[command(flatten)]
    pub output: OutputArgs,
}

impl StreamArgs {
    /// The load as typed.
    pub(crate) fn spec(&self) -> LoadSpec {
        self.load.spec(&self.urls, self.output.name.as_deref())
    }
}

#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct OutputArgs {
    /// Name of the run, in its folder and reports [default: the first URL's host]
    #[arg(long, value_name = "NAME", hide_short_help = true)]
    pub name: Option<String>,
    /// Save the run in a new folder in DIR
    ///
    /// The default is the user's state directory ($XDG_STATE_HOME/squall/runs), which keeps the newest 200 runs.
    #[arg(long, value_name = "DIR", conflicts_with = "no_save")]
    pub results: Option<PathBuf>,
    /// Do not save the run
    #[arg(long)]
    pub no_save: bool,
    #[command(flatten)]
    pub faces: FaceArgs,
    /// Show a full-screen live view of the run
    #[arg(long, conflicts_with = "quiet")]
    pub live: bool,
    /// Serve a live page of the run for a browser, with a stop button [default: 127.0.0.1:5665]
    #[arg(long, value_name = "ADDRESS:PORT", num_args = 0..=1, require_equals = true,
          default_missing_value = "127.0.0.1:5665", value_parser = values::listen)]
    pub web: Option<SocketAddr>,
    /// Show what the run would do, without running it
    #[arg(long)]
    pub dry_run: bool,
}
