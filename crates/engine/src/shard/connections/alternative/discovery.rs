//! What connections do with announcements of HTTP/3: they are read, tried, followed and given up.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use squall_measure::{Cause, FailureExample};
use squall_plan::Load;
use squall_plan::limits::ALTERNATIVE_TIMEOUT;
use squall_script::{Dns, DnsPolicy, DnsSelect};
use squall_wire::alt_svc::{self, Announcement};

use super::{AlternativePlace, AlternativeTrial, Announced};
use crate::dns::{literal, look_up_now};
use crate::prepare::{OriginKey, Prepared, connect_to, resolve_rule};
use crate::shard::connections::Connections;
use crate::shard::connections::conn::{ConnState, Exchange};
use crate::shard::recorder::ShardRecorder;
use crate::shard::schedule::ShardSchedule;
use crate::sys::nanoseconds;
use crate::trouble::{Trouble, time_limit};

impl Connections {
    /// A response is whole: its Alt-Svc field is followed. With 421, the server is not the origin's, nor does its field count (RFC 7838 6).
    pub(in crate::shard) fn follow_announcement(
        &mut self,
        recorder: &mut ShardRecorder,
        conn_idx: usize,
        status: u16,
    ) {
        let value = recorder.sink.take_alternative(conn_idx);
        if status == MISDIRECTED {
            return self.note_misdirected(conn_idx);
        }
        if let Some(value) = value {
            self.note_announcement(recorder, conn_idx, &value);
            recorder.sink.give_back_alternative(value);
        }
    }

    /// The same value again only renews what is known.
    fn note_announcement(&mut self, recorder: &mut ShardRecorder, conn_idx: usize, value: &[u8]) {
        let origin_idx = self.conns[conn_idx].origin_idx as usize;
        let now_ns = self.now_ns;
        let Some(known) = &mut self.origin_states[origin_idx].alternative else { return };
        if known.value == value {
            if let Some(announced) = &mut known.announced {
                announced.until_ns = end_of(now_ns, announced.max_age_s);
            }
            return;
        }
        known.value.clear();
        known.value.extend_from_slice(value);
        let figures = recorder.pulse.snapshot.alt_svc.get_or_insert_default();
        match alt_svc::parse(value) {
            None => figures.ignored += 1,
            Some(Announcement::Nothing) => figures.withdrawals += u64::from(known.withdraw()),
            Some(Announcement::Http3(_)) if known.is_looked_up() => figures.ignored += 1,
            Some(Announcement::Http3(service)) => match self.place_of_alternative(conn_idx, &service) {
                None => figures.ignored += 1,
                Some((place, port)) => {
                    figures.discoveries += 1;
                    let max_age_s = service.max_age_s;
                    let announced = Announced { place, port, max_age_s, until_ns: end_of(now_ns, max_age_s) };
                    self.origin_states[origin_idx].alternative.get_or_insert_default().announce(announced);
                }
            },
        }
    }

    /// Where an alternative is; `None`: at a place that is not used. The certificate must be the origin's wherever it is (RFC 7838 2.1), so
    /// without verification only the origin's own host will do.
    fn place_of_alternative(
        &self,
        conn_idx: usize,
        service: &alt_svc::Alternative,
    ) -> Option<(AlternativePlace, u16)> {
        let Load { network, tls, .. } = &self.prepared.load;
        let conn = &self.conns[conn_idx];
        let OriginKey { host: own_host, port: own_port, .. } =
            &self.prepared.origins[conn.origin_idx as usize].key;
        let host = service.host.as_deref().unwrap_or(own_host);
        if tls.insecure && !host.eq_ignore_ascii_case(own_host) {
            return None;
        }
        let (to_host, to_port) = connect_to(network, host, service.port);
        if let Some(addresses) = resolve_rule(network, &to_host, to_port).or_else(|| literal(&to_host)) {
            return Some((AlternativePlace::Addresses { addresses, next: 0 }, to_port));
        }
        if to_host.eq_ignore_ascii_case(&connect_to(network, own_host, *own_port).0) {
            return Some((AlternativePlace::Origin, to_port));
        }
        // The family of addresses that has brought the announcement is one that the network carries.
        let policy = match conn.cold.remote {
            Some(SocketAddr::V6(_)) => DnsPolicy::PreferIpv6,
            _ => DnsPolicy::PreferIpv4,
        };
        Some((AlternativePlace::LookedUp(look_up_aside(to_host, to_port, policy)?), to_port))
    }

    /// Where a connection goes that is opened now, if that is by QUIC.
    pub(in crate::shard) fn next_quic_remote(
        &mut self,
        recorder: &mut ShardRecorder,
        conn_idx: usize,
    ) -> Option<SocketAddr> {
        let origin_idx = self.conns[conn_idx].origin_idx as usize;
        let Prepared { origins, names, .. } = &*self.prepared;
        let origin = &origins[origin_idx];
        if origin.is_quic {
            return self.dialer.next_remote(origin_idx, &origin.dial, names);
        }
        let known = self.origin_states[origin_idx].alternative.as_deref_mut()?;
        known.take_answer();
        if !known.is_open(self.now_ns) {
            return None;
        }
        let announced = known.announced.as_mut()?;
        let remote = match &mut announced.place {
            AlternativePlace::Origin => self.dialer.next_remote(origin_idx, &origin.dial, names)?.ip(),
            AlternativePlace::Addresses { addresses, next } => {
                *next = next.wrapping_add(1);
                addresses[*next % addresses.len()]
            }
            AlternativePlace::LookedUp(_) => return None,
            AlternativePlace::Unknown => {
                known.announced = None;
                recorder.pulse.snapshot.alt_svc.get_or_insert_default().ignored += 1;
                return None;
            }
        };
        let remote = SocketAddr::new(remote, announced.port);
        if known.trial != AlternativeTrial::Works {
            known.trial = AlternativeTrial::Trying;
        }
        self.conns[conn_idx].cold.is_alternative = true;
        Some(remote)
    }

    /// The time limit of a connection that is being opened: an alternative has less, as there is TCP.
    pub(in crate::shard) fn opening_timeout_ns(&self, conn_idx: usize) -> u64 {
        match self.conns[conn_idx].cold.is_alternative {
            true => self.limits.connect_timeout_ns.min(nanoseconds(ALTERNATIVE_TIMEOUT)),
            false => self.limits.connect_timeout_ns,
        }
    }

    /// A connection that an announcement has led to is established.
    pub(in crate::shard) fn note_alternative_open(&mut self, recorder: &mut ShardRecorder, conn_idx: usize) {
        let conn = &self.conns[conn_idx];
        if !conn.cold.is_alternative {
            return;
        }
        recorder.pulse.snapshot.alt_svc.get_or_insert_default().connections += 1;
        if let Some(known) = &mut self.origin_states[conn.origin_idx as usize].alternative {
            (known.trial, known.failure_count) = (AlternativeTrial::Works, 0);
        }
    }

    /// Whether a connection that has answered a request ends so that the next one can speak the other version.
    pub(in crate::shard) fn moves_to_alternative(&mut self, conn_idx: usize) -> bool {
        let conn = &self.conns[conn_idx];
        let Some(known) = &mut self.origin_states[conn.origin_idx as usize].alternative else { return false };
        known.moves(conn.cold.quic.is_some(), self.now_ns)
    }

    /// What was announced does not answer for the origin.
    fn note_misdirected(&mut self, conn_idx: usize) {
        let conn = &self.conns[conn_idx];
        if conn.cold.is_alternative
            && let Some(known) = &mut self.origin_states[conn.origin_idx as usize].alternative
        {
            known.announced = None;
            known.fail(self.now_ns);
        }
    }

    /// A connection that an announcement led to cannot be established: TCP takes its place. Returns whether it does.
    pub(in crate::shard) fn fall_back(
        &mut self,
        schedule: &mut ShardSchedule,
        recorder: &mut ShardRecorder,
        conn_idx: usize,
        trouble: &Trouble,
    ) -> bool {
        let conn = &self.conns[conn_idx];
        if !conn.cold.is_alternative || matches!(conn.state, ConnState::Open | ConnState::Vacant) {
            return false;
        }
        let (pool_idx, failure_count) = (conn.pool_idx as usize, conn.cold.failure_count);
        let opener = conn.has_opener.then(|| self.exchanges[self.place_of(conn_idx, 0)]);
        self.count_fallback(recorder, conn_idx, opener.as_ref(), trouble);
        if let Some(known) = &mut self.origin_states[conn.origin_idx as usize].alternative {
            known.fail(self.now_ns);
        }
        self.vacate(recorder, conn_idx);
        self.conns[conn_idx].cold.failure_count = failure_count;
        if let Some(exchange) = opener {
            self.pools[pool_idx].vacant.retain(|vacant| *vacant != conn_idx as u32);
            let exchange = Exchange { assigned_ns: self.now_ns, ..exchange };
            self.open_for(schedule, recorder, conn_idx, exchange);
        }
        true
    }

    fn count_fallback(
        &self,
        recorder: &mut ShardRecorder,
        conn_idx: usize,
        opener: Option<&Exchange>,
        trouble: &Trouble,
    ) {
        let Trouble { cause, phase, text, .. } = trouble;
        let fallbacks = &mut recorder.pulse.snapshot.alt_svc.get_or_insert_default().fallbacks;
        fallbacks.count(*cause, *phase);
        if !fallbacks.wants_example(*cause, *phase) {
            return;
        }
        let row_idx = opener.map(|exchange| self.request(exchange.request).rows.unsent());
        let row = row_idx.and_then(|row_idx| self.prepared.rows.get(row_idx as usize));
        let limit = time_limit(self.opening_timeout_ns(conn_idx));
        let text = match cause {
            Cause::ConnectTimeout => format!("no connection within {limit}"),
            _ => text.clone(),
        };
        let at_ns = self.now_ns.saturating_sub(recorder.start_ns);
        let url = row.map_or_else(String::new, |row| row.url.clone());
        fallbacks.set_example(*cause, *phase, FailureExample { at_ns, url, text });
    }
}

/// Looks a name up while the loop goes on; `None`: there is no thread for it.
fn look_up_aside(host: String, port: u16, policy: DnsPolicy) -> Option<Receiver<Arc<[IpAddr]>>> {
    let (answer, answered) = channel();
    let look_up = move || {
        let dns = Dns { select: DnsSelect::First, policy };
        if let Ok(addresses) = look_up_now(&host, port, dns) {
            // The run may be over.
            let _ = answer.send(addresses);
        }
    };
    thread::Builder::new().name("squall-alt-svc".to_owned()).spawn(look_up).ok()?;
    Some(answered)
}

fn end_of(begin_ns: u64, age_s: u64) -> u64 {
    begin_ns.saturating_add(age_s.saturating_mul(1_000_000_000))
}

/// RFC 9110 15.5.20.
const MISDIRECTED: u16 = 421;
