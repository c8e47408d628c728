//! What the browser reads (`ui/src/data.ts`) is in the data that the program writes, with the type that is declared there.
//!
//! The program may write more: a figure that no chart shows needs no declaration.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use squall_measure::{Monitor, MonitorUnit, RunRecord};

use super::{connections, fixture, received, runs_of_every_kind};
use crate::page::{self, Feed, FeedState, Position};

#[test]
fn what_the_browser_reads_is_what_the_program_writes() {
    let mut contract = Contract::of(include_str!("../../../../ui/src/data.ts"));
    for record in runs_of_every_kind().into_iter().chain([
        fixture::tools_run(),
        monitored(),
        received::on_two_machines(connections::websocket_run()),
    ]) {
        contract.check("RunPage", &serde_json::to_value(page::of_run(&record)).unwrap());
    }
    let mut feed = Feed::default();
    feed.update(&fixture::closed_recorder(8), &[], FeedState::Running);
    let message = feed.message(&mut Position::default());
    contract.check("LiveUpdate", &serde_json::from_str(&message).unwrap());
    assert_eq!(contract.problems, BTreeSet::new());
    let never: Vec<_> = contract.fields_below("LiveUpdate").difference(&contract.seen).cloned().collect();
    assert_eq!(never, Vec::<String>::new(), "fields that no run has");
}

fn monitored() -> RunRecord {
    let mut cpu = Monitor::new("target shop", "cpu", MonitorUnit::Percent);
    cpu.push(1.0, 50.0);
    RunRecord { monitors: vec![cpu], ..fixture::closed_run() }
}

#[test]
fn another_type_and_a_missing_field_are_found() {
    let text = "export interface A { n: number; s?: 'x' | null; list: [number, B][] }\nexport interface B { b: boolean }";
    for (json, problem) in [
        (serde_json::json!({"n": 1, "s": "x", "list": [[1, {"b": true, "more": 1}]]}), None),
        (serde_json::json!({"list": []}), Some("A.n is missing")),
        (serde_json::json!({"n": "1", "list": []}), Some("A.n is \"1\" and not a number")),
        (serde_json::json!({"n": 1, "s": "y", "list": []}), Some("A.s is \"y\" and none of its types")),
        (serde_json::json!({"n": 1, "list": [[1, {}]]}), Some("B.b is missing")),
    ] {
        let mut contract = Contract::of(text);
        contract.check("A", &json);
        assert_eq!(contract.problems.first().map(String::as_str), problem, "{json}");
    }
}

/// The declared types, and what was found of them.
struct Contract {
    types: BTreeMap<String, Type>,
    problems: BTreeSet<String>,
    /// `Interface.field` of each that was there.
    seen: BTreeSet<String>,
}

#[derive(Debug, Clone)]
enum Type {
    Any,
    Primitive(&'static str),
    Literal(String),
    Named(String),
    List(Box<Self>),
    Tuple(Vec<Self>),
    Record(Box<Self>),
    Object(Vec<Field>),
    Union(Vec<Self>),
}

#[derive(Debug, Clone)]
struct Field {
    name: String,
    is_optional: bool,
    of: Type,
}

impl Contract {
    fn of(text: &str) -> Self {
        let mut types = BTreeMap::new();
        for keyword in ["export interface ", "export type "] {
            for (at, _) in text.match_indices(keyword) {
                let (name, rest) = text[at + keyword.len()..].split_once([' ', '=']).unwrap();
                let rest = rest.trim_start().trim_start_matches('=');
                types.insert(name.to_owned(), Parser(rest).union());
            }
        }
        Self { types, problems: BTreeSet::new(), seen: BTreeSet::new() }
    }

    fn check(&mut self, name: &str, value: &Value) {
        let of = self.types.get(name).unwrap_or_else(|| panic!("`{name}` is not declared")).clone();
        self.check_type(name, &of, value);
    }

    fn check_type(&mut self, place: &str, of: &Type, value: &Value) {
        let is_fitting = match (of, value) {
            (Type::Any, _) => true,
            (Type::Primitive("number"), value) => value.is_number(),
            (Type::Primitive("string"), value) => value.is_string(),
            (Type::Primitive("boolean"), value) => value.is_boolean(),
            (Type::Primitive(_), value) => value.is_null(),
            (Type::Literal(text), value) => value.as_str() == Some(text),
            (Type::Named(name), value) => {
                self.check(name, value);
                true
            }
            (Type::List(of), Value::Array(items)) => {
                items.iter().for_each(|item| self.check_type(place, of, item));
                true
            }
            (Type::Tuple(each), Value::Array(items)) => {
                each.iter().zip(items).for_each(|(of, item)| self.check_type(place, of, item));
                each.len() == items.len()
            }
            (Type::Record(of), Value::Object(members)) => {
                members.values().for_each(|member| self.check_type(place, of, member));
                true
            }
            (Type::Object(fields), Value::Object(members)) => {
                fields.iter().for_each(|field| self.check_field(place, field, members.get(&field.name)));
                true
            }
            (Type::Union(ways), value) => {
                self.check_union(place, ways, value);
                true
            }
            _ => false,
        };
        if !is_fitting {
            self.problems.insert(format!("{place} is {value} and not {}", of.words()));
        }
    }

    fn check_field(&mut self, place: &str, field: &Field, value: Option<&Value>) {
        let place = format!("{place}.{}", field.name);
        match value {
            Some(value) => {
                self.check_type(&place, &field.of, value);
                self.seen.insert(place);
            }
            None if field.is_optional => {}
            None => drop(self.problems.insert(format!("{place} is missing"))),
        }
    }

    /// Takes the first of the types that fits.
    fn check_union(&mut self, place: &str, ways: &[Type], value: &Value) {
        for way in ways {
            let mut trial =
                Self { types: self.types.clone(), problems: BTreeSet::new(), seen: BTreeSet::new() };
            trial.check_type(place, way, value);
            if trial.problems.is_empty() {
                self.seen.append(&mut trial.seen);
                return;
            }
        }
        self.problems.insert(format!("{place} is {value} and none of its types"));
    }

    /// `Interface.field` of all that `name` leads to.
    fn fields_below(&self, name: &str) -> BTreeSet<String> {
        let (mut fields, mut known, mut next) = (BTreeSet::new(), BTreeSet::new(), vec![name.to_owned()]);
        while let Some(name) = next.pop() {
            if known.insert(name.clone()) {
                self.types[&name].collect(&name, &mut fields, &mut next);
            }
        }
        fields
    }
}

impl Type {
    fn words(&self) -> String {
        match self {
            Self::Primitive(name) => format!("a {name}"),
            Self::Literal(text) => format!("`{text}`"),
            other => format!("{other:?}"),
        }
    }

    fn collect(&self, place: &str, fields: &mut BTreeSet<String>, next: &mut Vec<String>) {
        match self {
            Self::Any | Self::Primitive(_) | Self::Literal(_) => {}
            Self::Named(name) => next.push(name.clone()),
            Self::List(of) | Self::Record(of) => of.collect(place, fields, next),
            Self::Tuple(each) | Self::Union(each) => {
                each.iter().for_each(|of| of.collect(place, fields, next));
            }
            Self::Object(members) => {
                for field in members {
                    let place = format!("{place}.{}", field.name);
                    field.of.collect(&place, fields, next);
                    fields.insert(place);
                }
            }
        }
    }
}

/// Reads the types of TypeScript that the contract has.
struct Parser<'a>(&'a str);

impl Parser<'_> {
    fn union(&mut self) -> Type {
        let mut ways = vec![self.postfix()];
        while self.takes("|") {
            ways.push(self.postfix());
        }
        if ways.len() == 1 { ways.remove(0) } else { Type::Union(ways) }
    }

    fn postfix(&mut self) -> Type {
        let mut of = self.primary();
        while self.takes("[]") {
            of = Type::List(Box::new(of));
        }
        of
    }

    fn primary(&mut self) -> Type {
        if self.takes("(") {
            let of = self.union();
            assert!(self.takes(")"), "{}", self.0);
            return of;
        }
        if self.takes("[") {
            return Type::Tuple(self.listed("]", Self::union));
        }
        if self.takes("{") {
            return Type::Object(self.listed("}", Self::field));
        }
        if self.takes("'") {
            let (text, rest) = self.0.split_once('\'').unwrap();
            self.0 = rest;
            return Type::Literal(text.to_owned());
        }
        match self.word() {
            "unknown" => Type::Any,
            "number" => Type::Primitive("number"),
            "string" => Type::Primitive("string"),
            "boolean" => Type::Primitive("boolean"),
            "null" => Type::Primitive("null"),
            "Record" => {
                assert!(self.takes("<string,"), "{}", self.0);
                let of = self.union();
                assert!(self.takes(">"), "{}", self.0);
                Type::Record(Box::new(of))
            }
            name => Type::Named(name.to_owned()),
        }
    }

    fn field(&mut self) -> Field {
        let name = self.word().to_owned();
        let is_optional = self.takes("?");
        assert!(self.takes(":"), "{}", self.0);
        Field { name, is_optional, of: self.union() }
    }

    /// What there is up to `end`, with commas or semicolons between.
    fn listed<T>(&mut self, end: &str, read: fn(&mut Self) -> T) -> Vec<T> {
        let mut all = Vec::new();
        while !self.takes(end) {
            all.push(read(self));
            let _ = self.takes(";") || self.takes(",");
        }
        all
    }

    fn word(&mut self) -> &str {
        let text = self.0.trim_start();
        let length = text.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(text.len());
        let (word, rest) = text.split_at(length);
        assert!(!word.is_empty(), "{text}");
        self.0 = rest;
        word
    }

    fn takes(&mut self, sign: &str) -> bool {
        let rest = self.0.trim_start().strip_prefix(sign);
        self.0 = rest.unwrap_or(self.0);
        rest.is_some()
    }
}
