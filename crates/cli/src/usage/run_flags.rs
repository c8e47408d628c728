//! `squall run` has the flags of all that it can run: one that is not for this file would do nothing, so it is refused.

use clap::parser::ValueSource;
use clap::{ArgMatches, Args};

use crate::args::{PLAN_FLAGS, PTR_FLAGS, RunArgs, SCRIPT_FLAGS, ScriptArgs};
use crate::failure::Failure;
use crate::run::{Kind, plan_file};

/// Refuses what would do nothing. `given`: what was typed behind `run`.
pub(super) fn check(args: &RunArgs, given: &ArgMatches) -> Result<(), Failure> {
    let is_ptr = args.files.first().is_some_and(|first| plan_file::is_ptr(first));
    if let ([_, second, ..], false) = (&args.files[..], is_ptr) {
        let help = "run one file at a time; a plan can run several loads in parallel: `squall new`";
        return Err(Failure::usage(format!("`{}` is a second file", second.display()), help));
    }
    let has_config = !args.ptr.test_config.is_empty();
    let (what, own, help): (_, &[&str], _) =
        match (args.files.first().map(|file| Kind::of(file)), &args.again) {
            (Some(_), _) if has_config => ("a PTR file with a plan", &[PTR_FLAGS, PLAN_FLAGS], "remove it"),
            (Some(_), _) if is_ptr => ("a PTR file", &[PTR_FLAGS], "remove it"),
            (Some(Some(Kind::Plan)), _) => {
                ("a plan", &[PLAN_FLAGS], "set it in the plan: `squall plan schema` lists the keys")
            }
            (Some(Some(Kind::Recording)), _) => {
                ("recorded traffic", &[], "use the flags of `squall replay FILE`")
            }
            (Some(_), _) => ("a k6 script", &[SCRIPT_FLAGS], "remove it"),
            (None, Some(_)) => ("a saved run", &[], "remove it: a saved run is repeated unchanged"),
            (None, None) if has_config => ("a PTR file", &[PTR_FLAGS], "remove it"),
            (None, None) => return Ok(()),
        };
    check_pods(args, given)?;
    let own: &[&str] = match args.kubernetes.kubernetes {
        Some(_) => &[own, &[PLAN_FLAGS]].concat(),
        None => own,
    };
    let command = RunArgs::augment_args(clap::Command::new("run"));
    let foreign = command.get_arguments().find_map(|arg| {
        let heading =
            arg.get_help_heading().filter(|heading| !own.contains(heading) && KINDS.contains(heading))?;
        let is_typed = given.value_source(arg.get_id().as_str()) == Some(ValueSource::CommandLine);
        let kind = if heading == PLAN_FLAGS { "plans" } else { heading };
        is_typed.then_some((arg.get_long()?, kind))
    });
    match foreign {
        None => Ok(()),
        Some((name, kind)) => {
            Err(Failure::usage(format!("`--{name}` is for {kind}, and this is {what}"), help))
        }
    }
}

/// Refuses flags about pods where none would be started, and flags that only a run here obeys where some are.
fn check_pods(args: &RunArgs, given: &ArgMatches) -> Result<(), Failure> {
    let kind = args.files.first().filter(|_| args.ptr.test_config.is_empty()).and_then(|file| Kind::of(file));
    let pods = &args.kubernetes;
    if pods.kubernetes.is_none() {
        return match (&pods.kubectl, kind) {
            (None, _) | (_, Some(Kind::Plan)) => Ok(()),
            _ => Err(Failure::usage("`--kubectl` needs `--kubernetes`", "add `--kubernetes replicas=3`")),
        };
    }
    if kind.is_none() || plan_file::is_ptr(&args.files[0]) {
        let message = "`--kubernetes` is for plans, k6 scripts and recorded traffic in a file";
        return Err(Failure::usage(message, "name one: `squall run script.js --kubernetes replicas=3`"));
    }
    let command = ScriptArgs::augment_args(clap::Command::new("run"));
    let of_one = command.get_arguments().find_map(|arg| {
        let is_typed = given.value_source(arg.get_id().as_str()) == Some(ValueSource::CommandLine);
        arg.get_long().filter(|_| is_typed)
    });
    match of_one {
        None => Ok(()),
        Some(name) => {
            let message = format!("`--{name}` has no effect where pods run the script");
            Err(Failure::usage(
                message,
                "remove it; `--json`, `--out` and the saved run have the results of all pods",
            ))
        }
    }
}

const KINDS: [&str; 3] = [PLAN_FLAGS, PTR_FLAGS, SCRIPT_FLAGS];

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use clap::Args;
    use squall_plan::options::{LoadType, ReadContext, Written};
    use squall_plan::{GivenOption, LoadSpec, Text};
    use squall_script::script_settings;

    use super::super::parse;
    use crate::args::RunArgs;
    use crate::load;

    #[test]
    fn flags_of_a_whole_run_are_no_keys_of_a_script() {
        let command = RunArgs::augment_args(clap::Command::new("run"));
        for name in command.get_arguments().filter_map(clap::Arg::get_long) {
            let is_key =
                LoadType::Script.option(name).is_some_and(|option| option.written == Written::Anywhere);
            let options = vec![GivenOption { name: Text::typed(name), values: Vec::new() }];
            let arguments = vec![Text::typed("s.js")];
            let spec = LoadSpec { kind: Text::typed("script"), arguments, options, ..LoadSpec::default() };
            let context = ReadContext { spoiled: Some(&[]), ..load::typed() };
            let problems = script_settings(&spec, context).err().map_or_else(Vec::new, |problems| problems.0);
            let is_of_run =
                problems.iter().any(|problem| problem.message.contains("applies to the whole run"));
            assert_eq!(is_of_run, !is_key, "{name}: {problems:?}");
        }
    }

    #[test]
    fn flags_of_other_kinds_of_files_are_refused() {
        for (typed, refused) in [
            ("run plan.yaml --var a=1 --quiet", ""),
            ("run script.js --vus 5 -d 1s", ""),
            ("run --test-config a.json --user x", ""),
            ("run --test-config a.json plan.yaml --user x --var a=1", ""),
            (
                "run --test-config a.json plan.yaml --vus 1",
                "`--vus` is for k6 scripts, and this is a PTR file with a plan",
            ),
            ("run plan.yaml --monitor x", "`--monitor` is for PTR files, and this is a plan"),
            ("run --again DIR --json -", ""),
            ("run plan.yaml -d 5s", "`--duration` is for k6 scripts, and this is a plan"),
            ("run q.json --user x", "`--user` is for PTR files, and this is a plan"),
            ("run site.har --vus 5", "`--vus` is for k6 scripts, and this is recorded traffic"),
            ("run script.js --var a=1", "`--var` is for plans, and this is a k6 script"),
            ("run --again DIR --vus 5", "`--vus` is for k6 scripts, and this is a saved run"),
            ("run script.js --kubernetes replicas=3 --vus 5 --lost-after 20s", ""),
            ("run plan.yaml --kubectl oc", ""),
            ("run script.js --kubectl oc", "`--kubectl` needs `--kubernetes`"),
            (
                "run --again DIR --kubernetes replicas=3",
                "`--kubernetes` is for plans, k6 scripts and recorded traffic in a file",
            ),
            (
                "run script.js --kubernetes replicas=3 --no-summary",
                "`--no-summary` has no effect where pods run the script",
            ),
            ("run plan.yaml more.js", "`more.js` is a second file"),
        ] {
            let words = format!("squall {typed}");
            let read = parse(words.split(' ').map(OsString::from));
            assert_eq!(read.err().map_or(String::new(), |failure| failure.message), refused, "{typed}");
        }
    }
}
