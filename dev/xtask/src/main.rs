//! Development tasks, run as `cargo xtask TASK`.
//!
//! - `tidy`: what the compiler and clippy do not check: which crate imports which, headers, leftovers, lengths, documented flags.
//! - `sbom`, `licenses`: lists the crates that are linked into the binary, in SPDX, and collects their licence texts.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a task talks to the developer who runs it")]

mod dependencies;
mod tidy;

use std::path::PathBuf;
use std::process::ExitCode;

fn main() -> ExitCode {
    // As cargo says when it runs this: a binary that was built elsewhere does not look there.
    let package = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").expect("`cargo xtask` runs this"));
    let root = package.ancestors().nth(2).expect("xtask lies two folders below the root");
    match std::env::args().nth(1).as_deref() {
        Some("tidy") => tidy::run(root),
        Some("sbom") => dependencies::write_sbom(root),
        Some("licenses") => dependencies::write_licenses(root),
        _ => {
            eprintln!("usage: cargo xtask tidy|sbom|licenses");
            ExitCode::from(2)
        }
    }
}
