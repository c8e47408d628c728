//! Where a module has its fault: the engine tells the line of a syntax error, and the column is found here; of an import it tells nothing.
//!
//! Up to the word that is wrong, a script is merely not finished; with that word it fails as the whole does. So the shortest beginning
//! that fails in the same way ends with the word.

/// Column (from 1) of the word that is wrong in a line (from 1). `fails_alike`: whether a beginning of the text fails as the whole does.
pub(crate) fn column(text: &str, line: usize, fails_alike: impl Fn(&str) -> bool) -> usize {
    let begin = text.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum::<usize>();
    let row = text[begin..].lines().next().unwrap_or_default();
    let ends: Vec<usize> = row.char_indices().map(|(at, letter)| at + letter.len_utf8()).collect();
    let count = ends.partition_point(|end| !fails_alike(&text[..begin + end]));
    let end = ends.get(count).copied().unwrap_or(row.len());
    let is_word = |letter: char| letter.is_alphanumeric() || letter == '_' || letter == '$';
    let head = &row[..end];
    let last = head.chars().next_back().unwrap_or_default();
    let word =
        if is_word(last) { head.trim_end_matches(is_word) } else { &head[..end - last.len_utf8().min(end)] };
    word.chars().count() + 1
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
