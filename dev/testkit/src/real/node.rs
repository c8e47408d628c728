//! A server in node's http2 module.

use rustix::process::Signal;

use super::{Ports, Recipe, Site};

pub(super) fn recipe(site: &Site) -> Recipe {
    Recipe {
        program: "node",
        quit: Signal::TERM,
        args: vec!["config".to_owned()],
        config: config(site),
        ports: Ports::Http2Only,
    }
}

fn config(site: &Site) -> String {
    let (tls, h2c) = (site.tls.port(), site.h2c.port());
    format!(
        r#"
const http2 = require('http2');
const fs = require('fs');
const answer = (stream) => {{
    stream.on('error', () => {{}});
    stream.respond({{ ':status': 200, 'content-type': 'text/plain' }});
    stream.end('hello\n');
}};
const identity = {{ key: fs.readFileSync('key.pem'), cert: fs.readFileSync('cert.pem') }};
http2.createSecureServer(identity).on('stream', answer).listen({tls}, '127.0.0.1');
http2.createServer().on('stream', answer).listen({h2c}, '127.0.0.1');
"#
    )
}
