//! Where packets go: names, sources, Unix sockets, proxies, certificates.

use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixListener;
use std::sync::mpsc::{self, Receiver};
use std::thread;

use squall_engine::{Control, Error, run};
use squall_measure::{Cause, Phase, Protocol, StoppedBy};
use squall_plan::{ConnectToRule, Proxy, ResolveRule};
use squall_server::{Options, Target, Tls};

use crate::plans::{assert_counts, closed, plan, record, with, with_http};

fn tls_target() -> Target {
    Target::start(&Options { tls: Some(Tls::SelfMade { names: Vec::new() }), ..Options::default() }).unwrap()
}

#[test]
fn names_lead_where_the_plan_says() {
    let target = Target::start(&Options::default()).unwrap();
    let SocketAddr::V4(address) = target.address() else { panic!("not IPv4") };
    let resolve = with(closed(&format!("http://shop.example:{}/", address.port()), 2, 20), |load| {
        load.network.resolve = vec![ResolveRule {
            host: Some("shop.example".to_owned()),
            port: None,
            addresses: vec![IpAddr::V4(*address.ip())],
        }];
    });
    assert_counts(&record(&resolve), 20, 0);
    let connect_to = with(closed("http://shop.example/", 2, 20), |load| {
        load.network.connect_to = vec![ConnectToRule {
            from_host: Some("shop.example".to_owned()),
            from_port: Some(80),
            to_host: Some(address.ip().to_string()),
            to_port: Some(address.port()),
        }];
    });
    assert_counts(&record(&connect_to), 20, 0);
}

#[test]
fn an_unknown_name_is_reported_before_the_run() {
    let error = run(
        &plan("http://no-such-name.invalid/"),
        &Control::new(),
        &mut |_: &squall_measure::RunRecorder| {},
    )
    .unwrap_err();
    assert!(
        matches!(&error, Error::NameNotResolved { host, .. } if host == "no-such-name.invalid"),
        "{error}"
    );
    assert!(!error.to_string().contains("Query"), "{error}");
    assert!(
        error.is_target_unreachable()
            && error.help(squall_plan::OptionStyle::Flags).unwrap().contains("no-such-name.invalid:80:")
    );
}

#[test]
fn a_refused_port_ends_the_run_as_unreachable() {
    let port = squall_testkit::free_port();
    let record = record(&closed(&format!("http://127.0.0.1:{port}/"), 2, 1_000_000));
    assert_eq!(record.stopped_by, StoppedBy::Unreachable);
    assert_eq!(record.total.ok(), 0);
    // Users whose connect failed rest before they try again.
    assert!(record.total.failed() >= 2 && record.total.failed() < 100, "{}", record.total.failed());
    assert!(record.total.failures.example(Cause::ConnectionRefused, Phase::Connecting).is_some());
    // Nothing was sent, and connecting took its time all the same.
    assert!(record.total.latency_failed.min().is_some_and(|ns| ns > 0));
}

#[test]
fn source_addresses_are_used_in_rotation() {
    let (addresses, listener) = (mpsc::channel(), TcpListener::bind("127.0.0.1:0").unwrap());
    let url = format!("http://{}/", listener.local_addr().unwrap());
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let _ = addresses.0.send(stream.peer_addr().unwrap().ip().to_string());
            let _ = stream.read(&mut [0; 1024]);
            let _ = stream.write_all(b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n");
        }
    });
    let plan = with(closed(&url, 1, 4), |load| {
        load.network.sources = vec!["127.0.0.21".parse().unwrap(), "127.0.0.22".parse().unwrap()];
    });
    assert_counts(&record(&plan), 4, 0);
    let seen: Vec<String> = addresses.1.try_iter().collect();
    assert_eq!(seen, ["127.0.0.21", "127.0.0.22", "127.0.0.21", "127.0.0.22"]);
}

#[test]
fn a_unix_socket_is_dialled_whatever_the_url_says() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("socket");
    let listener = UnixListener::bind(&path).unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            while stream.read(&mut [0; 1024]).is_ok_and(|count| count > 0) {
                let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
            }
        }
    });
    let plan = with(closed("http://localhost/", 1, 50), |load| load.network.unix_socket = Some(path.clone()));
    assert_counts(&record(&plan), 50, 0);
}

/// A proxy that tunnels `CONNECT`, or refuses it with these words; forwards nothing else but answers it; reports each request line.
fn proxy(refusal: Option<&'static str>) -> (SocketAddr, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (lines, seen) = mpsc::channel();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let (stream, lines) = (stream.unwrap(), lines.clone());
            thread::spawn(move || serve_proxy(stream, refusal, &lines));
        }
    });
    (address, seen)
}

fn serve_proxy(mut stream: TcpStream, refusal: Option<&str>, lines: &mpsc::Sender<String>) -> io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut head = Vec::new();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 {
            return Ok(());
        }
        if line == "\r\n" {
            break;
        }
        head.push(line.trim_end().to_owned());
    }
    let authorization = head.iter().find(|line| line.to_ascii_lowercase().starts_with("proxy-authorization"));
    let _ = lines.send(format!("{} | {}", head[0], authorization.map_or("", |line| line)));
    let Some(target) = head[0].strip_prefix("CONNECT ").and_then(|rest| rest.split(' ').next()) else {
        return stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok");
    };
    if let Some(refusal) = refusal {
        stream.write_all(refusal.as_bytes())?;
        // Without a length the answer lasts until the close, which is the client's.
        return io::copy(&mut stream, &mut io::sink()).map(drop);
    }
    let upstream = TcpStream::connect(target)?;
    stream.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n")?;
    let (mut from, mut to) = (upstream.try_clone()?, stream.try_clone()?);
    thread::spawn(move || io::copy(&mut from, &mut to).and_then(|_| to.shutdown(Shutdown::Write)));
    io::copy(&mut stream, &mut &upstream)?;
    upstream.shutdown(Shutdown::Write)
}

fn through(address: SocketAddr) -> Proxy {
    let authorization = Some("Basic dTpw".to_owned());
    Proxy { host: address.ip().to_string(), port: address.port(), authorization }
}

#[test]
fn a_proxy_tunnels_https_and_forwards_http() {
    let target = tls_target();
    let (address, seen) = proxy(None);
    let tunnelled = with(closed(&format!("https://{}/", target.address()), 2, 20), |load| {
        load.network.proxy = Some(through(address));
        load.tls.insecure = true;
    });
    let tunnelled = record(&tunnelled);
    assert_counts(&tunnelled, 20, 0);
    assert_eq!(tunnelled.rows[0].protocol, Protocol::Https11);
    let expected = format!("CONNECT {} HTTP/1.1 | Proxy-Authorization: Basic dTpw", target.address());
    assert_eq!(seen.try_iter().collect::<Vec<_>>(), vec![expected; 2]);
    let forwarded =
        with(plan("http://shop.example/a?b=c"), |load| load.network.proxy = Some(through(address)));
    assert_counts(&record(&forwarded), 1, 0);
    let expected = "GET http://shop.example/a?b=c HTTP/1.1 | Proxy-Authorization: Basic dTpw";
    assert_eq!(seen.recv().unwrap(), expected);
}

#[test]
fn a_proxy_that_refuses_is_a_cause_of_its_own() {
    let with_length = "HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n";
    let without_length = "HTTP/1.1 407 Proxy Authentication Required\r\n\r\nWho are you?";
    for refusal in [with_length, without_length] {
        let (address, _seen) = proxy(Some(refusal));
        let refused =
            with(closed("https://shop.example/", 1, 3), |load| load.network.proxy = Some(through(address)));
        let record = record(&refused);
        assert_counts(&record, 0, 3);
        let example = record.total.failures.example(Cause::ProxyRefused, Phase::Tunnelling).unwrap();
        assert_eq!(example.text, "the proxy answered CONNECT with status 407");
    }
}

#[test]
fn certificates_are_verified_unless_configured_otherwise() {
    let target = tls_target();
    let url = format!("https://localhost:{}/", target.address().port());
    let strict = record(&closed(&url, 1, 3));
    assert_counts(&strict, 0, 3);
    assert_eq!(strict.total.failures.count_of(Cause::TlsCertificate), 3);
    let folder = tempfile::tempdir().unwrap();
    let ca_file = folder.path().join("ca.pem");
    fs::write(&ca_file, target.certificate_pem().unwrap()).unwrap();
    let trusting = with(closed(&url, 2, 50), |load| load.tls.ca_files = vec![ca_file.clone()]);
    let record_trusting = record(&trusting);
    assert_counts(&record_trusting, 50, 0);
    assert_eq!(record_trusting.total.phases.tls_handshaking.count(), 2);
    let insecure = with(closed(&url, 2, 50), |load| load.tls.insecure = true);
    assert_counts(&record(&insecure), 50, 0);
}

#[test]
fn tls_settings_that_cannot_be_used_are_reported_before_the_run() {
    let error_of = |change: &dyn Fn(&mut squall_plan::Load)| {
        let plan = with(plan("https://127.0.0.1:1/"), |load| change(load));
        run(&plan, &Control::new(), &mut |_: &squall_measure::RunRecorder| {}).unwrap_err().to_string()
    };
    assert!(
        error_of(&|load| load.tls.ciphers = vec!["TLS_NULL".to_owned()])
            .contains("unknown cipher suite `TLS_NULL`")
    );
    assert!(
        error_of(&|load| load.tls.ca_files = vec!["/nonexistent.pem".into()]).contains("cannot read CA file")
    );
    assert!(
        error_of(&|load| load.tls.ca_files = vec!["/etc/hostname".into()])
            .contains("contains no certificate")
    );
    assert!(
        error_of(&|load| load.tls.sni = Some("not a name".to_owned()))
            .contains("cannot be a TLS server name")
    );
}

#[test]
fn more_connections_than_descriptors_are_refused_before_the_run() {
    let plan = closed("http://127.0.0.1:1/", 1_000_000_000, 10);
    let error = run(&plan, &Control::new(), &mut |_: &squall_measure::RunRecorder| {}).unwrap_err();
    assert!(matches!(error, Error::TooFewDescriptors { needed: 1_000_000_064, .. }), "{error}");
}

#[test]
fn requests_to_several_hosts_share_the_users() {
    let targets = [Target::start(&Options::default()).unwrap(), Target::start(&Options::default()).unwrap()];
    let url = |idx: usize| format!("http://{}/", targets[idx].address());
    let plan = with_http(closed(&url(0), 4, 100), |http| {
        let mut other = http.requests[0].clone();
        other.url = url(1).parse().unwrap();
        http.requests.push(other);
    });
    assert_counts(&record(&plan), 100, 0);
    let served = targets.map(|target| target.stop().requests);
    assert_eq!(served, [50, 50]);
}
