//! Answers that stay in the socket until the turn's requests are written, where that spares bare acknowledgements.
//!
//! A read that empties a socket into which two short segments came makes Linux acknowledge them at once (`tcp_cleanup_rbuf`), although
//! the next request would carry the acknowledgement microseconds later. That segment costs both sides about a fourth of a
//! request. Servers cause it that write the head and the body of a short answer apart, as nginx does in HTTP/2 without TLS. So
//! such an answer is peeked at, the requests of the turn go out, and only then the answer is dropped from the socket.
//! The kernel's counts tell where that pays: one connection to each origin is looked at now and then.

use crate::sys::Segments;

/// Learns whether reads of an origin's answers cause bare acknowledgements, and whether peeking spares them.
#[derive(Debug, Clone, Copy, Default)]
pub(in crate::shard) struct AckTrial {
    pub(in crate::shard) peeks: bool,
    /// Until then things stay as they are.
    rests_until_ns: u64,
    sample: Option<Sample>,
}

/// Some reads of one connection in a row.
#[derive(Debug, Clone, Copy)]
struct Sample {
    token: u64,
    begin_ns: u64,
    begin: Segments,
    read_count: u32,
}

impl AckTrial {
    /// `is_alone`: whether a read holds one answer. Several share an acknowledgement, and there is little to spare.
    pub(in crate::shard) fn new(is_alone: bool) -> Self {
        Self { rests_until_ns: if is_alone { 0 } else { u64::MAX }, ..Self::default() }
    }

    /// A connection was read. `segments` is asked at the first and at the last read of a sample.
    pub(in crate::shard) fn note_read(
        &mut self,
        token: u64,
        now_ns: u64,
        segments: impl FnOnce() -> Option<Segments>,
    ) {
        if now_ns < self.rests_until_ns {
            return;
        }
        match &mut self.sample {
            Some(sample) if sample.token == token => {
                sample.read_count += 1;
                if sample.read_count == READS_PER_SAMPLE {
                    let begin = sample.begin;
                    self.end_sample(now_ns, segments().map(|end| end.since(begin)));
                }
            }
            Some(sample) if now_ns < sample.begin_ns + SAMPLE_NS_MAX => {}
            _ => {
                let begin = segments().unwrap_or_default();
                self.sample = Some(Sample { token, begin_ns: now_ns, begin, read_count: 0 });
            }
        }
    }

    fn end_sample(&mut self, now_ns: u64, segments: Option<Segments>) {
        self.sample = None;
        let Segments { bare_sent, data_received } = segments.unwrap_or_default();
        let are_many = bare_sent * 2 >= READS_PER_SAMPLE;
        let are_few = bare_sent * 4 <= READS_PER_SAMPLE;
        // An answer in one segment is not acknowledged separately, so peeking would be for nothing.
        let is_apart = data_received * 2 >= READS_PER_SAMPLE * 3;
        let rest_ns = match (self.peeks, is_apart) {
            (false, true) if are_many => 0,
            (true, true) if !are_few => REST_NS_IN_VAIN,
            _ => REST_NS,
        };
        self.peeks = is_apart && if self.peeks { are_few } else { are_many };
        self.rests_until_ns = now_ns + rest_ns;
    }
}

/// Reads of one connection that are looked at together.
const READS_PER_SAMPLE: u32 = 32;

/// A sample that lasts longer is begun anew on another connection: its own may be gone.
const SAMPLE_NS_MAX: u64 = 1_000_000_000;

/// The time until the next sample, and that after peeking has turned out to spare nothing.
const REST_NS: u64 = 1_000_000_000;
const REST_NS_IN_VAIN: u64 = 30_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether the trial peeks after each of some samples, a second apart; `bare`: acknowledgements for each read when it takes, and when
    /// it peeks.
    fn outcomes(trial: &mut AckTrial, bare: [u32; 2], data: u32, sample_count: u64) -> Vec<bool> {
        let mut counted = Segments::default();
        let mut outcome = |idx: u64| {
            for read in 0..=u64::from(READS_PER_SAMPLE) {
                counted.bare_sent += bare[usize::from(trial.peeks)];
                counted.data_received += data;
                trial.note_read(7, idx * REST_NS + read, || Some(counted));
            }
            trial.peeks
        };
        (1..=sample_count).map(|idx| outcome(idx * 2)).collect()
    }

    #[test]
    fn answers_in_two_segments_are_peeked_at_where_that_spares_acknowledgements() {
        assert_eq!(outcomes(&mut AckTrial::new(true), [1, 0], 2, 4), [true; 4]);
    }

    #[test]
    fn peeking_in_vain_is_given_up_for_long() {
        let mut trial = AckTrial::new(true);
        let outcomes = outcomes(&mut trial, [1, 1], 2, 14);
        assert_eq!(outcomes.iter().filter(|peeks| **peeks).count(), 1, "{outcomes:?}");
    }

    #[test]
    fn answers_in_one_segment_are_taken() {
        assert_eq!(outcomes(&mut AckTrial::new(true), [0, 0], 1, 3), [false; 3]);
        let mut trial = AckTrial { peeks: true, ..AckTrial::new(true) };
        assert_eq!(outcomes(&mut trial, [0, 0], 1, 3), [false; 3]);
    }

    #[test]
    fn a_connection_that_is_gone_does_not_hold_up_the_sample() {
        let mut trial = AckTrial::new(true);
        trial.note_read(1, 1, || Some(Segments::default()));
        assert_eq!(outcomes(&mut trial, [1, 0], 2, 1), [true]);
    }

    #[test]
    fn answers_that_share_a_read_are_taken() {
        assert_eq!(outcomes(&mut AckTrial::new(false), [1, 0], 2, 3), [false; 3]);
    }

    #[test]
    fn without_counts_answers_are_taken() {
        let mut trial = AckTrial::new(true);
        (0..100).for_each(|now_ns| trial.note_read(7, now_ns, || None));
        assert!(!trial.peeks);
    }
}
