//! `squall target`: a fast local server with httpbin-like routes, the default to try everything on.
//!
//! Owns: its threads, its certificate, the table of routes. Never: load, figures about a client, other people's ports:
//! it listens on loopback by default. Protocol code is hyper's and rustls's, and that of `squall-http3`; what is here is routes and counting.
//!
//! ```
//! use squall_server::{Options, Target};
//! let target = Target::start(&Options::default()).unwrap();
//! let url = format!("http://{}/bytes/100", target.address());
//! # drop(url);
//! target.stop();
//! ```

mod answer;
mod body;
mod call;
mod channels;
mod connection;
mod duration;
mod error;
mod limits;
mod log;
mod multipart;
mod options;
mod pause;
mod reply;
mod routes;
mod sequence;
mod shared;
mod size;
mod stats;
mod target;
mod tls;
mod tunnel;
mod websocket;
mod worker;

pub use error::Error;
pub use options::{Options, Tls};
pub use routes::{RouteDoc, route_docs};
pub use stats::Stats;
pub use target::Target;
