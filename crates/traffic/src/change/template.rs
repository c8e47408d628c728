//! Texts with places for what differs between requests: `order-{user}-{unique}`, and columns of tables.

use squall_plan::InputError;

use super::{Context, refused};

/// A text with places.
#[derive(Debug)]
pub(super) struct Template(Vec<Part>);

/// A part of a text.
#[derive(Debug)]
pub(super) enum Part {
    Text(String),
    /// Number of the copy, from 1.
    User,
    /// Number of the record, from 1.
    Record,
    /// A number that no other request of the run has.
    Unique,
    /// The present, in milliseconds since the epoch.
    NowMillis,
    /// The present, in seconds.
    NowSeconds,
    /// A column of the table.
    Column(String),
}

/// Rows that are dealt out to the copies, or to the requests.
#[derive(Debug, Default)]
pub(super) struct Table {
    names: Vec<String>,
    rows: Vec<Vec<String>>,
    /// Each request gets its own row; else each copy does.
    is_per_request: bool,
}

impl Template {
    /// `order-{user}-{unique}`; `{{` is a brace.
    pub(super) fn read(text: &str) -> Result<Self, InputError> {
        Self::parse(text, false)
    }

    /// `is_replacement`: `${1}` is a group of a regular expression.
    fn parse(text: &str, is_replacement: bool) -> Result<Self, InputError> {
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some(at) = rest.find('{') {
            let behind = &rest[at + 1..];
            if is_replacement && rest[..at].ends_with('$') {
                parts.push(Part::Text(rest[..=at].to_owned()));
                rest = behind;
                continue;
            }
            parts.push(Part::Text(rest[..at].to_owned()));
            if let Some(behind) = behind.strip_prefix('{') {
                parts.push(Part::Text("{".to_owned()));
                rest = behind;
                continue;
            }
            let (name, behind) = behind.split_once('}').ok_or_else(|| {
                refused(format!("`{text}` has an open brace"), "write {{ for a literal brace")
            })?;
            parts.push(Part::of(name)?);
            rest = behind;
        }
        parts.push(Part::Text(rest.to_owned()));
        Ok(Self(parts))
    }

    /// The same, where every column that it names is in the table.
    pub(super) fn with(text: &str, table: &Table) -> Result<Self, InputError> {
        Self::read(text)?.checked(table)
    }

    /// What replaces a regular expression's match: what is filled in is no reference to a group.
    pub(super) fn of_replacement(text: &str, table: &Table) -> Result<Self, InputError> {
        Self::read_replacement(text)?.checked(table)
    }

    /// The same, whatever columns it names.
    pub(super) fn read_replacement(text: &str) -> Result<Self, InputError> {
        Self::parse(text, true)
    }

    /// Whether its value comes from a table.
    pub(super) fn has_column(&self) -> bool {
        self.0.iter().any(|part| matches!(part, Part::Column(_)))
    }

    fn checked(self, table: &Table) -> Result<Self, InputError> {
        self.0.iter().try_for_each(|part| part.check(table))?;
        Ok(self)
    }

    pub(super) fn fill(&self, table: &Table, context: &Context<'_>) -> String {
        self.0.iter().map(|part| part.fill(table, context)).collect()
    }

    /// The same for [`Template::of_replacement`].
    pub(super) fn fill_replacement(&self, table: &Table, context: &Context<'_>) -> String {
        let filled = |part: &Part| match part {
            Part::Text(text) => text.clone(),
            part => part.fill(table, context).replace('$', "$$"),
        };
        self.0.iter().map(filled).collect()
    }
}

impl Part {
    /// Whether the column that it names, if any, is in the table.
    pub(super) fn check(&self, table: &Table) -> Result<(), InputError> {
        match self {
            Self::Column(name) if table.names.is_empty() => {
                Err(refused(format!("`{{csv.{name}}}` without a table"), "give the table: --csv FILE"))
            }
            Self::Column(name) if !table.names.contains(name) => Err(refused(
                format!("no column `{name}` in the table"),
                &format!("its columns are {}", table.names.join(", ")),
            )),
            _ => Ok(()),
        }
    }

    pub(super) fn fill(&self, table: &Table, context: &Context<'_>) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::User => (context.user + 1).to_string(),
            Self::Record => (context.ordinal + 1).to_string(),
            Self::Unique => context.unique.to_string(),
            Self::NowMillis => (context.now_ns / 1_000_000).to_string(),
            Self::NowSeconds => (context.now_ns / 1_000_000_000).to_string(),
            Self::Column(name) => table.value(name, context).to_owned(),
        }
    }

    pub(super) fn of(name: &str) -> Result<Self, InputError> {
        Ok(match name {
            "user" => Self::User,
            "record" => Self::Record,
            "unique" => Self::Unique,
            "now_ms" => Self::NowMillis,
            "now_s" => Self::NowSeconds,
            name => match name.strip_prefix("csv.") {
                Some(column) => Self::Column(column.to_owned()),
                None => {
                    let help = "names are {user}, {record}, {unique}, {now_ms}, {now_s} and {csv.COLUMN}; {{ is a brace";
                    return Err(refused(format!("no such name: `{{{name}}}`"), help));
                }
            },
        })
    }
}

impl Table {
    /// Reads CSV (RFC 4180) whose first row has the names.
    pub(super) fn read(text: &str, is_per_request: bool) -> Result<Self, InputError> {
        let help = "write CSV: a row with the names of the columns, then at least one row of values";
        let mut reader = csv::Reader::from_reader(text.trim_start_matches('\u{feff}').as_bytes());
        let names: Vec<String> = match reader.headers() {
            Ok(names) => names.iter().map(|name| name.trim().to_owned()).collect(),
            Err(error) => return Err(refused(format!("bad table: {error}"), help)),
        };
        let mut rows = Vec::new();
        for row in reader.records() {
            let row = row.map_err(|error| refused(format!("bad table: {error}"), help))?;
            rows.push(row.iter().map(str::to_owned).collect());
        }
        match rows.is_empty() {
            true => Err(refused("the table has no rows", help)),
            false => Ok(Self { names, rows, is_per_request }),
        }
    }

    /// Beyond the last row the first one comes again.
    fn value(&self, name: &str, context: &Context<'_>) -> &str {
        let nth =
            if self.is_per_request { context.unique.saturating_sub(1) } else { u64::from(context.user) };
        let row = &self.rows[(nth % self.rows.len().max(1) as u64) as usize];
        let column = self.names.iter().position(|own| own == name);
        column.and_then(|column| row.get(column)).map_or("", String::as_str)
    }
}
