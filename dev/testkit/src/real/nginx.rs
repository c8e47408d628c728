//! nginx's configuration.

use std::net::SocketAddr;

use rustix::process::Signal;

use super::{Ports, Recipe, Site, runs_as_root};

/// What a test or a benchmark chooses.
#[derive(Debug, Clone, Copy)]
pub struct NginxOptions {
    /// The only CPU its worker runs on; `None`: any.
    pub worker_cpu: Option<u32>,
    /// Writes a line per request.
    pub access_log: bool,
    /// Speaks TLS 1.3, which older versions leave out by default.
    pub tls13: bool,
    /// Its certificate has an RSA key instead of a P-256 one.
    pub rsa: bool,
    /// Speaks HTTP/2, too.
    pub http2: bool,
    /// Takes early data (0-RTT). Each line of the log then ends in what `$ssl_session_reused` and `$ssl_early_data` say.
    pub early_data: bool,
    /// Connections that it holds at once, its own sockets among them.
    pub connection_count_max: u32,
    /// Descriptors that its worker may have open; it needs some ten for itself.
    pub descriptor_count_max: u32,
    /// A server of WebSockets, to which `/ws` is passed on.
    pub behind: Option<SocketAddr>,
}

impl Default for NginxOptions {
    fn default() -> Self {
        Self {
            worker_cpu: None,
            access_log: true,
            tls13: false,
            rsa: false,
            http2: true,
            early_data: false,
            connection_count_max: 16384,
            descriptor_count_max: 18_000,
            behind: None,
        }
    }
}

pub(super) fn recipe(site: &Site, options: NginxOptions) -> Recipe {
    let folder = site.folder().display().to_string();
    let args = ["-p", &folder, "-c", "config", "-e", "output.log"];
    Recipe {
        program: "nginx",
        quit: Signal::QUIT,
        args: args.map(str::to_owned).to_vec(),
        config: config(site, options),
        ports: Ports::Three,
    }
}

fn config(site: &Site, options: NginxOptions) -> String {
    let Site { plain, tls, h2c, .. } = site;
    let user = if runs_as_root() { "user root;" } else { "" };
    let affinity =
        options.worker_cpu.map_or(String::new(), |cpu| format!("worker_cpu_affinity {:b};", 1u64 << cpu));
    let protocols = if options.tls13 { "ssl_protocols TLSv1.2 TLSv1.3;" } else { "" };
    let http2 = if options.http2 { "http2" } else { "" };
    // Only while the request is read the handshake is not whole yet.
    let (early_data, early_fields) = match options.early_data {
        true => ("ssl_early_data on; set $is_early $ssl_early_data;", " $ssl_session_reused $is_early"),
        false => ("", ""),
    };
    let NginxOptions { connection_count_max, descriptor_count_max, .. } = options;
    let websockets = options.behind.map_or(String::new(), |behind| {
        format!(
            "location /ws {{ proxy_pass http://{behind}; proxy_http_version 1.1; proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection upgrade; }}"
        )
    });
    let access_log = if options.access_log { "access.log tally" } else { "off" };
    format!(
        r#"
daemon off;
{user}
{affinity}
worker_processes 1;
worker_rlimit_nofile {descriptor_count_max};
worker_shutdown_timeout 2s;
pid nginx.pid;
error_log output.log warn;
events {{ worker_connections {connection_count_max}; }}
http {{
    log_format tally '$status $request_method $request_uri $connection $connection_requests{early_fields}';
    access_log {access_log};
    client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path fastcgi; uwsgi_temp_path uwsgi; scgi_temp_path scgi;
    sendfile on;
    tcp_nopush on;
    keepalive_requests 1000000000;
    keepalive_timeout 60s;
    client_max_body_size 0;
    {protocols}
    ssl_certificate cert.pem;
    ssl_certificate_key key.pem;
    ssl_session_cache shared:tls:10m;
    server {{
        listen {plain} backlog=16384;
        listen {tls} ssl {http2} backlog=16384;
        listen {h2c} {http2} backlog=16384;
        {early_data}
        root www;
        location = / {{ return 200 "hello\n"; }}
        {websockets}
        location = /status {{ stub_status; access_log off; }}
    }}
}}
"#
    )
}
