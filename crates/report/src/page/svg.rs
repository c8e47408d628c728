//! Line charts as SVG: for pages without the built viewer, and for documents.
//!
//! Lines differ by dash as well as by colour, so that they can be distinguished in print and by everyone.

use std::fmt::Write;

use super::escaped;

/// A chart.
#[derive(Debug, Clone)]
pub(crate) struct Chart<'a> {
    /// Above it.
    pub(crate) title: &'a str,
    /// Below the x axis.
    pub(crate) x_label: &'a str,
    /// Next to the y axis.
    pub(crate) y_label: &'a str,
    /// Where x values lie.
    pub(crate) x: Axis,
    /// Where y values lie.
    pub(crate) y: Axis,
    /// Name and points of each line; points that an axis cannot show are left out.
    pub(crate) lines: Vec<(String, Vec<(f64, f64)>)>,
}

/// How an axis divides its range, and how it writes a value.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Axis {
    /// Whether equal ratios are equally far apart; then only values above zero are shown.
    pub(crate) is_log: bool,
    /// A value in words.
    pub(crate) text: fn(f64) -> String,
}

impl Chart<'_> {
    /// The SVG element. Without any point it says so.
    pub(crate) fn draw(&self) -> String {
        let title = escaped(self.title);
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{title}\" \
             font-family=\"system-ui, sans-serif\" font-size=\"12\">\n<style>{STYLE}</style>\n\
             <text class=\"t\" x=\"{LEFT}\" y=\"18\" font-size=\"14\" font-weight=\"600\">{title}</text>\n"
        );
        match self.frame() {
            Some(frame) => self.draw_in(&frame, &mut svg),
            None => writeln!(svg, "<text class=\"l\" x=\"{LEFT}\" y=\"60\">nothing was measured</text>")
                .unwrap_or_default(),
        }
        svg + "</svg>\n"
    }

    fn draw_in(&self, frame: &Frame, svg: &mut String) {
        for value in frame.x.ticks() {
            let (x, text) = (frame.x.at(value), escaped(&(self.x.text)(value)));
            let _ = writeln!(
                svg,
                "<path class=\"g\" d=\"M{x:.1} {TOP}V{BOTTOM}\"/><text class=\"l\" x=\"{x:.1}\" y=\"{}\" text-anchor=\"middle\">{text}</text>",
                BOTTOM + 16.0
            );
        }
        for value in frame.y.ticks() {
            let (y, text) = (frame.y.at(value), escaped(&(self.y.text)(value)));
            let _ = writeln!(
                svg,
                "<path class=\"g\" d=\"M{LEFT} {y:.1}H{RIGHT}\"/><text class=\"l\" x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{text}</text>",
                LEFT - 6.0,
                y + 4.0
            );
        }
        let _ = writeln!(
            svg,
            "<text class=\"l\" x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
            (LEFT + RIGHT) / 2.0,
            BOTTOM + 34.0,
            escaped(self.x_label)
        );
        let _ = writeln!(
            svg,
            "<text class=\"l\" x=\"14\" y=\"{0}\" text-anchor=\"middle\" transform=\"rotate(-90 14 {0})\">{1}</text>",
            (TOP + BOTTOM) / 2.0,
            escaped(self.y_label)
        );
        for (idx, (name, points)) in self.lines.iter().enumerate() {
            self.draw_line(frame, idx, name, points, svg);
        }
    }

    fn draw_line(&self, frame: &Frame, idx: usize, name: &str, points: &[(f64, f64)], svg: &mut String) {
        let shown = points.iter().filter(|&&(x, y)| self.x.shows(x) && self.y.shows(y));
        let places: Vec<(f64, f64)> = shown.map(|&(x, y)| (frame.x.at(x), frame.y.at(y))).collect();
        let path: Vec<String> = places.iter().map(|(x, y)| format!("{x:.1} {y:.1}")).collect();
        let (color, dash) = (COLORS[idx % COLORS.len()], DASHES[idx / 2 % DASHES.len()]);
        let look = format!("stroke=\"{color}\" stroke-dasharray=\"{dash}\"");
        let _ = writeln!(
            svg,
            "<path d=\"M{}\" fill=\"none\" stroke-width=\"2\" stroke-linejoin=\"round\" {look}/>",
            path.join("L")
        );
        if places.len() <= DOT_COUNT_MAX {
            for (x, y) in places {
                let _ = write!(svg, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\" fill=\"{color}\"/>");
            }
        }
        let y = TOP + 8.0 + idx as f64 * 18.0;
        let _ = writeln!(
            svg,
            "<path d=\"M{} {y}h22\" fill=\"none\" stroke-width=\"2\" {look}/><text class=\"l\" x=\"{}\" y=\"{}\">{}</text>",
            RIGHT + 12.0,
            RIGHT + 40.0,
            y + 4.0,
            escaped(name)
        );
    }

    fn frame(&self) -> Option<Frame> {
        let shown = || {
            self.lines
                .iter()
                .flat_map(|(_, points)| points)
                .filter(|&&(x, y)| self.x.shows(x) && self.y.shows(y))
        };
        let x = Scale::new(self.x, shown().map(|point| point.0), (LEFT, RIGHT))?;
        let y = Scale::new(self.y, shown().map(|point| point.1), (BOTTOM, TOP))?;
        Some(Frame { x, y })
    }
}

impl Axis {
    fn shows(self, value: f64) -> bool {
        value.is_finite() && (!self.is_log || value > 0.0)
    }
}

struct Frame {
    x: Scale,
    y: Scale,
}

/// From values to places.
struct Scale {
    is_log: bool,
    from: f64,
    to: f64,
    places: (f64, f64),
}

impl Scale {
    /// Over all values; a linear scale begins at zero.
    fn new(axis: Axis, values: impl Iterator<Item = f64> + Clone, places: (f64, f64)) -> Option<Self> {
        let max = values.clone().reduce(f64::max)?;
        let min = values.reduce(f64::min)?;
        let (from, to) = if axis.is_log {
            (min, if max > min { max } else { min * 10.0 })
        } else {
            (min.min(0.0), if max > 0.0 { max * 1.04 } else { 1.0 })
        };
        Some(Self { is_log: axis.is_log, from, to, places })
    }

    fn at(&self, value: f64) -> f64 {
        let share = if self.is_log {
            (value / self.from).ln() / (self.to / self.from).ln()
        } else {
            (value - self.from) / (self.to - self.from)
        };
        self.places.0 + share * (self.places.1 - self.places.0)
    }

    /// Round values within the range: powers of ten with 2 and 5 between them, or some five steps of 1, 2 or 5.
    fn ticks(&self) -> Vec<f64> {
        if !self.is_log {
            let step = round_step((self.to - self.from) / 5.0);
            let first = (self.from / step).ceil() as i64;
            return (first..).map(|n| n as f64 * step).take_while(|value| *value <= self.to).collect();
        }
        let decades = (self.from.log10().floor() as i32)..=(self.to.log10().ceil() as i32);
        let marks: &[f64] = if (self.to / self.from).log10() > 4.0 { &[1.0] } else { &[1.0, 2.0, 5.0] };
        let all = decades.flat_map(|decade| marks.iter().map(move |mark| mark * 10f64.powi(decade)));
        all.filter(|value| *value >= self.from * 0.999 && *value <= self.to * 1.001).collect()
    }
}

fn round_step(rough: f64) -> f64 {
    let decade = 10f64.powf(rough.log10().floor());
    [1.0, 2.0, 5.0].into_iter().map(|mark| mark * decade).find(|step| *step >= rough).unwrap_or(10.0 * decade)
}

/// Okabe and Ito's palette, which colour-blind readers tell apart; its yellow is too faint on white.
const COLORS: [&str; 7] = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7f7f7f"];

const DASHES: [&str; 3] = ["", "7 3", "2 3"];

const STYLE: &str = ".l{fill:#555}.t{fill:#222}.g{stroke:#8886;stroke-width:.5}@media(prefers-color-scheme:dark){.l{fill:#aaa}.t{fill:#eee}}";

const WIDTH: f64 = 860.0;
const HEIGHT: f64 = 360.0;
const LEFT: f64 = 78.0;
const RIGHT: f64 = 690.0;
const TOP: f64 = 34.0;
const BOTTOM: f64 = 308.0;

/// With more points than this, dots hide the line.
const DOT_COUNT_MAX: usize = 40;

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(is_log: bool, points: &[(f64, f64)]) -> String {
        let axis = Axis { is_log, text: |value| format!("{value}") };
        Chart {
            title: "a<b",
            x_label: "x",
            y_label: "y",
            x: axis,
            y: axis,
            lines: vec![("line".to_owned(), points.to_vec())],
        }
        .draw()
    }

    #[test]
    fn nothing_single_values_and_absurd_ones_draw_without_a_nan() {
        for points in [
            &[][..],
            &[(0.0, 0.0)],
            &[(1.0, 1.0)],
            &[(f64::NAN, 1.0), (1.0, f64::INFINITY)],
            &[(1e-9, 1e12), (5.0, 2.0)],
        ] {
            for is_log in [false, true] {
                let svg = chart(is_log, points);
                assert!(svg.ends_with("</svg>\n") && svg.contains("a&lt;b"));
                assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
            }
        }
        assert!(chart(true, &[]).contains("nothing was measured"));
    }

    #[test]
    fn ticks_are_round_and_inside() {
        let axis = |is_log| Axis { is_log, text: |value| format!("{value}") };
        let ticks = |is_log, values: [f64; 2]| {
            Scale::new(axis(is_log), values.into_iter(), (0.0, 1.0)).unwrap().ticks()
        };
        assert_eq!(ticks(false, [0.0, 9.0]), [0.0, 2.0, 4.0, 6.0, 8.0]);
        assert_eq!(ticks(true, [6.0, 100.0]), [10.0, 20.0, 50.0, 100.0]);
    }
}
