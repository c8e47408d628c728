//! The format, written and read back: whole, appended to, cut off and damaged.

use std::fs;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use super::*;
use crate::play::ConversationScript;
use crate::read::tests as read;
use crate::{
    Field, Format, Peer, Place, Record, RecordedKind, RecordedMessage, Request, Response, Scheme, Spooled,
    Version,
};

fn record(nth: u64) -> Record {
    let mut response = Response { status: 200, latency_ns: nth, ..Response::default() };
    response.set_body(vec![b'x'; nth as usize % 300]);
    for at in 0..nth % 5 {
        let by = if at % 2 == 0 { Peer::Client } else { Peer::Server };
        let (at_ns, bytes) = (at * nth, vec![at as u8; nth as usize % 400]);
        response.messages.push(match at {
            2 => RecordedMessage::close(at_ns, by, Some(1000 + nth as u16), "bye"),
            _ => {
                let kind = if at == 1 { RecordedKind::Binary } else { RecordedKind::Text };
                RecordedMessage { at_ns, by, kind, bytes }
            }
        });
        response.status = 101;
    }
    response.event_times_ns = (0..nth % 3).map(|at| at * nth * 1000).collect();
    Record {
        time_ns: 1_700_000_000_000_000_000 + nth * 1000,
        connection: nth % 7,
        session: nth % 3,
        request: Request {
            method: "POST".into(),
            scheme: Scheme::Https,
            authority: format!("h{}", nth % 2),
            target: format!("/a/{nth}?q"),
            version: Version::Http2,
            headers: vec![Field::new("X", vec![0xff, b'1']), Field::new("Y", "")],
            body: vec![nth as u8; nth as usize % 5000],
            spooled: None,
            lost_body_bytes: 0,
        },
        response: nth.is_multiple_of(2).then_some(response),
        place: Place { record: nth, line: 2 * nth, byte: 0 },
    }
}

fn written(folder: &tempfile::TempDir, count: u64) -> std::path::PathBuf {
    let path = folder.path().join("a.squall");
    let mut writer = Writer::create(&path).unwrap();
    (0..count).for_each(|nth| writer.write(&record(nth)).unwrap());
    writer.finish().unwrap();
    path
}

fn walked(recording: &Recording, buffer_bytes: usize) -> Vec<Record> {
    let mut cursor = recording.cursor(buffer_bytes);
    let mut records = Vec::new();
    while let Some(frame) = cursor.peek().unwrap() {
        let payload = cursor.take(&frame).unwrap();
        let view = RecordView::read(payload).unwrap();
        let record = view.record(&frame);
        let event_count = record.response.as_ref().map_or(0, |response| response.event_times_ns.len());
        assert_eq!(view.event_count(), event_count as u64);
        records.push(record);
    }
    records
}

#[test]
fn records_come_back_as_they_were() {
    let folder = tempfile::tempdir().unwrap();
    let path = written(&folder, 1000);
    let recording = Recording::open(&path).unwrap();
    let expected: Vec<Record> = (0..1000).map(record).collect();
    assert_eq!(walked(&recording, 64), expected);
    assert_eq!(walked(&recording, 1 << 16), expected);
    assert_eq!(read::good(Format::Squall, fs::read(&path).unwrap()), expected);
    let mut cursor = recording.cursor(100);
    for nth in 0..10 {
        let frame = cursor.peek().unwrap().unwrap();
        assert_eq!(recording.record_at(cursor.offset()).unwrap(), Some(record(nth)));
        cursor.skip(frame.bytes());
    }
    let index = recording.index();
    assert!(index.is_sorted && index.has_connections && index.has_responses);
    assert_eq!((index.record_count, index.length_ns(), index.origins.len()), (1000, 999_000, 2));
    assert_eq!(
        index.rows.iter().map(|row| row.pattern.as_str()).collect::<Vec<_>>(),
        ["https://h0/a/{id}", "https://h1/a/{id}"]
    );
    assert_eq!(index.blocks.iter().map(|block| block.record_count).sum::<u64>(), 1000);
}

/// A record whose body has a spooled part of so many bytes after the first two that are in memory.
fn spooled(nth: u64, bytes: u64) -> Record {
    let file = tempfile::tempfile().unwrap();
    let content: Vec<u8> = (0..bytes + 3).map(|at| (at * 31 + at / 251 + nth) as u8).collect();
    file.write_all_at(&content, 0).unwrap();
    let mut record = record(nth);
    record.request.body = b"begin end".to_vec();
    record.request.spooled = Some(Spooled::plain(Arc::new(file), 3, bytes, 5));
    record
}

/// The whole body, and the record without it.
fn with_body(mut record: Record) -> (Vec<u8>, Record) {
    record = record.into_loaded().unwrap();
    (std::mem::take(&mut record.request.body), record)
}

#[test]
fn spooled_bodies_come_back_whole() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.squall");
    let records = || {
        [(1, 1), (2, 2), (3, (1 << 20) - 1), (4, 1 << 20), (5, (2 << 20) + 7)]
            .map(|(nth, bytes)| spooled(nth, bytes))
    };
    let mut writer = Writer::create(&path).unwrap();
    writer.write(&record(0)).unwrap();
    records().iter().for_each(|record| writer.write(record).unwrap());
    writer.write(&record(6)).unwrap();
    writer.finish().unwrap();
    let expected: Vec<_> =
        std::iter::once(record(0)).chain(records()).chain([record(6)]).map(with_body).collect();
    assert_eq!(expected[5].0.len(), (2 << 20) + 7 + 9);
    let recording = Recording::open(&path).unwrap();
    let (mut cursor, mut walked, mut found) = (recording.cursor(64), Vec::new(), Vec::new());
    while let Some(frame) = cursor.peek().unwrap() {
        found.push(with_body(recording.record_at(cursor.offset()).unwrap().unwrap()));
        walked.push(with_body(cursor.record(&frame).unwrap().unwrap()));
    }
    let read: Vec<_> =
        read::good(Format::Squall, fs::read(&path).unwrap()).into_iter().map(with_body).collect();
    assert!(walked == expected && found == expected && read == expected);
    assert!(recording.index().frame_bytes_max < 1 << 20);
}

#[test]
fn a_record_whose_body_is_damaged_is_left_out_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.squall");
    let mut writer = Writer::create(&path).unwrap();
    for record in [record(0), spooled(1, 3 << 20), spooled(2, 2 << 20), record(3)] {
        writer.write(&record).unwrap();
    }
    writer.finish().unwrap();
    let mut bytes = fs::read(&path).unwrap();
    bytes[(1 << 20) + 9000] ^= 1;
    let (records, problems) = read::all(Format::Squall, bytes);
    let found: Vec<_> = records.iter().map(|record| record.place.record).collect();
    assert_eq!(found, [0, 2, 3]);
    assert!(problems.iter().any(|problem| problem.reason == "parts of its body are missing"), "{problems:?}");
}

#[test]
fn an_appended_file_has_both_parts() {
    let folder = tempfile::tempdir().unwrap();
    let path = written(&folder, 10);
    let mut writer = Writer::append(&path).unwrap();
    (10..20).for_each(|nth| writer.write(&record(nth)).unwrap());
    writer.finish().unwrap();
    let recording = Recording::open(&path).unwrap();
    let expected: Vec<Record> = (0..20).map(record).collect();
    assert_eq!((walked(&recording, 100), recording.index().record_count), (expected.clone(), 20));
    assert_eq!(read::good(Format::Squall, fs::read(&path).unwrap()), expected);
}

#[test]
fn a_file_that_was_not_closed_is_whole_up_to_its_end() {
    let folder = tempfile::tempdir().unwrap();
    let path = written(&folder, 100);
    let bytes = fs::read(&path).unwrap();
    for end in [bytes.len() - 1, bytes.len() / 2, 60, 17, 16] {
        fs::write(&path, &bytes[..end]).unwrap();
        assert!(matches!(Recording::open(&path), Err(OpenStoreError::NoIndex { .. })), "{end}");
        let (records, _) = read::all(Format::Squall, bytes[..end].to_vec());
        assert_eq!(records, (0..records.len() as u64).map(record).collect::<Vec<_>>());
        assert_eq!(repair(&path).unwrap().record_count, records.len() as u64);
        assert_eq!(walked(&Recording::open(&path).unwrap(), 100), records);
    }
}

#[test]
fn damage_costs_only_the_records_it_touches() {
    let folder = tempfile::tempdir().unwrap();
    let bytes = fs::read(written(&folder, 100)).unwrap();
    for at in (20..bytes.len() - 2000).step_by(977) {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0x55;
        let (records, problems) = read::all(Format::Squall, damaged);
        assert!(records.len() >= 99 && records.len() + problems.len() >= 100, "{at}: {}", records.len());
    }
}

#[test]
fn other_files_are_no_recording_and_stay_as_they_are() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x");
    let newer = b"SQUALLTR\x09\0\0\0\0\0\0\0, and what comes after it";
    for (bytes, said) in [
        (&b"SQUALLTR"[..], "`x` is not a Squall recording"),
        (b"hello world, hello world", "`x` is not a Squall recording"),
        (newer, "`x` has version 9 of the .squall format; this squall reads version 1"),
    ] {
        fs::write(&path, bytes).unwrap();
        for error in [Writer::append(&path).map(drop), repair(&path).map(drop)] {
            assert!(error.is_err());
            assert_eq!(fs::read(&path).unwrap(), bytes);
        }
        let said = said.replace("`x`", &format!("`{}`", path.display()));
        let error = Writer::append(&path).unwrap_err().to_string();
        assert!(error.contains(&said), "{error}");
    }
}

#[test]
fn an_empty_file_is_a_recording_that_was_begun_just_now() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x");
    fs::write(&path, b"").unwrap();
    assert!(matches!(Recording::open(&path), Err(OpenStoreError::NotStore { .. })));
    let mut writer = Writer::append(&path).unwrap();
    writer.write(&record(0)).unwrap();
    writer.finish().unwrap();
    assert_eq!(walked(&Recording::open(&path).unwrap(), 100), [record(0)]);
}

/// A limit on the size of files fails like a full disk does. It is the whole process's: this test starts itself in a separate one.
#[test]
fn a_record_that_the_disk_has_no_space_for_leaves_no_trace() {
    const IS_LIMITED: &str = "SQUALL_TEST_FILE_SIZE_IS_LIMITED";
    if std::env::var_os(IS_LIMITED).is_some() {
        return write_beyond_the_limit();
    }
    let ended = std::process::Command::new("bash")
        .args(["-c", "trap '' XFSZ; ulimit -f 512; exec \"$@\"", "bash"])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "store::tests::a_record_that_the_disk_has_no_space_for_leaves_no_trace"])
        .env(IS_LIMITED, "1")
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&ended.stdout);
    assert!(ended.status.success() && printed.contains("1 passed"), "{printed}");
}

fn write_beyond_the_limit() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.squall");
    let mut large = record(1);
    large.request.body = vec![b'x'; 600 << 10];
    let mut writer = Writer::create(&path).unwrap();
    writer.write(&record(0)).unwrap();
    assert!(matches!(writer.write(&large), Err(crate::WriteError::Os { .. })));
    writer.write(&record(2)).unwrap();
    let index = writer.finish().unwrap();
    let recording = Recording::open(&path).unwrap();
    assert_eq!(walked(&recording, 100), [record(0), record(2)]);
    assert_eq!((index.record_count, index.blocks.len()), (2, 1));
    assert_eq!(index.origins.iter().map(|origin| origin.request_count).sum::<u64>(), 2);
    assert_eq!(index.rows.iter().map(|row| row.request_count).sum::<u64>(), 2);
}

#[test]
fn messages_that_no_websocket_carried_are_found_before_they_are_played() {
    let folder = tempfile::tempdir().unwrap();
    let message =
        |kind, bytes: &[u8]| RecordedMessage { at_ns: 5, by: Peer::Client, kind, bytes: bytes.to_vec() };
    let text = || message(RecordedKind::Text, b"a");
    let close = || message(RecordedKind::Close, b"");
    let not_utf8 = message(RecordedKind::Text, &[0xff]);
    let cut = message(RecordedKind::Close, &[3]);
    for (status, messages, wrong) in [
        (101, vec![text(), close()], None),
        (101, vec![close(), text()], Some("a WebSocket message after the close frame of its sender")),
        (101, vec![not_utf8], Some("a WebSocket message of text that is not UTF-8")),
        (101, vec![cut], Some("a WebSocket close frame whose payload is no code and reason")),
        (200, vec![text()], Some("WebSocket messages after an answer that opened no WebSocket")),
    ] {
        let path = folder.path().join("a.squall");
        let mut writer = Writer::create(&path).unwrap();
        let socket = Response { status: 101, ..Response::default() };
        writer.write(&Record { response: Some(socket), ..record(1) }).unwrap();
        let response = Some(Response { status, messages, ..Response::default() });
        writer.write(&Record { response, ..record(2) }).unwrap();
        writer.finish().unwrap();
        let found = ConversationScript::find_flaw(&Recording::open(&path).unwrap()).unwrap();
        assert_eq!(found.map(|problem| problem.reason), wrong.map(str::to_owned));
        let (records, problems) = read::all(Format::Squall, fs::read(&path).unwrap());
        assert_eq!(records.len(), if wrong.is_some() { 1 } else { 2 });
        assert_eq!(problems.first().map(|problem| problem.reason.as_str()), wrong);
        fs::remove_file(&path).unwrap();
    }
}
