//! Functions stay short: a ratchet that is only ever tightened.

use std::path::Path;

use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{Attribute, Block, ImplItemFn, ItemFn, ItemMod, Signature, TraitItemFn};

use super::Findings;
use super::sources::Source;

/// Nine of ten functions have no more lines than this.
const P90_LINES_MAX: usize = 25;

/// Longer than this is long.
const LONG_LINES: usize = 70;

/// So many long functions are tolerated.
const LONG_COUNT_MAX: usize = 3;

/// A function and how many lines it has, signature and braces included.
struct Function {
    place: String,
    line_count: usize,
}

/// Checks the functions of every file, tests apart: a table of cases is long and easy to read.
pub(super) fn check(files: &[Source], findings: &mut Findings) {
    let mut functions: Vec<Function> = files
        .iter()
        .filter(|file| !is_test(&file.path))
        .flat_map(|file| functions_of(file, findings))
        .collect();
    functions.sort_by_key(|function| std::cmp::Reverse(function.line_count));
    let long_count = functions.iter().take_while(|one| one.line_count > LONG_LINES).count();
    if long_count > LONG_COUNT_MAX {
        for one in &functions[..long_count] {
            findings
                .push(&one.place, format!("has {} lines; too many have over {LONG_LINES}", one.line_count));
        }
    }
    if let Some(one) = functions.get(functions.len() / 10)
        && one.line_count > P90_LINES_MAX
    {
        findings.push(
            "functions",
            format!("one in ten has {} lines or more; at most {P90_LINES_MAX}", one.line_count),
        );
    }
}

fn is_test(path: &Path) -> bool {
    path.components().any(|part| part.as_os_str() == "tests") || path.ends_with("tests.rs")
}

fn functions_of(file: &Source, findings: &mut Findings) -> Vec<Function> {
    let mut visitor = Visitor { path: &file.path, functions: Vec::new() };
    match syn::parse_file(&file.text) {
        Ok(parsed) => visitor.visit_file(&parsed),
        Err(error) => findings.push(file.path.display(), error),
    }
    visitor.functions
}

struct Visitor<'a> {
    path: &'a Path,
    functions: Vec<Function>,
}

impl Visitor<'_> {
    fn count(&mut self, signature: &Signature, block: &Block) {
        let first = signature.span().start().line;
        let last = block.span().end().line;
        let place = format!("{}:{first}: {}", self.path.display(), signature.ident);
        self.functions.push(Function { place, line_count: last + 1 - first });
    }
}

impl<'ast> Visit<'ast> for Visitor<'_> {
    fn visit_item_mod(&mut self, module: &'ast ItemMod) {
        if !module.attrs.iter().any(is_cfg_test) {
            visit::visit_item_mod(self, module);
        }
    }

    fn visit_item_fn(&mut self, function: &'ast ItemFn) {
        self.count(&function.sig, &function.block);
        visit::visit_item_fn(self, function);
    }

    fn visit_impl_item_fn(&mut self, function: &'ast ImplItemFn) {
        self.count(&function.sig, &function.block);
        visit::visit_impl_item_fn(self, function);
    }

    fn visit_trait_item_fn(&mut self, function: &'ast TraitItemFn) {
        if let Some(block) = &function.default {
            self.count(&function.sig, block);
        }
        visit::visit_trait_item_fn(self, function);
    }
}

fn is_cfg_test(attribute: &Attribute) -> bool {
    let is_test = |inner: syn::Ident| inner == "test";
    attribute.path().is_ident("cfg") && attribute.parse_args::<syn::Ident>().is_ok_and(is_test)
}
