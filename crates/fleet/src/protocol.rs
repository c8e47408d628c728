//! What controller and agent say to each other, and how it is framed: length (4 bytes), number (8) and the number of the last message
//! that was received (8), all big-endian, then JSON. [`crate::delivery`] numbers messages.
//!
//! JSON, because a snapshot's form grows with every kind of load, and names make that harmless; both ends are the same version
//! all the same, which `Hello` checks. `docs/fleet.md` has what it costs.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind, Read, Write};
use std::time::{Duration, SystemTime};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use squall_measure::{MachineSecond, MonitorUnit, RowKey, Snapshot, StoppedBy, ToolRun};
use squall_plan::{OptionProblem, Plan, Segment};

use crate::clock::unix_ns;
use crate::order::LoadWork;
use crate::page::MonitoredPage;

/// Rises when an older end would misunderstand.
pub(crate) const PROTOCOL_VERSION: u32 = 6;

/// Begins the names of files that are sent for loads, below the agent's folder.
pub(crate) const SENT_FILES: &str = "files/";

/// What the controller says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Order {
    /// Comes first.
    Hello {
        /// [`PROTOCOL_VERSION`] of the controller.
        protocol: u32,
        /// An agent that receives nothing for so long ends its loads, and itself.
        lost_after: Duration,
        /// Whether the controller comes back when the connection is lost.
        can_resume: bool,
    },
    /// Comes first on a connection that replaces a lost one.
    Resume {
        /// The number of the last report that was received.
        received: u64,
    },
    /// The controller lives, and asks for the agent's clock.
    Clock {
        /// Comes back: when it was asked, in nanoseconds since 1970 by the controller's clock. Set as it is written.
        asked_unix_ns: u64,
    },
    /// A part of a file; parts come in order.
    File(FilePart),
    /// Looks for processes and reads each page once, without watching them yet. Answered by `Found`.
    Find(Monitored),
    /// Watches these from now on; the machine's own figures are always watched.
    Watch(Monitored),
    /// Reads these pages as well: the machine that read them was lost.
    ReadAlso(Vec<MonitoredPage>),
    /// Runs a command; answered by `HookEnded`.
    Hook(HookOrder),
    /// Prepares the loads of a step.
    Prepare {
        /// All of them.
        loads: Vec<LoadOrder>,
    },
    /// Starts what was prepared.
    Start {
        /// When, in nanoseconds since 1970, by the agent's clock.
        at_unix_ns: u64,
    },
    /// Begins the scenarios of a script whose `setup()` is over.
    Begin {
        /// The load.
        load_idx: u32,
        /// `None`: `setup()` failed, or its machine was lost.
        begin: Option<Begin>,
    },
    /// Ends the loads.
    Stop {
        /// `false`: starts nothing more and waits for what is open; `true`: at once.
        at_once: bool,
    },
    /// Ends the agent: it removes what it made, and goes.
    Bye,
}

/// What a machine watches besides itself.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Monitored {
    /// Processes, by name or pid.
    pub processes: Vec<String>,
    /// Pages that it reads.
    pub pages: Vec<MonitoredPage>,
}

/// What a machine found of what it is to watch.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Found {
    /// Processes that do not run there, each with the similar name of one that does.
    pub absent_processes: Vec<(String, Option<String>)>,
    /// By number of the monitor: the series that its page does not have yet, or why the page cannot be read there.
    pub pages: BTreeMap<u32, Result<Vec<String>, String>>,
}

/// A command that a machine runs before or after a step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct HookOrder {
    /// Its number in the run.
    pub hook_idx: u32,
    /// The command as people read it.
    pub text: String,
    /// Program and arguments.
    pub words: Vec<String>,
    /// Environment besides the agent's own.
    pub env: BTreeMap<String, String>,
    /// How long it may take.
    pub timeout: Duration,
}

/// When a script's scenarios begin, with what.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Begin {
    /// What `setup()` gave, as JSON.
    pub setup_data: Option<String>,
    /// When, in nanoseconds since 1970, by the agent's clock.
    pub at_unix_ns: u64,
}

/// A load for one machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LoadOrder {
    /// Its number in the plan; reports name it.
    pub load_idx: u32,
    /// Its name in reports.
    pub name: String,
    /// What it is, with the paths that its files have there.
    pub work: LoadWork,
    /// Environment for scripts and tools.
    pub env: BTreeMap<String, String>,
    /// This machine's part.
    pub segment: Segment,
    /// Other machines make the same load, each all of it.
    pub is_copied: bool,
    /// It does what one machine does for all that share the load: a script's `setup()` and `teardown()`.
    pub is_first: bool,
    /// How long after the step's start it starts.
    pub start_after: Duration,
}

/// What becomes of a file that is sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Destination {
    /// Where it goes; one without a leading slash lies in the agent's own folder.
    pub path: String,
    /// Permission bits, which it gets with its last part.
    pub mode: u32,
    /// Replace a file that is there already, for good.
    pub overwrite: bool,
}

/// A part of a file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct FilePart {
    /// Of the whole file.
    pub to: Destination,
    /// Whether this is the first part.
    pub is_first: bool,
    /// Whether this is the last part; a file of one part has both.
    pub is_last: bool,
    /// The bytes, in base64.
    pub data: String,
}

/// What the agent says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Report {
    /// Answers `Hello`.
    Hello {
        /// [`PROTOCOL_VERSION`] of the agent.
        protocol: u32,
        /// Version of its program.
        version: String,
        /// Facts about its machine: `os`, `arch`, `cpus_usable`, `open_files_limit`, `local_ports`, `interfaces`.
        facts: BTreeMap<String, String>,
        /// How the controller gets back to it; `None`: not at all.
        way_back: Option<WayBack>,
    },
    /// Answers `Resume`.
    Resumed {
        /// The number of the last order that was received.
        received: u64,
    },
    /// Answers `Clock`.
    Clock {
        /// Of the question.
        asked_unix_ns: u64,
        /// When the question was read, in nanoseconds since 1970 by the agent's clock.
        heard_unix_ns: u64,
        /// When the answer was written, by the same clock. Set as it is written.
        told_unix_ns: u64,
    },
    /// A load is prepared and waits for its start.
    Ready {
        /// The load.
        load_idx: u32,
        /// What it is.
        ready: Box<Ready>,
    },
    /// A load, a file or a process to watch is impossible here.
    Refused {
        /// The load, where it is one.
        load_idx: Option<u32>,
        /// Why not.
        trouble: Trouble,
    },
    /// What the rows of a load are about, as far as they are known by now.
    Rows {
        /// The load.
        load_idx: u32,
        /// All of them.
        rows: Vec<RowKey>,
    },
    /// A script's `setup()` is over.
    SetUp {
        /// The load.
        load_idx: u32,
        /// What it gave, as JSON.
        data: Option<String>,
    },
    /// A line that a script's console said.
    Said {
        /// The load.
        load_idx: u32,
        /// The line.
        line: String,
    },
    /// What one event loop did in a second.
    Second {
        /// The load.
        load_idx: u32,
        /// Whole seconds since the load's start.
        second_idx: u32,
        /// The event loop.
        shard_idx: u32,
        /// Its figures.
        snapshot: Box<Snapshot>,
    },
    /// All event loops of a load have left a second behind.
    Close {
        /// The load.
        load_idx: u32,
        /// The second.
        second_idx: u32,
        /// The machine in it.
        machine: MachineSecond,
    },
    /// A load has ended.
    Ended {
        /// The load.
        load_idx: u32,
        /// How; or why it could not be made to its end.
        end: Result<LoadEnd, Trouble>,
    },
    /// Answers `Find`.
    Found(Found),
    /// A hook has ended.
    HookEnded {
        /// Its number in the run.
        hook_idx: u32,
        /// Why it failed, where it did.
        end: Result<(), Trouble>,
    },
    /// Figures that the agent watches, with the names of those that are new.
    Samples {
        /// The monitor whose page has them; `None`: they are the machine's own.
        monitor_idx: Option<u32>,
        /// When, in nanoseconds since 1970, by the agent's clock.
        at_unix_ns: u64,
        /// Names of new series; those of one monitor are numbered from 0 as they come.
        new: Vec<SeriesName>,
        /// Numbers and values.
        values: Vec<(u32, f64)>,
    },
    /// Something to note on the timeline.
    Note {
        /// When, in nanoseconds since 1970, by the agent's clock.
        at_unix_ns: u64,
        /// What.
        label: String,
        /// Whether a process was started again.
        is_restart: bool,
    },
}

/// How a new connection reaches an agent that runs: `PROGRAM agent --attach SOCKET` on its machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct WayBack {
    /// The agent's own program.
    pub program: String,
    /// Its Unix-domain socket, in a folder that is its user's alone.
    pub socket: String,
}

/// A load that waits for its start.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Ready {
    /// The plan of this machine, secrets masked.
    pub plan: Plan,
    /// What each row of its snapshots is about.
    pub rows: Vec<RowKey>,
    /// Whether its requests start by a schedule.
    pub open_model: bool,
    /// How late its pacing may send by design.
    pub lag_allowed: Duration,
    /// Facts about the machine and the process.
    pub environment: BTreeMap<String, String>,
}

/// How a load ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LoadEnd {
    /// When it started, in nanoseconds since 1970, by the agent's clock.
    pub started_unix_ns: u64,
    /// Length of its measured time.
    pub duration: Duration,
    /// Why it ended.
    pub stopped_by: StoppedBy,
    /// Why it ended before its time, where that is a failure: what was measured until then counts.
    pub trouble: Option<Trouble>,
    /// What a foreign tool did, and all that it printed.
    pub tool: Option<Box<(ToolRun, String)>>,
}

/// A watched series.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct SeriesName {
    /// What it is.
    pub name: String,
    /// Its unit.
    pub unit: MonitorUnit,
}

impl Report {
    /// The load whose end it reports.
    pub(crate) fn ended_load_idx(&self) -> Option<u32> {
        if let Self::Ended { load_idx, .. } = self { Some(*load_idx) } else { None }
    }

    /// The load that it is about, where it is about one.
    pub(crate) fn load_idx(&self) -> Option<u32> {
        match self {
            Self::Ready { load_idx, .. }
            | Self::Rows { load_idx, .. }
            | Self::SetUp { load_idx, .. }
            | Self::Said { load_idx, .. }
            | Self::Second { load_idx, .. }
            | Self::Close { load_idx, .. }
            | Self::Ended { load_idx, .. } => Some(*load_idx),
            Self::Refused { load_idx, .. } => *load_idx,
            Self::Hello { .. }
            | Self::Resumed { .. }
            | Self::Clock { .. }
            | Self::Found(_)
            | Self::HookEnded { .. }
            | Self::Samples { .. }
            | Self::Note { .. } => None,
        }
    }
}

/// What is wrong, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
pub struct Trouble {
    /// Lowercase, without a final period.
    pub message: String,
    /// A statement.
    pub help: String,
    /// Whether it is the target that cannot be reached; otherwise the plan or a machine has to be fixed.
    pub is_target_unreachable: bool,
}

impl Trouble {
    /// Message and help.
    pub fn new(message: impl Into<String>, help: impl Into<String>) -> Self {
        Self { message: message.into(), help: help.into(), is_target_unreachable: false }
    }

    /// An agent that says nothing more.
    pub(crate) fn no_agent(why: &str) -> Self {
        Self::new(
            format!("the agent does not answer: {why}"),
            "check what starts `squall agent` there (the login shell, the command or the image): nothing else may write to its standard output",
        )
    }
}

impl From<OptionProblem> for Trouble {
    fn from(problem: OptionProblem) -> Self {
        Self::new(problem.message, problem.help)
    }
}

/// What can be delivered.
pub(crate) trait Message: Serialize + Clone + Send + 'static {
    /// Whether it is about this moment only: such a message is lost with its connection.
    fn is_momentary(&self) -> bool;

    /// It is written now.
    fn stamp(&mut self);
}

impl Message for Order {
    fn is_momentary(&self) -> bool {
        // Files are sent before anything starts: until then a lost connection ends the run.
        matches!(self, Self::Clock { .. } | Self::File(_))
    }

    fn stamp(&mut self) {
        if let Self::Clock { asked_unix_ns } = self {
            *asked_unix_ns = unix_ns(SystemTime::now());
        }
    }
}

impl Message for Report {
    fn is_momentary(&self) -> bool {
        matches!(self, Self::Clock { .. })
    }

    fn stamp(&mut self) {
        if let Self::Clock { told_unix_ns, .. } = self {
            *told_unix_ns = unix_ns(SystemTime::now());
        }
    }
}

/// A message as it comes.
#[derive(Debug)]
pub(crate) struct Frame {
    /// Counts a direction's messages from 1; 0: it is not counted.
    pub number: u64,
    /// The number of the last message that its sender has received.
    pub received: u64,
    pub json: Vec<u8>,
}

/// A message in its written form.
///
/// # Errors
/// When it is too large to be sent.
pub(crate) fn json<M: Serialize>(message: &M) -> io::Result<Vec<u8>> {
    let json = serde_json::to_vec(message)?;
    match u32::try_from(json.len()) {
        Ok(0..=FRAME_BYTES_MAX) => Ok(json),
        _ => Err(io::Error::new(ErrorKind::InvalidData, "a message too large to send")),
    }
}

/// Writes one message that is not counted.
pub(crate) fn write<M: Serialize>(stream: &mut impl Write, message: &M) -> io::Result<()> {
    write_frame(stream, (0, 0), &json(message)?)
}

/// Writes one message, with its number and that of the last one received.
pub(crate) fn write_frame(
    stream: &mut impl Write,
    (number, received): (u64, u64),
    json: &[u8],
) -> io::Result<()> {
    let length = u32::try_from(json.len()).map_err(io::Error::other)?;
    let mut frame = Vec::with_capacity(HEAD_BYTES + json.len());
    frame.extend_from_slice(&length.to_be_bytes());
    frame.extend_from_slice(&number.to_be_bytes());
    frame.extend_from_slice(&received.to_be_bytes());
    frame.extend_from_slice(json);
    stream.write_all(&frame)?;
    stream.flush()
}

/// Reads one message; `None` at the end of the stream.
pub(crate) fn read<M: DeserializeOwned>(stream: &mut impl Read) -> io::Result<Option<M>> {
    let Some(frame) = read_frame(stream)? else { return Ok(None) };
    serde_json::from_slice(&frame.json).map(Some).map_err(io::Error::from)
}

/// Reads one frame; `None` at the end of the stream.
pub(crate) fn read_frame(stream: &mut impl Read) -> io::Result<Option<Frame>> {
    let mut head = [0; HEAD_BYTES];
    match stream.read_exact(&mut head) {
        Ok(()) => {}
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(None),
        Err(error) => return Err(error),
    }
    let [length, number, received] = fields(head);
    if length > u64::from(FRAME_BYTES_MAX) {
        let message = format!("a message of {length} bytes: the other end does not speak squall's protocol");
        return Err(io::Error::new(ErrorKind::InvalidData, message));
    }
    let mut json = Vec::new();
    stream.take(length).read_to_end(&mut json)?;
    Ok(Some(Frame { number, received, json }))
}

fn fields(head: [u8; HEAD_BYTES]) -> [u64; 3] {
    let number = |bytes: &[u8]| bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte));
    [number(&head[..4]), number(&head[4..12]), number(&head[12..])]
}

const HEAD_BYTES: usize = 20;

/// A snapshot with a hundred rows of wide histograms is a tenth of it.
pub(crate) const FRAME_BYTES_MAX: u32 = 64 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_come_back_in_order() {
        let sent = [
            Order::Hello { protocol: PROTOCOL_VERSION, lost_after: Duration::from_secs(7), can_resume: true },
            Order::Clock { asked_unix_ns: 7 },
            Order::Start { at_unix_ns: u64::MAX },
            Order::Stop { at_once: true },
        ];
        let mut stream = Vec::new();
        sent.iter().for_each(|order| write(&mut stream, order).unwrap());
        let mut rest = &stream[..];
        let received: Vec<Order> = std::iter::from_fn(|| read(&mut rest).unwrap()).collect();
        assert_eq!(received, sent);
    }

    #[test]
    fn a_snapshot_comes_back_as_it_was() {
        let snapshot = Snapshot::new(2, true);
        let report =
            Report::Second { load_idx: 1, second_idx: 2, shard_idx: 3, snapshot: Box::new(snapshot) };
        let mut stream = Vec::new();
        write(&mut stream, &report).unwrap();
        assert_eq!(read::<Report>(&mut &stream[..]).unwrap(), Some(report));
    }

    #[test]
    fn what_is_no_message_is_refused_and_a_cut_one_too() {
        let frame = |length: u8, json: &[u8]| [&[0, 0, 0, length][..], &[0; 16], json].concat();
        for bytes in [b"SSH-2.0-OpenSSH_9.2p1 Debian".to_vec(), frame(9, b"{"), frame(2, b"{}")] {
            assert!(read::<Order>(&mut &bytes[..]).is_err(), "{bytes:?}");
        }
        assert_eq!(read::<Order>(&mut &[0_u8, 0][..]).unwrap(), None);
    }
}
