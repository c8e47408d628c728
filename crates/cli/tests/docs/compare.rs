//! Whether an output is what a page shows.

/// Whether `actual` is `shown`: line by line but for spaces; or word by word, but for figures and the verdict's reasons.
/// `…` is anything, and the rest of a word at its end.
pub(crate) fn is_same(shown: &[String], actual: &[String], is_exact: bool) -> bool {
    let plain = |lines: &[String]| -> Vec<String> {
        if is_exact { lines.iter().map(|line| spaced(line)).collect() } else { words(lines) }
    };
    matches(&plain(shown), &plain(actual))
}

/// Lines are broken where their figures need it. (Columns are two spaces apart, thousands one: so figures come first.)
fn words(lines: &[String]) -> Vec<String> {
    let lines = without_reasons(lines);
    let plain = lines.iter().map(|line| without_figures(line));
    plain.flat_map(|line| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>()).collect()
}

fn matches(shown: &[String], actual: &[String]) -> bool {
    match (shown.split_first(), actual.split_first()) {
        (None, _) => actual.is_empty(),
        (Some((part, rest)), _) if part == "…" => {
            (0..=actual.len()).any(|skipped| matches(rest, &actual[skipped..]))
        }
        (Some((part, rest)), Some((first, others))) => {
            let begins = part.strip_suffix('…').is_some_and(|begin| first.starts_with(begin));
            (begins || part == first) && matches(rest, others)
        }
        (Some(_), None) => false,
    }
}

/// One space for several: columns are as wide as their figures.
fn spaced(line: &str) -> String {
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The head of a summary without what depends on how busy the machine is.
fn without_reasons(lines: &[String]) -> Vec<String> {
    let mut kept = Vec::new();
    let mut is_verdict = false;
    for line in lines {
        let word = line.split_whitespace().next().unwrap_or_default();
        if ["VALID", "SUSPECT", "INVALID"].contains(&word) {
            is_verdict = true;
        }
        if line.trim().is_empty() {
            is_verdict = false;
        }
        if !is_verdict {
            kept.push(without_outcome(line));
        }
    }
    kept
}

/// The first line of a summary, a row of a table and a verdict in JSON, without their words.
fn without_outcome(line: &str) -> String {
    let line = line.strip_suffix(" SUSPECT").or_else(|| line.strip_suffix(" VALID")).unwrap_or(line);
    for outcome in ["✓ done ", "! suspect ", "✗ invalid ", "✓ passed "] {
        if let Some(rest) = line.strip_prefix(outcome) {
            return format!("VERDICT {rest}");
        }
    }
    ["VALID", "SUSPECT", "INVALID"]
        .iter()
        .fold(line.to_owned(), |line, word| line.replace(&format!("\"{word}\""), "\"VERDICT\""))
}

/// `#` for every number with its unit, and for every time.
fn without_figures(line: &str) -> String {
    let mut text = String::new();
    let mut rest = line;
    while let Some(first) = rest.chars().next() {
        let figure = match time_bytes(rest) {
            0 if text.ends_with(starts_a_word) => 0,
            0 => figure_bytes(rest),
            time => time,
        };
        if figure == 0 {
            text.push(first);
            rest = &rest[first.len_utf8()..];
        } else {
            text.push('#');
            rest = &rest[figure..];
        }
    }
    text
}

/// What a digit after it belongs to: `p50`, `/delay/5`, `HTTP/1.1`, `X25519`.
fn starts_a_word(before: char) -> bool {
    before.is_alphanumeric() || "_/.-".contains(before)
}

/// Bytes of `2026-11-23`, or of `2026-11-23T092909Z`, at the start of `text`; 0 without.
fn time_bytes(text: &str) -> usize {
    let is = |form: &str| {
        let fits = |(form, byte): (u8, u8)| if form == b'0' { byte.is_ascii_digit() } else { byte == form };
        text.len() >= form.len() && form.bytes().zip(text.bytes()).all(fits)
    };
    ["0000-00-00T000000Z", "0000-00-00"].iter().find(|form| is(form)).map_or(0, |form| form.len())
}

/// Bytes of the number and its unit at the start of `text`; 0 without.
fn figure_bytes(text: &str) -> usize {
    let unsigned = text.trim_start_matches(['+', '-', '−']);
    let sign = text.len() - unsigned.len();
    if !unsigned.starts_with(|c: char| c.is_ascii_digit()) {
        return 0;
    }
    let mut end = digits(unsigned);
    // Thousands are set apart by a space or a comma, decimals by a point. A port is written without.
    let has_thousands = end <= 3;
    while let Some(rest) = unsigned[end..].strip_prefix([' ', ',', '.']) {
        let more = digits(rest);
        let is_decimal = unsigned[end..].starts_with('.');
        if more == 0 || !(is_decimal || has_thousands && more == 3) {
            break;
        }
        end += 1 + more;
    }
    sign + end + unit_bytes(&unsigned[end..])
}

fn digits(text: &str) -> usize {
    text.bytes().take_while(u8::is_ascii_digit).count()
}

/// Bytes of the unit at the start of `text`, with the space before it.
fn unit_bytes(text: &str) -> usize {
    let word = text.strip_prefix(' ').unwrap_or(text);
    let spaces = text.len() - word.len();
    let is_end = |rest: &str| !rest.starts_with(char::is_alphanumeric);
    let unit = UNITS.iter().find(|unit| word.strip_prefix(**unit).is_some_and(is_end));
    unit.map_or(0, |unit| spaces + unit.len())
}

/// Longer ones before their beginnings.
const UNITS: &[&str] = &[
    "KiB/s", "MiB/s", "GiB/s", "kB/s", "MB/s", "GB/s", "B/s", "KiB", "MiB", "GiB", "kB", "MB", "GB", "bytes",
    "ns", "µs", "ms", "/s", "s", "m", "h", "k", "M", "%", "B",
];

#[test]
fn figures_and_reasons_may_differ_and_nothing_else() {
    let check = |shown: &str, actual: &str, expected: bool| {
        let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(is_same(&lines(shown), &lines(actual), false), expected, "{shown:?} and {actual:?}");
    };
    check("p50  1.20 ms  2 041 ok", "p50   980 µs  12 041 ok", true);
    check("p50  1.20 ms", "p90  1.20 ms", false);
    check("{\"rate\":24255.787,\"n\":[-0.9,3]}", "{\"rate\":1,\"n\":[2,33]}", true);
    check("get /delay/5", "get /delay/6", false);
    check("+117 % (+12.9 % to −210 %)", "−1.5 % (+2 % to +3.25 %)", true);
    check(
        "! suspect   x   3.01 s\n  SUSPECT   a\n    - b\n\n  RATE",
        "✓ done   x   3 s\n  VALID   c\n\n  RATE",
        true,
    );
    check("\"SUSPECT\"", "\"VALID\"", true);
    check("a\n…\nb", "a\nx\ny\nb", true);
    check("a\n…\nb", "a\nx", false);
    check("needs … of memory", "needs 5 files and 6 GiB of memory", true);
    check("  1  391/s       0  2.27 ms", "  1   33/s       0  2.27 ms", true);
    check("localhost:8443 86.0 ms", "localhost:8443 113 ms", true);
    check("data_sent: 1.1 kB 6.0 kB/s", "data_sent: 980 B 1.3 MB/s", true);
    check("first at 5.00 ms: a b", "first at 12.5 ms: a\n      b", true);
    check("/runs/2026-11-23T092909Z-x/a", "/runs/2027-01-02T112233Z-x/a", true);
    check("/runs/2026-11-23T092909Z-x/a", "/runs/2027-01-02T112233Z-y/a", false);
    check("", "a", false);
}

#[test]
fn an_exact_example_differs_in_spaces_only() {
    let line = |text: &str| vec![text.to_owned()];
    assert!(is_same(&line("a  1 ms"), &line("a 1 ms"), true));
    assert!(!is_same(&line("a 1 ms"), &line("a 2 ms"), true));
}
