//! Which connection each request gets.

use std::rc::Rc;

use crate::prepare::PreparedRequest;
use crate::shard::connections::Connections;
use crate::shard::connections::conn::{ConnState, Exchange};
use crate::shard::recorder::ShardRecorder;
use crate::shard::schedule::ShardSchedule;

impl Connections {
    /// Follows redirects: before anything that waits, since each belongs to a request that has begun.
    pub(in crate::shard) fn serve_hops(
        &mut self,
        schedule: &mut ShardSchedule,
        recorder: &mut ShardRecorder,
    ) {
        let mut hops = std::mem::take(&mut self.turn.hops);
        for hop in hops.drain(..) {
            let pool_idx = self.pool_of(&hop);
            if let Some(conn_idx) = self.take_slot(recorder, pool_idx) {
                self.assign(schedule, recorder, conn_idx, hop);
            } else {
                self.pools[pool_idx].waiting.push_front(hop);
                self.counts.waiting += 1;
            }
        }
        hops.append(&mut self.turn.hops);
        self.turn.hops = hops;
    }

    pub(in crate::shard) fn fits(&self, conn_idx: usize, exchange: &Exchange) -> bool {
        let conn = &self.conns[conn_idx];
        conn.pool_idx as usize == self.pool_of(exchange)
            && self.has_free_slot(conn_idx)
            && self.pools[conn.pool_idx as usize].waiting.is_empty()
    }

    pub(in crate::shard) fn has_free_slot(&self, conn_idx: usize) -> bool {
        let conn = &self.conns[conn_idx];
        let in_flight = conn.in_flight();
        conn.state == ConnState::Open
            && conn.has_free_slot()
            && conn.served_count + in_flight < self.limits.served_max
            && (in_flight == 0 || !self.is_old(conn_idx))
    }

    /// Gives a request a connection at once, or lets it wait its turn. Returns whether it got one.
    pub(in crate::shard) fn place(
        &mut self,
        schedule: &mut ShardSchedule,
        recorder: &mut ShardRecorder,
        exchange: Exchange,
    ) -> bool {
        let pool_idx = self.pool_of(&exchange);
        let is_first_in_line = self.pools[pool_idx].waiting.is_empty();
        match is_first_in_line.then(|| self.take_slot(recorder, pool_idx)).flatten() {
            Some(conn_idx) => {
                self.assign(schedule, recorder, conn_idx, exchange);
                true
            }
            None => {
                self.pools[pool_idx].waiting.push_back(exchange);
                self.counts.waiting += 1;
                false
            }
        }
    }

    /// Requests that wait get the connections that are free, in order.
    pub(in crate::shard) fn serve_waiting(
        &mut self,
        schedule: &mut ShardSchedule,
        recorder: &mut ShardRecorder,
    ) {
        if self.counts.waiting == 0 {
            return;
        }
        for pool_idx in 0..self.pools.len() {
            while !self.pools[pool_idx].waiting.is_empty() {
                let Some(conn_idx) = self.take_slot(recorder, pool_idx) else { break };
                if let Some(exchange) = self.pools[pool_idx].waiting.pop_front() {
                    self.counts.waiting -= 1;
                    self.assign(schedule, recorder, conn_idx, exchange);
                }
            }
        }
    }

    /// A connection with a free slot: for those who wait, or to be kept for those who come.
    pub(in crate::shard) fn offer(
        &mut self,
        schedule: &mut ShardSchedule,
        recorder: &mut ShardRecorder,
        conn_idx: usize,
    ) {
        let pool_idx = self.conns[conn_idx].pool_idx as usize;
        while self.has_free_slot(conn_idx) {
            let Some(exchange) = self.pools[pool_idx].waiting.pop_front() else {
                self.list_idle(conn_idx);
                return;
            };
            self.counts.waiting -= 1;
            self.assign(schedule, recorder, conn_idx, exchange);
        }
    }

    pub(in crate::shard) fn list_idle(&mut self, conn_idx: usize) {
        let conn = &mut self.conns[conn_idx];
        if !conn.is_listed_idle {
            conn.is_listed_idle = true;
            self.pools[conn.pool_idx as usize].idle.push(conn_idx as u32);
        }
    }

    /// A slot for one more request to this origin: an open connection, else one that is to be opened.
    fn take_slot(&mut self, recorder: &mut ShardRecorder, pool_idx: usize) -> Option<usize> {
        while let Some(conn_idx) = self.pools[pool_idx].idle.pop() {
            let conn_idx = conn_idx as usize;
            self.conns[conn_idx].is_listed_idle = false;
            if self.has_free_slot(conn_idx) {
                return Some(conn_idx);
            }
        }
        if !self.may_open() || self.awaits_streams(pool_idx) {
            return None;
        }
        let vacant = self.pools[pool_idx].vacant.pop().map(|conn_idx| conn_idx as usize);
        let slot = vacant.or_else(|| self.add_slot(recorder, pool_idx))?;
        self.counts.opened_this_turn += 1;
        Some(slot)
    }

    /// Whether one more connection may be opened in this turn.
    pub(in crate::shard) fn may_open(&self) -> bool {
        self.counts.opened_this_turn < self.limits.open_per_turn_max
    }

    /// Puts a request on a connection; opens the connection first where it is not.
    pub(in crate::shard) fn assign(
        &mut self,
        schedule: &mut ShardSchedule,
        recorder: &mut ShardRecorder,
        conn_idx: usize,
        mut exchange: Exchange,
    ) {
        exchange.assigned_ns = self.now_ns;
        exchange.is_first = self.conns[conn_idx].state != ConnState::Open;
        if !exchange.is_retry() {
            exchange.is_warmup = exchange.intended_ns < self.limits.warm_until_ns;
            recorder.pulse.count_start(exchange.is_warmup, exchange.redirect_count > 0);
            self.counts.open += 1;
        }
        if self.conns[conn_idx].client.is_some() {
            self.reserve_slot(recorder, conn_idx, exchange);
        } else {
            self.open_for(schedule, recorder, conn_idx, exchange);
        }
        if self.has_free_slot(conn_idx) {
            self.list_idle(conn_idx);
        }
    }

    /// Opens a connection for a request.
    pub(in crate::shard) fn open_for(
        &mut self,
        schedule: &mut ShardSchedule,
        recorder: &mut ShardRecorder,
        conn_idx: usize,
        exchange: Exchange,
    ) {
        self.conns[conn_idx].has_opener = true;
        let place = self.place_of(conn_idx, 0);
        self.exchanges[place] = exchange;
        self.open(schedule, recorder, conn_idx);
    }

    /// A place among the requests made at run time, with the buffers of an earlier one.
    pub(in crate::shard) fn free_dynamic(&mut self) -> usize {
        let idx = self.made.free.pop().unwrap_or_else(|| {
            self.made.requests.push(None);
            self.made.requests.len() - 1
        });
        self.made.requests[idx].get_or_insert_with(|| Rc::new(PreparedRequest::empty()));
        idx
    }

    /// A slot for a new connection; where there is none left, that of the connection that was used least recently.
    pub(in crate::shard) fn fresh_slot(
        &mut self,
        schedule: &mut ShardSchedule,
        recorder: &mut ShardRecorder,
        origin_idx: usize,
    ) -> Option<usize> {
        if !self.may_open() {
            return None;
        }
        let vacant = self.pools[origin_idx].vacant.pop().map(|conn_idx| conn_idx as usize);
        if let Some(conn_idx) = vacant.or_else(|| self.add_slot(recorder, origin_idx)) {
            self.counts.opened_this_turn += 1;
            return Some(conn_idx);
        }
        let is_free = |conn_idx: &u32| self.conns[*conn_idx as usize].in_flight() == 0;
        let at = self.pools[origin_idx].idle.iter().position(is_free)?;
        let conn_idx = self.pools[origin_idx].idle.remove(at) as usize;
        self.conns[conn_idx].is_listed_idle = false;
        self.retire(schedule, recorder, conn_idx);
        self.pools[origin_idx].vacant.pop().map(|conn_idx| conn_idx as usize)
    }
}
