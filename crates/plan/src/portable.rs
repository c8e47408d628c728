//! A plan that any machine can make: complete, but for the local addresses, which only that machine knows.
//!
//! Owns: what an agent receives instead of a command line, and what depends on the number of local addresses. Never: asks the system
//! for addresses.

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::rules::Source;
use crate::{Body, Load, OptionProblem, Plan, Profile, Stage, Stop, StreamLoad, What, When};

/// A plan, and the local addresses that are still to be found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PortablePlan {
    /// As for a machine whose system chooses the local addresses.
    pub plan: Plan,
    /// Local addresses as written.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<Source>,
    /// How many idle connections there are for each local address, and how they are opened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opening: Option<IdleOpening>,
}

/// How idle connections are opened from each local address.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct IdleOpening {
    /// Connections for each local address.
    pub count_each: u32,
    /// Connections opened per second by all addresses together.
    pub per_s: Option<f64>,
    /// Time between two connections from the same address, where `per_s` is `None`.
    pub pause: Option<Duration>,
    /// How long the load takes, the opening included; `None`: [`IdleOpening::AFTER`] longer than the opening.
    pub duration: Option<Duration>,
}

impl From<Plan> for PortablePlan {
    fn from(plan: Plan) -> Self {
        Self { plan, sources: Vec::new(), opening: None }
    }
}

impl PortablePlan {
    /// The plan on a machine that has these local addresses for the ones written.
    ///
    /// # Errors
    /// Too many connections, or too little time to open them.
    pub fn settle(self, addresses: &[IpAddr]) -> Result<Plan, OptionProblem> {
        let Self { mut plan, opening, .. } = self;
        for load in &mut plan.loads {
            load.network.sources = addresses.to_vec();
            if let Some(opening) = &opening {
                let count = load.fitting_count(addresses);
                (load.when, load.stop) = opening.settle(count)?;
            }
        }
        Ok(plan)
    }

    /// Every file that a machine needs to make it. Paths may be changed to those that the files have there.
    pub fn files_mut(&mut self) -> Vec<&mut PathBuf> {
        self.plan.loads.iter_mut().flat_map(Load::files_mut).collect()
    }
}

impl Load {
    /// Local addresses that its connections can come from: to an IPv4 address none comes from an IPv6 one.
    fn fitting_count(&self, addresses: &[IpAddr]) -> usize {
        let targets = self.what.endpoints().unwrap_or_default();
        let targets: Option<Vec<IpAddr>> =
            targets.iter().map(|target| target.value.host.parse::<IpAddr>().ok()).collect();
        let fits = |source: &&IpAddr| {
            let is_alike = |target: &IpAddr| target.is_ipv4() == source.is_ipv4();
            targets.as_ref().is_none_or(|all| all.iter().any(is_alike))
        };
        addresses.iter().filter(fits).count()
    }

    fn files_mut(&mut self) -> Vec<&mut PathBuf> {
        let mut files: Vec<&mut PathBuf> = self.tls.ca_files.iter_mut().collect();
        if let Some(identity) = &mut self.tls.client_identity {
            files.extend([&mut identity.cert_file, &mut identity.key_file]);
        }
        match &mut self.what {
            What::Http(http) | What::Stream(StreamLoad { http, .. }) => {
                files.extend(http.requests.iter_mut().filter_map(|request| match &mut request.body {
                    Body::File { path, .. } => Some(path),
                    Body::Empty | Body::Bytes(_) => None,
                }));
            }
            What::Replay(replay) => files.push(&mut replay.recording),
            What::Script(script) => files.push(&mut script.path),
            What::Handshake(_) | What::Idle(_) | What::WebSocket(_) => {}
        }
        files
    }
}

impl IdleOpening {
    /// How long an idle load lasts after its opening, unless its duration is given.
    pub const AFTER: Duration = Duration::from_secs(10);

    /// Connections over time, and the end, with so many local addresses.
    ///
    /// # Errors
    /// Too many connections, or too little time to open them.
    pub fn settle(&self, source_count: usize) -> Result<(When, Stop), OptionProblem> {
        let connection_count = self.connection_count(source_count)?;
        let opening = self.time(connection_count, source_count);
        let target = f64::from(connection_count);
        let connections = match opening {
            None => Profile::constant(target),
            Some(duration) => Profile { from: 0.0, stages: vec![Stage { duration, target }] },
        };
        let duration = Some(self.whole(opening.unwrap_or_default())?);
        Ok((When::Closed { connections, users: None }, Stop { duration, count: None }))
    }

    fn connection_count(&self, source_count: usize) -> Result<u32, OptionProblem> {
        let all = u32::try_from(u64::from(self.count_each) * source_count.max(1) as u64);
        all.map_err(|_| {
            let message =
                format!("{} connections for each of {source_count} addresses are too many", self.count_each);
            OptionProblem::of("connections", message, "lower --connections, or use fewer addresses")
        })
    }

    /// How long the opening takes by plan; `None`: as long as it takes.
    fn time(&self, connection_count: u32, source_count: usize) -> Option<Duration> {
        let by_pause = |pause: Duration| source_count.max(1) as f64 / pause.as_secs_f64();
        let per_s = self.per_s.or_else(|| self.pause.map(by_pause)).filter(|rate| *rate > 0.0)?;
        Duration::try_from_secs_f64(f64::from(connection_count) / per_s).ok()
    }

    fn whole(&self, opening: Duration) -> Result<Duration, OptionProblem> {
        match self.duration {
            None => Ok(opening + Self::AFTER),
            Some(duration) if duration >= opening => Ok(duration),
            Some(duration) => {
                let message = format!(
                    "the run takes {} s, but opening the connections takes {:.0} s",
                    duration.as_secs_f64(),
                    opening.as_secs_f64()
                );
                let help = "raise --duration or --open-rate, or leave --duration out";
                Err(OptionProblem::of("duration", message, help).with(&["open-rate", "pause", "connections"]))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::endpoints::parse_endpoint;
    use crate::{CloseMode, HandshakeLoad, Resumption, Segment};

    fn load(targets: &[&str]) -> Load {
        let what = What::Handshake(HandshakeLoad {
            quic: false,
            targets: targets.iter().map(|text| parse_endpoint(text, 80).unwrap()).collect(),
            server_names: Vec::new(),
            resumption: Resumption::OFF,
            request: None,
            hold: Duration::ZERO,
            close: CloseMode::Rst,
        });
        let when = When::Closed { connections: Profile::constant(1.0), users: None };
        Load {
            name: "sessions".to_owned(),
            what,
            when,
            stop: Stop { duration: None, count: None },
            connections: crate::ConnectionPolicy::default(),
            network: crate::Network::default(),
            tls: crate::TlsPolicy::default(),
            segment: Segment::WHOLE,
        }
    }

    #[test]
    fn only_addresses_of_the_targets_family_have_idle_connections() {
        let addresses = ["10.0.0.1", "10.0.0.2", "fd00::1"].map(|text| text.parse().unwrap());
        for (targets, expected) in [
            (&["10.1.1.1:80"][..], 2),
            (&["[fd00::2]:80"], 1),
            (&["10.1.1.1:80", "[fd00::2]:80"], 3),
            (&["shop:80"], 3),
        ] {
            assert_eq!(load(targets).fitting_count(&addresses), expected);
        }
    }

    #[test]
    fn idle_connections_are_so_many_for_each_local_address() {
        let opening = IdleOpening { count_each: 100, per_s: None, pause: None, duration: None };
        let by_rate = IdleOpening { per_s: Some(50.0), ..opening };
        let by_pause = IdleOpening { pause: Some(Duration::from_secs(1)), ..opening };
        for (opening, source_count, expected_count, expected_s) in [
            (opening, 0, 100.0, 10),
            (opening, 3, 300.0, 10),
            (by_rate, 3, 300.0, 16),
            (by_pause, 3, 300.0, 110),
        ] {
            let (when, stop) = opening.settle(source_count).unwrap();
            let When::Closed { connections, .. } = when else { panic!("{when:?}") };
            assert_eq!((connections.max(), stop.duration.unwrap().as_secs()), (expected_count, expected_s));
        }
        let short = IdleOpening { duration: Some(Duration::from_secs(1)), ..by_rate };
        assert_eq!(short.settle(1).unwrap_err().option.as_deref(), Some("duration"));
        let many = IdleOpening { count_each: u32::MAX, ..opening };
        assert_eq!(many.settle(2).unwrap_err().option.as_deref(), Some("connections"));
    }
}
