//! Requests whose responses are streams of events.

use super::http;
use super::timing::Timing;
use crate::options::table::{
    DONE, EVENTS, FINISH, RECONNECT, SLO, STREAM_EXPECT_STATUS, STREAM_HOLD, STREAM_TIMEOUT,
};
use crate::options::{LoadType, ReadContext, Reading};
use crate::{LoadSpec, PortablePlan, Problems, StreamFormat, StreamLoad, What};

/// The plan of streams.
///
/// # Errors
/// All that is wrong with its options.
pub fn stream(spec: &LoadSpec, context: ReadContext<'_>) -> Result<PortablePlan, Problems> {
    let mut given = Reading::new(LoadType::Stream, spec, context);
    let timing = Timing::read(&mut given);
    let when = given.take(timing.when());
    let timeout = given.or_default(&STREAM_TIMEOUT);
    let format = given.one(&EVENTS).unwrap_or(StreamFormat::Auto);
    let (done, hold, objectives) = (given.one(&DONE), given.one(&STREAM_HOLD), given.one(&SLO));
    let (finishes, reconnects) = (given.is_set(&FINISH), given.is_set(&RECONNECT));
    // What is answered with a redirect is no stream.
    let status = given.one(&STREAM_EXPECT_STATUS).unwrap_or_else(|| vec![(200, 299)]);
    http::plan(given, (timing, when), timeout, |mut http| {
        http.expect.status = status;
        What::Stream(StreamLoad { http, format, done, hold, finishes, reconnects, objectives })
    })
}
