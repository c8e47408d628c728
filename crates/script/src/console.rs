//! Where `console.log` and the runner's own messages go: stderr or a file, in k6's form.

use std::borrow::Cow;
use std::io::{self, Write};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use squall_plan::log_mask::masked_line;
use squall_plan::printable::printable;

/// Takes lines from every thread.
pub struct Console {
    writer: Mutex<Box<dyn Write + Send>>,
    /// Where the script's own lines go, where that is somewhere else.
    of_script: Option<Mutex<Box<dyn Write + Send>>>,
    form: Form,
    begin: Instant,
    least: Level,
}

/// A field of a line: its name and its value.
type Field<'a> = (&'a str, Cow<'a, str>);

/// How a line looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// `INFO[0001] text  source=console`, for terminals.
    Short {
        /// With colours.
        color: bool,
    },
    /// `time="…" level=info msg="text" source=console`.
    Logfmt,
    /// One JSON object.
    Json,
    /// The text alone.
    Raw,
}

/// How much a line matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// `console.debug`.
    Debug,
    /// `console.log` and `console.info`.
    Info,
    /// `console.warn`.
    Warning,
    /// `console.error`.
    Error,
}

impl std::fmt::Debug for Console {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Console").field("form", &self.form).finish_non_exhaustive()
    }
}

impl Console {
    /// A console that writes lines of at least `least` to `writer`.
    pub fn new(writer: Box<dyn Write + Send>, form: Form, least: Level) -> Self {
        Self { writer: Mutex::new(writer), of_script: None, form, begin: Instant::now(), least }
    }

    /// The same, with the script's own lines in a file.
    #[must_use]
    pub fn with_script_lines(self, file: Box<dyn Write + Send>) -> Self {
        Self { of_script: Some(Mutex::new(file)), ..self }
    }

    /// A console whose output is dropped.
    pub fn silent() -> Self {
        Self::new(Box::new(io::sink()), Form::Raw, Level::Error)
    }

    /// Writes a line. `source`: `console` for the script's own, empty for the runner's.
    pub fn line(&self, level: Level, text: &str, source: &str) {
        let field = [("source", source)];
        match &self.of_script {
            Some(file) if source == SCRIPT => self.write(file, self.form.of_file(), (level, text, &[])),
            _ => self.fields(level, text, if source.is_empty() { &[] } else { &field }),
        }
    }

    /// Writes a line with fields.
    pub fn fields(&self, level: Level, text: &str, fields: &[(&str, &str)]) {
        self.write(&self.writer, self.form, (level, text, fields));
    }

    fn write(
        &self,
        writer: &Mutex<Box<dyn Write + Send>>,
        form: Form,
        (level, text, fields): (Level, &str, &[(&str, &str)]),
    ) {
        if level < self.least {
            return;
        }
        let text = &*masked_line(text);
        let fields: Vec<_> = fields.iter().map(|(name, value)| (*name, masked_line(value))).collect();
        let line = match form {
            Form::Short { color } => short(level, text, &fields, self.begin.elapsed(), color),
            Form::Logfmt => logfmt(level, text, &fields, now()),
            Form::Json => json(level, text, &fields, now()),
            Form::Raw => format!("{text}\n"),
        };
        let mut writer = writer.lock().unwrap_or_else(PoisonError::into_inner);
        // A console that is gone must not end the run.
        let _ = writer.write_all(line.as_bytes()).and_then(|()| writer.flush());
    }
}

impl Form {
    /// The form of a file, whatever the terminal's is.
    fn of_file(self) -> Self {
        if let Self::Short { .. } = self { Self::Logfmt } else { self }
    }
}

impl Level {
    fn name(self) -> &'static str {
        match self {
            Self::Debug => "debug",
            Self::Info => "info",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }

    fn short(self) -> (&'static str, u8) {
        match self {
            Self::Debug => ("DEBU", 37),
            Self::Info => ("INFO", 36),
            Self::Warning => ("WARN", 33),
            Self::Error => ("ERRO", 31),
        }
    }
}

fn short(level: Level, text: &str, fields: &[Field<'_>], elapsed: Duration, color: bool) -> String {
    let (name, code) = level.short();
    let (begin, end) = if color { (format!("\x1b[{code}m"), "\x1b[0m") } else { (String::new(), "") };
    let text = printable(text);
    let mut line = format!("{begin}{name}{end}[{:04}] {text:<44}", elapsed.as_secs());
    for (key, value) in fields {
        line.push_str(&format!(" {begin}{key}{end}={}", quoted(value)));
    }
    line.push('\n');
    line
}

fn logfmt(level: Level, text: &str, fields: &[Field<'_>], time: Duration) -> String {
    let mut line = format!("time=\"{}\" level={} msg={}", rfc3339(time), level.name(), quoted(text));
    for (key, value) in fields {
        line.push_str(&format!(" {key}={}", quoted(value)));
    }
    line.push('\n');
    line
}

fn json(level: Level, text: &str, fields: &[Field<'_>], time: Duration) -> String {
    let mut map = serde_json::Map::new();
    map.insert("level".to_owned(), level.name().into());
    map.insert("msg".to_owned(), text.into());
    map.extend(fields.iter().map(|(key, value)| ((*key).to_owned(), (**value).into())));
    map.insert("time".to_owned(), rfc3339(time).into());
    format!("{}\n", serde_json::Value::Object(map))
}

/// As logrus does: quoted only where the text has something to quote.
fn quoted(text: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._/@^+".contains(&byte);
    if !text.is_empty() && text.bytes().all(is_plain) { text.to_owned() } else { format!("{text:?}") }
}

fn now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// `2026-08-21T09:43:41Z`.
pub(crate) fn rfc3339(since_epoch: Duration) -> String {
    let seconds = since_epoch.as_secs();
    let (year, month, day) = civil(seconds / 86_400);
    let of_day = seconds % 86_400;
    let (hour, minute, second) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// Year, month and day of a number of days since 1970, by Howard Hinnant's `civil_from_days`.
fn civil(days: u64) -> (u64, u64, u64) {
    let shifted = days + 719_468;
    let era = shifted / 146_097;
    let of_era = shifted % 146_097;
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let day_of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (year_of_era + era * 400 + u64::from(month <= 2), month, day)
}

/// Source of the script's own lines.
const SCRIPT: &str = "console";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_as_rfc3339_says() {
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_787_305_421, "2026-08-21T09:43:41Z"),
        ] {
            assert_eq!(rfc3339(Duration::from_secs(seconds)), text);
        }
    }

    #[test]
    fn lines_lose_the_secrets_of_urls_in_their_text_and_fields() {
        let said = std::sync::Arc::<Mutex<Vec<u8>>>::default();
        struct Said(std::sync::Arc<Mutex<Vec<u8>>>);
        impl Write for Said {
            fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
                self.0.lock().unwrap().write(bytes)
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let console = Console::new(Box::new(Said(said.clone())), Form::Json, Level::Info);
        console.fields(
            Level::Warning,
            "asked /?token=abc",
            &[("error", "Get \"http://u:p@x/?sig=abc\": no")],
        );
        let text = String::from_utf8(said.lock().unwrap().clone()).unwrap();
        assert!(text.contains(r"asked /?token=***"), "{text}");
        assert!(text.contains(r#"Get \"http://***@x/?sig=***\": no"#), "{text}");
    }

    #[test]
    fn logfmt_quotes_what_needs_it() {
        let line = logfmt(Level::Info, "two words", &[("source", "console".into())], Duration::ZERO);
        assert_eq!(line, "time=\"1970-01-01T00:00:00Z\" level=info msg=\"two words\" source=console\n");
    }
}
