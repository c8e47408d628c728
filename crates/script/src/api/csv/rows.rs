//! The rows of a table that a script asked for: from one line to another, as lists or as objects.

use std::collections::BTreeMap;
use std::rc::Rc;

use serde_json::Value as Json;

use super::super::fs::File;
use super::records::Records;

/// What a script says of a table.
#[derive(Debug, Clone, Copy)]
pub(super) struct Options {
    pub(super) delimiter: u8,
    pub(super) skips_first: bool,
    /// The first row to give, counted from 0.
    pub(super) from: Option<i64>,
    /// The last one; 0 is as good as none, as in k6.
    pub(super) to: Option<i64>,
    pub(super) as_objects: bool,
}

/// Reads row by row.
#[derive(Debug)]
pub(super) struct Rows {
    records: Records,
    options: Options,
    /// Names of the columns, where rows are objects.
    header: Option<Vec<String>>,
    /// Number of the next row.
    row_idx: i64,
}

/// A row of fields.
#[derive(Debug)]
pub(super) struct Row<'a> {
    header: Option<&'a [String]>,
    fields: Vec<String>,
}

impl Default for Options {
    fn default() -> Self {
        Self { delimiter: b',', skips_first: false, from: None, to: None, as_objects: false }
    }
}

impl Options {
    fn check(&self) -> Result<(), String> {
        let from = self.from.unwrap_or(0);
        if self.as_objects && self.skips_first {
            return Err("the 'header' option cannot be enabled when 'skipFirstLine' is true".to_owned());
        }
        if self.as_objects && from > 0 {
            let problem =
                "the 'header' option cannot be enabled when 'fromLine' is set to a value greater than 0";
            return Err(problem.to_owned());
        }
        for (name, line) in [("fromLine", from), ("toLine", self.to.unwrap_or(0))] {
            if line < 0 {
                return Err(format!("the '{name}' option must be greater than or equal to 0; got {line}"));
            }
        }
        Ok(())
    }
}

impl Rows {
    /// Reads up to the first row that is asked for, beginning at the file's position.
    pub(super) fn begin(file: Rc<File>, options: Options) -> Result<Self, String> {
        options.check()?;
        let records = Records::new(file, options.delimiter);
        let mut rows = Self { records, options, header: None, row_idx: 0 };
        if options.as_objects {
            rows.header = Some(rows.must_read(|| "failed to read the first line".to_owned())?);
        }
        match options.from.unwrap_or(0) {
            0 if options.skips_first => {
                rows.must_read(|| "failed to skip the first line".to_owned())?;
            }
            from => {
                while rows.row_idx < from {
                    rows.must_read(|| format!("failed to skip lines until line {from}"))?;
                }
            }
        }
        Ok(rows)
    }

    /// A record that has to be there.
    fn must_read(&mut self, doing: impl Fn() -> String) -> Result<Vec<String>, String> {
        self.row_idx += 1;
        let record = self.records.next().and_then(|record| record.ok_or_else(|| "EOF".to_owned()));
        record.map_err(|problem| format!("{}; reason: {problem}", doing()))
    }

    /// The next row; none: there are no more.
    pub(super) fn next(&mut self) -> Result<Option<Row<'_>>, String> {
        if self.options.to.is_some_and(|to| to > 0 && self.row_idx > to) {
            return Ok(None);
        }
        let Some(fields) = self.records.next()? else { return Ok(None) };
        self.row_idx += 1;
        Ok(Some(Row { header: self.header.as_deref(), fields }))
    }
}

impl Row<'_> {
    /// The row as JSON: a list, or an object with its names in order, as k6 has them.
    pub(super) fn to_json(&self) -> String {
        let Some(header) = self.header else { return Json::from(self.fields.clone()).to_string() };
        let members: BTreeMap<&String, &String> = header.iter().zip(&self.fields).collect();
        Json::from_iter(members.into_iter().map(|(name, field)| (name.clone(), field.clone()))).to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::fs::tests::file;
    use super::*;

    fn read(options: Options) -> String {
        let mut rows = match Rows::begin(file("b,a\n1,2\n3,4\n5,6\n"), options) {
            Ok(rows) => rows,
            Err(problem) => return problem,
        };
        let mut text = String::new();
        while let Some(row) = rows.next().unwrap() {
            text.push_str(&row.to_json());
        }
        text
    }

    #[test]
    fn options_choose_the_rows() {
        let none = Options::default();
        for (options, expected) in [
            (none, r#"["b","a"]["1","2"]["3","4"]["5","6"]"#),
            (Options { skips_first: true, ..none }, r#"["1","2"]["3","4"]["5","6"]"#),
            (Options { from: Some(2), ..none }, r#"["3","4"]["5","6"]"#),
            (Options { from: Some(2), skips_first: true, ..none }, r#"["3","4"]["5","6"]"#),
            (Options { to: Some(1), ..none }, r#"["b","a"]["1","2"]"#),
            (Options { to: Some(0), from: Some(3), ..none }, r#"["5","6"]"#),
            (Options { from: Some(1), to: Some(2), ..none }, r#"["1","2"]["3","4"]"#),
            (Options { as_objects: true, to: Some(1), ..none }, r#"{"a":"2","b":"1"}"#),
            (Options { from: Some(9), ..none }, "failed to skip lines until line 9; reason: EOF"),
            (
                Options { from: Some(-1), ..none },
                "the 'fromLine' option must be greater than or equal to 0; got -1",
            ),
            (
                Options { to: Some(-1), ..none },
                "the 'toLine' option must be greater than or equal to 0; got -1",
            ),
        ] {
            assert_eq!(read(options), expected, "{options:?}");
        }
    }
}
