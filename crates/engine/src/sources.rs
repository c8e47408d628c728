//! Local addresses in rotation.

use std::net::{IpAddr, SocketAddr};

use crate::pace::Share;

/// The plan's local addresses, and which one is next.
#[derive(Debug, Clone)]
pub(crate) struct Sources {
    addresses: Vec<IpAddr>,
    next: usize,
}

impl Sources {
    /// The shards of a load begin at different addresses.
    pub(crate) fn new(addresses: &[IpAddr], share: Share) -> Self {
        Self { addresses: addresses.to_vec(), next: share.shard_idx as usize }
    }

    /// The next local address that can reach `target`, where the plan gives any.
    pub(crate) fn next(&mut self, target: &SocketAddr) -> Option<IpAddr> {
        let count = self.addresses.len();
        let fitting = |step: &usize| self.addresses[step % count].is_ipv4() == target.is_ipv4();
        let step = (self.next..self.next + count).find(fitting)?;
        self.next = (step + 1) % count;
        Some(self.addresses[step % count])
    }
}

#[cfg(test)]
mod tests {
    use squall_plan::Segment;

    use super::*;

    fn share(shard_idx: u32) -> Share {
        Share { shard_idx, shard_count: 2, segment: Segment::WHOLE }
    }

    #[test]
    fn addresses_take_turns_within_the_family_of_the_target() {
        let addresses = ["127.0.0.1", "::1", "127.0.0.2"].map(|text| text.parse().unwrap());
        let mut sources = Sources::new(&addresses, share(1));
        let target = "192.0.2.1:80".parse().unwrap();
        let rotation: Vec<String> = (0..3).map(|_| sources.next(&target).unwrap().to_string()).collect();
        assert_eq!(rotation, ["127.0.0.2", "127.0.0.1", "127.0.0.2"]);
        assert_eq!(sources.next(&"[2001:db8::1]:80".parse().unwrap()).unwrap().to_string(), "::1");
        assert_eq!(Sources::new(&[], share(0)).next(&target), None);
    }
}
