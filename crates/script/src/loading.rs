//! Why a module or a file of a script cannot be had, and what to do about it.

use std::io;
use std::path::PathBuf;

/// Why a module or a file cannot be had.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LoadError {
    /// It is neither a path nor a URL.
    #[error("The moduleSpecifier \"{0}\" couldn't be recognised as something k6 supports")]
    Specifier(String),
    /// A module from the network may not read files.
    #[error("the module `{base}` was loaded over the network and may not load the file `{specifier}`")]
    FromRemote { base: String, specifier: String },
    /// Nothing is fetched here.
    #[error("modules cannot be loaded over the network here")]
    NoNetwork,
    /// It cannot be fetched.
    #[error("cannot load the module `{name}`: {problem}")]
    Fetch { name: String, problem: String },
    /// It is none of k6's modules that there are here.
    #[error("the module `{name}` is not supported: {why}")]
    Unsupported { name: String, why: &'static str, help: String },
    /// The system refuses to read it.
    #[error("cannot read `{}`: {source}", path.display())]
    Read { path: PathBuf, source: io::Error },
    /// It is a URL of something else.
    #[error("`{0}` is not a file")]
    NotAFile(String),
    /// A file that was not opened in the init context.
    #[error(
        "open() can't be used with files that weren't previously opened during initialization (__VU==0), path: \"{0}\""
    )]
    NotOpened(String),
    /// There is no such file.
    #[error("no such file or directory {0:?}")]
    NoFile(PathBuf),
}

impl LoadError {
    /// How to fix it.
    pub(crate) fn help(&self) -> Option<&str> {
        Some(match self {
            Self::Specifier(_) => {
                "npm packages are not resolved: import a relative path, an https:// URL, or one of k6's own modules"
            }
            Self::Fetch { .. } => "check the network, or download the module and import it by its path",
            Self::Unsupported { help, .. } => help,
            Self::Read { source, .. } if source.kind() == io::ErrorKind::InvalidData => {
                "save the file as UTF-8"
            }
            Self::Read { .. } => {
                "check the path: it is relative to the importing file and includes the extension"
            }
            Self::NoFile(_) => "check the path: it is relative to the folder of the main script",
            Self::FromRemote { .. } | Self::NoNetwork | Self::NotAFile(_) | Self::NotOpened(_) => {
                return None;
            }
        })
    }
}
