//! Modules of a crate import each other in one direction: where two import each other, neither can be read alone.
//!
//! Reads `use` declarations and paths of product code.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::Findings;
use super::sources::Source;

type Module = Vec<String>;
type Graph = BTreeMap<Module, BTreeSet<Module>>;

/// Looks for circles in every crate.
pub(super) fn check(files: &[Source], findings: &mut Findings) {
    let mut graphs: BTreeMap<&str, Vec<(Module, &str)>> = BTreeMap::new();
    for file in files {
        if let Some((package, module)) = module_of(&file.path) {
            graphs.entry(package).or_default().push((module, &file.text));
        }
    }
    for (package, modules) in &graphs {
        for circle in circles(&graph(modules)) {
            let names: Vec<String> = circle.iter().map(|module| module.join("::")).collect();
            findings.push(format!("{package}: {}", names.join(", ")), "import each other in a circle");
        }
    }
}

/// Crate and module of a product file; `None` for tests and for what is not in a crate.
fn module_of(path: &Path) -> Option<(&str, Module)> {
    let mut parts = path.iter().filter_map(|part| part.to_str());
    let (crates, package, src) = (parts.next()?, parts.next()?, parts.next()?);
    let mut module: Module = parts.map(|part| part.trim_end_matches(".rs").to_owned()).collect();
    module.retain(|part| !["mod", "lib", "main"].contains(&part.as_str()));
    let is_product = crates == "crates" && src == "src" && !module.iter().any(|part| part == "tests");
    is_product.then_some((package, module))
}

fn graph(modules: &[(Module, &str)]) -> Graph {
    let known: BTreeSet<&Module> = modules.iter().map(|(module, _)| module).collect();
    let imports = |module: &Module, text: &str| {
        let named = paths(text).into_iter().filter_map(|path| target(module, &path, &known));
        named.filter(|named| named != module && !named.is_empty()).collect()
    };
    modules.iter().map(|(module, text)| (module.clone(), imports(module, text))).collect()
}

/// The module that a path leads into, as far as it leads through modules.
fn target(module: &Module, path: &[String], known: &BTreeSet<&Module>) -> Option<Module> {
    let (mut at, mut rest) = match path.first()?.as_str() {
        "crate" => (Vec::new(), &path[1..]),
        "self" => (module.clone(), &path[1..]),
        _ => (module.clone(), path),
    };
    while let [first, more @ ..] = rest
        && first == "super"
    {
        at.pop();
        rest = more;
    }
    for part in rest {
        let next = [&at[..], std::slice::from_ref(part)].concat();
        if !known.contains(&next) {
            break;
        }
        at = next;
    }
    Some(at)
}

/// Every path from `crate`, `self` or `super` in product code, with braces written out.
fn paths(text: &str) -> Vec<Vec<String>> {
    let product = text.split("#[cfg(test)]").next().unwrap_or(text);
    let lines = product.lines().map(|line| line.split("//").next().unwrap_or(line));
    let code: String = lines.flat_map(|line| [line, "\n"]).collect();
    let mut found = Vec::new();
    for start in ["crate::", "self::", "super::"] {
        for (at, _) in code.match_indices(start) {
            let before = code[..at].chars().next_back();
            if !before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == ':' || c == '$') {
                let mut parts = Vec::new();
                read_path(&code[at..], &mut parts, &mut found);
            }
        }
    }
    found
}

/// Reads one path of `text`, all of a brace's with `parts` in front; gives the rest of the text.
fn read_path<'t>(text: &'t str, parts: &mut Vec<String>, found: &mut Vec<Vec<String>>) -> &'t str {
    let begin = parts.len();
    let mut rest = text.trim_start();
    loop {
        if let Some(inner) = rest.strip_prefix('{') {
            rest = read_braces(inner, parts, found);
            parts.truncate(begin);
            return rest;
        }
        let length = rest.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(rest.len());
        parts.push(rest[..length].to_owned());
        rest = &rest[length..];
        match rest.strip_prefix("::") {
            Some(more) => rest = more,
            None => break,
        }
    }
    found.push(parts.clone());
    parts.truncate(begin);
    rest
}

fn read_braces<'t>(text: &'t str, parts: &mut Vec<String>, found: &mut Vec<Vec<String>>) -> &'t str {
    let mut rest = text.trim_start();
    while !rest.is_empty() && !rest.starts_with('}') {
        rest = read_path(rest, parts, found);
        // A renamed one is followed by its new name.
        rest = rest.trim_start_matches(|c: char| c != ',' && c != '}');
        rest = rest.trim_start_matches(',').trim_start();
    }
    rest.strip_prefix('}').unwrap_or(rest)
}

/// Groups of modules each of which leads to all others, sorted.
fn circles(graph: &Graph) -> Vec<Vec<Module>> {
    let reach: BTreeMap<&Module, BTreeSet<&Module>> =
        graph.keys().map(|module| (module, reachable(graph, module))).collect();
    let mut circles: Vec<Vec<Module>> = Vec::new();
    for (module, reached) in &reach {
        let is_back = |other: &&&Module| reach.get(**other).is_some_and(|back| back.contains(module));
        let circle: Vec<Module> = reached.iter().filter(is_back).map(|module| (*module).clone()).collect();
        if circle.len() > 1 && !circles.contains(&circle) {
            circles.push(circle);
        }
    }
    circles
}

/// What a module imports, and what that imports, and so on.
fn reachable<'g>(graph: &'g Graph, module: &Module) -> BTreeSet<&'g Module> {
    let mut reached = BTreeSet::new();
    let mut next: Vec<&Module> = graph.get(module).into_iter().flatten().collect();
    while let Some(module) = next.pop() {
        if reached.insert(module) {
            next.extend(graph.get(module).into_iter().flatten());
        }
    }
    reached
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_read_with_their_braces() {
        let text = "use crate::a::{self, b::C, d::{E as F, G}};\n// use crate::no::More;\nfn f(x: super::h::I) {}\n\
                    $crate::macro_path;\n#[cfg(test)]\nuse crate::of_tests;";
        let found: Vec<String> = paths(text).iter().map(|path| path.join("::")).collect();
        assert_eq!(
            found,
            ["crate::a::self", "crate::a::b::C", "crate::a::d::E", "crate::a::d::G", "super::h::I"]
        );
    }

    #[test]
    fn modules_that_import_each_other_are_a_circle() {
        let source = |path: &str, text: &str| Source { path: path.into(), text: text.to_owned() };
        let files = [
            source("crates/x/src/lib.rs", "mod a;\nmod b;\nmod c;\n"),
            source("crates/x/src/a.rs", "use crate::b::B;\n"),
            source("crates/x/src/b/mod.rs", "mod inner;\nuse inner::Inner;\n"),
            source("crates/x/src/b/inner.rs", "use crate::c::C;\nuse super::B;\n"),
            source("crates/x/src/c.rs", "use super::b::inner::Inner;\n"),
        ];
        let mut findings = Findings::default();
        check(&files, &mut findings);
        assert_eq!(findings.0, ["x: b::inner, c: import each other in a circle"]);
    }
}
