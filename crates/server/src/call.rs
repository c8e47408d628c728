//! A request as handlers see it: its parts, with the parsing that routes share.

use std::{borrow::Cow, net::SocketAddr, ops::RangeInclusive, str::FromStr, time::Duration};

use bytes::Bytes;
use hyper::{
    HeaderMap, Uri,
    header::{AsHeaderName, HOST},
    http::request::Parts,
};
use percent_encoding::percent_decode_str;

use crate::{duration, reply::Refusal, shared::SharedState, size};

/// A request as handlers see it.
pub(crate) struct Call<'a> {
    pub(crate) head: &'a Parts,
    pub(crate) args: Args<'a>,
    pub(crate) body: Received,
    pub(crate) peer: SocketAddr,
    pub(crate) shared: &'a SharedState,
}

/// A request body: how long it was, and its bytes when the route asked for them.
#[derive(Default)]
pub(crate) struct Received {
    pub(crate) length: u64,
    pub(crate) bytes: Bytes,
}

/// The path's segments that stand for the pattern's parameters, still percent-encoded.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Args<'a> {
    values: [&'a str; ARG_COUNT_MAX],
    count: usize,
}

/// Most parameters in one pattern.
pub(crate) const ARG_COUNT_MAX: usize = 4;

impl<'a> Args<'a> {
    pub(crate) fn push(&mut self, value: &'a str) {
        self.values[self.count] = value;
        self.count += 1;
    }
}

impl<'a> Call<'a> {
    /// The path's parameter at `index`, decoded.
    pub(crate) fn arg(&self, index: usize) -> Result<Cow<'a, str>, Refusal> {
        let raw = self.args.values[index];
        percent_decode_str(raw).decode_utf8().map_err(|_| Refusal::new(format!("`{raw}` is not UTF-8")))
    }

    /// The path's parameter at `index` as a number within `range`.
    pub(crate) fn count(&self, index: usize, range: RangeInclusive<u64>) -> Result<u64, Refusal> {
        whole_number(self.args.values[index], range)
    }

    /// The path's parameter at `index` as a number of bytes within `range`.
    pub(crate) fn size(&self, index: usize, range: RangeInclusive<u64>) -> Result<u64, Refusal> {
        bytes(self.args.values[index], range)
    }

    /// The path's parameter at `index` as a duration.
    pub(crate) fn duration(&self, index: usize) -> Result<Duration, Refusal> {
        duration::parse(&self.arg(index)?)
    }

    /// All parameters of the query in order, decoded.
    pub(crate) fn query_pairs(&self) -> impl Iterator<Item = (Cow<'a, str>, Cow<'a, str>)> {
        form_urlencoded::parse(self.head.uri.query().unwrap_or_default().as_bytes())
    }

    /// The first parameter of that name in the query.
    pub(crate) fn query(&self, name: &str) -> Option<Cow<'a, str>> {
        self.query_pairs().find(|(key, _)| key == name).map(|(_, value)| value)
    }

    /// The query's parameter `name` as a number within `range`, `default` when it is absent.
    pub(crate) fn query_count(
        &self,
        name: &str,
        default: u64,
        range: RangeInclusive<u64>,
    ) -> Result<u64, Refusal> {
        self.query(name).map_or(Ok(default), |text| whole_number(&text, range))
    }

    /// The query's parameter `name` as a number of bytes within `range`, `default` when it is absent.
    pub(crate) fn query_size(
        &self,
        name: &str,
        default: u64,
        range: RangeInclusive<u64>,
    ) -> Result<u64, Refusal> {
        self.query(name).map_or(Ok(default), |text| bytes(&text, range))
    }

    /// The query's parameter `name` as a duration, `default` when it is absent.
    pub(crate) fn query_duration(&self, name: &str, default: Duration) -> Result<Duration, Refusal> {
        self.query(name).map_or(Ok(default), |text| duration::parse(&text))
    }

    /// The first header of that name, when it is visible ASCII.
    pub(crate) fn header(&self, name: impl AsHeaderName) -> Option<&str> {
        header(&self.head.headers, name)
    }

    /// `http://host:port` as the client knows the server.
    pub(crate) fn origin(&self) -> String {
        let host =
            self.header(HOST).or_else(|| Some(self.head.uri.authority()?.as_str())).unwrap_or("localhost");
        format!("{}://{host}", self.shared.scheme())
    }

    /// The whole URL as the client knows it.
    pub(crate) fn url(&self) -> String {
        format!("{}{}", self.origin(), target(&self.head.uri))
    }
}

/// The first header of that name, when it is visible ASCII.
fn header(headers: &HeaderMap, name: impl AsHeaderName) -> Option<&str> {
    headers.get(name)?.to_str().ok()
}

/// Path and query.
pub(crate) fn target(uri: &Uri) -> &str {
    uri.path_and_query().map_or("", |target| target.as_str())
}

fn whole_number(text: &str, range: RangeInclusive<u64>) -> Result<u64, Refusal> {
    let number = u64::from_str(text).ok().filter(|number| range.contains(number));
    let (low, high) = range.into_inner();
    number.ok_or_else(|| Refusal::new(format!("`{text}` is not a whole number from {low} to {high}")))
}

fn bytes(text: &str, range: RangeInclusive<u64>) -> Result<u64, Refusal> {
    let number = size::parse(text).filter(|number| range.contains(number));
    let (low, high) = range.into_inner();
    number.ok_or_else(|| {
        Refusal::new(format!(
            "`{text}` is not a whole number from {low} to {high}, nor such a size with a unit as in 10k, 64KiB, 1.5M"
        ))
    })
}
