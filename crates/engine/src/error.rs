//! What stops a run before or while it is made. What the target does wrong is never here: that is data.

use std::io;
use std::path::PathBuf;

use squall_plan::OptionStyle;

/// Why a run could not be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file that the plan names cannot be read.
    #[error("cannot read {what} `{path}`: {source}")]
    PlanFile {
        /// What the file is for.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// A file that the plan names cannot be written.
    #[error("cannot write {what} `{path}`: {source}")]
    LogFile {
        /// What the file is for.
        what: &'static str,
        /// The file, or its directory.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// A file that the plan names has the wrong content.
    #[error("{what} `{path}` {problem}")]
    PlanFileContent {
        /// What the file is for.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// The plan asks for something impossible.
    #[error("{problem}")]
    Plan {
        /// What is impossible, and where it was asked for.
        problem: String,
        /// What to do instead.
        help: String,
    },
    /// An option of the load has a value that cannot be used.
    #[error("{problem}")]
    Option {
        /// The option's long name without dashes.
        option: &'static str,
        /// What is wrong, without the option's name.
        problem: String,
        /// What to do about it.
        remedy: Remedy,
    },
    /// The TLS library refused the settings.
    #[error("TLS settings: {0}")]
    Tls(#[from] rustls::Error),
    /// A target's name has no address.
    #[error("cannot resolve `{host}`: {reason}")]
    NameNotResolved {
        /// The name.
        host: String,
        /// Where connections would have gone.
        port: u16,
        /// What the resolver said.
        reason: String,
    },
    /// A script's options forbid a request.
    #[error(transparent)]
    Forbidden(#[from] Forbidden),
    /// The operating system refused something that the generator itself needs.
    #[error("cannot {what}: {source}")]
    Os {
        /// What was tried.
        what: &'static str,
        /// The system's reason.
        source: io::Error,
    },
    /// A script cannot be run.
    #[error("{0}")]
    Script(Box<squall_script::ScriptError>),
    /// Fewer descriptors than connections.
    #[error(
        "the run needs {needed} open files ({} sockets plus {reserved}), but the limit is {limit}",
        needed - reserved
    )]
    TooFewDescriptors {
        /// How many are needed.
        needed: u64,
        /// How many of them are for something else than sockets.
        reserved: u64,
        /// The hard limit of this process.
        limit: u64,
    },
}

/// What to do about an option.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Remedy {
    /// Do this, by giving it a value like that.
    Set(&'static str, &'static str),
    /// Give it some of these values.
    OneOf(Vec<String>),
    /// Do this, or leave the option out.
    LeaveOut(String),
}

/// Why a script's options forbid a request, in k6's words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Forbidden {
    /// `blacklistIPs` has the host's address.
    #[error("ip is blacklisted")]
    Address,
    /// `blockHostnames` has the host's name.
    #[error("hostname is blocked")]
    Name,
}

impl Error {
    /// What the user, who writes options in this style, can do about it.
    pub fn help(&self, style: OptionStyle) -> Option<String> {
        let help = match self {
            Self::PlanFile { .. } | Self::LogFile { .. } => "check the path and its permissions".to_owned(),
            Self::PlanFileContent { .. } => "the file must be PEM (-----BEGIN ...-----)".to_owned(),
            Self::Plan { help, .. } => help.clone(),
            Self::Option { option, remedy, .. } => remedy.help(option, style),
            Self::Tls(_) => {
                let [tls, ciphers, cert, key] =
                    ["tls", "ciphers", "cert", "key"].map(|name| style.name(name));
                format!("check {tls}, {ciphers}, {cert} and {key} against each other")
            }
            Self::NameNotResolved { host, port, .. } => {
                let rule = style.with_value("resolve", &format!("{host}:{port}:192.0.2.1"));
                format!("check the spelling, or give an address: {rule}")
            }
            Self::Script(error) => error.help.clone(),
            Self::Os { .. } | Self::Forbidden(_) => return None,
            Self::TooFewDescriptors { needed, reserved, limit } => {
                let raise = format!(
                    "raise the hard limit before the run: `ulimit -Hn {needed}` as root, or `LimitNOFILE={needed}` for a service"
                );
                match limit.saturating_sub(*reserved) {
                    0 => raise,
                    space => format!("use fewer connections (at most {space} sockets), or {raise}"),
                }
            }
        };
        Some(help)
    }

    /// Whether the target, not the plan or this machine, is why nothing could be measured.
    pub fn is_target_unreachable(&self) -> bool {
        matches!(self, Self::NameNotResolved { .. })
    }
}

impl Remedy {
    fn help(&self, option: &str, style: OptionStyle) -> String {
        match self {
            Self::Set(what, value) => format!("{what}: {}", style.with_value(option, value)),
            Self::OneOf(values) => format!("values of {}: {}", style.name(option), values.join(", ")),
            Self::LeaveOut(instead) => format!("{instead}, or leave {} out", style.name(option)),
        }
    }
}

/// Descriptors kept for everything but connections: output files, the resolver, and an epoll set for each of so many shards.
pub(crate) fn descriptors_reserved(shard_count: u64) -> u64 {
    32 + shard_count.max(32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn help_shows_options_as_the_user_writes_them() {
        let of = |remedy| Error::Option { option: "sni", problem: String::new(), remedy };
        let not_resolved =
            Error::NameNotResolved { host: "a".to_owned(), port: 80, reason: "no address".to_owned() };
        for (error, as_flag, as_key) in [
            (of(Remedy::Set("give a valid name", "NAME")), ": `--sni NAME`", ": `sni: 'NAME'`"),
            (of(Remedy::OneOf(vec!["a".to_owned(), "b".to_owned()])), "of `--sni`: a, b", "of `sni`: a, b"),
            (of(Remedy::LeaveOut("use TLS".to_owned())), "or leave `--sni` out", "or leave `sni` out"),
            (not_resolved, "`--resolve a:80:192.0.2.1`", "`resolve: 'a:80:192.0.2.1'`"),
            (Error::Tls(rustls::Error::EncryptError), "`--cert` and `--key`", "`cert` and `key`"),
        ] {
            for (style, expected) in [(OptionStyle::Flags, as_flag), (OptionStyle::Keys, as_key)] {
                let help = error.help(style).unwrap();
                assert!(help.contains(expected), "{help}");
            }
        }
    }
}
