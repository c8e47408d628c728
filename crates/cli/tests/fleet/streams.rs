//! Streams of a fleet: the machines share a load, and their figures are those of all.

use squall_server::{Options, Target};

use crate::squall::{Place, assert_code};

#[test]
fn machines_share_streams_and_their_events_add_up() {
    let place = Place::new();
    let target = Target::start(&Options::default()).unwrap();
    let plan = format!(
        "machines: {{ a: local, b: {{ command: [{:?}, agent] }} }}\n\
         loads: [{{ stream: 'http://{}/sse?count=3&interval=5ms&end=[DONE]', connections: 4, requests: 20, done: '[DONE]', slo: 'events>=4' }}]\n",
        env!("CARGO_BIN_EXE_squall"),
        target.address(),
    );
    let (record, output) = place.run(&plan, &[]);
    assert_code(&record, &output, 0);
    let counts = |total: &serde_json::Value| {
        ["opened", "events", "judged", "good"].map(|name| total["streams"][name].as_u64().unwrap())
    };
    assert_eq!(counts(&record["total"]), [20, 80, 20, 20], "{record:#}");
    let machines = record["parts"].as_array().unwrap().iter().filter(|part| part["kind"] == "machine");
    let opened: Vec<u64> = machines.map(|part| counts(&part["total"])[0]).collect();
    assert_eq!(opened, [10, 10], "{record:#}");
}
