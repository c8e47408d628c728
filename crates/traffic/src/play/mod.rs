//! Playing a recording back, without a socket or a clock: which record is due when (`player`), which must wait for another
//! (`order`), and what must be changed in it because the server answers otherwise this time (`learn`, `live`).

mod learn;
mod live;
mod locate;
mod order;
mod player;
mod tokens;

pub use learn::{Expected, Learned, Learner, Variable};
pub use live::{Live, LiveSessions};
pub use locate::{Locator, ResponseText};
pub use order::{Order, SessionKey, Span, Ticket};
pub use player::{Division, Next, PlayOptions, PlayShare, Player};
