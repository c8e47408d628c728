//! The project conventions that neither the compiler nor clippy knows.
//!
//! Each check pushes its findings; none stops at the first one.

mod circles;
mod docs;
mod imports;
mod lengths;
mod literals;
mod sources;
mod types;
mod words;

use std::fmt::Display;
use std::path::Path;
use std::process::ExitCode;

/// What is wrong, one sentence each.
#[derive(Debug, Default)]
pub(crate) struct Findings(Vec<String>);

impl Findings {
    /// Notes that something at `place` is wrong.
    fn push(&mut self, place: impl Display, message: impl Display) {
        self.0.push(format!("{place}: {message}"));
    }
}

/// Runs every check and prints the findings; fails when there is one.
pub(crate) fn run(root: &Path) -> ExitCode {
    let mut findings = Findings::default();
    let files = sources::read(root, &mut findings);
    sources::check(&files, &mut findings);
    lengths::check(&files, &mut findings);
    imports::check(root, &mut findings);
    docs::check(root, &mut findings);
    circles::check(&files, &mut findings);
    types::check(&files, &mut findings);
    words::check(root, &files, &mut findings);
    for finding in &findings.0 {
        eprintln!("{finding}");
    }
    match findings.0.len() {
        0 => {
            println!("tidy: {} files, no findings", files.len());
            ExitCode::SUCCESS
        }
        count => {
            eprintln!("tidy: {count} findings");
            ExitCode::FAILURE
        }
    }
}
