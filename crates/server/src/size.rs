//! Sizes in URLs: a plain number is bytes; `10k` (10,000), `10KiB` or `10Ki` (10,240), `1.5M` and their like are read as squall's own flags
//! read them.

/// Bytes, where it is a whole number of them; a final `B` and the case of letters do not matter.
pub(crate) fn parse(text: &str) -> Option<u64> {
    let digits_end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(digits_end);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    if whole.is_empty() || fraction.is_empty() || whole.len() + fraction.len() > DIGIT_COUNT_MAX {
        return None;
    }
    let digits: u128 = format!("{whole}{fraction}").parse().ok()?;
    let product = digits.checked_mul(bytes_per(unit)?)?;
    let divisor = 10u128.pow(u32::try_from(fraction.len()).ok()?);
    (product % divisor == 0).then(|| u64::try_from(product / divisor).ok()).flatten()
}

fn bytes_per(unit: &str) -> Option<u128> {
    let unit = unit.to_ascii_lowercase();
    match unit.strip_suffix('b').unwrap_or(&unit) {
        "" => Some(1),
        "k" => Some(1_000),
        "m" => Some(1_000_000),
        "g" => Some(1_000_000_000),
        "ki" => Some(1 << 10),
        "mi" => Some(1 << 20),
        "gi" => Some(1 << 30),
        _ => None,
    }
}

/// Their value times any unit fits.
const DIGIT_COUNT_MAX: usize = 25;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_numbers_are_bytes_and_units_are_those_of_flags() {
        for (text, bytes) in [
            ("0", 0),
            ("512", 512),
            ("10k", 10_000),
            ("10K", 10_000),
            ("10kB", 10_000),
            ("10KiB", 10_240),
            ("10Ki", 10_240),
            ("1.5MiB", 1_572_864),
            ("1g", 1_000_000_000),
            ("7B", 7),
            ("18446744073709551615", u64::MAX),
        ] {
            assert_eq!(parse(text), Some(bytes), "{text}");
        }
    }

    #[test]
    fn nonsense_is_refused() {
        for text in [
            "",
            "k",
            ".",
            "1.",
            ".5k",
            "-1",
            "1.5",
            "1.2.3",
            "1e3",
            "10x",
            "99999999999999999999",
            "٣",
            "1 k",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
