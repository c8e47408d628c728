//! The squall binary: reads what was typed, does it, and ends with the documented exit code.
//!
//! Owns: flags, wording of wrong usage, signals, exit codes. Nothing reusable lives here.

mod args;
mod bug;
mod build;
mod echo;
mod failure;
mod generate;
mod http;
mod output;
mod signals;
mod target;
mod usage;

use args::Command;
use failure::{ExitCode, Failure};
use usage::Request;

fn main() -> std::process::ExitCode {
    bug::report_panics();
    let code = run().unwrap_or_else(|failure| {
        output::note(&failure.to_string());
        failure.code
    });
    code.into()
}

fn run() -> Result<ExitCode, Failure> {
    let text = match usage::parse(std::env::args_os())? {
        Request::Do(Command::Http(args)) => return http::run(&args),
        Request::Do(Command::Target(args)) => return target::run(&args),
        Request::Do(Command::Completions { shell }) => generate::completions(shell),
        Request::Do(Command::Man) => generate::man(),
        Request::Show(text) => text,
    };
    output::result(&text)?;
    Ok(ExitCode::Ok)
}
