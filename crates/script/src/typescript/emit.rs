//! What TypeScript's constructs with a value stand for, as JavaScript.

use oxc_ast::ast::{
    Expression, FormalParameters, FunctionBody, Statement, TSEnumDeclaration, TSEnumMemberName,
};
use oxc_span::GetSpan;

use super::Edits;

/// An enum as the object that it is at run time.
pub(super) fn enumeration(it: &TSEnumDeclaration<'_>, text: &str) -> String {
    let name = it.id.name.as_str();
    let mut members = String::new();
    // What a member without an initializer is: as code, and as a number where that is known.
    let mut next = ("0".to_owned(), Some(0.0));
    for member in &it.body.members {
        let key = quoted(&member.id, text);
        let (value, number) = match &member.initializer {
            Some(value) => (text[value.span().start as usize..value.span().end as usize].to_owned(), None),
            None => next,
        };
        let is_text = member.initializer.as_ref().is_some_and(|value| {
            matches!(value, Expression::StringLiteral(_) | Expression::TemplateLiteral(_))
        });
        members.push_str(&if is_text {
            format!("{name}[{key}] = {value}; ")
        } else {
            format!("{name}[{name}[{key}] = {value}] = {key}; ")
        });
        if is_referred_to(it, &member.id, text) {
            members.push_str(&format!("const {} = {name}[{key}]; ", key.trim_matches('"')));
        }
        next = match number {
            Some(number) => (format!("{}", number + 1.0), Some(number + 1.0)),
            None => (format!("{name}[{key}] + 1"), None),
        };
    }
    format!("var {name}; (function ({name}) {{ {members}}})({name} || ({name} = {{}}));")
}

/// Whether the initializer of a member names another one.
fn is_referred_to(it: &TSEnumDeclaration<'_>, name: &TSEnumMemberName<'_>, text: &str) -> bool {
    let TSEnumMemberName::Identifier(name) = name else { return false };
    let initializers = it.body.members.iter().filter_map(|member| member.initializer.as_ref());
    let mut codes = initializers.map(|value| value.span().source_text(text));
    codes.any(|code| {
        code.match_indices(name.name.as_str()).any(|(at, word)| {
            let (before, after) = (&code[..at], &code[at + word.len()..]);
            let is_word = crate::syntax::is_word;
            !before.ends_with(is_word) && !before.ends_with(['.', '"', '\'']) && !after.starts_with(is_word)
        })
    })
}

fn quoted(name: &TSEnumMemberName<'_>, text: &str) -> String {
    match name {
        TSEnumMemberName::Identifier(name) => format!("\"{}\"", name.name),
        other => text[other.span().start as usize..other.span().end as usize].to_owned(),
    }
}

/// Assignments of a constructor's parameters that are properties too: first in its body, or after `super(…)`.
pub(super) fn parameter_properties(
    params: &FormalParameters<'_>,
    body: &FunctionBody<'_>,
    edits: &mut Edits,
) {
    let properties =
        params.items.iter().filter(|it| it.accessibility.is_some() || it.readonly || it.r#override);
    let names = properties.filter_map(|it| it.pattern.get_identifier_name());
    let assignments: String = names.map(|name| format!(" this.{name} = {name};")).collect();
    if assignments.is_empty() {
        return;
    }
    let is_super = |statement: &&Statement<'_>| match statement {
        Statement::ExpressionStatement(it) => match &it.expression {
            Expression::CallExpression(call) => matches!(call.callee, Expression::Super(_)),
            _ => false,
        },
        _ => false,
    };
    let after =
        body.statements.iter().find(is_super).map_or(body.span.start + 1, |it| it.span().end) as usize;
    edits.replace(after, after, assignments);
}
