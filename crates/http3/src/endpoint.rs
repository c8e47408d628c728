//! The UDP socket of a server, and the settings of its connections.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;

use quinn::congestion::CubicConfig;
use quinn::crypto::rustls::QuicServerConfig;
use quinn::{Endpoint, EndpointConfig, IdleTimeout, ServerConfig, TokioRuntime, TransportConfig};
use socket2::{Domain, Protocol, Socket, Type};
use squall_wire::ErrorCode;

use crate::limits;
use crate::request::code_of;

/// What a server listens on.
#[derive(Debug)]
pub struct Sockets<L> {
    /// The listener for TCP.
    pub listener: L,
    /// On the UDP port of the same number, where HTTP/3 is wanted.
    pub quic: Option<UdpSocket>,
    /// Where both are.
    pub address: SocketAddr,
}

/// Listens for TCP by `bind`, and where `has_quic` on the UDP port of the same number.
///
/// # Errors
/// What the system said of which address.
pub fn listen<L>(
    asked: SocketAddr,
    has_quic: bool,
    bind: impl Fn(SocketAddr) -> io::Result<(L, SocketAddr)>,
) -> Result<Sockets<L>, (SocketAddr, io::Error)> {
    let open = || {
        let (listener, address) = bind(asked).map_err(|error| (asked, error))?;
        let quic = has_quic.then(|| bind_udp(address)).transpose().map_err(|error| (address, error))?;
        Ok(Sockets { listener, quic, address })
    };
    // A free port of TCP may be taken in UDP: another one is tried.
    let again_count = if asked.port() == 0 { limits::PORT_TRY_COUNT } else { 0 };
    (0..again_count).fold(open(), |opened, _| opened.or_else(|_| open()))
}

fn bind_udp(address: SocketAddr) -> io::Result<UdpSocket> {
    let socket = Socket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP))?;
    // The kernel may grant less.
    socket.set_recv_buffer_size(limits::UDP_BUFFER_BYTES)?;
    socket.set_send_buffer_size(limits::UDP_BUFFER_BYTES)?;
    socket.bind(&address.into())?;
    Ok(socket.into())
}

/// Takes connections that come to a socket; called inside of a runtime. Of the settings of TLS, ALPN and early data are set here.
///
/// # Errors
/// When the settings have no cipher suite for QUIC, or the runtime takes no socket.
pub fn endpoint(socket: UdpSocket, mut tls: rustls::ServerConfig) -> io::Result<Endpoint> {
    tls.alpn_protocols = vec![b"h3".to_vec()];
    tls.max_early_data_size = u32::MAX; // RFC 9001 4.6.1: the only value but 0
    let crypto = QuicServerConfig::try_from(Arc::new(tls)).map_err(io::Error::other)?;
    let mut config = ServerConfig::with_crypto(Arc::new(crypto));
    config.transport_config(Arc::new(transport()));
    Endpoint::new(EndpointConfig::default(), Some(config), socket, Arc::new(TokioRuntime))
}

fn transport() -> TransportConfig {
    let mut transport = TransportConfig::default();
    transport
        .max_concurrent_bidi_streams(limits::STREAM_COUNT_MAX.into())
        .max_concurrent_uni_streams(limits::UNI_STREAM_COUNT_MAX.into())
        .stream_receive_window(limits::STREAM_WINDOW_BYTES.into())
        .receive_window(limits::WINDOW_BYTES.into())
        .send_window(limits::WINDOW_BYTES.into())
        .max_idle_timeout(IdleTimeout::try_from(limits::IDLE_MAX).ok())
        .congestion_controller_factory(Arc::new(CubicConfig::default()));
    transport
}

/// Says goodbye to all connections.
pub async fn close(endpoint: &Endpoint) {
    endpoint.close(code_of(ErrorCode::H3_NO_ERROR), b"the server stops");
    tokio::time::timeout(limits::CLOSE_MAX, endpoint.wait_idle()).await.ok();
}
