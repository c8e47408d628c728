//! h2o's configuration.

use rustix::process::Signal;

use super::{Ports, Recipe, Site, runs_as_root};

pub(super) fn recipe(site: &Site) -> Recipe {
    let args = ["-c", "config"].map(str::to_owned).to_vec();
    Recipe { program: "h2o", quit: Signal::TERM, args, config: config(site), ports: Ports::Two }
}

fn config(site: &Site) -> String {
    let (plain, tls) = (site.plain.port(), site.tls.port());
    let folder = site.folder().display();
    let user = if runs_as_root() { "user: root" } else { "" };
    format!(
        r#"
{user}
num-threads: 1
access-log: {folder}/access.log
hosts:
  "127.0.0.1:{plain}":
    listen: {{ host: 127.0.0.1, port: {plain} }}
    paths: &pages
      /status: {{ status: ON }}
      /: {{ file.dir: {folder}/www }}
  "127.0.0.1:{tls}":
    listen:
      host: 127.0.0.1
      port: {tls}
      ssl: {{ certificate-file: {folder}/cert.pem, key-file: {folder}/key.pem }}
    paths: *pages
"#
    )
}
