//! What a run takes of the machine's memory. A binary of one test: what others leave in their process would count too.
#![expect(clippy::unwrap_used, reason = "tests may unwrap")]

#[path = "../run/plans.rs"]
mod plans;

use squall_testkit::real::{NginxOptions, Server};

use plans::{assert_counts, closed, record};

#[test]
fn a_hundred_connections_take_less_than_16_mib() {
    let server = Server::nginx(NginxOptions::default());
    let record = record(&closed(&server.url("/"), 100, 40_000));
    assert_counts(&record, 40_000, 0);
    let resident = record.machine.unwrap().process_rss_bytes;
    assert!(resident <= 16 << 20, "{resident} bytes resident with 100 connections");
}
