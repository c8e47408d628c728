//! HPACK (RFC 7541): header lists as a few bytes.

mod decoder;
mod encoder;
mod static_table;

pub(super) use decoder::{Decoder, Traits};
pub(super) use encoder::Encoder;
pub use encoder::{FieldBlock, FieldTable};
