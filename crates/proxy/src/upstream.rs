//! Connections to the servers behind the proxy: for each connection of a client one to each server it speaks to.

use std::collections::HashMap;
use std::sync::Arc;

use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::{Request, Response, body::Incoming};
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use squall_traffic::Scheme;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::body::Carried;

/// Where a request goes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Server {
    pub(crate) scheme: Scheme,
    /// Host and port as in URLs.
    pub(crate) authority: String,
}

/// The connections of one client connection.
pub(crate) struct Upstream {
    tls: Arc<ClientConfig>,
    open: HashMap<Server, SendRequest<Carried>>,
}

impl Server {
    /// Host without brackets, and port.
    fn host_and_port(&self) -> (&str, u16) {
        let default = if self.scheme == Scheme::Https { 443 } else { 80 };
        let is_port = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let (host, port) = match self.authority.rsplit_once(':').filter(|(_, port)| is_port(port)) {
            Some((host, port)) => (host, port.parse().unwrap_or(default)),
            None => (self.authority.as_str(), default),
        };
        (host.trim_matches(['[', ']']), port)
    }
}

impl Upstream {
    pub(crate) fn new(tls: Arc<ClientConfig>) -> Self {
        Self { tls, open: HashMap::new() }
    }

    /// Sends a request; a new connection is opened where there is none that is ready.
    pub(crate) async fn send(
        &mut self,
        server: &Server,
        request: Request<Carried>,
    ) -> Result<Response<Incoming>, String> {
        let mut sender = match self.open.remove(server) {
            Some(sender) if !sender.is_closed() => sender,
            _ => self.connect(server).await?,
        };
        if sender.ready().await.is_err() {
            sender = self.connect(server).await?;
        }
        let response = sender.send_request(request).await.map_err(|error| explain(&error))?;
        self.open.insert(server.clone(), sender);
        Ok(response)
    }

    async fn connect(&self, server: &Server) -> Result<SendRequest<Carried>, String> {
        let (host, port) = server.host_and_port();
        let cannot = |error: &dyn std::fmt::Display| format!("cannot connect to {host}:{port}: {error}");
        let stream = TcpStream::connect((host, port)).await.map_err(|error| cannot(&error))?;
        let _ = stream.set_nodelay(true);
        if server.scheme == Scheme::Http {
            return begin(stream).await;
        }
        let name = ServerName::try_from(host.to_owned()).map_err(|error| cannot(&error))?;
        let connector = TlsConnector::from(Arc::clone(&self.tls));
        begin(connector.connect(name, stream).await.map_err(|error| cannot(&error))?).await
    }
}

async fn begin<S>(stream: S) -> Result<SendRequest<Carried>, String>
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
{
    let (sender, connection) = handshake(TokioIo::new(stream)).await.map_err(|error| explain(&error))?;
    // It ends with the server's close, or when the sender is dropped.
    tokio::spawn(async move { drop(connection.await) });
    Ok(sender)
}

fn explain(error: &hyper::Error) -> String {
    use std::error::Error;
    error.source().map_or_else(|| error.to_string(), |source| format!("{error}: {source}"))
}
