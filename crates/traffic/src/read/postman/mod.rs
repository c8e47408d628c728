//! Postman collections (format 2): folders of requests without times, with variables in double braces.
//!
//! Owns: what Postman would send for a collection. Never: runs its scripts, which are noted.

mod format;
mod request;
mod variables;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

pub use self::variables::environment;

use self::format::{Auth, Event, File, Item, Pair, PostmanRequest, saved, text};
use self::request::{Made, Maker};
use self::variables::Variables;
use super::files::Files;
use super::{Notes, ReadOptions, Source, time};
use crate::input::{Input, Until};
use crate::limits::{NESTING_MAX, RECORD_BYTES_MAX};
use crate::{Place, Problem, Record, Response};

/// The reader. A collection is read whole: people write them.
pub(super) struct Postman {
    input: Input,
    files: Files,
    environment: BTreeMap<String, String>,
    saved_responses: bool,
    notes: Notes,
    records: Option<VecDeque<Result<Record, Problem>>>,
}

impl Postman {
    pub(super) fn new(input: Input, files: Files, options: &ReadOptions) -> Self {
        let environment = options.variables.clone();
        let saved_responses = options.saved_responses;
        Self { input, files, environment, saved_responses, notes: Notes::default(), records: None }
    }

    fn load(&mut self) -> Result<VecDeque<Result<Record, Problem>>, Problem> {
        let place = Place::default();
        let mut bytes = Vec::new();
        // No text has this: it is read to its end, in bounds.
        let until = self.input.read_until(b"\0\0\0\0", &mut bytes, RECORD_BYTES_MAX);
        if until.map_err(|error| Problem::io(place, &error))? == Until::TooLong {
            return Err(Problem::fatal(place, format!("a collection of more than {RECORD_BYTES_MAX} bytes")));
        }
        let file: File = serde_json::from_slice(&bytes).map_err(|_| malformed(&bytes))?;
        let (File::Wrapped { collection } | File::Plain(collection)) = file;
        let variables =
            Variables { own: values(&collection.variable), environment: self.environment.clone() };
        let mut walk = Walk {
            files: &self.files,
            notes: &mut self.notes,
            saved_responses: self.saved_responses,
            found: Vec::new(),
        };
        walk.scripts(collection.event.all(), Place { record: 1, ..place });
        let at = Folder { variables, auth: collection.auth, depth: 0 };
        walk.items(collection.item, &at);
        Ok(records(walk.found))
    }
}

/// Why it is no collection: an error of an untagged type has no place, that of the type itself does.
fn malformed(bytes: &[u8]) -> Problem {
    let error = serde_json::from_slice::<format::Collection>(bytes).err();
    let line = error.as_ref().map_or(0, serde_json::Error::line);
    let reason = error.map_or_else(String::new, |error| error.to_string());
    Problem::fatal(
        Place { line: line as u64, ..Place::default() },
        format!("not a Postman collection: {reason}"),
    )
}

impl Source for Postman {
    fn next(&mut self) -> Result<Option<Record>, Problem> {
        if self.records.is_none() {
            self.records = Some(VecDeque::new());
            self.records = Some(self.load()?);
        }
        self.records.as_mut().and_then(VecDeque::pop_front).transpose()
    }

    fn notes(&self) -> &Notes {
        &self.notes
    }

    fn bytes_read(&self) -> u64 {
        self.input.byte()
    }
}

/// A walk through folders.
struct Walk<'a> {
    files: &'a Files,
    notes: &'a mut Notes,
    saved_responses: bool,
    found: Vec<Found>,
}

/// What an item of the collection became.
struct Found {
    place: Place,
    name: String,
    made: Made,
    response: Option<Response>,
}

/// What a folder gives to all in it.
struct Folder {
    variables: Variables,
    auth: Option<Auth>,
    depth: u32,
}

impl Walk<'_> {
    fn items(&mut self, items: Vec<Item>, folder: &Folder) {
        for item in items {
            let place = Place { record: self.found.len() as u64 + 1, ..Place::default() };
            self.scripts(item.event.all(), place);
            if let Some(children) = item.item
                && folder.depth < NESTING_MAX
            {
                let mut variables = folder.variables.clone();
                variables.own.extend(values(&item.variable));
                let auth = item.auth.or_else(|| folder.auth.clone());
                self.items(children, &Folder { variables, auth, depth: folder.depth + 1 });
            }
            if self.saved_responses {
                for (request, response) in saved(&item.response) {
                    self.add(&item.name, request, Some(response), folder);
                }
            } else if let Some(request) = item.request {
                self.add(&item.name, request, None, folder);
            }
        }
    }

    fn add(&mut self, name: &str, request: PostmanRequest, response: Option<Response>, folder: &Folder) {
        let place = Place { record: self.found.len() as u64 + 1, ..Place::default() };
        let maker = Maker::new(&folder.variables, self.files, self.notes, place);
        let made = maker.make(request, folder.auth.as_ref());
        self.found.push(Found { place, name: name.to_owned(), made, response });
    }

    fn scripts(&mut self, events: &[Event], place: Place) {
        for event in events.iter().filter(|event| event.has_code()) {
            let kind = match event.listen.as_str() {
                "prerequest" => "pre-request scripts",
                "test" => "test scripts",
                _ => "scripts",
            };
            self.notes.add(&format!("{kind} are not run; what they set has to come from --env-file"), place);
        }
    }
}

fn values(pairs: &[Pair]) -> BTreeMap<String, String> {
    pairs.iter().filter(|pair| !pair.disabled).map(|pair| (pair.key.clone(), text(&pair.value))).collect()
}

/// The requests with their times. The first that lacks a value names all that the collection lacks.
fn records(found: Vec<Found>) -> VecDeque<Result<Record, Problem>> {
    let lacks = |made: &Made| match made {
        Made::Missing(names) => names.clone(),
        Made::Request(_) => Vec::new(),
    };
    let mut all_missing: BTreeSet<String> = found.iter().flat_map(|one| lacks(&one.made)).collect();
    let record = |Found { place, name, made, response }: Found| {
        let named = |reason: String| Problem::record(place, format!("`{}`: {reason}", time::cut(&name)));
        match made {
            Made::Request(Err(reason)) => Err(named(reason)),
            Made::Missing(names) => {
                let all = std::mem::take(&mut all_missing);
                let rest: Vec<String> = all.into_iter().filter(|name| !names.contains(name)).collect();
                Err(named(missing(&names, &rest)))
            }
            Made::Request(Ok(request)) => {
                let time_ns = time::ANY_NS + place.record * 1_000_000;
                Ok(Record { time_ns, connection: 1, session: 1, request: *request, response, place })
            }
        }
    };
    found.into_iter().map(record).collect()
}

fn missing(names: &[String], rest: &[String]) -> String {
    let listed = |names: &[String]| {
        let shown: Vec<String> =
            names.iter().take(NAMES_SHOWN_MAX).map(|name| format!("{{{{{name}}}}}")).collect();
        shown.join(", ")
    };
    let others = match rest.len() {
        0 => String::new(),
        count => format!(" (other requests lack {count} more: {})", listed(rest)),
    };
    format!("no value for {}{others}: give one with --env-file", listed(names))
}

const NAMES_SHOWN_MAX: usize = 20;

#[cfg(test)]
mod tests;
