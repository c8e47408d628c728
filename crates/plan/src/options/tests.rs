//! The table is whole, and what is wrong with a load is found at once, with its place.

use std::collections::HashSet;

use super::*;
use crate::{GivenOption, LoadSpec, Place, Text};

/// Options as flags: `rate=5x`, `insecure`.
fn spec(kind: LoadType, words: &str) -> LoadSpec {
    let mut spec = LoadSpec { kind: Text::typed(kind.name()), is_whole: true, ..LoadSpec::default() };
    for (column, word) in (10..).zip(words.split_whitespace()) {
        let place = Place { line: 1, column };
        let text = |value: &str| Text { value: value.to_owned(), place };
        match word.strip_prefix('/') {
            Some(argument) => spec.arguments.push(text(argument)),
            None => match word.split_once('=') {
                Some((name, value)) => spec.push(name, text(value)),
                None => spec.options.push(GivenOption { name: text(word), values: Vec::new() }),
            },
        }
    }
    spec
}

fn problems(kind: LoadType, words: &str, spoiled: Option<&[Place]>) -> String {
    let spec = spec(kind, words);
    let context = ReadContext { spoiled, check: &|_, _| Ok(()) };
    let found = match kind {
        LoadType::Http => crate::load::http(&spec, context).err(),
        LoadType::Handshake => crate::load::handshake(&spec, context).err(),
        LoadType::Idle => crate::load::idle(&spec, context).err(),
        _ => crate::load::replay(&spec, context).err(),
    };
    let found = found.map(|problems| problems.0).unwrap_or_default();
    let option = |problem: &OptionProblem| {
        let place = problem.place.unwrap_or_default();
        format!("{}@{}", problem.option.clone().unwrap_or_default(), place.column)
    };
    found.iter().map(option).collect::<Vec<_>>().join(" ")
}

#[test]
fn every_row_of_the_table_is_complete() {
    for kind in LoadType::LOADS {
        let mut names = HashSet::new();
        for option in kind.options() {
            assert!(names.insert(option.name), "{} twice", option.name);
            assert_eq!(
                option.value_name.is_empty(),
                option.is_switch() || option.is_hidden,
                "{}",
                option.name
            );
            assert!(!option.help().is_empty(), "{}", option.name);
            let others = option.conflicts.iter().chain(option.requires.iter());
            for other in others.filter(|_| kind != LoadType::Recording) {
                let is_there = LoadType::LOADS
                    .iter()
                    .any(|kind| kind.option(option.name).is_some() && kind.option(other).is_some());
                assert!(is_there, "{} of {}", other, option.name);
            }
        }
    }
}

#[test]
fn every_default_can_be_read() {
    let context = ReadContext { spoiled: None, check: &|_, _| Ok(()) };
    assert!(crate::load::http(&spec(LoadType::Http, "/x"), context).is_ok());
    assert!(crate::load::handshake(&spec(LoadType::Handshake, "/x"), context).is_ok());
    assert!(crate::load::idle(&spec(LoadType::Idle, "/x"), context).is_ok());
    assert!(crate::load::replay(&spec(LoadType::Replay, "/x"), context).is_ok());
}

#[test]
fn all_that_is_wrong_is_found_and_nothing_that_follows() {
    for (kind, words, expected) in [
        (LoadType::Http, "connections=10 /x", ""),
        (LoadType::Http, "rate=5x duration=10 timeout=1q /x", "rate@10 duration@11 timeout@12"),
        (LoadType::Http, "rate=5x arrival=poisson /x", "rate@10"),
        (LoadType::Http, "key=Cargo.toml cert=Cargo.toml rate=0x /x", "rate@12"),
        (
            LoadType::Http,
            "body=a body-file=b follow=51 window=x /x",
            "body@10 body-file@11 follow@12 window@13",
        ),
        (LoadType::Http, "key=k window=x /x", "key@10 window@11"),
        (LoadType::Http, "streams=4 http=3 /x", "http@11"),
        (LoadType::Http, "pipeline=4 /ftp://x/", "URL@11"),
        (LoadType::Http, "header=a:b header=c", "header@11"),
        (LoadType::Http, "insecure=yes rate=1 rate=2 /x", "insecure@10 rate@12"),
        (LoadType::Idle, "sni=x tls=9 /host:1", "tls@11"),
        (LoadType::Idle, "tls insecure /host:1", ""),
        (LoadType::Idle, "pause=1s open-rate=5/s connections=x /host:1", "pause@10 connections@12"),
        (LoadType::Http, "unix-socket= body-file= header=@ /x", "unix-socket@10 body-file@11 header@12"),
        (LoadType::Http, "key body=a body=b body-file=Cargo.toml /x", "key@10 body@12"),
        (LoadType::Handshake, "tickets=off resumption-ratio=50% /x:1", ""),
        (LoadType::Handshake, "resumption-ratio=50% /x:1", "resumption-ratio@10"),
        (LoadType::Replay, "asap user-shift=1s /x", ""),
        (LoadType::Replay, "speed=fast set-form=password to=nowhere /x", "speed@10 to@12 set-form@11"),
    ] {
        let found = problems(kind, words, None);
        let sorted = |text: &str| {
            let mut words: Vec<String> = text.split(' ').map(str::to_owned).collect();
            words.sort();
            words
        };
        assert_eq!(sorted(&found), sorted(expected), "{words}");
    }
}

#[test]
fn keys_of_a_plan_are_checked_where_nothing_is_known_of_them() {
    let spoiled = [Place { line: 1, column: 11 }];
    for (words, expected) in [
        ("connections=10 rate=x /x", ""),
        ("conections=10 rate=x /x", "conections@10"),
        ("threshold=x rate=x /x", "threshold@10"),
        ("per-thread=x rate=x /x", "per-thread@10"),
        ("no-summary rate=x /x", "no-summary@10"),
        ("connections=0 rate=x arrival=poisson /x", "connections@10"),
        ("rate=1 conections=1 arrival=a arrival=b /x", "arrival@13"),
        ("threshold=x conections=1 key /x", "threshold@10 key@12"),
    ] {
        assert_eq!(problems(LoadType::Http, words, Some(&spoiled)), expected, "{words}");
    }
}
