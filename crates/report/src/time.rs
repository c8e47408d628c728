//! Moments as text, always in UTC: a run made on one machine is read on another.

use std::time::SystemTime;

use jiff::Timestamp;

/// For JSON: `2026-08-30T14:12:00.123Z` (RFC 3339).
pub(crate) fn rfc3339(moment: SystemTime) -> String {
    timestamp(moment).strftime("%Y-%m-%dT%H:%M:%S.%3fZ").to_string()
}

/// For a folder's name, free of characters that some file systems refuse: `2026-08-30T141200Z`.
pub(crate) fn folder_stamp(moment: SystemTime) -> String {
    timestamp(moment).strftime("%Y-%m-%dT%H%M%SZ").to_string()
}

/// A clock beyond the year 9999 reads as 1970: the run is still worth saving.
fn timestamp(moment: SystemTime) -> Timestamp {
    Timestamp::try_from(moment).unwrap_or(Timestamp::UNIX_EPOCH)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, UNIX_EPOCH};

    #[test]
    fn moments_are_utc_and_sort_as_text() {
        let moment = UNIX_EPOCH + Duration::from_millis(1_788_099_120_123);
        assert_eq!(rfc3339(moment), "2026-08-30T14:12:00.123Z");
        assert_eq!(folder_stamp(moment), "2026-08-30T141200Z");
    }
}
