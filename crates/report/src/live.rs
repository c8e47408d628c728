//! `--live`: the run on the whole terminal: rate, percentiles of the last second, failures by cause, the generator, and of a fleet
//! each machine.
//!
//! Owns: the terminal's state, given back when dropped and when the program panics. Drawing is a pure function of a
//! [`Glance`]. It is drawn on standard error, so that standard output can carry the result elsewhere.
//! Never: the run itself; what the keys ask for is handed to the caller.

mod machines;

use std::io::{self, IsTerminal, Stderr};
use std::panic;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::crossterm::{cursor, execute, terminal};
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style as Look};
use ratatui::symbols::{bar, border};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Paragraph, Row, Sparkline, Table, Wrap};
use ratatui::{Frame, Terminal};

use crate::glance::{Glance, KindGlance, MachineGlance, Now};
use crate::style::{Style, Tone};
use crate::summary::{Distribution, ErrorGroup};
use crate::text::clean;
use crate::{units, wording};
use machines::Machine;

/// What a key asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ask {
    /// Start nothing more, finish what is open, then report.
    Drain,
    /// Report at once.
    Abort,
}

/// The terminal while it shows a run.
#[derive(Debug)]
pub struct Live {
    terminal: Terminal<CrosstermBackend<Stderr>>,
    keys: Keys,
    style: Style,
    /// What is shown while the view is paused.
    frozen: Option<Shown>,
}

/// What is drawn.
#[derive(Debug, Clone, PartialEq)]
struct Shown {
    glance: Glance,
    machines: Vec<Machine>,
}

/// What the keys have asked for so far.
#[derive(Debug, Default, Clone, Copy)]
struct Keys {
    is_draining: bool,
    is_help_open: bool,
    is_paused: bool,
    /// Points per bar as a power of two; `None`: as many as make the whole run fit.
    scale: Option<u32>,
}

impl Live {
    /// Takes the terminal over. Fails when standard error is none.
    pub fn enter(style: Style) -> io::Result<Self> {
        if !io::stderr().is_terminal() {
            return Err(io::Error::other("standard error is not a terminal"));
        }
        restore_on_panic();
        IS_TAKEN.store(true, Ordering::SeqCst);
        take_over()
            .map(|terminal| Self { terminal, keys: Keys::default(), style, frozen: None })
            .inspect_err(|_| restore())
    }

    /// Gives the terminal back, from any thread, where one has taken it: before the program ends without dropping anything.
    pub fn restore() {
        restore();
    }

    /// Says what is being done while there is nothing else to draw.
    pub fn say(&mut self, name: &str, doing: &str) -> io::Result<()> {
        let painter = Painter { style: self.style };
        let line = Line::from(vec![
            painter.span(Tone::Title, &clean(name)),
            painter.span(Tone::Plain, &format!("   {}", clean(doing))),
        ]);
        self.terminal.draw(|frame| frame.render_widget(Paragraph::new(line), frame.area()))?;
        Ok(())
    }

    /// Draws the run as it is now and says what the keys pressed since the last call ask for.
    pub fn update(&mut self, glance: Glance, machines: &[MachineGlance<'_>]) -> io::Result<Option<Ask>> {
        let mut ask = None;
        while event::poll(Duration::ZERO)? {
            if let Event::Key(key) = event::read()? {
                ask = self.keys.press(key).or(ask);
            }
        }
        let (keys, style) = (self.keys, self.style);
        let shown = match self.frozen.take() {
            Some(frozen) if keys.is_paused => frozen,
            _ => Shown { glance, machines: machines.iter().map(Machine::from).collect() },
        };
        self.terminal.draw(|frame| draw(frame, &shown, keys, style))?;
        self.frozen = keys.is_paused.then_some(shown);
        Ok(ask)
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        restore();
    }
}

impl Keys {
    /// Raw mode takes the signal out of Ctrl-C, so that key means here what it means everywhere.
    fn press(&mut self, key: KeyEvent) -> Option<Ask> {
        let is_interrupt = key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            _ if key.kind == KeyEventKind::Release => None,
            _ if is_interrupt => self.quit(),
            KeyCode::Char('q') => self.quit(),
            KeyCode::Char(key) => {
                self.change_view(key);
                None
            }
            _ => None,
        }
    }

    fn change_view(&mut self, key: char) {
        match key {
            '?' => self.is_help_open = !self.is_help_open,
            'p' => self.is_paused = !self.is_paused,
            '-' => self.scale = Some((self.scale.unwrap_or(0) + 1).min(SCALE_MAX)),
            '+' | '=' => self.scale = Some(self.scale.unwrap_or(0).saturating_sub(1)),
            'a' => self.scale = None,
            _ => {}
        }
    }

    fn quit(&mut self) -> Option<Ask> {
        let ask = if self.is_draining { Ask::Abort } else { Ask::Drain };
        self.is_draining = true;
        Some(ask)
    }
}

fn take_over() -> io::Result<Terminal<CrosstermBackend<Stderr>>> {
    terminal::enable_raw_mode()?;
    execute!(io::stderr(), terminal::EnterAlternateScreen, cursor::Hide)?;
    Terminal::new(CrosstermBackend::new(io::stderr()))
}

/// Gives the terminal back, once. There is no one left to tell when that fails.
fn restore() {
    if IS_TAKEN.swap(false, Ordering::SeqCst) {
        let _ = terminal::disable_raw_mode();
        let _ = execute!(io::stderr(), terminal::LeaveAlternateScreen, cursor::Show);
    }
}

/// The release build aborts on a panic, so nothing is dropped: the hook must do it, and before the message is printed.
fn restore_on_panic() {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let print = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            restore();
            print(info);
        }));
    });
}

fn draw(frame: &mut Frame<'_>, shown: &Shown, keys: Keys, style: Style) {
    let painter = Painter { style };
    let Shown { glance, machines } = shown;
    let latency_height = latency_height(glance);
    let strip_height = strip_height(machines, frame.area(), latency_height);
    // What a strip of machines takes, the failures give first.
    let lower_height = if strip_height > 0 { LOWER_HEIGHT_MIN } else { 7 };
    let rows = [
        Constraint::Length(HEAD_HEIGHT),
        Constraint::Min(CHART_HEIGHT_MIN),
        Constraint::Length(latency_height),
        Constraint::Length(strip_height),
        Constraint::Length(lower_height),
        Constraint::Length(1),
    ];
    let [head, charts, latency, strip, lower, foot] = Layout::vertical(rows).areas(frame.area());
    frame.render_widget(painter.head(glance, keys), head);
    painter.charts(frame, glance, keys, charts);
    frame.render_widget(painter.latency(glance, latency.width), latency);
    if strip_height > 0 {
        frame.render_widget(machines::strip(painter, machines, strip), strip);
    }
    let [errors, generator] = Layout::horizontal([Constraint::Fill(2), Constraint::Fill(1)]).areas(lower);
    frame.render_widget(painter.errors(&glance.errors), errors);
    frame.render_widget(painter.generator(glance), generator);
    frame.render_widget(painter.foot(keys), foot);
}

/// Of what the other blocks leave, a strip of machines may take all but one small chart.
fn strip_height(machines: &[Machine], area: Rect, latency_height: u16) -> u16 {
    let others = HEAD_HEIGHT + CHART_HEIGHT_MIN + latency_height + LOWER_HEIGHT_MIN + 1;
    machines::height(machines, area.width, area.height.saturating_sub(others))
}

/// A frame, a line of names, and one for the last second and one for the whole, or one for each kind.
fn latency_height(glance: &Glance) -> u16 {
    FRAME + 1 + (glance.kinds.len() as u16).max(2)
}

/// Makes the widgets in the stream's style.
#[derive(Clone, Copy)]
struct Painter {
    style: Style,
}

impl Painter {
    fn head(self, glance: &Glance, keys: Keys) -> Paragraph<'static> {
        let name = self.span(Tone::Title, &clean(&glance.name));
        let state =
            if keys.is_draining { "finishing open requests; press q again to stop at once" } else { "" };
        let whole =
            glance.goal.duration.map_or(String::new(), |duration| format!(" / {}", units::clock(duration)));
        let time = self.span(Tone::Plain, &format!("{}{whole}", units::clock(glance.elapsed)));
        let counts = Line::from(std::iter::once(time).chain(self.counts(glance)).collect::<Vec<_>>());
        let phase = glance.phase.as_ref().map_or(String::new(), |phase| format!("   {}", clean(phase)));
        let phase = self.span(Tone::Plain, &phase);
        Paragraph::new(vec![
            Line::from(vec![name, phase, Span::raw("   "), self.span(Tone::Warning, state)]),
            counts,
        ])
    }

    /// How many ended well and badly; of each kind where there are several.
    fn counts(self, glance: &Glance) -> Vec<Span<'static>> {
        let bad =
            |text: String, count: u64| self.span(if count > 0 { Tone::Bad } else { Tone::Plain }, &text);
        if glance.kinds.is_empty() {
            let ok = self.span(Tone::Plain, &format!("   ok {}   ", units::count(glance.ok)));
            return vec![ok, bad(format!("failed {}", units::count(glance.failed)), glance.failed)];
        }
        let of_kind = |one: &KindGlance| {
            let ok = self.span(Tone::Plain, &format!("   {} {}", one.words(), units::count(one.ok)));
            let failed = || bad(format!(" ({} failed)", one.failed_words()), one.failed);
            std::iter::once(ok).chain((one.failed > 0).then(failed)).collect::<Vec<_>>()
        };
        glance.kinds.iter().flat_map(of_kind).collect()
    }

    /// Rate and tail over time; where only one fits, the rate. Of several kinds the rate of each.
    fn charts(self, frame: &mut Frame<'_>, glance: &Glance, keys: Keys, area: Rect) {
        if !glance.kinds.is_empty() {
            return self.rates_by_kind(frame, &glance.kinds, keys, area);
        }
        if area.height < 2 * (CHART_HEIGHT_MIN - 1) {
            return self.rate(frame, glance, keys, area);
        }
        let [rate, tail] = Layout::vertical([Constraint::Fill(1), Constraint::Fill(1)]).areas(area);
        self.rate(frame, glance, keys, rate);
        self.tail(frame, glance, keys, tail);
    }

    fn rate(self, frame: &mut Frame<'_>, glance: &Glance, keys: Keys, area: Rect) {
        let now = glance.now.as_ref().map_or_else(|| "-".to_owned(), |now| units::rate(now.rate_per_s));
        let title = format!("{}s per second: {now}", glance.noun);
        self.bars(frame, area, &title, &glance.rates_per_s, keys, mean);
    }

    /// As many as fit, one below the other.
    fn rates_by_kind(self, frame: &mut Frame<'_>, kinds: &[KindGlance], keys: Keys, area: Rect) {
        let space = usize::from(area.height / (CHART_HEIGHT_MIN - 1)).clamp(1, kinds.len());
        let areas = Layout::vertical(vec![Constraint::Fill(1); space]).split(area);
        for (one, area) in kinds.iter().zip(areas.iter()) {
            let now = one.rates_per_s.last().map_or_else(|| "-".to_owned(), |rate| units::rate(*rate as f64));
            let title = format!("{} per second: {now}", one.words());
            self.bars(frame, *area, &title, &one.rates_per_s, keys, mean);
        }
    }

    /// Of several seconds in one bar the worst, because percentiles are never averaged.
    fn tail(self, frame: &mut Frame<'_>, glance: &Glance, keys: Keys, area: Rect) {
        let now = wording::time(glance.now.as_ref().and_then(|now| now.latency_us.p99));
        let worst = |bar: &[u64]| bar.iter().copied().max().unwrap_or(0);
        self.bars(
            frame,
            area,
            &format!("99th percentile of {}: {now}", glance.latency_words()),
            &glance.p99_us,
            keys,
            worst,
        );
    }

    fn bars(
        self,
        frame: &mut Frame<'_>,
        area: Rect,
        title: &str,
        all: &[u64],
        keys: Keys,
        fold: fn(&[u64]) -> u64,
    ) {
        let space = usize::from(area.width.saturating_sub(2)).max(1);
        let per_bar = keys.scale.map_or_else(|| all.len().div_ceil(space).max(1), |scale| 1 << scale);
        let scale = if per_bar > 1 { format!("   {per_bar} points per bar") } else { String::new() };
        // Whole bars are counted from the start, so that they do not change as the run goes on.
        let bars: Vec<u64> = all.chunks(per_bar).map(fold).collect();
        let newest = &bars[bars.len().saturating_sub(space)..];
        let set = if self.style.unicode { bar::NINE_LEVELS } else { ASCII_BARS };
        let line =
            Sparkline::default().data(newest.iter().copied()).bar_set(set).style(self.look(Tone::Hint));
        frame.render_widget(line.block(self.block(&format!("{title}{scale}"))), area);
    }

    /// As many figures as fit: one that is cut would be read as another.
    fn latency(self, glance: &Glance, width: u16) -> Table<'static> {
        let space = width.saturating_sub(FRAME + LATENCY_NAME_WIDTH) / (LATENCY_WIDTH + 1);
        let shown = |figure: &&LatencyFigure| figure.rank < space;
        let head = LATENCY_FIGURES.iter().filter(shown).map(|figure| self.right(Tone::Faint, figure.name));
        let row = |name: &str, times: &Distribution| {
            let cells = LATENCY_FIGURES.iter().filter(shown);
            let cells = cells.map(|figure| self.right(Tone::Plain, &(figure.text)(times)));
            Row::new(std::iter::once(Line::from(name.to_owned())).chain(cells).collect::<Vec<_>>())
        };
        let of_now = glance.now.as_ref().map(|now| now.latency_us).unwrap_or_default();
        let mut rows = vec![Row::new(std::iter::once(Line::default()).chain(head).collect::<Vec<_>>())];
        if glance.kinds.is_empty() {
            rows.extend([row("last second", &of_now), row("so far", &glance.latency_us)]);
        }
        rows.extend(glance.kinds.iter().map(|one| row(&one.times_words(), &one.latency_us)));
        let columns = LATENCY_FIGURES.iter().filter(shown).map(|_| Constraint::Length(LATENCY_WIDTH));
        let widths = std::iter::once(Constraint::Length(LATENCY_NAME_WIDTH)).chain(columns);
        let title =
            if glance.latency_words() == "latency" { "latency of successes" } else { glance.latency_words() };
        Table::new(rows, widths).block(self.block(title))
    }

    fn errors(self, errors: &[ErrorGroup]) -> Paragraph<'static> {
        let line = |group: &ErrorGroup| {
            let text = format!("{} {}", wording::cause(group.cause), wording::phase(group.phase));
            Line::from(vec![
                self.span(Tone::Bad, &format!("{:>9}  ", units::count(group.count))),
                self.span(Tone::Plain, &text),
            ])
        };
        let lines: Vec<Line<'static>> = errors.iter().map(line).collect();
        let lines = if lines.is_empty() { vec![self.span(Tone::Faint, "none").into()] } else { lines };
        Paragraph::new(lines).block(self.block("failures"))
    }

    fn generator(self, glance: &Glance) -> Paragraph<'static> {
        let lines = glance.now.as_ref().map_or(Vec::new(), |now| self.generator_lines(glance, now));
        Paragraph::new(lines).wrap(Wrap { trim: true }).block(self.block("generator"))
    }

    fn generator_lines(self, glance: &Glance, now: &Now) -> Vec<Line<'static>> {
        let tone = if now.busy > BUSY_WARNING { Tone::Warning } else { Tone::Plain };
        let mut lines = vec![
            self.span(tone, &format!("busy {}", units::percent(now.busy))).into(),
            self.span(Tone::Plain, &units::counted(now.connections_open, "connection")).into(),
        ];
        if let Some(count) = glance.streams_open {
            lines.push(self.span(Tone::Plain, &format!("{} open", units::counted(count, "stream"))).into());
        }
        if let Some(lag) = now.schedule_lag_us_p99 {
            lines.push(self.span(Tone::Plain, &format!("lag p99 {}", units::latency(lag.0))).into());
        }
        if now.arrivals_waiting > 0 {
            lines.push(
                self.span(Tone::Warning, &format!("{} waiting", units::count(now.arrivals_waiting))).into(),
            );
        }
        lines
    }

    fn foot(self, keys: Keys) -> Paragraph<'static> {
        let help = "q finish and report   q again at once   - + a scale   p pause   ? close";
        let text = match keys {
            Keys { is_help_open: true, .. } => help,
            Keys { is_paused: true, .. } => "paused: the run goes on   p continue   q quit   ? help",
            _ => "q quit   ? help",
        };
        Paragraph::new(self.span(Tone::Faint, text))
    }

    fn block(self, title: &str) -> Block<'static> {
        let set = if self.style.unicode { border::ROUNDED } else { ASCII_BORDER };
        Block::bordered()
            .border_set(set)
            .border_style(self.look(Tone::Faint))
            .title(self.span(Tone::Title, title))
    }

    fn right(self, tone: Tone, text: &str) -> Line<'static> {
        Line::from(self.span(tone, text)).right_aligned()
    }

    fn span(self, tone: Tone, text: &str) -> Span<'static> {
        Span::styled(self.style.encode(text), self.look(tone))
    }

    fn look(self, tone: Tone) -> Look {
        let plain = Look::new();
        match tone {
            _ if !self.style.color => plain,
            Tone::Plain => plain,
            Tone::Title => plain.add_modifier(Modifier::BOLD),
            Tone::Faint => plain.dim(),
            Tone::Good => plain.fg(Color::Green),
            Tone::Warning => plain.fg(Color::Yellow),
            Tone::Bad => plain.fg(Color::Red),
            Tone::Hint => plain.fg(Color::Cyan),
        }
    }
}

/// Of several seconds in one bar.
fn mean(bar: &[u64]) -> u64 {
    bar.iter().sum::<u64>() / bar.len().max(1) as u64
}

/// A column of the latencies.
struct LatencyFigure {
    name: &'static str,
    /// The first one goes last where not all fit.
    rank: u16,
    text: fn(&Distribution) -> String,
}

const LATENCY_FIGURES: [LatencyFigure; 6] = [
    LatencyFigure { name: "p50", rank: 0, text: |times| wording::time(times.p50) },
    LatencyFigure { name: "p90", rank: 4, text: |times| wording::time(times.p90) },
    LatencyFigure { name: "p99", rank: 1, text: |times| wording::time(times.p99) },
    LatencyFigure { name: "p99.9", rank: 3, text: |times| wording::time(times.p99_9) },
    LatencyFigure { name: "max", rank: 2, text: |times| wording::time(times.max) },
    LatencyFigure { name: "count", rank: 5, text: |times| units::count_short(times.count) },
];

const LATENCY_NAME_WIDTH: u16 = 12;

/// Of the widest time.
const LATENCY_WIDTH: u16 = 9;

/// Columns, or lines, of a frame.
const FRAME: u16 = 2;

const HEAD_HEIGHT: u16 = 2;

/// A frame and two lines.
const CHART_HEIGHT_MIN: u16 = 4;

/// A frame and three lines of failures.
const LOWER_HEIGHT_MIN: u16 = 5;

/// Whether the terminal is ours: there is one per process, and the panic hook has no other way to know.
static IS_TAKEN: AtomicBool = AtomicBool::new(false);

/// 64 seconds a bar: an hour in a narrow terminal.
const SCALE_MAX: u32 = 6;

/// From here on the event loops' own queueing begins to show in the latencies.
const BUSY_WARNING: f64 = 0.9;

const ASCII_BORDER: border::Set<'_> = border::Set {
    top_left: "+",
    top_right: "+",
    bottom_left: "+",
    bottom_right: "+",
    vertical_left: "|",
    vertical_right: "|",
    horizontal_top: "-",
    horizontal_bottom: "-",
};

const ASCII_BARS: bar::Set<'_> = bar::Set {
    full: "#",
    seven_eighths: "#",
    three_quarters: "#",
    five_eighths: "#",
    half: "=",
    three_eighths: "=",
    one_quarter: "-",
    one_eighth: "-",
    empty: " ",
};

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use ratatui::backend::TestBackend;
    use ratatui::buffer::Cell;

    fn press(keys: &mut Keys, code: char, modifiers: KeyModifiers) -> Option<Ask> {
        keys.press(KeyEvent::new(KeyCode::Char(code), modifiers))
    }

    #[test]
    fn first_quit_drains_and_the_second_aborts() {
        let mut keys = Keys::default();
        assert_eq!(press(&mut keys, 'x', KeyModifiers::NONE), None);
        assert_eq!(press(&mut keys, 'c', KeyModifiers::NONE), None);
        assert_eq!(press(&mut keys, 'q', KeyModifiers::NONE), Some(Ask::Drain));
        assert_eq!(press(&mut keys, 'c', KeyModifiers::CONTROL), Some(Ask::Abort));
    }

    #[test]
    fn plus_minus_and_a_scale_and_p_pauses() {
        let mut keys = Keys::default();
        let mut scale_after = |key| {
            press(&mut keys, key, KeyModifiers::NONE);
            (keys.scale, keys.is_paused)
        };
        assert_eq!(scale_after('-'), (Some(1), false));
        assert_eq!(scale_after('-'), (Some(2), false));
        assert_eq!(scale_after('+'), (Some(1), false));
        assert_eq!(scale_after('a'), (None, false));
        assert_eq!(scale_after('p'), (None, true));
        assert_eq!(scale_after('p'), (None, false));
    }

    #[test]
    fn question_mark_opens_and_closes_the_help() {
        let mut keys = Keys::default();
        press(&mut keys, '?', KeyModifiers::NONE);
        assert!(keys.is_help_open);
        press(&mut keys, '?', KeyModifiers::NONE);
        assert!(!keys.is_help_open);
    }

    /// The screen as text, one line per row.
    pub(crate) fn screen(
        glance: &Glance,
        machines: &[MachineGlance<'_>],
        style: Style,
        size: (u16, u16),
    ) -> String {
        let (width, height) = size;
        let shown = Shown { glance: glance.clone(), machines: machines.iter().map(Machine::from).collect() };
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| draw(frame, &shown, Keys::default(), style)).unwrap();
        let row =
            |cells: &[Cell]| cells.iter().map(Cell::symbol).collect::<String>().trim_end().to_owned() + "\n";
        terminal.backend().buffer().content().chunks(usize::from(width)).map(row).collect()
    }
}
