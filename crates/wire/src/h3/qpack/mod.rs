//! QPACK (RFC 9204): field sections as a few bytes, although streams arrive in any order.
//!
//! What is sent refers to the static table alone, so that no peer ever waits and a request is the same bytes on every connection. What is
//! received may use a dynamic table as large as was announced.

mod decoder;
mod encoder;
mod instructions;
mod static_table;

pub(super) use decoder::Decoder;
pub(super) use encoder::SectionWriter;
pub(super) use instructions::{put_acknowledgement, put_cancellation, put_increment, read_acknowledgements};
