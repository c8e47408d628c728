//! Which record is due when: the walks of all copies through the recording, merged by time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;

use squall_plan::ShardPart;

use crate::store::{Cursor, Frame, Recording};

/// How a recording is played.
#[derive(Debug, Clone)]
pub struct PlayOptions {
    /// Recorded times are multiplied by this: 0.1 plays ten times as fast.
    pub factor: f64,
    /// Copies of the recorded clients.
    pub user_count: u32,
    /// Each copy begins this much later than the one before it.
    pub shift_ns: u64,
    /// Begin again at the end.
    pub loops: bool,
    /// Which part is this player's; all players of all machines together play everything once.
    pub part: ShardPart,
    /// What is divided among them.
    pub division: Division,
    /// Longer silences of the recording are cut to this.
    pub gap_ns_max: Option<u64>,
}

/// What is divided among the players of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Division {
    /// Sessions: each player plays some sessions of each copy.
    Sessions,
    /// Copies: each player plays some copies, whole.
    Users,
}

/// The walks.
#[derive(Debug)]
pub struct Player {
    walks: Vec<Walk>,
    options: PlayOptions,
    /// Walks by when their next record is due.
    heap: BinaryHeap<Reverse<(u64, u32)>>,
    /// The walk whose record was handed out last: it moves on when the next one is asked for.
    handed: Option<usize>,
    first_ns: u64,
    /// From one beginning to the next, when it loops.
    period_ns: u64,
}

/// One copy's way through the recording.
#[derive(Debug)]
struct Walk {
    cursor: Cursor,
    user: u32,
    /// When its time 0 is.
    begin_ns: u64,
    /// How often it was at the end.
    round: u32,
    /// Number of the next record, from 0.
    ordinal: u64,
    next: Option<Frame>,
    silence: Silence,
}

/// What was cut of the silences up to a record, for every player.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silence {
    before_ns: u64,
    /// Time that was cut, in nanoseconds.
    pub cut_ns: u64,
    /// Silences that were cut.
    pub count: u64,
}

impl Silence {
    /// The next record, of this time, in the order of the recording.
    pub fn pass(&mut self, time_ns: u64, gap_ns_max: u64) {
        let gap_ns = if self.before_ns == 0 { 0 } else { time_ns.saturating_sub(self.before_ns) };
        let cut_ns = gap_ns.saturating_sub(gap_ns_max);
        self.count += u64::from(cut_ns > 0);
        self.cut_ns += cut_ns;
        self.before_ns = time_ns;
    }
}

/// A record that is due.
#[derive(Debug, Clone, Copy)]
pub struct Next<'a> {
    /// When, in nanoseconds after the start.
    pub due_ns: u64,
    /// The copy, from 0.
    pub user: u32,
    /// How often this copy was at the end before.
    pub round: u32,
    /// Number of the record in the recording, from 0.
    pub ordinal: u64,
    /// Its head.
    pub frame: Frame,
    /// Where its frame begins in the recording.
    pub offset: u64,
    /// Its payload.
    pub payload: &'a [u8],
}

impl Player {
    /// Is before the first record.
    ///
    /// # Errors
    /// When the recording cannot be read.
    pub fn new(recording: &Recording, options: PlayOptions) -> io::Result<Self> {
        let is_ours =
            |user: &u32| options.division == Division::Sessions || options.part.has(u64::from(*user));
        let users: Vec<u32> = (0..options.user_count).filter(is_ours).collect();
        let buffer_bytes = (BUFFER_BYTES_ALL / users.len().max(1)).clamp(BUFFER_BYTES_MIN, BUFFER_BYTES_MAX);
        let index = recording.index();
        let mean_gap_ns = index.length_ns() / index.record_count.max(1);
        let mut player = Self {
            walks: Vec::with_capacity(users.len()),
            heap: BinaryHeap::with_capacity(users.len()),
            handed: None,
            first_ns: index.first_ns,
            period_ns: scaled(index.length_ns() + mean_gap_ns, options.factor).max(1),
            options,
        };
        for user in users {
            let begin_ns = u64::from(user) * player.options.shift_ns;
            let cursor = recording.cursor(buffer_bytes);
            player.walks.push(Walk {
                cursor,
                user,
                begin_ns,
                round: 0,
                ordinal: 0,
                next: None,
                silence: Silence::default(),
            });
            player.advance(player.walks.len() - 1)?;
        }
        Ok(player)
    }

    /// Copies that this player plays.
    pub fn walk_count(&self) -> usize {
        self.walks.len()
    }

    /// When the next record is due; `None` at the end.
    ///
    /// # Errors
    /// When the recording cannot be read.
    pub fn peek_ns(&mut self) -> io::Result<Option<u64>> {
        if let Some(walk_idx) = self.handed.take() {
            self.advance(walk_idx)?;
        }
        Ok(self.heap.peek().map(|Reverse((due_ns, _))| *due_ns))
    }

    /// The record that is due next, of any copy.
    ///
    /// # Errors
    /// When the recording cannot be read.
    pub fn take(&mut self) -> io::Result<Option<Next<'_>>> {
        self.peek_ns()?;
        match self.heap.pop() {
            None => Ok(None),
            Some(Reverse((_, walk_idx))) => self.hand_out(walk_idx as usize),
        }
    }

    /// The next record of one of this player's copies, whenever it is due.
    ///
    /// # Errors
    /// When the recording cannot be read.
    pub fn take_of(&mut self, walk_idx: usize) -> io::Result<Option<Next<'_>>> {
        if let Some(walk_idx) = self.handed.take() {
            self.find_next(walk_idx)?;
        }
        self.hand_out(walk_idx)
    }

    fn hand_out(&mut self, walk_idx: usize) -> io::Result<Option<Next<'_>>> {
        let due_ns = self.due_ns(walk_idx);
        let walk = &mut self.walks[walk_idx];
        let (Some(due_ns), Some(frame)) = (due_ns, walk.next.take()) else { return Ok(None) };
        self.handed = Some(walk_idx);
        let ordinal = walk.ordinal;
        walk.ordinal += 1;
        let (user, round, offset) = (walk.user, walk.round, walk.cursor.offset());
        let payload = walk.cursor.take(&frame)?;
        Ok(Some(Next { due_ns, user, round, ordinal, frame, offset, payload }))
    }

    /// Moves a walk to its next record and puts it in line.
    fn advance(&mut self, walk_idx: usize) -> io::Result<()> {
        self.find_next(walk_idx)?;
        let due_ns = self.due_ns(walk_idx);
        self.heap.extend(due_ns.map(|due_ns| Reverse((due_ns, walk_idx as u32))));
        Ok(())
    }

    fn due_ns(&self, walk_idx: usize) -> Option<u64> {
        let walk = &self.walks[walk_idx];
        let frame = walk.next.as_ref()?;
        let recorded_ns = frame.time_ns.saturating_sub(self.first_ns).saturating_sub(walk.silence.cut_ns);
        Some(walk.begin_ns.saturating_add(scaled(recorded_ns, self.options.factor)))
    }

    /// The next record of a walk that is this player's to play.
    fn find_next(&mut self, walk_idx: usize) -> io::Result<()> {
        let walk = &mut self.walks[walk_idx];
        let mut has_begun_again = false;
        loop {
            let peeked = walk.cursor.peek()?;
            if let (Some(frame), Some(gap_ns_max)) = (&peeked, self.options.gap_ns_max) {
                walk.silence.pass(frame.time_ns, gap_ns_max);
            }
            match peeked {
                None if self.options.loops && !has_begun_again => {
                    // A part without any record must not be looked for for ever.
                    has_begun_again = true;
                    walk.cursor.rewind();
                    walk.ordinal = 0;
                    walk.round += 1;
                    let cut_ns = scaled(std::mem::take(&mut walk.silence).cut_ns, self.options.factor);
                    walk.begin_ns =
                        walk.begin_ns.saturating_add(self.period_ns.saturating_sub(cut_ns).max(1));
                }
                None => return Ok(()),
                Some(frame) if is_ours(&self.options, walk.user, walk.ordinal, &frame) => {
                    walk.next = Some(frame);
                    return Ok(());
                }
                Some(frame) => {
                    walk.cursor.skip(frame.bytes());
                    walk.ordinal += 1;
                }
            }
        }
    }
}

/// Sessions stay together, or else connections; records of neither are dealt out one by one.
fn is_ours(options: &PlayOptions, user: u32, ordinal: u64, frame: &Frame) -> bool {
    if options.division == Division::Users || options.part.is_whole() {
        return true;
    }
    let key = match (frame.session, frame.connection) {
        (0, 0) => ordinal,
        (0, connection) => connection,
        (session, _) => session,
    };
    options.part.has(key.wrapping_add(u64::from(user)).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32)
}

fn scaled(time_ns: u64, factor: f64) -> u64 {
    if factor == 1.0 { time_ns } else { (time_ns as f64 * factor) as u64 }
}

/// Memory of all walks' buffers together, unless there are very many.
const BUFFER_BYTES_ALL: usize = 8 << 20;

const BUFFER_BYTES_MAX: usize = 256 << 10;

/// Some ten records of the usual size.
const BUFFER_BYTES_MIN: usize = 16 << 10;

#[cfg(test)]
mod tests {
    use squall_plan::Segment;

    use super::*;
    use crate::store::Writer;
    use crate::{Record, Request};

    fn recording(folder: &tempfile::TempDir) -> Recording {
        let path = folder.path().join("p.squall");
        let mut writer = Writer::create(&path).unwrap();
        for nth in 0..100_u64 {
            let request = Request { target: format!("/{nth}"), ..Request::default() };
            let time_ns = 1_700_000_000_000_000_000 + nth * 1_000_000;
            writer.write(&Record { time_ns, session: nth % 10, request, ..Record::default() }).unwrap();
        }
        writer.finish().unwrap();
        Recording::open(&path).unwrap()
    }

    const ALL: PlayOptions = PlayOptions {
        factor: 1.0,
        user_count: 1,
        shift_ns: 0,
        loops: false,
        part: ShardPart::WHOLE,
        division: Division::Sessions,
        gap_ns_max: None,
    };

    fn played(options: PlayOptions, count_max: usize) -> Vec<(u64, u32, u64)> {
        let folder = tempfile::tempdir().unwrap();
        let mut player = Player::new(&recording(&folder), options).unwrap();
        let mut found = Vec::new();
        while found.len() < count_max {
            let peeked = player.peek_ns().unwrap();
            let Some(next) = player.take().unwrap() else { break };
            assert_eq!(peeked, Some(next.due_ns));
            found.push((next.due_ns, next.user, next.ordinal));
        }
        found
    }

    #[test]
    fn times_are_scaled_and_copies_shifted() {
        let found = played(PlayOptions { factor: 0.5, user_count: 2, shift_ns: 250_000, ..ALL }, 1000);
        assert_eq!(found.len(), 200);
        assert_eq!(found[..4], [(0, 0, 0), (250_000, 1, 0), (500_000, 0, 1), (750_000, 1, 1)]);
        assert!(found.is_sorted());
    }

    #[test]
    fn players_together_play_everything_once() {
        for division in [Division::Sessions, Division::Users] {
            // Two machines, one twice as large as the other, with three players each.
            let segments = Segment::divide(&[2, 1], u64::MAX).into_iter().flatten();
            let parts = segments.flat_map(|segment| {
                [0, 1, 2].map(|idx| ShardPart { shard_idx: idx, shard_count: 3, segment: segment.clone() })
            });
            let mut found: Vec<_> = parts
                .flat_map(|part| played(PlayOptions { user_count: 4, part, division, ..ALL }, 1000))
                .map(|(_, user, ordinal)| (user, ordinal))
                .collect();
            found.sort_unstable();
            let expected: Vec<_> =
                (0..4).flat_map(|user| (0..100).map(move |ordinal| (user, ordinal))).collect();
            assert_eq!(found, expected);
        }
    }

    #[test]
    fn long_silences_are_cut_for_every_player_alike() {
        let options = PlayOptions { gap_ns_max: Some(250_000), factor: 2.0, ..ALL };
        let found = played(PlayOptions { loops: true, ..options.clone() }, 150);
        assert_eq!((found[1].0, found[99].0), (500_000, 99 * 500_000));
        // The recording's mean gap, less none that was cut, lies between two rounds.
        assert_eq!(found[100].0 - found[99].0, 1_980_000);
        let part = ShardPart { shard_idx: 1, shard_count: 3, ..ShardPart::WHOLE };
        let part = played(PlayOptions { part, ..options }, 1000);
        assert!(part.iter().all(|one| found.contains(one)) && part.len() < 100, "{part:?}");
    }

    #[test]
    fn a_loop_goes_on_after_its_period() {
        let found = played(PlayOptions { loops: true, ..ALL }, 150);
        assert_eq!((found.len(), found[100].2), (150, 0));
        assert_eq!(found[100].0 - found[99].0, 990_000);
    }
}
