//! What is made from the flags themselves: completions and the man page.

use clap::CommandFactory;

use crate::args::Cli;

/// The completions of a shell.
pub(crate) fn completions(shell: clap_complete::Shell) -> String {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "squall", &mut script);
    String::from_utf8_lossy(&script).into_owned()
}

/// The man page of squall, or of one of its commands, in roff.
pub(crate) fn man(name: Option<&str>) -> String {
    let mut squall = Cli::command();
    squall.build();
    let command = name.and_then(|name| squall.find_subcommand(name)).unwrap_or(&squall).clone();
    let mut page = Vec::new();
    // Writing to memory does not fail.
    let _ = clap_mangen::Man::new(command).render(&mut page);
    String::from_utf8_lossy(&page).into_owned()
}
