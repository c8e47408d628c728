//! Playing a recording back, without a socket or a clock: which record is due when (`player`), which must wait for another
//! (`order`), what is said on a WebSocket (`conversation`), what must be changed in it because the server answers otherwise this time (`learn`, `live`), and which redacted values
//! nothing fills (`unfilled`).

mod conversation;
mod learn;
mod live;
mod locate;
mod order;
mod player;
pub(crate) mod tokens;
mod unfilled;

pub use conversation::{ConversationScript, Cue, Tempo};
pub use learn::{Expected, Learned, Learner, Variable};
pub(crate) use live::Grammar;
pub use live::{Live, LiveSessions};
pub use locate::{Locator, ResponseText};
pub use order::{Order, SessionKey, Span, Ticket};
pub use player::{Division, Next, PlayOptions, Player, Silence};
pub use unfilled::{Supplied, Suppliers, Unfilled};
