//! The line of a script that an error is about, with a mark below the place.

use std::path::Path;

use squall_plan::files::read_text;
use squall_plan::limits::SCRIPT_FILE_BYTES_MAX;
use squall_script::ScriptError;

/// The message of an error, with the line that it is about instead of a stack that only repeats its place.
pub(super) fn message(error: &ScriptError) -> String {
    with_line(error).unwrap_or_else(|| error.message.clone())
}

fn with_line(error: &ScriptError) -> Option<String> {
    let place = error.place.as_deref()?;
    let (text, frames) = error.message.split_once("\n\tat ")?;
    if frames.trim_start_matches("file://") != place {
        return None;
    }
    let mut parts = place.rsplitn(3, ':');
    let (column, row) = (parts.next()?.parse::<usize>().ok()?, parts.next()?.parse::<usize>().ok()?);
    let source = read_text(Path::new(parts.next()?), SCRIPT_FILE_BYTES_MAX).ok()?;
    let line = source.lines().nth(row.checked_sub(1)?)?;
    (line.len() <= LINE_BYTES_MAX).then(|| format!("{text}\n    {line}\n    {}^", up_to(line, column)))
}

/// Blanks as wide as the line before the column, which counts from 1.
fn up_to(line: &str, column: usize) -> String {
    let blank = |c: char| if c == '\t' { '\t' } else { ' ' };
    line.chars().take(column.saturating_sub(1)).map(blank).collect()
}

/// A longer line is that of a bundle, in which a mark would not be found.
const LINE_BYTES_MAX: usize = 160;

#[cfg(test)]
mod tests {
    use squall_script::ErrorKind;

    use super::*;

    #[test]
    fn the_line_replaces_a_stack_that_repeats_the_place() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let path = file.path().display();
        std::fs::write(file.path(), "a\n\tf(1;\n").unwrap();
        let error = |frames: &str, place: &str| ScriptError {
            place: Some(format!("{path}:{place}")),
            ..ScriptError::new(ErrorKind::Exception, format!("SyntaxError: x\n\tat {frames}"), "")
        };
        let same = error(&format!("file://{path}:2:5"), "2:5");
        assert_eq!(message(&same), "SyntaxError: x\n    \tf(1;\n    \t   ^");
        let deeper = error(&format!("f (file://{path}:2:5)\n\tat file://{path}:9:1"), "2:5");
        assert_eq!(message(&deeper), deeper.message);
        let gone = error(&format!("file://{path}:7:1"), "7:1");
        assert_eq!(message(&gone), gone.message);
    }
}
