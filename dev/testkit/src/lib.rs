//! Loopback servers and scripted peers.
