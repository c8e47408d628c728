//! Arbitrary responses and requests: what is learned of them, body codings, and live values put in. Nothing panics, nothing grows without bound.

#![no_main]

use libfuzzer_sys::fuzz_target;
use squall_traffic::play::{Learner, Live};
use squall_traffic::{Field, Record, Request, Response};

fuzz_target!(|input: Vec<(&str, &[u8], &[u8], &str)>| {
    let mut learner = Learner::default();
    let mut live = Live::default();
    for (ordinal, (text, sent, answered, coding)) in (0..).zip(input) {
        let mut response = Response {
            headers: vec![Field::new("Set-Cookie", text), Field::new("Content-Encoding", coding)],
            ..Response::default()
        };
        response.set_body(answered.to_vec());
        let headers = vec![Field::new("Cookie", text), Field::new("X-Token", answered)];
        let target = format!("/{text}");
        let request = Request { target, headers, body: sent.to_vec(), ..Request::default() };
        learner.add(
            ordinal,
            0,
            &Record { session: 1, request, response: Some(response), ..Record::default() },
        );
        live.set(text.as_bytes().to_vec(), sent.to_vec());
        let headers = vec![Field::new("Content-Type", coding), Field::new("X-Token", answered)];
        let target = format!("/{text}");
        live.correct(&mut Request { target, headers, body: answered.to_vec(), ..Request::default() });
    }
    let learned = learner.finish_at(1);
    let response = || Some(Response { body: Some(b"{}".to_vec()), ..Response::default() });
    learned.expected(0, 0, response);
    learned.expected(2, 0, response);
});
