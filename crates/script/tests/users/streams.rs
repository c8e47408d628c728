//! `k6/experimental/streams`; the expectations are what k6 gives for the same script.

use squall_script::Outcome;

use crate::drive::{iterate, reply};

/// What a script notes while it does something with streams.
fn noted(body: &str) -> String {
    let source = format!(
        "import {{ ReadableStream, WritableStream, CountQueuingStrategy, ReadableStreamDefaultReader, WritableStreamDefaultWriter }} from 'k6/experimental/streams';
         const notes = [], show = (value) => value instanceof Error ? String(value) : JSON.stringify(value) ?? 'none';
         const note = (...values) => notes.push(values.map(show).join(' '));
         const watch = (name, promise) => {{ promise.then(() => note(name), (error) => note(name, error)); }};
         const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
         export default async function () {{
           try {{ await (async () => {{ {body} }})(); }} catch (error) {{ note(error); }}
           await pause(5);
           console.log(notes.join(', '));
         }}"
    );
    let run = iterate(&source, 1, |_| reply(200, &[], ""));
    assert_eq!(run.outcome, Outcome::Done(None), "{body}");
    run.said.trim_end().replace('"', "")
}

fn check(cases: &[(&str, &str)]) {
    for (body, expected) in cases {
        assert_eq!(noted(body), *expected, "{body}");
    }
}

#[test]
fn chunks_are_pulled_as_space_becomes_free() {
    check(&[
        (
            "let i = 0; const s = new ReadableStream({ start(c) { note('start', c.desiredSize); }, pull(c) { note('pull'); c.enqueue(++i); if (i === 2) c.close(); } });
             await pause(1); const r = s.getReader();
             for (let x; !(x = await r.read()).done;) note(x); await r.closed; note(s.locked); r.releaseLock(); note(s.locked);",
            "start 1, pull, pull, {value:1,done:false}, {value:2,done:false}, true, false",
        ),
        (
            "new ReadableStream({ pull(c) { note(c.desiredSize); c.enqueue(1); } }, new CountQueuingStrategy({ highWaterMark: 3 })); await pause(1);",
            "3, 2, 1",
        ),
        (
            "const s = new ReadableStream({ pull(c) { note('pull'); c.enqueue(1); } }, { highWaterMark: 0 }); await pause(1); note('read'); note(await s.getReader().read());",
            "read, pull, {value:1,done:false}",
        ),
        (
            "let c; new ReadableStream({ start(x) { c = x; } }, { highWaterMark: 10, size: (x) => x.length }); c.enqueue('abc'); note(c.desiredSize);",
            "7",
        ),
        (
            "let c; const r = new ReadableStream({ start(x) { c = x; } }).getReader(); const reads = [r.read(), r.read()]; c.enqueue('a'); c.close(); note(await Promise.all(reads));",
            "[{value:a,done:false},{done:true}]",
        ),
    ]);
}

#[test]
fn what_a_source_throws_reaches_the_reader() {
    check(&[
        ("new ReadableStream({ start() { throw new Error('s'); } });", "Error: s"),
        (
            "await new ReadableStream({ async start() { throw new Error('s'); } }).getReader().read();",
            "Error: s",
        ),
        ("await new ReadableStream({ pull() { throw new Error('p'); } }).getReader().read();", "Error: p"),
        ("await new ReadableStream({ cancel() { throw new Error('c'); } }).cancel();", "Error: c"),
        (
            "let c; const s = new ReadableStream({ start(x) { c = x; } }, { size: () => -1 }); try { c.enqueue(1); } catch (e) { note(e.name); } note(c.desiredSize); await s.getReader().read();",
            "RangeError, null, RangeError: size must be a finite, non-NaN number",
        ),
        (
            "new ReadableStream({ start(c) { c.close(); c.enqueue(1); } });",
            "TypeError: cannot close or enqueue",
        ),
        ("new ReadableStream({ start(c) { c.error('quiet'); } }).getReader(); note('fine');", "fine"),
    ]);
}

#[test]
fn a_reader_has_a_stream_for_itself() {
    check(&[
        ("const s = new ReadableStream(); s.getReader(); s.getReader();", "TypeError: stream is locked"),
        (
            "const s = new ReadableStream(); s.getReader(); await s.cancel();",
            "TypeError: cannot cancel a locked stream",
        ),
        (
            "const s = new ReadableStream({ cancel(r) { note('cancel', r); } }), r = s.getReader(), read = r.read(); await r.cancel('x'); note(await read);",
            "cancel x, {done:true}",
        ),
        (
            "const r = new ReadableStreamDefaultReader(new ReadableStream()); watch('read', r.read()); r.releaseLock(); watch('closed', r.closed); await r.read();",
            "read TypeError: reader released, closed TypeError: reader released, TypeError: stream is undefined",
        ),
        (
            "new ReadableStreamDefaultReader({});",
            "TypeError: ReadableStreamDefaultReader argument must be a ReadableStream",
        ),
    ]);
}

#[test]
fn what_is_not_there_is_refused() {
    check(&[
        ("new ReadableStream({ type: 'bytes' });", "NotSupportedError: 'bytes' stream is not supported yet"),
        ("new ReadableStream({ type: 'x' });", "TypeError: invalid underlying source type"),
        (
            "new ReadableStream().getReader({ mode: 'byob' });",
            "NotSupportedError: 'byob' mode is not supported yet",
        ),
        ("new ReadableStream().tee();", "NotSupportedError: 'tee()' is not supported yet"),
        ("new ReadableStream(5);", "TypeError: underlyingSource must be an object"),
        ("new ReadableStream({ pull: 5 });", "TypeError: underlyingSource.[[pull]] must be a function"),
        ("new WritableStream({ type: 'bytes' });", "RangeError: 'type' is not supported by WritableStream"),
        ("new WritableStream({}, { size: 5 });", "TypeError: size must be a function"),
        (
            "new WritableStream({}, { highWaterMark: '5' });",
            "RangeError: highWaterMark must be a non-negative number",
        ),
        (
            "new CountQueuingStrategy({});",
            "TypeError: CountQueuingStrategy argument must have 'highWaterMark' property",
        ),
    ]);
}

#[test]
fn writes_go_one_by_one_and_a_writer_sees_how_full_the_queue_is() {
    check(&[
        (
            "const s = new WritableStream({ start() { note('start'); }, async write(x) { note('write', x); await pause(1); }, close() { note('close'); } });
             const w = s.getWriter(); note(s.locked, w.desiredSize); watch('one', w.write(1)); note(w.desiredSize); watch('ready', w.ready); watch('two', w.write(2)); note(w.desiredSize);
             await w.close(); await w.closed; w.releaseLock(); note(s.locked);",
            "start, true 1, 0, -1, write 1, ready, write 2, one, close, two, false",
        ),
        (
            "const w = new WritableStream({}, { highWaterMark: 5, size: (x) => x.length }).getWriter(); w.write('abc'); note(w.desiredSize); w.write('def'); note(w.desiredSize); await w.close(); note(w.desiredSize);",
            "2, -1, 0",
        ),
        (
            "const s = new WritableStream(); await s.close(); const w = s.getWriter(); await w.ready; await w.closed; note(w.desiredSize); await w.write(1);",
            "0, TypeError: stream is closing or closed",
        ),
        (
            "const w = new WritableStreamDefaultWriter(new WritableStream()); w.releaseLock(); watch('closed', w.closed); watch('write', w.write(1)); await pause(1); w.desiredSize;",
            "closed TypeError: writer released, write TypeError: stream is undefined, TypeError: stream is undefined",
        ),
    ]);
}

#[test]
fn a_sink_that_fails_ends_its_stream() {
    check(&[
        (
            "const w = new WritableStream({ write() { throw new Error('w'); }, abort() { note('abort'); } }).getWriter();
             watch('closed', w.closed); watch('one', w.write(1)); watch('two', w.write(2)); watch('close', w.close()); await pause(1); note(w.desiredSize); await w.write(3);",
            "one Error: w, two Error: w, close Error: w, closed Error: w, null, Error: w",
        ),
        (
            "const w = new WritableStream({ close() { throw new Error('c'); } }).getWriter(); watch('closed', w.closed); await w.close();",
            "closed Error: c, Error: c",
        ),
        (
            "const w = new WritableStream({ start(c) { c.error('bad'); } }).getWriter(); watch('closed', w.closed); note(w.desiredSize); await w.ready;",
            "null, closed bad, bad",
        ),
        (
            "const w = new WritableStream({ close: () => pause(1) }, { size: () => { throw new Error('size'); } }).getWriter();
             await pause(1); watch('close', w.close()); watch('write', w.write(1)); await w.closed;",
            "write TypeError: stream is closing or closed, close",
        ),
        (
            "const w = new WritableStream({}, { size: () => -1 }).getWriter(); watch('closed', w.closed); await w.write(1);",
            "closed RangeError: size must be a finite, non-NaN number, RangeError: size must be a finite, non-NaN number",
        ),
    ]);
}

#[test]
fn an_abort_waits_for_what_is_in_flight() {
    check(&[
        (
            "const w = new WritableStream({ async write() { await pause(2); note('written'); }, abort(r) { note('abort', r); } }).getWriter();
             watch('closed', w.closed); watch('one', w.write(1)); watch('two', w.write(2)); await pause(1);
             const p = w.abort('why'); note(p === w.abort('again')); watch('aborted', p); watch('ready', w.ready); await p; await w.abort();",
            "true, ready why, written, abort why, one, two why, aborted, closed why",
        ),
        (
            "const w = new WritableStream({ async close() { await pause(2); }, abort() { note('abort'); } }).getWriter();
             watch('closed', w.closed); await w.ready; watch('close', w.close()); await pause(1); watch('aborted', w.abort('x'));",
            "close, aborted, closed",
        ),
        ("await new WritableStream({ abort() { throw new Error('a'); } }).abort();", "Error: a"),
        ("const s = new WritableStream(); s.getWriter(); await s.abort();", "TypeError: cannot abort a locked stream"),
    ]);
}
