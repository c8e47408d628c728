//! How text looks on the stream it goes to: colours, symbols, width.
//!
//! Faces are composed in Unicode with colour marks; [`Style`] decides what of that reaches the stream. Meaning is never
//! carried by colour or by a symbol alone: each has a word as well.
//! Never reads the environment: the caller passes a look-up, so that tests need none.

use std::ffi::OsString;

/// What the user asked for with `--color`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ColorChoice {
    /// Colours on a terminal that can show them.
    #[default]
    Auto,
    /// Colours, whatever the stream is.
    Always,
    /// No colours.
    Never,
}

/// The meaning of a piece of text; drawn as a colour where there are colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Tone {
    /// Plain text.
    #[default]
    Plain,
    /// A section's title.
    Title,
    /// Next to the point.
    Faint,
    /// Good.
    Good,
    /// Needs attention.
    Warning,
    /// Bad.
    Bad,
    /// A hint or a path.
    Hint,
}

/// What a stream can show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Style {
    /// Whether colours are written.
    pub color: bool,
    /// Whether the stream's locale knows Unicode; if not, every symbol has an ASCII stand-in of the same width.
    pub unicode: bool,
    /// Columns to fill at most.
    pub width: usize,
}

impl Style {
    /// What is written to files: no colours, Unicode, 80 columns.
    pub const FILE: Self = Self { color: false, unicode: true, width: WIDTH_DEFAULT };

    /// Decides for a stream. `terminal_width` is `None` when the stream is no terminal; `env` looks a variable up.
    pub fn choose(
        choice: ColorChoice,
        terminal_width: Option<u16>,
        env: impl Fn(&str) -> Option<OsString>,
    ) -> Self {
        let width = terminal_width.map_or(WIDTH_DEFAULT, usize::from);
        Self {
            color: wants_color(choice, terminal_width.is_some(), &env),
            unicode: is_unicode_locale(&env),
            width: width.min(WIDTH_MAX),
        }
    }

    /// `text` in the colour of `tone`.
    pub fn paint(self, tone: Tone, text: &str) -> String {
        match sequence(tone) {
            Some(code) if self.color && !text.is_empty() => format!("\x1b[{code}m{text}\x1b[0m"),
            _ => text.to_owned(),
        }
    }

    /// `text` in the characters that the stream can show; its width stays.
    pub fn encode(self, text: &str) -> String {
        if self.unicode { text.to_owned() } else { text.chars().map(ascii).collect() }
    }
}

/// The order is that of the de-facto standards: what was typed, then <https://no-color.org>, then
/// <https://bixense.com/clicolors>, then what the terminal can do. An empty `NO_COLOR` counts, as in k6.
fn wants_color(choice: ColorChoice, is_terminal: bool, env: &impl Fn(&str) -> Option<OsString>) -> bool {
    match choice {
        ColorChoice::Always => true,
        ColorChoice::Never => false,
        ColorChoice::Auto if env("NO_COLOR").is_some() => false,
        ColorChoice::Auto if env("CLICOLOR_FORCE").is_some_and(|value| value != "0") => true,
        ColorChoice::Auto => is_terminal && env("TERM").is_none_or(|term| term != "dumb"),
    }
}

/// POSIX: the first of these three that is set and not empty names the character set.
fn is_unicode_locale(env: &impl Fn(&str) -> Option<OsString>) -> bool {
    let locale =
        ["LC_ALL", "LC_CTYPE", "LANG"].iter().filter_map(|name| env(name)).find(|value| !value.is_empty());
    let locale = locale.unwrap_or_default().to_string_lossy().to_ascii_lowercase();
    locale.contains("utf-8") || locale.contains("utf8")
}

fn sequence(tone: Tone) -> Option<&'static str> {
    match tone {
        Tone::Plain => None,
        Tone::Title => Some("1"),
        Tone::Faint => Some("2"),
        Tone::Good => Some("32"),
        Tone::Warning => Some("33"),
        Tone::Bad => Some("31"),
        Tone::Hint => Some("36"),
    }
}

/// A stand-in of the same width for each symbol that the faces use.
fn ascii(symbol: char) -> char {
    match symbol {
        '✓' => '+',
        '✗' => 'x',
        'µ' => 'u',
        '…' => '~',
        '█' => '#',
        '░' | '·' => '.',
        '─' => '-',
        other if other.is_ascii() => other,
        _ => '?',
    }
}

/// Columns of a stream that is no terminal.
const WIDTH_DEFAULT: usize = 80;

/// Wider lines are hard to read across.
const WIDTH_MAX: usize = 120;

#[cfg(test)]
mod tests {
    use super::*;

    fn choose(choice: ColorChoice, width: Option<u16>, vars: &[(&str, &str)]) -> Style {
        let find =
            |name: &str| vars.iter().find(|(key, _)| *key == name).map(|(_, value)| OsString::from(value));
        Style::choose(choice, width, find)
    }

    #[test]
    fn colour_follows_the_flag_then_the_environment_then_the_terminal() {
        use ColorChoice::{Always, Auto, Never};
        let tty = Some(80);
        let cases = [
            (Auto, tty, vec![("TERM", "xterm")], true),
            (Auto, None, vec![("TERM", "xterm")], false),
            (Auto, tty, vec![("TERM", "dumb")], false),
            (Auto, tty, vec![("NO_COLOR", "")], false),
            (Auto, None, vec![("CLICOLOR_FORCE", "1")], true),
            (Auto, None, vec![("CLICOLOR_FORCE", "0")], false),
            (Auto, tty, vec![("NO_COLOR", "1"), ("CLICOLOR_FORCE", "1")], false),
            (Always, None, vec![("NO_COLOR", "1")], true),
            (Never, tty, vec![("CLICOLOR_FORCE", "1")], false),
        ];
        for (choice, width, vars, expected) in cases {
            assert_eq!(choose(choice, width, &vars).color, expected, "{choice:?} {width:?} {vars:?}");
        }
    }

    #[test]
    fn unicode_follows_the_first_locale_variable_that_is_set() {
        let cases: [(&[(&str, &str)], bool); 5] = [
            (&[], false),
            (&[("LANG", "en_US.UTF-8")], true),
            (&[("LANG", "C")], false),
            (&[("LC_ALL", "C"), ("LANG", "en_US.UTF-8")], false),
            (&[("LC_ALL", ""), ("LC_CTYPE", "C.utf8")], true),
        ];
        for (vars, expected) in cases {
            assert_eq!(choose(ColorChoice::Auto, None, vars).unicode, expected, "{vars:?}");
        }
    }

    #[test]
    fn ascii_keeps_the_width() {
        let style = Style { unicode: false, ..Style::FILE };
        assert_eq!(style.encode("✓ 12.4 µs … é"), "+ 12.4 us ~ ?");
    }

    #[test]
    fn no_escape_is_written_without_colours() {
        assert_eq!(Style::FILE.paint(Tone::Bad, "failed"), "failed");
        assert_eq!(Style { color: true, ..Style::FILE }.paint(Tone::Bad, "x"), "\x1b[31mx\x1b[0m");
    }
}
