//! What the fuzz targets of recorded traffic have in common: whatever a file says, each record that comes out can be sent, each problem
//! has its place, and what is read can be written and read again.

use squall_traffic::read::open_bytes;
use squall_traffic::store::{FILE_HEAD_BYTES, FRAME_HEAD_BYTES, Frame, RecordView, Writer};
use squall_traffic::{Format, Problem, ReadOptions, Record};

/// Reads a file of this format to its end.
pub fn read(format: Format, bytes: &[u8]) {
    let Ok(mut source) = open_bytes(format, bytes.to_vec(), &ReadOptions::default()) else { return };
    // A record or a problem takes at least a byte, or ends the file.
    for _ in 0..=2 * source_bytes_max(bytes) {
        match source.next() {
            Ok(None) => return,
            Ok(Some(record)) => {
                // Our own format says what it was told to say; what is sent is held to the syntax once more.
                if format != Format::Squall {
                    check_sendable(&record);
                }
                check_written(&record);
            }
            Err(problem) => {
                check_problem(&problem);
                if problem.is_fatal {
                    return;
                }
            }
        }
    }
    panic!("the reader does not come to an end");
}

/// Compressed files (gzip, zlib) are larger than they look, by up to 1032 times.
fn source_bytes_max(bytes: &[u8]) -> usize {
    match bytes {
        [0x1f, 0x8b, ..] | [0x78, 0x01 | 0x5e | 0x9c | 0xda, ..] => bytes.len() * 1100,
        _ => bytes.len() + 16,
    }
}

fn check_problem(problem: &Problem) {
    assert!(!problem.reason.is_empty() && !problem.reason.ends_with('.'), "{problem:?}");
    assert!(!problem.reason.contains('\n'), "{problem:?}");
}

fn check_sendable(record: &Record) {
    let request = &record.request;
    assert!(squall_plan::urls::is_token(&request.method), "{request:?}");
    assert!(!request.target.contains([' ', '\r', '\n', '\0']), "{request:?}");
    for field in &request.headers {
        assert!(squall_plan::urls::is_token(&field.name), "{field:?}");
        assert!(!field.value.iter().any(|byte| matches!(byte, b'\r' | b'\n' | 0)), "{field:?}");
    }
}

fn check_written(record: &Record) {
    let path = std::env::temp_dir().join(format!("squall-fuzz-{}", std::process::id()));
    let mut writer = Writer::create(&path).expect("the folder of temporary files is writable");
    writer.write(record).expect("a record that was read can be written");
    writer.finish().expect("the file can be closed");
    let bytes = std::fs::read(&path).expect("it was written");
    std::fs::remove_file(&path).expect("it is there");
    let frame_bytes = &bytes[FILE_HEAD_BYTES as usize..];
    let frame = Frame::read(frame_bytes).expect("it was written");
    let view = RecordView::read(&frame_bytes[FRAME_HEAD_BYTES..frame.bytes()]).expect("it was written");
    assert_eq!(view.record(&frame), *record);
}
