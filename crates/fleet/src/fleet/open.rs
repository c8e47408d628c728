//! Opens the way to every machine, and finds what is wrong with any before a load starts.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::{self, Sender};
use std::thread;
use std::time::Duration;

use squall_measure::StoppedBy;
use squall_plan::file::Reach;

use super::{Fleet, Watcher};
use crate::binary::Binary;
use crate::ledger::Ledger;
use crate::link::{Arrival, Link};
use crate::monitor::web::WebMonitors;
use crate::order::FleetPlan;
use crate::protocol::Trouble;
use crate::transport;

impl<'a> Fleet<'a> {
    /// Opens the way to every machine, all at the same time.
    pub(super) fn assemble(plan: &'a FleetPlan, watcher: &mut dyn Watcher) -> Result<Self, Vec<Trouble>> {
        let (inbox_sender, inbox) = mpsc::channel();
        let (links, mut troubles) = open_all(plan, &inbox_sender, watcher)?;
        troubles.extend(clock_troubles(plan, &links));
        let mut ledger = Ledger::new(plan);
        for (machine_idx, link) in links.iter().enumerate() {
            ledger.machine_mut(machine_idx).facts.clone_from(&link.facts);
        }
        Ok(Self {
            plan,
            series: vec![Vec::new(); links.len()],
            links,
            inbox,
            ledger,
            monitors: Vec::new(),
            web: WebMonitors::new(&plan.monitors),
            events: Vec::new(),
            tools: Vec::new(),
            raw: Vec::new(),
            started_unix_ns: 0,
            troubles,
            lost_count: 0,
            stopped_by: StoppedBy::Count,
            told: 0,
            starts: BTreeMap::new(),
        })
    }
}

/// Opens all links side by side; what failed is told together with what is found later.
fn open_all(
    plan: &FleetPlan,
    inbox: &Sender<Arrival>,
    watcher: &mut dyn Watcher,
) -> Result<(Vec<Link>, Vec<Trouble>), Vec<Trouble>> {
    let program = std::env::current_exe().map_err(|error| {
        vec![Trouble::new(format!("cannot find this program's own file: {error}"), "call it by its path")]
    })?;
    let needs_binary = plan.machines.iter().any(|machine| matches!(machine.reach, Reach::Ssh(_)));
    let binary =
        if needs_binary { Binary::read(&program).map_err(|trouble| vec![trouble])? } else { Binary::none() };
    let binary = Arc::new(binary);
    let (notes, noted) = mpsc::channel::<String>();
    let opened: Vec<Result<Link, Trouble>> = thread::scope(|scope| {
        let mut openings = Vec::new();
        for (machine_idx, machine) in plan.machines.iter().enumerate() {
            let transport = transport::of(&machine.reach, program.clone(), &binary);
            let (inbox, notes, name) = (inbox.clone(), notes.clone(), machine.name.value.clone());
            openings.push(scope.spawn(move || {
                let note = |text: &str| drop(notes.send(format!("{name}: {text}")));
                Link::open(machine_idx, &*transport, &inbox, &note)
            }));
        }
        drop(notes);
        noted.iter().for_each(|note| watcher.note(&note));
        openings.into_iter().map(|opening| opening.join().unwrap_or_else(|_| Err(bug()))).collect()
    });
    let (mut links, mut troubles) = (Vec::new(), Vec::new());
    for (machine, opened) in plan.machines.iter().zip(opened) {
        match opened {
            Ok(link) => links.push(link),
            Err(trouble) => {
                links.push(Link::absent());
                let message = format!("machine `{}`: {}", machine.name.value, trouble.message);
                troubles.push(Trouble::new(message, trouble.help));
            }
        }
    }
    Ok((links, troubles))
}

/// Machines whose clocks are so far off that it is a fault to mend.
fn clock_troubles(plan: &FleetPlan, links: &[Link]) -> Vec<Trouble> {
    let is_off = |link: &Link| link.clock.ahead_ns().unsigned_abs() > CLOCK_OFF_MAX.as_nanos() as u64;
    let off = plan.machines.iter().zip(links).filter(|(_, link)| is_off(link));
    off.map(|(machine, link)| {
        let seconds = link.clock.ahead_ns() as f64 / 1e9;
        let message = format!("machine `{}`: its clock is off by {seconds:.0} s", machine.name.value);
        Trouble::new(
            message,
            "set it by NTP (chrony, systemd-timesyncd); offsets up to a minute are taken out",
        )
    })
    .collect()
}

fn bug() -> Trouble {
    Trouble::new("a bug of squall: opening a machine panicked", "please report it")
}

/// A clock further off is a fault to mend: certificates and logs of that machine are wrong as well.
const CLOCK_OFF_MAX: Duration = Duration::from_secs(60);
