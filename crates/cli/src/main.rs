//! The squall binary: reads what was typed, does it, and ends with the documented exit code.
//!
//! Owns: flags, wording of wrong usage, signals, exit codes. Nothing reusable lives here.

mod args;
mod bug;
mod checkpoint;
mod echo;
mod faces;
mod failure;
mod generate;
mod http;
mod load;
mod output;
mod patience;
mod redraw;
mod run;
mod sessions;
mod signals;
mod streams;
mod study;
mod target;
mod traffic;
mod usage;
mod view;

use args::Command;
use failure::{ExitCode, Failure};
use usage::Request;

fn main() -> std::process::ExitCode {
    bug::report_panics();
    study::follow_study();
    let code = answer().unwrap_or_else(|failure| {
        output::failure(&failure);
        failure.code
    });
    code.into()
}

fn answer() -> Result<ExitCode, Failure> {
    let text = match usage::parse(std::env::args_os())? {
        Request::Do(Command::Http(args)) => return http::run(&args),
        Request::Do(Command::Ws(args)) => return sessions::websocket(&args),
        Request::Do(Command::Stream(args)) => return http::stream(&args),
        Request::Do(Command::Handshake(args)) => return sessions::handshake(&args),
        Request::Do(Command::Idle(args)) => return sessions::idle(&args),
        Request::Do(Command::Run(args)) => return run::run(&args),
        Request::Do(Command::Inspect(args)) => return run::inspect(*args),
        Request::Do(Command::Plan(command)) => return run::plan::look(&command),
        Request::Do(Command::New(args)) => return run::plan::new(&args),
        Request::Do(Command::Agent(args)) => return run::agent::run(&args),
        Request::Do(Command::Replay(args)) => return traffic::replay::run(&args),
        Request::Do(Command::Record(args)) => return traffic::record::run(&args),
        Request::Do(Command::Mock(args)) => return traffic::mock::run(&args),
        Request::Do(Command::View(args)) => return traffic::view::run(&args),
        Request::Do(Command::Convert(args)) => return traffic::convert::run(&args),
        Request::Do(Command::Target(args)) => return target::run(&args),
        Request::Do(Command::Report(args)) => return redraw::run(&args),
        Request::Do(Command::Runs(args)) => return study::runs(&args),
        Request::Do(Command::Compare(args)) => return study::compare(&args),
        Request::Do(Command::Sweep(args)) => return study::sweep(&args),
        Request::Do(Command::Capacity(args)) => return study::capacity(&args),
        Request::Do(Command::Schema) => squall_report::SUMMARY_SCHEMA.to_owned(),
        Request::Do(Command::Completions { shell }) => generate::completions(shell),
        Request::Do(Command::Man { command }) => generate::man(command.as_deref()),
        Request::Show(text) => text,
    };
    output::result(&text)?;
    Ok(ExitCode::Ok)
}
