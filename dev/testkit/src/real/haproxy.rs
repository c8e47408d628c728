//! haproxy's configuration.

use std::net::SocketAddr;

use rustix::process::Signal;

use super::{Ports, Recipe, Site};

pub(super) fn recipe(site: &Site, behind: SocketAddr) -> Recipe {
    let args = ["-db", "-f", "config"].map(str::to_owned).to_vec();
    Recipe { program: "haproxy", quit: Signal::USR1, args, config: config(site, behind), ports: Ports::Three }
}

fn config(site: &Site, behind: SocketAddr) -> String {
    let Site { plain, tls, h2c, .. } = site;
    format!(
        r#"
global
    maxconn 4000
    nbthread 1
defaults
    mode http
    timeout connect 5s
    timeout client 30s
    timeout server 30s
frontend front
    bind {plain}
    bind {tls} ssl crt both.pem alpn h2,http/1.1
    bind {h2c} proto h2
    default_backend behind
backend behind
    server one {behind}
"#
    )
}
