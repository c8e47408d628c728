//! Writes the plan that PTR files mean, as YAML that the reader of plans reads back as the same plan.
//!
//! Owns: quoting, and which keys are written. Never: writes monitors, rules or commands of machines; PTR files have none.

use std::fmt::Write as _;

use super::super::{FileSpec, LoadSpec, Machine, PlanFile, Reach, SshSpec, Text};
use crate::GivenOption;
use crate::units::DurationText;

/// A plan that was read from PTR files, as a plan file.
pub fn ptr_plan_text(plan: &PlanFile) -> String {
    let mut text = String::new();
    if !plan.machines.is_empty() {
        let common = common(&plan.machines);
        let keys = ssh_keys(&common);
        if !keys.is_empty() {
            let _ = writeln!(text, "ssh: {{ {} }}", keys.join(", "));
        }
        text.push_str("machines:\n");
        plan.machines.iter().for_each(|machine| text.push_str(&machine_line(machine)));
    }
    if !plan.files.is_empty() {
        text.push_str("files:\n");
        plan.files.iter().for_each(|file| text.push_str(&file_line(file)));
    }
    text.push_str("steps:\n");
    for step in &plan.steps {
        let _ = writeln!(text, "  - name: {}", quoted(&step.name));
        if !step.pause.is_zero() {
            let _ = writeln!(text, "    pause: {}", DurationText(step.pause));
        }
        text.push_str("    loads:\n");
        step.loads.iter().for_each(|load| text.push_str(&load_lines(load)));
    }
    text
}

/// What holds for all machines: every one has the flags of the command line.
fn common(machines: &[Machine]) -> SshSpec {
    let first = machines.iter().find_map(|machine| match &machine.reach {
        Reach::Ssh(spec) => Some(spec.clone()),
        Reach::Local | Reach::Command(_) | Reach::Pod { .. } => None,
    });
    SshSpec { port: None, host: String::new(), ..first.unwrap_or_default() }
}

fn ssh_keys(spec: &SshSpec) -> Vec<String> {
    let keys = [("user", &spec.user), ("key", &spec.key), ("jump", &spec.jump), ("config", &spec.config)];
    keys.into_iter()
        .filter_map(|(name, value)| Some(format!("{name}: {}", quoted(value.as_ref()?))))
        .collect()
}

fn machine_line(machine: &Machine) -> String {
    let Reach::Ssh(spec) = &machine.reach else {
        return format!("  {}: local\n", quoted(&machine.name.value));
    };
    let port = spec.port.map_or_else(String::new, |port| format!(", port: {port}"));
    format!("  {}: {{ ssh: {}{port} }}\n", quoted(&machine.name.value), quoted(&spec.host))
}

fn file_line(file: &FileSpec) -> String {
    let FileSpec { from, to, mode, on, overwrite } = file;
    let on = if on.is_empty() { String::new() } else { format!(", on: {}", list(on)) };
    let overwrite = if *overwrite { ", overwrite: true" } else { "" };
    format!(
        "  - {{ from: {}, to: {}, mode: '{mode:04o}'{on}{overwrite} }}\n",
        quoted(&from.value),
        quoted(&to.value)
    )
}

fn load_lines(load: &LoadSpec) -> String {
    let mut lines = format!("      - {}: {}\n", load.kind.value, list(&load.arguments));
    let mut key = |name: &str, value: &str| {
        let _ = writeln!(lines, "        {name}: {value}");
    };
    key("name", &quoted(&load.name));
    if !load.on.is_empty() {
        key("on", &list(&load.on));
    }
    if load.per_machine {
        key("per_machine", "true");
    }
    for GivenOption { name, values } in &load.options {
        let value = if values.is_empty() { "true".to_owned() } else { list(values) };
        key(&name.value, &value);
    }
    lines
}

/// One text, or a list of them.
fn list(texts: &[Text]) -> String {
    match texts {
        [text] => quoted(&text.value),
        _ => {
            let items: Vec<String> = texts.iter().map(|text| quoted(&text.value)).collect();
            format!("[{}]", items.join(", "))
        }
    }
}

/// A scalar of YAML 1.2 (7.3): plain where that is one for every reader, else in quotes. `${` would be a variable.
fn quoted(text: &str) -> String {
    let text = text.replace("${", "$${");
    let is_word = |c: char| c.is_ascii_alphanumeric() || "_./-@".contains(c);
    let is_plain = text.starts_with(|c: char| c.is_ascii_alphanumeric() || "_/.".contains(c))
        && text.chars().all(is_word)
        && !["true", "false", "null", "yes", "no", "on", "off"].contains(&text.to_ascii_lowercase().as_str());
    if is_plain {
        text
    } else if text.chars().any(char::is_control) {
        let escaped = text.chars().map(|c| match c {
            '"' | '\\' => format!("\\{c}"),
            c if c.is_control() => format!("\\u{:04X}", u32::from(c)),
            c => c.to_string(),
        });
        format!("\"{}\"", escaped.collect::<String>())
    } else {
        format!("'{}'", text.replace('\'', "''"))
    }
}
