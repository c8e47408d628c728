//! What a message is in HTTP/2 and HTTP/3 alike: fields, their meaning, and the order of head, body and trailers (RFC 9110 6, RFC 9113 8,
//! RFC 9114 4). Only how they are framed and compressed differs.

mod fields;
mod head;
mod incoming;
mod meaning;
mod text;

pub(crate) use fields::request_fields;
pub(crate) use head::{Fault, Found, Head, write_line};
pub(crate) use incoming::{Incoming, Part};
pub(crate) use meaning::{Meaning, NOT_IN_RESPONSES};
pub(crate) use text::{HeadText, HeadWanted};
