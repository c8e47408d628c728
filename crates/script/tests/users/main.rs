//! Virtual users without an engine: replies come from the test.

mod drive;
mod fasthttp;
mod files;
mod hostile;
mod html;
mod http;
mod language;
mod loading;
mod modules;
mod records;
mod samples;
mod sockets;
mod streams;
mod subtle;
