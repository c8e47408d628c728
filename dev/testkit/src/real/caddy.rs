//! caddy's configuration.

use std::net::SocketAddr;

use rustix::process::Signal;

use super::{Ports, Recipe, Site};

pub(super) fn recipe(site: &Site, behind: Option<SocketAddr>) -> Recipe {
    let args = ["run", "--adapter", "caddyfile", "--config", "config"].map(str::to_owned).to_vec();
    Recipe { program: "caddy", quit: Signal::TERM, args, config: config(site, behind), ports: Ports::Two }
}

fn config(site: &Site, behind: Option<SocketAddr>) -> String {
    let Site { plain, tls, .. } = site;
    let websockets =
        behind.map_or(String::new(), |behind| format!("handle /ws {{\nreverse_proxy {behind}\n}}"));
    format!(
        r#"
{{
    admin off
    auto_https off
    default_bind 127.0.0.1
    servers {{
        protocols h1 h2 h2c h3
    }}
}}
http://{plain} {{
    {websockets}
    respond "hello
"
}}
https://{tls} {{
    tls cert.pem key.pem
    log {{
        output file access.log
    }}
    @pages path /100k /1m
    handle @pages {{
        root * www
        file_server
    }}
    {websockets}
    redir /moved /
    respond /echo "{{http.request.body}}"
    respond "hello
"
}}
"#
    )
}
