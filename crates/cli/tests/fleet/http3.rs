//! HTTP/3 from several machines, over ssh: what they count is what the target logged.

use std::collections::BTreeMap;

use serde_json::Value;
use squall_testkit::lab::Lab;

use crate::site::Site;
use crate::squall::{assert_code, ok, parts};

#[test]
fn three_machines_speak_http3_and_the_other_versions_at_once() {
    let mut site = Site::with_program();
    site.start_secure_target();
    let at = Lab::address("target");
    let plan = format!(
        "
steps:
  - loads:
      - {{ http: 'h3://{at}/anything/g1', requests: 301, connections: 4, streams: 5, on: g1, insecure: true, name: one }}
      - {{ http: 'h3://{at}/anything/all', requests: 1000, connections: 30, insecure: true, name: together }}
      - {{ http: 'h3://{at}/anything/rate', rate: 100/s, duration: 1s, insecure: true, name: steady }}
      - {{ http: 'h3://{at}/upload', body: abc, requests: 100, connections: 6, insecure: true, name: bodies }}
      - {{ handshake: '{at}:443', quic: true, handshakes: 60, connections: 6, insecure: true, name: handshakes }}
  - loads:
      - http: ['https://{at}/anything/h1', 'h2://{at}/anything/h2', 'h3://{at}/anything/h3']
        requests: 903
        connections: 9
        insecure: true
        name: mixed
"
    );
    let (record, output) = site.run(&plan);
    assert_code(&record, &output, 0);
    let loads = [
        ("one", 301),
        ("together", 1000),
        ("steady", 100),
        ("bodies", 100),
        ("handshakes", 60),
        ("mixed", 903),
    ];
    assert_eq!(parts(&record, "load"), loads.map(|(name, count)| (name.to_owned(), count)));
    let machines: u64 = parts(&record, "machine").iter().map(|(_, count)| count).sum();
    assert_eq!(machines, ok(&record["total"]));
    site.wait_until_clean();
    let mut logged: BTreeMap<_, u64> = BTreeMap::new();
    for line in site.log() {
        *logged.entry(line.split(' ').nth(3).unwrap().to_owned()).or_default() += 1;
    }
    let rows = rows(&record);
    let counts = rows.iter().map(|(path, (_, count))| (path.clone(), *count));
    assert_eq!(logged, counts.collect());
    let protocols = ["h1", "h2", "h3", "g1"].map(|name| rows[&format!("/anything/{name}")].0.clone());
    assert_eq!(protocols, ["https/1.1", "h2", "h3", "h3"]);
}

/// The protocol of each path, and how many of its requests succeeded; handshakes have no path.
fn rows(record: &Value) -> BTreeMap<String, (String, u64)> {
    let keys = record["rows"].as_array().unwrap().iter();
    let rows = record["total"]["rows"].as_array().unwrap().iter();
    let of_requests = keys.zip(rows).filter_map(|(key, row)| {
        let path = key["url"].as_str()?.strip_prefix("https://")?.split_once('/')?.1;
        let protocol = key["protocol"].as_str()?.to_owned();
        Some((format!("/{path}"), (protocol, row["ok"].as_u64()?)))
    });
    of_requests.collect()
}
