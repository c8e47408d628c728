//! What machines report: takes each report in, and notices who is gone.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use squall_measure::{Event, EventKind, StoppedBy, ToolFigures, ToolRun};

use super::jobs::{State, Step};
use super::{Fleet, SECOND_NS, Watcher};
use crate::absent::Unreported;
use crate::clock::unix_ns;
use crate::ledger::Source;
use crate::link::{Arrival, Arrived, Returned};
use crate::order::LoadWork;
use crate::protocol::{Begin, LoadEnd, Order, Report, Trouble};

impl Fleet<'_> {
    pub(super) fn arrive(&mut self, arrival: Arrival, step: &mut Step, watcher: &mut dyn Watcher) {
        let Arrival { machine_idx, what, came_unix_ns } = arrival;
        match what {
            Arrived::Json(json) => match serde_json::from_slice(&json) {
                Ok(report) if is_possible(&report, self.plan.loads.len()) => {
                    self.links[machine_idx].hear(&report, came_unix_ns);
                    self.take(machine_idx, report, step, watcher);
                }
                _ => self.lose(machine_idx, "it does not speak squall's protocol", step, watcher),
            },
            Arrived::Report(report) => self.take(machine_idx, report, step, watcher),
            Arrived::Ended(connection) if self.links[machine_idx].is_carried_by(connection) => {
                self.come_back(machine_idx, step, watcher);
            }
            Arrived::Ended(_) => {}
            Arrived::Back(returned) => self.resume(machine_idx, *returned, step, watcher),
            Arrived::Gone(why) => self.lose(machine_idx, &why, step, watcher),
            Arrived::Cluster(monitor_idx, look) => self.cluster(monitor_idx, look, watcher),
        }
    }

    /// A connection ended. Before the first load has started, that ends the run; later the agent has what it did meanwhile.
    fn come_back(&mut self, machine_idx: usize, step: &mut Step, watcher: &mut dyn Watcher) {
        let transport = Arc::clone(&self.transports[machine_idx]);
        let has_started = self.started_unix_ns > 0;
        if has_started && self.links[machine_idx].come_back(machine_idx, transport, &self.inbox_sender) {
            let label = format!("connection to {} lost, reconnecting", self.machine_name(machine_idx));
            self.note(EventKind::Note, &label, watcher);
        } else {
            self.lose(machine_idx, "the connection ended", step, watcher);
        }
    }

    fn resume(&mut self, machine_idx: usize, returned: Returned, step: &mut Step, watcher: &mut dyn Watcher) {
        if self.links[machine_idx].lost.is_some() {
            return;
        }
        match self.links[machine_idx].resume(machine_idx, returned, &self.inbox_sender) {
            Ok(()) => {
                let label = format!("reconnected to {}", self.machine_name(machine_idx));
                self.note(EventKind::Note, &label, watcher);
            }
            Err(error) => self.lose(machine_idx, &format!("cannot start a thread: {error}"), step, watcher),
        }
    }

    fn take(&mut self, machine_idx: usize, report: Report, step: &mut Step, watcher: &mut dyn Watcher) {
        match report {
            Report::Hello { .. } | Report::Resumed { .. } | Report::Clock { .. } => {}
            Report::Ready { load_idx, ready } => {
                let load_idx = load_idx as usize;
                let Some(state) = step.state_mut(machine_idx, load_idx) else { return };
                *state = State::Ready;
                self.ledger.take_rows(machine_idx, load_idx, &ready.rows);
                if RATES_REQUESTS.contains(&self.plan.loads[load_idx].written.value.as_str()) {
                    self.ledger.take_plan(machine_idx, load_idx, &ready.plan);
                }
                self.ledger.load_mut(load_idx).warmup = ready.plan.warmup;
                let machine = self.ledger.machine_mut(machine_idx);
                machine.facts.extend(ready.environment);
            }
            Report::Refused { load_idx, trouble } => self.refused(machine_idx, load_idx, &trouble, step),
            Report::Second { load_idx, second_idx, shard_idx, snapshot } => {
                let source = step.source(self.plan, machine_idx, load_idx as usize);
                self.ledger.absorb(source, second_idx, shard_idx, *snapshot);
            }
            Report::Close { load_idx, second_idx, machine } => {
                let source = step.source(self.plan, machine_idx, load_idx as usize);
                self.ledger.close(source, second_idx, machine);
            }
            Report::Rows { load_idx, rows } => self.ledger.take_rows(machine_idx, load_idx as usize, &rows),
            Report::SetUp { load_idx, data } => {
                self.begin(machine_idx, load_idx as usize, step, |at_unix_ns| {
                    Some(Begin { setup_data: data.clone(), at_unix_ns })
                });
            }
            Report::Said { load_idx, line } => {
                let load = &self.plan.loads[load_idx as usize].name;
                watcher.note(&format!("{} on {}: {line}", load, self.machine_name(machine_idx)));
            }
            Report::Ended { load_idx, end } => self.ended(machine_idx, load_idx as usize, end, step, watcher),
            Report::Found(found) => self.found[machine_idx] = Some(found),
            Report::HookEnded { hook_idx, end } if hook_idx == self.hook_idx => {
                if let Some(own) = self.hook_ends.get_mut(machine_idx) {
                    *own = Some(end);
                }
            }
            Report::HookEnded { .. } => {}
            Report::Samples { monitor_idx, at_unix_ns, new, values } => {
                self.samples((machine_idx, monitor_idx), at_unix_ns, new, &values);
            }
            Report::Note { at_unix_ns, label, is_restart } => {
                let kind = if is_restart { EventKind::Restart } else { EventKind::Note };
                let own_ns = self.links[machine_idx].clock.own(at_unix_ns);
                let label = format!("{}: {label}", self.machine_name(machine_idx));
                if let Some(at_s) = self.at_s(own_ns) {
                    self.events.push(Event { at_s, label: label.clone(), kind });
                    watcher.note(&label);
                }
            }
        }
    }

    fn refused(&mut self, machine_idx: usize, load_idx: Option<u32>, trouble: &Trouble, step: &mut Step) {
        let mut message = format!("machine `{}`: ", self.machine_name(machine_idx));
        // Loads are refused for it, too.
        let of_machine = format!("{message}{}", trouble.message);
        let is_reported = self.troubles.iter().any(|known| known.message == of_machine);
        if let Some(load_idx) = load_idx.map(|idx| idx as usize) {
            let Some(state) = step.state_mut(machine_idx, load_idx) else { return };
            // A load that was only looked at ends without having been refused.
            if *state == State::Over {
                return;
            }
            *state = State::Over;
            let load = &self.plan.loads[load_idx];
            message.push_str(&format!("load `{}`: ", load.name));
        }
        message.push_str(&trouble.message);
        let trouble = Trouble { message, ..trouble.clone() };
        if !is_reported && !self.troubles.contains(&trouble) {
            self.troubles.push(trouble);
        }
    }

    fn ended(
        &mut self,
        machine_idx: usize,
        load_idx: usize,
        end: Result<LoadEnd, Trouble>,
        step: &mut Step,
        watcher: &mut dyn Watcher,
    ) {
        let source = step.source(self.plan, machine_idx, load_idx);
        let Some(state) = step.state_mut(machine_idx, load_idx) else { return };
        if std::mem::replace(state, State::Over) != State::Running {
            return;
        }
        let start_after = self.plan.loads[load_idx].start_after;
        let trouble = match end {
            Ok(end) => {
                self.ledger.lasted(source, end.duration, start_after);
                self.note_skew(machine_idx, end.started_unix_ns, step, start_after);
                match end.stopped_by {
                    StoppedBy::Unreachable => self.is_unreached = true,
                    stopped_by => self.stopped_by = self.stopped_by.graver(stopped_by),
                }
                if let Some(tool) = end.tool {
                    self.take_tool(machine_idx, *tool, source.origin_s, watcher);
                }
                end.trouble
            }
            Err(trouble) => {
                self.lasted_until_now(source, step);
                self.ledger.interrupt(source, self.elapsed());
                Some(trouble)
            }
        };
        if let Some(trouble) = trouble {
            let load = &self.plan.loads[load_idx].name;
            let text = format!("{}: {load}: {}", self.machine_name(machine_idx), trouble.message);
            self.ledger.load_mut(load_idx).problem = Some(text.clone());
            self.note(EventKind::Lost, &text, watcher);
        }
        self.ledger.end(source);
        self.abandon(machine_idx, load_idx, step);
    }

    /// A load that did not say how long it was measured was measured until now.
    fn lasted_until_now(&mut self, source: Source, step: &Step) {
        let since_step = self.elapsed().saturating_sub(Duration::from_secs(u64::from(step.origin_s)));
        let start_after = self.plan.loads[source.load_idx].start_after;
        self.ledger.lasted(source, since_step.saturating_sub(start_after), start_after);
    }

    /// Begins the scenarios of a script at one moment on all machines that share the `setup()` of this one, when it is over or will
    /// never be.
    fn begin(
        &self,
        caller_idx: usize,
        load_idx: usize,
        step: &mut Step,
        begin_at: impl Fn(u64) -> Option<Begin>,
    ) {
        let before = step.callers.len();
        step.callers.retain(|caller| *caller != (load_idx, caller_idx));
        if step.callers.len() == before {
            return;
        }
        let is_alone = self.plan.loads[load_idx].is_copied();
        let at_ns = unix_ns(SystemTime::now() + BEGIN_DELAY + 2 * self.slowest_round_trip());
        let own = step.jobs.iter().filter(|(_, load, state)| *load == load_idx && *state != State::Over);
        for (machine_idx, _, _) in own.filter(|(machine, ..)| !is_alone || *machine == caller_idx) {
            let link = &self.links[*machine_idx];
            let begin = begin_at(link.clock.theirs(at_ns));
            link.order(Order::Begin { load_idx: load_idx as u32, begin });
        }
    }

    /// A machine has no part in a load any more: those that wait for its `setup()` wait in vain.
    fn abandon(&self, machine_idx: usize, load_idx: usize, step: &mut Step) {
        self.begin(machine_idx, load_idx, step, |_| None);
    }

    fn take_tool(
        &mut self,
        machine_idx: usize,
        (mut tool, output): (ToolRun, String),
        origin_s: u32,
        watcher: &mut dyn Watcher,
    ) {
        tool.machine = self.machine_name(machine_idx);
        tool.at_s = f64::from(origin_s);
        tool.raw_file = self.free_name(&format!("raw-{}-{}", plain(&tool.load), plain(&tool.machine)));
        if let Some(problem) = &tool.problem {
            let label = format!("{} on {}: {problem}", tool.load, tool.machine);
            self.note(EventKind::Note, &label, watcher);
        }
        self.raw.push((tool.raw_file.clone(), output));
        self.tools.push(tool);
    }

    /// A file's name that no raw output has yet: names that are different in the plan may be the same as files.
    fn free_name(&self, stem: &str) -> String {
        let names = (1..).map(|number| match number {
            1 => format!("{stem}.txt"),
            _ => format!("{stem}-{number}.txt"),
        });
        let is_free = |name: &String| !self.raw.iter().any(|(taken, _)| taken == name);
        names.into_iter().find(is_free).unwrap_or_default()
    }

    /// How far a machine's start was from the moment that all were given.
    fn note_skew(&mut self, machine_idx: usize, started_unix_ns: u64, step: &Step, start_after: Duration) {
        let own_ns = self.links[machine_idx].clock.own(started_unix_ns);
        let wanted_ns = self.started_unix_ns
            + u64::from(step.origin_s) * SECOND_NS
            + u64::try_from(start_after.as_nanos()).unwrap_or(0);
        let off_ns = own_ns.wrapping_sub(wanted_ns) as i64;
        let (first, last) = self.starts.entry((step.step_idx, wanted_ns)).or_insert((off_ns, off_ns));
        (*first, *last) = (off_ns.min(*first), off_ns.max(*last));
        let text = format!("{:+.2} ms", off_ns as f64 / 1e6);
        self.ledger.machine_mut(machine_idx).facts.insert("started_off".to_owned(), text);
    }

    pub(super) fn lose(&mut self, machine_idx: usize, why: &str, step: &mut Step, watcher: &mut dyn Watcher) {
        if self.links[machine_idx].lost.is_some() {
            return;
        }
        self.links[machine_idx].lose(why);
        self.lost_count += 1;
        let is_preparing = step.any(State::Preparing);
        let mut unreported = Unreported::default();
        for job_idx in 0..step.jobs.len() {
            let (machine, load_idx, state) = step.jobs[job_idx];
            if machine != machine_idx || state == State::Over {
                continue;
            }
            step.jobs[job_idx].2 = State::Over;
            if state == State::Running {
                let own = self.lose_load(machine_idx, load_idx, step);
                unreported.scheduled += own.scheduled;
                unreported.estimated += own.estimated;
            }
        }
        let why = self.links[machine_idx].lost.clone().unwrap_or_default();
        let why = format!("{why}{}", unreported_text(unreported));
        let label = format!("lost machine {}: {why}", self.machine_name(machine_idx));
        self.ledger.machine_mut(machine_idx).problem = Some(format!("lost: {why}"));
        if is_preparing && self.started_unix_ns == 0 {
            let help = "check why its connection ended; no load was sent yet";
            self.troubles.push(Trouble::new(label, help));
        } else {
            self.note(EventKind::Lost, &label, watcher);
            self.take_over_pages(machine_idx, watcher);
        }
    }

    /// A running load whose machine was lost.
    fn lose_load(&mut self, machine_idx: usize, load_idx: usize, step: &mut Step) -> Unreported {
        let source = step.source(self.plan, machine_idx, load_idx);
        if self.plan.loads[load_idx].work.is_tool() {
            self.lose_tool(machine_idx, load_idx, source.origin_s);
        }
        self.lasted_until_now(source, step);
        let unreported = self.ledger.interrupt(source, self.elapsed());
        self.ledger.miss(source);
        self.ledger.end(source);
        self.abandon(machine_idx, load_idx, step);
        unreported
    }

    /// A tool whose output will not be seen still has its row.
    fn lose_tool(&mut self, machine_idx: usize, load_idx: usize, origin_s: u32) {
        let load = &self.plan.loads[load_idx];
        let LoadWork::Tool(tool) = &load.work else { return };
        let tool = ToolRun {
            tool: tool.name().to_owned(),
            version: String::new(),
            load: load.name.clone(),
            machine: self.machine_name(machine_idx),
            at_s: f64::from(origin_s),
            duration: self.elapsed().saturating_sub(Duration::from_secs(origin_s.into())),
            command: vec![tool.shown().to_owned()],
            exit_code: None,
            problem: Some("its machine was lost, and its metrics with it".to_owned()),
            figures: ToolFigures::default(),
            raw_file: String::new(),
        };
        self.tools.push(tool);
    }
}

/// What is known of the requests that a lost machine did not report.
fn unreported_text(unreported: Unreported) -> String {
    match unreported {
        Unreported { scheduled: 0, estimated: 0 } => String::new(),
        Unreported { scheduled, estimated: 0 } => {
            format!("; {scheduled} scheduled requests without a report count as interrupted")
        }
        Unreported { scheduled: 0, estimated } => {
            format!("; it may have made about {estimated} more requests, which are not in the results")
        }
        Unreported { scheduled, estimated } => format!(
            "; {scheduled} scheduled requests without a report count as interrupted; it may have made about {estimated} \
             more, which are not in the results"
        ),
    }
}

/// Whether a report is one that squall makes: its numbers are another machine's word.
fn is_possible(report: &Report, load_count: usize) -> bool {
    let duration = match report {
        Report::Ended { end: Ok(end), .. } => end.duration,
        _ => Duration::ZERO,
    };
    report.load_idx().is_none_or(|idx| (idx as usize) < load_count) && duration < DURATION_MAX
}

/// A name as a part of a file's name.
fn plain(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '-' }).collect()
}

/// Kinds of load whose rate is one of requests: that of a script is one of iterations.
const RATES_REQUESTS: &[&str] = &["http", "handshake"];

/// From the word to begin a script's scenarios to their begin.
const BEGIN_DELAY: Duration = Duration::from_millis(50);

/// Seconds are counted in 32 bits: a load that lasted longer did not last at all.
const DURATION_MAX: Duration = Duration::from_secs(u32::MAX as u64);

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(load_idx: u32, duration: Duration) -> Report {
        let stopped_by = StoppedBy::Duration;
        let end = Ok(LoadEnd { started_unix_ns: 0, duration, stopped_by, trouble: None, tool: None });
        Report::Ended { load_idx, end }
    }

    #[test]
    fn numbers_that_no_squall_tells_are_known() {
        let said = |load_idx| Report::Said { load_idx, line: String::new() };
        let rows = |load_idx| Report::Rows { load_idx, rows: Vec::new() };
        let refused = |load_idx| Report::Refused { load_idx, trouble: Trouble::new("no", "nothing") };
        for (report, expected) in [
            (said(1), true),
            (said(2), false),
            (rows(u32::MAX), false),
            (refused(None), true),
            (refused(Some(2)), false),
            (ended(1, Duration::from_secs(60)), true),
            (ended(2, Duration::ZERO), false),
            (ended(0, Duration::MAX), false),
        ] {
            assert_eq!(is_possible(&report, 2), expected, "{report:?}");
        }
    }
}
