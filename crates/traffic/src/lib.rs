//! Recorded traffic: what real clients sent, read from every common format into one [`Record`], and written back.
//!
//! Owns: the record, the readers ([`read`]), the flat format of our own ([`store`]), the writers (`write`), sorting, masking,
//! transforms and what is learned of values that return. Never: sockets, metrics, the clock.
//!
//! Everything streams: memory does not grow with the file. Whatever a file says, nothing here panics.

pub mod change;
pub mod compare;
pub mod decode;
mod difference;
mod error;
mod events;
mod input;
pub mod limits;
mod markup;
mod message;
mod multipart;
pub mod pattern;
mod pipe;
pub mod play;
pub mod read;
mod record;
pub mod redact;
mod redirect;
mod session;
mod sort;
mod spooled;
pub mod store;
mod summary;
pub mod write;

pub use difference::Side;
pub use error::{Place, Problem, WriteError};
pub use events::{RecordedEvent, events_of};
pub use message::{Peer, RecordedKind, RecordedMessage};
pub use pipe::Piped;
pub use read::{Format, LogPattern, Notes, OpenError, PatternError, ReadOptions, Source, Unrecognized, open};
pub use record::{Field, Record, Request, Response, Scheme, Version, body_check, key_of};
pub use redirect::Redirect;
pub use session::{SessionBy, Sessions};
pub use sort::{ImportError, ImportOptions, Imported, import};
pub use spooled::{Spooled, Stretch};
pub use summary::{HostCount, Summary};
