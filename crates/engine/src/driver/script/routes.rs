//! How a script's requests reach their hosts: fixed addresses, what is forbidden, client certificates, the clients of `k6/x/fasthttp`.

use std::path::PathBuf;
use std::sync::Arc;

use ipnet::IpNet;
use rustls::ClientConfig;
use squall_plan::{ClientIdentity, TlsPolicy};
use squall_script::{ClientConfig as Client, Dns, HostPattern, HostRules, Options, Program, Spec};

use crate::prepare::Route;
use crate::{Error, Forbidden, tls};

/// The ways to all hosts, made once for a run.
#[derive(Debug)]
pub(super) struct Routes {
    hosts: HostRules,
    blocked: Vec<HostPattern>,
    forbidden: Arc<[IpNet]>,
    dns: Dns,
    /// Client certificates by domain.
    identities: Vec<(Vec<HostPattern>, Arc<ClientConfig>)>,
    /// By the number of the client, from 1.
    clients: Vec<Option<Arc<ClientConfig>>>,
}

impl Routes {
    /// Reads certificates and keys. `policy` is how TLS is spoken otherwise.
    pub(super) fn new(options: &Options, program: &Program, policy: &TlsPolicy) -> Result<Self, Error> {
        let identity = |auth: &squall_script::TlsAuth| {
            let config = tls::config_with_identity(policy, (&auth.cert, &auth.key), "option `tlsAuth`")?;
            Ok((auth.domains.clone(), config))
        };
        Ok(Self {
            hosts: options.hosts.clone(),
            blocked: options.block_hostnames.clone(),
            forbidden: options.blacklist_ips.clone().into(),
            dns: options.dns,
            identities: options.tls_auth.iter().map(identity).collect::<Result<_, Error>>()?,
            clients: program
                .clients()
                .iter()
                .map(|client| client_tls(client, policy))
                .collect::<Result<_, Error>>()?,
        })
    }

    /// The way of a request.
    pub(super) fn of(&self, spec: &Spec) -> Route {
        let host = spec.plan.url.host_str().unwrap_or_default();
        let is_blocked = self.blocked.iter().any(|pattern| pattern.matches(host));
        Route {
            forbidden: is_blocked.then_some(Forbidden::Name),
            dial: self.hosts.find(host, spec.plan.url.port_or_known_default().unwrap_or_default()),
            tls: self.tls(spec.client, host),
            dns: self.dns,
            forbidden_networks: Arc::clone(&self.forbidden),
        }
    }

    fn tls(&self, client: u32, host: &str) -> Option<(u32, Arc<ClientConfig>)> {
        if let Some(own) = client.checked_sub(1).and_then(|idx| self.clients.get(idx as usize)) {
            return own.as_ref().map(|config| (client, Arc::clone(config)));
        }
        let named = |domains: &[HostPattern]| domains.iter().any(|domain| domain.matches(host));
        let place = self.identities.iter().position(|(domains, _)| named(domains));
        let place = place.or_else(|| self.identities.iter().position(|(domains, _)| domains.is_empty()))?;
        Some(((self.clients.len() + place + 1) as u32, Arc::clone(&self.identities[place].1)))
    }
}

/// The TLS settings of a client of `k6/x/fasthttp`, where they are not the load's.
fn client_tls(client: &Client, policy: &TlsPolicy) -> Result<Option<Arc<ClientConfig>>, Error> {
    if client.certificate.is_none() && (policy.insecure || !client.insecure) {
        return Ok(None);
    }
    let identity = client
        .certificate
        .as_ref()
        .map(|(cert, key)| ClientIdentity { cert_file: PathBuf::from(cert), key_file: PathBuf::from(key) });
    let policy = TlsPolicy {
        insecure: policy.insecure || client.insecure,
        client_identity: identity,
        ..policy.clone()
    };
    tls::client_config(&policy).map(Some)
}
