//! The HTML face: one self-contained page, drawn in the browser from the data that is put into it.
//!
//! Owns: the contract between this program and `ui/` (the types here and in `ui/src/data.ts` are one), and the way of the
//! data into the page. Where the page was not built (that takes Node, see `ui/README.md`), `plain` draws tables and charts by
//! itself. Never: anything that a browser would have to fetch.

mod columns;
mod feed;
mod kinds;
mod lines;
mod plain;
mod run;
pub(crate) mod svg;
mod values;

use serde::Serialize;
use squall_measure::RunRecord;

use crate::studies::{CapacityPage, ComparePage, IndexPage, SweepPage};

pub use columns::Point;
pub use feed::{Feed, FeedState, Position};
pub use kinds::FactBlock;
pub use lines::{LineKind, PartLine};
pub(crate) use run::curve;
pub use run::{Curve, PageSeries, RunPage};

/// What a page shows; the browser chooses how by `kind`.
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Page {
    /// One run.
    Run(Box<RunPage>),
    /// Groups of runs.
    Compare(ComparePage),
    /// A load at levels.
    Sweep(SweepPage),
    /// The highest load that meets the objectives.
    Capacity(CapacityPage),
    /// Saved runs.
    Index(IndexPage),
}

impl Page {
    /// Its title, as plain text.
    pub fn title(&self) -> &str {
        match self {
            Self::Run(run) => &run.summary.name,
            Self::Compare(page) => &page.title,
            Self::Sweep(page) => &page.title,
            Self::Capacity(page) => &page.title,
            Self::Index(page) => &page.title,
        }
    }
}

/// The page of a saved run.
pub fn of_run(record: &RunRecord) -> Page {
    Page::Run(Box::new(RunPage::from(record)))
}

/// The page's data for programs, indented.
pub fn json(page: &Page) -> String {
    crate::json::pretty(page)
}

/// The whole HTML document.
pub fn draw(page: &Page) -> String {
    match TEMPLATE {
        "" => plain::draw(page),
        template => fill(template, &escaped(page.title()), &embedded(page)),
    }
}

#[cfg(test)]
pub(crate) fn plain_for_tests(page: &Page) -> String {
    plain::draw(page)
}

/// The page before its data has come, for a browser that asks for it at `/data`; nothing when the page was not built.
pub fn live_document(title: &str) -> Option<String> {
    (!TEMPLATE.is_empty()).then(|| fill(TEMPLATE, &escaped(title), "{\"kind\":\"live\"}"))
}

fn fill(template: &str, title: &str, data: &str) -> String {
    template.replacen(TITLE_MARK, title, 1).replacen(DATA_MARK, data, 1)
}

/// JSON inside a script element: neither its end nor a comment may begin in it.
fn embedded(page: &Page) -> String {
    let json = serde_json::to_string(page).expect("pages are plain data with string keys");
    json.replace('<', "\\u003c").replace('\u{2028}', "\\u2028").replace('\u{2029}', "\\u2029")
}

/// Text inside an element or an attribute.
pub(crate) fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            c if c.is_control() && c != '\n' => safe.push('\u{fffd}'),
            c => safe.push(c),
        }
    }
    safe
}

/// The built page of `ui/`; empty when it was not built.
const TEMPLATE: &str = include_str!(concat!(env!("OUT_DIR"), "/page.html"));

const TITLE_MARK: &str = "%TITLE%";

const DATA_MARK: &str = "%DATA%";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_cannot_end_its_script_and_text_cannot_become_markup() {
        let template = "<title>%TITLE%</title><script>%DATA%</script>";
        let page = fill(template, &escaped("</title><b a='\"'>&"), &"</script>".replace('<', "\\u003c"));
        assert_eq!(
            page,
            "<title>&lt;/title&gt;&lt;b a=&#39;&quot;&#39;&gt;&amp;</title><script>\\u003c/script></script>"
        );
    }
}
