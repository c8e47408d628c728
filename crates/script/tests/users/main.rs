//! Virtual users without an engine: replies come from the test.

mod drive;
mod http;
mod language;
mod modules;
