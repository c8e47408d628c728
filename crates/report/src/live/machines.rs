//! The machines of a fleet in `--live`: each in a cell, with as many figures as leave space for all of them.
//!
//! Owns: how many columns and which figures. Never: the plan's order changed; a machine is found where it was.

use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;
use squall_measure::SeriesPoint;

use super::{BUSY_WARNING, FRAME, Painter};
use crate::MachineGlance;
use crate::style::Tone;
use crate::text::{clean, shorten};
use crate::units;

/// What is shown of a machine.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Machine {
    name: String,
    rate_per_s: f64,
    p99_ns: Option<u64>,
    failed: u64,
    busy: f64,
    cpu: Option<f64>,
    problem: Option<String>,
}

/// Which figures a cell has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Detail {
    Tiny,
    Short,
    Full,
}

/// Cells in columns.
#[derive(Debug, Clone, Copy)]
struct Grid {
    detail: Detail,
    name_width: usize,
    column_count: usize,
    row_count: usize,
}

impl From<&MachineGlance<'_>> for Machine {
    fn from(glance: &MachineGlance<'_>) -> Self {
        let second = glance.recorder.last_second();
        Self {
            name: clean(glance.name),
            rate_per_s: second.map_or(0.0, SeriesPoint::rate_per_s),
            p99_ns: second.and_then(|second| second.latency.quantile(0.99)),
            failed: glance.recorder.total().failed(),
            busy: second.map_or(0.0, |second| second.busy_max),
            cpu: second.and_then(|second| second.machine).map(|machine| machine.cpu_fraction),
            problem: glance.problem.map(clean),
        }
    }
}

/// Lines of the strip, its frame included, where there are at most `line_count_max`; none for a machine alone.
pub(super) fn height(machines: &[Machine], width: u16, line_count_max: u16) -> u16 {
    if machines.len() < 2 {
        return 0;
    }
    let rows = usize::from(line_count_max.saturating_sub(FRAME));
    (Grid::new(machines, usize::from(width.saturating_sub(FRAME)), rows).row_count as u16) + FRAME
}

pub(super) fn strip(painter: Painter, machines: &[Machine], area: Rect) -> Paragraph<'static> {
    let (width, rows) = (area.width.saturating_sub(FRAME), area.height.saturating_sub(FRAME));
    let grid = Grid::new(machines, usize::from(width), usize::from(rows));
    let shown_count = machines.len().min(grid.column_count * grid.row_count);
    let line = |row_idx: usize| -> Line<'static> {
        let of_row = machines[..shown_count].iter().skip(row_idx).step_by(grid.row_count);
        of_row.flat_map(|machine| grid.cell(painter, machine)).collect()
    };
    let lines: Vec<Line<'static>> = (0..grid.row_count).map(line).collect();
    Paragraph::new(lines).block(painter.block(&title(machines, shown_count)))
}

/// `machines: 20, 1 lost, 4 more than fit`.
fn title(machines: &[Machine], shown_count: usize) -> String {
    let lost_count = machines.iter().filter(|machine| machine.problem.is_some()).count();
    let lost = if lost_count > 0 { format!(", {lost_count} lost") } else { String::new() };
    let hidden_count = machines.len() - shown_count;
    let hidden = if hidden_count > 0 { format!(", {hidden_count} not shown") } else { String::new() };
    format!("machines: {}{lost}{hidden}", machines.len())
}

impl Grid {
    /// The most telling cells of which all fit; the smallest when none do.
    fn new(machines: &[Machine], width: usize, row_count_max: usize) -> Self {
        let longest = machines.iter().map(|machine| machine.name.chars().count()).max().unwrap_or(0);
        let of = |detail: Detail| {
            let name_width = longest.clamp(1, detail.name_width_max());
            let column_count = ((width + GAP) / (detail.width(name_width) + GAP)).max(1);
            let row_count = machines.len().div_ceil(column_count);
            Self { detail, name_width, column_count, row_count }
        };
        let fits =
            |grid: &Self| grid.row_count <= row_count_max && grid.detail.width(grid.name_width) <= width;
        let best = [Detail::Full, Detail::Short].into_iter().map(of).find(fits);
        best.unwrap_or_else(|| {
            let grid = of(Detail::Tiny);
            Self { row_count: grid.row_count.min(row_count_max.max(1)), ..grid }
        })
    }

    /// A cell and the gap behind it. A sign says what the colour says.
    fn cell(self, painter: Painter, machine: &Machine) -> [Span<'static>; 2] {
        let is_busy = machine.busy > BUSY_WARNING || machine.cpu.is_some_and(|cpu| cpu > BUSY_WARNING);
        let (sign, tone) = match &machine.problem {
            Some(_) => ('✗', Tone::Bad),
            None if is_busy => ('!', Tone::Warning),
            None => (' ', Tone::Plain),
        };
        let name = shorten(&machine.name, self.name_width);
        let figures = match &machine.problem {
            Some(problem) => problem.clone(),
            None => self.detail.figures(machine),
        };
        let width = self.detail.width(self.name_width);
        let text = format!("{sign} {name:<name_width$} {figures}", name_width = self.name_width);
        let text = if text.chars().count() > width { cut(&text, width) } else { text };
        [painter.span(tone, &format!("{text:<width$}")), Span::raw(" ".repeat(GAP))]
    }
}

impl Detail {
    fn name_width_max(self) -> usize {
        match self {
            Self::Tiny => 7,
            Self::Short => 12,
            Self::Full => 20,
        }
    }

    /// Of a whole cell.
    fn width(self, name_width: usize) -> usize {
        let figures = match self {
            Self::Tiny => 8,
            Self::Short => 23,
            Self::Full => 64,
        };
        2 + name_width + 1 + figures
    }

    fn figures(self, machine: &Machine) -> String {
        let rate = units::rate(machine.rate_per_s);
        let p99 = machine.p99_ns.map_or_else(|| "-".to_owned(), units::latency);
        match self {
            Self::Tiny => format!("{:>6}/s", units::count_short(machine.rate_per_s.round() as u64)),
            Self::Short => format!("{rate:>9}  p99 {p99:>8}"),
            Self::Full => {
                let cpu = machine.cpu.map_or_else(|| "-".to_owned(), units::percent);
                let (busy, failed) = (units::percent(machine.busy), units::count_short(machine.failed));
                format!("{rate:>9}  p99 {p99:>8}  busy {busy:>6}  cpu {cpu:>6}  failed {failed:>6}")
            }
        }
    }
}

fn cut(text: &str, width: usize) -> String {
    text.chars().take(width.saturating_sub(1)).chain(['…']).collect()
}

/// Columns between two cells.
const GAP: usize = 2;
