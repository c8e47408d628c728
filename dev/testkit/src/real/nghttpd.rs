//! nghttpd's command line: one for each port, both in one process group.

use rustix::process::Signal;

use super::{Ports, Recipe, Site};

pub(super) fn recipe(site: &Site) -> Recipe {
    let (tls, h2c) = (site.tls.port(), site.h2c.port());
    let options = "-a 127.0.0.1 -d www";
    let script = format!("nghttpd {options} {tls} key.pem cert.pem & exec nghttpd {options} --no-tls {h2c}");
    Recipe {
        program: "sh",
        quit: Signal::TERM,
        args: vec!["-c".to_owned(), script],
        config: String::new(),
        ports: Ports::Http2Only,
    }
}
