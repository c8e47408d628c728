//! Figures that leave while a run goes on: the live page of `--web`, and the systems that people have dashboards in.
//!
//! Owns: its threads and sockets. The run's collector hands over a second at a time and never waits for anyone: what cannot be sent is
//! dropped and reported at the end. Never: the load itself; nothing here runs on a thread that makes load.

mod error;
mod figures;
mod http;
mod influx;
mod otlp;
mod prometheus;
mod queue;
mod sender;
mod server;
mod statsd;
mod web;

pub use error::Error;
pub use sender::{Push, PushKind, agent, reason};
pub use server::Metrics;
pub use web::Web;
