//! A panic is a bug of squall: it is said so, and ends the process with the exit code for bugs, on whichever thread.

use std::panic;

use crate::failure::ExitCode;
use crate::output;

/// From now on.
pub(crate) fn report_panics() {
    panic::set_hook(Box::new(|panic| {
        output::note(&format!(
            "error: bug in squall: {panic}\n\nhelp: please report this message with the command you ran"
        ));
        std::process::exit(ExitCode::Bug as i32);
    }));
}
