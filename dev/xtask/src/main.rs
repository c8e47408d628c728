//! Development tasks, run as `cargo xtask TASK`.
//!
//! - `tidy`: what the compiler and clippy do not check: who imports whom, headers, leftovers, lengths, documented flags.
//! - `man`, `completions`: writes what the binary says of itself to `target/man` and `target/completions`.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a task talks to the developer who runs it")]

mod dist;
mod tidy;

use std::path::PathBuf;
use std::process::ExitCode;

fn main() -> ExitCode {
    // As cargo says when it runs this: a binary that was built elsewhere does not look there.
    let package = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").expect("`cargo xtask` runs this"));
    let root = package.ancestors().nth(2).expect("xtask lies two folders below the root");
    match std::env::args().nth(1).as_deref() {
        Some("tidy") => tidy::run(root),
        Some("man") => dist::write_man(root),
        Some("completions") => dist::write_completions(root),
        _ => {
            eprintln!("usage: cargo xtask tidy|man|completions");
            ExitCode::from(2)
        }
    }
}
