//! The figures of a run by scope: the whole, each step, each load, each machine. Each scope is a recorder of its own, fed with the
//! same seconds, so that its percentiles are those of its own samples and nothing is averaged.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use squall_measure::{
    End, MachineSecond, Monitor, Part, PartKind, Row, RowKey, Rules, RunRecord, RunRecorder, RunSetup,
    ScriptFigures, ScriptValue, ShareRecorder, Snapshot, StoppedBy, ThresholdResult,
};
use squall_plan::Plan;

use crate::absent::{Progress, Unreported};
use crate::order::{Evidence, FleetPlan, FleetRule};

/// All scopes of a run.
pub(crate) struct Ledger {
    pub(crate) whole: Scope,
    steps: Vec<Scope>,
    loads: Vec<Scope>,
    machines: Vec<Scope>,
    rows: Vec<RowKey>,
    /// For each machine and load: its rows' places in `rows`.
    places: BTreeMap<(usize, usize), Vec<usize>>,
    /// For each machine and load of the running step: seconds before this one are closed.
    open_idx: BTreeMap<(usize, usize), u32>,
    /// For each machine and load of the running step: what it has reported.
    progress: BTreeMap<(usize, usize), Progress>,
    /// Loads of the running step whose machines were lost.
    absent: Vec<Source>,
    /// For each load and gauge of virtual users: the last value of each machine.
    users: BTreeMap<(usize, String), BTreeMap<usize, f64>>,
    /// The last second of each machine.
    seconds: Vec<MachineSecond>,
    /// Numbers of event loops by machine, load, and the number that they have there.
    shards: BTreeMap<(usize, usize, u32), u32>,
}

/// One recorder and what is known of its time.
pub(crate) struct Scope {
    pub(crate) recorder: RunRecorder,
    pub(crate) name: String,
    /// When it began, in seconds after the run's start.
    pub(crate) at_s: f64,
    /// Measured time; of a machine that of the steps before.
    pub(crate) duration: Duration,
    /// Of a machine: measured time of the running step.
    step_duration: Duration,
    pub(crate) problem: Option<String>,
    pub(crate) facts: BTreeMap<String, String>,
    pub(crate) rules: Vec<FleetRule>,
    /// Of a load that is a script: its own thresholds.
    script_rules: Arc<Rules>,
    /// Of a load: how long after its step it starts.
    start_after: Duration,
    /// Of a load: how long it runs before it is measured.
    pub(crate) warmup: Duration,
    /// Its seconds are counted from here, in whole seconds after the run's start.
    origin_s: u32,
    closed_idx: u32,
    /// Nothing came yet of seconds from this one on.
    seen_idx: u32,
    began: bool,
}

/// How long a scope that goes on was measured. Its figures are those of a time between the two: all that was reported of `closed`, and a part
/// of what there will be of `seen`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Span {
    /// Seconds that everybody has left behind: at least one.
    closed: Duration,
    /// Seconds that any machine has reported.
    seen: Duration,
}

/// Where a snapshot comes from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Source {
    pub(crate) machine_idx: usize,
    pub(crate) load_idx: usize,
    pub(crate) step_idx: usize,
    /// When the load's first second began, in whole seconds after the run's start.
    pub(crate) origin_s: u32,
    /// When its step began.
    pub(crate) step_origin_s: u32,
}

/// A machine while the run goes on.
#[derive(Debug, Clone, Copy)]
pub struct MachineView<'a> {
    /// The name that the plan gives it.
    pub name: &'a str,
    /// Its figures so far.
    pub recorder: &'a RunRecorder,
    /// Why it does no more, where it does not.
    pub problem: Option<&'a str>,
}

impl Ledger {
    pub(crate) fn new(plan: &FleetPlan) -> Self {
        let scope = |name: &str, rules: &[FleetRule], shown: Plan| Scope::new(plan, name, rules, shown);
        let bare = || Plan { loads: Vec::new(), thresholds: Vec::new(), ..plan.plan.clone() };
        let mut whole = scope(&plan.plan.name, &plan.thresholds, plan.whole());
        *whole.recorder.shares_mut() =
            ShareRecorder::new(plan.loads.iter().map(|load| load.parts.len()).sum());
        Self {
            whole,
            steps: plan.steps.iter().map(|step| scope(&step.name, &step.thresholds, bare())).collect(),
            loads: plan
                .loads
                .iter()
                .map(|load| Scope {
                    script_rules: Arc::clone(&load.script_rules),
                    start_after: load.start_after,
                    ..scope(&load.name, &load.thresholds, bare())
                })
                .collect(),
            machines: plan.machines.iter().map(|machine| scope(&machine.name.value, &[], bare())).collect(),
            rows: Vec::new(),
            places: BTreeMap::new(),
            open_idx: BTreeMap::new(),
            progress: BTreeMap::new(),
            absent: Vec::new(),
            users: BTreeMap::new(),
            seconds: vec![MachineSecond::default(); plan.machines.len()],
            shards: BTreeMap::new(),
        }
    }

    /// A machine said what the rows of a load are about.
    pub(crate) fn take_rows(&mut self, machine_idx: usize, load_idx: usize, rows: &[RowKey]) {
        let mut place_of = |row: &RowKey| {
            self.rows.iter().position(|known| known == row).unwrap_or_else(|| {
                self.rows.push(row.clone());
                self.rows.len() - 1
            })
        };
        let places = rows.iter().map(&mut place_of).collect();
        self.places.insert((machine_idx, load_idx), places);
        self.whole.recorder.set_rows(self.rows.clone());
    }

    /// A machine said what a load is there.
    pub(crate) fn take_plan(&mut self, machine_idx: usize, load_idx: usize, plan: &Plan) {
        self.progress.entry((machine_idx, load_idx)).or_default().set_plan(plan);
    }

    /// The machine as its agent reported it.
    pub(crate) fn machine_mut(&mut self, machine_idx: usize) -> &mut Scope {
        &mut self.machines[machine_idx]
    }

    /// Every machine as it is now, in the plan's order.
    pub(crate) fn machine_views(&self) -> Vec<MachineView<'_>> {
        self.machines.iter().map(Scope::view).collect()
    }

    /// A rule that is broken already and ends the run. `now_s`: seconds after the run's start.
    pub(crate) fn broken(
        &self,
        (step_idx, load_idxs): (usize, &[usize]),
        now_s: f64,
        monitors: &[Monitor],
    ) -> Option<String> {
        let loads = || load_idxs.iter().map(|&idx| &self.loads[idx]);
        let first = |wait: fn(&Scope) -> Duration| loads().map(wait).min().unwrap_or_default();
        let step = &self.steps[step_idx];
        let in_step = step.span(first(|load| load.start_after + load.warmup), first(|load| load.warmup));
        let before: Duration = self.steps[..step_idx].iter().map(|step| step.duration).sum();
        let in_run =
            in_step.map(|Span { closed, seen }| Span { closed: before + closed, seen: before + seen });
        let loads = loads().map(|load| (load, load.span(load.warmup, load.warmup)));
        [(&self.whole, in_run), (step, in_step)]
            .into_iter()
            .chain(loads)
            .find_map(|(scope, span)| scope.broken(span?, now_s, monitors))
    }

    pub(crate) fn step_mut(&mut self, step_idx: usize) -> &mut Scope {
        &mut self.steps[step_idx]
    }

    pub(crate) fn load_mut(&mut self, load_idx: usize) -> &mut Scope {
        &mut self.loads[load_idx]
    }

    /// A load begins on a machine. `has_seconds`: it will tell of each; a foreign tool does not, and the others do not wait for it.
    pub(crate) fn begin(&mut self, source: Source, has_seconds: bool) {
        let Source { machine_idx, load_idx, step_idx, origin_s, step_origin_s } = source;
        if has_seconds {
            self.open_idx.insert((machine_idx, load_idx), origin_s);
        }
        self.whole.begin(0);
        self.steps[step_idx].begin(step_origin_s);
        self.loads[load_idx].begin(origin_s);
        self.machines[machine_idx].begin(step_origin_s);
        if has_seconds {
            let names = (self.machines[machine_idx].name.as_str(), self.loads[load_idx].name.as_str());
            self.whole.recorder.shares_mut().begin((machine_idx, load_idx), names, f64::from(origin_s));
        }
    }

    /// What an event loop of a machine did in a second of its load.
    pub(crate) fn absorb(&mut self, source: Source, second_idx: u32, shard_idx: u32, mut snapshot: Snapshot) {
        self.place_rows(source, &mut snapshot);
        // An agent counts from its load's start.
        let after_second = self.loads[source.load_idx].start_after.subsec_nanos();
        snapshot.put_off(Duration::new(u64::from(source.origin_s), after_second));
        let progress = self.progress.entry((source.machine_idx, source.load_idx)).or_default();
        progress.take(second_idx, &snapshot);
        self.add(source, second_idx, shard_idx, snapshot);
    }

    /// Adds figures to all scopes that they belong to.
    fn add(&mut self, source: Source, second_idx: u32, shard_idx: u32, mut snapshot: Snapshot) {
        let at_s = source.origin_s.saturating_add(second_idx);
        let Source { machine_idx, load_idx, step_idx, .. } = source;
        self.whole.recorder.shares_mut().absorb((machine_idx, load_idx), second_idx, &snapshot);
        let shard_count = self.shards.len() as u32;
        let shard_idx = *self.shards.entry((machine_idx, load_idx, shard_idx)).or_insert(shard_count);
        self.machines[machine_idx].absorb(at_s, shard_idx, &snapshot);
        self.add_up_users((machine_idx, load_idx), &mut snapshot);
        for scope in [&mut self.whole, &mut self.steps[step_idx], &mut self.loads[load_idx]] {
            scope.absorb(at_s, shard_idx, &snapshot);
        }
    }

    /// Virtual users of all machines of a script are counted together: gauges merge to the last one's value otherwise. Until every
    /// machine has reported its own there is no sum.
    fn add_up_users(&mut self, (machine_idx, load_idx): (usize, usize), snapshot: &mut Snapshot) {
        let machine_count = self.open_idx.keys().filter(|(_, load)| *load == load_idx).count();
        let metrics = snapshot.script.iter_mut().flat_map(|script| &mut script.metrics);
        for metric in metrics.filter(|metric| USER_GAUGES.contains(&metric.name.as_str())) {
            let ScriptValue::Gauge { last, min, max, at_ns } = &mut metric.value else { continue };
            if *at_ns == 0 {
                continue;
            }
            let known = self.users.entry((load_idx, metric.name.clone())).or_default();
            known.insert(machine_idx, *last);
            if known.len() < machine_count {
                *at_ns = 0;
            }
            *last = known.values().sum();
            (*min, *max) = (*last, *last);
        }
    }

    /// All event loops of a load on a machine have left a second behind.
    pub(crate) fn close(&mut self, source: Source, second_idx: u32, machine: MachineSecond) {
        self.seconds[source.machine_idx] = machine;
        self.whole.recorder.shares_mut().close((source.machine_idx, source.load_idx), second_idx);
        let next = source.origin_s.saturating_add(second_idx).saturating_add(1);
        if let Some(open) = self.open_idx.get_mut(&(source.machine_idx, source.load_idx)) {
            *open = next.max(*open);
        }
        self.close_whole_seconds(source);
    }

    /// A load was measured on a machine for so long.
    pub(crate) fn lasted(&mut self, source: Source, duration: Duration, start_after: Duration) {
        let Source { machine_idx, load_idx, step_idx, .. } = source;
        // One that was stopped while it waited for its start was not measured; the wait alone is no load.
        let whole = if duration.is_zero() { duration } else { duration + start_after };
        for (lasted, longest) in [
            (&mut self.loads[load_idx].duration, duration),
            (&mut self.steps[step_idx].duration, whole),
            (&mut self.machines[machine_idx].step_duration, whole),
        ] {
            *lasted = longest.max(*lasted);
        }
    }

    /// Tells the whole and each machine the time since the run's start.
    pub(crate) fn tick(&mut self, elapsed: Duration) {
        for scope in std::iter::once(&mut self.whole).chain(&mut self.machines) {
            let origin = Duration::from_secs(u64::from(scope.origin_s));
            scope.recorder.tick(elapsed.saturating_sub(origin));
        }
        // In whole seconds, so that each becomes one point.
        self.count_missed(Duration::from_secs(elapsed.as_secs()));
    }

    /// Every load of the running step has ended everywhere, `at` after the run's start.
    pub(crate) fn end_step(&mut self, at: Duration) {
        self.count_missed(at);
        self.absent.clear();
        self.progress.clear();
        for machine in &mut self.machines {
            machine.duration += std::mem::take(&mut machine.step_duration);
        }
    }

    /// A load ended without a word of it: the requests whose end was not reported are interrupted. Which row's they were is not
    /// known, so they are counted in the load's first one. `at`: since the run's start.
    pub(crate) fn interrupt(&mut self, source: Source, at: Duration) -> Unreported {
        let place = (source.machine_idx, source.load_idx);
        for ((load_idx, _), known) in &mut self.users {
            if *load_idx == source.load_idx {
                known.remove(&source.machine_idx);
            }
        }
        let open_s = self.open_idx.get(&place).copied().unwrap_or(source.origin_s);
        let open_idx = open_s.saturating_sub(source.origin_s);
        let after_start = self.after_start(source, at);
        let row_count = self.places.get(&place).map_or(0, Vec::len);
        let Some(progress) = self.progress.get_mut(&place).filter(|_| row_count > 0) else {
            return Unreported::default();
        };
        let reported = Duration::from_secs(u64::from(open_idx));
        let (mut snapshot, unreported) = progress.interrupt(reported, after_start);
        if snapshot.rows[0].interrupted > 0 {
            snapshot.rows.resize_with(row_count, Row::default);
            self.place_rows(source, &mut snapshot);
            self.add(source, open_idx, 0, snapshot);
        }
        unreported
    }

    /// A load's machine was lost: what its schedule goes on asking for is counted as not sent.
    pub(crate) fn miss(&mut self, source: Source) {
        self.absent.push(source);
    }

    /// Since a load's start, at this time since the run's.
    fn after_start(&self, source: Source, at: Duration) -> Duration {
        let after_second =
            Duration::from_nanos(self.loads[source.load_idx].start_after.subsec_nanos().into());
        at.saturating_sub(Duration::from_secs(source.origin_s.into()) + after_second)
    }

    /// Counts what the schedules of lost machines have asked for by now.
    fn count_missed(&mut self, at: Duration) {
        for source in self.absent.clone() {
            let now = self.after_start(source, at);
            let place = (source.machine_idx, source.load_idx);
            if let Some(snapshot) = self.progress.get_mut(&place).and_then(|progress| progress.miss(now)) {
                self.add(source, now.as_secs() as u32, 0, snapshot);
            }
        }
    }

    /// A load has ended on a machine, or its machine was lost.
    pub(crate) fn end(&mut self, source: Source) {
        self.open_idx.remove(&(source.machine_idx, source.load_idx));
        self.close_whole_seconds(source);
    }

    fn close_whole_seconds(&mut self, source: Source) {
        let Source { machine_idx, load_idx, step_idx, .. } = source;
        let open = |belongs: &dyn Fn(usize, usize) -> bool| {
            self.open_idx.iter().filter(|((m, l), _)| belongs(*m, *l)).map(|(_, open)| *open).min()
        };
        let by_all = open(&|_, _| true);
        let by_load = open(&|_, load| load == load_idx);
        let by_machine = open(&|machine, _| machine == machine_idx);
        let own = self.seconds[machine_idx];
        let (open_idx, seconds) = (&self.open_idx, &self.seconds);
        let worst = || {
            let mut worst = own;
            let others: BTreeSet<usize> = open_idx.keys().map(|(machine, _)| *machine).collect();
            let others = others.into_iter().filter(|&other| other != machine_idx);
            others.for_each(|other| worst.join(&seconds[other]));
            worst
        };
        self.whole.close_before(by_all, worst);
        self.steps[step_idx].close_before(by_all, worst);
        self.loads[load_idx].close_before(by_load, worst);
        self.machines[machine_idx].close_before(by_machine, || own);
    }

    /// Moves a machine's rows to their places among all rows.
    fn place_rows(&self, source: Source, snapshot: &mut Snapshot) {
        let Some(places) = self.places.get(&(source.machine_idx, source.load_idx)) else { return };
        if places.iter().copied().eq(0..snapshot.rows.len()) {
            return;
        }
        let mut rows: Vec<Row> = Vec::new();
        rows.resize_with(self.rows.len(), Row::default);
        for (place, row) in places.iter().zip(snapshot.rows.drain(..)) {
            rows[*place] = row;
        }
        snapshot.rows = rows;
    }

    /// Rows came as machines got ready; people look for them in the order of the plan's loads.
    fn plan_order(&self) -> Vec<usize> {
        let load_idx = |idx: &usize| self.loads.iter().position(|load| load.name == self.rows[*idx].load);
        let mut order: Vec<usize> = (0..self.rows.len()).collect();
        order.sort_by_key(load_idx);
        order
    }

    /// Ends the run: the record of the whole, with its parts.
    pub(crate) fn finish(mut self, stopped_by: StoppedBy, monitors: &[Monitor]) -> RunRecord {
        let is_divided = self.steps.len() > 1 || self.loads.len() > 1 || self.machines.len() > 1;
        self.whole.duration = self.steps.iter().map(|step| step.duration).sum();
        let order = self.plan_order();
        let end_s = self.steps.iter().filter(|step| step.began).map(Scope::end_s).fold(0.0, f64::max);
        let mut parts = Vec::new();
        let kinds = [PartKind::Step, PartKind::Load, PartKind::Machine];
        for (kind, scopes) in kinds.into_iter().zip([self.steps, self.loads, self.machines]) {
            let took_part = scopes.into_iter().filter(|scope| scope.began || scope.problem.is_some());
            parts.extend(took_part.map(|scope| scope.into_part(kind, stopped_by, monitors)));
        }
        let thresholds = self.whole.judge(end_s, monitors);
        let environment = self.whole.facts.clone();
        let duration = self.whole.duration;
        let mut record = self.whole.recorder.finish(End { duration, stopped_by });
        record.thresholds = thresholds;
        record.environment = environment;
        for part in &parts {
            record.verdict.join(&part.verdict);
            let own = |result: &ThresholdResult| ThresholdResult {
                metric: format!("{}: {}", part.name, result.metric),
                ..result.clone()
            };
            record.thresholds.extend(part.thresholds.iter().map(own));
        }
        // Of one step, one load and one machine only what is wrong with any says more than the whole does.
        record.rows = in_order(&record.rows, &order);
        for total in parts.iter_mut().map(|part| &mut part.total).chain([&mut record.total]) {
            total.rows.resize_with(order.len(), Row::default);
            total.rows = in_order(&total.rows, &order);
        }
        let is_told = is_divided || parts.iter().any(|part| part.problem.is_some());
        record.parts = if is_told { parts } else { Vec::new() };
        record
    }
}

/// k6's gauges of virtual users.
const USER_GAUGES: [&str; 2] = ["vus", "vus_max"];

/// Items at the places that `order` gives them.
fn in_order<T: Clone>(items: &[T], order: &[usize]) -> Vec<T> {
    order.iter().map(|&idx| items[idx].clone()).collect()
}

impl Scope {
    fn new(plan: &FleetPlan, name: &str, rules: &[FleetRule], shown: Plan) -> Self {
        let setup = RunSetup {
            plan: shown,
            rows: Vec::new(),
            open_model: plan.open_model,
            lag_allowed: plan.lag_allowed,
            thresholds: Vec::new(),
            length: plan.length(),
            started_unix_ms: 0,
            environment: BTreeMap::new(),
        };
        Self {
            recorder: RunRecorder::new(setup),
            name: name.to_owned(),
            at_s: 0.0,
            duration: Duration::ZERO,
            step_duration: Duration::ZERO,
            problem: None,
            facts: BTreeMap::new(),
            rules: rules.to_vec(),
            script_rules: Arc::default(),
            start_after: Duration::ZERO,
            warmup: Duration::ZERO,
            origin_s: 0,
            closed_idx: 0,
            seen_idx: 0,
            began: false,
        }
    }

    fn view(&self) -> MachineView<'_> {
        MachineView { name: &self.name, recorder: &self.recorder, problem: self.problem.as_deref() }
    }

    fn begin(&mut self, origin_s: u32) {
        if !self.began {
            self.began = true;
            self.origin_s = origin_s;
            self.at_s = f64::from(origin_s);
        }
    }

    /// `at_s`: in whole seconds after the run's start.
    fn absorb(&mut self, at_s: u32, shard_idx: u32, snapshot: &Snapshot) {
        let own_idx = at_s.saturating_sub(self.origin_s);
        self.seen_idx = self.seen_idx.max(own_idx.saturating_add(1));
        self.recorder.absorb(own_idx, shard_idx, snapshot);
    }

    /// Closes seconds up to one that is open for someone; `None`: no machine works any more. Most calls close none, so `machine` is not
    /// put together for them: with a thousand machines that would be a million steps a second.
    fn close_before(&mut self, open_s: Option<u32>, machine: impl FnOnce() -> MachineSecond) {
        let Some(open_idx) = open_s.map(|open| open.saturating_sub(self.origin_s)) else {
            return self.recorder.rest();
        };
        if open_idx > self.closed_idx {
            self.recorder.close_second(open_idx - 1, machine());
            self.closed_idx = open_idx;
        }
    }

    /// How long it was measured, without what comes before: `unclosed` of the time that is closed, `unseen` of the time that is seen.
    /// `None` before the first second is over: a rate of nothing yet is not 0.
    fn span(&self, unclosed: Duration, unseen: Duration) -> Option<Span> {
        let after = |idx: u32, wait: Duration| Duration::from_secs(u64::from(idx)).saturating_sub(wait);
        let closed = after(self.closed_idx, unclosed);
        let seen = after(self.seen_idx, unseen).max(closed);
        (closed >= Duration::from_secs(1)).then_some(Span { closed, seen })
    }

    /// A rule that is broken already and ends the run: one that is for both ends of the span, so that what came of the running second
    /// neither hides nor breaks it.
    fn broken(&self, span: Span, now_s: f64, monitors: &[Monitor]) -> Option<String> {
        let is_broken = |rule: &&FleetRule| {
            [span.closed, span.seen].into_iter().all(|duration| {
                let result = rule.evaluate(self.evidence(duration, now_s, monitors));
                result.actual.is_some() && !result.ok
            })
        };
        let broken = self.rules.iter().filter(|rule| rule.abort).find(is_broken).map(FleetRule::text);
        broken.or_else(|| self.broken_in_script(span))
    }

    fn broken_in_script(&self, span: Span) -> Option<String> {
        let figures = self.recorder.total().script.as_deref()?;
        let text = |duration| {
            let judged = self.script_rules.broken(figures, duration)?;
            Some(format!("{}: {} {}", self.name, judged.name, judged.rule.text))
        };
        text(span.closed).filter(|broken| text(span.seen).as_ref() == Some(broken))
    }

    fn evidence<'a>(&'a self, duration: Duration, until_s: f64, monitors: &'a [Monitor]) -> Evidence<'a> {
        Evidence { total: self.recorder.total(), duration, monitors, from_s: self.at_s, until_s }
    }

    /// When it ended, in seconds after the run's start.
    fn end_s(&self) -> f64 {
        self.at_s + self.duration.as_secs_f64()
    }

    fn judge(&self, until_s: f64, monitors: &[Monitor]) -> Vec<ThresholdResult> {
        let evidence = self.evidence(self.duration, until_s, monitors);
        let own = self.rules.iter().map(|rule| rule.evaluate(evidence));
        own.chain(self.judge_script()).collect()
    }

    fn judge_script(&self) -> Vec<ThresholdResult> {
        let none = ScriptFigures::default();
        let figures = self.recorder.total().script.as_deref().unwrap_or(&none);
        self.script_rules.judge(figures, self.duration).into_iter().map(ThresholdResult::from).collect()
    }

    fn into_part(self, kind: PartKind, stopped_by: StoppedBy, monitors: &[Monitor]) -> Part {
        let thresholds = self.judge(self.end_s(), monitors);
        let record = self.recorder.finish(End { duration: self.duration, stopped_by });
        Part {
            kind,
            name: self.name,
            at_s: self.at_s,
            duration: self.duration,
            problem: self.problem,
            verdict: record.verdict,
            thresholds,
            facts: self.facts,
            total: record.total,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use squall_measure::{
        Cause, FailureExample, Phase, Protocol, ScriptMetric, ScriptUnit, ScriptValue, StoppedBy,
    };
    use squall_plan::Text;
    use squall_plan::file::{Machine, MachineSettings, Reach};

    use super::*;
    use crate::order::{FleetLoad, FleetStep, LoadWork, RuleKind};

    const RATE: u64 = 100;

    /// Two steps of one load each, on one machine; the rule is that of the run, of the steps and of the loads.
    fn plan(rule: &str, start_after: Duration) -> FleetPlan {
        let rules = || vec![FleetRule { what: RuleKind::Load(rule.parse().unwrap()), abort: true }];
        let name = |name: &str| Text { value: name.to_owned(), ..Text::default() };
        let step = |idx: usize| FleetStep {
            name: format!("step {idx}"),
            load_idxs: vec![idx],
            thresholds: rules(),
            pause: Duration::ZERO,
            before: Vec::new(),
            after: Vec::new(),
        };
        let load = |idx: usize| FleetLoad {
            name: format!("load {idx}"),
            written: name("http"),
            work: LoadWork::Tool(Box::default()),
            sources: Vec::new(),
            recording: None,
            env: BTreeMap::new(),
            parts: Vec::new(),
            start_after,
            length: None,
            length_max: None,
            thresholds: rules(),
            script_rules: Arc::default(),
        };
        FleetPlan {
            plan: Plan {
                name: "plan".to_owned(),
                loads: Vec::new(),
                thresholds: Vec::new(),
                warmup: Duration::ZERO,
                threads: None,
            },
            machines: vec![Machine {
                name: name("m"),
                reach: Reach::Local,
                weight: NonZeroU32::MIN,
                settings: MachineSettings::default(),
            }],
            makes_load: Vec::new(),
            monitors: Vec::new(),
            files: Vec::new(),
            steps: vec![step(0), step(1)],
            loads: vec![load(0), load(1)],
            thresholds: rules(),
            open_model: true,
            lag_allowed: Duration::ZERO,
            lost_after: squall_plan::limits::LOST_AFTER_DEFAULT,
            lost_count_allowed: 0,
            keeps_program: true,
        }
    }

    fn row() -> RowKey {
        let (load, method, url) = ("load".to_owned(), "GET".to_owned(), "http://a/".to_owned());
        RowKey { load, protocol: Protocol::Http11, method, url }
    }

    fn second(ledger: &mut Ledger, source: Source, second_idx: u32) {
        let mut snapshot = Snapshot::new(1, true);
        snapshot.requests_started = RATE + 2;
        snapshot.rows[0].ok = RATE;
        ledger.absorb(source, second_idx, 0, snapshot);
    }

    /// Three seconds of each step, a pause of an hour between them; gives the seconds in which the rule was broken.
    fn broken_seconds(rule: &str, start_after: Duration) -> Vec<u32> {
        let mut ledger = Ledger::new(&plan(rule, start_after));
        let mut broken = Vec::new();
        for (idx, step_origin_s) in [(0, 0), (1, 3600)] {
            let origin_s = step_origin_s + start_after.as_secs() as u32;
            let source = Source { machine_idx: 0, load_idx: idx, step_idx: idx, origin_s, step_origin_s };
            ledger.take_rows(0, idx, &[row()]);
            ledger.begin(source, true);
            let mut judge = |ledger: &Ledger, second_idx: u32| {
                if ledger.broken((idx, &[idx]), 0.0, &[]).is_some() {
                    broken.push(second_idx);
                }
            };
            judge(&ledger, 0);
            for second_idx in 0..3 {
                // What came of a second that is not over counts neither for nor against.
                second(&mut ledger, source, second_idx);
                judge(&ledger, second_idx);
                ledger.close(source, second_idx, MachineSecond::default());
                judge(&ledger, second_idx + 1);
            }
            ledger.lasted(source, Duration::from_secs(3), start_after);
            ledger.end(source);
            ledger.end_step(Duration::ZERO);
        }
        broken
    }

    #[test]
    fn rules_that_hold_are_not_broken_by_what_has_not_come_yet_nor_by_pauses() {
        for rule in ["rate>99/s", "rate<101/s"] {
            assert_eq!(broken_seconds(rule, Duration::ZERO), [0; 0], "{rule}");
        }
        assert_eq!(broken_seconds("rate>60/s", Duration::from_secs(2)), [0; 0], "the wait before a load");
        assert_eq!(
            broken_seconds("rate>101/s", Duration::ZERO)[..2],
            [1, 2],
            "from the first whole second on"
        );
    }

    #[test]
    fn rows_are_known_while_the_run_goes_on() {
        let mut ledger = Ledger::new(&plan("rate>1/s", Duration::ZERO));
        ledger.take_rows(0, 0, &[row()]);
        assert_eq!(ledger.whole.recorder.setup().rows, [row()]);
    }

    #[test]
    fn the_first_failure_has_the_time_of_the_run_not_that_of_its_load() {
        let mut ledger = Ledger::new(&plan("rate>1/s", Duration::from_millis(1500)));
        let source = Source { machine_idx: 0, load_idx: 1, step_idx: 1, origin_s: 61, step_origin_s: 60 };
        ledger.take_rows(0, 1, &[row()]);
        ledger.begin(source, true);
        let mut snapshot = Snapshot::new(1, true);
        let example = FailureExample { at_ns: 250_000_000, url: String::new(), text: String::new() };
        snapshot.failures.set_example(Cause::Timeout, Phase::Waiting, example);
        ledger.absorb(source, 0, 0, snapshot);
        let record = ledger.finish(StoppedBy::Duration, &[]);
        let at_ns = record.total.failures.example(Cause::Timeout, Phase::Waiting).unwrap().at_ns;
        assert_eq!(at_ns, 61_750_000_000);
    }

    #[test]
    fn what_a_lost_machine_has_begun_is_interrupted() {
        let mut ledger = Ledger::new(&plan("rate>1/s", Duration::ZERO));
        let source = Source { machine_idx: 0, load_idx: 0, step_idx: 0, origin_s: 0, step_origin_s: 0 };
        ledger.take_rows(0, 0, &[row()]);
        ledger.begin(source, true);
        second(&mut ledger, source, 0);
        ledger.interrupt(source, Duration::from_secs(1));
        ledger.interrupt(source, Duration::from_secs(1));
        let record = ledger.finish(StoppedBy::Duration, &[]);
        assert_eq!((record.total.interrupted(), record.total.settled()), (2, record.total.requests_started));
    }

    #[test]
    fn virtual_users_of_all_machines_add_up() {
        let mut given = plan("rate>1/s", Duration::ZERO);
        given.machines.push(given.machines[0].clone());
        let mut ledger = Ledger::new(&given);
        let source =
            |machine_idx| Source { machine_idx, load_idx: 0, step_idx: 0, origin_s: 0, step_origin_s: 0 };
        (0..2).for_each(|machine_idx| ledger.begin(source(machine_idx), true));
        let gauge = |name: &str, value: f64, at_ns| {
            let value = ScriptValue::Gauge { last: value, min: value, max: value, at_ns };
            ScriptMetric::new(name, ScriptUnit::Default, value)
        };
        for (machine_idx, users, second_idx) in [(0, 2.0, 0), (1, 3.0, 0), (1, 4.0, 1), (0, 2.0, 1)] {
            let mut snapshot = Snapshot::new(0, false);
            let at_ns = u64::from(second_idx) * 1_000_000_000 + machine_idx as u64 + 1;
            let metrics = vec![gauge("vus", users, at_ns), gauge("own", users, at_ns)];
            snapshot.script = Some(Box::new(ScriptFigures { metrics, ..ScriptFigures::default() }));
            ledger.absorb(source(machine_idx), second_idx, 0, snapshot);
        }
        let record = ledger.finish(StoppedBy::Duration, &[]);
        let value = |total: &Snapshot, idx: usize| match total.script.as_deref().unwrap().metrics[idx].value {
            ScriptValue::Gauge { last, min, max, .. } => (last, min, max),
            _ => panic!("a gauge"),
        };
        assert_eq!(value(&record.total, 0), (6.0, 5.0, 6.0));
        assert_eq!(value(&record.total, 1), (4.0, 2.0, 4.0), "a gauge of the script's own");
        let load = record.parts.iter().find(|part| part.kind == PartKind::Load).unwrap();
        assert_eq!(value(&load.total, 0), (6.0, 5.0, 6.0));
        let machines = record.parts.iter().filter(|part| part.kind == PartKind::Machine);
        assert_eq!(machines.map(|part| value(&part.total, 0).0).collect::<Vec<_>>(), [2.0, 4.0]);
    }

    #[test]
    fn rows_are_in_the_order_of_the_plan_whichever_machine_is_ready_first() {
        let mut given = plan("rate>1/s", Duration::ZERO);
        given.loads.iter_mut().zip(["z", "a"]).for_each(|(load, name)| load.name = name.to_owned());
        let row = |name: &str| RowKey { load: name.to_owned(), ..row() };
        let mut ledger = Ledger::new(&given);
        for (load_idx, name, count) in [(1, "a", 1), (0, "z", 2)] {
            let source =
                Source { machine_idx: 0, load_idx, step_idx: load_idx, origin_s: 0, step_origin_s: 0 };
            ledger.take_rows(0, load_idx, &[row(name)]);
            ledger.begin(source, true);
            let mut snapshot = Snapshot::new(1, false);
            snapshot.rows[0].ok = count;
            ledger.absorb(source, 0, 0, snapshot);
        }
        let record = ledger.finish(StoppedBy::Count, &[]);
        let ok_counts = |rows: &[Row]| rows.iter().map(|row| row.ok).collect::<Vec<_>>();
        assert_eq!(record.rows, [row("z"), row("a")]);
        assert_eq!(ok_counts(&record.total.rows), [2, 1]);
        let loads = record.parts.iter().filter(|part| part.kind == PartKind::Load);
        assert_eq!(loads.map(|part| ok_counts(&part.total.rows)).collect::<Vec<_>>(), [[2, 0], [0, 1]]);
    }
}
