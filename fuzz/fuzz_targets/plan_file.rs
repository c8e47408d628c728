//! Arbitrary text as a plan file and as a PTR file. Nothing panics, every problem has a place in the text, and what is accepted has
//! a step with a load.

#![no_main]

use libfuzzer_sys::fuzz_target;
use squall_plan::file::{PlanFile, Problem, PtrFile, PtrOptions, Variables, is_ptr, parse_ptr};

fuzz_target!(|text: &str| {
    let environment = |name: &str| (name.len() < 3).then(|| "value".to_owned());
    let given = [("given".to_owned(), "1s".to_owned())];
    match PlanFile::parse(
        text,
        &Variables { given: &given, environment: &environment, hosts: &|_| Ok(text.to_owned()) },
    ) {
        Ok(file) => assert!(file.loads().next().is_some()),
        Err(problems) => check(text, &problems),
    }
    is_ptr(text);
    for external in [false, true] {
        let options = PtrOptions { external, ..PtrOptions::default() };
        if let Err(problems) =
            parse_ptr(&[PtrFile { text: text.to_owned(), folder: String::new() }], &options)
        {
            check(text, &problems.into_iter().map(|(_, problem)| problem).collect::<Vec<_>>());
        }
    }
});

/// Variables may make lines longer, but nothing makes more of them. YAML 1.2.2 5.4: a line ends in LF, CR, or both.
fn check(text: &str, problems: &[Problem]) {
    assert!(!problems.is_empty());
    for problem in problems {
        let lines = text.split(['\n', '\r']).count() + 1;
        assert!((1..=lines).contains(&problem.place.line) && problem.place.column >= 1, "{problem}");
        assert!(!problem.message.is_empty() && !problem.help.is_empty(), "{problem}");
    }
}
