//! Responses that are read: of all others only what the decoder needs is looked at.

use std::collections::HashMap;

use squall_wire::h1::HeadView;

/// Connection and stream (0 in HTTP/1.1).
pub(in crate::shard) type Place = (usize, u32);

/// The responses that are kept while they come in.
#[derive(Debug, Default)]
pub(in crate::shard) struct Captures {
    open: HashMap<Place, Captured>,
}

/// What is kept of a response.
#[derive(Debug, Default)]
pub(in crate::shard) struct Captured {
    /// 0: the head has not come.
    pub(in crate::shard) status: u16,
    pub(in crate::shard) headers: Vec<(String, Vec<u8>)>,
    /// As transferred.
    pub(in crate::shard) body: Vec<u8>,
    /// The body was longer than is kept.
    pub(in crate::shard) is_cut: bool,
}

impl Captures {
    /// Whether the response in this place is kept.
    pub(in crate::shard) fn set(&mut self, place: Place, is_wanted: bool) {
        if is_wanted {
            self.open.insert(place, Captured::default());
        } else if !self.open.is_empty() {
            self.open.remove(&place);
        }
    }

    /// Whether a response on this connection is kept.
    pub(in crate::shard) fn has(&self, place: Place) -> bool {
        !self.open.is_empty() && self.open.contains_key(&place)
    }

    /// Whether any is.
    pub(in crate::shard) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// What has come of the response in this place.
    pub(in crate::shard) fn get(&self, place: Place) -> Option<&Captured> {
        self.open.get(&place)
    }

    /// The response in this place, which is whole now.
    pub(in crate::shard) fn take(&mut self, place: Place) -> Option<Captured> {
        self.open.remove(&place)
    }

    /// The status of the response in this place, of which some has come.
    pub(in crate::shard) fn status(&self, place: Place) -> u16 {
        self.open.get(&place).map_or(0, |captured| captured.status)
    }

    /// What has come of the body in this place is exchanged for another buffer.
    pub(in crate::shard) fn swap_body(&mut self, place: Place, body: &mut Vec<u8>) {
        if let Some(captured) = self.open.get_mut(&place) {
            std::mem::swap(&mut captured.body, body);
        }
    }

    /// What is kept in one place belongs to another.
    pub(in crate::shard) fn rename(&mut self, from: Place, to: Place) {
        if let Some(captured) = self.open.remove(&from) {
            self.open.insert(to, captured);
        }
    }

    /// The connection is gone.
    pub(in crate::shard) fn forget(&mut self, conn_idx: usize) {
        if !self.open.is_empty() {
            self.open.retain(|(at, _), _| *at != conn_idx);
        }
    }

    pub(in crate::shard) fn head(&mut self, place: Place, head: &HeadView<'_>) {
        let Some(captured) = self.open.get_mut(&place) else { return };
        captured.status = head.status();
        let fields = head.fields();
        captured.headers = fields
            .map(|field| (String::from_utf8_lossy(field.name).into_owned(), field.value.to_vec()))
            .collect();
    }

    pub(in crate::shard) fn data(&mut self, place: Place, bytes: &[u8]) {
        let Some(captured) = self.open.get_mut(&place) else { return };
        let space = BODY_BYTES_MAX.saturating_sub(captured.body.len());
        captured.is_cut |= bytes.len() > space;
        captured.body.extend_from_slice(&bytes[..bytes.len().min(space)]);
    }
}

impl Captured {
    /// The value of the first field of that name.
    pub(in crate::shard) fn header(&self, name: &str) -> Option<&[u8]> {
        self.headers.iter().find(|(own, _)| own.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_slice())
    }

    /// The values of all fields of that name as one list (RFC 9110 5.3).
    pub(in crate::shard) fn list(&self, name: &str) -> Option<String> {
        let fields = self.headers.iter().filter(|(own, _)| own.eq_ignore_ascii_case(name));
        let values: Vec<_> = fields.map(|(_, value)| String::from_utf8_lossy(value)).collect();
        (!values.is_empty()).then(|| values.join(", "))
    }
}

/// Most that is kept of a body: pages and API answers are smaller.
const BODY_BYTES_MAX: usize = 4 << 20;
