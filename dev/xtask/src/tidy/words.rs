//! Words that made readers stop, each with the plain words to write instead.
//!
//! Applies to the string literals of the crates, and to the documents.

use std::fs;
use std::path::{Path, PathBuf};

use super::Findings;
use super::sources::Source;

/// Looks for the words in what users read.
pub(super) fn check(root: &Path, files: &[Source], findings: &mut Findings) {
    for file in files.iter().filter(|file| is_product(&file.path)) {
        for (idx, line) in file.text.lines().enumerate() {
            for literal in literals(line) {
                check_text(literal, &format!("{}:{}", file.path.display(), idx + 1), findings);
            }
        }
    }
    for page in pages(root) {
        let text = fs::read_to_string(&page).unwrap_or_default();
        for (idx, line) in text.lines().enumerate() {
            check_text(line, &format!("{}:{}", page.display(), idx + 1), findings);
        }
    }
}

/// The documents at the root and in `docs/`, but for the changelog, whose older entries stay as they were released.
fn pages(root: &Path) -> Vec<PathBuf> {
    let folders = [root.to_owned(), root.join("docs"), root.join("docs/experiments")];
    let entries = folders.iter().filter_map(|folder| fs::read_dir(folder).ok()).flatten().flatten();
    let is_page =
        |path: &PathBuf| path.extension().is_some_and(|end| end == "md") && !path.ends_with("CHANGELOG.md");
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

/// The quoted parts of a line of Rust that is not a comment. A literal that goes on in the next line is cut.
fn literals(line: &str) -> Vec<&str> {
    let mut found = Vec::new();
    if line.trim_start().starts_with("//") {
        return found;
    }
    let mut begin = None;
    let mut is_escaped = false;
    for (at, byte) in line.bytes().enumerate() {
        match (byte, begin) {
            _ if is_escaped => is_escaped = false,
            (b'\\', Some(_)) => is_escaped = true,
            (b'"', None) => begin = Some(at + 1),
            (b'"', Some(first)) => {
                found.push(&line[first..at]);
                begin = None;
            }
            _ => {}
        }
    }
    found.extend(begin.map(|first| &line[first..]));
    found
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

    fn check(line: &str, expected: usize) {
        let mut findings = Findings::default();
        for literal in literals(line) {
            check_text(literal, "a.rs:1", &mut findings);
        }
        assert_eq!(findings.0.len(), expected, "{line}: {findings:?}");
    }

    #[test]
    fn words_are_found_in_literals_only_and_whole() {
        check(r#"let help = "mend it, whoever you are";"#, 2);
        check(r#"say("a \"quoted\" part", "beside it");"#, 1);
        check(r#"    mend it, \"#, 0);
        check(r#"let mend = "recommend itself";"#, 0);
        check(r#"// "mend it""#, 0);
    }
}
