//! The local addresses that a load uses: which ones this machine has, and whether it may use them.

use std::net::{IpAddr, SocketAddr, TcpListener};

use squall_plan::limits::SOURCE_COUNT_MAX;
use squall_plan::load::impossible;
use squall_plan::rules::{Source, addresses_of};
use squall_plan::{OptionProblem, Plan, PortablePlan, What};
use squall_traffic::change::MessageTemplate;

/// The plan as this machine makes it: with its own addresses, of which there may be too many.
///
/// # Errors
/// Addresses that are not this machine's, and a load that cannot be made with them.
pub fn settled(plan: PortablePlan) -> Result<Plan, OptionProblem> {
    let addresses = sources(&plan.sources)?;
    let plan = plan.settle(&addresses)?;
    plan.validate().map_err(|error| impossible(&error))?;
    plan.loads.iter().try_for_each(|load| check_message(&load.what))?;
    Ok(plan)
}

/// Before anything is said of the load: whether messages can be made, with the columns of their table.
fn check_message(what: &What) -> Result<(), OptionProblem> {
    let What::WebSocket(load) = what else { return Ok(()) };
    let read = MessageTemplate::read(&load.message.bytes, load.message.table.as_deref());
    read.map(drop).map_err(|error| OptionProblem::of("message", error.reason, error.help))
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
        let count = addresses.len();
        let message =
            format!("{count} local addresses were given, but at most {SOURCE_COUNT_MAX} are supported");
        return Err(OptionProblem::of("source", message, "give fewer addresses"));
    }
    addresses.iter().try_for_each(|address| bindable(*address))?;
    Ok(addresses)
}

/// The addresses of the interfaces that match. Link-local IPv6 addresses need a scope, which sources do not have.
fn interface_addresses(pattern: &str) -> Result<Vec<IpAddr>, OptionProblem> {
    let interfaces = if_addrs::get_if_addrs().map_err(|error| {
        let message = format!("cannot list the network interfaces: {error}");
        OptionProblem::of("source", message, "give addresses, such as `10.0.0.1`")
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
    Err(OptionProblem::of("source", format!("no interface matches `nic:{pattern}`"), help))
}

/// Asks the kernel, which also knows addresses that no interface lists (local routes).
fn bindable(address: IpAddr) -> Result<(), OptionProblem> {
    TcpListener::bind(SocketAddr::new(address, 0)).map(drop).map_err(|error| {
        let message = format!("cannot send from the local address `{address}`: {error}");
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
                .contains("cannot send from the local address `192.0.2.1`")
        );
        assert!(source("nic:nothing*").unwrap_err().help.contains("lo"));
    }
}
