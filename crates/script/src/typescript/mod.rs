//! TypeScript to JavaScript: types are blanked out where they stand, so that every line and column stays what it was.
//!
//! Owns: the edits and their application; `types` finds what is type, `emit` writes what enums and parameter properties stand for.
//! Never: checks types, as k6 does not either.

mod emit;
mod namespace;
mod space;
mod types;

use oxc_parser::ParserReturn;

/// The JavaScript of a TypeScript module that was parsed, or why there is none.
pub(crate) fn strip(name: &str, text: &str, parsed: &ParserReturn<'_>) -> Result<String, String> {
    if let Some(error) = parsed.diagnostics.errors().next() {
        let at = error.labels.first().map_or(0, |label| label.offset() as usize);
        return Err(located(name, text, at, &error.to_string()));
    }
    let edits = types::edits_of(&parsed.program, text)
        .map_err(|problem| located(name, text, problem.at, problem.text))?;
    Ok(edits.apply(text))
}

/// A construct that cannot be stripped.
struct Problem {
    at: usize,
    text: &'static str,
}

/// What is to change in a text.
#[derive(Default)]
struct Edits(Vec<Edit>);

struct Edit {
    begin: usize,
    end: usize,
    with: With,
}

/// What takes the place of a range.
enum With {
    /// Spaces; lines stay.
    Spaces,
    /// Spaces after a semicolon: the lines before and after must not become one statement.
    EmptyStatement,
    /// Other text, followed by the line ends of the old one.
    Text(String),
}

impl Edits {
    fn blank(&mut self, begin: usize, end: usize) {
        self.0.push(Edit { begin, end, with: With::Spaces });
    }

    fn blank_statement(&mut self, begin: usize, end: usize) {
        self.0.push(Edit { begin, end, with: With::EmptyStatement });
    }

    fn replace(&mut self, begin: usize, end: usize, text: String) {
        self.0.push(Edit { begin, end, with: With::Text(text) });
    }

    fn apply(mut self, text: &str) -> String {
        // Of edits that begin at one place the longest counts: it covers the others.
        self.0.sort_by_key(|edit| (edit.begin, usize::MAX - edit.end));
        let (mut out, mut at) = (String::with_capacity(text.len()), 0);
        for edit in self.0 {
            if edit.end <= at {
                continue;
            }
            // Items of a list that both go share the comma between them.
            let begin = edit.begin.max(at);
            out.push_str(&text[at..begin]);
            let old = &text[begin..edit.end];
            match edit.with {
                With::Spaces => out.extend(old.chars().map(blanked)),
                With::EmptyStatement => {
                    out.push(';');
                    out.extend(old.chars().skip(1).map(blanked));
                }
                With::Text(new) => {
                    out.push_str(&new);
                    out.extend(old.chars().filter(|letter| *letter == '\n'));
                }
            }
            at = edit.end;
        }
        out.push_str(&text[at..]);
        out
    }
}

fn blanked(letter: char) -> char {
    if matches!(letter, '\n' | '\r') { letter } else { ' ' }
}

fn located(name: &str, text: &str, at: usize, problem: &str) -> String {
    let before = &text[..text.floor_char_boundary(at)];
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    format!("{}:{line}:{column}: {problem}", name.trim_start_matches("file://"))
}

#[cfg(test)]
mod tests {
    fn strip(name: &str, typed: &str) -> Result<String, String> {
        crate::source::SourceText::parse(name, typed.to_owned()).map(|source| source.text)
    }

    /// What is left, with one space for many; the length is that of the whole.
    fn left(typed: &str) -> String {
        let plain = strip("a.ts", typed).unwrap();
        assert_eq!(plain.chars().count(), typed.chars().count(), "{typed}");
        assert_eq!(plain.matches('\n').count(), typed.matches('\n').count(), "{typed}");
        plain.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn types_become_spaces() {
        assert_eq!(strip("a.ts", "let a: number = 1;").as_deref(), Ok("let a         = 1;"));
        for (typed, plain) in [
            ("const f = <T,>(x?: T): x is T => x!;", "const f = (x ) => x ;"),
            ("f<string>(a as unknown as B);", "f (a );"),
            ("type A = { b: string };\nx;", "; x;"),
            ("interface A {\n  b: c;\n}\nx", "; x"),
            ("import { a, type B } from 'c'; a;", "import { a } from 'c'; a;"),
            ("import { a, B } from 'c'; let x: B = a;", "import { a } from 'c'; let x = a;"),
            ("import { B, a } from 'c'; let x: B = a;", "import { a } from 'c'; let x = a;"),
            ("import { a, B, C } from 'c'; let x: B | C = a;", "import { a, } from 'c'; let x = a;"),
            ("import type { B } from 'c';", ";"),
            ("import { B } from 'c'; let x: B;", "; let x ;"),
            ("import B, { a } from 'c'; a;", "import { a } from 'c'; a;"),
            ("import 'c';", "import 'c';"),
            ("export type { B } from 'c'; export { a }; let a;", "; export { a }; let a;"),
            ("interface A {} let b; export { A, b };", "; let b; export { b };"),
            ("export { A, B as C }; type A = 1; export type B = 2;", "export { }; ; ;"),
            ("interface A {} class A {} export { A };", "; class A {} export { A };"),
            ("declare const a: number;", ";"),
            ("function f(this: A, b: c): d;\nfunction f(b) {}", "; function f(b) {}"),
            ("function f(this: A, b) {}", "function f( b) {}"),
            ("export abstract class A<T> extends B<T> implements C, D { }", "export class A extends B { }"),
            (
                "class A { private readonly b?: c = 1; d!: e; static f: g; abstract f(): g; [k: string]: h }",
                "class A { b = 1; d ; static f ; ; ; }",
            ),
            ("class A { public async b<T>(c: T): Promise<T> { } }", "class A { async b (c ) { } }"),
            ("try { } catch (e: unknown) { }", "try { } catch (e ) { }"),
            ("x = <A>y satisfies B;", "x = y ;"),
            ("let [a, b]: C = d, e!: f;", "let [a, b] = d, e ;"),
            ("export default function (data: Data): void {}", "export default function (data ) {}"),
            ("const é = 'ü' as const, b: c = d ? e : f;", "const é = 'ü' , b = d ? e : f;"),
        ] {
            assert_eq!(left(typed), plain, "{typed}");
        }
    }

    #[test]
    fn enums_and_parameter_properties_are_written_out() {
        for (typed, plain) in [
            (
                "enum A { B, C = 5, D, E = 'e' }",
                "var A; (function (A) { A[A[\"B\"] = 0] = \"B\"; A[A[\"C\"] = 5] = \"C\"; A[A[\"D\"] = A[\"C\"] + 1] = \"D\"; A[\"E\"] = 'e'; })(A || (A = {}));",
            ),
            (
                "class A { constructor(private b: c, public d = 1) { e(); } }",
                "class A { constructor(        b   ,        d = 1) { this.b = b; this.d = d; e(); } }",
            ),
            (
                "class A extends B { constructor(readonly b) { super(); } }",
                "class A extends B { constructor(         b) { super(); this.b = b; } }",
            ),
        ] {
            assert_eq!(strip("a.ts", typed).as_deref(), Ok(plain), "{typed}");
        }
    }

    #[test]
    fn namespaces_and_aliases_keep_their_lines() {
        for (typed, plain) in [
            ("namespace A {\n  type B = 1;\n}", ";            \n             \n "),
            ("import B = A.C;\nlet d: B;", ";              \nlet d   ;"),
            ("import B = A.C;\nB();", "const  B = A.C;\nB();"),
        ] {
            assert_eq!(strip("a.ts", typed).as_deref(), Ok(plain), "{typed}");
        }
        let typed =
            "export namespace A {\n  export const b: number = 1;\n}\nnamespace A {\n  export let c = b;\n}";
        let plain = strip("a.ts", typed).unwrap();
        assert_eq!(plain.matches('\n').count(), typed.matches('\n').count(), "{plain}");
        for part in [
            "export var A; ;(function (A) { ",
            "get: () => b });",
            "let c = A.b;",
            "})(A || (A = {}));",
            "set: (it) => { c = it; }",
        ] {
            assert!(plain.contains(part), "{part}: {plain}");
        }
    }

    #[test]
    fn what_cannot_be_stripped_is_located() {
        assert_eq!(
            strip("file:///t/a.ts", "\n @log class A {}").unwrap_err(),
            "/t/a.ts:2:2: decorators are not supported: call the function on the class itself"
        );
        assert!(strip("a.ts", "let x: = 1").unwrap_err().starts_with("a.ts:1:8: "));
    }
}
