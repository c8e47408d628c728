//! Every flag of the binary has its place in the documentation.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use super::Findings;
use crate::dist::squall;

/// Compares what `squall --help` offers with what [`PAGE`] explains.
pub(super) fn check(root: &Path, findings: &mut Findings) {
    let page = match fs::read_to_string(root.join(PAGE)) {
        Ok(page) => page,
        Err(error) => return findings.push(PAGE, error),
    };
    match squall(root, &["--help"]) {
        Ok(help) => check_page(&help, &page, findings),
        Err(error) => findings.push("squall --help", error),
    }
}

/// Where the flags of the main command are explained.
const PAGE: &str = "docs/http.md";

fn check_page(help: &str, page: &str, findings: &mut Findings) {
    let explained = flags(page);
    for flag in flags(help).difference(&explained) {
        findings.push(PAGE, format!("does not explain {flag}"));
    }
}

/// Every `--long-flag` in a text.
fn flags(text: &str) -> BTreeSet<&str> {
    let is_flag_char = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '.';
    text.split(|c: char| !is_flag_char(c))
        .map(|word| word.trim_end_matches(['.', '-']))
        .filter(|word| {
            word.strip_prefix("--").is_some_and(|name| name.starts_with(|c: char| c.is_ascii_lowercase()))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flag_that_no_page_explains_is_found() {
        let mut findings = Findings::default();
        check_page(
            "  -c, --connections <N>\n      --no-save  Saves nothing.",
            "| `--connections N` |",
            &mut findings,
        );
        assert_eq!(findings.0, ["docs/http.md: does not explain --no-save"]);
    }

    #[test]
    fn dashes_alone_are_no_flag() {
        assert_eq!(flags("a -- b --- c, --tls. (--http1.1) -x"), BTreeSet::from(["--tls", "--http1.1"]));
    }
}
