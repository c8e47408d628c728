//! Every option of every kind of load: a row for each, under the heading that the help has it under. The doc comment is the help.

use std::num::{NonZeroU16, NonZeroU32, NonZeroU64};
use std::path::PathBuf;
use std::time::Duration;

use url::Url;

use super::LoadType::{Handshake, Http, Idle, Recording, Replay, Script, Stream, WebSocket};
use super::ValueForm::{Number, Path, Rate, Size, Text, Time};
use super::Written::{AsFlag, AsLetter};
use super::values::{self, CsvPer, HeaderSource, PingWith, Tickets};
use super::{Hyphens, LoadOption, TypedOption, choice, file, option, switch, text};
use crate::endpoints::{parse_path, parse_weighted};
use crate::rules::{Source, parse_connect_to, parse_proxy, parse_resolve, parse_source, parse_statuses};
use crate::units::{Ramp, parse_duration, parse_ramp, parse_rate, parse_size};
use crate::urls::{parse_base, parse_method};
use crate::{
    Arrival, CloseMode, Compare, ConnectToRule, H2c, Header, HttpVersion, IdleProtocol, Pacing, Proxy,
    QuicCongestion, ResolveRule, ResumptionMode, StreamFormat, TlsVersions, Weighted,
};

/// A group of rows: the name of the list, the heading in the help, and the kinds of loads that have them.
macro_rules! options {
    ($list:ident, $group:literal, $kinds:expr; $($(#[doc = $doc:literal])+ $name:ident: $type:ty = $option:expr;)+) => {
        $(
            $(#[doc = $doc])+
            pub static $name: TypedOption<$type> = $option.within($group, $kinds, &[$($doc),+]);
        )+
        static $list: &[&LoadOption] = &[$(&$name.option),+];
    };
}

/// All rows, in the order of the help.
pub(super) static ALL: &[&[&LoadOption]] = &[
    URL_LIST,
    PLAY,
    LOAD,
    STREAMED,
    WEBSOCKET_LOAD,
    MESSAGES,
    HANDSHAKE_LOAD,
    IDLE_LOAD,
    REQUESTS_SENT,
    REPLAY_CHANGES,
    READING,
    RESUMED,
    AFTERWARDS,
    TALK,
    CONNECTED,
    DATAGRAMS,
    ENCRYPTED,
    SCRIPTED,
];

options! { URL_LIST, "", &[Http, Stream];
    /// Read URLs from a file, one `[METHOD ][WEIGHT@]URL` per line; `-` is stdin
    ///
    /// Blank lines and lines that start with `#` are skipped.
    URLS_FILE: PathBuf = file("urls");
}

options! { PLAY, "Replay", &[Replay];
    /// Replay speed relative to the recording, such as 10 or 0.5 [default: 1]
    SPEED: f64 = option("speed", "FACTOR", Text, values::speed).conflicts(&["rate", "asap"]);
    /// Replay as fast as responses arrive: each of --connections plays the whole recording
    ASAP: () = switch("asap").conflicts(&["rate", "users"]);
    /// Copies of the recorded clients to run at the same time [default: 1]
    REPLAY_USERS: NonZeroU32 = option("users", "N", Number, values::connections);
    /// Delay between the starts of consecutive copies [default: 10s / users]
    USER_SHIFT: Duration = option("user-shift", "TIME", Time, parse_duration).requires("users");
    /// Start again at the end, until --duration or --requests is reached
    LOOPS: () = switch("loop");
    /// Shorten longer pauses in the recording to this, before applying --speed
    MAX_GAP: Duration = option("max-gap", "TIME", Time, parse_duration).conflicts(&["rate", "asap"]);
    /// Do not wait for responses that a session waited for when it was recorded
    NO_ORDER: () = switch("no-order");
    /// Share connections, instead of one for each recorded connection
    POOLED: () = switch("pooled");
}

options! { LOAD, "Load", &[Http, Stream, Replay];
    /// Concurrent connections [default: 50]
    ///
    /// With --rate, the maximum [default: 1000]: an arrival that finds no free connection waits, and its latency includes the wait.
    CONNECTIONS: NonZeroU32 = option("connections", "N", Number, values::connections).short('c').of(&[Http, Stream]);
    /// Maximum concurrent connections [default: 1000]; with --asap, the number kept busy [default: 50]
    REPLAY_CONNECTIONS: NonZeroU32 = option("connections", "N", Number, values::connections).short('c').of(&[Replay]);
    /// How long to start new requests [default: 10s]
    ///
    /// With --ramp, the default is the ramp's length; with -n, there is no time limit unless one is given.
    DURATION: Duration = option("duration", "TIME", Time, values::time).short('d').of(&[Http, Stream]);
    /// Stop after this time [default: the end of the recording; 10s with --loop]
    REPLAY_DURATION: Duration = option("duration", "TIME", Time, values::time).short('d').of(&[Replay]);
    /// Number of requests to start; with -d, whichever limit is reached first
    REQUESTS: NonZeroU64 = option("requests", "N", Number, values::requests).short('n');
    /// Open model: start this many requests per second, such as 10k/s
    ///
    /// Requests follow the schedule whether or not the server keeps up, and latency counts from the scheduled start: a
    /// server that stalls shows in the percentiles.
    RATE: f64 = option("rate", "RATE", Rate, parse_rate).short('r');
    /// Ramp connections, users or the rate in stages: 10s:100,1m:1000
    ///
    /// Each stage is TIME:TARGET. The target is a rate with --rate, a number of users with --users, otherwise a number of connections. The value moves linearly to each target, starting at --rate, --users or --connections (default 1).
    RAMP: Ramp = option("ramp", "STAGES", Text, parse_ramp);
    /// Arrival process of the open model: constant or poisson
    ARRIVAL: Arrival = choice("arrival", "HOW").rare();
    /// How precisely the open model follows its schedule: precise, balanced or cheap [default: balanced]
    ///
    /// `precise` spins between arrivals and uses a whole CPU per thread; `balanced` sends in ticks of 0.8 ms, `cheap` in ticks of 1 ms.
    PACING: Pacing = choice("pacing", "HOW").rare();
    /// Generate load for this long before measuring, in addition to --duration
    WARMUP: Duration = option("warmup", "TIME", Time, parse_duration);
    /// Event-loop threads [default: one per CPU available to this process]
    THREADS: NonZeroU32 = option("threads", "N", Number, values::threads);
    /// Fail the run unless this holds, such as 'p(95)<200' (repeatable)
    ///
    /// The exit code is then 3. A rule is a metric, a comparison and a value; latencies are in milliseconds unless a unit is given.
    THRESHOLD: String = text("threshold", "RULE").many().written(AsFlag);
    /// Users who share the connections and wait for a free one [default: connections x streams]
    ///
    /// Each user sends its next request after the previous response. The wait is the phase `blocked`, as in k6, and not part of the latency. With --ramp, the stages set the number of users.
    USERS: NonZeroU32 = option("users", "N", Number, values::connections).conflicts(&["rate"]).of(&[Http, Stream]);
}

options! { HANDSHAKE_LOAD, "Load", &[Handshake];
    /// Concurrent connections, including held ones [default: 50]
    ///
    /// With --rate, the maximum [default: 1000, plus those that --hold keeps]: a handshake that finds no free one waits, and
    /// its latency includes the wait.
    HANDSHAKE_CONNECTIONS: NonZeroU32 = option("connections", "N", Number, values::handshake_connections).short('c');
    /// How long to start new handshakes [default: 10s]
    HANDSHAKE_DURATION: Duration = option("duration", "TIME", Time, values::time).short('d');
    /// Number of handshakes to start; with -d, whichever limit is reached first
    HANDSHAKES: NonZeroU64 = option("handshakes", "N", Number, values::requests).short('n');
    /// Open model: start this many handshakes per second, such as 1k/s
    ///
    /// Handshakes follow the schedule whether or not the server keeps up. Scheduled, started and completed ones are counted separately.
    HANDSHAKE_RATE: f64 = option("rate", "RATE", Rate, parse_rate).short('r');
    /// Ramp connections or the rate in stages: 10s:100,1m:1000
    HANDSHAKE_RAMP: Ramp = option("ramp", "STAGES", Text, parse_ramp);
    /// Arrival process of the open model: constant or poisson
    HANDSHAKE_ARRIVAL: Arrival = choice("arrival", "HOW").rare();
    /// How precisely the open model follows its schedule: precise, balanced or cheap [default: balanced]
    HANDSHAKE_PACING: Pacing = choice("pacing", "HOW").rare();
    /// Make handshakes for this long before measuring, in addition to --duration
    HANDSHAKE_WARMUP: Duration = option("warmup", "TIME", Time, parse_duration).rare();
    /// Event-loop threads [default: one per CPU available to this process]
    HANDSHAKE_THREADS: NonZeroU32 = option("threads", "N", Number, values::threads).short('t');
    /// Fail the run unless this holds, such as 'tls_handshaking: p(99)<20' (repeatable)
    HANDSHAKE_THRESHOLD: String = text("threshold", "RULE").many().written(AsFlag);
    /// As in tls-perf: connections per thread, with one thread unless -t is given
    PER_THREAD: NonZeroU32 = option("per-thread", "N", Number, values::connections).short('l').conflicts(&["connections", "rate", "ramp"]).rare().written(AsLetter);
    /// As in tls-perf: seconds for which to start handshakes
    SECONDS: Duration = option("seconds", "SECONDS", Time, values::seconds).short('T').conflicts(&["duration"]).rare().written(AsLetter);
}

options! { IDLE_LOAD, "Load", &[Idle];
    /// Connections for each local address [default: 1000]
    IDLE_CONNECTIONS: NonZeroU32 = option("connections", "N", Number, values::connections).short('c');
    /// Total duration, including the opening of connections [default: the opening plus 10s]
    IDLE_DURATION: Duration = option("duration", "TIME", Time, values::time).short('d');
    /// Open this many connections per second [default: as fast as the server accepts]
    OPEN_RATE: f64 = option("open-rate", "RATE", Rate, parse_rate);
    /// Minimum time between opening two connections from the same local address
    PAUSE: Duration = option("pause", "TIME", Time, values::time).conflicts(&["open-rate"]);
    /// Delay each connection and each ping by a random time of up to this
    JITTER: Duration = option("jitter", "TIME", Time, values::time);
    /// Do not reopen connections that the server closed
    NO_REOPEN: () = switch("no-reopen");
    /// How connections are closed at the end: rst, fin or notify [default: notify]
    IDLE_CLOSE: CloseMode = choice("close", "HOW").rare();
    /// Event-loop threads [default: one per CPU available to this process]
    IDLE_THREADS: NonZeroU32 = option("threads", "N", Number, values::threads).rare();
    /// Fail the run unless this holds, such as 'errors<1%' (repeatable)
    IDLE_THRESHOLD: String = text("threshold", "RULE").many().written(AsFlag);
}

options! { WEBSOCKET_LOAD, "Load", &[WebSocket];
    /// WebSockets to keep open [default: 50, or --publish and --subscribe together]
    WEBSOCKET_CONNECTIONS: NonZeroU32 = option("connections", "N", Number, values::connections).short('c');
    /// Total duration, including the opening of connections [default: 10s, or until --messages were echoed]
    WEBSOCKET_DURATION: Duration = option("duration", "TIME", Time, values::time).short('d');
    /// Open model: messages per second, of all connections together
    ///
    /// Messages follow the schedule whether or not they are answered, and their latency counts from the scheduled time.
    MESSAGE_RATE: f64 = option("rate", "RATE", Rate, parse_rate).short('r');
    /// Ramp connections in stages, or with --rate the rate: 10s:100,1m:1000
    WEBSOCKET_RAMP: Ramp = option("ramp", "STAGES", Text, parse_ramp);
    /// How messages of the open model are spaced: constant or poisson
    MESSAGE_ARRIVAL: Arrival = choice("arrival", "HOW").requires("rate").rare();
    /// How precisely the open model follows its schedule: precise, balanced or cheap [default: balanced]
    MESSAGE_PACING: Pacing = choice("pacing", "HOW").requires("rate").rare();
    /// Number of messages to send; the load ends when they are answered
    MESSAGE_COUNT: NonZeroU64 = option("messages", "N", Number, values::requests).short('n').conflicts(&["receive", "idle"]);
    /// Generate load for this long before measuring, in addition to --duration
    WEBSOCKET_WARMUP: Duration = option("warmup", "TIME", Time, parse_duration);
    /// Drop all connections this often, and open them again at once
    STORM: Duration = option("storm", "TIME", Time, values::time);
    /// Delay each opening and each ping by a random time of up to this
    WEBSOCKET_JITTER: Duration = option("jitter", "TIME", Time, values::time).rare();
    /// Do not reopen connections that the server closed
    WEBSOCKET_NO_REOPEN: () = switch("no-reopen");
    /// Event-loop threads [default: one per CPU available to this process]
    WEBSOCKET_THREADS: NonZeroU32 = option("threads", "N", Number, values::threads);
    /// Fail the run unless this holds, such as 'msg_latency: p(95)<50' (repeatable)
    WEBSOCKET_THRESHOLD: String = text("threshold", "RULE").many().written(AsFlag);
}

options! { MESSAGES, "Messages", &[WebSocket];
    /// Send messages and expect the same back; the default
    ECHO: () = switch("echo").conflicts(&["publish", "receive", "idle"]);
    /// Send messages with their time on this many connections; every connection that gets one measures its latency
    PUBLISH: NonZeroU32 = option("publish", "K", Number, values::connections).conflicts(&["receive", "idle"]);
    /// Connections that only receive, in addition to --publish
    SUBSCRIBE: NonZeroU32 = option("subscribe", "N", Number, values::connections).requires("publish").conflicts(&["connections"]);
    /// Send nothing, and count what the server sends
    RECEIVE: () = switch("receive").conflicts(&["idle", "rate"]);
    /// Keep connections silent, except for pings
    KEEP_IDLE: () = switch("idle").conflicts(&["rate"]);
    /// Message to send as text, or @FILE; a template, in which {stamp} is the time of sending
    ///
    /// {user} is the number of the connection, {unique} a number unique to the message, {now_ms} and {now_s} the current time,
    /// {csv.NAME} a column of --csv. Other braces are text, and {{user} is the text {user}.
    MESSAGE: String = text("message", "TEXT|@FILE").hyphens(Hyphens::Any);
    /// CSV file with a header row, whose columns --message uses as {csv.NAME}; each connection has a row
    MESSAGE_TABLE: PathBuf = file("csv");
    /// Send messages of this size instead [default: 32]
    MESSAGE_SIZE: u64 = option("size", "SIZE", Size, parse_size).conflicts(&["message"]);
    /// Send binary messages
    BINARY: () = switch("binary");
    /// First message on each connection, such as a subscription
    GREETING: String = text("first", "TEXT").hyphens(Hyphens::Any);
    /// Wait this long between an answer and the next message of a connection
    MESSAGE_PAUSE: Duration = option("pause", "TIME", Time, values::time).conflicts(&["rate", "receive", "idle"]);
    /// Ping a connection after this much silence
    WEBSOCKET_PING: Duration = option("ping", "TIME", Time, values::time);
    /// Offer compression (permessage-deflate)
    COMPRESS: () = switch("compress");
    /// Subprotocol to offer (repeatable)
    SUBPROTOCOL: String = option("subprotocol", "NAME", Text, values::header_name).many();
}

options! { STREAMED, "Stream", &[Stream];
    /// How a response is divided into events: sse, lines, pieces, or auto (by its Content-Type) [default: auto]
    ///
    /// `sse` is text/event-stream; with `lines` each line that is not empty is an event, such as JSON lines; with `pieces` each piece of the body as it arrives.
    EVENTS: StreamFormat = choice("events", "HOW");
    /// Data of the event that ends a stream, such as [DONE]; a stream that ends without it has ended early
    DONE: String = text("done", "TEXT");
    /// Close each stream this long after its head; it then counts as successful
    STREAM_HOLD: Duration = option("hold", "TIME", Time, values::time);
    /// Let open streams end at the end of the load, instead of closing those that have had an event
    FINISH: () = switch("finish");
    /// Open a stream again when it ends, with Last-Event-ID, after the server's `retry:` time [default: 3s]
    RECONNECT: () = switch("reconnect").conflicts(&["rate"]);
    /// Count streams that meet all of these rules as good, such as 'first<500ms,gap:p(95)<50ms'
    ///
    /// A rule is first (time to the first event), gap (time between two events, with p(N), avg, min or max), total (time to the end) or events (their number), a comparison and a limit.
    SLO: String = text("slo", "RULES");
    /// Time limit for silence: until the first byte of a response, and between two pieces of it
    STREAM_TIMEOUT: Duration = option("timeout", "TIME", Time, values::time).default("30s");
}

options! { REQUESTS_SENT, "Request", &[Http, Stream];
    /// Method [default: GET, or POST with a body]
    METHOD: String = option("method", "METHOD", Text, parse_method).short('X');
    /// Header field 'Name: value', or @FILE to read several (repeatable)
    ///
    /// The file has one field per line.
    HEADER: HeaderSource = option("header", "HEADER", Text, values::header_source).short('H').many().of(&[Http, Stream, WebSocket]);
    /// Request body
    BODY: String = text("body", "TEXT").hyphens(Hyphens::Any);
    /// File to stream as the body of each request
    BODY_FILE: PathBuf = file("body-file").conflicts(&["body"]);
    /// File of request bodies, one per line, sent in rotation
    ///
    /// Blank lines are skipped. Each body is kept in memory.
    BODY_LINES: PathBuf = file("body-lines").conflicts(&["body", "body-file", "form"]);
    /// Form field NAME=VALUE (repeatable)
    ///
    /// Sent URL-encoded, with `Content-Type: application/x-www-form-urlencoded` unless --header says otherwise.
    FORM: (String, String) = option("form", "FIELD", Text, values::field).many().conflicts(&["body", "body-file"]).hyphens(Hyphens::Any);
    /// Basic authorization
    BASIC: Header = option("basic", "USER:PASSWORD", Text, values::basic).rare().secret().of(&[Http, Stream, WebSocket]);
    /// Cookie NAME=VALUE (repeatable)
    COOKIE: String = option("cookie", "COOKIE", Text, values::cookie).many().rare().secret().of(&[Http, Stream, WebSocket]);
    /// User-Agent, [WEIGHT@]TEXT; several are sent in rotation (repeatable)
    USER_AGENT: Weighted<String> = option("user-agent", "TEXT", Text, values::user_agent).many().rare().of(&[Http, Stream, WebSocket]);
    /// Redirects to follow per request [default: 0, a redirect counts as the response]
    FOLLOW: u32 = option("follow", "N", Number, values::redirects).rare().of(&[Http]);
    /// Time limit from sending a request to the end of its response
    TIMEOUT: Duration = option("timeout", "TIME", Time, values::time).default("30s").of(&[Http]);
    /// Time limit for the answer to the opening handshake, to a message and to a ping
    WEBSOCKET_TIMEOUT: Duration = option("timeout", "TIME", Time, values::time).default("30s").of(&[WebSocket]);
    /// Statuses that count as success, such as 200,2xx,301-399 [default: 200-399]
    EXPECT_STATUS: Vec<(u16, u16)> = option("expect-status", "LIST", Text, parse_statuses).rare().of(&[Http]);
    /// Statuses that count as success, such as 200,2xx,301-399 [default: 200-299]
    STREAM_EXPECT_STATUS: Vec<(u16, u16)> = option("expect-status", "LIST", Text, parse_statuses).rare().of(&[Stream]);
    /// Fail responses whose body does not have this length
    EXPECT_BODY_BYTES: u64 = option("expect-body-bytes", "SIZE", Size, parse_size).rare().of(&[Http]);
    /// Fail responses whose body length differs from the first one's
    EXPECT_SAME_LENGTH: () = switch("expect-same-length").conflicts(&["expect-body-bytes"]).rare().of(&[Http]);
}

options! { REPLAY_CHANGES, "Request", &[Replay];
    /// Send all requests here instead of to the recorded server: http://host:port or http://host:port/prefix
    TO: Url = option("to", "URL", Text, parse_base);
    /// With --to: leave the fields Host, Origin and Referer as recorded
    KEEP_HOST: () = switch("keep-host").requires("to");
    /// Set a header field: 'Name: value' (repeatable)
    ///
    /// Values are templates: {user} is the number of the copy, {record} that of the request in the recording, {unique} a
    /// number unique to the request, {now_ms} and {now_s} the current time, {csv.NAME} a column of --csv; {{ is a brace.
    SET_HEADER: (String, String) = option("set-header", "HEADER", Text, values::header_pair).many();
    /// Remove a header field (repeatable)
    DROP_HEADER: String = option("drop-header", "NAME", Text, values::header_name).many();
    /// Set a parameter of the query: NAME=VALUE (repeatable)
    SET_QUERY: (String, String) = option("set-query", "PARAMETER", Text, values::pair).many();
    /// Set a field in forms that contain it, urlencoded or multipart: NAME=VALUE (repeatable)
    SET_FORM: (String, String) = option("set-form", "FIELD", Text, values::pair).many();
    /// Set a value in JSON bodies that contain it: /path/to/it=VALUE, where * is any name or index (repeatable)
    SET_JSON: (String, String) = option("set-json", "VALUE", Text, values::json_pair).many();
    /// Set a cookie: NAME=VALUE (repeatable)
    SET_COOKIE: (String, String) = option("set-cookie", "COOKIE", Text, values::cookie_pair).many();
    /// Replace what a regular expression matches in URLs and bodies: 'PATTERN=>TEXT' (repeatable)
    ///
    /// TEXT is a template in which $1 is the pattern's first group, and {{ a brace.
    REPLACE: (String, String) = option("replace", "RULE", Text, values::replacement).many();
    /// CSV file with a header row, whose columns templates use as {csv.NAME}
    CSV: PathBuf = file("csv");
    /// When to take the next row of --csv: for each user (a copy of the recorded clients) or each request
    CSV_PER: CsvPer = choice("csv-per", "WHO").default("user").requires("csv");
    /// Shift recorded timestamps to the present, in URLs, header fields and bodies
    ///
    /// ISO 8601 times and dates, and seconds or milliseconds since the epoch, that lie within a year of their request.
    SHIFT_TIMES: () = switch("shift-times");
    /// Give each copy unique ids in place of those that clients made up: UUIDs, or what this regular expression matches
    ///
    /// Within a copy the same id always maps to the same new id, of the same format. Ids from the server are handled by learning.
    UNIQUE_IDS: String = text("unique-ids", "PATTERN").or("");
    /// Re-sign JSON Web Tokens, valid from now, with the key in this file: RSA or EC (PEM), or a secret
    SIGN_JWT: PathBuf = file("sign-jwt");
    /// With --sign-jwt: set a claim, NAME=VALUE; a template (repeatable)
    JWT_CLAIM: (String, String) = option("jwt-claim", "CLAIM", Text, values::pair).many().requires("sign-jwt");
    /// Do not learn which response values reappear in later requests
    ///
    /// Session ids, tokens and ids of created objects are learned; live values replace the recorded ones.
    NO_LEARN: () = switch("no-learn");
    /// What to compare with the recorded response: nothing, status or body
    COMPARE: Compare = choice("compare", "WHAT").default("status");
    /// Time limit from sending a request to the end of its response
    REPLAY_TIMEOUT: Duration = option("timeout", "TIME", Time, values::time).default("30s");
}

options! { READING, "Reading", &[Replay, Recording];
    /// Format of the recording [default: detected from its content]
    ///
    /// har, gor, rrpair, rrpair-md, log, mitmproxy, curl, postman or squall.
    FORMAT: String = text("format", "FORMAT");
    /// Line format of an access log [default: detected, else combined]
    ///
    /// nginx's variables ($time_local, $request, ...), Apache's (%t, %r, ...), or a name: combined, common, alb, elb, cloudfront, iis,
    /// haproxy, caddy or traefik. Timestamps are taken as the end of the request, or with Apache's variables as its start.
    LOG_PATTERN: String = text("log-pattern", "PATTERN");
    /// Fields of a JSON access log: ts=NAME,method=NAME,url=NAME,...
    ///
    /// Names may lead into objects (request.uri). Fields are ts (when the request ended) or start, method, url, query, host, scheme,
    /// status, duration (seconds; also duration_ms, _us, _ns), client, session, user_agent, referer, headers, header.NAME, body.
    LOG_JSON: String = text("log-json", "FIELDS").conflicts(&["log-pattern"]);
    /// Values of a Postman collection's variables: an exported environment, or lines of NAME=VALUE (repeatable)
    ENV_FILE: PathBuf = file("env-file").many();
    /// Skip records that cannot be read
    SKIP_BAD: () = switch("skip-bad");
    /// Only requests to this host, such as api.example or *.example (repeatable)
    ONLY_HOST: String = text("only-host", "HOST").many();
    /// Only requests whose path starts with this (repeatable)
    ONLY_PATH: String = text("only-path", "PATH").many();
    /// What identifies a client: auto, cookie:NAME, header:NAME, address or connection [default: as recorded, else auto]
    ///
    /// auto: the cookie or token that a response gave, else a session cookie, Authorization, X-Forwarded-For, or the connection.
    SESSION_BY: String = text("session-by", "WHAT");
    /// Pipe each record through this shell command, as one line of JSON in each direction
    ///
    /// Its keys are method, url, headers ([[name, value], ...]), body or body_base64. The command answers each line, in order, with an
    /// object of its changes ({} for none), or with null to drop the record.
    PIPE: String = text("pipe", "COMMAND");
}

options! { RESUMED, "Handshake", &[Handshake];
    /// Resume earlier sessions: by id or ticket in TLS 1.2, by ticket or psk in TLS 1.3; or off [default: off]
    ///
    /// `id` needs TLS 1.2, `psk` TLS 1.3; `ticket` works with both. Actual resumptions are counted, as reported by the TLS library.
    RESUMPTION: ResumptionMode = choice("resumption", "HOW");
    /// Share of the handshakes that try to resume: 0 to 1, or a percentage [default: 1]
    RESUMPTION_RATIO: f64 = option("resumption-ratio", "SHARE", Text, values::share).requires("resumption");
    /// Send the request of resumed TLS 1.3 handshakes as early data (0-RTT) if the ticket allows it
    ///
    /// Rejected early data is sent again after the handshake. Both are counted, as reported by the TLS library.
    EARLY_DATA: () = switch("early-data");
    /// As in tls-perf: on is --resumption ticket; advertise offers tickets and resumes nothing; or off
    TICKETS: Tickets = choice("tickets", "HOW").conflicts(&["resumption"]).rare();
}

options! { AFTERWARDS, "After the handshake", &[Handshake];
    /// Make one HTTP/1.1 GET request for this path on each connection
    REQUEST: String = option("request", "PATH", Text, parse_path);
    /// Time limit from sending the request to the end of the response
    HANDSHAKE_TIMEOUT: Duration = option("timeout", "TIME", Time, values::time).default("30s").rare();
    /// Keep each connection open for this long afterwards
    HOLD: Duration = option("hold", "TIME", Time, values::time);
    /// How connections are closed: rst, fin or notify [default: rst]
    ///
    /// `rst` resets them, which leaves no port in TIME_WAIT; `fin` only closes TCP; `notify` sends close_notify first.
    HANDSHAKE_CLOSE: CloseMode = choice("close", "HOW");
}

options! { TALK, "What is said", &[Idle];
    /// Make one HTTP/1.1 GET request for this path before going idle; the default path is /
    AFTER_REQUEST: String = option("after-request", "PATH", Text, parse_path).or("/");
    /// HTTP version [default: 1]; with 2, exchange settings and answer the server's pings
    IDLE_HTTP: IdleProtocol = choice("http", "VERSION");
    /// Send a ping after this much idle time
    PING: Duration = option("ping", "TIME", Time, values::time);
    /// What to send as a ping: byte or request [default: request; with --http 2, a PING frame]
    PING_WITH: PingWith = choice("ping-with", "WHAT").requires("ping");
    /// Time limit for the response to a request or a ping
    IDLE_TIMEOUT: Duration = option("timeout", "TIME", Time, values::time).default("30s").rare();
}

options! { CONNECTED, "Connection", &[Http, Stream, Replay];
    /// Open a new connection for each request
    NO_KEEPALIVE: () = switch("no-keepalive").conflicts(&["requests-per-connection"]);
    /// Close a connection after this many requests
    REQUESTS_PER_CONNECTION: NonZeroU32 = option("requests-per-connection", "N", Number, values::count).rare();
    /// Close a connection older than this, after its current response
    MAX_CONNECTION_AGE: Duration = option("max-connection-age", "TIME", Time, values::time).rare();
    /// How connections are closed: rst, fin or notify [default: notify]
    ///
    /// `notify` sends GOAWAY and TLS close_notify first; `fin` only closes TCP; `rst` resets the connection, which leaves no port in TIME_WAIT.
    CLOSE: CloseMode = choice("close", "HOW").rare();
    /// How connections are closed after their close frame: rst, fin or notify [default: notify]
    WEBSOCKET_CLOSE: CloseMode = choice("close", "HOW").rare().of(&[WebSocket]);
    /// HTTP version: 1.1, 2, 3 or auto (what the server offers) [default: 1.1]
    ///
    /// Over TLS the version is negotiated by ALPN; `2` fails if the server does not support it. Over plain TCP, `2` is h2c by prior
    /// knowledge and `auto` is 1.1. `3` is HTTP/3 over QUIC, for https URLs. `auto` begins with 2 or 1.1 over TLS, and moves to 3 once the
    /// server announces it (Alt-Svc). A URL with the scheme `h2` (TLS), `h2c` (plain TCP) or `h3` (QUIC) implies the version.
    HTTP: HttpVersion = choice("http", "VERSION").of(&[Http, Stream]);
    /// HTTP version that carries the WebSockets: 1.1, 2 or 3 [default: 1.1]
    ///
    /// With `2` (RFC 8441) and `3` (RFC 9220), each WebSocket is a stream of a connection, opened by an extended CONNECT, which the
    /// server must offer. For ws URLs, `2` is h2c by prior knowledge; `3` needs a wss URL.
    WEBSOCKET_HTTP: HttpVersion = choice("http", "VERSION").of(&[WebSocket]);
    /// HTTP version: 1.1, 2, 3 or auto (1.1 or 2, as the server chooses) [default: auto]
    REPLAY_HTTP: HttpVersion = choice("http", "VERSION").of(&[Replay]);
    /// Use HTTP/2 for http URLs: by prior knowledge, or with --h2c=upgrade by an HTTP/1.1 upgrade
    ///
    /// The upgrade request is an `OPTIONS *` at the start of each connection, and is not counted.
    H2C: H2c = choice("h2c", "HOW").or("prior").rare();
    /// Concurrent requests per HTTP/2 or HTTP/3 connection, up to the server's limit
    STREAMS: NonZeroU32 = option("streams", "N", Number, values::streams).default("1").of(&[Http, Stream]);
    /// WebSockets per HTTP/2 or HTTP/3 connection, up to the server's limit
    WEBSOCKET_STREAMS: NonZeroU32 = option("streams", "N", Number, values::streams).default("1").of(&[WebSocket]);
    /// Concurrent requests per HTTP/2 or HTTP/3 connection, up to the server's limit [default: 100]
    REPLAY_STREAMS: NonZeroU32 = option("streams", "N", Number, values::streams).of(&[Replay]);
    /// HTTP/2 and HTTP/3: flow-control window of each stream [default: 1GiB; HTTP/3: 16MiB]
    WINDOW: u32 = option("window", "SIZE", Size, values::stream_window).rare().of(&[Http, Stream, WebSocket, Replay]);
    /// HTTP/2 and HTTP/3: flow-control window of each connection [default: 1GiB; HTTP/3: 64MiB]
    CONNECTION_WINDOW: u32 = option("connection-window", "SIZE", Size, values::connection_window).rare().of(&[Http, Stream, WebSocket, Replay]);
    /// Pipelined requests in flight per HTTP/1.1 connection
    PIPELINE: NonZeroU32 = option("pipeline", "N", Number, values::pipeline).default("1").conflicts(&["no-keepalive", "rate"]).rare().of(&[Http, Replay]);
    /// Time limit for opening a connection, including proxy and TLS handshakes
    CONNECT_TIMEOUT: Duration = option("connect-timeout", "TIME", Time, values::time).default("10s").rare().of(&[Http, Stream, WebSocket, Replay]);
    /// Time limit for opening a connection, including the TLS handshake
    SESSION_CONNECT_TIMEOUT: Duration = option("connect-timeout", "TIME", Time, values::time).default("10s").rare().of(&[Handshake, Idle]);
    /// Connect to another host, HOST:PORT:HOST:PORT, keeping the Host header and SNI, as in curl (repeatable)
    CONNECT_TO: ConnectToRule = option("connect-to", "RULE", Text, parse_connect_to).many().rare().of(&[Http, Stream, WebSocket, Replay]);
    /// Use this address for a name, HOST:PORT:ADDRESS[,ADDRESS], as in curl (repeatable)
    RESOLVE: ResolveRule = option("resolve", "RULE", Text, parse_resolve).many().rare().of(&[Http, Stream, WebSocket, Handshake, Idle, Replay]);
    /// Connect to this Unix socket instead of the URL's host
    UNIX_SOCKET: PathBuf = option("unix-socket", "PATH", Path, values::path).conflicts(&["connect-to", "resolve", "proxy", "source"]).rare().of(&[Http, Stream, WebSocket, Replay]);
    /// Local addresses to use in rotation: IP, IP-IP, IP/PREFIX or nic:eth* (repeatable)
    ///
    /// Each local address provides about 28,000 ports per server address.
    SOURCE: Source = option("source", "ADDRESSES", Text, parse_source).many().rare().of(&[Http, Stream, WebSocket, Replay]);
    /// Local addresses to use in rotation: IP, IP-IP, IP/PREFIX or nic:eth* (repeatable)
    ///
    /// Each local address provides about 28,000 ports per server address.
    SESSION_SOURCE: Source = option("source", "ADDRESSES", Text, parse_source).many().of(&[Handshake, Idle]);
    /// Use the addresses of all interfaces with this name prefix; same as --source nic:PREFIX* (repeatable)
    BIND_TO_NICS: String = text("bind-to-nics", "PREFIX").many().rare().of(&[Handshake, Idle]);
    /// HTTP proxy: CONNECT for https, absolute URLs for http; environment variables are ignored
    PROXY: Proxy = option("proxy", "URL", Text, parse_proxy).rare().of(&[Http, Stream, WebSocket, Replay]);
}

options! { DATAGRAMS, "QUIC", &[Http, Stream, WebSocket, Handshake, Idle, Replay];
    /// Make QUIC handshakes, as HTTP/3 does, instead of TLS handshakes over TCP
    ///
    /// The ALPN protocol is `h3` unless --alpn says otherwise.
    HANDSHAKE_QUIC: () = switch("quic").of(&[Handshake]);
    /// Open QUIC connections; pings are QUIC PING frames
    IDLE_QUIC: () = switch("quic").conflicts(&["tls", "http", "after-request", "ping-with", "close"]).of(&[Idle]);
    /// Congestion controller: cubic, bbr or newreno [default: cubic]
    QUIC_CC: QuicCongestion = choice("quic-cc", "NAME").rare();
    /// Largest UDP payload to send [default: what the path carries, up to 1452 bytes]
    MAX_UDP_PAYLOAD_SIZE: NonZeroU16 = option("max-udp-payload-size", "SIZE", Size, values::udp_payload).rare();
    /// Send each datagram separately instead of letting the kernel segment larger ones (UDP GSO)
    NO_GSO: () = switch("no-gso").rare();
    /// Do not use explicit congestion notification
    NO_ECN: () = switch("no-ecn").rare();
    /// One UDP socket, and so one local port, for each connection
    ///
    /// By default the connections of a thread share a socket for each server address, which takes fewer system calls. Some
    /// servers and load balancers tell connections apart by their ports.
    UDP_SOCKET_PER_CONNECTION: () = switch("udp-socket-per-connection").rare();
    /// Ask the server to acknowledge at the latest every Nth packet [default: 2]
    ///
    /// Servers that do not support QUIC's ACK frequency extension are not asked.
    ACK_FREQUENCY: NonZeroU32 = option("ack-frequency", "N", Number, values::ack_frequency).rare();
    /// Let the server keep a dynamic table of this size for the fields of its responses (QPACK) [default: 0, none]
    QPACK_TABLE: u32 = option("qpack-table", "SIZE", Size, values::qpack_table).rare().of(&[Http, Stream, Replay]);
    /// Move open connections to another local port, or address of --source, this often
    ///
    /// As when a phone changes its network. What arrives on the new path afterwards shows that a connection has survived.
    MIGRATE: Duration = option("migrate", "TIME", Time, values::migrate).rare();
    /// Write qlog files into this directory: one for each of the first 100 connections, of 10 MB at most
    QLOG: PathBuf = option("qlog", "DIR", Path, values::path).rare();
}

options! { ENCRYPTED, "TLS", &[Http, Stream, WebSocket, Handshake, Idle, Replay];
    /// Use TLS; --tls=1.2 or --tls=1.3 offers only that version
    IDLE_TLS: TlsVersions = choice("tls", "VERSION").or("any").of(&[Idle]);
    /// Do not verify the server's certificate
    INSECURE: () = switch("insecure");
    /// Trust these certificates (PEM) instead of the system's (repeatable)
    CACERT: PathBuf = file("cacert").many().rare();
    /// Client certificate chain (PEM), for mutual TLS
    CERT: PathBuf = file("cert").rare();
    /// Private key of --cert (PEM) [default: read from the --cert file]
    KEY: PathBuf = file("key").requires("cert").rare();
    /// Cipher suites to offer, as comma-separated IANA names
    CIPHERS: String = text("ciphers", "LIST").list().rare();
    /// Key-exchange groups to offer, separated by commas [default: X25519,secp256r1,secp384r1]
    ///
    /// Post-quantum hybrids are X25519MLKEM768 and SECP256R1MLKEM768.
    GROUPS: String = text("groups", "LIST").list().rare();
    /// Append TLS session secrets to this file in NSS key-log format, for decrypting captures
    KEY_LOG: PathBuf = option("key-log", "FILE", Path, values::path).rare();
    /// ALPN protocols to offer, separated by commas [default: from the HTTP version]
    ALPN: String = text("alpn", "LIST").list().rare();
    /// TLS version to offer: 1.2, 1.3 or any [default: any]
    TLS: TlsVersions = choice("tls", "VERSION").rare().of(&[Http, Stream, WebSocket, Replay]);
    /// Server name to send and verify instead of the URL's host
    SNI: String = text("sni", "NAME").rare().of(&[Http, Stream, WebSocket, Replay]);
    /// TLS version to offer: 1.2, 1.3 or any [default: any]
    HANDSHAKE_TLS: TlsVersions = choice("tls", "VERSION").of(&[Handshake]);
    /// Server name to send and verify instead of the host, [WEIGHT@]NAME (repeatable)
    HANDSHAKE_SNI: Weighted<String> = option("sni", "NAME", Text, parse_weighted).many().of(&[Handshake]);
    /// Server name to send and verify instead of the host
    IDLE_SNI: String = text("sni", "NAME").rare().of(&[Idle]);
    /// Keep each full TLS session, not only what is needed to close it
    ///
    /// A silent connection needs a few bytes, a full session several kilobytes. Only a full session can process what the
    /// server sends, such as key updates.
    KEEP_SESSIONS: () = switch("keep-sessions").requires("tls").rare().of(&[Idle]);
}

options! { SCRIPTED, "k6 scripts", &[Script];
    /// Virtual users
    SCRIPT_VUS: i64 = option("vus", "N", Number, values::signed).short('u').hyphens(Hyphens::Numbers);
    /// How long virtual users iterate
    SCRIPT_DURATION: String = text("duration", "TIME").short('d').hyphens(Hyphens::Any);
    /// Total iterations, shared by the virtual users
    SCRIPT_ITERATIONS: i64 = option("iterations", "N", Number, values::signed).short('i').hyphens(Hyphens::Numbers);
    /// Stage of a ramp of virtual users, TIME:TARGET (repeatable)
    SCRIPT_STAGE: String = text("stage", "TIME:N").short('s').hyphens(Hyphens::Any).many();
    /// Environment variable for the script's __ENV, NAME=VALUE (repeatable)
    SCRIPT_ENV: String = option("env", "NAME=VALUE", Text, values::variable).short('e').many();
    /// Tag to add to every sample, NAME=VALUE (repeatable)
    SCRIPT_TAG: (String, String) = option("tag", "NAME=VALUE", Text, values::pair).many();
    /// Maximum requests per second across all virtual users
    SCRIPT_RPS: f64 = option("rps", "N", Rate, values::signed_rate).hyphens(Hyphens::Numbers);
    /// Maximum concurrent requests in a batch
    SCRIPT_BATCH: i64 = option("batch", "N", Number, values::signed).hyphens(Hyphens::Numbers);
    /// Maximum connections from one virtual user to one host
    SCRIPT_BATCH_PER_HOST: i64 = option("batch-per-host", "N", Number, values::signed).hyphens(Hyphens::Numbers);
    /// Maximum number of redirects to follow
    SCRIPT_MAX_REDIRECTS: i64 = option("max-redirects", "N", Number, values::signed).hyphens(Hyphens::Numbers);
    /// User-Agent for requests that set none
    SCRIPT_USER_AGENT: String = text("user-agent", "TEXT");
    /// Minimum duration of an iteration
    SCRIPT_MIN_ITERATION_DURATION: String = text("min-iteration-duration", "TIME").hyphens(Hyphens::Any);
    /// Do not verify certificates
    SCRIPT_INSECURE_SKIP_TLS_VERIFY: () = switch("insecure-skip-tls-verify");
    /// Do not keep bodies of responses
    SCRIPT_DISCARD_RESPONSE_BODIES: () = switch("discard-response-bodies");
    /// Open a new connection for each request
    SCRIPT_NO_CONNECTION_REUSE: () = switch("no-connection-reuse");
    /// Open new connections for each iteration
    SCRIPT_NO_VU_CONNECTION_REUSE: () = switch("no-vu-connection-reuse");
    /// Throw an exception when a request fails
    SCRIPT_THROWS: () = switch("throw").short('w');
    /// Do not call setup()
    SCRIPT_NO_SETUP: () = switch("no-setup");
    /// Do not call teardown()
    SCRIPT_NO_TEARDOWN: () = switch("no-teardown");
    /// Do not evaluate thresholds
    SCRIPT_NO_THRESHOLDS: () = switch("no-thresholds");
    /// Statistics shown for trends, such as avg,p(99)
    SCRIPT_SUMMARY_TREND_STATS: String = text("summary-trend-stats", "LIST");
    /// Unit of times in the summary: s, ms or us
    SCRIPT_SUMMARY_TIME_UNIT: String = text("summary-time-unit", "UNIT");
    /// System tags that samples carry
    SCRIPT_SYSTEM_TAGS: String = text("system-tags", "LIST");
    /// HTTP version: 1.1, 2, 3 or auto; takes precedence over the script's own `ext.squall`
    SCRIPT_HTTP: HttpVersion = choice("http", "VERSION");
    /// Local addresses that virtual users connect from
    SCRIPT_LOCAL_IPS: String = text("local-ips", "LIST");
    /// Which of a name's addresses are used, such as select=first,policy=onlyIPv4
    SCRIPT_DNS: String = text("dns", "LIST");
    /// Part of the test that this process runs, FROM:TO, such as 0:1/3
    SCRIPT_EXECUTION_SEGMENT: String = text("execution-segment", "FROM:TO");
    /// Boundaries of all parts of the test, such as 0,1/3,2/3,1
    SCRIPT_EXECUTION_SEGMENT_SEQUENCE: String = text("execution-segment-sequence", "LIST");
    /// IP range that the script may not connect to (repeatable)
    SCRIPT_BLACKLIST_IP: String = text("blacklist-ip", "CIDR").list();
    /// Host names that the script may not connect to, such as *.example.com (repeatable)
    SCRIPT_BLOCK_HOSTNAMES: String = text("block-hostnames", "PATTERN").list();
    /// JSON file of options
    SCRIPT_CONFIG: PathBuf = file("config");
    /// Hide squall's own environment variables from the script
    SCRIPT_NO_SYSTEM_ENV_VARS: () = switch("no-system-env-vars");
    /// Keep every trend value, for exact percentiles; memory use grows with the run
    SCRIPT_EXACT: () = switch("exact");
    /// Event-loop threads [default: one per CPU available to this process]
    SCRIPT_THREADS: NonZeroU32 = option("threads", "N", Number, values::threads);
    /// Accepted for compatibility with k6; has no effect
    SCRIPT_INCLUDE_SYSTEM_ENV_VARS: () = switch("include-system-env-vars").hidden();
    /// Accepted for compatibility with k6, with a warning
    SCRIPT_HTTP_DEBUG: String = text("http-debug", "").or("headers").hidden();
}
