//! Finds what of a TypeScript program is type, and no code.

use std::collections::{HashMap, HashSet};

use oxc_ast::ast::{
    BindingIdentifier, Class, ClassElement, Declaration, Decorator, ExportDefaultDeclarationKind,
    ExportNamedDeclaration, FormalParameter, Function, FunctionType, IdentifierReference, ImportDeclaration,
    ImportDeclarationSpecifier, ImportOrExportKind, MethodDefinition, MethodDefinitionKind,
    MethodDefinitionType, ModuleExportName, Program, PropertyDefinition, PropertyDefinitionType, Statement,
    TSAsExpression, TSEnumDeclaration, TSImportEqualsDeclaration, TSInstantiationExpression,
    TSNonNullExpression, TSSatisfiesExpression, TSThisParameter, TSTypeAnnotation, TSTypeAssertion,
    TSTypeParameterDeclaration, TSTypeParameterInstantiation, VariableDeclarator,
};
use oxc_ast_visit::{Visit, walk};
use oxc_span::{GetSpan, Span};
use oxc_syntax::scope::ScopeFlags;

use super::{Edits, Problem, emit, space};

/// The edits that leave a program's code alone.
pub(super) fn edits_of(program: &Program<'_>, text: &str) -> Result<Edits, Problem> {
    let mut finder = Finder {
        text,
        edits: Edits::default(),
        problem: None,
        used: HashSet::new(),
        types: HashSet::new(),
        values: HashSet::new(),
        aliases: Vec::new(),
        spaces: Vec::new(),
        exported: HashMap::new(),
    };
    finder.visit_program(program);
    finder.aliases();
    for statement in &program.body {
        match statement {
            Statement::ImportDeclaration(it) => finder.import(it),
            Statement::ExportNamedDeclaration(it) => finder.export_of_types(it),
            _ => {}
        }
    }
    finder.problem.map_or(Ok(finder.edits), Err)
}

pub(super) struct Finder<'t> {
    pub(super) text: &'t str,
    pub(super) edits: Edits,
    problem: Option<Problem>,
    /// Names that code refers to: an import that only types refer to is left out.
    used: HashSet<String>,
    /// Names that are declared as types.
    types: HashSet<String>,
    /// Names that are declared as something that is there at run time.
    pub(super) values: HashSet<String>,
    /// `import a = b.c`: the statement, and its name.
    aliases: Vec<(Span, String)>,
    /// The namespaces that are open.
    pub(super) spaces: Vec<space::Space>,
    /// Of each namespace what its blocks so far export.
    pub(super) exported: HashMap<String, Vec<String>>,
}

impl Finder<'_> {
    /// `import a = b.c` is a constant, where code refers to it.
    fn aliases(&mut self) {
        for (span, name) in std::mem::take(&mut self.aliases) {
            if self.used.contains(&name) {
                let begin = span.start as usize;
                self.edits.replace(begin, begin + "import".len(), "const ".to_owned());
            } else {
                self.blank_statement(span);
            }
        }
    }

    fn blank(&mut self, span: Span) {
        self.edits.blank(span.start as usize, span.end as usize);
    }

    pub(super) fn blank_statement(&mut self, span: Span) {
        self.edits.blank_statement(span.start as usize, span.end as usize);
    }

    /// Blanks from the end of what stays to the end of a whole.
    fn blank_after(&mut self, kept: Span, whole: Span) {
        self.edits.blank(kept.end as usize, whole.end as usize);
    }

    /// Blanks a mark such as `?` between what is before it and a limit.
    fn blank_mark(&mut self, mark: char, begin: u32, end: u32) {
        let between = &self.text[begin as usize..end as usize];
        if let Some(place) = between.find(mark) {
            let at = begin as usize + place;
            self.edits.blank(at, at + 1);
        }
    }

    /// Blanks the modifiers of a member or parameter that JavaScript does not know.
    fn blank_modifiers(&mut self, begin: u32, end: u32) {
        let range = &self.text[begin as usize..end as usize];
        let mut at = 0;
        while at < range.len() {
            let rest = &range[at..];
            let length = rest.find(|letter: char| !letter.is_alphanumeric()).unwrap_or(rest.len());
            if MODIFIERS.contains(&&rest[..length]) {
                self.edits.blank(begin as usize + at, begin as usize + at + length);
            }
            at += length.max(rest.chars().next().map_or(1, char::len_utf8));
        }
    }

    /// Blanks an item of a list in braces with the comma that belongs to it.
    fn blank_item(&mut self, span: Span) {
        let (before, after) = (&self.text[..span.start as usize], &self.text[span.end as usize..]);
        let next = after.trim_start();
        if next.starts_with(',') {
            let end = self.text.len() - next.len() + 1;
            self.edits.blank(span.start as usize, end);
        } else if let Some(kept) = before.trim_end().strip_suffix(',') {
            self.edits.blank(kept.len(), span.end as usize);
        } else {
            self.blank(span);
        }
    }

    fn refuse(&mut self, span: Span, text: &'static str) {
        self.problem.get_or_insert(Problem { at: span.start as usize, text });
    }

    /// Whether a declaration has no value at run time. One that has a value, but cannot be stripped, is refused.
    pub(super) fn is_type_declaration(&mut self, it: &Declaration<'_>) -> bool {
        match it {
            Declaration::TSTypeAliasDeclaration(it) => {
                self.types.insert(it.id.name.to_string());
                true
            }
            Declaration::TSInterfaceDeclaration(it) => {
                self.types.insert(it.id.name.to_string());
                true
            }
            Declaration::TSExternalModuleDeclaration(_) | Declaration::TSGlobalDeclaration(_) => true,
            Declaration::VariableDeclaration(it) => it.declare,
            Declaration::ClassDeclaration(it) => it.declare,
            Declaration::TSEnumDeclaration(it) => it.declare,
            Declaration::FunctionDeclaration(it) => it.declare || it.body.is_none(),
            Declaration::TSNamespaceDeclaration(it) => it.declare || !space::has_values(it),
            Declaration::TSImportEqualsDeclaration(it) => it.import_kind == ImportOrExportKind::Type,
        }
    }

    fn import(&mut self, it: &ImportDeclaration<'_>) {
        let Some(specifiers) = it.specifiers.as_ref().filter(|list| !list.is_empty()) else { return };
        let unused: Vec<Span> = specifiers
            .iter()
            .filter(|one| {
                let is_type = matches!(one, ImportDeclarationSpecifier::ImportSpecifier(one)
                    if one.import_kind == ImportOrExportKind::Type);
                is_type || !self.used.contains(one.local().name.as_str())
            })
            .map(GetSpan::span)
            .collect();
        if it.import_kind == ImportOrExportKind::Type || unused.len() == specifiers.len() {
            return self.blank_statement(it.span);
        }
        unused.into_iter().for_each(|span| self.blank_item(span));
    }

    /// `export { A }` of what is nothing but a type.
    fn export_of_types(&mut self, it: &ExportNamedDeclaration<'_>) {
        for one in &it.specifiers {
            let name = one.local.name();
            if self.types.contains(name.as_str()) && !self.values.contains(name.as_str()) {
                self.blank_item(one.span);
            }
        }
    }
}

impl<'a> Visit<'a> for Finder<'_> {
    fn visit_statement(&mut self, it: &Statement<'a>) {
        match it {
            Statement::ImportDeclaration(_) => {}
            Statement::ExportDeclaration(export) if self.is_type_declaration(&export.declaration) => {
                self.blank_statement(export.span);
            }
            Statement::ExportDeclaration(export) => match &export.declaration {
                Declaration::TSNamespaceDeclaration(space) => self.namespace(space, export.span.start, true),
                _ => walk::walk_statement(self, it),
            },
            Statement::TSNamespaceDeclaration(space) if !space.declare && space::has_values(space) => {
                self.namespace(space, space.span.start, false);
            }
            Statement::ExportNamedDeclaration(export) => {
                if export.export_kind == ImportOrExportKind::Type {
                    return self.blank_statement(export.span);
                }
                for one in &export.specifiers {
                    match &one.local {
                        _ if one.export_kind == ImportOrExportKind::Type => self.blank_item(one.span),
                        ModuleExportName::IdentifierReference(name) => self.visit_identifier_reference(name),
                        _ => {}
                    }
                }
            }
            Statement::ExportFromDeclaration(export) => {
                if export.export_kind == ImportOrExportKind::Type {
                    return self.blank_statement(export.span);
                }
                let types =
                    export.specifiers.iter().filter(|one| one.export_kind == ImportOrExportKind::Type);
                types.for_each(|one| self.blank_item(one.span));
            }
            Statement::ExportAllDeclaration(export) if export.export_kind == ImportOrExportKind::Type => {
                self.blank_statement(export.span);
            }
            Statement::ExportDefaultDeclaration(export) => match &export.declaration {
                ExportDefaultDeclarationKind::TSInterfaceDeclaration(_) => self.blank_statement(export.span),
                ExportDefaultDeclarationKind::FunctionDeclaration(it) if it.body.is_none() => {
                    self.blank_statement(export.span);
                }
                _ => walk::walk_statement(self, it),
            },
            Statement::TSExportAssignment(export) => {
                self.refuse(export.span, "`export = …` is not supported: write `export default …`");
            }
            _ => match it.as_declaration() {
                Some(declaration) if self.is_type_declaration(declaration) => self.blank_statement(it.span()),
                _ => walk::walk_statement(self, it),
            },
        }
    }

    fn visit_decorator(&mut self, it: &Decorator<'a>) {
        self.refuse(it.span, "decorators are not supported: call the function on the class itself");
    }

    fn visit_ts_import_equals_declaration(&mut self, it: &TSImportEqualsDeclaration<'a>) {
        self.aliases.push((it.span, it.id.name.to_string()));
        self.visit_binding_identifier(&it.id);
        if let Some(name) = space::first_name(&it.module_reference) {
            self.used.insert(name);
        }
    }

    fn visit_identifier_reference(&mut self, it: &IdentifierReference<'a>) {
        self.qualify(it.span, it.name.as_str());
        self.used.insert(it.name.to_string());
    }

    fn visit_binding_identifier(&mut self, it: &BindingIdentifier<'a>) {
        self.values.insert(it.name.to_string());
    }

    fn visit_ts_enum_declaration(&mut self, it: &TSEnumDeclaration<'a>) {
        let text = emit::enumeration(it, self.text);
        self.edits.replace(it.span.start as usize, it.span.end as usize, text);
        walk::walk_ts_enum_declaration(self, it);
    }

    fn visit_ts_type_annotation(&mut self, it: &TSTypeAnnotation<'a>) {
        self.blank(it.span);
    }

    fn visit_ts_type_parameter_declaration(&mut self, it: &TSTypeParameterDeclaration<'a>) {
        self.blank(it.span);
    }

    fn visit_ts_type_parameter_instantiation(&mut self, it: &TSTypeParameterInstantiation<'a>) {
        self.blank(it.span);
    }

    fn visit_ts_this_parameter(&mut self, it: &TSThisParameter<'a>) {
        self.blank_item(it.span);
    }

    fn visit_ts_as_expression(&mut self, it: &TSAsExpression<'a>) {
        self.visit_expression(&it.expression);
        self.blank_after(it.expression.span(), it.span);
    }

    fn visit_ts_satisfies_expression(&mut self, it: &TSSatisfiesExpression<'a>) {
        self.visit_expression(&it.expression);
        self.blank_after(it.expression.span(), it.span);
    }

    fn visit_ts_non_null_expression(&mut self, it: &TSNonNullExpression<'a>) {
        self.visit_expression(&it.expression);
        self.blank_after(it.expression.span(), it.span);
    }

    fn visit_ts_instantiation_expression(&mut self, it: &TSInstantiationExpression<'a>) {
        self.visit_expression(&it.expression);
        self.blank_after(it.expression.span(), it.span);
    }

    fn visit_ts_type_assertion(&mut self, it: &TSTypeAssertion<'a>) {
        self.edits.blank(it.span.start as usize, it.expression.span().start as usize);
        self.visit_expression(&it.expression);
    }

    fn visit_function(&mut self, it: &Function<'a>, flags: ScopeFlags) {
        if matches!(it.r#type, FunctionType::TSDeclareFunction) {
            return self.blank_statement(it.span);
        }
        walk::walk_function(self, it, flags);
    }

    fn visit_formal_parameter(&mut self, it: &FormalParameter<'a>) {
        let pattern = it.pattern.span();
        self.blank_modifiers(it.span.start, pattern.start);
        if it.optional {
            let end = it.type_annotation.as_ref().map_or(it.span.end, |it| it.span.start);
            self.blank_mark('?', pattern.end.min(end), end.max(pattern.end));
        }
        walk::walk_formal_parameter(self, it);
    }

    fn visit_variable_declarator(&mut self, it: &VariableDeclarator<'a>) {
        if it.definite {
            let end = it.type_annotation.as_ref().map_or(it.span.end, |it| it.span.start);
            self.blank_mark('!', it.id.span().end, end);
        }
        walk::walk_variable_declarator(self, it);
    }

    fn visit_class(&mut self, it: &Class<'a>) {
        it.decorators.iter().for_each(|decorator| self.visit_decorator(decorator));
        if it.r#abstract {
            let head = &self.text[it.span.start as usize..it.body.span.start as usize];
            if let Some(place) = head.find("abstract") {
                let at = it.span.start as usize + place;
                self.edits.blank(at, at + "abstract".len());
            }
        }
        if let (Some(first), Some(last)) = (it.implements.first(), it.implements.last()) {
            let before = &self.text[..first.span.start as usize];
            let begin = before.rfind("implements").unwrap_or(before.len());
            self.edits.blank(begin, last.span.end as usize);
        }
        if let Some(id) = &it.id {
            self.visit_binding_identifier(id);
        }
        if let Some(types) = &it.type_parameters {
            self.visit_ts_type_parameter_declaration(types);
        }
        if let Some(heritage) = &it.heritage {
            self.visit_class_heritage(heritage);
        }
        self.visit_class_body(&it.body);
    }

    fn visit_class_element(&mut self, it: &ClassElement<'a>) {
        let is_type = match it {
            ClassElement::TSIndexSignature(_) => true,
            ClassElement::MethodDefinition(it) => {
                it.r#type == MethodDefinitionType::TSAbstractMethodDefinition || it.value.body.is_none()
            }
            ClassElement::PropertyDefinition(it) => {
                it.declare || it.r#type == PropertyDefinitionType::TSAbstractPropertyDefinition
            }
            ClassElement::StaticBlock(_) | ClassElement::AccessorProperty(_) => false,
        };
        if is_type {
            return self.blank_statement(it.span());
        }
        walk::walk_class_element(self, it);
    }

    fn visit_method_definition(&mut self, it: &MethodDefinition<'a>) {
        self.blank_modifiers(it.span.start, it.key.span().start);
        if it.optional {
            self.blank_mark('?', it.key.span().end, it.value.params.span.start);
        }
        if it.kind == MethodDefinitionKind::Constructor
            && let Some(body) = &it.value.body
        {
            emit::parameter_properties(&it.value.params, body, &mut self.edits);
        }
        walk::walk_method_definition(self, it);
    }

    fn visit_property_definition(&mut self, it: &PropertyDefinition<'a>) {
        self.blank_modifiers(it.span.start, it.key.span().start);
        let end = it.type_annotation.as_ref().map_or(it.span.end, |it| it.span.start);
        if it.optional {
            self.blank_mark('?', it.key.span().end, end);
        }
        if it.definite {
            self.blank_mark('!', it.key.span().end, end);
        }
        walk::walk_property_definition(self, it);
    }
}

/// Modifiers that mean nothing at run time.
const MODIFIERS: &[&str] = &["public", "private", "protected", "readonly", "override", "declare", "abstract"];
