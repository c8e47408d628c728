//! envoy's configuration: one worker, which gives the same answers over TCP and QUIC.

use std::net::SocketAddr;

use rustix::process::Signal;

use super::{Ports, Recipe, Site};

/// What a test or a benchmark chooses.
#[derive(Debug, Clone, Copy, Default)]
pub struct EnvoyOptions {
    /// The only CPU that it runs on; `None`: any.
    pub cpu: Option<u32>,
    /// Writes a line per request: protocol, status, method and path.
    pub access_log: bool,
    /// A server of WebSockets, to which `/ws` is passed on over HTTP/1.1.
    pub behind: Option<SocketAddr>,
}

pub(super) fn recipe(site: &Site, options: EnvoyOptions) -> Recipe {
    let pinned = options.cpu.map(|cpu| ["-c".to_owned(), cpu.to_string(), "envoy".to_owned()]);
    let program = if pinned.is_some() { "taskset" } else { "envoy" };
    // A file of this content would need a name that ends in `.yaml`.
    let config = config(site, options);
    let args = ["--config-yaml", &config, "--concurrency", "1", "--disable-hot-restart", "-l", "warn"];
    Recipe {
        program,
        quit: Signal::TERM,
        args: pinned.into_iter().flatten().chain(args.map(str::to_owned)).collect(),
        config: String::new(),
        ports: Ports::Two,
    }
}

fn config(site: &Site, options: EnvoyOptions) -> String {
    let (plain, tls) = (site.plain.port(), site.tls.port());
    let context = |alpn: &str| {
        format!(
            "common_tls_context: {{alpn_protocols: [{alpn}], tls_certificates: [{{certificate_chain: {{filename: cert.pem}}, private_key: {{filename: key.pem}}}}]}}"
        )
    };
    let (tcp_context, quic_context) = (context("h2, http/1.1"), context("h3"));
    let manager = |codec: &str| manager(codec, options);
    let clusters = options.behind.map_or(String::new(), |behind| {
        let (host, port) = (behind.ip(), behind.port());
        format!(
            "clusters: [{{name: behind, type: STATIC, load_assignment: {{cluster_name: behind, endpoints: [{{lb_endpoints: [{{endpoint: {{address: {{socket_address: {{address: {host}, port_value: {port}}}}}}}}}]}}]}}}}]"
        )
    });
    let (tcp_manager, quic_manager) = (manager("AUTO"), manager("HTTP3"));
    format!(
        r#"
static_resources:
  {clusters}
  listeners:
  - name: plain
    address: {{socket_address: {{address: 127.0.0.1, port_value: {plain}}}}}
    filter_chains: [{{filters: [{tcp_manager}]}}]
  - name: tls
    address: {{socket_address: {{address: 127.0.0.1, port_value: {tls}}}}}
    filter_chains:
    - transport_socket: {{name: tls, typed_config: {{"@type": {TYPES}.transport_sockets.tls.v3.DownstreamTlsContext, {tcp_context}}}}}
      filters: [{tcp_manager}]
  - name: quic
    address: {{socket_address: {{protocol: UDP, address: 127.0.0.1, port_value: {tls}}}}}
    udp_listener_config: {{quic_options: {{}}, downstream_socket_config: {{prefer_gro: true}}}}
    filter_chains:
    - transport_socket: {{name: quic, typed_config: {{"@type": {TYPES}.transport_sockets.quic.v3.QuicDownstreamTransport, downstream_tls_context: {{{quic_context}}}}}}}
      filters: [{quic_manager}]
"#
    )
}

/// What serves HTTP on a listener.
fn manager(codec: &str, options: EnvoyOptions) -> String {
    let log = match options.access_log {
        true => format!(
            r#"access_log: [{{name: file, typed_config: {{"@type": {TYPES}.access_loggers.file.v3.FileAccessLog, path: access.log, log_format: {{text_format_source: {{inline_string: "%PROTOCOL% %RESPONSE_CODE% %REQ(:METHOD)% %REQ(:PATH)%\n"}}}}}}}}], "#
        ),
        false => String::new(),
    };
    let file = |name: &str| {
        format!(
            "{{match: {{path: /{name}}}, direct_response: {{status: 200, body: {{filename: www/{name}}}}}}}"
        )
    };
    let files = ["20k", "100k", "128k", "1m"].map(file).join(", ");
    // RFC 8441: with `allow_connect`, WebSockets are streams of HTTP/2 connections, too.
    let (route, upgrades) = match options.behind {
        Some(_) => (
            "{match: {prefix: /ws}, route: {cluster: behind}}, ",
            "upgrade_configs: [{upgrade_type: websocket}], http2_protocol_options: {allow_connect: true}, ",
        ),
        None => ("", ""),
    };
    format!(
        r#"{{name: http, typed_config: {{"@type": {TYPES}.filters.network.http_connection_manager.v3.HttpConnectionManager, stat_prefix: http, codec_type: {codec}, {log}{upgrades}route_config: {{max_direct_response_body_size_bytes: 1000000, virtual_hosts: [{{name: all, domains: ["*"], routes: [{route}{files}, {{match: {{prefix: /}}, direct_response: {{status: 200, body: {{inline_string: "hello\n"}}}}}}]}}]}}, http_filters: [{{name: router, typed_config: {{"@type": {TYPES}.filters.http.router.v3.Router, suppress_envoy_headers: true}}}}]}}}}"#
    )
}

/// Where envoy's types of configuration are named.
const TYPES: &str = "type.googleapis.com/envoy.extensions";
