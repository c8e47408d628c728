//! `squall mock`: a server that answers as recorded, until Ctrl-C.

use std::sync::mpsc;

use squall_proxy::{Mock, MockOptions};
use squall_report::units::counted;

use super::import::playable;
use super::record::{authority, refused};
use crate::args::MockArgs;
use crate::failure::{ExitCode, Failure};
use crate::output;
use crate::signals::Watch;

/// Answers until the first Ctrl-C or SIGTERM. Its URL is the first line on stdout.
pub(crate) fn run(args: &MockArgs) -> Result<ExitCode, Failure> {
    let (stop, stopped) = mpsc::channel();
    let watch = Watch::start(move |_| stop.send(()).unwrap_or_default())?;
    let playable = playable(&args.file, &args.read)?;
    if !playable.recording.index().has_responses {
        let message = format!("`{}` has no responses that could be given", args.file.display());
        return Err(Failure::usage(
            message,
            "record with responses: squall record, HAR, .gor with responses",
        ));
    }
    let options = MockOptions {
        listen: args.listen,
        latency_factor: args.latency,
        authority: if args.tls { Some(authority(args.ca.as_deref())?) } else { None },
    };
    let mock = Mock::start(playable.recording, options).map_err(|error| refused(&error))?;
    output::result(&format!("http://{}/\n", mock.address()))?;
    // An error means that the signal thread is gone: nothing could stop the server any more.
    let _ = stopped.recv();
    drop(watch);
    let stats = mock.stop();
    let missed: u64 = stats.misses.values().sum();
    output::note(&format!("answered {} as recorded, missed {missed}", counted(stats.answered, "request")));
    for (what, count) in stats.misses.iter().take(MISSES_SHOWN_MAX) {
        output::note(&format!("  {count} x {what}"));
    }
    Ok(ExitCode::Ok)
}

/// Kinds of misses that are listed.
const MISSES_SHOWN_MAX: usize = 50;
