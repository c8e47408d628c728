//! The text that a Rust file shows to users: its string literals, whole, and where they are the help, its doc comments.

/// A piece of text, and the line in which it begins.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Piece {
    pub line: usize,
    pub text: String,
}

/// Every string literal. One that goes on in the next line after a `\` is joined, as the compiler does.
pub(super) fn literals(source: &str) -> Vec<Piece> {
    let mut found = Vec::new();
    let (mut rest, mut line) = (source, 1);
    while !rest.is_empty() {
        let (token, text) = token(rest);
        found.extend(text.map(|text| Piece { line, text }));
        line += token.matches('\n').count();
        rest = &rest[token.len()..];
    }
    found
}

/// Every doc comment line: where clap reads them, they are the help.
pub(super) fn doc_comments(source: &str) -> Vec<Piece> {
    let comment = |(idx, line): (usize, &str)| {
        let text = line.trim_start().strip_prefix("///")?.to_owned();
        Some(Piece { line: idx + 1, text })
    };
    source.lines().enumerate().filter_map(comment).collect()
}

/// The first token of the source, and the text if it is a string. What cannot contain a quote is a token of one character.
fn token(source: &str) -> (&str, Option<String>) {
    let raw = source.strip_prefix('b').unwrap_or(source).strip_prefix('r');
    if let Some(raw) = raw.filter(|raw| raw.trim_start_matches('#').starts_with('"')) {
        return raw_string(source, raw);
    }
    let length = match source.as_bytes() {
        [b'/', b'/', ..] => source.find('\n').unwrap_or(source.len()),
        [b'"', rest @ ..] => {
            let length = 2 + quoted_bytes(rest, b'"');
            let content = source.get(1..length - 1).unwrap_or_default();
            return (source.get(..length).unwrap_or(source), Some(joined(content)));
        }
        [b'\'', rest @ ..] => character_bytes(source, rest),
        _ => word_bytes(source),
    };
    (source.get(..length).unwrap_or(source), None)
}

/// A raw string: it ends at a quote with as many `#` as it began with.
fn raw_string<'a>(source: &'a str, raw: &'a str) -> (&'a str, Option<String>) {
    let content = raw.trim_start_matches('#');
    let end = format!("\"{}", &raw[..raw.len() - content.len()]);
    let content = &content[1..];
    let length = content.find(&end).unwrap_or(content.len());
    let before = source.len() - content.len();
    let token = source.get(..before + length + end.len()).unwrap_or(source);
    (token, Some(content[..length].to_owned()))
}

/// `'x'` and `'\n'` are characters, `'a` a lifetime.
fn character_bytes(source: &str, rest: &[u8]) -> usize {
    let is_escape = rest.first() == Some(&b'\\');
    let character = source[1..].chars().next().map_or(0, char::len_utf8);
    match rest.get(character) {
        _ if is_escape => 2 + quoted_bytes(rest, b'\''),
        Some(b'\'') => character + 2,
        _ => 1,
    }
}

/// Bytes before the closing quote.
fn quoted_bytes(text: &[u8], quote: u8) -> usize {
    let mut is_escaped = false;
    let is_end = |byte: &u8| {
        let is_end = !is_escaped && *byte == quote;
        is_escaped = !is_escaped && *byte == b'\\';
        is_end
    };
    text.iter().position(is_end).unwrap_or(text.len())
}

/// A name at once, so that its last letter is not taken for the `r` of a raw string.
fn word_bytes(source: &str) -> usize {
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    let name = source.find(|c| !is_name(c)).unwrap_or(source.len());
    if name > 0 { name } else { source.chars().next().map_or(1, char::len_utf8) }
}

/// The content of a literal without its continuations.
fn joined(content: &str) -> String {
    let mut parts = content.split("\\\n");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| text + part.trim_start())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(source: &str, expected: &[(usize, &str)]) {
        let found = literals(source);
        let found: Vec<_> = found.iter().map(|piece| (piece.line, piece.text.as_str())).collect();
        assert_eq!(found, expected, "{source}");
    }

    #[test]
    fn literals_are_whole() {
        check(r#"say("a \"quoted\" part", "b");"#, &[(1, r#"a \"quoted\" part"#), (1, "b")]);
        check("x\n\"one \\\n    two\";\n\"three\"", &[(2, "one two"), (4, "three")]);
        check("r#\"a \"b\" c\"# r\"d\\\" br\"e\"", &[(1, "a \"b\" c"), (1, "d\\"), (1, "e")]);
        check("// \"no\"\n/// \"no\"\nlet x = 1; // \"no\"\n\"yes\"", &[(4, "yes")]);
        check(r#"['"', '\'', '\\', 'ä', '\u{22}'] fn f<'a>(s: &'a str) { g("h") }"#, &[(1, "h")]);
        check("var\"x\" \"unclosed", &[(1, "x"), (1, "unclosed")]);
    }

    #[test]
    fn doc_comments_have_their_lines() {
        let found = doc_comments("//! a\n/// b\n    /// c\n// d");
        let expected = [(2, " b"), (3, " c")].map(|(line, text)| Piece { line, text: text.to_owned() });
        assert_eq!(found, expected);
    }
}
