//! Three generators and a target behind a bastion, with real `sshd`s, in network namespaces.

use std::fs;
use std::time::Duration;

use serde_json::{Value, from_value};
use squall_measure::{Histogram, Snapshot};
use squall_testkit::lab::Lab;

use crate::site::Site;
use crate::squall::{assert_code, parts, record, text};

#[test]
fn two_steps_of_three_loads_run_behind_a_bastion_and_nothing_stays() {
    let site = Site::with_program();
    let (record, output) = site.run(
        "
steps:
  - name: first
    loads:
      - { http: /anything/g1, requests: 301, connections: 4, on: g1, name: one }
      - { http: /anything/g2, requests: 202, connections: 4, on: g2, name: two }
      - { http: /anything/g3, requests: 103, connections: 4, on: g3, name: three }
  - name: second
    loads:
      - { http: /bytes/100, requests: 1000, connections: 30, name: together }
      - { http: /status/204, rate: 100/s, duration: 1s, name: steady }
      - { http: /, requests: 5, connections: 1, name: few, start_after: 500ms }
",
    );
    assert_code(&record, &output, 0);
    let loads = [("one", 301), ("two", 202), ("three", 103), ("together", 1000), ("steady", 100), ("few", 5)];
    assert_eq!(parts(&record, "load"), loads.map(|(name, count)| (name.to_owned(), count)));
    let settled: u64 = loads.iter().map(|(_, count)| count).sum();
    assert_eq!(record["total"]["requests_started"], settled);
    site.wait_until_clean();
    assert_merged_as_union(&record);
    let skew = from_value::<Duration>(record["start_skew"].clone()).unwrap();
    let offs: Vec<&Value> = machines(&record).map(|part| &part["facts"]["started_off"]).collect();
    let log = site.log();
    assert_eq!(log.len() as u64, settled);
    let first = |path: &str| {
        let own = log.iter().filter(|line| line.split(' ').nth(3) == Some(path));
        own.map(|line| line.split(' ').next().unwrap().parse::<f64>().unwrap()).fold(f64::MAX, f64::min)
    };
    let starts = ["/anything/g1", "/anything/g2", "/anything/g3"].map(first);
    let seen =
        starts.iter().fold(f64::MIN, |a, b| a.max(*b)) - starts.iter().fold(f64::MAX, |a, b| a.min(*b));
    // Figures for people: a busy machine must not fail the test.
    println!(
        "start skew {:.2} ms ({offs:?}); first requests in the target's log lie {:.2} ms apart",
        skew.as_secs_f64() * 1e3,
        seen * 1e3
    );
}

fn machines(record: &Value) -> impl Iterator<Item = &Value> {
    record["parts"].as_array().unwrap().iter().filter(|part| part["kind"] == "machine")
}

/// The whole's histogram holds exactly the samples of all machines, so each of its percentiles is that of the union.
fn assert_merged_as_union(record: &Value) {
    let latency = |total: &Value| from_value::<Snapshot>(total.clone()).unwrap().latency().into_owned();
    let whole = latency(&record["total"]);
    let mut union = Histogram::default();
    machines(record).for_each(|part| union.merge(&latency(&part["total"])));
    assert!(whole.count() > 1000);
    assert_eq!(union, whole);
    for percent in 0..=1000 {
        let q = f64::from(percent) / 1000.0;
        assert_eq!(union.quantile(q), whole.quantile(q), "{percent} of 1000");
    }
}

#[test]
fn what_is_wrong_with_any_machine_is_reported_before_any_load_starts() {
    let mut site = Site::with_program();
    site.lab.change_host_key("g2");
    site.lab.stop_sshd("g3");
    let (record, output) = site.run("loads: [{ http: /, requests: 5 }]\n");
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(
        said.contains("machine `g2`") && said.contains("its host key has changed and was rejected"),
        "{said}"
    );
    assert!(said.contains("machine `g3`") && said.contains("nothing listens on its ssh port"), "{said}");
    assert!(said.contains("2 problems, nothing was sent"), "{said}");
    assert!(record.is_null());
    site.wait_until_clean();
    assert!(site.log().is_empty());
}

#[test]
fn a_key_that_is_refused_and_an_address_that_nobody_has_are_distinguished() {
    let site = Site::new();
    let plan = site.lab.path("other.yaml");
    let known = site.lab.path("known_hosts");
    let text_of_plan = format!(
        "ssh: {{ options: ['UserKnownHostsFile={}', ConnectTimeout=2] }}\nmachines:\n  \
         stranger: {{ ssh: root@{}, key: {} }}\n  nobody: root@10.88.1.77\nloads: [{{ http: 'http://10.88.2.100/' }}]\n",
        known.display(),
        Lab::BASTION,
        site.lab.path("host-key").display(),
    );
    fs::write(&plan, text_of_plan).unwrap();
    let mut command = site.lab.command("controller", env!("CARGO_BIN_EXE_squall"));
    let output = command.arg("run").arg(plan).arg("--no-save").output().unwrap();
    let said = text(&output.stderr);
    assert!(said.contains("machine `stranger`: `root@10.88.1.2:22`: it rejected the key"), "{said}");
    assert!(said.contains("machine `nobody`: `root@10.88.1.77:22`: there is no route to it"), "{said}");
}

#[test]
fn all_that_is_wrong_with_all_machines_is_reported_at_once() {
    let mut site = Site::new();
    site.lab.install("g2", "uname", "#!/bin/sh\necho aarch64\n");
    site.lab.limit_disk("g3", "size=64k");
    site.lab.install("target", "fortio", "#!/bin/sh\nexit 0\n");
    let plan = format!(
        "  late: {{ command: [faketime, -f, +1h, {:?}, agent] }}\n  tooled: {}\nfiles: [{{ from: plan.yaml, to: /no/such/folder/x, on: g1 }}]\n\
         loads:\n  - {{ http: /, requests: 50, connections: 5, on: [g1, g2, g3, late], name: native }}\n  \
         - {{ tool: fortio, connections: 2, duration: 1s, on: [g1, tooled], name: foreign }}\n",
        env!("CARGO_BIN_EXE_squall"),
        Lab::address("target"),
    );
    let (record, output) = site.run(&plan);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    for problem in [
        "machine `g2`: its architecture is aarch64, but this squall is built for",
        "machine `g3`: cannot write the program: ",
        ": No space left on device",
        "machine `late`: its clock is off by 3600 s",
        "machine `g1`: load `foreign`: `fortio` is not installed",
        "machine `g1`: cannot write `/no/such/folder/x`",
        "5 problems, nothing was sent",
    ] {
        assert!(said.contains(problem), "{problem}\n{said}");
    }
    assert!(record.is_null());
    site.wait_until_clean();
    assert!(site.log().is_empty());
}

#[test]
fn a_machine_with_another_processor_is_sent_the_program_for_it() {
    let site = Site::new();
    site.lab.install("g2", "uname", "#!/bin/sh\necho aarch64\n");
    let own = site.lab.path("squall");
    fs::copy(env!("CARGO_BIN_EXE_squall"), &own).unwrap();
    // A file of its own, as its checksum must differ: what follows an ELF file's end is not loaded.
    let mut other = fs::read(&own).unwrap();
    other.extend_from_slice(b"for another processor");
    fs::write(site.lab.path("squall-aarch64"), other).unwrap();
    let plan = site.plan("loads: [{ http: /, requests: 50, connections: 5, on: [g1, g2] }]\n");
    let output =
        site.lab.command("controller", own.to_str().unwrap()).arg("run").arg(plan).arg("--no-save").output();
    let output = output.unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(site.log().len(), 50);
}

#[test]
fn a_machine_that_cannot_write_what_it_is_sent_says_where_and_why_once() {
    let mut site = Site::new();
    let program = fs::metadata(env!("CARGO_BIN_EXE_squall")).unwrap().len();
    site.lab.limit_disk("g1", "size=64k,ro");
    site.lab.limit_disk("g2", &format!("size={}", program + (1 << 20)));
    fs::write(site.lab.path("body"), vec![b'x'; 3 << 20]).unwrap();
    fs::write(site.lab.path("urls"), "/\n").unwrap();
    let plan = "loads:\n  - { http: /, method: POST, body_file: body, requests: 5, connections: 3 }\n  \
         - { http: /, body_file: urls, method: POST, requests: 5, connections: 3, name: second }\n";
    // The program takes space there as long as it is not kept elsewhere.
    let output = site.controller(plan).arg("--no-keep").output().unwrap();
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    for problem in [
        "machine `g1`: cannot create a folder in `/",
        "/tmp-g1`: Read-only file system",
        "machine `g2`: cannot write `/",
        "/body`: No space left on device",
        "free some space there, or set TMPDIR there",
        "2 problems, nothing was sent",
    ] {
        assert!(said.contains(problem), "{problem}\n{said}");
    }
    assert!(record(&site.lab.path("runs")).is_null());
    site.wait_until_clean();
}

#[test]
fn a_machine_keeps_the_program_for_the_next_run_unless_it_shall_not() {
    let site = Site::new();
    let plan = "loads: [{ http: /, requests: 5, on: g1 }]\n";
    let kept = |host: &str| {
        let cache = site.lab.path(&format!("cache-{host}")).join("squall");
        fs::read_dir(cache).into_iter().flatten().flatten().count()
    };
    let run = |flag: &str| {
        let output = site.controller(plan).args(Some(flag).filter(|flag| !flag.is_empty())).output().unwrap();
        text(&output.stderr).contains("g1: sending squall, ")
    };
    assert_eq!((run("--no-keep"), kept("g1")), (true, 0));
    assert_eq!((run(""), kept("g1")), (true, 1));
    assert_eq!((run(""), kept("g1")), (false, 1));
    let mut folders = fs::read_dir(site.lab.path("cache-g1").join("squall")).unwrap();
    fs::write(folders.next().unwrap().unwrap().path().join("squall"), "x").unwrap();
    assert_eq!((run(""), kept("g1")), (true, 1), "one that is not whole is replaced");
    site.wait_until_clean();
}

#[test]
fn csh_logins_work_and_a_program_that_does_not_run_is_reported_in_the_loaders_own_words() {
    let mut site = Site::with_program();
    site.lab.configure_sshd("g1", "ForceCommand exec /usr/bin/tcsh -c \"$SSH_ORIGINAL_COMMAND\"\n");
    let (record, output) = site.run("loads: [{ http: /, requests: 5, connections: 1, on: g1 }]\n");
    assert_eq!(parts(&record, "load"), [("http".to_owned(), 5)], "{}", text(&output.stderr));
    let words = "error while loading shared libraries: libx.so.1: cannot open shared object file: No such file or directory";
    fs::write(site.lab.path("other"), format!("#!/bin/sh\necho \"squall: {words}\" >&2\nexit 127\n"))
        .unwrap();
    let plan = format!(
        "  other: {{ ssh: {}, binary: {} }}\nloads: [{{ http: /, requests: 5, on: other }}]\n",
        Lab::address("target"),
        site.lab.path("other").display()
    );
    let (_, output) = site.run(&plan);
    let said = text(&output.stderr);
    assert!(
        said.contains(&format!("machine `other`: the program does not run there: squall: {words}")),
        "{said}"
    );
    assert!(said.contains("`binary: path/to/squall`"), "{said}");
}
