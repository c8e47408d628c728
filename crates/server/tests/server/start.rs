//! Starting, stopping, and what may go wrong at it.

use std::{io::ErrorKind, path::PathBuf};

use squall_server::{Error, Options, Target, Tls};

use crate::client::{Client, start};

#[test]
fn stop_is_prompt_and_frees_the_address() {
    let target = start();
    let address = target.address();
    let mut idle = Client::connect(address);
    let mut hanging = Client::connect(address);
    hanging.write("GET /hang HTTP/1.1\r\nHost: a\r\n\r\n");
    let mut flooding = Client::connect(address);
    flooding.write("GET /bytes/1073741824 HTTP/1.1\r\nHost: a\r\n\r\n");
    flooding.read_head().unwrap();
    // Neither of them ends without a signal.
    target.stop();
    assert!(idle.is_closed());
    let again = Target::start(&Options { listen: address, ..Options::default() }).unwrap();
    assert_eq!(Client::connect(again.address()).get("/").status, 200);
}

#[test]
fn taken_address_is_said_to_be_in_use() {
    let first = start();
    let error = Target::start(&Options { listen: first.address(), ..Options::default() }).err().unwrap();
    assert!(matches!(error, Error::AddressInUse { .. }), "{error:?}");
    assert_eq!(error.to_string(), format!("cannot listen on {}: the address is in use", first.address()));
    assert_eq!(error.help(), Some("choose another port, or port 0 for a free one"));
}

#[test]
fn foreign_address_is_refused_with_the_reason() {
    let listen = "192.0.2.1:0".parse().unwrap(); // RFC 5737: no host has it
    let error = Target::start(&Options { listen, ..Options::default() }).err().unwrap();
    assert!(
        matches!(&error, Error::Listen { source, .. } if source.kind() == ErrorKind::AddrNotAvailable),
        "{error:?}"
    );
    assert!(error.help().is_some());
}

#[test]
fn unusable_files_are_named() {
    let missing = PathBuf::from("/nowhere/file");
    let empty = std::env::temp_dir().join(format!("squall-server-{}.pem", std::process::id()));
    std::fs::write(&empty, "nothing").unwrap();
    let pem = |path: &PathBuf| Some(Tls::Pem { certificate: path.clone(), key: path.clone() });
    let check = |options: Options, expected: &str| {
        let message = Target::start(&options).err().unwrap().to_string();
        assert!(message.starts_with(expected), "{message}");
    };
    check(Options { tls: pem(&missing), ..Options::default() }, "cannot use /nowhere/file as a PEM file: ");
    let no_item = format!("cannot use {} as a PEM file: it contains no certificate", empty.display());
    check(Options { tls: pem(&empty), ..Options::default() }, &no_item);
    check(Options { log: Some(missing), ..Options::default() }, "cannot write the log /nowhere/file: ");
    std::fs::remove_file(&empty).unwrap();
}

#[test]
fn names_that_no_certificate_can_carry_are_refused() {
    let tls = Some(Tls::SelfMade { names: vec!["ä".to_owned()] });
    let error = Target::start(&Options { tls, ..Options::default() }).err().unwrap();
    assert!(matches!(error, Error::Certificate(_)), "{error:?}");
}
