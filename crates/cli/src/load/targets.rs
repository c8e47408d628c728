//! Where requests go: the URLs of the command line and of `--urls`.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use squall_plan::limits::URLS_FILE_BYTES_MAX;
use squall_plan::urls::{Target, parse_list, parse_target};

use crate::args::HttpArgs;
use squall_plan::{OptionProblem, Problems};

/// All targets, at least one; those of the command line first.
pub(super) fn read(args: &HttpArgs) -> Result<Vec<Target>, Problems> {
    let mut problems = Problems::default();
    let mut targets: Vec<Target> = args.urls.iter().filter_map(|text| problems.take(target(text))).collect();
    if let Some(path) = &args.urls_file {
        targets.extend(problems.take(listed(path)).into_iter().flatten());
    }
    problems.end()?;
    if targets.is_empty() {
        let help = "add one, such as `squall http://localhost:8080/`";
        return Err(OptionProblem::of("URL", "no URL given", help).into());
    }
    Ok(targets)
}

fn target(text: &str) -> Result<Target, OptionProblem> {
    if !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()) {
        let help = "a number needs a flag: `-c` connections, `-n` requests, `-d` time, `-r` rate";
        return Err(OptionProblem::of("URL", format!("`{text}` is not a URL"), help).about(text));
    }
    parse_target(text).map_err(|error| OptionProblem::invalid("URL", text, &error))
}

fn listed(path: &Path) -> Result<Vec<Target>, OptionProblem> {
    let text = text_of(path).map_err(|error| OptionProblem::file("--urls", path, &error))?;
    parse_list(&text).map_err(|list| {
        let place = format!("{}:{}:{}", path.display(), list.line, list.error.column);
        OptionProblem::of("urls", format!("{place}: {}", list.error.reason), list.error.help)
    })
}

/// The whole text of a file, or of stdin for `-`, up to the limit.
fn text_of(path: &Path) -> io::Result<String> {
    let reader: Box<dyn Read> =
        if path == Path::new("-") { Box::new(io::stdin()) } else { Box::new(File::open(path)?) };
    let mut text = String::new();
    reader.take(URLS_FILE_BYTES_MAX + 1).read_to_string(&mut text)?;
    if text.len() as u64 > URLS_FILE_BYTES_MAX {
        return Err(io::Error::other(format!("more than {URLS_FILE_BYTES_MAX} bytes")));
    }
    Ok(text)
}
