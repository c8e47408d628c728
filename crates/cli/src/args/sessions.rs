//! The flags of `squall handshake` and `squall idle`: connections for their own sake.

use clap::Args;
use squall_plan::LoadSpec;

use super::OutputArgs;
use super::load::{LoadFlags, OfHandshake, OfIdle, OfWebSocket};

/// `squall handshake`.
#[derive(Debug, Args)]
pub(crate) struct HandshakeArgs {
    /// Where to connect: `[WEIGHT@]HOST[:PORT]`; the default port is 443
    ///
    /// Several are used in rotation according to their weights. `HOST PORT`, as in tls-perf, also works.
    #[arg(value_name = "HOST:PORT", required = true)]
    pub targets: Vec<String>,
    #[command(flatten)]
    pub load: LoadFlags<OfHandshake>,
    #[command(flatten)]
    pub output: OutputArgs,
}

impl HandshakeArgs {
    /// The load as typed.
    pub(crate) fn spec(&self) -> LoadSpec {
        self.load.spec(&self.targets, self.output.name.as_deref())
    }
}

/// `squall idle`.
#[derive(Debug, Args)]
pub(crate) struct IdleArgs {
    /// Where to connect: `[WEIGHT@]HOST[:PORT]`; the default port is 80, or 443 with --tls
    #[arg(value_name = "HOST:PORT", required = true)]
    pub targets: Vec<String>,
    #[command(flatten)]
    pub load: LoadFlags<OfIdle>,
    #[command(flatten)]
    pub output: OutputArgs,
}

impl IdleArgs {
    /// The load as typed.
    pub(crate) fn spec(&self) -> LoadSpec {
        self.load.spec(&self.targets, self.output.name.as_deref())
    }
}

/// `squall ws`.
#[derive(Debug, Args)]
pub(crate) struct WebSocketArgs {
    /// URLs to open: `[WEIGHT@]URL` with the scheme `ws` or `wss`
    #[arg(id = "URL", value_name = "URL")]
    pub urls: Vec<String>,
    #[command(flatten)]
    pub load: LoadFlags<OfWebSocket>,
    #[command(flatten)]
    pub output: OutputArgs,
}

impl WebSocketArgs {
    /// The load as typed.
    pub(crate) fn spec(&self) -> LoadSpec {
        self.load.spec(&self.urls, self.output.name.as_deref())
    }
}
