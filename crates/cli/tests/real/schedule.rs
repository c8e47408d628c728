//! An open model's schedule: how long it lasts, and who is to blame for what was never sent.

use std::time::Duration;

use squall_testkit::{Script, ScriptedServer};

use crate::squall::run;

#[test]
fn a_schedule_lasts_until_its_end() {
    let server = ScriptedServer::start(Script::default());
    let ended = run(&[&server.url(), "-r", "2/s", "-d", "2s"]);
    assert_eq!(ended.count("/totals/ok"), 4, "{ended:#?}");
    assert!(ended.number("/duration_s") >= 2.0, "{ended:#?}");
}

#[test]
fn what_waits_for_a_slow_server_is_never_missing_whenever_the_end_comes() {
    let server =
        ScriptedServer::start(Script { delays: vec![Duration::from_millis(20)], ..Script::default() });
    let ended = run(&[&server.url(), "-r", "400/s", "-d", "1500ms", "-c", "1"]);
    let sent = ended.assert_all_counted();
    assert!(sent < 100, "{ended:#?}");
    let json = ended.json();
    let said = |list: &str| json["verdict"][list].to_string();
    assert!(!said("reasons").contains("shortfall"), "{ended:#?}");
    assert!(said("notes").contains("backlog"), "{ended:#?}");
}
