//! The reference of the documentation, `docs/load-options.md`: `UPDATE_GOLDEN=1 cargo test -p squall-plan --lib reference` writes it.

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

use super::*;

#[test]
fn the_documentation_has_every_option() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/load-options.md");
    let mut text = HEAD.to_owned();
    for kind in LoadType::LOADS {
        let _ = write!(text, "\n## {}\n\n| option | value | meaning |\n|---|---|---|\n", kind.name());
        for option in kind.options().filter(|option| !option.is_hidden && option.written != Written::AsLetter)
        {
            let letter = option.short.map_or_else(String::new, |letter| format!(", `-{letter}`"));
            let is_key = kind.keys().any(|key| key.name == option.name);
            let only = if is_key { "" } else { " (flag only)" };
            let help = option.help().replace('|', "\\|").replace('<', "&lt;");
            let default = option.default.map_or_else(String::new, |value| format!(" [default: {value}]"));
            let name = option.name;
            let _ = writeln!(text, "| `{name}`{letter}{only} | {} | {help}{default} |", value(option));
        }
    }
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        return fs::write(path, text).unwrap();
    }
    let hint = "run with UPDATE_GOLDEN=1 when the table has changed";
    assert!(fs::read_to_string(path).unwrap() == text, "docs/load-options.md differs from the table: {hint}");
}

/// How a value is written, in the reference.
fn value(option: &LoadOption) -> String {
    let form = match option.form {
        ValueForm::Switch => "–".to_owned(),
        ValueForm::Choice(_) => {
            option.choices().iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(" ")
        }
        ValueForm::Text => format!("`{}`", option.value_name),
        ValueForm::File => "a file".to_owned(),
        ValueForm::Path => "a path on the machine that makes the load".to_owned(),
        ValueForm::Number => "a number".to_owned(),
        ValueForm::Time => "a time".to_owned(),
        ValueForm::Rate => "a rate".to_owned(),
        ValueForm::Size => "a size".to_owned(),
    };
    match option.arity {
        Arity::One => form,
        Arity::OneOr(_) => format!("{form}, optional: `--{0}=…`, `{0}: true`", option.name),
        Arity::Many | Arity::List => format!("{form}, repeatable"),
    }
}

const HEAD: &str = "# Options of loads

<!-- Written from the table in crates/plan/src/options. -->

Every option of every kind of load: as a flag of its command (`--connections 100`), and as a key of a load in a
[plan](plans.md) (`connections: 100`). For times, sizes, counts and rates see [Units](http.md#units). The pages of the
commands explain what the options do together: [http](http.md), [stream](streams.md), [ws](websocket.md),
[handshake](handshake.md), [idle](idle.md), [replay](recorded-traffic.md) and [k6 scripts](k6.md).
";
