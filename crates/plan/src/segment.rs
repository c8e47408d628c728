//! One machine's part of a load that several machines make together (k6's execution segment, with whole numbers), and one shard's part
//! of that.
//!
//! Pure arithmetic: all parts add up to the whole, exactly, for users, connections, requests, arrivals and recorded sessions alike.

use serde::{Deserialize, Serialize};

use crate::When;

/// Of every `of` items in a row, those at places `first` to `first + width - 1` are this machine's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Segment {
    /// The first place, from 0.
    pub first: u32,
    /// How many places in a row; at least 1.
    pub width: u32,
    /// The places of all machines together; at least `first + width`.
    pub of: u32,
}

impl Segment {
    /// Everything: a load that one machine makes.
    pub const WHOLE: Self = Self { first: 0, width: 1, of: 1 };

    /// One segment for each machine, by weight (at least 1 each). `item_count`: how many connections or requests there are to be
    /// divided at least; where they are fewer than the places, the first machines get one place each and the others `None`.
    pub fn divide(weights: &[u32], item_count: u64) -> Vec<Option<Self>> {
        let of: u32 = weights.iter().sum();
        if item_count < u64::from(of) {
            let used = weights.len().min(usize::try_from(item_count).unwrap_or(usize::MAX)).max(1) as u32;
            let place = |first| (first < used).then_some(Self { first, width: 1, of: used });
            return (0..).take(weights.len()).map(place).collect();
        }
        let mut first = 0;
        let mut next = |&width: &u32| {
            first += width;
            Some(Self { first: first - width, width, of })
        };
        weights.iter().map(&mut next).collect()
    }

    /// Whether there can be such a part: one that came from elsewhere may be none.
    pub fn is_possible(&self) -> bool {
        self.width > 0 && self.first.checked_add(self.width).is_some_and(|end| end <= self.of)
    }

    /// Whether it is everything.
    pub fn is_whole(&self) -> bool {
        self.width == self.of
    }

    /// How many of `whole` items are this machine's.
    pub fn part_of(&self, whole: u64) -> u64 {
        let (first, width, of) = (u64::from(self.first), u64::from(self.width), u64::from(self.of));
        whole / of * width + (whole % of).saturating_sub(first).min(width)
    }

    /// The place in the whole of this machine's item `own_idx`.
    pub fn whole_idx(&self, own_idx: u64) -> u64 {
        let width = u64::from(self.width);
        own_idx / width * u64::from(self.of) + u64::from(self.first) + own_idx % width
    }

    /// Of this machine's items, the number of the whole's item `whole_idx`; `None`: it is another machine's.
    fn own_idx(&self, whole_idx: u64) -> Option<u64> {
        let (of, width) = (u64::from(self.of), u64::from(self.width));
        let place = (whole_idx % of).checked_sub(self.first.into()).filter(|place| *place < width)?;
        Some(whole_idx / of * width + place)
    }

    /// This machine's share: above 0, at most 1.
    pub fn fraction(&self) -> f64 {
        f64::from(self.width) / f64::from(self.of)
    }
}

impl Default for Segment {
    fn default() -> Self {
        Self::WHOLE
    }
}

/// One shard's part of a load: the shards of a machine take its items in turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShardPart {
    /// This shard, from 0.
    pub shard_idx: u32,
    /// All shards of this machine; at least 1.
    pub shard_count: u32,
    /// This machine's part.
    pub segment: Segment,
}

impl ShardPart {
    /// Everything: a load that one shard makes.
    pub const WHOLE: Self = Self { shard_idx: 0, shard_count: 1, segment: Segment::WHOLE };

    /// Whether it is everything.
    pub fn is_whole(&self) -> bool {
        self.shard_count == 1 && self.segment.is_whole()
    }

    /// Whether the item `whole_idx` is this shard's.
    pub fn has(&self, whole_idx: u64) -> bool {
        let own_idx = self.segment.own_idx(whole_idx);
        own_idx.is_some_and(|own_idx| own_idx % u64::from(self.shard_count) == u64::from(self.shard_idx))
    }

    /// How many of `whole` items are this shard's.
    pub fn part_of(&self, whole: u64) -> u64 {
        let own = self.segment.part_of(whole);
        let count = u64::from(self.shard_count);
        own / count + u64::from(u64::from(self.shard_idx) < own % count)
    }

    /// Of this machine's items, the number of this shard's `own_idx`-th one; both from 0.
    pub fn machine_idx(&self, own_idx: u64) -> u64 {
        own_idx * u64::from(self.shard_count) + u64::from(self.shard_idx)
    }

    /// This shard's share: above 0, at most 1.
    pub fn fraction(&self) -> f64 {
        self.segment.fraction() / f64::from(self.shard_count)
    }

    /// The most connections that this shard opens to one origin.
    pub fn connection_count_max(&self, when: &When) -> u32 {
        (self.part_of(when.connection_count_max()) as u32).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_add_up_to_the_whole_and_no_item_is_twice() {
        for weights in [&[1][..], &[1, 1, 1], &[2, 1], &[1, 5, 3]] {
            for whole in [0_u64, 1, 2, 3, 7, 100, 12_345] {
                let segments: Vec<Segment> =
                    Segment::divide(weights, u64::MAX).into_iter().flatten().collect();
                let sum: u64 = segments.iter().map(|segment| segment.part_of(whole)).sum();
                assert_eq!(sum, whole, "{weights:?}");
                let mut items: Vec<u64> = segments
                    .iter()
                    .flat_map(|segment| (0..segment.part_of(whole)).map(|idx| segment.whole_idx(idx)))
                    .collect();
                items.sort_unstable();
                assert_eq!(items, (0..whole).collect::<Vec<_>>(), "{weights:?}");
            }
        }
    }

    #[test]
    fn each_item_is_one_shards_and_as_many_as_its_part_says() {
        for weights in [&[1][..], &[1, 5, 3]] {
            let segments = Segment::divide(weights, u64::MAX).into_iter().flatten();
            let parts: Vec<ShardPart> = segments
                .flat_map(|segment| {
                    (0..2).map(move |shard_idx| ShardPart { shard_idx, shard_count: 2, segment })
                })
                .collect();
            for whole in [0_u64, 1, 9, 100] {
                for part in &parts {
                    let items: Vec<u64> = (0..whole).filter(|idx| part.has(*idx)).collect();
                    let computed =
                        (0..part.part_of(whole)).map(|nth| part.segment.whole_idx(part.machine_idx(nth)));
                    assert!(computed.eq(items), "{part:?} of {whole}");
                }
                assert!((0..whole).all(|idx| parts.iter().filter(|part| part.has(idx)).count() == 1));
            }
        }
    }

    #[test]
    fn a_part_is_at_least_one_place_of_those_that_there_are() {
        for (first, width, of, expected) in [
            (0, 1, 1, true),
            (2, 3, 5, true),
            (2, 3, 4, false),
            (0, 0, 1, false),
            (0, 0, 0, false),
            (u32::MAX, 1, u32::MAX, false),
        ] {
            assert_eq!(Segment { first, width, of }.is_possible(), expected, "{first}+{width}/{of}");
        }
    }

    #[test]
    fn weights_are_shares() {
        let [Some(a), Some(b)] = Segment::divide(&[3, 1], 1000)[..] else { panic!("two machines") };
        assert_eq!((a.part_of(1000), b.part_of(1000)), (750, 250));
        assert_eq!((a.fraction(), b.fraction()), (0.75, 0.25));
    }

    #[test]
    fn machines_without_an_item_of_their_own_are_left_out() {
        let segments = Segment::divide(&[1, 4, 1], 2);
        assert_eq!(segments.iter().map(Option::is_some).collect::<Vec<_>>(), [true, true, false]);
        assert!(segments.iter().flatten().all(|segment| segment.part_of(2) == 1));
        assert_eq!(Segment::divide(&[1], 0), [Some(Segment::WHOLE)]);
    }
}
