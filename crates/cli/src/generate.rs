//! What is made from the flags themselves: completions and the man page.

use clap::CommandFactory;

use crate::args::Cli;

/// The completions of a shell.
pub(crate) fn completions(shell: clap_complete::Shell) -> String {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "squall", &mut script);
    String::from_utf8_lossy(&script).into_owned()
}

/// The man page, in roff. Writing to memory does not fail.
pub(crate) fn man() -> String {
    let mut page = Vec::new();
    let _ = clap_mangen::Man::new(Cli::command()).render(&mut page);
    String::from_utf8_lossy(&page).into_owned()
}
