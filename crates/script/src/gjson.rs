//! Paths into JSON, as `response.json(path)` takes them: GJSON's syntax.
//!
//! Names, indices, wildcards `*` and `?`, `#` (count and each), queries `#(name=="x")` and `#(...)#`, escapes `\.`, pipes, modifiers such as
//! `@reverse`, several paths at once (`{name.first,age}`, `[a,b]`), literals (`!"x"`) and JSON lines (`..0`). See
//! <https://github.com/tidwall/gjson/blob/master/SYNTAX.md>. Own code because the `gjson` crate, last released in 2022, lacks modifiers and
//! wildcards that scripts use.

use serde_json::{Map, Value};

/// What is at `path`; `None` when nothing is.
pub(crate) fn get(value: &Value, path: &str) -> Option<Value> {
    match path.strip_prefix("..") {
        // JSON lines, of which a response that is one value has one.
        Some(rest) if !rest.is_empty() => find(&Value::Array(vec![value.clone()]), rest),
        _ => find(value, path),
    }
}

/// What follows a part of a path.
#[derive(Clone, Copy)]
enum Next<'a> {
    End,
    Dot(&'a str),
    Pipe(&'a str),
}

impl<'a> Next<'a> {
    fn of(rest: &'a str) -> Self {
        match rest.chars().next() {
            Some('|') => Self::Pipe(&rest[1..]),
            Some('.') => Self::Dot(&rest[1..]),
            _ => Self::End,
        }
    }

    fn find(self, value: &Value) -> Option<Value> {
        match self {
            Self::End => Some(value.clone()),
            Self::Dot(rest) | Self::Pipe(rest) => find(value, rest),
        }
    }

    /// What follows is wanted of each item, up to a pipe, and what follows that of the list.
    fn find_each<'v>(self, items: impl Iterator<Item = &'v Value>) -> Option<Value> {
        let Self::Dot(rest) = self else { return self.find(&items.cloned().collect()) };
        let end = end_of_part(rest, |letter| letter == '|');
        let found: Value = items.filter_map(|item| find(item, &rest[..end])).collect();
        Self::of(&rest[end..]).find(&found)
    }
}

fn find(value: &Value, path: &str) -> Option<Value> {
    match path.chars().next() {
        Some('@') => {
            if let Some((name, argument, next)) = modifier(path) {
                return next.find(&modified(value, name, argument)?);
            }
        }
        Some('!') => {
            let end = end_of_part(path, |letter| matches!(letter, '.' | '|'));
            return Next::of(&path[end..]).find(&serde_json::from_str(&path[1..end]).ok()?);
        }
        Some('[' | '{') => return several(value, path),
        _ => {}
    }
    let (part, next) = split(path);
    match value {
        Value::Array(items) => in_array(items, &part, next),
        Value::Object(members) => {
            let named = members.iter().filter(|(name, _)| matches_name(&part, name));
            named.map(|(_, member)| member).find_map(|member| next.find(member))
        }
        _ => None,
    }
}

fn in_array(items: &[Value], part: &str, next: Next<'_>) -> Option<Value> {
    if part == "#" {
        return match next {
            Next::Dot(_) => next.find_each(items.iter()),
            _ => next.find(&items.len().into()),
        };
    }
    let Some(query) = part.strip_prefix("#(") else {
        return next.find(items.get(part.parse::<usize>().ok()?)?);
    };
    match query.strip_suffix(")#") {
        Some(query) => next.find_each(items.iter().filter(|item| holds(item, query))),
        None => {
            let query = query.strip_suffix(')')?;
            next.find(items.iter().find(|item| holds(item, query))?)
        }
    }
}

/// The first part of a path and what follows it.
fn split(path: &str) -> (String, Next<'_>) {
    let end = end_of_part(path, |letter| matches!(letter, '.' | '|'));
    (path[..end].to_owned(), Next::of(&path[end..]))
}

/// Where the first letter is that ends a part, outside of quotes and brackets.
fn end_of_part(path: &str, ends: impl Fn(char) -> bool) -> usize {
    let (mut depth, mut is_quoted, mut is_escaped) = (0_u32, false, false);
    for (at, letter) in path.char_indices() {
        match letter {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            // Outside of brackets, a quote is a letter like others, but for a literal's.
            '"' if depth > 0 || path.starts_with('!') => is_quoted = !is_quoted,
            _ if is_quoted => {}
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth = depth.saturating_sub(1),
            _ if depth == 0 && ends(letter) => return at,
            _ => {}
        }
    }
    path.len()
}

/// `[path,path]` and `{path,"name":path}`: a list or an object of what is found.
fn several(value: &Value, path: &str) -> Option<Value> {
    let end = end_of_part(path, |letter| matches!(letter, '.' | '|'));
    let inner = path[..end].strip_prefix(['[', '{'])?.strip_suffix([']', '}'])?;
    let (mut list, mut members, mut rest) = (Vec::new(), Map::new(), inner);
    while !rest.is_empty() {
        let end = end_of_part(rest, |letter| letter == ',');
        let (name, path) = selector(&rest[..end]);
        if let Some(found) = find(value, path) {
            list.push(found.clone());
            members.insert(name, found);
        }
        rest = rest.get(end + 1..).unwrap_or_default();
    }
    let found = if path.starts_with('[') { Value::Array(list) } else { Value::Object(members) };
    Next::of(&path[end..]).find(&found)
}

/// A path with its name, which is the path's last part where none is given.
fn selector(text: &str) -> (String, &str) {
    let colon = end_of_part(text, |letter| letter == ':');
    // The colon of a modifier's argument names nothing.
    if colon < text.len() && !text[..colon].contains('@') {
        let name = &text[..colon];
        return (serde_json::from_str(name).unwrap_or_else(|_| name.to_owned()), &text[colon + 1..]);
    }
    let last = text.rsplit(['.', '|']).next().unwrap_or_default();
    let is_plain = !last.contains(['[', ']', '{', '}', '(', ')', '#', '|', '!']);
    (if is_plain { last } else { "_" }.to_owned(), text)
}

/// Whether a member's name fits a part with wildcards; `\` makes the next letter plain.
fn matches_name(pattern: &str, name: &str) -> bool {
    if !pattern.contains(['*', '?', '\\']) {
        return pattern == name;
    }
    let (pattern, name) = (Wanted::all(pattern), name.chars().collect::<Vec<_>>());
    let (mut at, mut name_at) = (0, 0);
    // Where the last `*` is, and how much of the name it takes so far: only that can be wrong when a later letter does not fit.
    let mut star = None;
    while name_at < name.len() {
        match pattern.get(at) {
            Some(Wanted::Any) => {
                star = Some((at, name_at));
                at += 1;
                continue;
            }
            Some(wanted) if wanted.fits(name[name_at]) => (at, name_at) = (at + 1, name_at + 1),
            _ => {
                let Some((star_at, taken)) = star else { return false };
                star = Some((star_at, taken + 1));
                (at, name_at) = (star_at + 1, taken + 1);
            }
        }
    }
    pattern[at..].iter().all(|wanted| matches!(wanted, Wanted::Any))
}

/// What a place of a pattern wants.
enum Wanted {
    /// Any letters.
    Any,
    /// Any letter.
    One,
    Letter(char),
}

impl Wanted {
    fn all(pattern: &str) -> Vec<Self> {
        let (mut letters, mut all) = (pattern.chars(), Vec::new());
        while let Some(letter) = letters.next() {
            all.push(match letter {
                '*' => Self::Any,
                '?' => Self::One,
                '\\' => Self::Letter(letters.next().unwrap_or('\\')),
                letter => Self::Letter(letter),
            });
        }
        all
    }

    fn fits(&self, letter: char) -> bool {
        match self {
            Self::Any | Self::One => true,
            Self::Letter(wanted) => *wanted == letter,
        }
    }
}

/// Whether an element fits a query such as `age>=45` or `nested.name=="x"`.
fn holds(item: &Value, query: &str) -> bool {
    let (path, comparison) = match operator_of(query) {
        Some((at, operator)) => (query[..at].trim(), Some((operator, query[at + operator.len()..].trim()))),
        None => (query.trim(), None),
    };
    let actual = match item {
        Value::Array(_) | Value::Object(_) => find(item, path),
        _ => path.is_empty().then(|| item.clone()),
    };
    let Some((operator, wanted)) = comparison else { return actual.is_some() };
    if let Some(kind) = wanted.strip_prefix('~') {
        return is_like(actual.as_ref(), kind).is_some_and(|is_like| compares(operator, &is_like.cmp(&true)));
    }
    let unquoted = serde_json::from_str::<String>(wanted);
    let wanted = unquoted.as_deref().unwrap_or(wanted);
    match (operator, actual) {
        ("%", Some(Value::String(text))) => matches_name(wanted, &text),
        ("!%", Some(Value::String(text))) => !matches_name(wanted, &text),
        (_, Some(Value::String(text))) => compares(operator, &text.as_str().cmp(wanted)),
        (_, Some(Value::Number(number))) => {
            let wanted = wanted.parse::<f64>().unwrap_or(0.0);
            let order = number.as_f64().and_then(|number| number.partial_cmp(&wanted));
            order.is_some_and(|order| compares(operator, &order))
        }
        (_, Some(Value::Bool(actual))) => match wanted {
            "true" => compares(operator, &actual.cmp(&true)),
            "false" => compares(operator, &actual.cmp(&false)),
            _ => operator == "!=",
        },
        _ => false,
    }
}

/// Whether a value is one of a kind: `~true`, `~false`, `~null` and `~*`, anything. `None`: there is no such kind.
fn is_like(value: Option<&Value>, kind: &str) -> Option<bool> {
    let truth = |text: &str| match text.to_ascii_lowercase().as_str() {
        "1" | "t" | "true" => Some(true),
        "0" | "f" | "false" => Some(false),
        _ => None,
    };
    Some(match (kind, value) {
        ("*", value) => value.is_some(),
        ("null" | "false", None | Some(Value::Null)) => true,
        ("null", _) => false,
        ("true" | "false", Some(Value::Bool(actual))) => *actual == (kind == "true"),
        ("true" | "false", Some(Value::Number(number))) => (number.as_f64() != Some(0.0)) == (kind == "true"),
        ("true" | "false", Some(Value::String(text))) => truth(text) == Some(kind == "true"),
        ("true" | "false", _) => false,
        _ => return None,
    })
}

/// The operator of a query and where it is: outside of queries within it.
fn operator_of(query: &str) -> Option<(usize, &'static str)> {
    let mut depth = 0_u32;
    for (at, letter) in query.char_indices() {
        match letter {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ if depth > 0 => {}
            _ => {
                if let Some(operator) = OPERATORS.iter().find(|operator| query[at..].starts_with(*operator)) {
                    return Some((at, operator));
                }
            }
        }
    }
    None
}

fn compares(operator: &str, order: &std::cmp::Ordering) -> bool {
    match operator {
        "=" | "==" => order.is_eq(),
        "!=" => order.is_ne(),
        "<" => order.is_lt(),
        "<=" => order.is_le(),
        ">" => order.is_gt(),
        ">=" => order.is_ge(),
        _ => false,
    }
}

/// A modifier at the beginning of a path, with its argument: `@flatten:{"deep":true}`. `None`: there is none of that name.
fn modifier(path: &str) -> Option<(&str, &str, Next<'_>)> {
    let end = end_of_part(path, |letter| matches!(letter, '.' | '|'));
    let (name, argument) = path[1..end].split_once(':').unwrap_or_else(|| (&path[1..end], ""));
    // An argument that is no JSON may contain dots.
    let end = if argument.is_empty() || argument.starts_with(['{', '[', '"', '(']) {
        end
    } else {
        end_of_part(path, |letter| letter == '|')
    };
    let argument = path[1..end].split_once(':').map_or("", |(_, argument)| argument);
    MODIFIERS.contains(&name).then(|| (name, argument, Next::of(&path[end..])))
}

fn modified(value: &Value, name: &str, argument: &str) -> Option<Value> {
    let is_set = |option: &str| serde_json::from_str::<Value>(argument).is_ok_and(|set| set[option] == true);
    Some(match (name, value) {
        ("reverse", Value::Array(items)) => items.iter().rev().cloned().collect(),
        ("keys", Value::Object(members)) => members.keys().map(|name| Value::from(name.as_str())).collect(),
        ("values", Value::Object(members)) => members.values().cloned().collect(),
        ("keys", Value::Array(items)) => vec![Value::Null; items.len()].into(),
        ("keys" | "values", Value::Null) => Value::Array(Vec::new()),
        ("flatten", Value::Array(items)) => flat(items, is_set("deep")).into(),
        ("join", Value::Array(items)) => {
            let members = items.iter().filter_map(Value::as_object).flatten();
            Value::Object(members.map(|(name, member)| (name.clone(), member.clone())).collect())
        }
        ("group", Value::Object(members)) => grouped(members),
        ("dig", _) => {
            let mut found = Vec::new();
            dig(value, argument, &mut found);
            found.into()
        }
        ("tostr", _) => value.to_string().into(),
        ("fromstr", Value::String(text)) => serde_json::from_str(text).ok()?,
        ("group" | "fromstr", _) => return None,
        _ => value.clone(),
    })
}

fn flat(items: &[Value], is_deep: bool) -> Vec<Value> {
    let flatten = |item: &Value| match item {
        Value::Array(inner) if is_deep => flat(inner, true),
        Value::Array(inner) => inner.clone(),
        other => vec![other.clone()],
    };
    items.iter().flat_map(flatten).collect()
}

/// `{"a":[1,2],"b":[3,4]}` as `[{"a":1,"b":3},{"a":2,"b":4}]`.
fn grouped(members: &Map<String, Value>) -> Value {
    let lists = || members.iter().filter_map(|(name, member)| Some((name, member.as_array()?)));
    let count = lists().map(|(_, list)| list.len()).max().unwrap_or(0);
    let group = |idx: usize| -> Map<String, Value> {
        lists().filter_map(|(name, list)| Some((name.clone(), list.get(idx)?.clone()))).collect()
    };
    (0..count).map(group).collect()
}

/// What is at `path` in a value and in everything in it.
fn dig(value: &Value, path: &str, found: &mut Vec<Value>) {
    found.extend(find(value, path));
    match value {
        Value::Array(items) => items.iter().for_each(|item| dig(item, path, found)),
        Value::Object(members) => members.values().for_each(|member| dig(member, path, found)),
        _ => {}
    }
}

const OPERATORS: &[&str] = &["==", "!=", "<=", ">=", "!%", "=", "<", ">", "%"];

const MODIFIERS: &[&str] = &[
    "this", "reverse", "keys", "values", "flatten", "join", "group", "dig", "tostr", "fromstr", "valid",
    "pretty", "ugly",
];

#[cfg(test)]
mod tests {
    use super::*;

    /// The example document of GJSON's own syntax page, and more.
    const DOCUMENT: &str = r#"{"name": {"first": "Tom", "last": "Anderson"}, "age": 37, "children": ["Sara","Alex","Jack"],
        "fav.movie": "Deer Hunter", "a(b": 1, "": "empty", "friends": [
        {"first": "Dale", "last": "Murphy", "age": 44, "nets": ["ig", "fb", "tw"]},
        {"first": "Roger", "last": "Craig", "age": 68, "nets": ["fb", "tw"]},
        {"first": "Jane", "last": "Murphy", "age": 47, "nets": ["ig", "tw"]}],
        "vals": [1,2.5,"3",null,true,false,{"x":null}], "nested": [[1,2],[3,[4,5]]],
        "o": {"1": "one", "b": {"c": [{"d":1},{"d":2}]}}}"#;

    /// What k6 1.8.1 answers for the same document and paths.
    #[test]
    fn paths_find_what_k6_finds() {
        let document: Value = serde_json::from_str(DOCUMENT).unwrap();
        for (path, expected) in [
            ("name.last", r#""Anderson""#),
            ("age", "37"),
            ("children.#", "3"),
            ("children|#", "3"),
            ("children.1", r#""Alex""#),
            ("child*.2", r#""Jack""#),
            ("c?ildren.0", r#""Sara""#),
            ("o.*.c.0.d", "1"),
            (r#"children.#(%"*a*")#"#, r#"["Sara","Jack"]"#),
            (r#"children.#(%"S*r?")"#, r#""Sara""#),
            ("fav\\.movie", r#""Deer Hunter""#),
            ("a(b", "1"),
            ("friends.#.first", r#"["Dale","Roger","Jane"]"#),
            ("friends.#.first|0", r#""Dale""#),
            ("friends.#.nets.#", "[3,2,2]"),
            ("friends.1.last", r#""Craig""#),
            (r#"friends.#(last=="Murphy").first"#, r#""Dale""#),
            (r#"friends.#(last=="Murphy")#.first"#, r#"["Dale","Jane"]"#),
            (r#"friends.#(last=="Murphy")#.first|1"#, r#""Jane""#),
            (r#"friends.#(last=="Murphy")#|1.first"#, r#""Jane""#),
            ("friends.#(age>45)#.last", r#"["Craig","Murphy"]"#),
            ("friends.#(age>40)#|#", "3"),
            ("friends.#(age>40)#.#", "[]"),
            (r#"friends.#(first%"D*").last"#, r#""Murphy""#),
            (r#"friends.#(first!%"D*")#.last"#, r#"["Craig","Murphy"]"#),
            ("friends.#(first=Dale).last", r#""Murphy""#),
            (r#"friends.#(nets.#(=="fb"))#.first"#, r#"["Dale","Roger"]"#),
            ("friends.#(nets.#==2)#.first", r#"["Roger","Jane"]"#),
            (r#"children.#(!="Alex")#"#, r#"["Sara","Jack"]"#),
            ("vals.#(==2.5)", "2.5"),
            (r#"vals.#(=="3")"#, r#""3""#),
            ("vals.#(==~true)", "1"),
            ("vals.#(==~false)#", r#"[null,false,{"x":null}]"#),
            ("vals.#(==~null)", "null"),
            ("vals.#(==~*)#", r#"[1,2.5,"3",null,true,false]"#),
            ("children|@reverse|0", r#""Jack""#),
            ("name|@keys", r#"["first","last"]"#),
            ("nested|@flatten", "[1,2,3,[4,5]]"),
            (r#"nested|@flatten:{"deep":true}"#, "[1,2,3,4,5]"),
            ("nested|@flatten|#", "4"),
            ("name|@tostr|@fromstr|first", r#""Tom""#),
            ("friends.#.{first,age}|1", r#"{"first":"Roger","age":68}"#),
            ("friends.#.[first,age]|1", r#"["Roger",68]"#),
            (r#"[name.first,age,"x"]"#, r#"["Tom",37]"#),
            (r#"{"who":name.first,"old":age}"#, r#"{"who":"Tom","old":37}"#),
            (r#"{"a":friends.#.first}|@group"#, r#"[{"a":"Dale"},{"a":"Roger"},{"a":"Jane"}]"#),
            ("friends|@join|first", r#""Jane""#),
            ("o|@dig:d", "[1,2]"),
            (r#"!"static""#, r#""static""#),
            ("..0.age", "37"),
            ("..#", "1"),
        ] {
            let found = get(&document, path).map(|value| value.to_string());
            assert_eq!(found.as_deref(), Some(expected), "{path}");
        }
        for path in [
            "nothing",
            "children.9",
            "children.-1",
            "age.x",
            "friends.#(age>100).first",
            r#"friends.#(first=="Dale""#,
            "vals.#(==null)",
            "friends.#.age|@group",
            r#""name""#,
            "name..first",
            ".",
            "@nothing",
        ] {
            assert_eq!(get(&document, path), None, "{path}");
        }
    }
}
