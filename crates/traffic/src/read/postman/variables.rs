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
}

impl Variables {
    /// Replaces the variables of a text for request number `nth`; notes what has no value in `filled`.
    pub(super) fn fill(&self, raw: &str, nth: u64, filled: &mut Filled) -> String {
        self.fill_at(raw, nth, filled, 0)
    }

    fn fill_at(&self, raw: &str, nth: u64, filled: &mut Filled, depth: u32) -> String {
        let mut out = String::new();
        let mut rest = raw;
        while let Some(begin) = rest.find("{{") {
            let Some(length) = rest[begin..].find("}}") else { break };
            let name = rest[begin + 2..begin + length].trim();
            out.push_str(&rest[..begin]);
            match self.environment.get(name).or_else(|| self.own.get(name)) {
                // Values may have variables of their own; one that has itself ends somewhere.
                Some(value) if depth < DEPTH_MAX => {
                    out.push_str(&self.fill_at(value, nth, filled, depth + 1));
                }
                Some(value) => out.push_str(value),
                None => match name.strip_prefix('$') {
                    Some(name) => out.push_str(&dynamic(name, nth, filled)),
                    None if !filled.missing.iter().any(|one| one == name) => {
                        filled.missing.push(name.to_owned());
                    }
                    None => {}
                },
            }
            rest = &rest[begin + length + 2..];
        }
        out + rest
    }
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

/// Variables in the values of variables.
const DEPTH_MAX: u32 = 8;

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
        let own = [("a", "1"), ("b", "{{a}}2"), ("loop", "{{loop}}")];
        let own = own.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let environment = [("a".to_owned(), "9".to_owned())].into();
        let variables = Variables { own, environment };
        for (raw, text, missing) in [
            ("x{{ a }}y", "x9y", &[][..]),
            ("{{b}}", "92", &[]),
            ("{{n}}{{n}}{{m}}", "", &["n", "m"]),
            ("{{$guid}}", "00000000-0000-4000-8000-000000000003", &[]),
            ("{{a", "{{a", &[]),
            ("{{loop}}", "{{loop}}", &[]),
        ] {
            let mut filled = Filled::default();
            assert_eq!(variables.fill(raw, 3, &mut filled), text, "{raw}");
            assert_eq!(filled.missing, missing, "{raw}");
        }
    }
}
