//! Metrics monitored during the load: machines and processes from `/proc`, servers from their status pages.

pub(crate) mod figures;
pub(crate) mod machine;
mod pages;
pub(crate) mod process;
mod rates;
mod sample;
pub(crate) mod web;
