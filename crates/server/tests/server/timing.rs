//! Delays and shares that follow their formulas.

use std::time::{Duration, Instant};

use crate::{
    client::{Client, start},
    connections::wait_until,
};

#[test]
fn answers_never_come_before_their_delay() {
    let target = start();
    let mut client = Client::connect(target.address());
    for (path, ms) in [("/delay/30", 30), ("/delay/0.02s", 20), ("/drip?numbytes=4&duration=40&delay=10", 40)]
    {
        let begun = Instant::now();
        assert_eq!(client.get(path).status, 200);
        assert!(begun.elapsed() >= Duration::from_millis(ms), "{path} took {:?}", begun.elapsed());
    }
}

#[test]
fn delays_of_one_connection_do_not_hold_up_another() {
    let target = start();
    let mut waiting = Client::connect(target.address());
    waiting.write("GET /delay/60m HTTP/1.1\r\nHost: a\r\n\r\n");
    wait_until(|| target.stats().requests == 1);
    assert_eq!(Client::connect(target.address()).get("/").status, 200);
}

#[test]
fn uniform_delays_are_the_documented_sequence() {
    let target = start();
    let mut client = Client::connect(target.address());
    for k in 1..=20u64 {
        let share = k.wrapping_mul(0x9E37_79B9_7F4A_7C15) as f64 / 2f64.powi(64);
        let delay_us = client.get("/delay/uniform/1ms/3ms").json()["delay_us"].as_u64().unwrap();
        assert!(delay_us.abs_diff((1000.0 + 2000.0 * share) as u64) <= 1, "draw {k} is {delay_us} us");
    }
}

#[test]
fn latencies_have_the_percentiles_that_were_asked_for() {
    let target = start();
    let mut client = Client::connect(target.address());
    let mut delay_us =
        || client.get("/latency?p50=100us&p90=1ms&p100=2ms").json()["delay_us"].as_u64().unwrap();
    let mut delays: Vec<u64> = (0..500).map(|_| delay_us()).collect();
    delays.sort_unstable();
    assert!(delays[..248].iter().all(|delay| *delay == 100), "level up to the median");
    assert!(delays[450].abs_diff(1000) < 30, "p90 is {} us", delays[450]);
    assert!(delays[499].abs_diff(2000) < 30, "the maximum is {} us", delays[499]);
}

#[test]
fn mixed_statuses_have_their_shares() {
    let target = start();
    let mut client = Client::connect(target.address());
    let failed = (0..1000).filter(|_| client.get("/status/200:0.9,500:0.1").status == 500).count();
    assert!(failed.abs_diff(100) <= 3, "{failed} of 1000");
}
