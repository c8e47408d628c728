//! HPACK (RFC 7541): header lists as a few bytes.

mod decoder;
mod encoder;
mod huffman;
mod integer;
mod static_table;
mod table;

pub(super) use decoder::{Decoder, Found, Scratch, Traits};
pub(super) use encoder::Encoder;
pub use encoder::{FieldBlock, FieldTable};
