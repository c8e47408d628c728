//! How connections are made: their policy, local addresses, proxies, TLS.

use std::fs::File;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::num::NonZeroU32;
use std::path::Path;

use squall_plan::limits::{SOURCE_COUNT_MAX, WINDOW_BYTES_DEFAULT};
use squall_plan::rules::{Source, addresses_of};
use squall_plan::{
    ClientIdentity, CloseMode, ConnectionPolicy, H2c, Network, OptionProblem, Plan, PortablePlan, Problems,
    TlsPolicy, TlsVersions,
};

use super::impossible;
use crate::args::{CloseArg, ConnectionArgs, H2cArg, TlsArgs, TlsSettingArgs, TlsVersionArg};

/// How connections are kept and closed.
pub(super) fn connection_policy(args: &ConnectionArgs) -> ConnectionPolicy {
    ConnectionPolicy {
        request_count_max: if args.no_keepalive {
            Some(NonZeroU32::MIN)
        } else {
            args.requests_per_connection
        },
        age_max: args.max_connection_age,
        pipeline_depth: args.pipeline,
        h2c: if args.h2c == Some(H2cArg::Upgrade) { H2c::Upgrade } else { H2c::Prior },
        close: close_mode(args.close).unwrap_or(CloseMode::Notify),
        stream_count: args.streams,
        window_bytes: args.window.unwrap_or(WINDOW_BYTES_DEFAULT),
        connection_window_bytes: args.connection_window.unwrap_or(WINDOW_BYTES_DEFAULT),
        connect_timeout: args.connect_timeout,
    }
}

pub(super) fn close_mode(arg: Option<CloseArg>) -> Option<CloseMode> {
    arg.map(|arg| match arg {
        CloseArg::Rst => CloseMode::Rst,
        CloseArg::Fin => CloseMode::Fin,
        CloseArg::Notify => CloseMode::Notify,
    })
}

/// Where packets go.
pub(super) fn network(args: &ConnectionArgs) -> Network {
    Network {
        resolve: args.resolve.clone(),
        connect_to: args.connect_to.clone(),
        unix_socket: args.unix_socket.clone(),
        sources: Vec::new(),
        proxy: args.proxy.clone(),
    }
}

/// The plan as this machine makes it: with its own addresses, of which there may be too many.
pub(crate) fn settled(plan: PortablePlan) -> Result<Plan, OptionProblem> {
    let addresses = sources(&plan.sources)?;
    let plan = plan.settle(&addresses)?;
    plan.validate().map_err(|error| impossible(&error))?;
    Ok(plan)
}

/// How TLS is spoken.
pub(super) fn tls_policy(args: &TlsArgs) -> Result<TlsPolicy, Problems> {
    let settings = tls_settings(&args.settings)?;
    Ok(TlsPolicy { versions: tls_versions(args.tls), sni: args.sni.clone(), ..settings })
}

/// Which versions are offered.
pub(super) fn tls_versions(arg: Option<TlsVersionArg>) -> TlsVersions {
    match arg {
        None | Some(TlsVersionArg::Any) => TlsVersions::Any,
        Some(TlsVersionArg::Tls12) => TlsVersions::Tls12,
        Some(TlsVersionArg::Tls13) => TlsVersions::Tls13,
    }
}

/// What every load that speaks TLS has in common. The files are opened here, so that a wrong path costs no run.
pub(super) fn tls_settings(args: &TlsSettingArgs) -> Result<TlsPolicy, Problems> {
    let mut problems = Problems::default();
    for path in &args.cacert {
        problems.take(readable("--cacert", path));
    }
    let client_identity = args.cert.as_ref().map(|cert_file| {
        problems.take(readable("--cert", cert_file));
        if let Some(key_file) = &args.key {
            problems.take(readable("--key", key_file));
        }
        let key_file = args.key.as_ref().unwrap_or(cert_file).clone();
        ClientIdentity { cert_file: cert_file.clone(), key_file }
    });
    problems.end()?;
    Ok(TlsPolicy {
        insecure: args.insecure,
        ca_files: args.cacert.clone(),
        client_identity,
        ciphers: args.ciphers.clone(),
        groups: args.groups.clone(),
        key_log: args.key_log.clone(),
        alpn: args.alpn.clone().unwrap_or_else(|| TlsPolicy::default().alpn),
        ..TlsPolicy::default()
    })
}

fn readable(flag: &str, path: &Path) -> Result<(), OptionProblem> {
    File::open(path).map(drop).map_err(|error| OptionProblem::file(flag, path, &error))
}

/// All local addresses, each of them this machine's own.
fn sources(sources: &[Source]) -> Result<Vec<IpAddr>, OptionProblem> {
    let mut addresses = Vec::new();
    for source in sources {
        match source {
            Source::Addresses(range) => addresses.extend(addresses_of(range)),
            Source::Interfaces(pattern) => addresses.extend(interface_addresses(pattern)?),
        }
    }
    if addresses.len() > SOURCE_COUNT_MAX {
        let message = format!(
            "`--source` gives {} addresses, but at most {SOURCE_COUNT_MAX} are supported",
            addresses.len()
        );
        return Err(OptionProblem::of("source", message, "give fewer addresses"));
    }
    addresses.iter().try_for_each(|address| bindable(*address))?;
    Ok(addresses)
}

/// The addresses of the interfaces that match. Link-local IPv6 addresses need a scope, which sources do not have.
fn interface_addresses(pattern: &str) -> Result<Vec<IpAddr>, OptionProblem> {
    let interfaces = if_addrs::get_if_addrs().map_err(|error| {
        let message = format!("cannot list the network interfaces: {error}");
        OptionProblem::of("source", message, "give addresses: `--source 10.0.0.1`")
    })?;
    let usable = |address: &IpAddr| !matches!(address, IpAddr::V6(v6) if v6.is_unicast_link_local());
    let matching =
        interfaces.iter().filter(|interface| matches(pattern.as_bytes(), interface.name.as_bytes()));
    let addresses: Vec<IpAddr> = matching.map(if_addrs::Interface::ip).filter(usable).collect();
    if !addresses.is_empty() {
        return Ok(addresses);
    }
    let mut names: Vec<&str> = interfaces.iter().map(|interface| interface.name.as_str()).collect();
    names.dedup();
    let help = format!("interfaces with addresses: {}", names.join(", "));
    Err(OptionProblem::of("source", format!("no interface matches `--source nic:{pattern}`"), help))
}

/// Asks the kernel, which also knows addresses that no interface lists (local routes).
fn bindable(address: IpAddr) -> Result<(), OptionProblem> {
    TcpListener::bind(SocketAddr::new(address, 0)).map(drop).map_err(|error| {
        let message = format!("cannot send from the `--source` address `{address}`: {error}");
        let help = "use addresses of this machine, as listed by `ip address`, or `nic:PATTERN`";
        OptionProblem::of("source", message, help)
    })
}

/// Whether a name matches a pattern in which `*` stands for anything.
fn matches(pattern: &[u8], name: &[u8]) -> bool {
    match (pattern, name) {
        ([], []) => true,
        ([b'*', rest @ ..], _) => matches(rest, name) || (!name.is_empty() && matches(pattern, &name[1..])),
        ([p, pattern @ ..], [n, name @ ..]) => p == n && matches(pattern, name),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_stand_for_anything() {
        for (pattern, name, expected) in [
            ("eth*", "eth0", true),
            ("eth*", "eth", true),
            ("eth0", "eth01", false),
            ("*", "lo", true),
            ("*0", "eth0", true),
            ("e*0", "lo0", false),
        ] {
            assert_eq!(matches(pattern.as_bytes(), name.as_bytes()), expected, "{pattern} {name}");
        }
    }

    #[test]
    fn only_own_addresses_are_sources() {
        let source = |text: &str| sources(&[squall_plan::rules::parse_source(text).unwrap()]);
        assert_eq!(source("127.0.0.1-127.0.0.3").unwrap().len(), 3);
        assert!(source("nic:lo*").unwrap().contains(&"127.0.0.1".parse().unwrap()));
        assert!(
            source("192.0.2.1")
                .unwrap_err()
                .message
                .contains("cannot send from the `--source` address `192.0.2.1`")
        );
        assert!(source("nic:nothing*").unwrap_err().help.contains("lo"));
    }
}
