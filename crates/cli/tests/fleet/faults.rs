//! What fails, when: an agent, a cable, the bastion, the controller, the target; in preflight, at the start, in mid-run, at the end.
//! What was measured stays, what was lost is reported, and nothing stays on the machines.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::site::Site;
use crate::squall::{ok, parts, record, wait_until};

/// When something fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Moment {
    Preflight,
    Start,
    Middle,
    End,
}

const MOMENTS: [Moment; 4] = [Moment::Preflight, Moment::Start, Moment::Middle, Moment::End];

const LOAD: &str = "loads: [{ http: /delay/5, connections: 30, duration: 3s }]\n";

/// What a machine runs before it becomes an agent; here it waits until a file is there.
fn waiting_sha256sum(file: &Path) -> String {
    let file = file.display();
    format!("#!/bin/sh\nuntil [ -e '{file}' ]; do sleep 0.05; done\nexec /usr/bin/sha256sum \"$@\"\n")
}

/// What a run left.
struct Left {
    /// `None`: it was killed.
    code: Option<i32>,
    said: String,
    record: Value,
}

impl Moment {
    fn wait(self, site: &Site) {
        if self == Self::Preflight {
            // The agent stands when what cleans up after it does.
            let stands =
                || site.lab.arguments("g2", "sh").iter().any(|line| line.contains(" squall-janitor "));
            return wait_until(stands);
        }
        wait_until(|| site.has_load());
        match self {
            Self::Middle => std::thread::sleep(Duration::from_millis(1500)),
            Self::End => wait_until(|| !site.has_load()),
            Self::Preflight | Self::Start => {}
        }
    }
}

/// Makes a run in which something fails; `is_killed`: it is the run itself.
fn strike(site: &mut Site, moment: Moment, is_killed: bool, fail: impl Fn(&mut Site)) -> Left {
    let _ = fs::remove_dir_all(site.lab.path("runs"));
    let failed = site.lab.path("failed");
    if moment == Moment::Preflight {
        // While another machine is not ready, nothing can have started.
        site.lab.install("g3", "sha256sum", &waiting_sha256sum(&failed));
    }
    let mut run = site.start(LOAD);
    moment.wait(site);
    if is_killed {
        run.kill();
    }
    fail(site);
    fs::write(&failed, "").unwrap();
    let begin = Instant::now();
    site.wait_until_clean();
    let gone_after = begin.elapsed();
    let status = if is_killed { None } else { run.wait(Duration::from_secs(60)) };
    println!(
        "{moment:?}: machines clean after {:.1} s, the run over after {:.1} s",
        gone_after.as_secs_f64(),
        begin.elapsed().as_secs_f64()
    );
    fs::remove_file(&failed).unwrap();
    let _ = fs::remove_file(site.lab.path("bin-g3").join("sha256sum"));
    let said = fs::read_to_string(site.lab.path("controller.err")).unwrap();
    Left { code: status.and_then(|status| status.code()), said, record: record(&site.lab.path("runs")) }
}

/// One machine of three fails: nothing starts, or its part is lost and reported.
fn assert_one_lost(moment: Moment, left: &Left) {
    let Left { code, said, record } = left;
    if moment == Moment::Preflight {
        assert_eq!(*code, Some(2), "{said}");
        assert!(said.contains("machine `g2`: ") || said.contains("lost machine g2"), "{said}");
        assert!(record.is_null());
        return;
    }
    let machines = parts(record, "machine");
    assert_eq!(machines.iter().map(|(_, count)| count).sum::<u64>(), ok(&record["total"]), "{moment:?}");
    assert!(machines.iter().all(|(name, count)| name == "g2" || *count > 0), "{moment:?} {machines:?}");
    if moment != Moment::End {
        assert!(said.contains("lost machine g2"), "{moment:?}: {said}");
        assert!(record["verdict"]["reasons"].to_string().contains("machines_lost"), "{moment:?}");
        assert!(record["events"].to_string().contains("lost machine g2"), "{moment:?}");
    }
}

#[test]
fn an_agent_that_is_killed_costs_its_own_part() {
    let mut site = Site::with_program();
    for moment in MOMENTS {
        let left = strike(&mut site, moment, false, |site| site.lab.kill_programs("g2", "squall"));
        assert_one_lost(moment, &left);
    }
}

#[test]
fn a_machine_whose_cable_is_pulled_costs_its_own_part() {
    let mut site = Site::with_program();
    for moment in MOMENTS {
        let left = strike(&mut site, moment, false, |site| site.lab.set_link("g2", false));
        assert_one_lost(moment, &left);
        site.lab.set_link("g2", true);
    }
}

#[test]
fn a_bastion_that_fails_leaves_what_was_measured() {
    let mut site = Site::with_program();
    for moment in MOMENTS {
        let left = strike(&mut site, moment, false, |site| site.lab.stop_sshd("bastion"));
        match moment {
            Moment::Preflight => {
                assert_eq!((left.code, left.record.is_null()), (Some(2), true), "{}", left.said);
            }
            Moment::End => assert!(ok(&left.record["total"]) > 0),
            Moment::Start | Moment::Middle => {
                assert_eq!(left.record["verdict"]["status"], "INVALID", "{moment:?}");
                assert!(left.record["verdict"]["reasons"].to_string().contains("machines_lost"));
            }
        }
        site.lab.restart_sshd("bastion");
    }
}

#[test]
fn a_controller_that_is_killed_leaves_nothing_on_the_machines() {
    let mut site = Site::with_program();
    for moment in MOMENTS {
        strike(&mut site, moment, true, |_| {});
        wait_until(|| !site.has_load());
    }
}

#[test]
fn a_target_that_dies_is_data() {
    let mut site = Site::with_program();
    for moment in MOMENTS {
        let left = strike(&mut site, moment, false, Site::kill_target);
        let total = &left.record["total"];
        let failures = total["failures"].to_string();
        match moment {
            Moment::Preflight => assert_eq!(ok(total), 0, "{}", left.said),
            Moment::End => assert!(ok(total) > 0, "{}", left.said),
            Moment::Start | Moment::Middle => assert!(failures.contains("refused"), "{moment:?}: {failures}"),
        }
        assert!(left.code.is_some());
        site.start_target();
    }
}
