//! The command line.

use std::path::PathBuf;

use crate::case::{self, Case};
use crate::tool::Tool;

/// What to compare, and how long.
#[derive(Debug)]
pub(crate) struct Options {
    pub(crate) cases: Vec<&'static Case>,
    /// The names of the tools to compare squall with; empty: all.
    pub(crate) tools: Vec<String>,
    /// Whether the time from start to first request is compared too.
    pub(crate) with_start: bool,
    pub(crate) round_count: usize,
    /// Length of each tool's run in a round.
    pub(crate) seconds: u32,
    /// Where the figures go as JSON.
    pub(crate) out: PathBuf,
}

impl Options {
    /// Reads `--case NAME[,NAME]|all`, `--tool NAME[,NAME]`, `--rounds N`, `--seconds N`, `--out FILE`.
    pub(crate) fn parse(mut args: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut options = Self {
            cases: Vec::new(),
            tools: Vec::new(),
            with_start: false,
            round_count: 5,
            seconds: 3,
            out: "target/bench.json".into(),
        };
        options.choose_cases("all")?;
        while let Some(flag) = args.next() {
            let value = args.next().ok_or_else(|| format!("{flag} needs a value"))?;
            match flag.as_str() {
                "--case" => options.choose_cases(&value)?,
                "--tool" => options.choose_tools(&value)?,
                "--rounds" => options.round_count = at_least_one(&flag, &value)? as usize,
                "--seconds" => options.seconds = at_least_one(&flag, &value)?,
                "--out" => options.out = value.into(),
                _ => return Err(format!("unknown flag {flag}")),
            }
        }
        Ok(options)
    }

    fn choose_tools(&mut self, names: &str) -> Result<(), String> {
        let is_known =
            |name: &str| case::CASES.iter().any(|case| case.tools().any(|tool| tool.name() == name));
        if let Some(unknown) = names.split(',').find(|name| !is_known(name)) {
            return Err(format!("unknown tool {unknown}"));
        }
        self.tools = names.split(',').map(str::to_owned).collect();
        Ok(())
    }

    /// Whether squall is compared with `tool`; it is always compared itself.
    pub(crate) fn includes(&self, tool: Tool) -> bool {
        tool == Tool::Squall || self.tools.is_empty() || self.tools.iter().any(|name| name == tool.name())
    }

    fn choose_cases(&mut self, names: &str) -> Result<(), String> {
        let is_chosen = |name: &str| names == "all" || names.split(',').any(|one| one == name);
        if let Some(unknown) = names.split(',').find(|one| *one != "all" && !case::names().contains(one)) {
            return Err(format!("unknown case {unknown}"));
        }
        self.cases = case::CASES.iter().filter(|case| is_chosen(case.name)).collect();
        self.with_start = is_chosen(case::START);
        Ok(())
    }
}

fn at_least_one(flag: &str, value: &str) -> Result<u32, String> {
    let number = value.parse().ok().filter(|number| *number > 0);
    number.ok_or_else(|| format!("{flag} {value}: a whole number above zero is needed"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(args: &str) -> Result<Options, String> {
        Options::parse(args.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn cases_are_chosen_by_name() {
        let options = parse("--case small-100,start --rounds 2").unwrap();
        assert_eq!((options.cases.len(), options.with_start, options.round_count), (1, true, 2));
        let options = parse("--tool before,wrk").unwrap();
        let included = [Tool::Squall, Tool::Before, Tool::Wrk, Tool::Oha].map(|tool| options.includes(tool));
        assert_eq!(included, [true, true, true, false]);
        assert_eq!(parse("").unwrap().cases.len(), case::CASES.len());
    }

    #[test]
    fn nonsense_is_refused() {
        for args in ["--case fast", "--rounds 0", "--rounds x", "--fast 1", "--case", "--tool curl"] {
            assert!(parse(args).is_err(), "{args}");
        }
    }
}
