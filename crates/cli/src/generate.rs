//! What is made from the flags themselves: completions and the man page.

use clap::{Command, CommandFactory};
use squall_plan::options::LoadType;

use crate::args::Cli;

/// The completions of a shell.
pub(crate) fn completions(shell: clap_complete::Shell) -> String {
    let mut script = Vec::new();
    let mut command = excluding(Cli::command(), LoadType::Http);
    for kind in LoadType::LOADS {
        command = command.mut_subcommand(kind.command(), |command| excluding(command, kind));
    }
    for name in ["view", "convert", "mock"] {
        command = command.mut_subcommand(name, |command| excluding(command, LoadType::Recording));
    }
    clap_complete::generate(shell, &mut command, "squall", &mut script);
    String::from_utf8_lossy(&script).into_owned()
}

/// The command with what its options exclude, which clap does not check: `plan` reports all of it at once.
fn excluding(command: Command, kind: LoadType) -> Command {
    kind.options().fold(command, |command, option| {
        let others = option.conflicts.iter().filter(|name| kind.option(name).is_some());
        command.mut_arg(option.name, |arg| arg.conflicts_with_all(others))
    })
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
