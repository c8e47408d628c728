//! `k6/experimental/fs` and `k6/experimental/csv`; the expectations are what k6 gives for the same file.

use std::path::Path;

use squall_script::Outcome;

use crate::drive::{compile, iterate, reply};

/// What a script says, whose init has `table()`, which opens the table next to these tests, and `failure(make)`, an error as text.
fn said(init: &str, body: &str) -> String {
    let source = format!("{}\n{init}\nexport default async function () {{ {body} }}", begin());
    let run = iterate(&source, 2, |_| reply(200, &[], ""));
    assert_eq!(run.outcome, Outcome::Done(None), "{body}");
    run.said.trim_end().replace('\n', " & ")
}

fn begin() -> String {
    let folder = format!("{}/tests/users", env!("CARGO_MANIFEST_DIR"));
    format!(
        "import {{ open, SeekMode }} from 'k6/experimental/fs';
         import csv from 'k6/experimental/csv';
         const folder = {folder:?}, table = () => open(folder + '/table.csv');
         const failure = async (make) => {{ try {{ return await make(); }} catch (error) {{ return String(error); }} }};"
    )
}

#[test]
fn a_file_is_read_from_where_the_last_read_ended() {
    for (init, body, expected) in [
        (
            "const file = await table(), bytes = new Uint8Array(20);",
            "console.log(await file.read(bytes), bytes[0], (await file.stat()).name, file.path === folder + '/table.csv');",
            "20 110 table.csv true & 20 34 table.csv true",
        ),
        (
            "const file = await table(), bytes = new Uint8Array(30);",
            "console.log(await file.read(bytes), await file.read(bytes), await file.read(bytes));",
            "30 17 null & null null null",
        ),
        (
            "const one = await table(), two = await table(), bytes = new Uint8Array(4);",
            "await one.seek(-3, SeekMode.End); console.log(await one.read(bytes), await two.read(bytes), await two.seek(0, 1));",
            "4 4 4 & 4 4 8",
        ),
        (
            "const file = await table(), bytes = new Uint8Array(6);",
            "await file.read(bytes.subarray(1, 3)); console.log(bytes.join(), await file.read(new Uint8Array(0)));",
            "0,110,97,0,0,0 0 & 0,109,101,0,0,0 0",
        ),
    ] {
        assert_eq!(said(init, body), expected, "{body}");
    }
}

#[test]
fn what_cannot_be_opened_or_read_is_reported_as_in_k6() {
    for (expression, expected) in [
        ("open()", "TypeError: open() failed; reason: path cannot be null or undefined"),
        ("open('')", "TypeError: open() failed; reason: path cannot be empty"),
        ("open('/no/such/file')", "NotFoundError: no such file or directory \"/no/such/file\""),
        ("open('/tmp')", "InvalidResourceError: cannot open \"/tmp\": opening a directory is not supported"),
        ("file.read()", "TypeError: read() failed; reason: into argument cannot be null or undefined"),
        ("file.read([1])", "TypeError: read() failed; reason: into argument must be a Uint8Array"),
        (
            "file.read(new Uint16Array(1))",
            "TypeError: read() failed; reason: into argument must be a Uint8Array",
        ),
        ("file.seek()", "TypeError: seek() failed; reason: the offset argument cannot be null or undefined"),
        ("file.seek(1.5, 0)", "TypeError: seek() failed; reason: the offset argument must be a number"),
        ("file.seek(0, '1')", "TypeError: seek() failed; reason: the whence argument must be a number"),
        ("file.seek(0, 3)", "TypeError: seek() failed; reason: the whence argument must be a SeekMode"),
        ("file.seek(99, SeekMode.Start)", "TypeError: seeking beyond end of file"),
        ("file.seek.call({}, 0, 0)", "TypeError: this is not a File"),
    ] {
        let init = format!(
            "const file = await table(); const problem = await failure(() => {expression}); if (__VU === 1) console.log(problem);"
        );
        let run =
            iterate(&format!("{}\n{init}\nexport default () => {{}};", begin()), 1, |_| reply(200, &[], ""));
        assert_eq!(run.said.trim_end(), expected, "{expression}");
    }
    let later = "ForbiddenError: open() failed; reason: opening a file is allowed only in the Init context";
    assert_eq!(said("", "console.log(await failure(table));"), format!("{later} & {later}"));
}

#[test]
fn a_file_that_is_not_there_ends_the_load_with_its_name() {
    let error =
        compile(&format!("{}\nawait open('none.csv'); export default () => {{}};", begin())).unwrap_err();
    assert!(
        error.message.starts_with("NotFoundError: no such file or directory \"/tests/none.csv\""),
        "{}",
        error.message
    );
}

/// Agents get what the script was made from.
#[test]
fn an_opened_file_is_one_of_the_sources() {
    let program = compile(&format!("{}\nawait table(); export default () => {{}};", begin())).unwrap();
    assert!(program.sources().any(|path| path.file_name() == Path::new("table.csv").file_name()));
}

#[test]
fn a_table_is_parsed_once_for_all_users() {
    for (options, expected) in [
        ("{}", r#"[["name","note"],["ada","one, \"two\""],["bob","over\nlines"]]"#),
        ("{ skipFirstLine: true }", r#"[["ada","one, \"two\""],["bob","over\nlines"]]"#),
        ("{ asObjects: true, toLine: 1 }", r#"[{"name":"ada","note":"one, \"two\""}]"#),
        ("{ fromLine: 1, toLine: 2 }", r#"[["ada","one, \"two\""],["bob","over\nlines"]]"#),
        (
            "{ delimiter: ';' }",
            "Error: failed to read record; reason: parse error on line 2, column 5: bare \" in non-quoted-field",
        ),
        (
            "{ delimiter: '' }",
            "Error: failed to interpret the provided Parser options; reason: delimiter must be a single character",
        ),
        (
            "{ fromLine: 3, toLine: 3 }",
            "Error: failed to interpret the provided Parser options; reason: fromLine must be less than or equal to toLine",
        ),
        (
            "{ skipFirstLine: true, asObjects: true }",
            "Error: failed to create a new parser; reason: the 'header' option cannot be enabled when 'skipFirstLine' is true",
        ),
    ] {
        let init = format!(
            "const file = await table(), rows = await failure(async () => csv.parse(file, {options}));"
        );
        let body = "if (__ITER === 0) console.log(typeof rows === 'string' ? rows : JSON.stringify(rows));";
        assert_eq!(said(&init, body), expected, "{options}");
    }
    let rows = "const rows = await csv.parse(await table()); let error; try { rows[0] = 1; } catch (e) { error = e; }";
    let body = "if (__ITER === 0) console.log(Array.isArray(rows), rows.length, rows[1][0], String(error));";
    assert_eq!(said(rows, body), "true 3 ada TypeError: SharedArray is immutable");
}

#[test]
fn a_parser_gives_row_by_row_over_iterations() {
    for (init, body, expected) in [
        (
            "const parser = new csv.Parser(await table());",
            "console.log(JSON.stringify([await parser.next(), (await parser.next()).value[0]]));",
            r#"[{"done":false,"value":["name","note"]},"ada"] & [{"done":false,"value":["bob","over\nlines"]},null]"#,
        ),
        (
            "const parser = new csv.Parser(await table(), { asObjects: true });",
            "const { value } = await parser.next(); console.log(JSON.stringify(value), await failure(async () => new csv.Parser()));",
            r#"{"name":"ada","note":"one, \"two\""} Error: csv Parser constructor must be called in the init context & {"name":"bob","note":"over\nlines"} Error: csv Parser constructor must be called in the init context"#,
        ),
        (
            "const problems = [await failure(() => new csv.Parser()), await failure(() => new csv.Parser({})), await failure(() => new csv.Parser(5, {}))];",
            "if (__ITER === 0) console.log(problems.join('; '));",
            "Error: csv Parser constructor takes at least one non-nil source argument; Error: first argument expected to be a fs.File instance; Error: first argument expected to be a fs.File instance",
        ),
        (
            "const file = await table(), parser = new csv.Parser(file);",
            "let count = 0; while (!(await parser.next()).done) count++; await file.seek(0, SeekMode.Start); console.log(count);",
            "3 & 3",
        ),
        (
            "const parser = new csv.Parser(await table()); let asked = false;",
            "Object.defineProperty(Object.prototype, 'done', { set() { if (!asked) { asked = true; parser.next(); } }, configurable: true });
             const { value } = await parser.next(); delete Object.prototype.done; console.log(value[0]);",
            "name & bob",
        ),
    ] {
        assert_eq!(said(init, body), expected, "{init}");
    }
}
