//! The only place that prints: results to stdout, everything else to stderr.

use std::io::{self, ErrorKind, Write};

use crate::failure::{ExitCode, Failure};

/// Writes a result to stdout. A reader that has gone away (`squall --help | head`) is no failure.
pub(crate) fn result(text: &str) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(Failure {
            code: ExitCode::Usage,
            message: format!("cannot write to stdout: {error}"),
            help: "send the output elsewhere, or use `--json FILE`".to_owned(),
        }),
        _ => Ok(()),
    }
}

/// Writes a line for people to stderr. Nobody can be told when that fails.
pub(crate) fn note(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{text}");
}
