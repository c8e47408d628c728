//! The examples of the documentation: every fenced `console` block is run, and what it shows is compared with what comes out.
//!
//! A line that begins with `$ ` is a command; one that ends with `&` runs until the end of its page. What follows is its
//! output: stdout, or stderr where stdout is empty. Figures, the reasons of a verdict and line breaks may differ unless the
//! block is marked `console exact`; `…` is anything. All blocks of a page share a folder with the files of
//! `docs/examples`. Ports are replaced by free ones, and unless a page starts a server on port 8080, `squall target`
//! listens there.
//!
//! `UPDATE_GOLDEN=1 cargo test -p squall --test docs` writes what came out into the pages; read the diff as prose.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

mod compare;
mod page;
mod session;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::thread;

use page::Page;
use session::Session;

#[test]
fn every_example_shows_what_comes_out() {
    let pages: Vec<Page> = pages().iter().map(|name| Page::read(&docs().join(name))).collect();
    let waiting = Mutex::new(pages.iter().filter(|page| !page.examples.is_empty()).collect::<Vec<_>>());
    let failures = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..PAGES_AT_ONCE {
            scope.spawn(|| {
                loop {
                    let Some(page) = waiting.lock().unwrap().pop() else { return };
                    failures.lock().unwrap().extend(failures_of(page));
                }
            });
        }
    });
    let failures = failures.into_inner().unwrap();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn every_page_has_an_example_or_a_reason() {
    let pages = pages();
    for (name, _) in WITHOUT_EXAMPLES {
        assert!(pages.contains(*name), "{name} is not in SUMMARY.md");
    }
    for name in pages {
        let has_example = !Page::read(&docs().join(&name)).examples.is_empty();
        let has_reason = WITHOUT_EXAMPLES.iter().any(|(page, _)| *page == name);
        assert!(has_example != has_reason, "{name} needs an example (```console) or a reason, and not both");
    }
}

/// Runs the examples of a page; with `UPDATE_GOLDEN`, writes what came out into it.
fn failures_of(page: &Page) -> Vec<String> {
    let mut session = Session::new(page);
    let is_update = std::env::var_os("UPDATE_GOLDEN").is_some();
    let mut failures = Vec::new();
    let mut updated = page.text.clone();
    for example in &page.examples {
        let actual = session.run(&example.command);
        if compare::is_same(&example.output, &actual, example.is_exact) {
            continue;
        }
        let shown = format!("{}$ {}\n", example.indent, example.command);
        let (old, new) = (example.text(&example.output), example.text(&actual));
        // Where a page leaves something out, it says so by hand.
        if is_update && !old.contains('…') {
            updated = updated.replacen(&format!("{shown}{old}"), &format!("{shown}{new}"), 1);
            continue;
        }
        failures.push(format!("{}: $ {}\nshows:\n{old}but gives:\n{new}", page.name(), example.command));
    }
    if updated != page.text {
        fs::write(&page.path, updated).unwrap();
    }
    failures
}

/// The pages of the table of contents, relative to `docs`.
fn pages() -> BTreeSet<String> {
    let contents = fs::read_to_string(docs().join("SUMMARY.md")).unwrap();
    let links = contents.lines().filter_map(|line| line.rsplit_once('(')?.1.strip_suffix(')'));
    // These lie at the root; the site has all pages in one folder.
    let is_here = |link: &str| docs().join(link).exists();
    links.map(|link| if is_here(link) { link.to_owned() } else { format!("../{link}") }).collect()
}

fn docs() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs"))
}

/// A folder below the one that cargo gives to tests.
fn scratch(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("docs").join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    folder
}

/// Most of their time is that of loads at low rates.
const PAGES_AT_ONCE: usize = 8;

/// Pages that show nothing that could be run, with the reason.
const WITHOUT_EXAMPLES: &[(&str, &str)] = &[
    ("glossary.md", "defines terms"),
    ("load-options.md", "is written from the table of options"),
    ("bench.md", "reports measurements of minutes, against other tools"),
    ("study.md", "reports a measurement of minutes, against real servers"),
    ("experiments/README.md", "its plans are checked by the tests of `usage`"),
    ("../README.md", "its pictures are made by `make pictures`, its commands are those of the other pages"),
    ("../ARCHITECTURE.md", "is about the source code"),
    ("../CONTRIBUTING.md", "is about the source code"),
    ("../CHANGELOG.md", "lists changes"),
    ("../SECURITY.md", "says where to report a problem"),
];
