//! Names and their addresses: resolved before the run, and again whenever the answer's time to live ends.
//!
//! Owns: the table of names. Shards read it when they open a connection, never per request. Never: load.

use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::thread;
use std::time::{Duration, Instant};

use hickory_resolver::TokioResolver;
use hickory_resolver::net::NetError;
use squall_script::{Dns, DnsPolicy, DnsSelect};
use tokio::net::TcpStream;
use tokio::runtime::Runtime;

use crate::{Error, Remedy};

/// All names of a run.
#[derive(Debug, Default)]
pub(crate) struct Names {
    entries: Vec<Name>,
    /// Durations of the look-ups made since they were last taken, in nanoseconds.
    lookups: Mutex<Vec<u64>>,
}

/// One name.
#[derive(Debug)]
struct Name {
    host: String,
    /// Where connections will go: the port matters to the race between address families.
    port: u16,
    addresses: RwLock<Arc<[IpAddr]>>,
    generation: AtomicU32,
}

/// A shard's view of one name.
#[derive(Debug, Clone)]
pub(crate) struct Addresses {
    name_idx: usize,
    generation: u32,
    addresses: Arc<[IpAddr]>,
    next: usize,
}

/// One answer.
struct Answer {
    addresses: Arc<[IpAddr]>,
    valid_until: Instant,
}

impl Names {
    /// Adds a host; an address literal or given addresses are never looked up. Returns its index.
    pub(crate) fn add(&mut self, host: &str, port: u16, fixed: Option<Arc<[IpAddr]>>) -> usize {
        let known = self.entries.iter().position(|name| name.host == host && name.port == port);
        known.unwrap_or_else(|| {
            let addresses = fixed.or_else(|| literal(host)).unwrap_or_default();
            let (addresses, generation) = (RwLock::new(addresses), AtomicU32::new(0));
            self.entries.push(Name { host: host.to_owned(), port, addresses, generation });
            self.entries.len() - 1
        })
    }

    /// Looks up every name that has no address yet, and refuses those that none of `sources` can reach, where there are any. A thread
    /// keeps what was looked up fresh until `stop`.
    pub(crate) fn resolve(self, sources: &[IpAddr], stop: &Arc<AtomicBool>) -> Result<Arc<Self>, Error> {
        let names = self.look_up_all(stop)?;
        names.check_sources(sources)?;
        Ok(names)
    }

    fn look_up_all(self, stop: &Arc<AtomicBool>) -> Result<Arc<Self>, Error> {
        let wanted: Vec<usize> =
            (0..self.entries.len()).filter(|idx| self.addresses(*idx).is_empty()).collect();
        if wanted.is_empty() {
            return Ok(Arc::new(self));
        }
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(resolver_failed)?;
        let resolver = runtime.block_on(async { system_resolver() })?;
        let mut due = Vec::new();
        for name_idx in wanted {
            let answer = runtime.block_on(self.look_up(&resolver, name_idx))?;
            due.push((answer.valid_until, name_idx));
            self.set(name_idx, answer.addresses);
        }
        let names = Arc::new(self);
        spawn_refresh(Arc::clone(&names), runtime, resolver, due, Arc::clone(stop))?;
        Ok(names)
    }

    /// Looks up a name that has no address yet, by the system's resolver, while the caller waits.
    pub(crate) fn look_up_if_missing(&mut self, name_idx: usize, dns: Dns) -> Result<(), Error> {
        if self.addresses(name_idx).is_empty() {
            let Name { host, port, .. } = &self.entries[name_idx];
            let addresses = look_up_now(host, *port, dns)?;
            self.set(name_idx, addresses);
        }
        Ok(())
    }

    /// Refuses local addresses none of which is of the family of a name's addresses: from there it cannot be reached.
    fn check_sources(&self, sources: &[IpAddr]) -> Result<(), Error> {
        let family = |address: &IpAddr| if address.is_ipv4() { "IPv4" } else { "IPv6" };
        for (name_idx, name) in self.entries.iter().enumerate() {
            let addresses = self.addresses(name_idx);
            let can_reach = |source: &IpAddr| addresses.iter().any(|one| family(one) == family(source));
            if let (Some(source), Some(address), false) =
                (sources.first(), addresses.first(), sources.iter().any(can_reach))
            {
                let (host, theirs, ours) = (&name.host, family(address), family(source));
                return Err(Error::Option {
                    option: "source",
                    problem: format!(
                        "`{host}` only has {theirs} addresses, but the local address {source} is {ours}"
                    ),
                    remedy: Remedy::LeaveOut(format!("give a local {theirs} address")),
                });
            }
        }
        Ok(())
    }

    /// A shard's view of a name. `offset` spreads the shards over the addresses.
    pub(crate) fn view(&self, name_idx: usize, offset: usize) -> Addresses {
        let generation = self.entries[name_idx].generation.load(Ordering::Acquire);
        Addresses { name_idx, generation, addresses: self.addresses(name_idx), next: offset }
    }

    /// Takes the durations of the look-ups since the last call.
    pub(crate) fn take_lookups(&self) -> Vec<u64> {
        std::mem::take(&mut self.lookups.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The addresses of a name; none while it is not looked up.
    pub(crate) fn addresses(&self, name_idx: usize) -> Arc<[IpAddr]> {
        Arc::clone(&self.entries[name_idx].addresses.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Where connections go, by what is known now.
    pub(crate) fn endpoints(&self) -> impl Iterator<Item = SocketAddr> {
        self.entries.iter().enumerate().flat_map(|(name_idx, name)| {
            let addresses = self.addresses(name_idx);
            addresses.iter().map(|address| SocketAddr::new(*address, name.port)).collect::<Vec<_>>()
        })
    }

    fn set(&self, name_idx: usize, addresses: Arc<[IpAddr]>) {
        let name = &self.entries[name_idx];
        *name.addresses.write().unwrap_or_else(PoisonError::into_inner) = addresses;
        name.generation.fetch_add(1, Ordering::Release);
    }

    async fn look_up(&self, resolver: &TokioResolver, name_idx: usize) -> Result<Answer, Error> {
        let name = &self.entries[name_idx];
        let begin = Instant::now();
        let lookup = tokio::time::timeout(LOOK_UP_MAX, resolver.lookup_ip(name.host.as_str())).await;
        let took_ns = u64::try_from(begin.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.lookups.lock().unwrap_or_else(PoisonError::into_inner).push(took_ns);
        let unresolved =
            |reason: String| Error::NameNotResolved { host: name.host.clone(), port: name.port, reason };
        let lookup = lookup
            .map_err(|_elapsed| unresolved(format!("no answer within {} s", LOOK_UP_MAX.as_secs())))?
            .map_err(|error| unresolved(in_plain_words(&error)))?;
        let addresses: Vec<IpAddr> = lookup.iter().collect();
        if addresses.is_empty() {
            return Err(unresolved("the name has no address".to_owned()));
        }
        Ok(Answer {
            addresses: reachable_family(addresses, name.port).await,
            valid_until: lookup.valid_until(),
        })
    }
}

/// The resolver's own words tell of queries and their classes.
fn in_plain_words(error: &NetError) -> String {
    if error.is_nx_domain() {
        "no such name".to_owned()
    } else if error.is_no_records_found() {
        "the name has no address".to_owned()
    } else {
        error.to_string()
    }
}

impl Addresses {
    /// The next address in rotation, after a look at whether the name was resolved anew.
    pub(crate) fn next(&mut self, names: &Names) -> IpAddr {
        let name = &names.entries[self.name_idx];
        let generation = name.generation.load(Ordering::Acquire);
        if generation != self.generation {
            self.generation = generation;
            self.addresses = names.addresses(self.name_idx);
        }
        let address = self.addresses[self.next % self.addresses.len()];
        self.next = self.next.wrapping_add(1);
        address
    }
}

/// Those of a name's addresses that a script's `dns` wants.
pub(crate) fn look_up_now(host: &str, port: u16, dns: Dns) -> Result<Arc<[IpAddr]>, Error> {
    let unresolved = |reason: String| Error::NameNotResolved { host: host.to_owned(), port, reason };
    let found = std::net::ToSocketAddrs::to_socket_addrs(&(host, port));
    let found: Vec<IpAddr> =
        found.map_err(|error| unresolved(error.to_string()))?.map(|at| at.ip()).collect();
    let (four, six): (Vec<IpAddr>, Vec<IpAddr>) = found.iter().partition(|address| address.is_ipv4());
    let mut addresses = match dns.policy {
        DnsPolicy::Any => found,
        DnsPolicy::OnlyIpv4 => four,
        DnsPolicy::OnlyIpv6 => six,
        DnsPolicy::PreferIpv4 => {
            if four.is_empty() {
                six
            } else {
                four
            }
        }
        DnsPolicy::PreferIpv6 => {
            if six.is_empty() {
                four
            } else {
                six
            }
        }
    };
    if dns.select == DnsSelect::First {
        addresses.truncate(1);
    }
    if addresses.is_empty() {
        Err(unresolved("the name has no address of the requested family".to_owned()))
    } else {
        Ok(addresses.into())
    }
}

/// The address that a host is, in brackets where it is IPv6; `None`: it is a name.
pub(crate) fn literal(host: &str) -> Option<Arc<[IpAddr]>> {
    let bare = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(host);
    Some(Arc::from([bare.parse::<IpAddr>().ok()?]))
}

fn system_resolver() -> Result<TokioResolver, Error> {
    let builder = TokioResolver::builder_tokio();
    builder
        .and_then(|builder| builder.build())
        .map_err(|error| resolver_failed(std::io::Error::other(error.to_string())))
}

fn resolver_failed(source: std::io::Error) -> Error {
    Error::Os { what: "start the name resolver", source }
}

/// Happy eyeballs (RFC 8305): where a name has addresses of both families, they race once, IPv6 with a head start of
/// 250 ms, and the load goes to the winner's family. A load must not be slowed, or split at random, by a family that
/// the network does not carry.
async fn reachable_family(addresses: Vec<IpAddr>, port: u16) -> Arc<[IpAddr]> {
    let (six, four): (Vec<IpAddr>, Vec<IpAddr>) = addresses.iter().partition(|address| address.is_ipv6());
    let (Some(&first_six), Some(&first_four)) = (six.first(), four.first()) else {
        return addresses.into();
    };
    let try_six = connects(first_six, port);
    let try_four = async {
        tokio::time::sleep(HEAD_START).await;
        connects(first_four, port).await
    };
    tokio::pin!(try_six, try_four);
    let six_wins = tokio::select! {
        connected = &mut try_six => connected || !connects(first_four, port).await,
        connected = &mut try_four => !connected && try_six.await,
    };
    if six_wins { six.into() } else { four.into() }
}

async fn connects(address: IpAddr, port: u16) -> bool {
    let attempt = TcpStream::connect(SocketAddr::new(address, port));
    matches!(tokio::time::timeout(LOOK_UP_MAX, attempt).await, Ok(Ok(_stream)))
}

fn spawn_refresh(
    names: Arc<Names>,
    runtime: Runtime,
    resolver: TokioResolver,
    mut due: Vec<(Instant, usize)>,
    stop: Arc<AtomicBool>,
) -> Result<(), Error> {
    let refresh = move || {
        while !stop.load(Ordering::Relaxed) {
            thread::sleep(REFRESH_TICK);
            for (at, name_idx) in &mut due {
                if Instant::now() >= *at {
                    *at = runtime.block_on(refresh_name(&names, &resolver, *name_idx));
                }
            }
        }
    };
    let builder = thread::Builder::new().name("squall-dns".to_owned());
    builder.spawn(refresh).map(drop).map_err(|source| Error::Os { what: "start the name resolver", source })
}

/// A failed look-up keeps the addresses that were good, and is repeated soon.
async fn refresh_name(names: &Names, resolver: &TokioResolver, name_idx: usize) -> Instant {
    match names.look_up(resolver, name_idx).await {
        Ok(answer) => {
            names.set(name_idx, answer.addresses);
            answer.valid_until.max(Instant::now() + TTL_MIN)
        }
        Err(_unresolved) => Instant::now() + TTL_MIN,
    }
}

/// A look-up, or a connect of the race, that takes longer has failed.
const LOOK_UP_MAX: Duration = Duration::from_secs(5);

/// RFC 8305 section 5 recommends 250 ms between connection attempts.
const HEAD_START: Duration = Duration::from_millis(250);

/// How often the thread looks at what has expired, and at whether the run has ended.
const REFRESH_TICK: Duration = Duration::from_millis(100);

/// Names are not looked up more often than this, whatever their time to live says.
const TTL_MIN: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_and_given_addresses_need_no_resolver() {
        let mut names = Names::default();
        let literal = names.add("127.0.0.9", 80, None);
        let six = names.add("[::1]", 80, None);
        let given = names.add(
            "shop.example",
            443,
            Some(Arc::from(["192.0.2.1", "192.0.2.2"].map(|a| a.parse().unwrap()))),
        );
        assert_eq!(names.add("127.0.0.9", 80, None), literal);
        let names = names.resolve(&[], &Arc::default()).unwrap();
        assert_eq!(names.view(literal, 0).next(&names).to_string(), "127.0.0.9");
        assert_eq!(names.view(six, 0).next(&names).to_string(), "::1");
        let mut view = names.view(given, 1);
        let rotation: Vec<String> = (0..3).map(|_| view.next(&names).to_string()).collect();
        assert_eq!(rotation, ["192.0.2.2", "192.0.2.1", "192.0.2.2"]);
    }

    #[test]
    fn a_new_answer_reaches_the_shards() {
        let mut names = Names::default();
        let idx = names.add("shop.example", 80, Some(Arc::from([IpAddr::from([192, 0, 2, 1])])));
        let mut view = names.view(idx, 0);
        names.set(idx, Arc::from([IpAddr::from([192, 0, 2, 7])]));
        assert_eq!(view.next(&names).to_string(), "192.0.2.7");
    }

    #[test]
    fn localhost_resolves_to_the_family_that_listens() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let mut names = Names::default();
        let idx = names.add("localhost", listener.local_addr().unwrap().port(), None);
        let stop = Arc::new(AtomicBool::new(false));
        let names = names.resolve(&[], &stop).unwrap();
        assert_eq!(names.view(idx, 0).next(&names).to_string(), "127.0.0.1");
        assert_eq!(names.take_lookups().len(), 1);
        stop.store(true, Ordering::Relaxed);
    }
}
