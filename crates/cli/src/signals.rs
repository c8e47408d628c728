//! Ctrl-C and the other signals that ask a program to end, as calls: what each one means is for the caller to say, and for every run the same.

use std::io;
use std::thread;
use std::time::Duration;

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
            let help = "raise the limits on open files and processes (see `ulimit -a`)";
            Failure::usage(format!("cannot watch for signals: {error}"), help)
        })
    }
}

/// Steers a run until its end, its report included: the first signal drains it, which `said` reports, the second ends it. The third ends
/// the program, whatever hangs, and so does the second where no report comes of it.
pub(crate) fn steer(
    said: Option<&'static str>,
    mut run: impl FnMut(Ask) + Send + 'static,
) -> Result<Watch, Failure> {
    Watch::start(move |number| match number {
        1 => {
            run(Ask::Drain);
            said.iter()
                .for_each(|said| output::note(&format!("\n{said}; press Ctrl-C again to stop at once")));
        }
        2 => {
            run(Ask::Abort);
            leave_after(REPORTING_MAX);
        }
        _ => leave(),
    })
}

/// Calls `stop` at the first signal, for a command that works until then. The second ends the program soon, whatever hangs, the third at once.
pub(crate) fn until_asked(mut stop: impl FnMut() + Send + 'static) -> Result<Watch, Failure> {
    Watch::start(move |number| match number {
        1 => stop(),
        2 => leave_after(STOPPING_MAX),
        _ => leave(),
    })
}

/// Ends the program unless it has ended already.
fn leave_after(time: Duration) {
    let wait = move || {
        thread::sleep(time);
        output::note(&format!("not finished after {} s: ended without a report", time.as_secs()));
        leave();
    };
    // Without a thread for it the third signal is left.
    let _ = thread::Builder::new().name("leave".to_owned()).spawn(wait);
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

/// A run that ends at once is reported in a fraction of it; a disk or a pipe that takes nothing does not delay the end any longer.
const REPORTING_MAX: Duration = Duration::from_secs(10);

/// What a server or a recorder may take to end its connections and files.
const STOPPING_MAX: Duration = Duration::from_secs(2);

/// Ctrl-C, `kill`, a terminal that has gone, and Ctrl-\\: each ends a run with its report.
const ENDING: [i32; 4] = [SIGINT, SIGTERM, SIGHUP, SIGQUIT];

impl Drop for Watch {
    fn drop(&mut self) {
        self.handle.close();
    }
}
