//! A request's head in bytes, as HTTP/1.1 writes it, or why it cannot be written.

use squall_wire::h1::{self, RequestHead};

use crate::Error;

pub(super) fn encode(head: &RequestHead<'_>, place: &str) -> Result<Box<[u8]>, Error> {
    let mut bytes = Vec::new();
    h1::encode_head(head, &mut bytes).map_err(|error| cannot_encode(&error, place))?;
    Ok(bytes.into_boxed_slice())
}

pub(super) fn cannot_encode(error: &h1::EncodeError, place: &str) -> Error {
    Error::Plan {
        problem: format!("cannot encode the request for `{place}`: {error}"),
        help: "check its method, headers and URL".to_owned(),
    }
}

// A plan that validates can be encoded; neither crate may see the other.
const _: () = assert!(squall_plan::limits::REQUEST_HEAD_BYTES_MAX == h1::limits::REQUEST_HEAD_BYTES_MAX);
