//! Namespaces of TypeScript: each block becomes a function that fills an object, in the lines that it has.

use std::collections::HashSet;

use oxc_ast::ast::{
    BindingPattern, Declaration, Statement, TSNamespaceDeclaration, TSNamespaceDeclarationBody,
    VariableDeclarationKind,
};
use oxc_ast_visit::Visit;
use oxc_span::{GetSpan, Span};

use super::space::{Space, declaration_of, has_values};
use super::types::Finder;

/// What a block exports: a name, and whether it can be assigned.
struct Export {
    name: String,
    is_variable: bool,
}

impl Finder<'_> {
    /// Rewrites one; `begin`: where its statement begins.
    pub(super) fn namespace(&mut self, it: &TSNamespaceDeclaration<'_>, begin: u32, is_exported: bool) {
        let name = it.id.name.to_string();
        // One that adds to a class, a function or an earlier block declares nothing.
        let is_new = self.values.insert(name.clone());
        let declared = match (is_new, is_exported) {
            (true, true) => format!("export var {name}; "),
            (true, false) => format!("var {name}; "),
            (false, _) => String::new(),
        };
        let mut head = format!("{declared};(function ({name}) {{ ");
        match &it.body {
            TSNamespaceDeclarationBody::TSNamespaceDeclaration(inner) => {
                head.push_str(&getter(
                    &name,
                    &Export { name: inner.id.name.to_string(), is_variable: false },
                ));
                self.edits.replace(begin as usize, inner.span.start as usize, head);
                self.namespace(inner, inner.span.start, false);
                self.edits.replace(it.span.end as usize, it.span.end as usize, closing(&name));
            }
            TSNamespaceDeclarationBody::TSModuleBlock(block) => {
                let exports: Vec<Export> = block.body.iter().flat_map(exports_of).collect();
                exports.iter().for_each(|export| head.push_str(&getter(&name, export)));
                self.edits.replace(begin as usize, block.span.start as usize + 1, head);
                let mut earlier: HashSet<String> =
                    self.exported.get(&name).into_iter().flatten().cloned().collect();
                for statement in &block.body {
                    declared_by(statement).iter().for_each(|name| {
                        earlier.remove(name);
                    });
                }
                self.spaces.push(Space { name: name.clone(), earlier });
                block.body.iter().for_each(|statement| self.member(statement));
                self.spaces.pop();
                let names = exports.into_iter().map(|export| export.name);
                self.exported.entry(name.clone()).or_default().extend(names);
                self.edits.replace(block.span.end as usize - 1, block.span.end as usize, closing(&name));
            }
        }
    }

    /// A statement of a block: what is exported is declared there as well.
    fn member(&mut self, statement: &Statement<'_>) {
        let Statement::ExportDeclaration(export) = statement else { return self.visit_statement(statement) };
        if self.is_type_declaration(&export.declaration) {
            return self.blank_statement(export.span);
        }
        let begin = export.declaration.span().start;
        self.edits.replace(export.span.start as usize, begin as usize, ";".to_owned());
        match &export.declaration {
            Declaration::TSNamespaceDeclaration(inner) => self.namespace(inner, begin, false),
            other => self.visit_declaration(other),
        }
    }

    /// A name that an earlier block of an open namespace exports.
    pub(super) fn qualify(&mut self, span: Span, name: &str) {
        if let Some(space) = self.spaces.iter().rev().find(|space| space.earlier.contains(name)) {
            let text = format!("{}.{name}", space.name);
            self.edits.replace(span.start as usize, span.end as usize, text);
        }
    }
}

fn closing(name: &str) -> String {
    format!("}})({name} || ({name} = {{}}));")
}

/// A property that is the variable of its name.
fn getter(space: &str, export: &Export) -> String {
    let name = &export.name;
    let setter =
        if export.is_variable { format!(", set: (it) => {{ {name} = it; }}") } else { String::new() };
    format!(
        "Object.defineProperty({space}, \"{name}\", {{ enumerable: true, configurable: true, get: () => {name}{setter} }}); "
    )
}

fn exports_of(statement: &Statement<'_>) -> Vec<Export> {
    match statement {
        Statement::ExportDeclaration(_) => {
            let is_variable = matches!(declaration_of(statement), Some(Declaration::VariableDeclaration(it))
                if it.kind != VariableDeclarationKind::Const);
            let names = declared_by(statement).into_iter();
            names.map(|name| Export { name, is_variable }).collect()
        }
        _ => Vec::new(),
    }
}

/// Names that a statement declares for code.
fn declared_by(statement: &Statement<'_>) -> Vec<String> {
    let name = |name: &str| vec![name.to_owned()];
    match declaration_of(statement) {
        Some(Declaration::VariableDeclaration(it)) if !it.declare => {
            it.declarations.iter().flat_map(|one| names_of(&one.id)).collect()
        }
        Some(Declaration::FunctionDeclaration(it)) if it.body.is_some() => {
            it.id.iter().map(|id| id.name.to_string()).collect()
        }
        Some(Declaration::ClassDeclaration(it)) if !it.declare => {
            it.id.iter().map(|id| id.name.to_string()).collect()
        }
        Some(Declaration::TSEnumDeclaration(it)) if !it.declare => name(&it.id.name),
        Some(Declaration::TSImportEqualsDeclaration(it)) => name(&it.id.name),
        Some(Declaration::TSNamespaceDeclaration(it)) if !it.declare && has_values(it) => name(&it.id.name),
        _ => Vec::new(),
    }
}

fn names_of(pattern: &BindingPattern<'_>) -> Vec<String> {
    pattern.get_binding_identifiers().iter().map(|id| id.name.to_string()).collect()
}
