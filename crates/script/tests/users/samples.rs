//! `--out json` and `--out csv`: the lines are those that k6 writes for the same samples.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use squall_script::{
    HttpSample, HttpTags, MetricId, Options, Recorder, SampleForm, SampleOutput, SampleStream, Tags,
    TimeForm, Timing,
};

use crate::drive::{Notes, Text, compile};

/// What is written of one request, one value of the script's own trend, and one of the run's gauges.
fn written(form: SampleForm) -> String {
    let program = compile(
        "import { Trend } from 'k6/metrics'; new Trend('mine', true);
         export const options = { thresholds: { mine: ['p(95)<500', { threshold: 'avg<1', abortOnFail: true, delayAbortEval: '10s' }], 'http_reqs{status:200}': ['count>0'] } };
         export default () => {}",
    )
    .unwrap();
    let options = Options::of(program.layer().into_iter().collect()).unwrap();
    let text = Text::default();
    let output = Arc::new(SampleOutput::new(form, Box::new(text.clone()), &program, &options));
    let notes = Rc::new(Notes::default());
    let run_tags = [("run".to_owned(), "r1".to_owned())];
    let stream = SampleStream::new(notes.clone(), &[Arc::clone(&output)], &run_tags);
    stream.set_time(Duration::new(1_795_275_982, 110_255_750));
    let http = HttpTags {
        method: "GET",
        url: "http://h/?a=<b>&c",
        name: "http://h/?a=<b>&c",
        status: Some(200),
        subproto: None,
        proto: "HTTP/1.1",
        tls_version: "",
        error_code: 0,
        error: "",
        expected: Some(true),
        ip: "",
    };
    let call = [("own".to_owned(), "x,y \"q\"".to_owned())];
    let tags = Tags {
        scenario: "default",
        group: "::g one",
        check: None,
        http: Some(&http),
        custom: [&run_tags, &call],
        system: options.runtime.system_tags,
        vu: (1, 0),
        metadata: &[],
    };
    let timing = Timing { waiting_ns: 28_890_499, ..Timing::default() };
    stream.http(&HttpSample { timing: &timing, is_failed: Some(false), tags: &tags });
    stream.add(MetricId(squall_script::BUILTINS.len() as u32), 12.5, &Tags { http: None, ..tags });
    stream.write_of_run(MetricId::VUS, 3.0);
    stream.hand_over();
    output.finish().unwrap();
    assert_eq!(notes.0.borrow().http.len(), 1);
    String::from_utf8(text.0.lock().unwrap().clone()).unwrap()
}

#[test]
fn json_lines_are_those_of_k6() {
    let text = written(SampleForm::Json);
    for line in [
        r#"{"type":"Metric","data":{"name":"http_reqs","type":"counter","contains":"default","thresholds":[],"submetrics":[{"name":"http_reqs{status:200}","suffix":"status:200","tags":{"status":"200"}}]},"metric":"http_reqs"}"#,
        r#"{"metric":"http_reqs","type":"Point","data":{"time":"2026-11-21T15:46:22.11025575Z","value":1,"tags":{"expected_response":"true","group":"::g one","method":"GET","name":"http://h/?a=\u003cb\u003e\u0026c","own":"x,y \"q\"","proto":"HTTP/1.1","run":"r1","scenario":"default","status":"200","url":"http://h/?a=\u003cb\u003e\u0026c"}}}"#,
        r#"{"type":"Metric","data":{"name":"mine","type":"trend","contains":"time","thresholds":["p(95)<500",{"threshold":"avg<1","abortOnFail":true,"delayAbortEval":"10s"}],"submetrics":null},"metric":"mine"}"#,
        r#"{"metric":"mine","type":"Point","data":{"time":"2026-11-21T15:46:22.11025575Z","value":12.5,"tags":{"group":"::g one","own":"x,y \"q\"","run":"r1","scenario":"default"}}}"#,
        r#"{"metric":"vus","type":"Point","data":{"time":"2026-11-21T15:46:22.11025575Z","value":3,"tags":{"run":"r1"}}}"#,
    ] {
        assert!(text.lines().any(|known| known == line), "{line}\nis not in\n{text}");
    }
    assert_eq!(text.lines().filter(|line| line.contains(r#""type":"Point""#)).count(), 11);
}

#[test]
fn csv_lines_are_those_of_k6() {
    let text = written(SampleForm::Csv(TimeForm::Unix));
    let mut lines = text.lines();
    assert_eq!(
        lines.next(),
        Some(
            "metric_name,timestamp,metric_value,check,error,error_code,expected_response,group,method,name,proto,scenario,service,status,subproto,tls_version,url,extra_tags,metadata"
        )
    );
    assert_eq!(
        lines.next(),
        Some(
            r#"http_reqs,1795275982,1.000000,,,,true,::g one,GET,http://h/?a=<b>&c,HTTP/1.1,default,,200,,,http://h/?a=<b>&c,"own=x,y ""q""&run=r1","#
        )
    );
    assert!(
        text.contains(
            "\nmine,1795275982,12.500000,,,,,::g one,,,,default,,,,,,\"own=x,y \"\"q\"\"&run=r1\",\n"
        )
    );
}
