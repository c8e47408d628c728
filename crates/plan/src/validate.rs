//! What a plan must be beyond its types: within the limits, and able to send at least one request.

use crate::limits::{
    CONNECTION_COUNT_MAX, PREPARED_BYTES_MAX, PREPARED_REQUEST_COUNT_MAX, RATE_PER_S_MAX,
    REQUEST_HEAD_BYTES_MAX, WEIGHT_SUM_MAX,
};
use crate::{Body, Endpoint, HttpLoad, Load, Plan, Profile, RequestPlan, StreamLoad, Weighted, What, When};

/// Why a plan cannot be run.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum PlanError {
    /// Each prepared request keeps its encoded head in memory.
    #[error(
        "{count} prepared requests (URLs x user agents), but at most {PREPARED_REQUEST_COUNT_MAX} are supported"
    )]
    TooManyRequests {
        /// URLs x user agents.
        count: usize,
    },
    /// Each prepared request keeps its head and its body in memory.
    #[error("prepared requests total {bytes} bytes, but at most {PREPARED_BYTES_MAX} are supported")]
    TooManyBytes {
        /// Heads and bodies of all.
        bytes: usize,
    },
    /// The rotation keeps one slot for each unit of weight.
    #[error(
        "weights add up to {sum} after division by their common divisor, but at most {WEIGHT_SUM_MAX} is supported"
    )]
    WeightsTooLarge {
        /// The sum.
        sum: u64,
    },
    /// A request's head is larger than any server would read.
    #[error(
        "the head of {method} {url} has {bytes} bytes, but at most {REQUEST_HEAD_BYTES_MAX} are supported"
    )]
    HeadTooLarge {
        /// Its method.
        method: String,
        /// Its URL's pattern.
        url: String,
        /// Its size.
        bytes: usize,
    },
    /// More arrivals than one process can make.
    #[error("{rate} requests per second, but at most {RATE_PER_S_MAX} are supported")]
    RateTooHigh {
        /// The highest rate of the plan.
        rate: f64,
    },
    /// More connections than the kernel allows.
    #[error("{count} connections, but at most {CONNECTION_COUNT_MAX} are supported")]
    TooManyConnections {
        /// The highest number of the plan.
        count: f64,
    },
    /// The schedule never starts a request.
    #[error("the plan would send no requests")]
    NothingToDo,
}

impl Plan {
    /// Checks the whole plan.
    pub fn validate(&self) -> Result<(), PlanError> {
        if self.loads.is_empty() {
            return Err(PlanError::NothingToDo);
        }
        self.loads.iter().try_for_each(Load::validate)
    }
}

impl Load {
    fn validate(&self) -> Result<(), PlanError> {
        match &self.what {
            What::Http(http) | What::Stream(StreamLoad { http, .. }) => http.validate()?,
            What::WebSocket(load) => {
                load.http.validate()?;
                load.rate.as_ref().map_or(Ok(()), |rate| validate_rate(&rate.rate))?;
            }
            What::Script(_) => {}
            What::Handshake(load) => {
                validate_targets(&load.targets)?;
                validate_weights(load.server_names.iter().map(|name| name.weight.get()))?;
            }
            What::Idle(load) => validate_targets(&load.targets)?,
            // Its requests are in a file, which is looked at when it is opened.
            What::Replay(_) => {}
        }
        match &self.when {
            When::Closed { connections, users } => {
                validate_connections(connections)?;
                users.as_ref().map_or(Ok(()), validate_connections)?;
            }
            When::Open { rate, .. } => validate_rate(rate)?,
        }
        if self.starts_nothing() { Err(PlanError::NothingToDo) } else { Ok(()) }
    }

    fn starts_nothing(&self) -> bool {
        let end = self.stop.duration.map_or(f64::INFINITY, |d| d.as_secs_f64());
        let profile = match &self.when {
            When::Closed { users: Some(profile), .. }
            | When::Closed { connections: profile, users: None }
            | When::Open { rate: profile, .. } => profile,
        };
        profile.time_of(f64::MIN_POSITIVE).is_none_or(|at| at >= end)
    }
}

impl HttpLoad {
    fn validate(&self) -> Result<(), PlanError> {
        let count = self.requests.len().saturating_mul(self.user_agents.len());
        if self.requests.is_empty() || self.user_agents.is_empty() {
            return Err(PlanError::NothingToDo);
        }
        if count > PREPARED_REQUEST_COUNT_MAX {
            return Err(PlanError::TooManyRequests { count });
        }
        let bytes_each = self.requests.iter().map(RequestPlan::prepared_bytes).fold(0, usize::saturating_add);
        validate_prepared_bytes(bytes_each, self.user_agents.len())?;
        validate_weights(self.requests.iter().map(|r| r.weight.get()))?;
        validate_weights(self.user_agents.iter().map(|u| u.weight.get()))?;
        let agent_bytes =
            self.user_agents.iter().map(|Weighted { value, .. }| value.len()).max().unwrap_or(0);
        self.requests.iter().try_for_each(|request| request.validate(agent_bytes))
    }
}

impl RequestPlan {
    fn validate(&self, agent_bytes: usize) -> Result<(), PlanError> {
        let bytes = self.head_bytes() + agent_bytes;
        if bytes <= REQUEST_HEAD_BYTES_MAX {
            return Ok(());
        }
        Err(PlanError::HeadTooLarge { method: self.method.clone(), url: self.pattern.clone(), bytes })
    }

    fn head_bytes(&self) -> usize {
        let fields = self.headers.iter().map(|h| h.name.len() + h.value.len() + FIELD_OVERHEAD_BYTES);
        self.method.len() + self.url.as_str().len() + fields.sum::<usize>()
    }

    fn prepared_bytes(&self) -> usize {
        let body_bytes = if let Body::Bytes(body) = &self.body { body.len() } else { 0 };
        self.head_bytes() + body_bytes
    }
}

/// Whether `count` requests of these many bytes each can be kept; asked before they are made, too.
pub fn validate_prepared_bytes(bytes_each: usize, count: usize) -> Result<(), PlanError> {
    let bytes = bytes_each.saturating_mul(count);
    if bytes > PREPARED_BYTES_MAX { Err(PlanError::TooManyBytes { bytes }) } else { Ok(()) }
}

fn validate_weights(weights: impl Iterator<Item = u32> + Clone) -> Result<(), PlanError> {
    let divisor = weights.clone().map(u64::from).fold(0, greatest_common_divisor).max(1);
    let sum = weights.map(u64::from).sum::<u64>() / divisor;
    if sum > WEIGHT_SUM_MAX as u64 { Err(PlanError::WeightsTooLarge { sum }) } else { Ok(()) }
}

fn validate_targets(targets: &[Weighted<Endpoint>]) -> Result<(), PlanError> {
    if targets.is_empty() {
        return Err(PlanError::NothingToDo);
    }
    validate_weights(targets.iter().map(|target| target.weight.get()))
}

fn validate_rate(rate: &Profile) -> Result<(), PlanError> {
    if rate.max() > RATE_PER_S_MAX { Err(PlanError::RateTooHigh { rate: rate.max() }) } else { Ok(()) }
}

fn validate_connections(connections: &Profile) -> Result<(), PlanError> {
    let count = connections.max();
    if count > f64::from(CONNECTION_COUNT_MAX) {
        Err(PlanError::TooManyConnections { count })
    } else {
        Ok(())
    }
}

fn greatest_common_divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { greatest_common_divisor(b, a % b) }
}

/// `: ` and the line's end.
const FIELD_OVERHEAD_BYTES: usize = 4;

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;
    use std::time::Duration;

    use super::*;
    use crate::{ConnectionPolicy, Expect, Header, Network, Stage, Stop, TlsPolicy};

    fn weighted<T>(weight: u32, value: T) -> Weighted<T> {
        Weighted { weight: NonZeroU32::new(weight).unwrap(), value }
    }

    fn request(weight: u32) -> RequestPlan {
        RequestPlan {
            weight: NonZeroU32::new(weight).unwrap(),
            method: "GET".into(),
            url: "http://x/".parse().unwrap(),
            pattern: "http://x/".into(),
            headers: Vec::new(),
            body: Body::Empty,
            http: crate::HttpVersion::Http11,
        }
    }

    fn load(connections: Profile) -> Load {
        let http = HttpLoad {
            requests: vec![request(1)],
            user_agents: vec![weighted(1, "squall".to_owned())],
            follow_count_max: 0,
            expect: Expect::default(),
            timeout: Duration::from_secs(30),
        };
        Load {
            name: "http".into(),
            what: What::Http(http),
            when: When::Closed { connections, users: None },
            stop: Stop { duration: Some(Duration::from_secs(10)), count: None },
            connections: ConnectionPolicy::default(),
            network: Network::default(),
            tls: TlsPolicy::default(),
            segment: crate::Segment::WHOLE,
        }
    }

    fn with_http(change: impl FnOnce(&mut HttpLoad)) -> Load {
        let mut load = load(Profile::constant(1.0));
        let What::Http(http) = &mut load.what else { unreachable!("made of requests above") };
        change(http);
        load
    }

    #[test]
    fn a_plain_load_is_valid() {
        assert_eq!(load(Profile::constant(50.0)).validate(), Ok(()));
    }

    #[test]
    fn a_load_that_never_starts_is_refused() {
        let stage = |secs, target| Stage { duration: Duration::from_secs(secs), target };
        for connections in [
            Profile::constant(0.0),
            Profile { from: 0.0, stages: vec![stage(5, 0.0)] },
            Profile { from: 0.0, stages: vec![stage(10, 0.0), stage(5, 9.0)] },
        ] {
            assert_eq!(load(connections).validate(), Err(PlanError::NothingToDo));
        }
        assert_eq!(load(Profile { from: 0.0, stages: vec![stage(5, 1.0)] }).validate(), Ok(()));
        assert_eq!(with_http(|http| http.requests.clear()).validate(), Err(PlanError::NothingToDo));
    }

    #[test]
    fn limits_are_kept() {
        let count = f64::from(CONNECTION_COUNT_MAX) + 1.0;
        assert_eq!(load(Profile::constant(count)).validate(), Err(PlanError::TooManyConnections { count }));
        let heavy = with_http(|http| http.requests = vec![request(u32::MAX), request(1)]);
        assert_eq!(heavy.validate(), Err(PlanError::WeightsTooLarge { sum: 1 << 32 }));
        let even = with_http(|http| http.requests = vec![request(4_000_000_000), request(2_000_000_000)]);
        assert_eq!(even.validate(), Ok(()));
        let value = "x".repeat(REQUEST_HEAD_BYTES_MAX);
        let long = with_http(|http| http.requests[0].headers.push(Header { name: "X".into(), value }));
        assert!(matches!(long.validate(), Err(PlanError::HeadTooLarge { .. })));
        let agents = with_http(|http| {
            http.requests = vec![request(1); 1001];
            http.user_agents = vec![weighted(1, String::new()); 1000];
        });
        assert_eq!(agents.validate(), Err(PlanError::TooManyRequests { count: 1_001_000 }));
        let bodies = with_http(|http| {
            http.requests[0].body = Body::Bytes(vec![0; 2_000_000]);
            http.user_agents = vec![weighted(1, String::new()); 1000];
        });
        assert!(matches!(bodies.validate(), Err(PlanError::TooManyBytes { .. })));
    }
}
