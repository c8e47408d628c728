//! The binary against real things: real servers, hostile servers, signals, full disks, and a server that knows the truth.
//!
//! Each test starts what it needs on loopback and ends it. They speak to squall as a user's script does: arguments,
//! signals, JSON, exit codes.

mod alt_svc;
mod closing;
mod connections;
mod counts;
mod crash;
mod descriptors;
mod disk;
mod frameworks;
mod h2_peers;
mod h2_servers;
mod h3_servers;
mod hostile;
mod input;
mod large_uploads;
mod like_k6;
mod outputs;
mod quic_peers;
mod recorded_websockets;
mod redirects;
mod round_trip;
mod schedule;
mod scripts;
mod segments;
mod signals;
mod site;
mod squall;
mod streams;
mod studies;
mod traffic;
mod truth;
mod uploads;
mod websocket_servers;
mod websocket_streams;
mod websockets;
