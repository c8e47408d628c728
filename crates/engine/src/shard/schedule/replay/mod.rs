//! Recorded requests in a shard: each becomes a request made at run time, goes out when it is due and when what it must wait for
//! has ended, and what its response says is compared and learned from.
//!
//! Owns: the player, the order within sessions, the live values, the WebSockets that are open, and which connection stands for which
//! recorded one. `drive` is what the shard's loop asks of it, and `converse` what it asks for WebSockets.

mod converse;
mod drive;
mod encode;
mod lines;
mod talk;

use std::collections::VecDeque;
use std::sync::Arc;

use squall_plan::{Compare, ShardPart, When};
use squall_traffic::change::Context;
use squall_traffic::play::{Expected, Live, LiveSessions, Next, Order, Player, SessionKey, Span, Ticket};
use squall_traffic::store::{Frame, RecordView};
use squall_traffic::{Response as Recorded, Version};

use crate::Error;
use crate::pace::grid_ns;
use crate::prepare::{Prepared, PreparedReplay, PreparedRequest, RecordedStream};

use converse::{Opening, Talks};
use lines::{Line, Lines};

/// The replay of one shard.
#[derive(Debug)]
pub(in crate::shard) struct Replay {
    prepared: Arc<PreparedReplay>,
    player: Player,
    order: Order<Kept>,
    /// Requests that waited and need not any longer.
    released: VecDeque<(Ticket, Kept)>,
    /// Bytes of the requests that wait or waited, and have not gone.
    held_bytes: usize,
    /// What is known of requests in flight, by their index among those made at run time.
    flights: Vec<Option<Flight>>,
    live: LiveSessions<SessionKey>,
    lines: Lines,
    talks: Talks,
    /// Closed model: copies whose last request has ended.
    ready_walks: VecDeque<u32>,
    /// Requests are released on this grid; 0: each at its own time.
    grid_ns: u64,
    /// Numbers requests over all shards, for templates.
    unique_next: u64,
    unique_step: u64,
    is_ended: bool,
    unreadable_count: u64,
}

/// What is known of a record that is due.
#[derive(Debug, Clone, Copy)]
struct Meta {
    due_ns: u64,
    user: u32,
    round: u32,
    ordinal: u64,
    frame: Frame,
    /// Where the frame begins in the recording.
    offset: u64,
    session: SessionKey,
    span: Span,
    /// The walk of the closed model.
    walk: Option<u32>,
}

/// A record that waits for another.
#[derive(Debug)]
struct Kept {
    meta: Meta,
    payload: Vec<u8>,
}

/// A request in flight.
#[derive(Debug)]
struct Flight {
    meta: Meta,
    ticket: Ticket,
    /// Recorded status; 0: unknown.
    status: u16,
    /// The whole recorded response, where bodies are compared.
    recorded: Option<Box<Recorded>>,
    /// Values that the recorded response gave and that come back later.
    expected: Vec<Expected>,
    /// What is said on the WebSocket that it opens.
    opening: Option<Box<Opening>>,
    /// Its answer was an event stream.
    stream: Option<RecordedStream>,
    /// A live value is in it.
    is_corrected: bool,
    is_begun: bool,
}

/// What came of asking for the next record.
pub(in crate::shard) enum Taken<T> {
    /// It goes now.
    Go(T),
    /// It waits for another.
    Later,
    /// It cannot be read: nothing is asked for by it.
    Unreadable,
    /// There is none.
    Nothing,
}

impl Replay {
    /// The replay of `prepared` in this shard; `None` for other loads.
    pub(in crate::shard) fn new(prepared: &Prepared, part: &ShardPart) -> Result<Option<Box<Self>>, Error> {
        let Some(replay) = &prepared.replay else { return Ok(None) };
        let options = replay.play_options(&prepared.load, part);
        let player = Player::new(&replay.recording, options).map_err(|source| Error::PlanFile {
            what: "recording",
            path: replay.plan.recording.clone(),
            source,
        })?;
        let grid_ns = match &prepared.load.when {
            When::Open { pacing, .. } => grid_ns(*pacing),
            When::Closed { .. } => 0,
        };
        Ok(Some(Box::new(Self {
            ready_walks: (0..player.walk_count() as u32).collect(),
            prepared: Arc::clone(replay),
            player,
            order: Order::default(),
            released: VecDeque::new(),
            held_bytes: 0,
            flights: Vec::new(),
            live: LiveSessions::default(),
            lines: Lines::default(),
            talks: Talks::default(),
            grid_ns,
            unique_next: part.machine_idx(0) + 1,
            unique_step: u64::from(part.shard_count),
            is_ended: false,
            unreadable_count: 0,
        })))
    }

    /// When the next record is to be released, in nanoseconds after the start.
    fn next_release_ns(&mut self) -> Option<u64> {
        match self.player.peek_ns() {
            Ok(Some(due_ns)) => Some(self.on_grid(due_ns)),
            Ok(None) => {
                self.is_ended = true;
                None
            }
            Err(_) => {
                self.note_unreadable();
                None
            }
        }
    }

    /// Requests whose time has come but that wait for others.
    pub(super) fn pending_count(&self) -> usize {
        self.order.held_count() + self.released.len()
    }

    /// Whether no more may be read from the recording until what waits has gone; `waiting_count`: requests that wait for a connection.
    pub(super) fn is_full(&self, waiting_count: u64) -> bool {
        waiting_count + self.pending_count() as u64 >= PENDING_COUNT_MAX
            || self.held_bytes >= HELD_BYTES_MAX
            || self.talks.bytes >= TALK_BYTES_MAX
    }

    fn on_grid(&self, due_ns: u64) -> u64 {
        match self.grid_ns {
            0 => due_ns,
            grid_ns => due_ns.div_ceil(grid_ns) * grid_ns,
        }
    }

    /// The recording is damaged from here on: what was played stays played.
    fn note_unreadable(&mut self) {
        self.unreadable_count += 1;
        self.is_ended = true;
    }

    /// Takes the record that is due next, of all copies or of one, and writes it to `request` where it may go at once. `due_ns`: its time,
    /// where that is not the recorded one.
    fn take_next(
        &mut self,
        walk: Option<u32>,
        due_ns: Option<u64>,
        request: &mut PreparedRequest,
    ) -> Taken<Flight> {
        let next = match walk {
            None => self.player.take(),
            Some(walk) => self.player.take_of(walk as usize),
        };
        let next = match next {
            Ok(Some(next)) => next,
            Ok(None) => {
                self.is_ended |= walk.is_none();
                return Taken::Nothing;
            }
            Err(_) => {
                self.note_unreadable();
                return Taken::Nothing;
            }
        };
        let view = RecordView::read(next.payload).filter(|view| !is_flawed(view));
        let Some(view) = view else {
            self.unreadable_count += 1;
            return Taken::Unreadable;
        };
        let mut meta = Meta { due_ns: due_ns.unwrap_or(next.due_ns), ..Meta::of(&next, &view, walk) };
        meta.span.end_ns =
            meta.span.end_ns.map(|end_ns| self.prepared.learned.known_ns(meta.ordinal, end_ns));
        let key = self.prepared.order_key(&meta);
        let Some(ticket) = self.order.admit(key, meta.span) else {
            self.held_bytes += next.payload.len();
            self.order.hold(key, meta.span, Kept { meta, payload: next.payload.to_vec() });
            return Taken::Later;
        };
        let unique = take_number(&mut self.unique_next, self.unique_step);
        let live = self.live.get(&meta.session);
        Taken::Go(Flight::new(&self.prepared, (meta, ticket, unique), &view, live, request))
    }

    /// A request that waited, written to `request`.
    fn take_released(&mut self, request: &mut PreparedRequest) -> Option<Flight> {
        let (ticket, Kept { meta, payload }) = self.released.pop_front()?;
        self.held_bytes = self.held_bytes.saturating_sub(payload.len());
        // It was read before it was kept.
        let view = RecordView::read(&payload)?;
        let unique = take_number(&mut self.unique_next, self.unique_step);
        let live = self.live.get(&meta.session);
        Some(Flight::new(&self.prepared, (meta, ticket, unique), &view, live, request))
    }

    /// A request has ended: those that waited for it are released.
    fn finish(&mut self, idx: usize) {
        let Some(flight) = self.flights.get_mut(idx).and_then(Option::take) else { return };
        self.ready_walks.extend(flight.meta.walk);
        let Some(key) = self.order.finish(flight.ticket) else { return };
        while let Some(released) = self.order.release(key) {
            self.released.push_back(released);
        }
    }

    fn keep_flight(&mut self, idx: usize, flight: Flight) {
        if self.flights.len() <= idx {
            self.flights.resize_with(idx + 1, || None);
        }
        self.flights[idx] = Some(flight);
    }
}

impl Meta {
    fn of(next: &Next<'_>, view: &RecordView<'_>, walk: Option<u32>) -> Self {
        let frame = next.frame;
        let latency_ns = view.outcome().map_or(0, |(_, latency_ns)| latency_ns);
        let is_serial = matches!(view.version, Version::Http10 | Version::Http11);
        let span = Span {
            begin_ns: frame.time_ns,
            end_ns: (latency_ns > 0).then(|| frame.time_ns.saturating_add(latency_ns)),
            serial_connection: if is_serial { frame.connection } else { 0 },
        };
        let session = if frame.session == 0 { frame.connection } else { frame.session };
        let session = SessionKey { user: next.user, session };
        let Next { due_ns, user, round, ordinal, offset, .. } = *next;
        Self { due_ns, user, round, ordinal, frame, offset, session, span, walk }
    }

    /// The recorded connection, of this copy, to this origin.
    fn line(&self, origin_idx: u32) -> Option<Line> {
        let connection = self.frame.connection;
        (connection != 0).then_some(Line { user: self.user, connection, origin_idx })
    }
}

impl Flight {
    /// Writes the request.
    fn new(
        prepared: &PreparedReplay,
        (meta, ticket, unique): (Meta, Ticket, u64),
        view: &RecordView<'_>,
        live: Option<&Live>,
        request: &mut PreparedRequest,
    ) -> Self {
        let opening = Opening::of(prepared, view, unique);
        let offer = opening.as_ref().map(|opening| opening.offer());
        let is_corrected = encode::request(prepared, &meta, view, live, (unique, offer), request);
        let (status, length_ns) = view.outcome().unwrap_or_default();
        let event_count = view.event_count();
        let stream = (event_count > 0).then_some(RecordedStream { event_count, length_ns });
        let is_compared = prepared.plan.compare == Compare::Body;
        let recorded = is_compared.then(|| view.response().map(Box::new)).flatten();
        let expected = prepared.learned.expected(meta.ordinal, meta.frame.row, || view.response());
        Self { meta, ticket, status, recorded, expected, opening, stream, is_corrected, is_begun: false }
    }
}

impl PreparedReplay {
    /// The session within which a record keeps its order; a separate one where order is not kept, or follows anyway.
    fn order_key(&self, meta: &Meta) -> SessionKey {
        let keeps_order = self.plan.keeps_order && meta.walk.is_none();
        if keeps_order { meta.session } else { SessionKey { session: 0, ..meta.session } }
    }

    fn context<'a>(meta: &Meta, unique: u64, now_ns: u64, live: Option<&'a Live>) -> Context<'a> {
        Context {
            user: meta.user,
            round: meta.round,
            ordinal: meta.ordinal,
            unique,
            recorded_ns: meta.frame.time_ns,
            now_ns,
            live,
        }
    }
}

/// Requests that wait, for others or for a connection, before no more are read from the recording.
const PENDING_COUNT_MAX: u64 = 20_000;

/// Bytes of requests that wait for others, before no more are read from the recording.
const HELD_BYTES_MAX: usize = 16 << 20;

/// The same of messages that open WebSockets are to send: one of them may have 32 MiB.
const TALK_BYTES_MAX: usize = 256 << 20;

/// Whether it opens a WebSocket on which nobody can have said what was recorded.
fn is_flawed(view: &RecordView<'_>) -> bool {
    let opens = view.outcome().is_some_and(|(status, _)| status == 101);
    opens && view.flaw_of(view.response().as_ref()).is_some()
}

fn take_number(next: &mut u64, step: u64) -> u64 {
    let number = *next;
    *next += step;
    number
}
