//! One name means one thing: a type that others can import has a name that no other crate gives to one of its own.
//!
//! Types that stay within their module may have any name. What is still shared is listed; both lists only shrink.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::Findings;
use super::sources::Source;

/// Compares the names of all crates.
pub(super) fn check(files: &[Source], findings: &mut Findings) {
    let mut crates_of: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for file in files {
        let Some(package) = package(&file.path) else { continue };
        for name in type_names(&file.text) {
            crates_of.entry(name).or_default().insert(package);
        }
    }
    let shared = |name: &str| crates_of.get(name).is_some_and(|crates| crates.len() > 1);
    let listed = |name: &str| TO_RENAME.contains(&name) || MEANT.iter().any(|(meant, _)| *meant == name);
    for (name, crates) in crates_of.iter().filter(|(name, _)| shared(name) && !listed(name)) {
        let crates = crates.iter().copied().collect::<Vec<_>>().join(", ");
        findings.push(name, format!("is a type of several crates ({crates}): add the domain to the name"));
    }
    let meant = MEANT.iter().map(|(name, _)| name);
    for name in TO_RENAME.iter().chain(meant).filter(|name| !shared(name)) {
        findings.push(name, "has one meaning now: remove it from the list in dev/xtask/src/tidy/types.rs");
    }
}

/// The crate that a product file is in.
fn package(path: &Path) -> Option<&str> {
    let mut parts = path.iter().filter_map(|part| part.to_str());
    let is_test = |part: &str| part == "tests" || part == "tests.rs";
    let (crates, package) = (parts.next()?, parts.next()?);
    (crates == "crates" && parts.next()? == "src" && !parts.any(is_test)).then_some(package)
}

/// Names of the types that other modules of the crate, or other crates, can import.
fn type_names(text: &str) -> impl Iterator<Item = &str> {
    let product = text.split("#[cfg(test)]\nmod ").next().unwrap_or(text);
    product.lines().filter_map(|line| {
        // Associated types are indented, and are not names of their own; structs are indented within macros.
        let line = if line.contains(" type ") { line } else { line.trim_start() };
        let rest = line.strip_prefix("pub(crate) ").or_else(|| line.strip_prefix("pub "))?;
        let rest = KEYWORDS.iter().find_map(|keyword| rest.strip_prefix(keyword))?;
        rest.split(|c: char| !c.is_alphanumeric()).next().filter(|name| !name.is_empty())
    })
}

const KEYWORDS: &[&str] = &["struct ", "enum ", "trait ", "type ", "union "];

/// Names that mean the same thing in each crate, or whose crate's name always precedes them.
const MEANT: &[(&str, &str)] = &[("Error", "as in the standard library, qualified where it is used")];

/// Names that still mean several things.
const TO_RENAME: &[&str] = &[
    "Arrival", "Call", "Event", "Field", "Format", "Found", "Frame", "Imported", "Kept", "Level", "Live",
    "Options", "Order", "Origin", "Outcome", "Part", "Place", "Port", "Problem", "Progress", "Ready",
    "Recorder", "Reply", "Request", "Response", "Route", "Row", "Rules", "Sessions", "Sink", "Source",
    "Span", "Stage", "Step", "Stop", "Summary", "Target", "Terms", "Text", "Ticket", "Trouble", "Version",
    "Watch", "Worker",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn source(path: &str, text: &str) -> Source {
        Source { path: path.into(), text: text.to_owned() }
    }

    #[test]
    fn types_that_can_be_imported_are_found() {
        let text = "pub struct One<T> {}\npub(crate) enum Two {\nstruct Private;\n    type Inner = u8;\npub trait Three: Sync {}\n\
                    #[cfg(test)]\nmod tests {\npub struct OfTests;\n}";
        assert_eq!(type_names(text).collect::<Vec<_>>(), ["One", "Two", "Three"]);
    }

    #[test]
    fn a_name_of_two_crates_is_found_and_a_listed_one_that_is_none() {
        let files = [
            source("crates/plan/src/a.rs", "pub struct Doubled;\n"),
            source("crates/wire/src/a.rs", "pub enum Doubled {}\n"),
            source("crates/wire/src/tests/a.rs", "pub enum Alone {}\n"),
            source("crates/plan/src/b.rs", "pub enum Alone {}\n"),
        ];
        let mut findings = Findings::default();
        check(&files, &mut findings);
        let of = |name: &str| findings.0.iter().filter(|finding| finding.starts_with(name)).count();
        assert_eq!((of("Doubled"), of("Alone"), of("Error")), (1, 0, 1), "{findings:?}");
    }
}
