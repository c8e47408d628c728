//! What loads need of the crates above `plan`: checks of single values, and scripts, ready to run.

pub(crate) mod script;
mod source_line;

use squall_engine::settled;
use squall_measure::{Objectives, Threshold};
use squall_plan::options::ReadContext;
use squall_plan::{InputError, LoadSpec, Plan, Problems};
use squall_traffic::change::{check_message, check_replacement, check_template};
use squall_traffic::pattern;

use crate::traffic::reading;

/// The plan of `squall http` as this machine makes it.
pub(crate) fn http_plan(spec: &LoadSpec) -> Result<Plan, Problems> {
    Ok(settled(squall_plan::load::http(spec, typed())?)?)
}

/// How options that were typed are read.
pub(crate) fn typed() -> ReadContext<'static> {
    ReadContext { spoiled: None, check: &check_value }
}

/// What the crates above `plan` say of a value of an option.
pub(crate) fn check_value(option: &str, text: &str) -> Result<(), InputError> {
    let behind = |mark: &str| text.split_once(mark).map_or("", |(_, rest)| rest);
    match option {
        "threshold" => text.parse::<Threshold>().map(drop),
        "slo" => text.parse::<Objectives>().map(drop),
        "set-header" => check_template(behind(":")),
        "set-query" | "set-form" | "set-json" | "set-cookie" | "jwt-claim" => check_template(behind("=")),
        "message" if !text.starts_with('@') => check_message(text.as_bytes()),
        "message-text" => check_message(text.as_bytes()),
        "replace" => {
            pattern::compile(text.split("=>").next().unwrap_or(text))?;
            check_replacement(behind("=>"))
        }
        _ => reading::check(option, text),
    }
}

#[cfg(test)]
mod tests;
