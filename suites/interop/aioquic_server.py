"""A server in aioquic: `aioquic_server.py ADDRESS PORT LOG [retry] [version2] [reject] [key-updates]`. Answers as `go/main.go` does.

`reject` knows no ticket while it has issued an even number, so that 0-RTT is rejected; `key-updates` begins a key update with every tenth request."""
import asyncio
import sys

from aioquic.asyncio import QuicConnectionProtocol, serve
from aioquic.h3.connection import H3_ALPN, H3Connection
from aioquic.h3.events import DataReceived, HeadersReceived
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.events import ProtocolNegotiated, StreamReset
from aioquic.quic.packet import QuicProtocolVersion

ADDRESS, PORT, LOG, *OPTIONS = sys.argv[1:]
log = open(LOG, 'w', buffering=1)


class Connection(QuicConnectionProtocol):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.http, self.requests, self.count = None, {}, 0

    def quic_event_received(self, event):
        if isinstance(event, ProtocolNegotiated):
            self.http = H3Connection(self._quic)
        elif isinstance(event, StreamReset):
            self.requests.pop(event.stream_id, None)
        if self.http:
            for received in self.http.handle_event(event):
                self.on_http(received)

    def on_http(self, event):
        if isinstance(event, HeadersReceived):
            self.requests.setdefault(event.stream_id, [dict(event.headers), 0])
        request = self.requests.get(event.stream_id)
        if request and isinstance(event, DataReceived):
            request[1] += len(event.data)
        if request and event.stream_ended:
            self.requests.pop(event.stream_id)
            self.answer(event.stream_id, *request)

    def answer(self, stream, fields, received):
        self.count += 1
        if 'key-updates' in OPTIONS and self.count % 10 == 0:
            try:
                self._quic.request_key_update()
                log.write('key_update\n')
            except AssertionError:
                pass  # the last one is not confirmed yet
        method, path = fields[b':method'].decode(), fields[b':path'].decode()
        name, _, count = path[1:].partition('/')
        if name == 'hang':
            return
        if name == 'hints':
            for _ in range(2):
                self.http.send_headers(stream, [(b':status', b'103'), (b'link', b'</style.css>; rel=preload')])
        status = {'empty': b'204', 'moved': b'302'}.get(name, b'200')
        body = {'bytes': b'.' * int(count or 0), 'upload': str(received).encode(), 'empty': b'', 'moved': b''}.get(name, b'hello\n')
        head = [(b':status', status)] + ([(b'location', b'/')] if name == 'moved' else [])
        body = b'' if method == 'HEAD' else body
        self.http.send_headers(stream, head, end_stream=not body)
        if body:
            self.http.send_data(stream, body, end_stream=name != 'trailers')
        if name == 'trailers':
            self.http.send_headers(stream, [(b'x-checksum', b'1')], end_stream=True)
        log.write(f'request {method} {path}\n')


class Tickets(dict):
    def add(self, ticket):
        self[ticket.ticket] = ticket

    def find(self, label):
        if 'reject' in OPTIONS and len(self) % 2 == 0:
            return None
        return self.get(label)


async def main():
    configuration = QuicConfiguration(is_client=False, alpn_protocols=H3_ALPN)
    configuration.load_cert_chain('cert.pem', 'key.pem')
    if 'version2' in OPTIONS:
        configuration.supported_versions = [QuicProtocolVersion.VERSION_2]
    tickets = Tickets()
    await serve(
        ADDRESS,
        int(PORT),
        configuration=configuration,
        create_protocol=Connection,
        session_ticket_fetcher=tickets.find,
        session_ticket_handler=tickets.add,
        retry='retry' in OPTIONS,
    )
    await asyncio.Future()


asyncio.run(main())
