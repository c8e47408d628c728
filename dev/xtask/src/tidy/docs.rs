//! Every flag of the binary has its place in the documentation.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use std::{fs, io};

use super::Findings;

/// Compares what each command's `--help` offers with what its page explains.
pub(super) fn check(root: &Path, findings: &mut Findings) {
    for (command, pages) in PAGES {
        let read = |page: &&str| fs::read_to_string(root.join(page));
        let text = match pages.iter().map(read).collect::<Result<String, _>>() {
            Ok(text) => text,
            Err(error) => return findings.push(pages.join(", "), error),
        };
        let page = &pages.join(", ");
        let args: Vec<&str> = command.iter().copied().chain(["--help"]).collect();
        match squall(root, &args) {
            Ok(help) => check_page(&help, page, &text, findings),
            Err(error) => findings.push(format!("squall {}", args.join(" ")), error),
        }
    }
}

/// Where the flags of each command are explained.
const PAGES: &[(&[&str], &[&str])] = &[
    (&[], &["docs/http.md"]),
    (&["handshake"], &["docs/handshake.md"]),
    (&["idle"], &["docs/idle.md"]),
    (&["stream"], &["docs/streams.md"]),
    (&["ws"], &["docs/websocket.md"]),
    (&["run"], &["docs/plans.md", "docs/k6.md"]),
    (&["new"], &["docs/plans.md"]),
    (&["compare"], &["docs/compare.md"]),
    (&["sweep"], &["docs/sweep.md"]),
    (&["capacity"], &["docs/sweep.md"]),
    (&["runs"], &["docs/runs.md"]),
    (&["replay"], &["docs/recorded-traffic.md"]),
    (&["view"], &["docs/recorded-traffic.md"]),
    (&["convert"], &["docs/recorded-traffic.md"]),
    (&["record"], &["docs/recorded-traffic.md"]),
    (&["mock"], &["docs/recorded-traffic.md"]),
];

fn check_page(help: &str, page: &str, text: &str, findings: &mut Findings) {
    let explained = flags(text);
    for flag in flags(help).difference(&explained).filter(|flag| **flag != "--help") {
        findings.push(page, format!("does not explain {flag}"));
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

/// What the binary prints when it is run with these arguments; it is built first when needed.
fn squall(root: &Path, args: &[&str]) -> io::Result<String> {
    // With the features that the tests have, so that nothing is built twice.
    let build = ["build", "--quiet", "--workspace", "--bin", "squall"];
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let built = Command::new(cargo).current_dir(root).args(build).output()?;
    if !built.status.success() {
        return Err(io::Error::other(String::from_utf8_lossy(&built.stderr).into_owned()));
    }
    let folder = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), Into::into);
    let output = Command::new(folder.join("debug/squall")).current_dir(root).args(args).output()?;
    if !output.status.success() {
        return Err(io::Error::other(String::from_utf8_lossy(&output.stderr).into_owned()));
    }
    String::from_utf8(output.stdout).map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flag_that_no_page_explains_is_found() {
        let mut findings = Findings::default();
        check_page(
            "  -c, --connections <N>\n      --no-save  Saves nothing.",
            "docs/http.md",
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
