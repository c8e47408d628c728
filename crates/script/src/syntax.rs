//! Where a module has its error: the engine reports the line of a syntax error, and the column is found here; for an import it reports nothing.
//!
//! Up to the word that is wrong, a script is merely not finished; with that word it fails as the whole does. So the shortest beginning
//! that fails in the same way ends with the word.

/// Column (from 1) of the word that is wrong in a line (from 1). `fails_alike`: whether a beginning of the text fails as the whole does.
pub(crate) fn column(text: &str, line: usize, fails_alike: impl Fn(&str) -> bool) -> usize {
    let begin = line_begin(text, line);
    let row = text[begin..].lines().next().unwrap_or_default();
    let ends: Vec<usize> = row.char_indices().map(|(at, letter)| at + letter.len_utf8()).collect();
    let count = ends.partition_point(|end| !fails_alike(&text[..begin + end]));
    let end = ends.get(count).copied().unwrap_or(row.len());
    let head = &row[..end];
    let last = head.chars().next_back().unwrap_or_default();
    let word =
        if is_word(last) { head.trim_end_matches(is_word) } else { &head[..end - last.len_utf8().min(end)] };
    word.chars().count() + 1
}

/// Where a line (from 1) begins.
fn line_begin(text: &str, line: usize) -> usize {
    text.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum()
}

/// Whether a letter may stand in a name.
pub(crate) fn is_word(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_' || letter == '$'
}

/// Line and column (from 1) where a text first names a module, lines that are comments apart.
pub(crate) fn place_of_import(text: &str, specifier: &str) -> Option<(usize, usize)> {
    let quoted = ['"', '\''].map(|quote| format!("{quote}{specifier}{quote}"));
    text.lines().enumerate().find_map(|(idx, line)| {
        let at = quoted.iter().filter_map(|quoted| line.find(quoted)).min()?;
        let is_comment = ["//", "/*", "*"].iter().any(|mark| line.trim_start().starts_with(mark));
        (!is_comment).then(|| (idx + 1, line[..at].chars().count() + 1))
    })
}

/// Of an import of a name that there is not: the name and the module's full name.
pub(crate) fn missing_export(message: &str) -> Option<(&str, &str)> {
    let rest = message.strip_prefix("SyntaxError: Could not find export '")?;
    let (export, rest) = rest.split_once("' in module '")?;
    Some((export, rest.split('\'').next()?))
}

/// Line and column (from 1) of a name that is imported from a module; of the module's, where the name does not stand there.
pub(crate) fn place_of_name(text: &str, specifier: &str, name: &str) -> Option<(usize, usize)> {
    let (line, column) = place_of_import(text, specifier)?;
    let begin = line_begin(text, line);
    let row = text[begin..].chars().take(column - 1).map(char::len_utf8).sum::<usize>();
    let head = &text[..begin + row];
    let statement = head.rfind("import").max(head.rfind("export"))?;
    let at = head[statement..]
        .match_indices(name)
        .map(|(at, _)| statement + at)
        .find(|at| !head[..*at].ends_with(is_word) && !head[at + name.len()..].starts_with(is_word));
    let Some(at) = at else { return Some((line, column)) };
    let line_begin = head[..at].rfind('\n').map_or(0, |end| end + 1);
    Some((head[..at].matches('\n').count() + 1, head[line_begin..at].chars().count() + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_import_is_found_in_code() {
        let text = "// './a.js'\nimport './a.js.map';\nimport é from './a.js';\nimport \"./a.js\";";
        assert_eq!(place_of_import(text, "./a.js"), Some((3, 15)));
        assert_eq!(place_of_import(text, "./b.js"), None);
    }

    #[test]
    fn an_imported_name_is_found_in_its_statement() {
        let text = "let é, abc;\nimport {\n  ab,\n  é, b as c,\n} from './a.js';\nexport { d } from './d.js'";
        for (specifier, name, place) in [
            ("./a.js", "ab", Some((3, 3))),
            ("./a.js", "b", Some((4, 6))),
            ("./a.js", "default", Some((5, 8))),
            ("./d.js", "d", Some((6, 10))),
            ("./e.js", "e", None),
        ] {
            assert_eq!(place_of_name(text, specifier, name), place, "{name}");
        }
    }

    #[test]
    fn the_column_is_that_of_the_word_that_is_wrong() {
        for (text, line, wrong, at) in [
            ("let x = ;", 1, ";", 9),
            ("ok();\nfoo(; bar;\nlast();", 2, "foo(;", 5),
            ("  const äöü = 1 else 2;", 1, "else", 17),
            ("", 1, "x", 1),
        ] {
            let place = text.find(wrong).map(|begin| begin + wrong.len());
            let fails_alike = |beginning: &str| place.is_some_and(|place| beginning.len() >= place);
            assert_eq!(column(text, line, fails_alike), at, "{text}");
        }
    }
}
