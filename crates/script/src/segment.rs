//! k6's execution segments as k6 writes them, and which places of a run k6 gives to each.
//!
//! Owns: the notation, and the order of places. Never: what a segment then means, which `plan::Segment` knows.

use squall_plan::Segment;

/// A fraction of the whole; the denominator is at least 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Ratio {
    over: u64,
    under: u64,
}

/// From one fraction of the whole to a larger one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Span {
    from: Ratio,
    to: Ratio,
}

/// What `executionSegment` and `executionSegmentSequence` say: `1/4:1/2`, `25%:50%`, `0.25`; `0,1/4,1/2,1`.
pub(crate) fn parse(segment: Option<&str>, sequence: Option<&str>) -> Result<Segment, String> {
    let own = segment.map(Span::parse).transpose()?.unwrap_or(Span::WHOLE);
    let mut spans = sequence.map(read_sequence).transpose()?.unwrap_or_else(|| vec![own]);
    let Some(place) = spans.iter().position(|span| *span == own) else {
        let (segment, sequence) = (segment.unwrap_or("0:1"), sequence.unwrap_or_default());
        return Err(format!(
            "`executionSegment` {segment} is not one of `executionSegmentSequence` {sequence}"
        ));
    };
    // What the sequence leaves out belongs to processes that are not named.
    let before = Span { from: Ratio::ZERO, to: spans[0].from };
    let after = Span { from: spans[spans.len() - 1].to, to: Ratio::ONE };
    let has_before = before.from != before.to;
    spans.splice(0..0, has_before.then_some(before));
    spans.extend((after.from != after.to).then_some(after));
    deal(&spans, place + usize::from(has_before))
}

/// Deals the places of a cycle out to the spans, and gives those of one. The cycle is the least number of which every span is a
/// whole part. Each place goes to the longest span (of equal ones the first) that has had no more than its share so far, so that
/// every span's places lie as evenly as they can: as k6 documents it for arrivals.
fn deal(spans: &[Span], own: usize) -> Result<Segment, String> {
    let bounds = spans.iter().flat_map(|span| [span.from.under, span.to.under]);
    let cycle = bounds.fold(1, least_common_multiple);
    if cycle > CYCLE_MAX {
        return Err(format!(
            "segments with a common denominator of {cycle} are not supported; the maximum is {CYCLE_MAX}"
        ));
    }
    let at = |ratio: Ratio| ratio.over * (cycle / ratio.under);
    let mut order: Vec<(usize, u64)> =
        spans.iter().map(|span| at(span.to) - at(span.from)).enumerate().collect();
    order.sort_by_key(|(_, width)| std::cmp::Reverse(*width));
    // The spans' widths may have a common divisor.
    let shrink = order.iter().fold(cycle, |divisor, (_, width)| greatest_common_divisor(divisor, *width));
    let cycle = cycle / shrink;
    let mut taken = vec![0_u64; order.len()];
    let mut picks = Vec::new();
    for place in 0..cycle {
        let next =
            order.iter().zip(&taken).position(|((_, width), had)| had * cycle <= place * (width / shrink));
        let Some(next) = next else { continue };
        taken[next] += 1;
        if order[next].0 == own {
            picks.push(place as u32);
        }
    }
    Segment::listed(&picks, cycle as u32).ok_or_else(|| "the segment is empty".to_owned())
}

fn read_sequence(text: &str) -> Result<Vec<Span>, String> {
    let bounds = text.split(',').map(Ratio::parse).collect::<Result<Vec<_>, _>>()?;
    if bounds.len() < 2 {
        return Err(format!(
            "`executionSegmentSequence` {text} needs at least two fractions, such as `0,1/2,1`"
        ));
    }
    bounds.windows(2).map(|pair| Span::of(pair[0], pair[1], text)).collect()
}

impl Span {
    const WHOLE: Self = Self { from: Ratio::ZERO, to: Ratio::ONE };

    fn parse(text: &str) -> Result<Self, String> {
        match text.split_once(':') {
            Some((from, to)) => Self::of(Ratio::parse(from)?, Ratio::parse(to)?, text),
            None => Self::of(Ratio::ZERO, Ratio::parse(text)?, text),
        }
    }

    fn of(from: Ratio, to: Ratio, text: &str) -> Result<Self, String> {
        if from.over * to.under >= to.over * from.under {
            return Err(format!("segment {text}: its start must be before its end"));
        }
        Ok(Self { from, to })
    }
}

impl Ratio {
    const ZERO: Self = Self { over: 0, under: 1 };
    const ONE: Self = Self { over: 1, under: 1 };

    /// `1/3`, `25%` or `0.25`, in lowest terms.
    fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let (over, under) = match (text.split_once('/'), text.strip_suffix('%')) {
            (Some((over, under)), _) => (over.parse().ok(), under.parse().ok()),
            (None, Some(percent)) => decimal(percent, 100),
            (None, None) => decimal(text, 1),
        };
        let read = over.zip(under).filter(|(over, under)| *under > 0 && over <= under && *under <= CYCLE_MAX);
        let (over, under) = read.ok_or_else(|| {
            format!("`{text}` is not a part of a run: write a fraction from 0 to 1, such as `1/3`, `25%` or `0.25`")
        })?;
        let divisor = greatest_common_divisor(under, over);
        Ok(Self { over: over / divisor, under: under / divisor })
    }
}

/// `12.5` over `under`, as whole numbers.
fn decimal(text: &str, under: u64) -> (Option<u64>, Option<u64>) {
    let (whole, digits) = text.split_once('.').unwrap_or((text, ""));
    let over = format!("{whole}{digits}").parse().ok();
    (over, 10_u64.checked_pow(digits.len() as u32).and_then(|scale| scale.checked_mul(under)))
}

fn greatest_common_divisor(left: u64, right: u64) -> u64 {
    if right == 0 { left } else { greatest_common_divisor(right, left % right) }
}

fn least_common_multiple(left: u64, right: u64) -> u64 {
    (left / greatest_common_divisor(left, right)).saturating_mul(right)
}

/// Longest cycle: each place takes four bytes.
const CYCLE_MAX: u64 = 1_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn picks(segment: &str, sequence: Option<&str>) -> (u64, Vec<u64>) {
        let segment = parse(Some(segment), sequence).unwrap();
        let picks = (0..u64::from(segment.width())).map(|nth| segment.whole_idx(nth));
        (segment.of().into(), picks.collect())
    }

    #[test]
    fn places_are_dealt_to_the_longest_span_that_is_behind() {
        assert_eq!(picks("0:1/3", Some("0,1/3,2/3,1")), (3, vec![0]));
        assert_eq!(picks("1/3:2/3", Some("0,1/3,2/3,1")), (3, vec![1]));
        assert_eq!(picks("0:1/4", Some("0,1/4,1")), (4, vec![1]));
        assert_eq!(picks("1/4:1", Some("0,1/4,1")), (4, vec![0, 2, 3]));
        assert_eq!(picks("20%:50%", Some("0,20%,50%,1")), (10, vec![1, 5, 7]));
        assert_eq!(picks("0.5", None), (2, vec![0]));
        assert_eq!(picks("1/4:1/2", None), (4, vec![3]));
    }

    #[test]
    fn the_parts_of_a_sequence_are_the_whole() {
        for sequence in ["0,1", "0,1/2,1", "0,1/3,1/2,1", "0,10%,0.35,3/4,1", "0,1/7,2/7,6/7,1"] {
            let bounds: Vec<&str> = sequence.split(',').collect();
            let parts: Vec<Segment> =
                bounds.windows(2).map(|pair| parse(Some(&pair.join(":")), Some(sequence)).unwrap()).collect();
            for total in [0, 1, 2, 3, 7, 100, 12_345] {
                let sum: u64 = parts.iter().map(|part| part.part_of(total)).sum();
                assert_eq!(sum, total, "{sequence}");
                let items = |part: &Segment| -> Vec<u64> {
                    (0..part.part_of(total)).map(|idx| part.whole_idx(idx)).collect()
                };
                let mut all: Vec<u64> = parts.iter().flat_map(items).collect();
                all.sort_unstable();
                assert!(all.into_iter().eq(0..total), "{sequence} {total}");
            }
            assert!((parts.iter().map(Segment::fraction).sum::<f64>() - 1.0).abs() < 1e-12);
        }
    }

    #[test]
    fn nonsense_is_refused_with_its_reason() {
        for (segment, sequence, reason) in [
            ("1/2:1/4", None, "start"),
            ("2", None, "not a part"),
            ("x", None, "not a part"),
            ("1/0", None, "not a part"),
            ("0:0", None, "start"),
            ("0:1/2", Some("0,1/3,1"), "not one of"),
            ("0:1", Some("1"), "two fractions"),
            ("0:1/999983", Some("0,1/999983,2/3,1"), "denominator"),
        ] {
            let problem = parse(Some(segment), sequence).unwrap_err();
            assert!(problem.contains(reason), "{segment}: {problem}");
        }
    }
}
