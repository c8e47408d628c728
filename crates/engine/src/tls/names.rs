//! IANA's names of what TLS negotiates.

use rustls::SupportedCipherSuite;
use rustls::crypto::SupportedKxGroup;

/// The suite's name: rustls calls TLS 1.3 suites `TLS13_…`.
pub(super) fn suite_name(suite: &SupportedCipherSuite) -> String {
    format!("{:?}", suite.suite()).replace("TLS13_", "TLS_")
}

/// The group's name.
pub(super) fn group_name(group: &dyn SupportedKxGroup) -> String {
    format!("{:?}", group.name())
}
