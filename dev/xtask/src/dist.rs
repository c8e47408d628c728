//! Files that the binary makes of itself, for packagers.

use std::fs;
use std::io;
use std::path::Path;
use std::process::{Command, ExitCode};

/// Writes `target/man/squall.1`.
pub(crate) fn write_man(root: &Path) -> ExitCode {
    report(write(root, &["man"], "target/man/squall.1"))
}

/// Writes `target/completions/squall.SHELL` for every shell.
pub(crate) fn write_completions(root: &Path) -> ExitCode {
    let write_one =
        |shell| write(root, &["completions", shell], &format!("target/completions/squall.{shell}"));
    report(["bash", "zsh", "fish", "powershell", "elvish"].into_iter().try_for_each(write_one))
}

/// What the binary prints when it is run with these arguments; it is built first when needed.
pub(crate) fn squall(root: &Path, args: &[&str]) -> io::Result<String> {
    let cargo = ["run", "--quiet", "--package", "squall", "--"];
    let output = Command::new(env!("CARGO")).current_dir(root).args(cargo).args(args).output()?;
    if !output.status.success() {
        return Err(io::Error::other(String::from_utf8_lossy(&output.stderr).into_owned()));
    }
    String::from_utf8(output.stdout).map_err(io::Error::other)
}

fn write(root: &Path, args: &[&str], path: &str) -> io::Result<()> {
    let text = squall(root, args)?;
    let file = root.join(path);
    fs::create_dir_all(file.parent().unwrap_or(root))?;
    fs::write(&file, text)?;
    println!("{path}");
    Ok(())
}

fn report(result: io::Result<()>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
