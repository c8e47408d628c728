//! Where a syntax error is: the engine tells the line, and the column is found here.
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

#[cfg(test)]
mod tests {
    use super::column;

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
