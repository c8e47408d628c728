//! Many machines as one: agents over ssh and in pods, one start, merged figures, monitors, foreign tools.
//!
//! Owns: how machines are reached, what is said between controller and agent, and whose figures belong together. Never: how load
//! is made; agents hand that to a [`Worker`]. A local run of a plan is a fleet of one: the agent is a process here.

mod absent;
mod agent;
mod attach;
mod attempt;
mod binary;
mod clock;
mod delivery;
mod facts;
mod fleet;
mod hook;
mod janitor;
mod key;
mod kubernetes;
mod ledger;
mod link;
mod logins;
mod monitor;
mod order;
mod page;
mod protocol;
mod receive_file;
mod ssh;
mod terms;
pub mod tool;
mod transport;

pub use agent::{Beginner, Job, Port, Voice, Worker, serve};
pub use attach::attach;
pub use clock::unix_ns;
pub use fleet::{Outcome, Refusal, Steer, Watcher, run};
pub use key::check_key;
pub use kubernetes::{Pools, manifests, standby};
pub use ledger::MachineView;
pub use monitor::figures::unless_figure;
pub use monitor::process::{ProcessFigures, processes};
pub use order::{
    FileOrder, FleetHook, FleetLoad, FleetPlan, FleetRule, FleetStep, LoadWork, RuleKind, ScriptWork,
};
pub use protocol::{LoadEnd, LoadOrder, Ready, Trouble};
