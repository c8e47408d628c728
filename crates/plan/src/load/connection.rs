//! How connections are made, and how TLS is spoken.

use std::fs::File;
use std::num::NonZeroU32;
use std::path::Path;

use crate::limits::WINDOW_BYTES_DEFAULT;
use crate::options::table::{
    ACK_FREQUENCY, ALPN, CACERT, CERT, CIPHERS, CLOSE, CONNECT_TIMEOUT, CONNECT_TO, CONNECTION_WINDOW,
    GROUPS, H2C, INSECURE, KEY, KEY_LOG, MAX_CONNECTION_AGE, MAX_UDP_PAYLOAD_SIZE, MIGRATE, NO_ECN, NO_GSO,
    NO_KEEPALIVE, PIPELINE, PROXY, QLOG, QPACK_TABLE, QUIC_CC, REQUESTS_PER_CONNECTION, RESOLVE, SNI,
    STREAMS, TLS, UDP_SOCKET_PER_CONNECTION, UNIX_SOCKET, WINDOW,
};
use crate::options::{LoadOption, Reading};
use crate::{
    ClientIdentity, CloseMode, ConnectionPolicy, H2c, Network, OptionProblem, Problems, QuicPolicy,
    TlsPolicy, TlsVersions,
};

/// How connections are kept and closed.
pub(super) fn connection_policy(given: &mut Reading<'_>) -> ConnectionPolicy {
    let request_count_max = given.one(&REQUESTS_PER_CONNECTION);
    ConnectionPolicy {
        request_count_max: if given.is_set(&NO_KEEPALIVE) {
            Some(NonZeroU32::MIN)
        } else {
            request_count_max
        },
        age_max: given.one(&MAX_CONNECTION_AGE),
        pipeline_depth: given.or_default(&PIPELINE),
        h2c: given.one(&H2C).unwrap_or(H2c::Prior),
        close: given.one(&CLOSE).unwrap_or(CloseMode::Notify),
        stream_count: given.or_default(&STREAMS),
        window_bytes: given.one(&WINDOW).unwrap_or(WINDOW_BYTES_DEFAULT),
        connection_window_bytes: given.one(&CONNECTION_WINDOW).unwrap_or(WINDOW_BYTES_DEFAULT),
        connect_timeout: given.or_default(&CONNECT_TIMEOUT),
        quic: QuicPolicy::default(),
    }
}

/// How QUIC is spoken. `is_spoken`: whether it is; `wanted_by`: the option that says so.
pub(super) fn quic_policy(given: &mut Reading<'_>, is_spoken: bool, wanted_by: &str) -> QuicPolicy {
    let options: [&LoadOption; 9] = [
        &QUIC_CC.option,
        &MAX_UDP_PAYLOAD_SIZE.option,
        &NO_GSO.option,
        &NO_ECN.option,
        &UDP_SOCKET_PER_CONNECTION.option,
        &ACK_FREQUENCY.option,
        &QPACK_TABLE.option,
        &MIGRATE.option,
        &QLOG.option,
    ];
    let unused: Vec<_> = options.into_iter().filter(|option| !is_spoken && given.has(option)).collect();
    for option in unused {
        let message = format!("`--{}` is for QUIC, which this load does not use", option.name);
        let help = format!("add `--{wanted_by}`, or remove it");
        given.take(Err::<(), _>(OptionProblem::of(option.name, message, help)));
    }
    QuicPolicy {
        congestion: given.one(&QUIC_CC).unwrap_or_default(),
        udp_payload_bytes_max: given.one(&MAX_UDP_PAYLOAD_SIZE),
        segmentation: !given.is_set(&NO_GSO),
        ecn: !given.is_set(&NO_ECN),
        socket_per_connection: given.is_set(&UDP_SOCKET_PER_CONNECTION),
        ack_frequency: given.one(&ACK_FREQUENCY),
        table_bytes: given.one(&QPACK_TABLE).unwrap_or(0),
        migration_interval: given.one(&MIGRATE),
        qlog_dir: given.one(&QLOG),
    }
}

/// Where packets go.
pub(super) fn network(given: &mut Reading<'_>) -> Network {
    Network {
        resolve: given.all(&RESOLVE),
        connect_to: given.all(&CONNECT_TO),
        unix_socket: given.one(&UNIX_SOCKET),
        sources: Vec::new(),
        proxy: given.one(&PROXY),
    }
}

/// How TLS is spoken by loads of requests.
pub(super) fn tls_policy(given: &mut Reading<'_>) -> TlsPolicy {
    let versions = given.one(&TLS).unwrap_or(TlsVersions::Any);
    TlsPolicy { versions, sni: given.one(&SNI), ..tls_settings(given) }
}

/// What every load that speaks TLS has in common. The files are opened here, so that a wrong path costs no run.
pub(super) fn tls_settings(given: &mut Reading<'_>) -> TlsPolicy {
    let ca_files = given.all(&CACERT);
    let (cert_file, key_file) = (given.one(&CERT), given.one(&KEY));
    let mut problems = Problems::default();
    for path in &ca_files {
        problems.take(readable("--cacert", path));
    }
    if let Some(path) = &cert_file {
        problems.take(readable("--cert", path));
    }
    if let Some(path) = &key_file {
        problems.take(readable("--key", path));
    }
    given.take(problems.end());
    let client_identity = cert_file.map(|cert_file| {
        let key_file = key_file.unwrap_or_else(|| cert_file.clone());
        ClientIdentity { cert_file, key_file }
    });
    let alpn = given.all(&ALPN);
    TlsPolicy {
        insecure: given.is_set(&INSECURE),
        ca_files,
        client_identity,
        ciphers: given.all(&CIPHERS),
        groups: given.all(&GROUPS),
        key_log: given.one(&KEY_LOG),
        alpn: if alpn.is_empty() { TlsPolicy::default().alpn } else { alpn },
        ..TlsPolicy::default()
    }
}

fn readable(flag: &str, path: &Path) -> Result<(), OptionProblem> {
    File::open(path).map(drop).map_err(|error| OptionProblem::file(flag, path, &error))
}
