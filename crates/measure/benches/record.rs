//! What recording costs: our histogram compared with the `hdrhistogram` crate at three digits, and a whole sample into a snapshot.
//!
//! `cargo bench -p squall-measure`; rounds alternate, and the median of each is printed.

#![expect(clippy::print_stdout, reason = "a bench tells its figures")]

use std::hint::black_box;
use std::time::Instant;

use squall_measure::{Histogram, Outcome, Phases, Sample, Sketch, Snapshot};

fn main() {
    let values = latencies();
    let mut ours = Histogram::new();
    let mut theirs = hdrhistogram();
    let mut snapshot = Snapshot::new(1, true);
    let samples: Vec<Sample> = values.iter().map(|&latency_ns| sample(latency_ns)).collect();
    let (mut ours_ns, mut theirs_ns, mut snapshot_ns) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUND_COUNT {
        ours_ns.push(cost_ns(&values, |&value| ours.record(black_box(value))));
        theirs_ns.push(cost_ns(&values, |&value| theirs.saturating_record(black_box(value))));
        snapshot_ns.push(cost_ns(&samples, |sample| snapshot.record(black_box(sample))));
    }
    let (ours_ns, theirs_ns) = (median(ours_ns), median(theirs_ns));
    println!(
        "histogram record: {ours_ns:.2} ns, hdrhistogram {theirs_ns:.2} ns, ratio {:.2}",
        ours_ns / theirs_ns
    );
    println!("snapshot record (all figures of a request): {:.1} ns", median(snapshot_ns));
    merges(&ours, &theirs, &snapshot);
}

/// What happens once a second and shard.
fn merges(ours: &Histogram, theirs: &hdrhistogram::Histogram<u64>, snapshot: &Snapshot) {
    let (mut ours_sum, mut theirs_sum) = (Histogram::new(), hdrhistogram());
    let mut snapshot_sum = Snapshot::new(1, true);
    let (mut ours_ns, mut theirs_ns, mut clear_ns) = (Vec::new(), Vec::new(), Vec::new());
    let (mut snapshot_ns, mut sketch_ns) = (Vec::new(), Vec::new());
    for _ in 0..ROUND_COUNT {
        ours_ns.push(cost_ns(&[ours], |part| ours_sum.merge(part)));
        theirs_ns.push(cost_ns(&[theirs], |part| theirs_sum.add(*part).unwrap_or_default()));
        snapshot_ns.push(cost_ns(&[snapshot], |part| snapshot_sum.merge(part)));
        sketch_ns.push(cost_ns(&[ours], |part| drop(black_box(Sketch::from(*part)))));
        let mut used = snapshot.clone();
        clear_ns.push(cost_ns(&[()], |()| used.clear()));
    }
    let (ours_ns, theirs_ns) = (median(ours_ns), median(theirs_ns));
    println!(
        "histogram merge: {ours_ns:.0} ns, hdrhistogram {theirs_ns:.0} ns, ratio {:.2}",
        ours_ns / theirs_ns
    );
    println!("snapshot merge: {:.0} ns, clear: {:.0} ns", median(snapshot_ns), median(clear_ns));
    println!("sketch of a histogram: {:.0} ns", median(sketch_ns));
}

fn cost_ns<T>(inputs: &[T], mut work: impl FnMut(&T)) -> f64 {
    let start = Instant::now();
    inputs.iter().for_each(&mut work);
    start.elapsed().as_nanos() as f64 / inputs.len() as f64
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn hdrhistogram() -> hdrhistogram::Histogram<u64> {
    hdrhistogram::Histogram::new_with_bounds(1, 1 << 42, 3).expect("the bounds are valid")
}

/// Like a server's: most between 50 and 400 us, one in fifty up to 25 ms, from a fixed seed.
fn latencies() -> Vec<u64> {
    let mut state = 0x9E37_79B9_7F4A_7C15u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let value = |random: u64| match random % 50 {
        0 => 400_000 + random % 25_000_000,
        _ => 50_000 + (random >> 20) % 200_000 + (random >> 40) % 150_000,
    };
    (0..VALUE_COUNT).map(|_| value(next())).collect()
}

fn sample(latency_ns: u64) -> Sample {
    let phases = Phases {
        blocked_ns: 300,
        sending_ns: 2_000,
        waiting_ns: latency_ns - 5_000,
        receiving_ns: 3_000,
        ..Phases::default()
    };
    Sample {
        row_idx: 0,
        status: 200,
        outcome: Outcome::Ok,
        latency_ns,
        phases,
        bytes_sent: 60,
        bytes_received: 850,
    }
}

const ROUND_COUNT: usize = 41;

const VALUE_COUNT: usize = 50_000;
