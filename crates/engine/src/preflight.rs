//! What a plan needs of this machine, computed before anything is opened: descriptors, local ports, conntrack entries, memory.
//!
//! Owns: the arithmetic, and what was measured for it. Never: opens anything but a socket to ask the system with.

use std::collections::BTreeSet;
use std::fs;

use procfs::{Current, Meminfo};
use squall_plan::{IdleProtocol, Load, OptionStyle, Plan, QuicPart, StreamLoad, What};

use crate::Error;
use crate::error::descriptors_reserved;
use crate::quic::{UDP_BUFFER_BYTES, udp_buffer_available};
use crate::shard_count::shard_count_all;
use crate::sys::{nofile_limit_hard, ports_available};
use crate::tls::check_tls;

/// One thing that a plan needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Need {
    /// What it is.
    pub what: Resource,
    /// How much of it.
    pub needed: u64,
    /// How much there is; `None` where the system does not tell.
    pub there: Option<u64>,
    /// What to do when there is too little.
    pub help: String,
}

/// What connections use up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resource {
    /// Open files of this process.
    Descriptors,
    /// Local ports towards one address and port of a target, over all local addresses.
    Ports,
    /// Entries of the firewall's table.
    Conntrack,
    /// Bytes of memory, the kernel's included.
    Memory,
    /// Bytes that the receive buffer of a UDP socket may have, where QUIC is spoken.
    UdpBuffer,
}

impl Need {
    /// Whether there is less than is needed.
    pub fn is_missing(&self) -> bool {
        self.there.is_some_and(|there| there < self.needed)
    }
}

/// What a plan needs, and what this machine has; with help for a user who writes options in this style.
pub fn needs(plan: &Plan, style: OptionStyle) -> Vec<Need> {
    ResourceDemand::of(plan).needs(&Supply::read(), style)
}

/// Whether [`run`](crate::run()) would begin with this plan, as far as this machine alone can tell; nothing is opened or written.
///
/// # Errors
/// When a certificate or key cannot be read, a cipher suite or group is not known, or fewer files may be open than there are connections.
pub fn check(plan: &Plan) -> Result<(), Error> {
    plan.loads.iter().try_for_each(|load| check_tls(&load.tls))?;
    let demand = ResourceDemand::of(plan);
    check_descriptors(demand.socket_count, demand.reserved_count, nofile_limit_hard())
}

/// Refuses more sockets than files may be open in addition to the reserved ones.
pub(crate) fn check_descriptors(socket_count: u64, reserved: u64, limit: u64) -> Result<(), Error> {
    let needed = socket_count + reserved;
    if needed > limit { Err(Error::TooFewDescriptors { needed, reserved, limit }) } else { Ok(()) }
}

/// What a plan asks for.
#[derive(Debug, Clone, Copy, Default)]
struct ResourceDemand {
    socket_count: u64,
    /// Descriptors for all else.
    reserved_count: u64,
    /// The most sockets that are connected to one target, from all local addresses.
    to_one_target: u64,
    source_count: u64,
    memory_bytes: u64,
    /// Of the receive buffer of a UDP socket; 0: QUIC is not spoken.
    udp_buffer_bytes: u64,
}

/// What this machine has.
#[derive(Debug, Clone, Copy, Default)]
struct Supply {
    descriptor_count: u64,
    port_count: u64,
    conntrack_free: Option<u64>,
    memory_bytes: Option<u64>,
    udp_buffer_bytes: Option<u64>,
}

impl ResourceDemand {
    fn of(plan: &Plan) -> Self {
        let reserved_count = descriptors_reserved(shard_count_all(plan));
        plan.loads.iter().fold(Self { reserved_count, ..Self::default() }, |all, load| {
            let (each, targets) =
                (load.segment.part_of(load.when.connection_count_max()), target_count(load));
            let is_per_target = load.what.endpoints().is_none();
            let count = if is_per_target { each * targets } else { each };
            let socket_count = socket_count(load, count, targets);
            Self {
                socket_count: all.socket_count + socket_count,
                reserved_count,
                to_one_target: all.to_one_target + socket_count.div_ceil(targets),
                source_count: all.source_count.max(load.network.sources.len() as u64),
                memory_bytes: all.memory_bytes + count * (KERNEL_BYTES + own_bytes(load)),
                udp_buffer_bytes: match load.quic_part() {
                    QuicPart::None => all.udp_buffer_bytes,
                    QuicPart::Some | QuicPart::All => UDP_BUFFER_BYTES,
                },
            }
        })
    }

    fn needs(&self, supply: &Supply, style: OptionStyle) -> Vec<Need> {
        let sources = self.source_count.max(1);
        let source = style.name("source");
        let enough = self.to_one_target.div_ceil((supply.port_count / 2).max(1));
        let mut needs = vec![
            Need {
                what: Resource::Descriptors,
                needed: self.socket_count + self.reserved_count,
                there: Some(supply.descriptor_count),
                help: self.descriptors_help(supply),
            },
            Need {
                what: Resource::Ports,
                needed: self.to_one_target,
                there: (supply.port_count > 0).then_some(supply.port_count * sources),
                help: format!(
                    "give at least {enough} local addresses with {source}: an address connects slowly once half of its ports are in use"
                ),
            },
            Need {
                what: Resource::Conntrack,
                needed: self.socket_count,
                there: supply.conntrack_free,
                help: "raise net.netfilter.nf_conntrack_max, or do not track these connections".to_owned(),
            },
            Need {
                what: Resource::Memory,
                needed: self.memory_bytes,
                there: supply.memory_bytes,
                help: "use fewer connections, or more machines".to_owned(),
            },
        ];
        needs.extend((self.udp_buffer_bytes > 0).then(|| Need {
            what: Resource::UdpBuffer,
            needed: self.udp_buffer_bytes,
            there: supply.udp_buffer_bytes,
            help: format!("as root: `sysctl -w net.core.rmem_max={}`", self.udp_buffer_bytes),
        }));
        needs
    }

    /// Processes that can hold no connection at all would not help.
    fn descriptors_help(&self, supply: &Supply) -> String {
        let raise = "raise the limit of open files (`ulimit -Hn`, `LimitNOFILE=`)";
        match supply.descriptor_count.saturating_sub(self.reserved_count) {
            0 => raise.to_owned(),
            space => {
                let process_count = self.socket_count.div_ceil(space);
                format!("{raise}, or split the load across {process_count} processes or machines")
            }
        }
    }
}

impl Supply {
    fn read() -> Self {
        let number = |path: &str| fs::read_to_string(path).ok()?.trim().parse::<u64>().ok();
        let conntrack_max = number("/proc/sys/net/netfilter/nf_conntrack_max");
        let conntrack_used = number("/proc/sys/net/netfilter/nf_conntrack_count").unwrap_or(0);
        Self {
            descriptor_count: nofile_limit_hard(),
            port_count: ports_available(),
            conntrack_free: conntrack_max.map(|max| max.saturating_sub(conntrack_used)),
            memory_bytes: Meminfo::current().ok().and_then(|memory| memory.mem_available),
            udp_buffer_bytes: udp_buffer_available(),
        }
    }
}

/// Sockets, and so descriptors and ports, that are open at the same time for so many connections of a load to so many targets.
pub(crate) fn socket_count(load: &Load, connection_count: u64, target_count: u64) -> u64 {
    let (part, policy) = (load.quic_part(), &load.connections.quic);
    let is_shared = part == QuicPart::All && !policy.socket_per_connection;
    let has_own = part != QuicPart::None && policy.socket_per_connection;
    let count = if is_shared { target_count } else { connection_count };
    // The sockets that connections have left stay open for one more interval.
    let is_moving = policy.migration_interval.is_some() && (is_shared || has_own);
    if is_moving { 2 * count } else { count }
}

/// Different hosts and ports that a load goes to; at least 1.
pub(crate) fn target_count(load: &Load) -> u64 {
    let count = match (&load.what, load.what.endpoints()) {
        (_, Some(targets)) => {
            targets.iter().map(|target| target.value.authority()).collect::<BTreeSet<_>>().len()
        }
        (What::Http(http) | What::Stream(StreamLoad { http, .. }), None) => {
            let authority = |url: &url::Url| (url.host_str().map(str::to_owned), url.port_or_known_default());
            http.requests.iter().map(|request| authority(&request.url)).collect::<BTreeSet<_>>().len()
        }
        _ => 1,
    };
    count.max(1) as u64
}

/// Our own memory for each connection of a load.
fn own_bytes(load: &Load) -> u64 {
    match &load.what {
        _ if load.quic_part() != QuicPart::None => QUIC_BYTES,
        What::Idle(idle) => {
            let is_silent = idle.ping.is_none() && idle.protocol == IdleProtocol::Http1;
            match (is_silent && !idle.keeps_sessions, idle.tls) {
                (true, false) => PARKED_BYTES,
                (true, true) => PARKED_TLS_BYTES,
                (false, false) => WHOLE_BYTES,
                (false, true) => WHOLE_TLS_BYTES,
            }
        }
        What::Handshake(_) => WHOLE_TLS_BYTES,
        _ if load.speaks_tls() => REQUESTING_TLS_BYTES,
        _ => REQUESTING_BYTES,
    }
}

/// What a TCP connection takes of the kernel's memory on one side, silent: `bench/idle` measures it, with all else here.
const KERNEL_BYTES: u64 = 4_700;

const PARKED_BYTES: u64 = 150;
const PARKED_TLS_BYTES: u64 = 300;
const WHOLE_BYTES: u64 = 1_200;
const WHOLE_TLS_BYTES: u64 = 5_000;
const REQUESTING_BYTES: u64 = 600;
const REQUESTING_TLS_BYTES: u64 = 9_000;

/// A connection of QUIC, silent or not: its state machine, streams, and connection ids.
const QUIC_BYTES: u64 = 24_000;

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use squall_plan::{
        CloseMode, ConnectionPolicy, Endpoint, IdleLoad, Network, Profile, QuicPolicy, ScriptLoad, Segment,
        Stop, TlsPolicy, Weighted, When,
    };

    use super::*;

    /// A hundred idle connections.
    fn load(is_quic: bool, quic: QuicPolicy) -> Load {
        Load {
            name: "idle".to_owned(),
            what: What::Idle(IdleLoad {
                targets: vec![Weighted::once(Endpoint { host: "a".to_owned(), port: 443 })],
                tls: false,
                quic: is_quic,
                protocol: IdleProtocol::Http1,
                first_request: None,
                ping: None,
                jitter: Duration::ZERO,
                reopens: false,
                keeps_sessions: false,
                close: CloseMode::Fin,
            }),
            when: When::Closed { connections: Profile::constant(100.0), users: None },
            stop: Stop { duration: None, count: None },
            connections: ConnectionPolicy { quic, ..ConnectionPolicy::default() },
            network: Network::default(),
            tls: TlsPolicy::default(),
            segment: Segment::WHOLE,
        }
    }

    #[test]
    fn a_connection_that_moves_has_two_sockets() {
        let migration_interval = Some(Duration::from_millis(500));
        for (is_quic, socket_per_connection, migration_interval, expected) in [
            (true, true, None, 100),
            (true, true, migration_interval, 200),
            (true, false, None, 1),
            (true, false, migration_interval, 2),
            (false, true, migration_interval, 100),
        ] {
            let policy = QuicPolicy { socket_per_connection, migration_interval, ..QuicPolicy::default() };
            let plan = plan(load(is_quic, policy));
            let demand = ResourceDemand::of(&plan);
            assert_eq!((demand.socket_count, demand.to_one_target), (expected, expected), "{:?}", plan.loads);
        }
    }

    fn plan(load: Load) -> Plan {
        let (name, loads, thresholds) = (String::new(), vec![load], Vec::new());
        Plan { name, loads, thresholds, warmup: Duration::ZERO, threads: None }
    }

    #[test]
    fn scripts_over_http3_need_what_quic_needs() {
        for (speaks_http3, buffer_bytes, own_bytes) in
            [(false, 0, REQUESTING_TLS_BYTES), (true, UDP_BUFFER_BYTES, QUIC_BYTES)]
        {
            let script = ScriptLoad {
                path: "a.js".into(),
                options: "{}".to_owned(),
                scenarios: Vec::new(),
                speaks_http3,
            };
            let load = Load { what: What::Script(script), ..load(false, QuicPolicy::default()) };
            let demand = ResourceDemand::of(&plan(load));
            assert_eq!(demand.udp_buffer_bytes, buffer_bytes);
            assert_eq!(demand.memory_bytes, 100 * (KERNEL_BYTES + own_bytes));
        }
    }

    /// Silent plain connections to one target.
    fn demand(connection_count: u64, source_count: u64) -> ResourceDemand {
        ResourceDemand {
            socket_count: connection_count,
            reserved_count: descriptors_reserved(2),
            to_one_target: connection_count,
            source_count,
            memory_bytes: connection_count * (KERNEL_BYTES + PARKED_BYTES),
            udp_buffer_bytes: 0,
        }
    }

    const SMALL: Supply = Supply {
        descriptor_count: 20_000,
        port_count: 28_232,
        conntrack_free: Some(262_144),
        memory_bytes: Some(8 << 30),
        udp_buffer_bytes: Some(212_992),
    };

    fn missing(demand: &ResourceDemand, supply: &Supply) -> Vec<Resource> {
        demand
            .needs(supply, OptionStyle::Flags)
            .iter()
            .filter(|need| need.is_missing())
            .map(|need| need.what)
            .collect()
    }

    #[test]
    fn what_is_missing_is_what_the_arithmetic_says() {
        assert_eq!(missing(&demand(18_000, 0), &SMALL), []);
        assert_eq!(missing(&demand(19_990, 0), &SMALL), [Resource::Descriptors]);
        let wide = Supply { descriptor_count: 10_000_000, ..SMALL };
        assert_eq!(missing(&demand(30_000, 1), &wide), [Resource::Ports]);
        assert_eq!(missing(&demand(30_000, 2), &wide), []);
        assert_eq!(missing(&demand(1_200_000, 43), &wide), [Resource::Conntrack]);
        let quic = ResourceDemand { udp_buffer_bytes: UDP_BUFFER_BYTES, ..demand(100, 0) };
        assert_eq!(missing(&quic, &SMALL), [Resource::UdpBuffer]);
        let poor = Supply { conntrack_free: None, memory_bytes: Some(4 << 30), ..wide };
        assert_eq!(missing(&demand(1_200_000, 43), &poor), [Resource::Memory]);
    }

    #[test]
    fn the_help_says_how_many_are_enough() {
        let needs = demand(1_200_000, 0).needs(&SMALL, OptionStyle::Flags);
        assert!(needs[0].help.contains("61 processes"), "{}", needs[0].help);
        assert!(needs[1].help.contains("86 local addresses"), "{}", needs[1].help);
        let none_left = Supply { descriptor_count: 64, ..SMALL };
        let needs = demand(100, 0).needs(&none_left, OptionStyle::Flags);
        assert!(!needs[0].help.contains("processes"), "{}", needs[0].help);
    }

    #[test]
    fn this_machine_tells_what_it_has() {
        let supply = Supply::read();
        assert!(supply.descriptor_count > 0 && supply.port_count > 0 && supply.memory_bytes > Some(0));
    }
}
