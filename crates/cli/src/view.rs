//! What is seen of a run while it goes on: a line of progress, the full screen of `--live`, a page, or nothing.

use std::io::{self, IsTerminal, Stderr};
use std::path::Path;

use squall_measure::{RunRecord, RunRecorder};
use squall_report::{Ask, Glance, Live, MachineGlance, Progress, ProgressMode};

use crate::args::OutputArgs;
use crate::checkpoint::Checkpoint;
use crate::failure::Failure;
use crate::output;
use crate::patience::Patience;
use crate::signals;
use crate::streams::Streams;

/// The view, and the run that its keys steer.
pub(crate) struct View<'a> {
    face: Face,
    /// Does what a key asks for.
    steer: Box<dyn FnMut(Ask) + 'a>,
    streams: Streams,
    is_draining: bool,
    /// The keys have asked for the end: asked once more, they mean that something hangs.
    is_aborted_by_key: bool,
    name: String,
    phase: Option<String>,
    patience: Option<Patience>,
    args: &'a OutputArgs,
    checkpoint: Option<Checkpoint>,
}

enum Face {
    Progress(Progress<Stderr>),
    Live(Box<Live>),
}

impl<'a> View<'a> {
    /// Takes over what it needs of the terminal, until it is dropped.
    pub(crate) fn open(
        args: &'a OutputArgs,
        name: &str,
        steer: Box<dyn FnMut(Ask) + 'a>,
    ) -> Result<Self, Failure> {
        let streams = Streams::open(&args.faces.out, args.web, name)?;
        if !args.live {
            streams.announce();
        }
        let face = if args.live { live(args)? } else { progress(args) };
        Ok(Self {
            face,
            steer,
            streams,
            is_draining: false,
            is_aborted_by_key: false,
            name: name.to_owned(),
            phase: None,
            patience: None,
            args,
            checkpoint: None,
        })
    }

    /// Saves the run in this folder every few seconds, until it ends.
    pub(crate) fn save_in(&mut self, folder: Option<&Path>) {
        self.checkpoint = folder.and_then(Checkpoint::start);
    }

    /// Something begins that is no load yet, such as the look-up of names; it ends with the next phase.
    pub(crate) fn prepare(&mut self, doing: &str) {
        if self.phase.as_deref() == Some(doing) {
            return;
        }
        self.phase(Some(doing));
        match &mut self.face {
            Face::Live(live) => drop(live.say(&self.name, doing)),
            Face::Progress(_) => self.patience = Patience::unless_quiet(&self.args.faces, doing),
        }
    }

    /// What is going on from now on, where that is worth a word.
    pub(crate) fn phase(&mut self, phase: Option<&str>) {
        self.patience = None;
        self.phase = phase.map(str::to_owned);
    }

    /// Shows the run as it is now, and of a fleet each machine. A terminal that is gone must not end the run.
    pub(crate) fn update(&mut self, recorder: &RunRecorder, machines: &[MachineGlance<'_>]) {
        if let Some(checkpoint) = &mut self.checkpoint {
            checkpoint.update(recorder);
        }
        for _ in 0..self.streams.update(recorder, machines, self.is_draining) {
            let ask = if self.is_draining { Ask::Abort } else { Ask::Drain };
            self.is_draining = true;
            (self.steer)(ask);
        }
        let glance = Glance { phase: self.phase.clone(), ..Glance::from(recorder) };
        match &mut self.face {
            Face::Progress(progress) => progress.update(&glance),
            Face::Live(live) => {
                if let Ok(Some(ask)) = live.update(glance, machines) {
                    if self.is_aborted_by_key {
                        signals::leave();
                    }
                    self.is_draining = true;
                    self.is_aborted_by_key = ask == Ask::Abort;
                    (self.steer)(ask);
                }
            }
        }
    }

    /// Before the run has started there is nothing to show, but the full screen has keys that steer it.
    pub(crate) fn wait(&mut self, doing: &str, recorder: &RunRecorder) {
        self.prepare(doing);
        if let Face::Live(_) = self.face {
            self.update(recorder, &[]);
        }
    }

    /// Gives the terminal back, and reports the end of the run to other viewers.
    pub(crate) fn finish(self, record: &RunRecord) {
        // What is written from now on is the whole run.
        drop(self.checkpoint);
        drop(self.face);
        for lost in self.streams.finish(record) {
            output::warning(self.args.faces.color, &lost);
        }
    }

    /// Clears a line for a message; the next update shows the run again.
    pub(crate) fn clear(&mut self) {
        if let Face::Progress(progress) = &mut self.face {
            progress.clear();
        }
    }
}

fn live(args: &OutputArgs) -> Result<Face, Failure> {
    match Live::enter(output::stderr_style(args.faces.color)) {
        Ok(live) => Ok(Face::Live(Box::new(live))),
        Err(error) => Err(Failure::usage(
            format!("`--live` cannot use the terminal: {error}"),
            "remove it to see a progress line",
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
