//! A YAML or JSON text as a tree in which every value knows its place. Scalars stay text: who reads a key knows its type.
//!
//! Bounded: a text of [`limits::PLAN_FILE_BYTES_MAX`], so deep and so large (aliases copied) as [`DEPTH_MAX`] and
//! [`NODE_COUNT_MAX`] say.

use std::collections::HashMap;

use saphyr_parser::{Event, Parser, ScalarStyle, ScanError, Span};

use super::{Place, Problem, Text};
use crate::limits;

/// A value and where it begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Node {
    pub(super) place: Place,
    pub(super) value: Value,
}

/// What a value is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Value {
    /// Nothing, or a plain `null` or `~`.
    Null,
    /// Anything else that is neither a list nor a mapping.
    Scalar(String),
    /// A list.
    List(Vec<Node>),
    /// A mapping, in the order of the text; no key comes twice.
    Map(Vec<(Text, Node)>),
}

impl Node {
    /// What a value is called in messages.
    pub(super) fn kind(&self) -> &'static str {
        match self.value {
            Value::Null => "nothing",
            Value::Scalar(_) => "a single value",
            Value::List(_) => "a list",
            Value::Map(_) => "a mapping",
        }
    }
}

/// Reads one document, and notes what is wrong with it; `None` when a mistake hides the rest of it.
pub(super) fn parse(text: &str, problems: &mut Vec<Problem>) -> Option<Node> {
    if text.len() as u64 > limits::PLAN_FILE_BYTES_MAX {
        let message = format!("larger than {} bytes", limits::PLAN_FILE_BYTES_MAX);
        let help = "keep data in separate files that the plan refers to";
        problems.push(Problem::at(Place::START, message, help));
        return None;
    }
    let mut builder = Builder {
        open: Vec::new(),
        anchors: HashMap::new(),
        node_count: 0,
        copied_bytes: 0,
        root: None,
        problems,
    };
    for event in Parser::new_from_str(text.trim_start_matches('\u{feff}')) {
        let taken = event
            .map_err(|error| malformed(text, &error))
            .and_then(|(event, span)| builder.take(event, place_of(&span)));
        if let Err(problem) = taken {
            builder.problems.push(problem);
            return None;
        }
    }
    Some(builder.root.unwrap_or(Node { place: Place::START, value: Value::Null }))
}

/// One text, a list of them, or a mapping whose entries are joined by `between`.
pub(super) fn texts(node: &Node, between: &str, problems: &mut Vec<Problem>) -> Vec<Text> {
    match &node.value {
        Value::Null => Vec::new(),
        Value::Scalar(text) => vec![Text { value: text.clone(), place: node.place }],
        Value::List(items) => items.iter().flat_map(|item| single(item, problems)).collect(),
        Value::Map(entries) if !between.is_empty() => entries
            .iter()
            .filter_map(|(key, node)| {
                let value = single(node, problems)?;
                Some(Text { value: format!("{}{between}{}", key.value, value.value), place: key.place })
            })
            .collect(),
        Value::Map(_) => {
            problems.push(Problem::at(
                node.place,
                "a mapping where text is expected",
                "write one string, or a list",
            ));
            Vec::new()
        }
    }
}

/// One text; nothing is an empty one.
pub(super) fn single(node: &Node, problems: &mut Vec<Problem>) -> Option<Text> {
    match &node.value {
        Value::Scalar(text) => Some(Text { value: text.clone(), place: node.place }),
        Value::Null => Some(Text { value: String::new(), place: node.place }),
        Value::List(_) | Value::Map(_) => {
            let message = format!("{} where a single value is expected", node.kind());
            problems.push(Problem::at(node.place, message, "write one string"));
            None
        }
    }
}

/// Builds the tree from the parser's events.
struct Builder<'p> {
    open: Vec<Open>,
    anchors: HashMap<usize, Node>,
    node_count: usize,
    /// Bytes of text that anchors and aliases copied.
    copied_bytes: usize,
    root: Option<Node>,
    problems: &'p mut Vec<Problem>,
}

/// A list or mapping whose end has not come yet.
struct Open {
    place: Place,
    anchor: usize,
    collection: Collection,
}

enum Collection {
    List(Vec<Node>),
    Map(Vec<(Text, Node)>, Option<Key>),
}

/// A key whose value comes next.
enum Key {
    Good(Text),
    /// Its value is passed over.
    Wrong,
}

impl Builder<'_> {
    fn take(&mut self, event: Event<'_>, place: Place) -> Result<(), Problem> {
        match event {
            Event::Scalar(text, style, anchor, _) => {
                let is_null = style == ScalarStyle::Plain && matches!(&*text, "" | "~" | "null");
                let value = if is_null { Value::Null } else { Value::Scalar(text.into_owned()) };
                self.add(Node { place, value }, anchor)
            }
            Event::Alias(anchor) => match self.anchors.get(&anchor) {
                Some(node) => {
                    let size = size_of(node);
                    self.node_count += size.nodes;
                    self.copied_bytes += size.bytes;
                    if self.node_count > NODE_COUNT_MAX || self.copied_bytes > limits::PLAN_FILLED_BYTES_MAX {
                        return Err(too_many(place));
                    }
                    let node = node.clone();
                    self.add(node, 0)
                }
                None => Err(Problem::at(
                    place,
                    "an alias inside its own anchor",
                    "replace the alias with its value",
                )),
            },
            Event::SequenceStart(anchor, _) => self.open(place, anchor, Collection::List(Vec::new())),
            Event::MappingStart(anchor, _) => self.open(place, anchor, Collection::Map(Vec::new(), None)),
            Event::SequenceEnd | Event::MappingEnd => self.close(),
            Event::DocumentStart(_) if self.root.is_some() => {
                Err(Problem::at(place, "a second document", "a file holds one plan: remove the `---`"))
            }
            Event::Nothing
            | Event::StreamStart
            | Event::StreamEnd
            | Event::DocumentStart(_)
            | Event::DocumentEnd => Ok(()),
        }
    }

    fn open(&mut self, place: Place, anchor: usize, collection: Collection) -> Result<(), Problem> {
        if self.open.len() >= DEPTH_MAX {
            return Err(Problem::at(place, "nested too deeply", "a plan needs at most six levels"));
        }
        self.open.push(Open { place, anchor, collection });
        Ok(())
    }

    fn close(&mut self) -> Result<(), Problem> {
        let Some(Open { place, anchor, collection }) = self.open.pop() else { return Ok(()) };
        let value = match collection {
            Collection::List(items) => Value::List(items),
            Collection::Map(entries, _) => Value::Map(entries),
        };
        self.add(Node { place, value }, anchor)
    }

    fn add(&mut self, node: Node, anchor: usize) -> Result<(), Problem> {
        self.node_count += 1;
        if self.node_count > NODE_COUNT_MAX {
            return Err(too_many(node.place));
        }
        if anchor > 0 {
            self.copied_bytes += size_of(&node).bytes;
            if self.copied_bytes > limits::PLAN_FILLED_BYTES_MAX {
                return Err(too_many(node.place));
            }
            self.anchors.insert(anchor, node.clone());
        }
        match self.open.last_mut().map(|open| &mut open.collection) {
            None => self.root = Some(node),
            Some(Collection::List(items)) => items.push(node),
            Some(Collection::Map(entries, key)) => match key.take() {
                None => *key = Some(key_of(node, entries, self.problems)),
                Some(Key::Good(key)) if key.value == "<<" => merge(entries, node, self.problems),
                Some(Key::Good(key)) => entries.push((key, node)),
                Some(Key::Wrong) => {}
            },
        }
        Ok(())
    }
}

fn key_of(node: Node, entries: &[(Text, Node)], problems: &mut Vec<Problem>) -> Key {
    let place = node.place;
    let Value::Scalar(value) = node.value else {
        problems.push(Problem::at(place, "a key that is not text", "write `key: value`"));
        return Key::Wrong;
    };
    match entries.iter().find(|(key, _)| key.value == value) {
        Some((first, _)) if value != "<<" => {
            let message = format!("duplicate key `{value}`, first on line {}", first.place.line);
            problems.push(Problem::at(place, message, "keep one of them"));
            Key::Wrong
        }
        _ => Key::Good(Text { value, place }),
    }
}

/// YAML 1.1's merge key: entries of another mapping, where there is none of that name.
fn merge(entries: &mut Vec<(Text, Node)>, node: Node, problems: &mut Vec<Problem>) {
    let Value::Map(merged) = node.value else {
        problems.push(Problem::at(node.place, "`<<` needs a mapping", "write `<<: *anchor`"));
        return;
    };
    for (key, value) in merged {
        if !entries.iter().any(|(present, _)| present.value == key.value) {
            entries.push((key, value));
        }
    }
}

fn too_many(place: Place) -> Problem {
    Problem::at(place, "too many values", "use fewer aliases")
}

/// What a copy of a tree takes.
#[derive(Default)]
struct Size {
    nodes: usize,
    bytes: usize,
}

fn size_of(node: &Node) -> Size {
    let mut size = Size { nodes: 1, bytes: 0 };
    let mut add = |value: &Node, key: Option<&Text>| {
        let inner = size_of(value);
        size.nodes += inner.nodes + usize::from(key.is_some());
        size.bytes += inner.bytes + key.map_or(0, |key| key.value.len());
    };
    match &node.value {
        Value::Null => {}
        Value::Scalar(text) => return Size { nodes: 1, bytes: text.len() },
        Value::List(items) => items.iter().for_each(|item| add(item, None)),
        Value::Map(entries) => entries.iter().for_each(|(key, value)| add(value, Some(key))),
    }
    size
}

fn place_of(span: &Span) -> Place {
    Place { line: span.start.line(), column: span.start.col() + 1 }
}

fn malformed(text: &str, error: &ScanError) -> Problem {
    let place = Place { line: error.marker().line(), column: error.marker().col() + 1 };
    // Within `{ }` the brace of `${name}` ends a mapping.
    let line = text.lines().nth(place.line.saturating_sub(1)).unwrap_or_default();
    let has_bare_variable = line.split(['"', '\'']).step_by(2).any(|bare| bare.contains("${"));
    let help = match has_bare_variable {
        true => "write variables within { } and [ ] in quotes: \"${name}\"",
        false => "check the indentation, quotes and brackets here and on the line above",
    };
    Problem::at(place, error.info(), help)
}

/// A plan has six levels; the parser and this builder do not recurse, but dropping a tree does.
const DEPTH_MAX: usize = 64;

/// A thousand loads have some 10,000 values.
const NODE_COUNT_MAX: usize = 100_000;
