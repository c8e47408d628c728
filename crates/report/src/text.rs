//! Lays text out in columns: widths as a terminal counts them, tables, and what is unsafe to show made harmless.

use squall_plan::printable::is_invisible;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::style::{Style, Tone};

/// Text that grows line by line, drawn in one [`Style`].
#[derive(Debug)]
pub(crate) struct Page {
    style: Style,
    text: String,
}

/// A piece of a line: how it is meant, and what it says.
pub(crate) type Piece<'a> = (Tone, &'a str);

impl Page {
    pub(crate) fn new(style: Style) -> Self {
        Self { style, text: String::new() }
    }

    /// Columns that a line may fill.
    pub(crate) fn width(&self) -> usize {
        self.style.width.max(WIDTH_MIN)
    }

    /// Adds one line made of pieces.
    pub(crate) fn line(&mut self, pieces: &[Piece<'_>]) {
        let mut line = String::new();
        for (tone, text) in pieces {
            line.push_str(&self.style.paint(*tone, &self.style.encode(text)));
        }
        self.text.push_str(line.trim_end());
        self.text.push('\n');
    }

    /// Adds an empty line.
    pub(crate) fn gap(&mut self) {
        self.text.push('\n');
    }

    /// Adds a paragraph: `first` before its first line, as many spaces before the others.
    pub(crate) fn paragraph(&mut self, first: Piece<'_>, body: &str) {
        let indent = first.1.width();
        let space = self.width().saturating_sub(indent);
        for (idx, text) in wrap(body, space).iter().enumerate() {
            let spaces = " ".repeat(indent);
            let head = if idx == 0 { first } else { (Tone::Plain, spaces.as_str()) };
            self.line(&[head, (Tone::Plain, text)]);
        }
    }

    /// Adds a table, its first column cut as far as needed to fit the page.
    pub(crate) fn table(&mut self, table: &Table) {
        let widths = table.widths(self.width());
        for row in &table.rows {
            let cells: Vec<(Tone, String)> =
                row.iter().zip(&widths).map(|(cell, width)| (cell.tone, cell.padded(*width))).collect();
            let mut pieces: Vec<Piece<'_>> = vec![(Tone::Plain, INDENT)];
            for (idx, (tone, text)) in cells.iter().enumerate() {
                if idx > 0 {
                    pieces.push((Tone::Plain, GAP));
                }
                pieces.push((*tone, text));
            }
            self.line(&pieces);
        }
    }

    pub(crate) fn into_string(self) -> String {
        self.text
    }
}

/// Rows of cells; each column is as wide as its widest cell.
#[derive(Debug, Default)]
pub(crate) struct Table {
    rows: Vec<Vec<Cell>>,
}

impl Table {
    pub(crate) fn row(&mut self, cells: Vec<Cell>) {
        self.rows.push(cells);
    }

    /// Whether no column has to be cut.
    pub(crate) fn fits(&self, page_width: usize) -> bool {
        self.widths(usize::MAX) == self.widths(page_width)
    }

    fn widths(&self, page_width: usize) -> Vec<usize> {
        let mut widths: Vec<usize> = Vec::new();
        for row in &self.rows {
            widths.resize(widths.len().max(row.len()), 0);
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(cell.text.width());
            }
        }
        let gaps = GAP.len() * widths.len().saturating_sub(1);
        let excess = (widths.iter().sum::<usize>() + gaps + INDENT.len()).saturating_sub(page_width);
        if let Some(first) = widths.first_mut() {
            *first = first.saturating_sub(excess).max(FIRST_COLUMN_MIN.min(*first));
        }
        widths
    }
}

/// One cell of a table.
#[derive(Debug)]
pub(crate) struct Cell {
    text: String,
    tone: Tone,
    is_right: bool,
}

impl Cell {
    /// Text, to the left.
    pub(crate) fn left(text: impl Into<String>) -> Self {
        Self { text: clean(&text.into()), tone: Tone::Plain, is_right: false }
    }

    /// A figure, to the right.
    pub(crate) fn right(text: impl Into<String>) -> Self {
        Self { is_right: true, ..Self::left(text) }
    }

    pub(crate) fn tone(self, tone: Tone) -> Self {
        Self { tone, ..self }
    }

    fn padded(&self, width: usize) -> String {
        let text = shorten(&self.text, width);
        let space = " ".repeat(width.saturating_sub(text.width()));
        if self.is_right { space + &text } else { text + &space }
    }
}

/// Text from outside (URLs, messages, names) without control characters: a hostile server must not drive the terminal.
pub(crate) fn clean(text: &str) -> String {
    text.chars().map(|c| if c.is_control() || is_invisible(c) { '?' } else { c }).collect()
}

/// Cuts the middle out of text that is wider than `width`: both ends of a URL tell more than its start alone.
pub(crate) fn shorten(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let space = width.saturating_sub(1);
    let head = take_width(text.chars(), space / 3);
    let tail: String = take_width(text.chars().rev(), space - head.width()).chars().rev().collect();
    format!("{head}…{tail}")
}

fn take_width(chars: impl Iterator<Item = char>, width: usize) -> String {
    let mut used = 0;
    let fits = |c: &char| {
        used += c.width().unwrap_or(0);
        used <= width
    };
    chars.take_while(fits).collect()
}

/// Breaks text at spaces into lines of at most `width` columns; a longer word has its own line.
fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in clean(text).split(' ') {
        let line = lines.last_mut().expect("there is always a last line");
        if line.is_empty() {
            line.push_str(word);
        } else if line.width() + 1 + word.width() <= width {
            line.push(' ');
            line.push_str(word);
        } else {
            lines.push(word.to_owned());
        }
    }
    lines
}

/// Before every line of a section.
pub(crate) const INDENT: &str = "  ";

/// Between two columns.
const GAP: &str = "  ";

/// A first column is not cut below this.
const FIRST_COLUMN_MIN: usize = 12;

/// Below this, tables would lose their figures; the terminal wraps instead.
const WIDTH_MIN: usize = 60;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_text_loses_its_middle() {
        assert_eq!(shorten("http://example.com/a/b", 30), "http://example.com/a/b");
        assert_eq!(shorten("GET http://example.com/a/very/long/path", 20), "GET ht…ery/long/path");
        assert_eq!(shorten("日本語日本語日本語", 9), "日…日本語");
        assert_eq!(shorten("abc", 0), "…");
    }

    #[test]
    fn control_characters_never_reach_the_terminal() {
        assert_eq!(clean("a\x1b[31mb\r\n\u{202e}c"), "a?[31mb???c");
    }

    #[test]
    fn paragraphs_wrap_under_their_first_word() {
        let mut page = Page::new(Style { width: 60, ..Style::FILE });
        let text = "raise the limit of open files before the run, or ask for fewer connections";
        page.paragraph((Tone::Hint, "  hint: "), text);
        let expected = [
            "  hint: raise the limit of open files before the run, or ask\n",
            "        for fewer connections\n",
        ];
        assert_eq!(page.into_string(), expected.concat());
    }

    #[test]
    fn tables_align_and_fit_the_page() {
        let mut table = Table::default();
        let url = "GET http://example.com/a/path/that/is/too/long/for/the/page";
        table.row(vec![Cell::left("LATENCY"), Cell::right("p50"), Cell::right("p99")]);
        table.row(vec![Cell::left(url), Cell::right("12.4 µs"), Cell::right("1.02 s")]);
        let mut page = Page::new(Style { width: 60, ..Style::FILE });
        page.table(&table);
        let expected = [
            "  LATENCY                                        p50     p99\n",
            "  GET http://ex…at/is/too/long/for/the/page  12.4 µs  1.02 s\n",
        ];
        assert_eq!(page.into_string(), expected.concat());
    }
}
