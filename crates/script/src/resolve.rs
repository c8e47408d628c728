//! Where an import leads: k6's rules. Relative, absolute, `file://` and `https://`; bare names are k6's own modules alone.

use url::Url;

use crate::syntax::is_word;

/// The full name of what `specifier` means in the module `base`.
pub(crate) fn resolve(base: &str, specifier: &str) -> Result<String, String> {
    if specifier == "k6" || specifier.starts_with("k6/") {
        return Ok(specifier.to_owned());
    }
    resolve_place(base, specifier)
}

/// The same of what lies somewhere: k6's own modules do not.
pub(crate) fn resolve_place(base: &str, specifier: &str) -> Result<String, String> {
    if specifier.starts_with("file://") || specifier.starts_with("https://") {
        let allowed = !(specifier.starts_with("file://") && base.starts_with("https://"));
        return if allowed { Ok(specifier.to_owned()) } else { Err(from_remote(base, specifier)) };
    }
    let is_path = ["./", "../", "/"].iter().any(|prefix| specifier.starts_with(prefix));
    if !is_path {
        return Err(unknown(specifier));
    }
    let base = Url::parse(base).map_err(|_error| unknown(specifier))?;
    base.join(specifier).map(String::from).map_err(|_error| unknown(specifier))
}

/// The URL of a file's path, as modules are named.
pub(crate) fn file_url(path: &std::path::Path) -> String {
    Url::from_file_path(path).map_or_else(|()| format!("file://{}", path.display()), String::from)
}

/// The path of a `file://` URL.
pub(crate) fn file_path(name: &str) -> Option<std::path::PathBuf> {
    Url::parse(name).ok().filter(|url| url.scheme() == "file").and_then(|url| url.to_file_path().ok())
}

/// Whether a text has `import` or `export` statements; else it is CommonJS. Reads statements' first words, outside of comments,
/// strings and templates.
pub(crate) fn is_module(text: &str) -> bool {
    let mut rest = text;
    let mut is_begin = true;
    while let Some(letter) = rest.chars().next() {
        let length = match letter {
            '/' if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
            '/' if rest.starts_with("/*") => rest.find("*/").map_or(rest.len(), |end| end + 2),
            '"' | '\'' | '`' => quoted_length(rest, letter),
            letter if letter.is_alphabetic() || letter == '_' || letter == '$' => {
                let end = rest.find(|letter| !is_word(letter)).unwrap_or(rest.len());
                if is_begin && is_module_statement(&rest[..end], rest[end..].trim_start()) {
                    return true;
                }
                end
            }
            letter => letter.len_utf8(),
        };
        let is_comment = rest.starts_with("//") || rest.starts_with("/*");
        let last = rest[..length].chars().next_back().unwrap_or(' ');
        if matches!(last, ';' | '}' | '\n') {
            is_begin = true;
        } else if !is_comment && !last.is_whitespace() {
            is_begin = false;
        }
        rest = &rest[length..];
    }
    false
}

/// Length of a string or template that begins a text.
fn quoted_length(text: &str, quote: char) -> usize {
    let mut is_escaped = false;
    let end = text.char_indices().skip(1).find(|(_, letter)| {
        let is_end = !is_escaped && (*letter == quote || quote != '`' && *letter == '\n');
        is_escaped = !is_escaped && *letter == '\\';
        is_end
    });
    end.map_or(text.len(), |(at, _)| at + 1)
}

fn is_module_statement(word: &str, rest: &str) -> bool {
    match word {
        "export" => !rest.starts_with(['.', '=', '(', ':', ',', ';']),
        "import" => !rest.starts_with(['.', '=', '(', ':', ',', ';']) || rest.starts_with(".meta"),
        _ => false,
    }
}

fn from_remote(base: &str, specifier: &str) -> String {
    format!("the module `{base}` came over the network and may not load the file `{specifier}`")
}

fn unknown(specifier: &str) -> String {
    format!("The moduleSpecifier \"{specifier}\" couldn't be recognised as something k6 supports")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_are_known_by_their_statements() {
        for (text, expected) in [
            ("import http from 'k6/http';", true),
            ("// import x\n/* export */ const a = 'import y'; module.exports = a", false),
            ("'use strict'\nexport default function () {}", true),
            ("const x = {};export{x}", true),
            ("const f = `\nimport z from 'q'`; exports.f = f", false),
            ("import('x')", false),
        ] {
            assert_eq!(is_module(text), expected, "{text}");
        }
    }

    #[test]
    fn specifiers_lead_where_k6_lets_them() {
        let base = "file:///work/tests/main.js";
        for (specifier, expected) in [
            ("k6/http", "k6/http"),
            ("./lib.js", "file:///work/tests/lib.js"),
            ("../lib.js", "file:///work/lib.js"),
            ("/abs/lib.js", "file:///abs/lib.js"),
            ("https://jslib.k6.io/x/1.0/index.js", "https://jslib.k6.io/x/1.0/index.js"),
        ] {
            assert_eq!(resolve(base, specifier).as_deref(), Ok(expected));
        }
        assert!(resolve(base, "lodash").unwrap_err().contains("couldn't be recognised"));
        assert_eq!(resolve("https://a.example/x/y.js", "./z.js").as_deref(), Ok("https://a.example/x/z.js"));
        assert!(resolve("https://a.example/x.js", "file:///etc/passwd").is_err());
    }
}
