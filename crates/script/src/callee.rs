//! What a script calls at a place: the engine says only that something is not a function.
//!
//! Never: runs anything. The engine places a call at the last name of what is called, so `f()()` are two calls at one place.

use oxc_allocator::Allocator;
use oxc_ast::ast::{CallExpression, Expression, FunctionBody, NewExpression};
use oxc_ast_visit::{Visit, walk};
use oxc_parser::Parser;
use oxc_span::{GetSpan, SourceType, Span};

/// Texts of the functions that may be called at a line and column (from 1), the innermost first. The call around them comes last: the
/// engine gives it the place of the last call among its arguments.
pub(crate) fn callees_at(text: &str, line: usize, column: usize) -> Vec<String> {
    let begin: usize = text.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum();
    let row = text[begin..].chars().take(column.saturating_sub(1)).map(char::len_utf8).sum::<usize>();
    let allocator = Allocator::default();
    let parsed = Parser::new(&allocator, text, SourceType::mjs()).parse();
    let mut finder = Finder { text, at: (begin + row) as u32, found: Vec::new(), around: None };
    finder.visit_program(&parsed.program);
    finder.found.reverse();
    finder.found.extend(finder.around);
    finder.found
}

struct Finder<'t> {
    text: &'t str,
    at: u32,
    found: Vec<String>,
    around: Option<String>,
}

impl Finder<'_> {
    fn is_in(&self, span: Span) -> bool {
        (span.start..span.end).contains(&self.at)
    }

    fn note(&mut self, callee: &Expression<'_>) {
        if anchor(callee) == self.at {
            self.found.push(shown(callee.span().source_text(self.text)));
        }
    }
}

/// Where the engine places a call of an expression.
fn anchor(callee: &Expression<'_>) -> u32 {
    match callee {
        Expression::StaticMemberExpression(it) => it.property.span.start,
        Expression::ComputedMemberExpression(it) => anchor(&it.object),
        Expression::CallExpression(it) => anchor(&it.callee),
        Expression::ParenthesizedExpression(it) => anchor(&it.expression),
        other => other.span().start,
    }
}

impl<'a> Visit<'a> for Finder<'_> {
    fn visit_call_expression(&mut self, it: &CallExpression<'a>) {
        self.note(&it.callee);
        if it.arguments.iter().any(|argument| self.is_in(argument.span())) {
            self.around = Some(shown(it.callee.span().source_text(self.text)));
        }
        walk::walk_call_expression(self, it);
    }

    // What a function does is not done where it is an argument.
    fn visit_function_body(&mut self, it: &FunctionBody<'a>) {
        if self.is_in(it.span) {
            self.around = None;
        }
        walk::walk_function_body(self, it);
    }

    fn visit_new_expression(&mut self, it: &NewExpression<'a>) {
        // The first name is the place of these.
        if it.callee.span().start == self.at {
            self.found.push(shown(it.callee.span().source_text(self.text)));
        }
        walk::walk_new_expression(self, it);
    }
}

/// Code in one line, and not too long.
fn shown(code: &str) -> String {
    let words: Vec<&str> = code.split_whitespace().collect();
    let text = words.join(" ");
    match text.char_indices().nth(CALLEE_CHARS_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

/// Longer callees are cut.
const CALLEE_CHARS_MAX: usize = 60;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn callees_are_found_by_the_place_of_the_engine() {
        for (text, word, callees) in [
            ("http.run();", "run", "http.run"),
            ("a;\nnew http.Foo( );", "http", "http.Foo"),
            ("f(g(x), 1)", "f", "f"),
            ("f(1, g(x))", "g", "g f"),
            ("f(() => { g(x) })", "g", "g"),
            ("o.a['x y'](() => { a.b(1); })", "a[", "o.a['x y']"),
            ("(function(module) {f.\n  g(1)})", "g(1", "f. g"),
            ("f.a()()", "a", "f.a f.a()"),
            ("let x = 1;", "x", ""),
        ] {
            let at = text.find(word).unwrap();
            let line = text[..at].matches('\n').count() + 1;
            let column = text[..at].rsplit('\n').next().unwrap().len() + 1;
            assert_eq!(callees_at(text, line, column).join(" "), callees, "{text}");
        }
    }
}
