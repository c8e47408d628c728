//! What can go wrong while results are written or read again. Never the target's doing.

use std::io;
use std::path::{Path, PathBuf};

/// A result that could not be written or read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// An output file or folder cannot be written.
    #[error("cannot write `{}`: {source}", path.display())]
    OsWrite {
        /// What was to be written.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A saved run cannot be read.
    #[error("cannot read `{}`: {source}", path.display())]
    OsRead {
        /// What was to be read.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Neither `XDG_STATE_HOME` nor `HOME` says where runs are kept.
    #[error("no folder to save runs in: neither XDG_STATE_HOME nor HOME is set to an absolute path")]
    UserNoStateDir,
    /// There is no saved run at all.
    #[error("no saved run in `{}`", path.display())]
    UserNoRuns {
        /// Where runs are kept.
        path: PathBuf,
    },
    /// The folder holds no run.
    #[error("`{}` is not a saved run: it contains neither {} nor saved runs", path.display(), crate::store::RECORD_FILE)]
    UserNotARun {
        /// The folder.
        path: PathBuf,
    },
    /// The file is not what its name says.
    #[error("`{}` is not a saved run: {reason}", path.display())]
    UserForeignFile {
        /// The file.
        path: PathBuf,
        /// Where reading failed.
        reason: String,
    },
    /// A later version of this program wrote the run.
    #[error("`{}` has schema {found}; this version reads up to {known}", path.display())]
    UserNewerSchema {
        /// The file.
        path: PathBuf,
        /// Its schema version.
        found: u64,
        /// The newest one known here.
        known: u32,
    },
    /// `--out` with an unknown format or no file.
    #[error("`{given}` is not an output")]
    UserBadOutput {
        /// As typed, without its secrets.
        given: String,
    },
}

impl Error {
    /// How to fix it, as a sentence for a `help:` line.
    pub fn help(&self) -> Option<&'static str> {
        match self {
            Self::OsWrite { source, .. } => write_help(source.kind()),
            Self::OsRead { source, .. } if source.kind() == io::ErrorKind::NotFound => Some(A_SAVED_RUN),
            Self::OsRead { .. } => None,
            Self::UserNoStateDir => {
                Some("choose a folder with `--results DIR`, or save nothing with `--no-save`")
            }
            Self::UserNoRuns { .. } => {
                Some("every run is saved unless `--no-save` is given; start one with `squall URL`")
            }
            Self::UserNotARun { .. } | Self::UserForeignFile { .. } => Some(A_SAVED_RUN),
            Self::UserNewerSchema { .. } => {
                Some("install the version of squall that wrote it, or a newer one")
            }
            Self::UserBadOutput { .. } => Some(
                "write `FORMAT=FILE`, with json, csv, html, junit or markdown as the format; `-` means standard output",
            ),
        }
    }

    pub(crate) fn write(path: &Path, source: io::Error) -> Self {
        Self::OsWrite { path: path.to_owned(), source }
    }

    pub(crate) fn read(path: &Path, source: io::Error) -> Self {
        Self::OsRead { path: path.to_owned(), source }
    }
}

const A_SAVED_RUN: &str = "give the folder of a saved run; `squall runs` lists them";

fn write_help(kind: io::ErrorKind) -> Option<&'static str> {
    match kind {
        io::ErrorKind::NotFound => Some("create the folder first; squall creates only the file"),
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            Some("choose a folder that you can write to, or save nothing with `--no-save`")
        }
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            Some("free some space, or choose another disk")
        }
        _ => None,
    }
}
