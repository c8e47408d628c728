//! Every bound of the program, with its reason. A queue, table, retry or body without a line here is a bug.
//! Those of the HTTP codec are in `wire::h1::limits`.

use std::time::Duration;

/// Largest request head that a plan may ask for, in bytes.
pub const REQUEST_HEAD_BYTES_MAX: usize = 1024 * 1024;

/// Most prepared requests (URLs x user agents): each keeps its encoded head in memory.
pub const PREPARED_REQUEST_COUNT_MAX: usize = 1_000_000;

/// Most bytes of all prepared requests together, heads and bodies in memory: half of a small machine. Bodies in files do not count.
pub const PREPARED_BYTES_MAX: usize = 1 << 30;

/// Largest sum of weights after division by their greatest common divisor: the rotation keeps one slot for each.
pub const WEIGHT_SUM_MAX: usize = 1 << 20;

/// Most rows (URL pattern x method x protocol) with figures of their own; what exceeds it shares the row `(other)`.
pub const ROW_COUNT_MAX: usize = 100;

/// Most checks of a script with counts of their own: names made of data, such as ids, would never end. The rest shares `(other)`.
pub const CHECK_COUNT_MAX: usize = 1000;

/// Most groups of a script that are kept, and with `--summary-mode full` have figures of their own. What was measured in the others is in the
/// scenario's and the run's.
pub const GROUP_COUNT_MAX: usize = 1000;

/// Most elements of an array that a script gives to a function of squall's: more than any list, and 100 MB of them.
pub const ELEMENT_COUNT_MAX: u32 = 1 << 22;

/// Deepest nesting of a page's elements that `parseHTML` follows: browsers stop there, too.
pub const HTML_DEPTH_MAX: usize = 512;

/// Longest series kept at one point per second; beyond it neighbours are merged pairwise, so memory stays bounded.
pub const SERIES_POINT_COUNT_MAX: usize = 3600;

/// Shares (a load on a machine) whose figures over time are kept; of more machines and loads only their totals are.
pub const SHARE_COUNT_MAX: usize = 1024;

/// Points of all shares of a run together: some 10 MB of a saved run.
pub const SHARE_POINT_COUNT_MAX: usize = 8192;

/// Points of one share: more than a chart has columns to tell apart are of no use.
pub const SHARE_POINT_COUNT_MAX_EACH: usize = 600;

/// Most requests in flight on one HTTP/1.1 connection (`--pipeline`).
pub const PIPELINE_DEPTH_MAX: u32 = 1024;

/// Most requests in flight on one HTTP/2 connection (`--streams`): servers allow 100 to 1,000.
pub const STREAM_COUNT_MAX: u32 = 65_536;

/// Flow-control windows of HTTP/2 unless `--window` says otherwise: so large that no server waits for us.
pub const WINDOW_BYTES_DEFAULT: u32 = 1 << 30;

/// The same of a stream of HTTP/3: what comes out of order is kept until the gap is filled, so a window is memory that a server may take.
pub const QUIC_STREAM_WINDOW_BYTES_DEFAULT: u32 = 16 << 20;

/// The same of a connection of QUIC: with a round trip of 50 ms it carries 10 Gbit/s.
pub const QUIC_WINDOW_BYTES_DEFAULT: u32 = 64 << 20;

/// Packets that a server may acknowledge together: more than a window of congestion has at first would stop what we send.
pub const ACK_FREQUENCY_MAX: u32 = 1000;

/// QPACK's dynamic table, which a server fills and we keep for each connection.
pub const QPACK_TABLE_BYTES_MAX: u32 = 65_535;

/// Largest table for templates (`--csv`): the plan carries it, and each shard has it in memory.
pub const TABLE_BYTES_MAX: u64 = 16 << 20;

/// Connections change their local address no more often than this: each time takes a socket and a round trip.
pub const MIGRATION_TIME_MIN: Duration = Duration::from_millis(10);

/// Connections of one load that have a qlog file, and the size at which each ends: a gigabyte in all.
pub const QLOG_FILE_COUNT_MAX: u32 = 100;
/// See [`QLOG_FILE_COUNT_MAX`].
pub const QLOG_FILE_BYTES_MAX: u64 = 10_000_000;

/// Largest flow-control window (RFC 9113 6.9.1).
pub const WINDOW_BYTES_MAX: u32 = (1 << 31) - 1;

/// Largest payload of a UDP datagram: its length field has 16 bits, and counts the header's 8 bytes.
pub const UDP_PAYLOAD_BYTES_MAX: u16 = 65_527;

/// The connection window that every HTTP/2 connection begins with (RFC 9113 6.9.2); it can only grow.
pub const CONNECTION_WINDOW_BYTES_MIN: u32 = 65_535;

/// How often a request is sent again that the server says it has not looked at (RFC 9113 8.7): a server that refuses for ever shall
/// not be asked for ever.
pub const REFUSED_RETRY_COUNT_MAX: u32 = 32;

/// Most redirects followed for one request (`--follow`).
pub const REDIRECT_COUNT_MAX: u32 = 50;

/// Most connections of one load in one process: more than any machine's memory holds, so that the preflight, not this bound,
/// says what is missing.
pub const CONNECTION_COUNT_MAX: u32 = 1 << 24;

/// Most arrivals of an open model that wait for a connection in one shard, about 100 bytes each: what comes after them is never sent, and
/// counted as waiting.
pub const ARRIVALS_WAITING_MAX: u64 = 1 << 20;

/// Most arrivals per second that an open model may ask of one process.
pub const RATE_PER_S_MAX: f64 = 10_000_000.0;

/// Most saved runs kept in the user's state directory; the oldest go first.
pub const SAVED_RUN_COUNT_MAX: usize = 200;

/// How long a draining run waits for the answers that are still owed, unless `--timeout` is shorter.
pub const DRAIN_MAX: Duration = Duration::from_secs(30);

/// First pause before a user whose connection failed tries again; doubled up to [`RECONNECT_PAUSE_MAX`].
pub const RECONNECT_PAUSE_MIN: Duration = Duration::from_millis(10);

/// Longest pause before a user whose connection failed tries again.
pub const RECONNECT_PAUSE_MAX: Duration = Duration::from_secs(1);

/// A connection to the HTTP/3 that an origin has announced is given up after this time, or `--connect-timeout` if that is shorter: TCP takes its place.
pub const ALTERNATIVE_TIMEOUT: Duration = Duration::from_secs(3);

/// A connection that ends so that the next one tries an announced HTTP/3 is followed by another after this time, where no connection was opened:
/// idle ones may serve all requests. A user of a closed model opens the next one at once.
pub const ALTERNATIVE_DUE: Duration = Duration::from_millis(100);

/// First pause after an announced HTTP/3 could not be reached; doubled up to [`ALTERNATIVE_PAUSE_MAX`].
pub const ALTERNATIVE_PAUSE_MIN: Duration = Duration::from_secs(5);

/// Longest pause after an announced HTTP/3 could not be reached: what browsers begin with.
pub const ALTERNATIVE_PAUSE_MAX: Duration = Duration::from_secs(300);

/// A run whose every attempt to connect failed for this long is stopped: nothing is there to measure.
pub const UNREACHABLE_AFTER: Duration = Duration::from_secs(1);

/// Longest duration that any input may give: sums of a few of them stay far from the clock's own bounds.
pub const DURATION_MAX: Duration = Duration::from_secs(366 * 86_400);

/// Most session tickets that one thread keeps for one server name: more than handshakes are ever in flight.
pub const TICKET_COUNT_MAX: usize = 4096;

/// Most event-loop threads (`--threads`): beyond the CPUs of any machine.
pub const THREAD_COUNT_MAX: u32 = 1024;

/// Most local addresses used in rotation (`--source`): each has some 28,000 ports, so this many never run out.
pub const SOURCE_COUNT_MAX: usize = 65_536;

/// Largest list of URLs (`--urls`), in bytes: a million lines of 256 bytes.
pub const URLS_FILE_BYTES_MAX: u64 = 256 * 1024 * 1024;

/// Largest plan file, in bytes: a thousand loads take a tenth of it.
pub const PLAN_FILE_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// Most bytes that variables and aliases may add to a plan file: a dozen short lines that double each other would fill any memory.
pub const PLAN_FILLED_BYTES_MAX: usize = 4 * PLAN_FILE_BYTES_MAX as usize;

/// Largest module of a script, its own text included: what is longer is no program.
pub const SCRIPT_FILE_BYTES_MAX: u64 = 32 * 1024 * 1024;

/// Largest file that a script opens whole: a string of its engine cannot be longer. `k6/experimental/fs` and `csv` share the bytes
/// among all users.
pub const OPENED_FILE_BYTES_MAX: u64 = 1024 * 1024 * 1024;

/// Largest body of one response that a script may read, as it was sent and decoded, unless its `ext.squall.maxBodyBytes` says otherwise.
pub const BODY_BYTES_DEFAULT: u64 = 64 * 1024 * 1024;

/// Most bytes of response bodies that one virtual user holds.
pub const USER_BODIES_BYTES_MAX: u64 = 256 * 1024 * 1024;

/// Most bytes of response bodies that all virtual users of a process hold: half of a small machine.
pub const BODIES_BYTES_MAX: u64 = 2 * 1024 * 1024 * 1024;

/// Most streams (WebSockets and event streams) of one virtual user at a time: as many as there are ports to one server's address.
pub const USER_STREAM_COUNT_MAX: usize = 64 * 1024;

/// Most bytes of messages that one virtual user has not read yet, all its streams together: as much as one message may have by default.
pub const STREAM_INBOX_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Most bytes that wait for the socket of one WebSocket of a script, to which one more message may be added: a server that does not read must not
/// fill the memory.
pub const STREAM_UNSENT_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// How long messages wait that are to be published until all connections are open: longer than opening thousands of them takes.
pub const PUBLISH_WAIT_MAX: Duration = Duration::from_secs(5);

/// How long the first delivery of a published message is waited for when all have been sent: longer than any server that people wait for.
pub const FIRST_DELIVERY_MAX: Duration = Duration::from_secs(5);

/// Pings of one WebSocket whose answers are waited for: a server that answers none of them must not fill the memory.
pub const STREAM_PINGS_MAX: usize = 1024;

/// Longest line of an event stream that a script reads: as long as a message may be.
pub const EVENT_LINE_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Largest file of certificates or keys: bundles of all authorities have some 300 KB.
pub const PEM_FILE_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// Largest file of header lines (`--header @FILE`).
pub const HEADER_FILE_BYTES_MAX: u64 = REQUEST_HEAD_BYTES_MAX as u64;

/// Largest file of request bodies (`--body-lines`): all of them are kept in memory.
pub const BODY_LINES_BYTES_MAX: u64 = PREPARED_BYTES_MAX as u64;

/// Largest event of a stream that is read as one: what an API sends in one piece is far smaller.
pub const STREAM_EVENT_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Largest WebSocket message that is sent or received, decompressed: what browsers and most servers take is smaller.
pub const WEBSOCKET_MESSAGE_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// How long a stream that has ended waits before it is opened again, unless the server says otherwise (`retry:`).
pub const STREAM_RETRY_DEFAULT: Duration = Duration::from_secs(3);

/// Longest wait that a server may ask of a stream that is to be opened again.
pub const STREAM_RETRY_MAX: Duration = Duration::from_secs(3600);

/// Largest saved run: a day with a thousand rows has a tenth of it.
pub const RUN_FILE_BYTES_MAX: u64 = 512 * 1024 * 1024;

/// Largest program that is sent to an agent, and the most that a foreign tool may print or write: a build with all debug
/// information has half of it.
pub const PROGRAM_BYTES_MAX: u64 = 1024 * 1024 * 1024;

/// Most problems of a plan file that are reported at once: two screens, and those after them are often the same again.
pub const PROBLEM_COUNT_MAX: usize = 20;

/// Most machines of a plan: the controller keeps the figures of each.
pub const MACHINE_COUNT_MAX: usize = 10_000;

/// Most bytes of an answer of `kubectl`: the objects of [`MACHINE_COUNT_MAX`] pods are half of it.
pub const KUBECTL_OUTPUT_BYTES_MAX: u64 = 128 << 20;

/// Most logins by ssh at the same time: OpenSSH's default `MaxStartups` drops connections at random from the tenth on.
pub const LOGINS_AT_ONCE_MAX: usize = 8;

/// Most `kubectl exec` that are being established at the same time. Each takes about half a second, so that 1,000 pods are reached again
/// within 8 seconds of an API server's restart, less than the default `lost_after`; API servers serve 400 requests at once by default.
pub const EXECS_AT_ONCE_MAX: usize = 64;

/// Most tries of a login that the server drops before it: with the pauses between them they take eight seconds.
pub const LOGIN_TRY_COUNT_MAX: u32 = 5;

/// Most bytes that an agent keeps for a controller that does not receive them: an agent's usual second is 3 kB, the largest message is
/// half of it. An agent whose spool is full ends its loads.
pub const SPOOL_BYTES_MAX: usize = 128 << 20;

/// How long a machine may be silent before it is lost (`lost_after`), unless the plan says otherwise: time for a bastion to restart.
pub const LOST_AFTER_DEFAULT: Duration = Duration::from_secs(10);

/// Shortest `lost_after`: both ends give a sign of life each second.
pub const LOST_AFTER_MIN: Duration = Duration::from_secs(3);

/// Longest `lost_after`: for so long a load may go on without a controller.
pub const LOST_AFTER_MAX: Duration = Duration::from_secs(600);
