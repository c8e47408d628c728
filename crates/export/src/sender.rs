//! Sends each second somewhere, on a separate thread.
//!
//! The collector hands a moment over without waiting. While a slow receiver holds the thread up, older moments are dropped for newer
//! ones; counters are cumulative, so nothing but time resolution is lost. The last moment has the totals: it is sent whatever was
//! before, and the run's end waits for it no longer than [`FINISH_MAX`].

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs, UdpSocket};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use squall_measure::{RunRecord, RunRecorder};
use squall_plan::mask::masked_text;

use crate::figures::Moment;
use crate::queue::{NextMessage, Queue};
use crate::{Error, influx, otlp, prometheus, statsd};

/// Where figures go, and how they look there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PushKind {
    /// Prometheus remote write, to a URL.
    RemoteWrite,
    /// OTLP over HTTP with JSON, to a URL that ends in `/v1/metrics`.
    Otlp,
    /// InfluxDB's line protocol, to a URL.
    Influx,
    /// StatsD, to HOST:PORT over UDP.
    Statsd,
}

/// An output under way.
#[derive(Debug)]
pub struct Push {
    moments: Arc<Queue>,
    outcome: Receiver<Outcome>,
    /// The target without its secrets.
    shown: String,
    next_at: Duration,
    /// The run's time when it was last seen.
    seen_at: Duration,
    handed_count: u64,
}

/// What became of the moments.
#[derive(Debug, Default)]
struct Outcome {
    sent_count: u64,
    first_failure: Option<String>,
}

/// What carries a moment away.
enum Carrier {
    Http { agent: ureq::Agent, url: String, kind: PushKind, token: Option<String> },
    Udp { socket: UdpSocket, counters: statsd::SentCounters },
}

impl Push {
    /// Opens the output. `token`: for systems that want one in `Authorization`. Nothing is sent yet.
    ///
    /// # Errors
    /// When `target` cannot be sent to. Whether anyone answers there shows later, and never stops a run.
    pub fn start(kind: PushKind, target: &str, token: Option<String>) -> Result<Self, Error> {
        let carrier = Carrier::new(kind, target, token)?;
        let moments = Arc::new(Queue::default());
        let (teller, outcome) = mpsc::channel();
        let queue = Arc::clone(&moments);
        thread::Builder::new()
            .name("export".to_owned())
            // Nobody listens any more where the end has waited long enough.
            .spawn(move || drop(teller.send(carry(carrier, &queue))))
            .map_err(|source| Error::Os { what: "start a thread", source })?;
        let (shown, never) = (masked_text(target), Duration::ZERO);
        Ok(Self { moments, outcome, shown, next_at: never, seen_at: never, handed_count: 0 })
    }

    /// Hands the run's figures over, once a second; called as often as the caller likes.
    pub fn update(&mut self, recorder: &RunRecorder) {
        self.seen_at = recorder.elapsed();
        if self.seen_at >= self.next_at {
            self.next_at = self.seen_at + PERIOD;
            self.handed_count += 1;
            self.moments.push(Moment::of_recorder(recorder));
        }
    }

    /// Sends the last figures and ends; what could not be sent, in words.
    pub fn finish(self, record: &RunRecord) -> Option<String> {
        let Self { moments, outcome, shown, seen_at, handed_count, .. } = self;
        moments.end(Moment::of_record(record, seen_at), Instant::now());
        let whole = handed_count + 1;
        let Ok(outcome) = outcome.recv_timeout(FINISH_MAX) else {
            return Some(format!("the last of {whole} seconds did not reach `{shown}`: {TOO_SLOW}"));
        };
        let lost_count = whole - outcome.sent_count;
        let reason = outcome.first_failure.unwrap_or_else(|| TOO_SLOW.to_owned());
        (lost_count > 0).then(|| format!("{lost_count} of {whole} seconds did not reach `{shown}`: {reason}"))
    }
}

fn carry(mut carrier: Carrier, moments: &Queue) -> Outcome {
    let mut outcome = Outcome::default();
    let mut silent_until = Instant::now();
    while let Some(NextMessage { moment, is_last }) = moments.next() {
        if Instant::now() < silent_until && !is_last {
            continue;
        }
        match carrier.send(&moment) {
            Ok(()) => outcome.sent_count += 1,
            Err(reason) => {
                // A receiver that is not there would hold the end of the run up once for each second.
                silent_until = Instant::now() + RETRY_AFTER;
                outcome.first_failure.get_or_insert(reason);
            }
        }
    }
    outcome
}

impl Carrier {
    fn new(kind: PushKind, target: &str, token: Option<String>) -> Result<Self, Error> {
        let bad = |reason: String| Error::UserBadTarget { given: masked_text(target), reason };
        if kind == PushKind::Statsd {
            let socket = connected(target).map_err(|error| bad(error.to_string()))?;
            return Ok(Self::Udp { socket, counters: statsd::SentCounters::default() });
        }
        let url = url::Url::parse(target).map_err(|error| bad(error.to_string()))?;
        if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
            return Err(bad("not an http or https URL".to_owned()));
        }
        Ok(Self::Http { agent: agent(TIMEOUT), url: url.to_string(), kind, token })
    }

    fn send(&mut self, moment: &Moment) -> Result<(), String> {
        match self {
            Self::Udp { socket, counters } => {
                let datagrams = counters.datagrams(moment);
                for text in &datagrams.texts {
                    socket.send(text.as_bytes()).map_err(|error| error.to_string())?;
                }
                counters.commit(datagrams);
                Ok(())
            }
            Self::Http { agent, url, kind, token } => {
                let (headers, body) = request(*kind, moment);
                let mut post = agent.post(url.as_str());
                for (name, value) in headers {
                    post = post.header(*name, *value);
                }
                if let Some(token) = token {
                    post = post.header("Authorization", token.as_str());
                }
                post.send(&body[..]).map(drop).map_err(|error| reason(&error))
            }
        }
    }
}

/// A socket of the target's own family, IPv4 or IPv6; a name may have addresses of both.
fn connected(target: &str) -> io::Result<UdpSocket> {
    let mut refused = io::Error::new(io::ErrorKind::NotFound, "it has no address");
    for address in target.to_socket_addrs()? {
        let any: IpAddr = match address {
            SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        let socket = UdpSocket::bind((any, 0)).and_then(|socket| socket.connect(address).map(|()| socket));
        match socket {
            Ok(socket) => return Ok(socket),
            Err(error) => refused = error,
        }
    }
    Err(refused)
}

fn request(kind: PushKind, moment: &Moment) -> (&'static [(&'static str, &'static str)], Vec<u8>) {
    match kind {
        PushKind::RemoteWrite => (
            &[
                ("Content-Type", "application/x-protobuf"),
                ("Content-Encoding", "snappy"),
                ("X-Prometheus-Remote-Write-Version", "0.1.0"),
            ],
            prometheus::remote_write(moment),
        ),
        PushKind::Otlp => (&[("Content-Type", "application/json")], otlp::request(moment)),
        PushKind::Influx | PushKind::Statsd => {
            (&[("Content-Type", "text/plain; charset=utf-8")], influx::lines(moment))
        }
    }
}

/// Why a request of an [`agent`] failed, in the system's own words where they are its.
pub fn reason(error: &ureq::Error) -> String {
    match error {
        ureq::Error::Io(error) => error.to_string(),
        error => error.to_string(),
    }
}

/// An HTTP client for what is no load: certificates are verified by the system's store.
pub fn agent(timeout: Duration) -> ureq::Agent {
    let roots: Vec<_> = rustls_native_certs::load_native_certs()
        .certs
        .iter()
        .map(|cert| ureq::tls::Certificate::from_der(cert).to_owned())
        .collect();
    let tls = ureq::tls::TlsConfig::builder()
        .root_certs(ureq::tls::RootCerts::Specific(Arc::new(roots)))
        .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::aws_lc_rs::default_provider()))
        .build();
    ureq::Agent::config_builder()
        .tls_config(tls)
        .timeout_global(Some(timeout))
        .user_agent("squall")
        .proxy(None)
        .build()
        .into()
}

const PERIOD: Duration = Duration::from_secs(1);

/// A receiver that needs longer than this is not there.
const TIMEOUT: Duration = Duration::from_secs(3);

/// How long a receiver that failed is left alone.
const RETRY_AFTER: Duration = Duration::from_secs(5);

/// How long the run's end waits: for what is being sent, and then for the last moment.
const FINISH_MAX: Duration = Duration::from_secs(7);

const TOO_SLOW: &str = "the receiver was too slow";

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;

    use super::*;
    use crate::figures::tests::record;

    #[test]
    fn what_is_said_of_a_target_has_no_secrets() {
        for (kind, target, shown) in [
            (PushKind::Influx, "ftp://bob:secretpw@x/?token=t&db=d", "`ftp://***@x/?token=***&db=d`"),
            (PushKind::RemoteWrite, "http://bob:secretpw@[x/", "`http://***@[x/`"),
            (PushKind::Statsd, "bob:secretpw@x", "`***@x`"),
        ] {
            let said = Push::start(kind, target, None).unwrap_err().to_string();
            assert!(said.starts_with(&format!("cannot send to {shown}")), "{said}");
        }
        let push = Push::start(PushKind::Otlp, "http://bob:secretpw@127.0.0.1:1/", None).unwrap();
        assert_eq!(push.shown, "http://***@127.0.0.1:1/");
    }

    #[test]
    fn the_last_moment_is_sent_to_a_receiver_that_has_just_failed() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let target = format!("http://{}/", listener.local_addr().unwrap());
        let receiver = thread::spawn(move || {
            for answer in ["500 Internal Server Error", "204 No Content"] {
                let (mut stream, _) = listener.accept().unwrap();
                let _ = stream.read(&mut [0; 65_536]);
                let head = format!("HTTP/1.1 {answer}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
                stream.write_all(head.as_bytes()).unwrap();
            }
        });
        let mut push = Push::start(PushKind::Influx, &target, None).unwrap();
        push.moments.push(Moment::of_record(&record(), Duration::ZERO));
        push.handed_count = 1;
        let lost = push.finish(&record()).unwrap();
        assert!(lost.starts_with("1 of 2 seconds did not reach"), "{lost}");
        receiver.join().unwrap();
    }

    #[test]
    fn datagrams_reach_addresses_of_both_families() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            // Not every machine has IPv6.
            let Ok(receiver) = UdpSocket::bind(address) else { continue };
            let sender = connected(&receiver.local_addr().unwrap().to_string()).unwrap();
            sender.send(b"figures").unwrap();
            let mut bytes = [0; 16];
            assert_eq!(receiver.recv(&mut bytes).unwrap(), 7, "{address}");
        }
    }
}
