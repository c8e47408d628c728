//! Variables of a Postman collection: `{{name}}`, of the collection, of environments (`--env-file`), and those that Postman makes up.

use std::collections::BTreeMap;

use crate::read::time;

/// Values by name.
#[derive(Debug, Clone, Default)]
pub(super) struct Variables {
    /// Of the collection and of the folders on the way.
    pub(super) own: BTreeMap<String, String>,
    /// Of environments: they win.
    pub(super) environment: BTreeMap<String, String>,
}

/// What came of a text.
#[derive(Debug, Default)]
pub(super) struct Filled {
    /// Variables without a value.
    pub(super) missing: Vec<String>,
    /// Postman's own variables for which something was made up.
    pub(super) made_up: Vec<String>,
    /// The names of variables whose values lead back to the first of them.
    pub(super) cycle: Option<Vec<String>>,
}

impl Variables {
    /// Replaces the variables of a text for request number `nth`; notes what has no value in `filled`.
    pub(super) fn fill(&self, raw: &str, nth: u64, filled: &mut Filled) -> String {
        self.fill_within(raw, nth, filled, &mut Vec::new())
    }

    /// `open`: the variables whose values are being filled. As in Postman, the innermost braces come first: `{{url_{{env}}}}` is `{{url_test}}`.
    fn fill_within(&self, raw: &str, nth: u64, filled: &mut Filled, open: &mut Vec<String>) -> String {
        let mut text = raw.to_owned();
        let (mut from, mut count) = (0, 0);
        while let Some(end) = text[from..].find("}}").map(|at| from + at) {
            match variable_before(&text, end).filter(|_| count < REPLACED_COUNT_MAX) {
                Some(begin) => {
                    let name = text[begin + 2..end].trim().to_owned();
                    let value = self.value(&name, nth, filled, open);
                    text.replace_range(begin..end + 2, &value);
                    (from, count) = (begin, count + 1);
                }
                None => from = end + 1,
            }
        }
        text
    }

    fn value(&self, name: &str, nth: u64, filled: &mut Filled, open: &mut Vec<String>) -> String {
        let known = self.environment.get(name).or_else(|| self.own.get(name));
        match (known, name.strip_prefix('$')) {
            (Some(_), _) if open.iter().any(|one| one == name) => {
                let begin = open.iter().position(|one| one == name).unwrap_or_default();
                filled.cycle.get_or_insert_with(|| open[begin..].to_vec());
                String::new()
            }
            (Some(value), _) => {
                open.push(name.to_owned());
                let value = self.fill_within(value, nth, filled, open);
                open.pop();
                value
            }
            (None, Some(name)) => dynamic(name, nth, filled),
            (None, None) => {
                if !filled.missing.iter().any(|one| one == name) {
                    filled.missing.push(name.to_owned());
                }
                String::new()
            }
        }
    }
}

/// Where the variable begins whose closing braces are at `end`; `None` where they close nothing.
fn variable_before(text: &str, end: usize) -> Option<usize> {
    let from = end.saturating_sub(NAME_BYTES_MAX);
    let begin = from + memchr::memmem::rfind(&text.as_bytes()[from..end], b"{{")?;
    (!text[begin + 2..end].contains(['{', '}'])).then_some(begin)
}

/// Postman makes these up for each request; here they are the same whenever the file is read.
fn dynamic(name: &str, nth: u64, filled: &mut Filled) -> String {
    filled.made_up.push(name.to_owned());
    let seconds = time::ANY_NS / 1_000_000_000 + nth;
    match name {
        "guid" | "randomUUID" => format!("00000000-0000-4000-8000-{nth:012x}"),
        "timestamp" => seconds.to_string(),
        "isoTimestamp" => jiff::Timestamp::from_second(seconds as i64)
            .map_or_else(|_| String::new(), |time| time.to_string()),
        "randomInt" => (nth % 1000).to_string(),
        "randomBoolean" => nth.is_multiple_of(2).to_string(),
        name => format!("{name}-{nth}"),
    }
}

/// Reads an environment: as Postman exports it, a JSON object, or lines of `NAME=VALUE`.
///
/// # Errors
/// Says what is wrong, with the line.
pub fn environment(text: &str) -> Result<BTreeMap<String, String>, String> {
    if text.trim_start().starts_with('{') {
        let json: serde_json::Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
        let json = json.get("environment").unwrap_or(&json);
        if let Some(values) = json["values"].as_array() {
            let is_on = |value: &&serde_json::Value| value["enabled"] != false;
            let pair = |value: &serde_json::Value| {
                Some((value["key"].as_str()?.to_owned(), super::format::text(&value["value"])))
            };
            return Ok(values.iter().filter(is_on).filter_map(pair).collect());
        }
        let pairs = json.as_object().into_iter().flatten();
        return Ok(pairs.map(|(name, value)| (name.clone(), super::format::text(value))).collect());
    }
    let mut values = BTreeMap::new();
    for (nth, line) in (1..).zip(text.lines()) {
        let line = line.trim();
        let line = line.strip_prefix("export ").unwrap_or(line);
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let (name, value) = line.split_once('=').ok_or_else(|| format!("line {nth}: no `=`"))?;
        let value = value.trim();
        let unquoted = ['"', '\''].iter().find_map(|quote| value.strip_prefix(*quote)?.strip_suffix(*quote));
        values.insert(name.trim().to_owned(), unquoted.unwrap_or(value).to_owned());
    }
    Ok(values)
}

/// Longest name of a variable, with the spaces around it.
const NAME_BYTES_MAX: usize = 256;

/// Variables replaced in one text.
const REPLACED_COUNT_MAX: u32 = 10_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn environments_are_read_in_every_form() {
        for text in [
            r#"{"name":"e","values":[{"key":"a","value":"1","enabled":true},{"key":"b","value":"x"},{"key":"c","value":"3","enabled":false}]}"#,
            r#"{"a":1,"b":"x"}"#,
            "# note\n\nexport a=1\nb = \"x\"\n",
        ] {
            let expected = [("a", "1"), ("b", "x")].map(|(name, value)| (name.to_owned(), value.to_owned()));
            assert_eq!(environment(text), Ok(expected.into()), "{text}");
        }
        assert_eq!(environment("a=1\nb"), Err("line 2: no `=`".to_owned()));
        assert!(environment("{").is_err());
    }

    #[test]
    fn variables_are_filled_in_and_missing_ones_named() {
        let own = [("a", "1"), ("b", "{{a}}2"), ("c", "{{b}}{{b}}"), ("url_92", "http://x"), ("open", "{{a")];
        let own = own.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let environment = [("a".to_owned(), "9".to_owned())].into();
        let variables = Variables { own, environment };
        for (raw, text, missing) in [
            ("x{{ a }}y", "x9y", &[][..]),
            ("{{b}}", "92", &[]),
            ("{{n}}{{n}}{{m}}", "", &["n", "m"]),
            ("{{$guid}}", "00000000-0000-4000-8000-000000000003", &[]),
            ("{{a", "{{a", &[]),
            ("{{c}}", "9292", &[]),
            ("{{url_{{b}}}}/{{url_{{a}}}}", "http://x/", &["url_9"]),
            (r#"{"a":{"b":{{a}}}}{{{a}}}"#, r#"{"a":{"b":9}}{9}"#, &[]),
            ("{{open}}}}", "9", &[]),
            ("}} {{ {x} }}", "}} {{ {x} }}", &[]),
        ] {
            let mut filled = Filled::default();
            assert_eq!(variables.fill(raw, 3, &mut filled), text, "{raw}");
            assert_eq!(filled.missing, missing, "{raw}");
        }
    }

    #[test]
    fn variables_that_lead_back_to_themselves_are_named() {
        let own = [("self", "x{{self}}"), ("a", "{{b}}"), ("b", "1{{c}}"), ("c", "{{a}}"), ("d", "{{a}}")];
        let own = own.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let variables = Variables { own, ..Variables::default() };
        for (raw, cycle) in [
            ("{{self}}", Some(&["self"][..])),
            ("{{d}}", Some(&["a", "b", "c"])),
            ("{{ c }}", Some(&["c", "a", "b"])),
            ("{{x}}", None),
        ] {
            let mut filled = Filled::default();
            variables.fill(raw, 1, &mut filled);
            let found =
                filled.cycle.as_ref().map(|names| names.iter().map(String::as_str).collect::<Vec<_>>());
            assert_eq!(found.as_deref(), cycle, "{raw}");
        }
    }
}
