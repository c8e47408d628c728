//! What a file is: an ES module or CommonJS, and the JavaScript that it holds.
//!
//! Owns: the decision, which the parser makes. Never: compiles anything.

use oxc_allocator::Allocator;
use oxc_ast::ast::{ArrowFunctionExpression, AwaitExpression, Class, ForOfStatement, Function, Program};
use oxc_ast_visit::{Visit, walk};
use oxc_parser::{Parser, ParserReturn};
use oxc_span::SourceType;
use oxc_syntax::module_record::{ExportExportName, ExportImportName, ImportImportName};
use oxc_syntax::scope::ScopeFlags;

/// The JavaScript of one file.
#[derive(Debug)]
pub(crate) struct SourceText {
    pub(crate) text: String,
    /// It has `import`, `export` or `await` at its top level; everything else is CommonJS, as in k6.
    pub(crate) is_module: bool,
    /// What it imports by name: the module as it is written, and the name.
    pub(crate) names: Vec<(String, String)>,
    /// Names that it exports itself.
    pub(crate) exports: Vec<String>,
    /// It exports all of another module.
    pub(crate) has_star: bool,
}

impl SourceText {
    /// Parses a file by its name: types of TypeScript become spaces. The error is a located message.
    pub(crate) fn parse(name: &str, text: String) -> Result<Self, String> {
        let allocator = Allocator::default();
        if name.ends_with(".ts") {
            let parsed = Parser::new(&allocator, &text, SourceType::ts()).parse();
            let source = Self::of(&parsed);
            return Ok(Self { text: crate::typescript::strip(name, &text, &parsed)?, ..source });
        }
        let parsed = Parser::new(&allocator, &text, SourceType::mjs()).parse();
        let source = Self::of(&parsed);
        drop(parsed);
        Ok(Self { text, ..source })
    }

    fn of(parsed: &ParserReturn<'_>) -> Self {
        let record = &parsed.module_record;
        let own = record.local_export_entries.iter().chain(&record.indirect_export_entries);
        let exports = own.filter_map(|entry| match &entry.export_name {
            ExportExportName::Name(name) => Some(name.name.to_string()),
            ExportExportName::Default(_) => Some("default".to_owned()),
            ExportExportName::Null => None,
        });
        Self {
            text: String::new(),
            is_module: is_module(parsed),
            names: names(parsed),
            exports: exports.collect(),
            has_star: !record.star_export_entries.is_empty(),
        }
    }
}

/// Module syntax is found up to the first error that ends the parsing: what is wrong is reported by the engine later.
fn is_module(parsed: &ParserReturn<'_>) -> bool {
    parsed.module_record.has_module_syntax || TopLevelAwait::is_in(&parsed.program)
}

fn names(parsed: &ParserReturn<'_>) -> Vec<(String, String)> {
    let record = &parsed.module_record;
    let imported = record.import_entries.iter().filter_map(|entry| match &entry.import_name {
        ImportImportName::Name(name) => Some((entry.module_request.name.to_string(), name.name.to_string())),
        ImportImportName::Default(_) => Some((entry.module_request.name.to_string(), "default".to_owned())),
        ImportImportName::NamespaceObject => None,
    });
    let passed_on = record.indirect_export_entries.iter().filter_map(|entry| {
        match (&entry.module_request, &entry.import_name) {
            (Some(module), ExportImportName::Name(name)) => {
                Some((module.name.to_string(), name.name.to_string()))
            }
            _ => None,
        }
    });
    imported.chain(passed_on).collect()
}

/// Looks for an `await` outside of functions.
#[derive(Default)]
struct TopLevelAwait {
    is_found: bool,
}

impl TopLevelAwait {
    fn is_in(program: &Program<'_>) -> bool {
        if !program.source_text.contains("await") {
            return false;
        }
        let mut finder = Self::default();
        finder.visit_program(program);
        finder.is_found
    }
}

impl<'a> Visit<'a> for TopLevelAwait {
    fn visit_await_expression(&mut self, _it: &AwaitExpression<'a>) {
        self.is_found = true;
    }

    fn visit_for_of_statement(&mut self, it: &ForOfStatement<'a>) {
        self.is_found |= it.r#await;
        walk::walk_for_of_statement(self, it);
    }

    fn visit_function(&mut self, _it: &Function<'a>, _flags: ScopeFlags) {}

    fn visit_arrow_function_expression(&mut self, _it: &ArrowFunctionExpression<'a>) {}

    fn visit_class(&mut self, _it: &Class<'a>) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_are_recognised_by_their_statements() {
        for (text, expected) in [
            ("import http from 'k6/http';", true),
            ("// import x\n/* export */ const a = 'import y'; module.exports = a", false),
            ("'use strict'\nexport default function () {}", true),
            ("const x = {};export{x}", true),
            ("const f = `\nimport z from 'q'`; exports.f = f", false),
            ("import('x')", false),
            ("const esc = s => s.replace(/[`]/g, \"\"); export default function () {}", true),
            ("const esc = s => s.replace(/[\"'/]/g, ''); export const a = 1", true),
            ("const half = a / 2; const q = '`'; export { half }", true),
            ("exports.a = /import x from 'y'/; if (a) /\\//.test(b)\n/export/.test(c)", false),
            ("const a = await b;", true),
            ("async function f() { await b; } module.exports = f;", false),
            ("return 1;", false),
            ("with (a) { b }; var await = 1; exports.c = 010", false),
            ("let x = ; export default 1", false),
        ] {
            let source = SourceText::parse("/t/a.js", text.to_owned()).unwrap();
            assert_eq!(source.is_module, expected, "{text}");
        }
        assert!(
            SourceText::parse("/t/a.ts", "type A = string; export const a: A = '`'".to_owned())
                .unwrap()
                .is_module
        );
        assert!(
            !SourceText::parse("/t/a.ts", "const a: string = '`'; exports.a = a".to_owned())
                .unwrap()
                .is_module
        );
    }
}
