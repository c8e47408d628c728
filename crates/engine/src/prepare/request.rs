//! One request, encoded for each version of HTTP that may be spoken.

use std::fs::File;
use std::sync::Arc;

use squall_plan::{Body, Header, HttpVersion, Proxy, RequestPlan};
use squall_traffic::{Spooled, Stretch};
use squall_wire::h1::{RequestHead, RequestKind};
use squall_wire::h2::{self, FieldBlock, FieldTable};
use squall_wire::h3::{self, FieldSection};

use super::encode::{cannot_encode, encode};
use super::rows::VersionRows;
use super::streams::StreamResumption;
use crate::Error;

/// One request, encoded.
#[derive(Debug)]
pub(crate) struct PreparedRequest {
    /// Head for HTTP/1.1 (none where that is never spoken), and the body when it is in memory.
    pub(crate) bytes: Vec<u8>,
    /// Where in `bytes` the body begins.
    pub(crate) body_at: usize,
    /// Head for HTTP/2, where that may be spoken.
    pub(crate) fields: Option<FieldBlock>,
    /// Head for HTTP/3, where that is spoken.
    pub(crate) section: Option<FieldSection>,
    /// A body that is streamed from disk after `bytes`.
    pub(crate) file: Option<FileBody>,
    /// What the decoder must know of it.
    pub(crate) kind: RequestKind,
    /// Index into the origins.
    pub(crate) origin_idx: u32,
    /// Indexes into the rows, by the version that is spoken.
    pub(crate) rows: VersionRows,
    /// RFC 9110 9.2.2: may be sent again when a connection died under it.
    pub(crate) is_idempotent: bool,
    /// What it was made from; kept where redirects may be followed.
    pub(crate) source: Option<Arc<Source>>,
    /// Of a stream that is opened again: where it goes on.
    pub(crate) resumption: Option<Arc<StreamResumption>>,
}

/// What a request was made from.
#[derive(Debug)]
pub(crate) struct Source {
    pub(crate) plan: RequestPlan,
    pub(crate) user_agent: String,
}

/// What is sent as a body from disk, and what follows it.
#[derive(Debug, Clone)]
pub(crate) struct FileBody {
    /// Opened once; reads give their own offsets.
    pub(crate) file: Spooled,
    /// The end of the body, when it is in memory.
    pub(crate) tail: Box<[u8]>,
}

/// A part of a request that is sent in one go.
#[derive(Debug)]
pub(crate) enum Part<'a> {
    /// Bytes in memory.
    Bytes(&'a [u8]),
    /// Bytes of a file.
    File(Stretch<'a>),
}

impl FileBody {
    /// The first bytes of a file.
    pub(crate) fn of(file: Arc<File>, bytes: u64) -> Self {
        Self { file: Spooled::plain(file, 0, bytes, 0), tail: Box::default() }
    }

    /// Bytes promised in `Content-Length`, of those that are not in the request's own.
    pub(crate) fn bytes(&self) -> u64 {
        self.file.bytes + self.tail.len() as u64
    }
}

impl PreparedRequest {
    /// A request that is still to be written.
    pub(crate) fn empty() -> Self {
        Self {
            bytes: Vec::new(),
            body_at: 0,
            fields: None,
            section: None,
            file: None,
            kind: RequestKind::Other,
            origin_idx: 0,
            rows: VersionRows::default(),
            is_idempotent: false,
            source: None,
            resumption: None,
        }
    }

    /// Bytes of the whole request in HTTP/1.1, above TLS.
    pub(crate) fn total_bytes(&self) -> u64 {
        self.bytes.len() as u64 + self.file.as_ref().map_or(0, FileBody::bytes)
    }

    /// What is sent next when `offset` bytes, of head and body, have gone.
    pub(crate) fn part(&self, offset: u64) -> Part<'_> {
        let in_memory = self.bytes.len() as u64;
        let Some(body) = self.file.as_ref().filter(|_| offset >= in_memory) else {
            return Part::Bytes(self.bytes.get(offset as usize..).unwrap_or_default());
        };
        match body.file.stretch(offset - in_memory) {
            Some(stretch) => Part::File(stretch),
            None => {
                let at = (offset - in_memory - body.file.bytes) as usize;
                Part::Bytes(body.tail.get(at..).unwrap_or_default())
            }
        }
    }

    /// What a connection's client needs to know to send it.
    pub(crate) fn on_wire(&self) -> squall_wire::Request<'_> {
        squall_wire::Request {
            head: &self.bytes[..self.body_at],
            fields: self.fields.as_ref(),
            section: self.section.as_ref(),
            kind: self.kind,
            body_bytes: self.body_bytes(),
        }
    }

    /// Bytes of the body, wherever it is.
    pub(crate) fn body_bytes(&self) -> u64 {
        self.total_bytes() - self.body_at as u64
    }
}

/// What the variants of one request share.
pub(super) struct Template<'a> {
    pub(super) plan: &'a RequestPlan,
    /// The version of HTTP as far as it is known before the connection, and whether that may be HTTP/3.
    pub(super) versions: (HttpVersion, bool),
    pub(super) origin_idx: u32,
    pub(super) rows: VersionRows,
    pub(super) follows: bool,
    /// Of a stream that is opened for another protocol.
    pub(super) protocol: Option<&'static str>,
}

impl Template<'_> {
    /// `table`: shares the fields with other requests; without one, the request is sent in full each time.
    pub(super) fn encode(
        &self,
        user_agent: &str,
        file: Option<FileBody>,
        forwarder: Option<&Proxy>,
        table: Option<&mut FieldTable>,
    ) -> Result<PreparedRequest, Error> {
        let RequestPlan { method, url, body, .. } = self.plan;
        let (http, may_be_h3) = self.versions;
        let origin_form = &url[url::Position::BeforePath..url::Position::AfterQuery];
        let absolute_form = &url[..url::Position::AfterQuery];
        let authority = &url[url::Position::BeforeHost..url::Position::AfterPort];
        let head = RequestHead {
            method,
            target: if forwarder.is_some() { absolute_form } else { origin_form },
            host: (!self.has("host")).then_some(authority),
            headers: &self.header_lines(user_agent, forwarder),
            content_length: if self.has("transfer-encoding") { None } else { content_length(body) },
        };
        let mut bytes = match http {
            HttpVersion::Http2 | HttpVersion::Http3 => Vec::new(),
            HttpVersion::Http11 | HttpVersion::Auto => encode(&head, url.as_str())?.into_vec(),
        };
        let fields = match http {
            HttpVersion::Http11 | HttpVersion::Http3 => None,
            HttpVersion::Http2 | HttpVersion::Auto => {
                let fields = match self.protocol {
                    Some(protocol) => h2::prepare_extended(&head, (url.scheme(), protocol), table),
                    None => h2::prepare(&head, url.scheme(), table),
                };
                Some(fields.map_err(|error| cannot_encode(&error, url.as_str()))?)
            }
        };
        let section = may_be_h3.then(|| match self.protocol {
            Some(protocol) => h3::prepare_extended(&head, (url.scheme(), protocol)),
            None => h3::prepare(&head, url.scheme()),
        });
        let section = section.transpose().map_err(|error| cannot_encode(&error, url.as_str()))?;
        let body_at = bytes.len();
        if let Body::Bytes(body) = body {
            bytes.extend_from_slice(body);
        }
        Ok(PreparedRequest {
            bytes,
            body_at,
            fields,
            section,
            file,
            kind: if method == "HEAD" { RequestKind::Head } else { RequestKind::Other },
            origin_idx: self.origin_idx,
            rows: self.rows,
            is_idempotent: IDEMPOTENT_METHODS.contains(&method.as_str()),
            source: self
                .follows
                .then(|| Arc::new(Source { plan: self.plan.clone(), user_agent: user_agent.to_owned() })),
            resumption: None,
        })
    }

    /// The request's own headers, after those that it gets from elsewhere.
    fn header_lines<'b>(
        &'b self,
        user_agent: &'b str,
        forwarder: Option<&'b Proxy>,
    ) -> Vec<(&'b str, &'b str)> {
        let authorization = forwarder.and_then(|proxy| proxy.authorization.as_deref());
        let is_agent_wanted = !user_agent.is_empty() && !self.has("user-agent");
        let mut lines = Vec::with_capacity(self.plan.headers.len() + 2);
        lines.extend(is_agent_wanted.then_some(("User-Agent", user_agent)));
        lines.extend(authorization.map(|value| ("Proxy-Authorization", value)));
        lines.extend(self.plan.headers.iter().map(|Header { name, value }| (name.as_str(), value.as_str())));
        lines
    }

    fn has(&self, name: &str) -> bool {
        self.plan.headers.iter().any(|header| header.name.eq_ignore_ascii_case(name))
    }
}

fn content_length(body: &Body) -> Option<u64> {
    match body {
        Body::Empty => None,
        Body::Bytes(bytes) => Some(bytes.len() as u64),
        Body::File { bytes, .. } => Some(*bytes),
    }
}

pub(super) fn open_body(body: &Body) -> Result<Option<FileBody>, Error> {
    let Body::File { path, bytes } = body else { return Ok(None) };
    let file = File::open(path).map_err(|source| Error::PlanFile {
        what: "body file",
        path: path.clone(),
        source,
    })?;
    Ok(Some(FileBody::of(Arc::new(file), *bytes)))
}

/// RFC 9110 9.2.2.
pub(crate) const IDEMPOTENT_METHODS: [&str; 6] = ["GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE"];
