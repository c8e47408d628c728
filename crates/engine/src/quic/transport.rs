//! The transport's settings from the plan.

use std::sync::Arc;

use quinn_proto::congestion::{BbrConfig, CubicConfig, NewRenoConfig};
use quinn_proto::{AckFrequencyConfig, MtuDiscoveryConfig, TransportConfig, VarInt};
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
