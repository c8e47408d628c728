//! A path with faults for `suites/interop`: `relay SERVER [FAULT=PERCENT]…`, where FAULT is lost, late, twice or corrupt.
//! Prints where it listens, and ends when its standard input does.

use std::error::Error;
use std::io::{Read, Write};

use squall_testkit::quic::{LossyRelay, PathFaults};

fn main() -> Result<(), Box<dyn Error>> {
    let mut words = std::env::args().skip(1);
    let server = words.next().ok_or("the server's address is missing")?.parse()?;
    let mut faults = PathFaults::default();
    for word in words {
        let (name, percent) = word.split_once('=').ok_or("a fault is NAME=PERCENT")?;
        *fault(&mut faults, name).ok_or("unknown fault")? = percent.parse()?;
    }
    let relay = LossyRelay::start(server, faults);
    writeln!(std::io::stdout(), "{}", relay.address())?;
    std::io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}

fn fault<'a>(faults: &'a mut PathFaults, name: &str) -> Option<&'a mut u64> {
    match name {
        "lost" => Some(&mut faults.lost),
        "late" => Some(&mut faults.late),
        "twice" => Some(&mut faults.twice),
        "corrupt" => Some(&mut faults.corrupt),
        _ => None,
    }
}
