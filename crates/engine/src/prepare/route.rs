//! How requests that are made at run time reach their hosts.

use std::net::IpAddr;
use std::sync::Arc;

use ipnet::IpNet;
use rustls::ClientConfig;
use squall_script::Dns;

use crate::error::Forbidden;

/// How calls reach their host, where that is not the load's own way.
#[derive(Debug, Clone, Default)]
pub(crate) struct Route {
    /// Why it is not sent at all.
    pub(crate) forbidden: Option<Forbidden>,
    /// Address and port to dial instead of the URL's.
    pub(crate) dial: Option<(IpAddr, u16)>,
    /// Its own TLS settings, by their number from 1: calls with different ones share no connection.
    pub(crate) tls: Option<(u32, Arc<ClientConfig>)>,
    /// Which of a name's addresses are used.
    pub(crate) dns: Dns,
    /// Addresses that are never dialled.
    pub(crate) forbidden_networks: Arc<[IpNet]>,
}
