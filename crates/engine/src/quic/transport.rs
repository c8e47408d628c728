//! The transport's settings from the plan.

use std::num::NonZeroU16;
use std::sync::Arc;

use quinn_proto::congestion::{BbrConfig, CubicConfig, NewRenoConfig};
use quinn_proto::{AckFrequencyConfig, EndpointConfig, MtuDiscoveryConfig, TransportConfig, VarInt};
use squall_plan::limits::{
    QUIC_STREAM_WINDOW_BYTES_DEFAULT, QUIC_WINDOW_BYTES_DEFAULT, WINDOW_BYTES_DEFAULT,
};
use squall_plan::{ConnectionPolicy, QuicCongestion};

/// How connections of a load behave.
pub(super) fn transport_config(policy: &ConnectionPolicy) -> TransportConfig {
    let mut config = TransportConfig::default();
    let quic = &policy.quic;
    config
        // A request has a time limit of its own, and a connection that is kept ends when the server says.
        .max_idle_timeout(None)
        .stream_receive_window(window(policy.window_bytes, QUIC_STREAM_WINDOW_BYTES_DEFAULT))
        .receive_window(window(policy.connection_window_bytes, QUIC_WINDOW_BYTES_DEFAULT))
        .send_window(SEND_WINDOW_BYTES)
        // RFC 9114 6.1: servers open no such stream.
        .max_concurrent_bidi_streams(VarInt::from_u32(0))
        .max_concurrent_uni_streams(VarInt::from_u32(UNI_STREAM_COUNT_MAX))
        .datagram_receive_buffer_size(None)
        .enable_segmentation_offload(quic.segmentation);
    if let Some(bytes) = quic.udp_payload_bytes_max {
        let mut discovery = MtuDiscoveryConfig::default();
        discovery.upper_bound(bytes.get().max(MTU_MIN));
        config.mtu_discovery_config((bytes.get() > MTU_MIN).then_some(discovery));
    }
    if let Some(count) = quic.ack_frequency {
        let mut frequency = AckFrequencyConfig::default();
        // The extension counts the packets that may wait.
        frequency.ack_eliciting_threshold(VarInt::from_u32(count.get() - 1));
        config.ack_frequency_config(Some(frequency));
    }
    match quic.congestion {
        QuicCongestion::Cubic => {
            config.congestion_controller_factory(Arc::new(CubicConfig::default()));
        }
        QuicCongestion::Bbr => {
            config.congestion_controller_factory(Arc::new(BbrConfig::default()));
        }
        QuicCongestion::NewReno => {
            config.congestion_controller_factory(Arc::new(NewRenoConfig::default()));
        }
    }
    config
}

/// What concerns all connections of a load.
pub(super) fn endpoint_config(policy: &ConnectionPolicy) -> EndpointConfig {
    let mut config = EndpointConfig::default();
    config.supported_versions(vec![VERSION_1]);
    let announced_bytes = policy.quic.udp_payload_bytes_max.map_or(0, NonZeroU16::get);
    // The server may send datagrams of what is announced (RFC 9000 18.2). Less than the default would forbid what it sends unasked.
    if u64::from(announced_bytes) > config.get_max_udp_payload_size() {
        config.max_udp_payload_size(announced_bytes).expect("it is more than the default, which is allowed");
    }
    config
}

/// A window as the plan has it; its default is that of HTTP/2, where a window takes no memory.
fn window(bytes: u32, default: u32) -> VarInt {
    VarInt::from_u32(if bytes == WINDOW_BYTES_DEFAULT { default } else { bytes })
}

/// Bytes of one connection that may be on their way without an acknowledgement: the kernel's buffer is as large.
const SEND_WINDOW_BYTES: u64 = 8 << 20;

/// Unidirectional streams that a server may have: control and QPACK take three, and what is reserved for greasing some more.
const UNI_STREAM_COUNT_MAX: u32 = 16;

/// The smallest datagram that every path must carry (RFC 9000 14.1).
const MTU_MIN: u16 = 1200;

/// QUIC version 1 (RFC 9000).
const VERSION_1: u32 = 1;

#[cfg(test)]
mod tests {
    use squall_plan::QuicPolicy;
    use squall_plan::limits::UDP_PAYLOAD_BYTES_MAX;

    use super::*;

    #[test]
    fn servers_are_allowed_datagrams_as_large_as_ours() {
        for (bytes, expected) in [
            (None, 1472),
            (Some(1200), 1472),
            (Some(9000), 9000),
            (Some(UDP_PAYLOAD_BYTES_MAX), u64::from(UDP_PAYLOAD_BYTES_MAX)),
        ] {
            let udp_payload_bytes_max = bytes.and_then(NonZeroU16::new);
            let quic = QuicPolicy { udp_payload_bytes_max, ..QuicPolicy::default() };
            let config = endpoint_config(&ConnectionPolicy { quic, ..ConnectionPolicy::default() });
            assert_eq!(config.get_max_udp_payload_size(), expected, "{bytes:?}");
        }
    }
}
