//! What a mistyped name was meant to be.

/// The known name that is nearest to a typed one: a third of its letters, three at most, may be wrong, missing, or swapped. `None`
/// when none is that near.
pub fn nearest<'a>(typed: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let near = known.into_iter().map(|name| (strsim::damerau_levenshtein(typed, name), name));
    let near = near.filter(|(distance, name)| *distance <= name.chars().count().div_ceil(3).min(3));
    near.min_by_key(|(distance, _)| *distance).map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_is_recognised_and_another_word_is_not() {
        let known = ["on", "steps", "connections", "avg"];
        for (typed, meant) in [
            ("step", Some("steps")),
            ("agv", Some("avg")),
            ("conectoins", Some("connections")),
            ("steps", Some("steps")),
            ("foo", None),
            ("", None),
            ("monitor", None),
        ] {
            assert_eq!(nearest(typed, known), meant, "{typed}");
        }
        assert_eq!(nearest("x", []), None);
    }
}
