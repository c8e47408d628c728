//! What a user and its thread remember of requests: data alone, so that the host can hold it.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::time::Duration;

use foldhash::fast::FixedState;
use squall_plan::HttpVersion;

use crate::bodies::Bodies;
use crate::cookies::Jar;
use crate::step::{ReplyFailure, Spec};
use crate::vm::{Ctx, Kept, RecordKind};

/// A user's requests under way, and what it has set for all of them.
#[derive(Debug, Default)]
pub(crate) struct HttpState {
    next_token: Cell<u32>,
    pub(super) callback: RefCell<Callback>,
    pub(super) response_class: RefCell<Option<Rc<ResponseClass>>>,
    pub(super) asyncs: RefCell<Vec<AsyncCall>>,
    /// What the user's responses hold.
    pub(crate) bodies: Bodies,
}

/// An `asyncRequest` that is not settled.
#[derive(Debug)]
pub(super) struct AsyncCall {
    pub(super) exchange: Exchange,
    pub(super) resolve: Kept,
    pub(super) reject: Kept,
}

impl HttpState {
    /// Whether promises wait for replies.
    pub(crate) fn has_async(&self) -> bool {
        !self.asyncs.borrow().is_empty()
    }

    /// Gives what is under way up.
    pub(crate) fn forget(&self, ctx: Ctx<'_>) {
        for call in self.asyncs.borrow_mut().drain(..) {
            ctx.forget(call.resolve);
            ctx.forget(call.reject);
        }
    }

    /// Gives up what lasts: the context is about to end.
    pub(crate) fn end(&self, ctx: Ctx<'_>) {
        self.forget(ctx);
        let class = self.response_class.borrow_mut().take().and_then(Rc::into_inner);
        class.into_iter().for_each(|class| ctx.forget(class.proto));
    }

    pub(super) fn take_token(&self) -> u32 {
        self.next_token.replace(self.next_token.get().wrapping_add(1))
    }
}

/// A request under way.
#[derive(Debug)]
pub(super) struct Exchange {
    pub(super) token: u32,
    /// As the script asked for it.
    pub(super) asked: Rc<Spec>,
    /// What is sent now: the same, or where a redirect led, or with a proof of who asks.
    pub(super) spec: Rc<Spec>,
    /// `None`: nothing but the method and the URL was given.
    pub(super) params: Option<Rc<RequestParams>>,
    /// When the script asked for it, by the run's clock.
    pub(super) begin_ns: u64,
    pub(super) redirect_count: u32,
    pub(super) has_answered_digest: bool,
}

/// A request ready to be sent.
#[derive(Debug, Clone)]
pub(crate) struct BuiltRequest {
    pub(crate) spec: Rc<Spec>,
    pub(crate) params: Option<Rc<RequestParams>>,
    /// Why no transport takes it: its URL is one, but none of HTTP.
    pub(crate) unsent: Option<ReplyFailure>,
}

/// How a request is to be made.
#[derive(Debug, Clone, Default)]
pub(crate) struct RequestParams {
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) tags: Vec<(String, String)>,
    pub(crate) timeout: Option<Duration>,
    /// Name, value, and whether it replaces the jar's.
    pub(crate) cookies: Vec<(String, String, bool)>,
    pub(crate) jar: Option<Rc<RefCell<Jar>>>,
    pub(crate) redirects: Option<u32>,
    pub(crate) response_type: Option<ResponseType>,
    pub(crate) callback: Option<Callback>,
    pub(crate) auth: Option<String>,
    pub(crate) compression: Vec<String>,
    pub(crate) throws: Option<bool>,
    /// Squall's own: the version of HTTP.
    pub(crate) http: Option<HttpVersion>,
}

/// What `response.body` is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ResponseType {
    Text,
    Binary,
    None,
}

/// Which responses are expected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Callback {
    /// Inclusive ranges of statuses.
    Statuses(Rc<[(u16, u16)]>),
    /// Nobody asks: no `expected_response`, no `http_req_failed`.
    Off,
}

impl Default for Callback {
    fn default() -> Self {
        Self::Statuses(Rc::new([(200, 399)]))
    }
}

impl Callback {
    /// Statuses that are expected; none: any.
    pub(super) fn ranges(&self) -> Rc<[(u16, u16)]> {
        match self {
            Self::Off => Rc::new([]),
            Self::Statuses(ranges) => Rc::clone(ranges),
        }
    }

    /// Whether a status is expected; `None`: there is no callback.
    pub(super) fn expects(&self, status: u16) -> Option<bool> {
        match self {
            Self::Off => None,
            Self::Statuses(ranges) => {
                Some(ranges.iter().any(|(first, last)| (*first..=*last).contains(&status)))
            }
        }
    }
}

/// What all responses of a user have in common.
#[derive(Debug)]
pub(super) struct ResponseClass {
    pub(super) proto: Kept,
    pub(super) kind: Rc<RecordKind>,
}

/// Requests by their words.
#[derive(Debug, Default)]
pub(crate) struct RequestCache {
    known: HashMap<Box<[u8]>, BuiltRequest, FixedState>,
    /// Words of all that are known.
    bytes: usize,
    /// Space for the words that are looked up.
    pub(super) words: Vec<u8>,
}

impl RequestCache {
    pub(super) fn find(&self, words: &[u8]) -> Option<BuiltRequest> {
        self.known.get(words).cloned()
    }

    pub(super) fn keep(&mut self, words: &[u8], prepared: &BuiltRequest) {
        if self.known.len() >= COUNT_MAX || self.bytes >= BYTES_MAX {
            self.known.clear();
            self.bytes = 0;
        }
        self.bytes += words.len();
        self.known.insert(words.into(), prepared.clone());
    }
}

/// Most requests that are known; a script that makes up URLs shall not fill the memory.
const COUNT_MAX: usize = 4096;

/// Most bytes of words of all that are known.
const BYTES_MAX: usize = 8 << 20;
