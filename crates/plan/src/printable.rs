//! Text from outside, for people: names, URLs, messages of servers, plans, scripts and saved runs.
//!
//! Owns: what such text may do to a terminal (nothing) and to a spreadsheet (nothing). Never: colours, which are added afterwards.

use std::borrow::Cow;

/// The text with what would drive a terminal written out: an escape character becomes `\u{1b}`, and so do marks that reorder or hide
/// text. Line ends and tabs stay.
pub fn printable(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_unsafe) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        if is_unsafe(c) { shown.extend(c.escape_unicode()) } else { shown.push(c) }
    }
    Cow::Owned(shown)
}

/// The same JSON, whose strings drive no terminal either: JSON itself lets U+009B and marks that reorder text stand.
pub fn printable_json(json: String) -> String {
    if !json.chars().any(is_unsafe) {
        return json;
    }
    let mut shown = String::with_capacity(json.len() + 8);
    for c in json.chars() {
        // Outside of strings there are none, and all of them are in the first plane.
        if is_unsafe(c) { shown.push_str(&format!("\\u{:04x}", u32::from(c))) } else { shown.push(c) }
    }
    shown
}

/// Whether a terminal would act on the character, or hide text because of it.
pub fn is_unsafe(c: char) -> bool {
    c.is_control() && !matches!(c, '\n' | '\t') || is_invisible(c)
}

/// Marks that reorder or hide the text around them (Unicode UAX 9 and zero-width characters).
pub fn is_invisible(c: char) -> bool {
    matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}

/// The text of a CSV cell, as [`printable`] shows it. Spreadsheets run what begins like a formula: an apostrophe in front makes it text
/// to all of them.
pub fn csv_cell(text: &str) -> Cow<'_, str> {
    match text.trim_start_matches(' ').starts_with(['=', '+', '-', '@', '\t', '\r', '\n']) {
        true => Cow::Owned(format!("'{}", printable(text))),
        false => printable(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_drives_a_terminal() {
        for (text, shown) in [
            ("plain\ttext\n", "plain\ttext\n"),
            ("\x1b[2Jcleared", r"\u{1b}[2Jcleared"),
            ("over\rwritten", r"over\u{d}written"),
            ("\u{9b}31m", r"\u{9b}31m"),
            ("a\u{202e}b", r"a\u{202e}b"),
            ("é – 漢", "é – 漢"),
        ] {
            assert_eq!(printable(text), shown);
        }
        for code in 0..=0x2100_u32 {
            let Some(c) = char::from_u32(code) else { continue };
            let shown = printable(c.encode_utf8(&mut [0; 4])).into_owned();
            assert!(shown.chars().all(|c| !c.is_control() || matches!(c, '\n' | '\t')), "{code:x}");
        }
    }

    #[test]
    fn json_is_the_same_without_what_drives_a_terminal() {
        let text = "\u{1b}[2J \u{7f}\u{9b}31m \u{202e}é \"\\ \n\t";
        let json = printable_json(serde_json::to_string_pretty(&[text]).unwrap());
        assert_eq!(printable(&json), json);
        assert_eq!(serde_json::from_str::<[String; 1]>(&json).unwrap(), [text]);
        assert_eq!(printable_json("[\n  1\n]".to_owned()), "[\n  1\n]");
    }

    #[test]
    fn no_cell_is_a_formula() {
        for (text, cell) in [
            ("=HYPERLINK(\"http://x\")", "'=HYPERLINK(\"http://x\")"),
            ("+1", "'+1"),
            ("-1", "'-1"),
            ("@SUM(A1)", "'@SUM(A1)"),
            ("\t=1", "'\t=1"),
            ("  =1", "'  =1"),
            ("a\x1b[2J", r"a\u{1b}[2J"),
            ("\r=1", r"'\u{d}=1"),
            ("http://x/?a=1", "http://x/?a=1"),
            ("", ""),
        ] {
            assert_eq!(csv_cell(text), cell);
        }
    }
}
