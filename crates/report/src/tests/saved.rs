//! Saved runs and output files, on a real file system.

use std::fs;
use std::io::Read;
use std::os::fd::AsRawFd;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use squall_plan::limits;

use super::fixture;
use crate::store::{self, Store};
use crate::{Error, Format, OutputSpec, Outputs, Style, Summary, csv, json, terminal};

fn started_at() -> SystemTime {
    UNIX_EPOCH + Duration::from_millis(1_788_099_120_123)
}

/// The user's store below `home`.
fn user_store(home: &Path) -> Store {
    Store::of_user(|name| (name == "XDG_STATE_HOME").then(|| home.as_os_str().to_owned())).unwrap()
}

#[test]
fn redrawn_outputs_equal_those_of_the_run() {
    let home = tempfile::tempdir().unwrap();
    for record in
        [fixture::open_run(), fixture::closed_run(), fixture::refused_run(), fixture::overloaded_run()]
    {
        let summary = Summary::from(&record);
        let mut folder = Store::at(home.path()).create(started_at(), &record.plan).unwrap();
        folder.fill(&record, &summary).unwrap();

        let read = store::open(folder.path()).unwrap();
        assert_eq!(read, record);
        let again = Summary::from(&read);
        let text = |summary: &Summary| terminal::draw(summary, Some(folder.path()), Style::FILE);
        assert_eq!(text(&again), text(&summary));
        assert_eq!(json::draw(&again), fs::read_to_string(folder.path().join("summary.json")).unwrap());
        assert_eq!(text(&again), fs::read_to_string(folder.path().join("summary.txt")).unwrap());
        assert_eq!(csv::draw(&again), csv::draw(&summary));
    }
}

#[test]
fn folders_are_named_by_time_and_plan_and_never_shared() {
    let home = tempfile::tempdir().unwrap();
    let store = Store::at(home.path());
    let mut record = fixture::closed_run();
    for expected in ["2026-08-30T141200Z-home-page", "2026-08-30T141200Z-home-page-2"] {
        let mut folder = store.create(started_at(), &record.plan).unwrap();
        assert_eq!(folder.path().file_name().unwrap(), expected);
        folder.fill(&record, &Summary::from(&record)).unwrap();
    }
    for (name, expected) in
        [("../../etc", "etc"), ("", "run"), ("a/b\0c", "a-b-c"), (".hidden", "hidden"), ("é", "run")]
    {
        record.plan.name = name.to_owned();
        let folder = store.create(started_at(), &record.plan).unwrap();
        assert_eq!(folder.path(), home.path().join(format!("2026-08-30T141200Z-{expected}")));
    }
}

#[test]
fn run_that_never_happened_leaves_no_folder() {
    let home = tempfile::tempdir().unwrap();
    let store = Store::at(home.path());
    let folder = store.create(started_at(), &fixture::closed_run().plan).unwrap();
    assert!(folder.path().join("plan.json").is_file());
    drop(folder);
    assert_eq!(fs::read_dir(home.path()).unwrap().count(), 0);
    assert!(matches!(store.latest(), Err(Error::UserNoRuns { .. })));
}

#[test]
fn latest_run_is_the_one_that_started_last() {
    let home = tempfile::tempdir().unwrap();
    let store = user_store(home.path());
    let record = fixture::closed_run();
    let mut paths = Vec::new();
    for seconds in [0, 30, 10] {
        let mut folder = store.create(started_at() + Duration::from_secs(seconds), &record.plan).unwrap();
        folder.fill(&record, &Summary::from(&record)).unwrap();
        paths.push(folder.path().to_owned());
    }
    assert_eq!(store.latest().unwrap(), paths[1]);
    let place = paths[1].parent().unwrap();
    for path in [place.to_owned(), place.join("../runs"), paths[1].clone(), paths[1].join("run.json")] {
        assert_eq!(store::folder_of(&path).unwrap(), paths[1]);
        assert_eq!(store::open(&path).unwrap(), record);
    }
    assert_eq!(store.list().unwrap(), [&paths[0], &paths[2], &paths[1]].map(Clone::clone));
}

#[test]
fn only_the_oldest_runs_of_ours_are_removed() {
    let home = tempfile::tempdir().unwrap();
    let store = user_store(home.path());
    let root = home.path().join("squall/runs");
    let make = |name: &str, files: &[&str]| {
        fs::create_dir_all(root.join(name)).unwrap();
        files.iter().for_each(|file| fs::write(root.join(name).join(file), "x").unwrap());
    };
    for idx in 0..limits::SAVED_RUN_COUNT_MAX + 3 {
        make(&format!("2026-01-01T{idx:06}Z-run"), &["run.json", "summary.txt"]);
    }
    make("2026-01-01T000001Z-run", &["my-notes.txt"]);
    make("2020-01-01T000000Z-not-a-run", &["photo.jpg"]);
    make("my-folder", &["run.json"]);
    let elsewhere = home.path().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    fs::write(elsewhere.join("run.json"), "x").unwrap();
    symlink(&elsewhere, root.join("2019-01-01T000000Z-link")).unwrap();

    store.prune().unwrap();

    assert_eq!(store.list().unwrap().len(), limits::SAVED_RUN_COUNT_MAX);
    assert!(!root.join("2026-01-01T000000Z-run").exists());
    assert!(root.join("2026-01-01T000001Z-run/my-notes.txt").exists());
    assert!(root.join("2026-01-01T000003Z-run/run.json").exists());
    assert!(root.join("2020-01-01T000000Z-not-a-run/photo.jpg").exists());
    assert!(root.join("my-folder/run.json").exists());
    assert!(elsewhere.join("run.json").exists());
}

#[test]
fn what_is_no_run_of_this_version_is_refused_with_a_reason() {
    let home = tempfile::tempdir().unwrap();
    let check = |content: &str, expected: &str| {
        let file = home.path().join("run.json");
        fs::write(&file, content).unwrap();
        let message =
            store::open(home.path()).unwrap_err().to_string().replace(file.to_str().unwrap(), "FILE");
        assert!(message.starts_with(expected), "{message}");
    };
    check("", "`FILE` is not a saved run: EOF while parsing");
    check("{\"hello\": 1}", "`FILE` is not a saved run: missing field `schema`");
    check("{\"schema\": 999, \"anything\": []}", "`FILE` has schema 999; this version reads up to 1");
    check("{\"schema\": 1}", "`FILE` is not a saved run: missing field");

    let empty = tempfile::tempdir().unwrap();
    assert!(matches!(store::open(empty.path()), Err(Error::UserNotARun { .. })));
    assert!(matches!(store::open(&empty.path().join("gone")), Err(Error::OsRead { .. })));
}

#[test]
fn user_place_follows_xdg() {
    let place = |vars: &[(&str, &str)]| {
        let find = |name: &str| vars.iter().find(|(key, _)| *key == name).map(|(_, value)| value.into());
        Store::of_user(find).map(|store| store.latest().unwrap_err().to_string())
    };
    let none_in = |path: &str| format!("no saved run in `{path}/squall/runs`");
    assert_eq!(place(&[("XDG_STATE_HOME", "/x"), ("HOME", "/h")]).unwrap(), none_in("/x"));
    assert_eq!(place(&[("XDG_STATE_HOME", "relative"), ("HOME", "/h")]).unwrap(), none_in("/h/.local/state"));
    assert_eq!(place(&[("XDG_STATE_HOME", ""), ("HOME", "/h")]).unwrap(), none_in("/h/.local/state"));
    assert!(matches!(place(&[]), Err(Error::UserNoStateDir)));
}

#[test]
fn place_that_cannot_be_written_fails_before_the_run() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("file");
    fs::write(&file, "").unwrap();
    let plan = fixture::closed_run().plan;
    assert!(matches!(Store::at(&file).create(started_at(), &plan), Err(Error::OsWrite { .. })));
    let spec = OutputSpec::new(Format::Json, home.path().join("no/such/folder.json").to_str().unwrap());
    assert!(matches!(Outputs::create(&[spec]), Err(Error::OsWrite { .. })));
}

#[test]
fn output_keeps_its_old_content_until_the_new_one_is_whole() {
    let home = tempfile::tempdir().unwrap();
    let (file, link) = (home.path().join("out.json"), home.path().join("link.json"));
    fs::write(&file, "old").unwrap();
    symlink(&file, &link).unwrap();
    let record = fixture::closed_run();
    let summary = Summary::from(&record);

    let mut outputs = Outputs::create(&[OutputSpec::new(Format::Json, link.to_str().unwrap())]).unwrap();
    assert_eq!(fs::read_to_string(&file).unwrap(), "old");
    assert!(outputs.write(&record, &summary, &mut Vec::new()).is_empty());

    assert_eq!(fs::read_to_string(&file).unwrap(), json::draw(&summary));
    assert!(link.is_symlink());
    assert_eq!(fs::read_dir(home.path()).unwrap().count(), 2, "no temporary file is left");
}

#[test]
fn file_that_cannot_be_replaced_is_written_in_place() {
    let home = tempfile::tempdir().unwrap();
    // As long as a name can be, so that no temporary name derived from it fits.
    let file = home.path().join("x".repeat(255));
    fs::write(&file, "old".repeat(100_000)).unwrap();
    let record = fixture::closed_run();
    let summary = Summary::from(&record);
    let mut outputs = Outputs::create(&[OutputSpec::new(Format::Json, file.to_str().unwrap())]).unwrap();
    assert!(outputs.write(&record, &summary, &mut Vec::new()).is_empty());
    assert_eq!(fs::read_to_string(&file).unwrap(), json::draw(&summary));
}

/// `--out json=>(jq .)` gives such a path.
#[test]
fn pipe_is_an_output() {
    let (mut reader, writer) = std::io::pipe().unwrap();
    let path = format!("/proc/self/fd/{}", writer.as_raw_fd());
    let mut outputs = Outputs::create(&[OutputSpec::new(Format::Csv, &path)]).unwrap();
    drop(writer);
    let record = fixture::closed_run();
    let summary = Summary::from(&record);
    assert!(outputs.write(&record, &summary, &mut Vec::new()).is_empty());
    drop(outputs);
    let mut text = String::new();
    reader.read_to_string(&mut text).unwrap();
    assert_eq!(text, csv::draw(&summary));
}

#[test]
fn full_disk_costs_its_file_and_no_other() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("out.csv");
    let specs =
        [OutputSpec::new(Format::Json, "/dev/full"), OutputSpec::new(Format::Csv, file.to_str().unwrap())];
    let record = fixture::closed_run();
    let summary = Summary::from(&record);
    let errors = Outputs::create(&specs).unwrap().write(&record, &summary, &mut Vec::new());
    assert_eq!(errors.len(), 1);
    assert_eq!(errors[0].help(), Some("free some space, or choose another disk"));
    assert_eq!(fs::read_to_string(&file).unwrap(), csv::draw(&summary));
}

#[test]
fn outputs_are_read_as_typed() {
    assert_eq!("json=a=b".parse::<OutputSpec>().unwrap(), OutputSpec::new(Format::Json, "a=b"));
    assert_eq!("csv=-".parse::<OutputSpec>().unwrap(), OutputSpec { format: Format::Csv, path: None });
    for bad in ["", "json", "json=", "xml=f", "=f"] {
        assert!(matches!(bad.parse::<OutputSpec>(), Err(Error::UserBadOutput { .. })), "{bad}");
    }
    let said = "promtheus=http://bob:secretpw@x/?token=t".parse::<OutputSpec>().unwrap_err().to_string();
    assert_eq!(said, "`promtheus=http://***@x/?token=***` is not an output");
}
