//! The examples in the text of a page.

use std::fs;
use std::path::{Path, PathBuf};

/// A page with its examples, in their order.
#[derive(Debug)]
pub(crate) struct Page {
    pub path: PathBuf,
    pub text: String,
    pub examples: Vec<Example>,
}

/// A command, and what the page says that it prints.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Example {
    /// As on the page, continuation lines included.
    pub command: String,
    pub output: Vec<String>,
    pub is_exact: bool,
    /// What each line of its block begins with.
    pub indent: String,
}

impl Page {
    /// Reads a page.
    pub(crate) fn read(path: &Path) -> Self {
        let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        Self { path: path.to_owned(), examples: examples(&text), text }
    }

    /// The name of its file.
    pub(crate) fn name(&self) -> String {
        self.path.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }
}

impl Example {
    /// Lines as the page has them.
    pub(crate) fn text(&self, lines: &[String]) -> String {
        lines.iter().map(|line| format!("{}{line}", self.indent).trim_end().to_owned() + "\n").collect()
    }
}

fn examples(text: &str) -> Vec<Example> {
    let mut found: Vec<Example> = Vec::new();
    // Of the block that the line is in: its indent, and whether it is exact.
    let mut block: Option<(&str, bool)> = None;
    for line in text.lines() {
        let trimmed = line.trim_start();
        let Some((indent, is_exact)) = block else {
            let indent = &line[..line.len() - trimmed.len()];
            block = trimmed.strip_prefix("```console").map(|marks| (indent, marks.trim() == "exact"));
            continue;
        };
        let line = line.strip_prefix(indent).unwrap_or_default();
        if line == "```" {
            block = None;
        } else if let Some(command) = line.strip_prefix("$ ") {
            let command = command.to_owned();
            found.push(Example { command, output: Vec::new(), is_exact, indent: indent.to_owned() });
        } else if let Some(last) = found.last_mut() {
            last.push(line);
        }
    }
    found
}

impl Example {
    fn push(&mut self, line: &str) {
        match self.output.is_empty() && self.command.ends_with('\\') {
            true => self.command = format!("{}\n{line}", self.command),
            false => self.output.push(line.to_owned()),
        }
    }
}

#[test]
fn a_block_is_commands_with_their_output() {
    let text = "a\n```console\n$ one \\\n    two\nout\n\nput\n$ three &\n```\n```sh\n$ four\n```\n1. x\n   ```console exact\n   $ five\n   5\n   ```\n";
    let found: Vec<_> = examples(text)
        .into_iter()
        .map(|example| (example.command, example.output.join("|"), example.is_exact, example.indent.len()))
        .collect();
    let expected = [
        ("one \\\n    two".to_owned(), "out||put".to_owned(), false, 0),
        ("three &".to_owned(), String::new(), false, 0),
        ("five".to_owned(), "5".to_owned(), true, 3),
    ];
    assert_eq!(found, expected);
}
