//! Routes that take a known time.

use std::time::Duration;

use bytes::Bytes;
use serde_json::json;

use super::echo;
use crate::{
    body::{Source, Step},
    call::Call,
    duration,
    limits::REPLY_BYTES_MAX,
    reply::{Refusal, Reply},
    routes::status::parse_code,
};

pub(super) fn delay(call: &Call<'_>) -> Result<Reply, Refusal> {
    Ok(echo::anything(call)?.with_delay(call.duration(0)?))
}

/// A + (B - A) * u, where u is the next number of the golden-ratio sequence.
pub(super) fn uniform(call: &Call<'_>) -> Result<Reply, Refusal> {
    let (low, high) = (call.duration(0)?, call.duration(1)?);
    if high < low {
        return Err(Refusal::new("the second duration must not be shorter than the first"));
    }
    Ok(waited(low + (high - low).mul_f64(call.shared.sequences.delay.draw())))
}

/// The quantile function at u, where u is the next number of the golden-ratio sequence.
pub(super) fn latency(call: &Call<'_>) -> Result<Reply, Refusal> {
    let percentiles = call.query_pairs().map(|(name, value)| parse_percentile(&name, &value));
    let quantiles = Quantiles::new(percentiles.collect::<Result<_, _>>()?)?;
    Ok(waited(quantiles.at(call.shared.sequences.latency.draw())))
}

fn waited(delay: Duration) -> Reply {
    Reply::json(&json!({ "delay_us": delay.as_micros() as u64 })).with_delay(delay)
}

fn parse_percentile(name: &str, value: &str) -> Result<(f64, Duration), Refusal> {
    let percent = name.strip_prefix('p').and_then(|digits| digits.parse::<f64>().ok());
    let percent = percent.filter(|percent| (0.0..=100.0).contains(percent));
    let percent =
        percent.ok_or_else(|| Refusal::new(format!("`{name}` is not a percentile such as p50 or p99.9")))?;
    Ok((percent / 100.0, duration::parse(value)?))
}

/// A quantile function: straight lines between the points, level before the first and after the last one.
struct Quantiles(Vec<(f64, Duration)>);

impl Quantiles {
    fn new(mut points: Vec<(f64, Duration)>) -> Result<Self, Refusal> {
        if points.is_empty() {
            return Err(Refusal::new("give percentiles, as in /latency?p50=5ms&p90=20ms&p99=80ms"));
        }
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        if points.is_sorted_by(|a, b| a.0 < b.0 && a.1 <= b.1) {
            return Ok(Self(points));
        }
        Err(Refusal::new("a higher percentile must not be shorter than a lower one, and each is given once"))
    }

    fn at(&self, share: f64) -> Duration {
        let next = self.0.partition_point(|point| point.0 <= share);
        let (last, first) = (self.0.len() - 1, self.0[0]);
        match next {
            0 => first.1,
            next if next > last => self.0[last].1,
            next => {
                let (below, above) = (self.0[next - 1], self.0[next]);
                below.1 + (above.1 - below.1).mul_f64((share - below.0) / (above.0 - below.0))
            }
        }
    }
}

pub(super) fn drip(call: &Call<'_>) -> Result<Reply, Refusal> {
    let length = call.query_size("numbytes", 10, 0..=REPLY_BYTES_MAX)?;
    let duration = call.query_duration("duration", Duration::from_secs(2))?;
    let delay = call.query_duration("delay", Duration::ZERO)?;
    let status = call.query("code").map_or(Ok(hyper::StatusCode::OK), |code| parse_code(&code))?;
    let source = Source::steps(drops(length, duration), Some(length));
    Ok(Reply::new("application/octet-stream", source).with_status(status).with_delay(delay))
}

/// Evenly spaced drops, the first at once. There are as many as bytes, but no more than one per millisecond.
fn drops(length: u64, duration: Duration) -> impl Iterator<Item = Step> {
    let count = length.min((duration.as_millis() as u64).max(1));
    (0..count).flat_map(move |idx| {
        let wait = Step::Until(duration.mul_f64(idx as f64 / count as f64));
        let size = length * (idx + 1) / count - length * idx / count;
        std::iter::once(wait).chain(stars(size))
    })
}

fn stars(mut left: u64) -> impl Iterator<Item = Step> {
    const STARS: &[u8] = &[b'*'; 16 * 1024];
    std::iter::from_fn(move || {
        let size = left.min(STARS.len() as u64);
        left -= size;
        (size > 0).then(|| Step::Data(Bytes::from_static(&STARS[..size as usize])))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_straight_between_their_points() {
        let ms = Duration::from_millis;
        let quantiles = Quantiles::new(vec![(0.9, ms(20)), (0.5, ms(10)), (1.0, ms(120))]).unwrap();
        for (share, expected) in [(0.0, 10), (0.5, 10), (0.7, 15), (0.9, 20), (0.95, 70), (1.0, 120)] {
            let off = quantiles.at(share).abs_diff(ms(expected));
            assert!(off < Duration::from_micros(1), "{share} is off by {off:?}");
        }
    }

    #[test]
    fn drops_give_all_bytes_within_the_duration() {
        for (length, duration_ms) in [(0, 100), (10, 2000), (1, 0), (100_000, 7), (12_345, 1000)] {
            let duration = Duration::from_millis(duration_ms);
            let mut sum = 0;
            for step in drops(length, duration) {
                match step {
                    Step::Data(bytes) => sum += bytes.len() as u64,
                    Step::Until(at) => assert!(at <= duration, "{at:?}"),
                    Step::Cut(_) => panic!("a drip never cuts"),
                }
            }
            assert_eq!(sum, length, "over {duration_ms} ms");
        }
    }
}
