//! Words that made readers stop, each with the plain words to write instead.
//!
//! Applies to the string literals of the crates, the help in the doc comments of flags, golden files and documents.

use std::fs;
use std::path::{Path, PathBuf};

use super::Findings;
use super::literals::{doc_comments, literals};
use super::sources::Source;

/// Looks for the words in what users read.
pub(super) fn check(root: &Path, files: &[Source], findings: &mut Findings) {
    for file in files.iter().filter(|file| is_product(&file.path)) {
        let help =
            if file.path.starts_with("crates/cli/src/args") { doc_comments(&file.text) } else { Vec::new() };
        for piece in literals(&file.text).into_iter().chain(help) {
            check_text(&piece.text, &format!("{}:{}", file.path.display(), piece.line), findings);
        }
    }
    for page in pages(root) {
        let text = fs::read_to_string(&page).unwrap_or_default();
        for (idx, line) in text.lines().enumerate() {
            check_text(line, &format!("{}:{}", page.display(), idx + 1), findings);
        }
    }
}

/// The documents at the root and in `docs/`, and the golden files.
fn pages(root: &Path) -> Vec<PathBuf> {
    let folders =
        ["", "docs", "docs/experiments", "crates/cli/tests/golden", "crates/report/src/tests/golden"];
    let entries =
        folders.iter().filter_map(|folder| fs::read_dir(root.join(folder)).ok()).flatten().flatten();
    let is_page = |path: &PathBuf| path.extension().is_some_and(|end| end == "md" || end == "txt");
    entries.map(|entry| entry.path()).filter(is_page).collect()
}

/// Code of the crates, without their tests.
fn is_product(path: &Path) -> bool {
    let is_test = |name: &str| name == "tests" || name == "tests.rs";
    path.starts_with("crates") && !path.iter().filter_map(|part| part.to_str()).any(is_test)
}

fn check_text(text: &str, place: &str, findings: &mut Findings) {
    let text = text.to_lowercase();
    for (phrase, instead) in WORDS.iter().filter(|(phrase, _)| contains_words(&text, phrase)) {
        findings.push(place, format!("`{phrase}`: write {instead}"));
    }
}

/// Whether `phrase` is in the text as whole words.
fn contains_words(text: &str, phrase: &str) -> bool {
    let is_inside = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    text.match_indices(phrase).any(|(at, _)| {
        !is_inside(text[..at].chars().next_back()) && !is_inside(text[at + phrase.len()..].chars().next())
    })
}

/// Each phrase in lower case, with what to write instead.
const WORDS: &[(&str, &str)] = &[
    ("whoever", "`any user`, or leave it out"),
    ("whom", "`for which user`, or a shorter sentence"),
    ("beside", "`next to` or `compared with`"),
    ("mend the", "`fix` or `correct`"),
    ("mend it", "`fix` or `correct`"),
    ("is well", "`is valid`"),
    ("told of", "`reported`"),
    ("told apart", "`distinguished` or `identified`"),
    ("is heard of", "`has responded`"),
    ("stands for itself", "`is independent`"),
    ("a bout", "`a batch`"),
    ("house rules", "`project conventions`"),
    ("come what may", "`always`"),
    ("by itself", "`automatically` or `alone`"),
    ("of its own", "`separate`, `dedicated` or `unique`"),
    ("is no flag", "`is not a flag`"),
    ("is no folder", "`is not a folder`"),
    ("a bug of", "`a bug in`"),
    ("is not spoken", "`is not supported`"),
    ("are not spoken", "`are not supported`"),
    ("nobody", "the passive, or `no user`"),
    ("somebody", "`someone`, or the role"),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: usize) {
        let mut findings = Findings::default();
        check_text(text, "a.rs:1", &mut findings);
        assert_eq!(findings.0.len(), expected, "{text}: {findings:?}");
    }

    #[test]
    fn words_are_found_whole() {
        check("mend it, whoever you are", 2);
        check("Beside it", 1);
        check("recommend itself", 0);
    }
}
