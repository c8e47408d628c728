//! Opens the way to every machine, and finds what is wrong with any before a load starts.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use squall_measure::StoppedBy;
use squall_plan::file::Reach;
use squall_plan::file::kubernetes::PodProgram;
use squall_plan::limits::EXECS_AT_ONCE_MAX;

use super::step::{TURN, listed};
use super::{Fleet, Refusal, Steer, Watcher};
use crate::attempt::Attempt;
use crate::binary::Binary;
use crate::kubernetes::Pools;
use crate::ledger::Ledger;
use crate::link::{Arrival, Link};
use crate::logins::{Logins, Permits};
use crate::order::FleetPlan;
use crate::protocol::Trouble;
use crate::transport::{self, Transport, Ways};

impl<'a> Fleet<'a> {
    /// Opens the way to every machine, all at the same time.
    pub(super) fn assemble(
        (plan, transports): (&'a FleetPlan, Vec<Arc<dyn Transport>>),
        steer: &Steer,
        watcher: &mut dyn Watcher,
    ) -> Result<Self, Refusal> {
        let (inbox_sender, inbox) = mpsc::channel();
        let mut ledger = Ledger::new(plan);
        let openings = Openings::start(plan, &transports, &inbox_sender);
        let (mut links, mut troubles) = openings.finish(plan, steer, &mut |update| match update {
            Update::Note(note) => watcher.note(note),
            Update::Nothing { of } => {
                watcher.wait(&format!("reaching {}", listed(of)), &ledger.whole.recorder);
            }
        })?;
        troubles.extend(clock_troubles(plan, &links));
        // What came while others were being opened is still unread.
        links.iter_mut().for_each(|link| link.heard_at = Instant::now());
        for (machine_idx, link) in links.iter().enumerate() {
            ledger.machine_mut(machine_idx).facts.clone_from(&link.facts);
        }
        Ok(Self {
            plan,
            transports,
            inbox_sender,
            series: HashMap::new(),
            found: vec![None; links.len()],
            pages: vec![Vec::new(); links.len()],
            clusters: BTreeMap::new(),
            absent_series: Vec::new(),
            hook_idx: 0,
            hook_ends: Vec::new(),
            doing: String::new(),
            links,
            inbox,
            ledger,
            monitors: Vec::new(),
            events: Vec::new(),
            tools: Vec::new(),
            raw: Vec::new(),
            started_unix_ns: 0,
            troubles,
            lost_count: 0,
            stopped_by: StoppedBy::Count,
            is_unreached: false,
            steered: 0,
            starts: BTreeMap::new(),
        })
    }
}

/// Links that are being opened side by side, each on a thread of its own. One that is given up is left behind: its process is ended,
/// and what may still hold its pipes is not waited for.
struct Openings {
    attempts: Vec<Attempt>,
    news: Receiver<News>,
}

/// What a thread that opens a link reports.
enum News {
    Note(String),
    Opened(usize, Result<Box<Link>, Trouble>),
}

/// What happens while the ways to the machines are opened.
enum Update<'n> {
    Note(&'n str),
    /// Nothing new of these machines.
    Nothing {
        of: &'n [String],
    },
}

impl Openings {
    fn start(plan: &FleetPlan, transports: &[Arc<dyn Transport>], inbox: &Sender<Arrival>) -> Self {
        let (reporter, news) = mpsc::channel();
        let mut attempts = Vec::new();
        let lost_after = plan.lost_after;
        for (machine_idx, (machine, transport)) in plan.machines.iter().zip(transports).enumerate() {
            let transport = Arc::clone(transport);
            let (inbox, reporter, name) = (inbox.clone(), reporter.clone(), machine.name.value.clone());
            let attempt = Attempt::default();
            attempts.push(attempt.clone());
            thread::spawn(move || {
                // Nobody listens any more once it was given up.
                let note = |text: &str| drop(reporter.send(News::Note(format!("{name}: {text}"))));
                let opened = Link::open(machine_idx, (&*transport, lost_after), &inbox, (&attempt, &note));
                drop(reporter.send(News::Opened(machine_idx, opened.map(Box::new))));
            });
        }
        Self { attempts, news }
    }

    /// Waits for all of them; what failed is reported together with what is found later. `follow` gets notes, and is called about every
    /// 100 ms without one.
    fn finish(
        self,
        plan: &FleetPlan,
        steer: &Steer,
        follow: &mut dyn FnMut(Update<'_>),
    ) -> Result<(Vec<Link>, Vec<Trouble>), Refusal> {
        let mut opened: Vec<Option<Result<Box<Link>, Trouble>>> = Vec::new();
        opened.resize_with(self.attempts.len(), || None);
        let mut looked_at = Instant::now();
        while opened.iter().any(Option::is_none) {
            match self.news.recv_timeout(TURN) {
                Ok(News::Note(note)) => follow(Update::Note(&note)),
                Ok(News::Opened(machine_idx, link)) => drop(opened[machine_idx].get_or_insert(link)),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            if looked_at.elapsed() >= TURN {
                looked_at = Instant::now();
                let missing = plan.machines.iter().zip(&opened).filter(|(_, opened)| opened.is_none());
                let of: Vec<String> = missing.map(|(machine, _)| machine.name.value.clone()).collect();
                if !of.is_empty() {
                    follow(Update::Nothing { of: &of });
                }
            }
            if steer.wanted() > 0 {
                self.attempts.iter().for_each(Attempt::give_up);
                return Err(Refusal::Stopped);
            }
            self.give_up_silent(&mut opened);
        }
        let opened = opened.into_iter().map(|opened| opened.unwrap_or_else(|| Err(bug())));
        Ok(sorted_out(plan, opened))
    }

    fn give_up_silent(&self, opened: &mut [Option<Result<Box<Link>, Trouble>>]) {
        for (attempt, opened) in self.attempts.iter().zip(opened) {
            if let Some(what) = attempt.overdue().filter(|_| opened.is_none()) {
                attempt.give_up();
                *opened = Some(Err(what.trouble()));
            }
        }
    }
}

/// How each machine of a plan is reached.
pub(super) fn transports(plan: &FleetPlan, pools: &Pools) -> Result<Vec<Arc<dyn Transport>>, Vec<Trouble>> {
    let ways = ways(plan)?;
    Ok(plan.machines.iter().map(|machine| transport::of(machine, (plan, pools), &ways)).collect())
}

/// What the machines are reached with.
fn ways(plan: &FleetPlan) -> Result<Arc<Ways>, Vec<Trouble>> {
    let own_program = std::env::current_exe().map_err(|error| {
        vec![Trouble::new(
            format!("cannot find squall's own executable: {error}"),
            "run squall by its full path",
        )]
    })?;
    let needs_binary = plan.machines.iter().any(|machine| match &machine.reach {
        Reach::Ssh(_) => true,
        Reach::Pod { pool, .. } => pool.program == PodProgram::Sent,
        Reach::Local | Reach::Command(_) => false,
    });
    let binary = if needs_binary {
        Binary::own(&own_program).map_err(|trouble| vec![trouble])?
    } else {
        Binary::none()
    };
    let (logins, execs) = (Logins::default(), Permits::new(EXECS_AT_ONCE_MAX));
    Ok(Arc::new(Ways { own_program, binary, keeps_program: plan.keeps_program, logins, execs }))
}

/// The links, and what is wrong with those machines that have none.
fn sorted_out(
    plan: &FleetPlan,
    opened: impl Iterator<Item = Result<Box<Link>, Trouble>>,
) -> (Vec<Link>, Vec<Trouble>) {
    let mut links = Vec::new();
    // What is wrong with a jump host is wrong with every machine behind it, and is reported once.
    let mut failed: Vec<(Trouble, Vec<String>)> = Vec::new();
    for (machine, opened) in plan.machines.iter().zip(opened) {
        let trouble = match opened {
            Ok(link) => {
                links.push(*link);
                continue;
            }
            Err(trouble) => trouble,
        };
        links.push(Link::absent());
        let name = machine.name.value.clone();
        match failed.iter_mut().find(|(known, _)| *known == trouble) {
            Some((_, names)) => names.push(name),
            None => failed.push((trouble, vec![name])),
        }
    }
    let troubles = failed.into_iter().map(|(trouble, names)| {
        let by = match &names[..] {
            [name] => format!("machine `{name}`"),
            names => format!("machines {}", listed(names)),
        };
        Trouble::new(format!("{by}: {}", trouble.message), trouble.help)
    });
    (links, troubles.collect())
}

/// Machines whose clocks are so far off that it is a fault to fix.
fn clock_troubles(plan: &FleetPlan, links: &[Link]) -> Vec<Trouble> {
    let is_off = |link: &Link| link.clock.ahead_ns().unsigned_abs() > CLOCK_OFF_MAX.as_nanos() as u64;
    let off = plan.machines.iter().zip(links).filter(|(_, link)| is_off(link));
    off.map(|(machine, link)| {
        let seconds = link.clock.ahead_ns() as f64 / 1e9;
        let message = format!("machine `{}`: its clock is off by {seconds:.0} s", machine.name.value);
        Trouble::new(
            message,
            "synchronise it with NTP (chrony, systemd-timesyncd); offsets up to a minute are corrected",
        )
    })
    .collect()
}

fn bug() -> Trouble {
    Trouble::new("a bug in squall: opening a machine panicked", "please report it")
}

/// A clock further off is a fault to fix: certificates and logs of that machine are wrong as well.
const CLOCK_OFF_MAX: Duration = Duration::from_secs(60);
