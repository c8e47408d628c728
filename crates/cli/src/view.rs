//! What is seen of a run while it goes on: a line of progress, the full screen of `--live`, or nothing.

use std::io::{self, IsTerminal, Stderr};

use squall_engine::Control;
use squall_measure::RunRecorder;
use squall_report::{Ask, Glance, Live, Progress, ProgressMode};

use crate::args::OutputArgs;
use crate::failure::Failure;
use crate::output;

/// The view, and the run that its keys steer.
pub(crate) struct View<'a> {
    face: Face,
    control: &'a Control,
}

enum Face {
    Progress(Progress<Stderr>),
    Live(Box<Live>),
}

impl<'a> View<'a> {
    /// Takes over what it needs of the terminal, until it is dropped.
    pub(crate) fn open(args: &OutputArgs, control: &'a Control) -> Result<Self, Failure> {
        let face = if args.live { live(args)? } else { progress(args) };
        Ok(Self { face, control })
    }

    /// Shows the run as it is now. A terminal that is gone must not end the run.
    pub(crate) fn update(&mut self, recorder: &RunRecorder) {
        let glance = Glance::from(recorder);
        match &mut self.face {
            Face::Progress(progress) => progress.update(&glance),
            Face::Live(live) => match live.update(&glance) {
                Ok(Some(Ask::Drain)) => self.control.drain(),
                Ok(Some(Ask::Abort)) => self.control.abort(),
                Ok(None) | Err(_) => {}
            },
        }
    }
}

fn live(args: &OutputArgs) -> Result<Face, Failure> {
    match Live::enter(output::stderr_style(args.faces.color)) {
        Ok(live) => Ok(Face::Live(Box::new(live))),
        Err(error) => Err(Failure::usage(
            format!("`--live` cannot use the terminal: {error}"),
            "leave it out to see a line of progress",
        )),
    }
}

fn progress(args: &OutputArgs) -> Face {
    let mode = match args.faces.quiet {
        0 if io::stderr().is_terminal() => ProgressMode::Redrawn,
        0 => ProgressMode::Plain,
        _ => ProgressMode::Quiet,
    };
    Face::Progress(Progress::new(io::stderr(), output::stderr_style(args.faces.color), mode))
}
