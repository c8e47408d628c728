//! The only place that prints: results to stdout, everything else to stderr.

use std::io::{self, ErrorKind, Write};

use squall_plan::printable::printable;
use squall_report::{ColorChoice, Style, Tone};
use terminal_size::{Width, terminal_size_of};

use crate::failure::{ExitCode, Failure};

/// Writes a result to stdout.
pub(crate) fn result(text: &str) -> Result<(), Failure> {
    bytes(text.as_bytes())
}

/// Writes a result without colours to stdout, in words of others too: what of it would drive the terminal is written out.
pub(crate) fn plain(text: &str) -> Result<(), Failure> {
    result(&printable(text))
}

/// Writes a result to stdout. A reader that has gone away (`squall --help | head`) is no failure.
pub(crate) fn bytes(bytes: &[u8]) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(bytes).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(Failure {
            code: ExitCode::Usage,
            message: format!("cannot write to stdout: {error}"),
            help: "send the output elsewhere, or use `--json FILE`".to_owned(),
        }),
        _ => Ok(()),
    }
}

/// Writes a line for people to stderr. What of it would drive the terminal is written out: much of it comes from elsewhere.
pub(crate) fn note(text: &str) {
    line(&printable(text));
}

/// Writes a line of a script's own to stderr, colours and all.
pub(crate) fn own(text: &str) {
    line(text);
}

/// A failure here cannot be reported.
fn line(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{text}");
}

/// Something went wrong that does not end the run.
pub(crate) fn warning(color: impl Into<ColorChoice>, text: &str) {
    let name = stderr_style(color).paint(Tone::Warning, "warning:");
    line(&format!("{name} {}", printable(text)));
}

/// What went wrong, and how to fix it.
pub(crate) fn failure(failure: &Failure) {
    let style = stderr_style(ColorChoice::Auto);
    let (error, help) = (style.paint(Tone::Bad, "error:"), style.paint(Tone::Hint, "help:"));
    line(&format!("{error} {}\n\n{help} {}", printable(&failure.message), printable(&failure.help)));
}

/// How text looks on stdout.
pub(crate) fn stdout_style(color: impl Into<ColorChoice>) -> Style {
    Style::choose(color.into(), width(terminal_size_of(io::stdout())), |name| std::env::var_os(name))
}

/// Columns of stdout; `None` when it is no terminal.
pub(crate) fn stdout_width() -> Option<usize> {
    width(terminal_size_of(io::stdout())).map(usize::from)
}

/// How text looks on stderr.
pub(crate) fn stderr_style(color: impl Into<ColorChoice>) -> Style {
    Style::choose(color.into(), width(terminal_size_of(io::stderr())), |name| std::env::var_os(name))
}

/// Columns; `None` when the stream is no terminal.
fn width(size: Option<(Width, terminal_size::Height)>) -> Option<u16> {
    size.map(|(Width(columns), _)| columns)
}
