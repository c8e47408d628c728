//! Ctrl-C and the other signals that ask a program to end, as calls: what each one means is for the caller to say, and for every run the same.

use std::io;
use std::thread;

use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::iterator::{Handle, Signals};

use squall_report::{Ask, Live};

use crate::failure::{ExitCode, Failure};
use crate::output;

/// Watches for signals until it is dropped.
pub(crate) struct Watch {
    handle: Handle,
}

impl Watch {
    /// Calls `on_signal` with the number of signals so far, from 1, on a thread of its own.
    pub(crate) fn start(on_signal: impl FnMut(u32) + Send + 'static) -> Result<Self, Failure> {
        watch(on_signal).map(|handle| Self { handle }).map_err(|error| {
            let help = "raise the limits of open files and processes: `ulimit -a` shows them";
            Failure::usage(format!("cannot watch for signals: {error}"), help)
        })
    }
}

/// Steers a run until its end, its report included: the first signal drains it, which `said` tells, the second ends it. The third ends
/// the program, whatever hangs.
pub(crate) fn steer(
    said: Option<&'static str>,
    mut run: impl FnMut(Ask) + Send + 'static,
) -> Result<Watch, Failure> {
    Watch::start(move |number| match number {
        1 => {
            run(Ask::Drain);
            said.iter().for_each(|said| output::note(&format!("\n{said}; Ctrl-C again ends at once")));
        }
        2 => run(Ask::Abort),
        _ => leave(),
    })
}

/// Ends the program without a report, and gives the terminal back.
pub(crate) fn leave() -> ! {
    Live::restore();
    std::process::exit(ExitCode::Aborted as i32)
}

fn watch(mut on_signal: impl FnMut(u32) + Send + 'static) -> io::Result<Handle> {
    let mut signals = Signals::new(ENDING)?;
    let handle = signals.handle();
    thread::Builder::new().name("signals".to_owned()).spawn(move || {
        for (number, _) in (1..).zip(signals.forever()) {
            on_signal(number);
        }
    })?;
    Ok(handle)
}

/// Ctrl-C, `kill`, a terminal that has gone, and Ctrl-\\: each ends a run with its report.
const ENDING: [i32; 4] = [SIGINT, SIGTERM, SIGHUP, SIGQUIT];

impl Drop for Watch {
    fn drop(&mut self) {
        self.handle.close();
    }
}
