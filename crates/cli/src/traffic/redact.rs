//! Redaction as the commands on recordings do it: the rules of the flags, and a second look at what was written before a secret was known.

use std::path::Path;

use squall_traffic::redact::{Redactor, Rules};
use squall_traffic::store::{Recording, replace};
use squall_traffic::{ImportError, ImportOptions, ReadOptions, import, open};

use crate::args::RedactArgs;
use crate::failure::Failure;

/// The rules of the flags and of the file.
pub(super) fn rules(args: &RedactArgs) -> Result<Rules, Failure> {
    let mut rules = Rules::default();
    // The flags were checked when they were read.
    let added = args.redact.iter().try_for_each(|rule| rules.redact(rule));
    added
        .and_then(|()| args.keep.iter().try_for_each(|name| rules.keep(name)))
        .map_err(|error| Failure::usage(error.reason, error.help))?;
    if let Some(path) = &args.redact_rules {
        let text = squall_plan::files::read_text(path, squall_plan::limits::PLAN_FILE_BYTES_MAX)
            .map_err(|error| Failure::file("--redact-rules", path, &error))?;
        rules.read(&text).map_err(|(line_number, error)| {
            Failure::usage(format!("{}:{line_number}: {}", path.display(), error.reason), error.help)
        })?;
    }
    Ok(rules)
}

/// Whether any flag says what is a secret.
pub(super) fn has_rules(args: &RedactArgs) -> bool {
    !args.redact.is_empty() || !args.keep.is_empty() || args.redact_rules.is_some()
}

/// Whether a recording in order is finished: it holds no secret that was found after its record was written.
pub(super) fn is_swept(path: &Path, redactor: &Redactor) -> Result<bool, Failure> {
    let unreadable = |error: &dyn std::fmt::Display| Failure::usage(error.to_string(), "record again");
    let recording = Recording::open(path).map_err(|error| unreadable(&error))?;
    let mut cursor = recording.cursor(1 << 20);
    while let Some(frame) = cursor.peek().map_err(|error| unreadable(&error))? {
        let record = cursor.record(&frame).map_err(|error| unreadable(&error))?;
        if record.is_some_and(|mut record| redactor.sweep(&mut record)) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Writes a recording again: in order, and without the secrets that the redactor knows by now.
pub(super) fn rewrite(path: &Path, redactor: Option<&Redactor>) -> Result<(), Failure> {
    let source = open(path, &ReadOptions::default());
    let mut source = source.map_err(|error| Failure::usage(error.to_string(), error.help()))?;
    let options = ImportOptions { skip_bad: true };
    let written: Result<_, ImportError> = replace(path, |writer| {
        let mut sweep = |record: &mut squall_traffic::Record| {
            if let Some(redactor) = redactor {
                redactor.sweep(record);
            }
            true
        };
        import(source.as_mut(), writer, options, &mut sweep, &mut |_| {})
    });
    written.map_err(|error| Failure::usage(error.to_string(), "check the space left"))?;
    Recording::open(path).map(drop).map_err(|error| Failure::usage(error.to_string(), "record again"))
}
