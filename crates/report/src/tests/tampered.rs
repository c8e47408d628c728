//! Saved runs that were changed by hand: each is read or refused, and what is read can be drawn.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use serde_json::{Value, json};

use super::fixture;
use crate::page;
use crate::store;
use crate::{Style, Summary, csv, json, junit, terminal};

/// Every place in a tree, as keys and indices.
fn places(value: &Value, path: &str, all: &mut Vec<String>) {
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                places(value, &format!("{path}/{}", key.replace('~', "~0").replace('/', "~1")), all);
            }
        }
        // Of a list the first and the last are enough.
        Value::Array(list) => {
            for idx in [0, list.len().saturating_sub(1)] {
                list.get(idx).into_iter().for_each(|one| places(one, &format!("{path}/{idx}"), all));
            }
        }
        _ => {}
    }
    all.push(path.to_owned());
}

fn odd_values() -> Vec<Value> {
    vec![
        Value::Null,
        json!(0),
        json!(-1),
        json!(1),
        json!(u64::MAX),
        json!(u64::from(u32::MAX)),
        json!(1e308),
        json!(-0.5),
        json!(""),
        json!("\u{1b}[2J</script>"),
        json!([]),
        json!({}),
        json!(true),
    ]
}

/// Reads a run as `squall report` does, and draws every face of it.
fn draw_all(file: &Path) -> bool {
    let Ok(record) = store::open(file) else { return false };
    let summary = Summary::from(&record);
    let text = terminal::draw(&summary, Some(file), Style::FILE);
    assert!(!text.contains('\u{1b}'), "an escape reached the terminal");
    drop((
        json::draw(&summary),
        csv::draw(&summary),
        junit::draw(&summary),
        page::draw(&page::of_run(&record)),
    ));
    true
}

#[test]
fn a_tampered_run_is_an_error_and_never_a_panic() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("run.json");
    let (mut read_count, mut refused_count, mut panics) = (0, 0, Vec::new());
    // Each place meets a few of the odd values, in turn; with `SQUALL_HOSTILE=all`, every one.
    let is_whole = std::env::var_os("SQUALL_HOSTILE").is_some();
    for record in [fixture::open_run(), fixture::closed_run()] {
        let whole = serde_json::to_value(&record).unwrap();
        let mut all = Vec::new();
        places(&whole, "", &mut all);
        for (nth, place) in all.iter().enumerate() {
            let is_picked = |idx: usize| is_whole || idx == nth % 13 || idx == (nth * 5 + 4) % 13;
            let odd_values = odd_values().into_iter().enumerate().filter(|(idx, _)| is_picked(*idx));
            for (_, odd) in odd_values {
                let mut tampered = whole.clone();
                *tampered.pointer_mut(place).unwrap() = odd.clone();
                std::fs::write(&file, tampered.to_string()).unwrap();
                match catch_unwind(AssertUnwindSafe(|| draw_all(&file))) {
                    Ok(true) => read_count += 1,
                    Ok(false) => refused_count += 1,
                    Err(_) => panics.push(format!("{place} = {odd}")),
                }
            }
        }
    }
    assert!(read_count > 100 && refused_count > 100, "{read_count} read, {refused_count} refused");
    panics.truncate(40);
    assert!(panics.is_empty(), "{read_count} read, {refused_count} refused:\n{}", panics.join("\n"));
}

#[test]
fn a_run_cut_off_anywhere_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("run.json");
    let whole = serde_json::to_string(&fixture::closed_run()).unwrap();
    for at in (0..whole.len()).step_by(whole.len() / 50) {
        std::fs::write(&file, &whole[..whole.floor_char_boundary(at)]).unwrap();
        assert!(!draw_all(&file), "{at}");
    }
}
