//! Local addresses in rotation.

use std::net::{IpAddr, SocketAddr};

use squall_plan::ShardPart;

/// The plan's local addresses, and which one is next.
#[derive(Debug, Clone)]
pub(crate) struct Sources {
    addresses: Vec<IpAddr>,
    next: usize,
    part: ShardPart,
}

impl Sources {
    /// The shards of a load begin at different addresses.
    pub(crate) fn new(addresses: &[IpAddr], part: &ShardPart) -> Self {
        Self { addresses: addresses.to_vec(), next: part.shard_idx as usize, part: part.clone() }
    }

    /// The next local address that can reach `target`, where the plan gives any.
    pub(crate) fn next(&mut self, target: &SocketAddr) -> Option<IpAddr> {
        let step = self.fitting(self.next, target)?;
        self.next = (step + 1) % self.addresses.len();
        Some(self.addresses[step % self.addresses.len()])
    }

    /// The local address of a shard's user: always the same one.
    pub(crate) fn of_user(&self, user: u32, target: &SocketAddr) -> Option<IpAddr> {
        let step = self.fitting(self.part.machine_idx(user.into()) as usize, target)?;
        Some(self.addresses[step % self.addresses.len()])
    }

    /// The first place from `begin` on whose address is of the target's family.
    fn fitting(&self, begin: usize, target: &SocketAddr) -> Option<usize> {
        let count = self.addresses.len();
        let is_fitting = |step: &usize| self.addresses[step % count].is_ipv4() == target.is_ipv4();
        (begin..begin + count).find(is_fitting)
    }
}

#[cfg(test)]
mod tests {
    use squall_plan::Segment;

    use super::*;

    fn part(shard_idx: u32) -> ShardPart {
        ShardPart { shard_idx, shard_count: 2, segment: Segment::WHOLE }
    }

    #[test]
    fn addresses_take_turns_within_the_family_of_the_target() {
        let addresses = ["127.0.0.1", "::1", "127.0.0.2"].map(|text| text.parse().unwrap());
        let mut sources = Sources::new(&addresses, &part(1));
        let target = "192.0.2.1:80".parse().unwrap();
        let rotation: Vec<String> = (0..3).map(|_| sources.next(&target).unwrap().to_string()).collect();
        assert_eq!(rotation, ["127.0.0.2", "127.0.0.1", "127.0.0.2"]);
        assert_eq!(sources.next(&"[2001:db8::1]:80".parse().unwrap()).unwrap().to_string(), "::1");
        let of_users: Vec<String> =
            (0..3).map(|user| sources.of_user(user, &target).unwrap().to_string()).collect();
        assert_eq!(of_users, ["127.0.0.2", "127.0.0.1", "127.0.0.2"]);
        assert_eq!(Sources::new(&[], &part(0)).next(&target), None);
    }
}
