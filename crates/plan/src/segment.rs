//! One machine's part of a load that several machines make together (k6's execution segment, with whole numbers), and one shard's part
//! of that.
//!
//! Pure arithmetic: all parts add up to the whole, exactly, for users, connections, requests, arrivals and recorded sessions alike.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::When;

/// Of every `of` items in a row, those at some of the places are this machine's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "SavedSegment", into = "SavedSegment")]
pub struct Segment {
    /// How many of the places are this machine's; at least 1.
    width: u32,
    /// The places of all machines together; at least `width`.
    of: u32,
    places: Places,
}

/// Which places are a segment's; all are below `of`.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Places {
    /// Those in a row from this one.
    From(u32),
    /// These, in ascending order, with gaps.
    Listed(Arc<[u32]>),
}

/// A segment as it is saved and sent; it may be none.
#[derive(Serialize, Deserialize)]
#[serde(untagged, expecting = "a part of a load: `first`, `width` and `of`")]
enum SavedSegment {
    Run { first: u32, width: u32, of: u32 },
    Listed { places: Vec<u32>, of: u32 },
}

impl Segment {
    /// Everything: a load that one machine makes.
    pub const WHOLE: Self = Self { width: 1, of: 1, places: Places::From(0) };

    /// `width` places in a row from `first`, counted from 0, of every `of`; `None`: there are no such places.
    pub fn run(first: u32, width: u32, of: u32) -> Option<Self> {
        let is_possible = width > 0 && first.checked_add(width)? <= of;
        is_possible.then_some(Self { width, of, places: Places::From(first) })
    }

    /// These places, in ascending order, of every `of`; `None`: there are no such places.
    pub fn listed(places: &[u32], of: u32) -> Option<Self> {
        let (first, last) = (*places.first()?, *places.last()?);
        if last >= of || !places.is_sorted_by(|left, right| left < right) {
            return None;
        }
        match places.len() as u32 {
            width if width == last - first + 1 => Self::run(first, width, of),
            width => Some(Self { width, of, places: Places::Listed(places.into()) }),
        }
    }

    /// One segment for each machine, by weight (at least 1 each). `item_count`: how many connections or requests there are to be
    /// divided at least; where they are fewer than the places, the first machines get one place each and the others `None`.
    pub fn divide(weights: &[u32], item_count: u64) -> Vec<Option<Self>> {
        let of: u32 = weights.iter().sum();
        if item_count < u64::from(of) {
            let used = weights.len().min(usize::try_from(item_count).unwrap_or(usize::MAX)).max(1) as u32;
            return (0..).take(weights.len()).map(|first| Self::run(first, 1, used)).collect();
        }
        let mut first = 0;
        let mut next = |&width: &u32| {
            first += width;
            Self::run(first - width, width, of)
        };
        weights.iter().map(&mut next).collect()
    }

    /// Whether it is everything.
    pub fn is_whole(&self) -> bool {
        self.width == self.of
    }

    /// How many of [`Self::of`] places are this machine's; at least 1.
    pub fn width(&self) -> u32 {
        self.width
    }

    /// The places of all machines together; at least 1.
    pub fn of(&self) -> u32 {
        self.of
    }

    /// How many of `whole` items are this machine's.
    pub fn part_of(&self, whole: u64) -> u64 {
        let (width, of) = (u64::from(self.width), u64::from(self.of));
        let (round, rest) = (whole / of, whole % of);
        let own_rest = match &self.places {
            Places::From(first) => rest.saturating_sub(u64::from(*first)).min(width),
            Places::Listed(places) => places.partition_point(|place| u64::from(*place) < rest) as u64,
        };
        round * width + own_rest
    }

    /// The place in the whole of this machine's item `own_idx`.
    pub fn whole_idx(&self, own_idx: u64) -> u64 {
        let (width, of) = (u64::from(self.width), u64::from(self.of));
        let (round, nth) = (own_idx / width, own_idx % width);
        let place = match &self.places {
            Places::From(first) => u64::from(*first) + nth,
            Places::Listed(places) => u64::from(places[nth as usize]),
        };
        round * of + place
    }

    /// Of this machine's items, the number of the whole's item `whole_idx`; `None`: it is another machine's.
    fn own_idx(&self, whole_idx: u64) -> Option<u64> {
        let (width, of) = (u64::from(self.width), u64::from(self.of));
        let (round, place) = (whole_idx / of, (whole_idx % of) as u32);
        let nth = match &self.places {
            Places::From(first) => place.checked_sub(*first).filter(|nth| *nth < self.width)?,
            Places::Listed(places) => places.binary_search(&place).ok()? as u32,
        };
        Some(round * width + u64::from(nth))
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

impl TryFrom<SavedSegment> for Segment {
    type Error = &'static str;

    fn try_from(saved: SavedSegment) -> Result<Self, Self::Error> {
        let segment = match saved {
            SavedSegment::Run { first, width, of } => Self::run(first, width, of),
            SavedSegment::Listed { places, of } => Self::listed(&places, of),
        };
        segment.ok_or("there is no such part of a load")
    }
}

impl From<Segment> for SavedSegment {
    fn from(Segment { width, of, places }: Segment) -> Self {
        match places {
            Places::From(first) => Self::Run { first, width, of },
            Places::Listed(places) => Self::Listed { places: places.to_vec(), of },
        }
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

    /// Whether it is the one that does what is done once on a machine.
    pub fn is_first(&self) -> bool {
        self.shard_idx == 0
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
        let by_weight = |weights: &[u32]| Segment::divide(weights, u64::MAX).into_iter().flatten().collect();
        let dealt = [&[0, 2, 5][..], &[1, 3], &[4]].map(|places| Segment::listed(places, 6).unwrap());
        for segments in [by_weight(&[1]), by_weight(&[1, 5, 3]), dealt.to_vec()] {
            let parts: Vec<ShardPart> = segments
                .iter()
                .flat_map(|segment| [0, 1].map(|shard_idx| (shard_idx, segment.clone())))
                .map(|(shard_idx, segment)| ShardPart { shard_idx, shard_count: 2, segment })
                .collect();
            for whole in [0_u64, 1, 9, 100] {
                for part in &parts {
                    let items: Vec<u64> = (0..whole).filter(|idx| part.has(*idx)).collect();
                    let own = (0..part.part_of(whole)).map(|nth| part.machine_idx(nth));
                    assert!(own.map(|nth| part.segment.whole_idx(nth)).eq(items), "{part:?} of {whole}");
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
            assert_eq!(Segment::run(first, width, of).is_some(), expected, "{first}+{width}/{of}");
        }
        for (places, expected) in [
            (&[0, 2][..], true),
            (&[1, 2], true),
            (&[], false),
            (&[2, 0], false),
            (&[0, 0], false),
            (&[3, 0, 2], false),
            (&[0, 3], false),
        ] {
            assert_eq!(Segment::listed(places, 3).is_some(), expected, "{places:?}");
        }
        assert_eq!(Segment::listed(&[1, 2], 3), Segment::run(1, 2, 3));
    }

    #[test]
    fn saved_segments_are_read_back_and_impossible_ones_refused() {
        let saved = r#"{"first":1,"width":2,"of":3}"#;
        let segment: Segment = serde_json::from_str(saved).unwrap();
        assert_eq!(segment, Segment::run(1, 2, 3).unwrap());
        assert_eq!(serde_json::to_string(&segment).unwrap(), saved);
        let listed = Segment::listed(&[0, 2], 4).unwrap();
        assert_eq!(
            serde_json::from_str::<Segment>(&serde_json::to_string(&listed).unwrap()).unwrap(),
            listed
        );
        for wrong in [r#"{"first":1,"width":0,"of":3}"#, r#"{"places":[4],"of":3}"#, r#"{"first":1}"#] {
            let error = serde_json::from_str::<Segment>(wrong).unwrap_err().to_string();
            assert!(error.contains("part of a load"), "{error}");
        }
    }

    #[test]
    fn weights_are_shares() {
        let [Some(a), Some(b)] = &Segment::divide(&[3, 1], 1000)[..] else { panic!("two machines") };
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
