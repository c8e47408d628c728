//! The part of the summary on HTTP/3 that servers announced.

use serde::Serialize;
use squall_measure::RunRecord;

use super::ErrorGroup;

/// Announcements of HTTP/3 in Alt-Svc, and what became of them.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AltSvcSummary {
    /// Announcements that were new or had changed.
    pub discoveries: u64,
    /// Announcements that took an earlier one back.
    pub withdrawals: u64,
    /// Announcements that were malformed, or of a place that is not used.
    pub ignored: u64,
    /// Connections of HTTP/3 that followed an announcement.
    pub connections: u64,
    /// Connections for which TCP was used instead, as HTTP/3 could not be reached.
    pub fallbacks: u64,
    /// Why, the most frequent first.
    pub fallback_causes: Vec<ErrorGroup>,
}

pub(super) fn alt_svc(record: &RunRecord) -> Option<AltSvcSummary> {
    let alt_svc = record.total.alt_svc.as_ref()?;
    Some(AltSvcSummary {
        discoveries: alt_svc.discoveries,
        withdrawals: alt_svc.withdrawals,
        ignored: alt_svc.ignored,
        connections: alt_svc.connections,
        fallbacks: alt_svc.fallbacks.total(),
        fallback_causes: alt_svc.fallbacks.kinds().into_iter().map(ErrorGroup::from).collect(),
    })
}
