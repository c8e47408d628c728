//! Progress while a run goes on: one line redrawn in place on a terminal, a plain line now and then elsewhere.
//!
//! Owns: what is on the last line of the stream. Never reads the clock: the glance says how late it is.

use std::io::{self, Write};
use std::time::Duration;

use squall_measure::Counted;

use crate::glance::{Glance, KindGlance};
use crate::style::{Style, Tone};
use crate::summary::LoadKind;
use crate::text::{clean, shorten};
use crate::units;

/// How progress is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProgressMode {
    /// Not at all (`--quiet`).
    Quiet,
    /// A new line every ten seconds: for logs.
    Plain,
    /// One line, redrawn at each call: for terminals.
    Redrawn,
}

/// Shows progress on a stream, usually standard error.
#[derive(Debug)]
pub struct Progress<W: Write> {
    stream: W,
    style: Style,
    mode: ProgressMode,
    is_drawn: bool,
    next_plain_at: Duration,
}

impl<W: Write> Progress<W> {
    /// Nothing is written before the first [`Progress::update`].
    pub fn new(stream: W, style: Style, mode: ProgressMode) -> Self {
        Self { stream, style, mode, is_drawn: false, next_plain_at: PLAIN_EVERY }
    }

    /// Shows the run as it is now. A stream that is gone must not end the run, so its errors are left aside.
    pub fn update(&mut self, glance: &Glance) {
        let _ = match self.mode {
            ProgressMode::Quiet => Ok(()),
            ProgressMode::Plain => self.write_plain(glance),
            ProgressMode::Redrawn => self.redraw(glance),
        };
    }

    /// Takes the redrawn line away, so that something else can be printed; the next update brings it back.
    pub fn clear(&mut self) {
        if self.is_drawn {
            self.is_drawn = false;
            let _ = write!(self.stream, "{ERASE_LINE}").and_then(|()| self.stream.flush());
        }
    }

    fn write_plain(&mut self, glance: &Glance) -> io::Result<()> {
        if glance.elapsed < self.next_plain_at {
            return Ok(());
        }
        while self.next_plain_at <= glance.elapsed {
            self.next_plain_at += PLAIN_EVERY;
        }
        let text = self.style.encode(&plain_line(glance));
        writeln!(self.stream, "{text}")
    }

    fn redraw(&mut self, glance: &Glance) -> io::Result<()> {
        let line = bar_line(glance, self.style);
        self.is_drawn = true;
        write!(self.stream, "{ERASE_LINE}{WRAP_OFF}{line}{WRAP_ON}")?;
        self.stream.flush()
    }
}

impl<W: Write> Drop for Progress<W> {
    fn drop(&mut self) {
        self.clear();
    }
}

/// `10.0 s of 2m 00s   step peak (2 of 3)   9 998/s   p50 12.4 ms   p99 341 ms   failed 12`
fn plain_line(glance: &Glance) -> String {
    let whole =
        glance.goal.duration.map_or(String::new(), |duration| format!(" of {}", units::span(duration)));
    let figures: Vec<String> =
        phase(glance).into_iter().chain(figures(glance).into_iter().map(|(_, text)| text)).collect();
    format!("{}{whole}   {}", units::span(glance.elapsed), figures.join("   "))
}

/// `████████░░░░░░░░  0:12 / 2:00   9 998/s   p50 12.4 ms   p99 341 ms   failed 12`, never wider than the terminal: a line
/// that wraps could not be redrawn.
fn bar_line(glance: &Glance, style: Style) -> String {
    let mut parts = vec![(Tone::Plain, time_text(glance))];
    parts.extend(figures(glance));
    // The last column stays free: some terminals wrap as soon as it is written.
    let space = style.width.saturating_sub(1);
    if let Some(phase) = phase(glance) {
        let phase = (Tone::Plain, phase);
        if width(&parts) + width(std::slice::from_ref(&phase)) + BAR_WIDTH_MIN <= space {
            parts.insert(1, phase);
        }
    }
    while width(&parts) + BAR_WIDTH_MIN > space && parts.len() > 1 {
        parts.pop();
    }
    if width(&parts) > space {
        return style.encode(&shorten(&parts[0].1, space));
    }
    let bar_width = space.saturating_sub(width(&parts)).min(BAR_WIDTH_MAX);
    let mut line = style.encode(&bar(glance.share_done(), bar_width));
    for (tone, text) in &parts {
        line.push_str(BETWEEN);
        line.push_str(&style.paint(*tone, &style.encode(text)));
    }
    line
}

/// What goes on besides the load; after the end, what is waited for.
fn phase(glance: &Glance) -> Option<String> {
    let is_over = glance.goal.duration.is_some_and(|duration| glance.elapsed >= duration + DRAIN_SHOWN_AFTER);
    let open = match glance.noun {
        "message" => "connection",
        "event" => "stream",
        noun => noun,
    };
    let draining = || is_over.then(|| format!("waiting for open {open}s"));
    glance.phase.as_ref().map(|phase| clean(phase)).or_else(draining)
}

/// Columns of the parts, each with the gap before it.
fn width(parts: &[(Tone, String)]) -> usize {
    parts.iter().map(|(_, text)| BETWEEN.len() + text.chars().count()).sum()
}

fn bar(share: f64, width: usize) -> String {
    let full = ((share * width as f64) as usize).min(width);
    "█".repeat(full) + &"░".repeat(width - full)
}

fn time_text(glance: &Glance) -> String {
    let elapsed = units::clock(glance.elapsed);
    match (glance.goal.duration, glance.goal.count) {
        (Some(duration), _) => format!("{elapsed} / {}", units::clock(duration)),
        (None, Some(count)) => {
            format!("{elapsed}, {} of {}", units::count(glance.settled), units::count(count))
        }
        (None, None) => elapsed,
    }
}

/// What matters now, the most important first: those at the end go when the line is too narrow.
fn figures(glance: &Glance) -> Vec<(Tone, String)> {
    if !glance.kinds.is_empty() {
        return figures_by_kind(&glance.kinds);
    }
    let mut figures = Vec::new();
    if let Some(now) = &glance.now {
        figures.push((Tone::Plain, units::rate(now.rate_per_s)));
        let times = [("p50", now.latency_us.p50), ("p99", now.latency_us.p99)];
        figures.extend(times.iter().filter_map(|(name, time)| {
            Some((Tone::Plain, format!("{name} {}", units::latency((*time)?.0))))
        }));
    }
    let open = glance.streams_open.map(|count| format!("{} open", units::counted(count, "stream")));
    figures.extend(open.map(|text| (Tone::Plain, text)));
    let failed = format!("failed {}", units::count(glance.failed));
    figures.insert(figures.len().min(1), (if glance.failed > 0 { Tone::Bad } else { Tone::Plain }, failed));
    figures
}

/// Those of requests, handshakes, messages and idle connections, which are never added up: `requests 4 998/s   messages 1 000/s   idle connections 50`.
fn figures_by_kind(kinds: &[KindGlance]) -> Vec<(Tone, String)> {
    let is_kept = |one: &KindGlance| {
        matches!(one.kind, LoadKind::IdleConnections | LoadKind::WebSockets)
            && one.counted == Counted::Operations
    };
    let rate = |one: &KindGlance| match one.rates_per_s.last() {
        _ if is_kept(one) => units::count(one.ok),
        Some(rate) => units::rate(*rate as f64),
        None => "-".to_owned(),
    };
    let figure = |one: &KindGlance| (Tone::Plain, format!("{} {}", one.words(), rate(one)));
    let mut figures: Vec<(Tone, String)> = kinds.iter().map(figure).collect();
    let failed = kinds.iter().filter(|one| one.failed > 0);
    let failed: Vec<String> = failed.map(|one| units::counted(one.failed, one.kind.noun())).collect();
    if failed.is_empty() {
        figures.push((Tone::Plain, "failed 0".to_owned()));
    } else {
        figures.insert(0, (Tone::Bad, format!("failed {}", failed.join(", "))));
    }
    figures
}

/// Most runs end within a moment of their time.
const DRAIN_SHOWN_AFTER: Duration = Duration::from_secs(1);

const PLAIN_EVERY: Duration = Duration::from_secs(10);

/// Back to the first column, and everything on the line erased (ECMA-48 EL).
const ERASE_LINE: &str = "\r\x1b[2K";

/// For a terminal that was made narrower since the style was chosen (DEC private mode 7).
const WRAP_OFF: &str = "\x1b[?7l";

const WRAP_ON: &str = "\x1b[?7h";

const BETWEEN: &str = "   ";

const BAR_WIDTH_MIN: usize = 6;

const BAR_WIDTH_MAX: usize = 30;
