//! The channels of `/ws/broadcast`: what one member posts, all others receive.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use squall_wire::ws::MessageKind;
use tokio::sync::broadcast;

use crate::limits;

/// All connections that share their messages.
type Channel = broadcast::Sender<Arc<Post>>;

/// A connection's place in a channel.
pub(crate) struct Membership {
    pub(crate) channel: Channel,
    pub(crate) posts: broadcast::Receiver<Arc<Post>>,
}

/// A message on its way to all of a channel.
pub(crate) struct Post {
    pub(crate) kind: MessageKind,
    pub(crate) bytes: Vec<u8>,
}

/// The channels by name.
#[derive(Default)]
pub(crate) struct Channels(Mutex<HashMap<String, Channel>>);

impl Channels {
    /// Joins the channel of this name; those without members are forgotten.
    pub(crate) fn join(&self, name: &str) -> Membership {
        let mut channels = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        channels.retain(|known, channel| known == name || channel.receiver_count() > 0);
        let made = || broadcast::channel(limits::CHANNEL_MESSAGE_COUNT_MAX).0;
        let channel = channels.entry(name.to_owned()).or_insert_with(made).clone();
        let posts = channel.subscribe();
        Membership { channel, posts }
    }
}
