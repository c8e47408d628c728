// Servers of protocols on WebSockets, each at a path of its own, for the scripts of this suite. Node's `ws` does the framing.
// Prints its URL; ends when its standard input does.
'use strict';
const http = require('http');
const { WebSocketServer } = require('ws');

const routes = {
  '/socket.io/': socketIo, '/stomp': stomp, '/graphql': graphql, '/realtime/v1/websocket': supabase, '/phoenix/websocket': phoenix,
  '/mqtt': mqtt, '/rpc': rpc, '/blob': (socket) => socket.on('message', (data, isBinary) => socket.send(data, { binary: isBinary })),
  '/close': closes, '/ping': pings, '/room': room, '/slow': (socket) => setTimeout(() => socket.send('late'), 150),
  '/cookies': (socket, request) => socket.send(JSON.stringify({ cookie: request.headers.cookie ?? '', agent: request.headers['x-agent'] ?? '' })),
};

const server = http.createServer((request, response) => {
  const url = new URL(request.url, 'http://h');
  if (url.pathname === '/socket.io/') return polling(request, response, url);
  if (url.pathname === '/login') return response.writeHead(200, { 'set-cookie': 'session=abc123' }).end('in');
  response.writeHead(404).end();
});

const upgrades = new WebSocketServer({
  noServer: true,
  perMessageDeflate: { threshold: 0 },
  handleProtocols: (offered, request) => (request.url.startsWith('/graphql') && !offered.has('graphql-transport-ws') ? false : [...offered][0]),
});

server.on('upgrade', (request, stream, head) => {
  const url = new URL(request.url, 'http://h');
  const refuse = (status, more = '') => stream.end(`HTTP/1.1 ${status}\r\nconnection: close\r\n${more}content-length: 2\r\n\r\nno`);
  switch (url.pathname) {
    case '/forbidden': return refuse('403 Forbidden');
    case '/broken': return refuse('500 Internal Server Error');
    case '/moved': return refuse('302 Found', 'location: /blob\r\n');
    case '/reset': return stream.destroy();
    case '/accept': return stream.end('HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: upgrade\r\nsec-websocket-accept: wrong\r\n\r\n');
  }
  const route = routes[url.pathname];
  if (!route) return refuse('404 Not Found');
  upgrades.handleUpgrade(request, stream, head, (socket) => {
    socket.on('error', () => {});
    route(socket, request, url);
  });
});

const json = (socket, value) => socket.send(JSON.stringify(value));

// Engine.IO 4: a session begins with polling, and is upgraded.
const sessions = new Map();
function polling(request, response, url) {
  const sid = url.searchParams.get('sid');
  if (!sid) {
    const id = `s${sessions.size + 1}`;
    sessions.set(id, { isConnected: false });
    return response.end(`0${JSON.stringify({ sid: id, upgrades: ['websocket'], pingInterval: 60, pingTimeout: 20000, maxPayload: 1000000 })}`);
  }
  if (!sessions.has(sid)) return response.writeHead(400).end('{"code":1,"message":"Session ID unknown"}');
  if (request.method === 'POST') {
    request.resume();
    request.on('end', () => { sessions.get(sid).isConnected = true; response.end('ok'); });
    return undefined;
  }
  return response.end(sessions.get(sid).isConnected ? `40${JSON.stringify({ sid: `n${sid}` })}` : '6');
}
function socketIo(socket, request, url) {
  let isUpgraded = false;
  let ping;
  socket.on('message', (data) => {
    const packet = String(data);
    if (packet === '2probe') socket.send('3probe');
    else if (packet === '5') { isUpgraded = sessions.has(url.searchParams.get('sid')); if (!isUpgraded) socket.close(1008); }
    else if (!isUpgraded) socket.close(1002, 'no upgrade');
    else if (packet === '3') socket.close(1000);
    else if (packet.startsWith('42')) {
      const [, id, text] = /^42(\d*)(\[.*)$/s.exec(packet);
      const [name, value] = JSON.parse(text);
      if (id !== '') socket.send(`43${id}${JSON.stringify([{ status: 'ok', value }])}`);
      socket.send(`42${JSON.stringify([`${name}:seen`, value])}`);
      if (name === 'bye') ping = setTimeout(() => socket.send('2'), 10);
    }
  });
  socket.on('close', () => clearTimeout(ping));
}

function stomp(socket) {
  const frame = (command, headers, body = '') => socket.send(`${command}\n${Object.entries(headers).map(([k, v]) => `${k}:${v}\n`).join('')}\n${body}\0`);
  const subscriptions = new Map();
  let count = 0;
  socket.on('message', (data) => {
    const text = String(data);
    if (text === '\n') return socket.send('\n');
    const [head, body] = text.replace(/\0$/, '').split('\n\n');
    const [command, ...lines] = head.split('\n');
    const headers = Object.fromEntries(lines.map((line) => line.split(':')));
    if (command === 'CONNECT') frame('CONNECTED', { version: '1.2', 'heart-beat': '0,0', server: 'suite/1' });
    else if (command === 'SUBSCRIBE') subscriptions.set(headers.destination, headers.id);
    else if (command === 'SEND' && subscriptions.has(headers.destination)) {
      frame('MESSAGE', { subscription: subscriptions.get(headers.destination), 'message-id': String(++count), destination: headers.destination }, body);
    } else if (command === 'SEND') frame('ERROR', { message: 'nobody is subscribed' });
    if (headers.receipt) frame('RECEIPT', { 'receipt-id': headers.receipt });
    if (command === 'DISCONNECT') socket.close(1000, 'bye');
    return undefined;
  });
}

function graphql(socket) {
  if (socket.protocol !== 'graphql-transport-ws') return socket.close(4406, 'Subprotocol not acceptable');
  let isReady = false;
  socket.on('message', (data) => {
    let message;
    try { message = JSON.parse(data); } catch { return socket.close(4400, 'Invalid message received'); }
    const { type, id, payload } = message;
    if (type === 'connection_init') { isReady = true; return json(socket, { type: 'connection_ack' }); }
    if (type === 'ping') return json(socket, { type: 'pong', payload });
    if (!isReady) return socket.close(4401, 'Unauthorized');
    if (type !== 'subscribe') return undefined;
    if (payload.query.includes('broken')) return json(socket, { id, type: 'error', payload: [{ message: 'broken' }] });
    for (let n = 0; n < payload.variables.count; n++) json(socket, { id, type: 'next', payload: { data: { counter: n } } });
    return json(socket, { id, type: 'complete' });
  });
  return undefined;
}

function supabase(socket) {
  socket.on('message', (data) => {
    const { topic, event, payload, ref } = JSON.parse(data);
    const reply = (status, response = {}) => json(socket, { topic, event: 'phx_reply', payload: { status, response }, ref });
    if (event === 'heartbeat') return reply('ok');
    if (event === 'phx_leave') { reply('ok'); return json(socket, { topic, event: 'phx_close', payload: {}, ref }); }
    if (event === 'access_token') return undefined;
    if (event === 'broadcast') return json(socket, { topic, event, payload, ref: null });
    if (event !== 'phx_join') return reply('error', { reason: 'unmatched topic' });
    if (payload.access_token !== 'jwt') return reply('error', { reason: 'Invalid token' });
    reply('ok', { postgres_changes: payload.config.postgres_changes.map((change, n) => ({ ...change, id: n })) });
    json(socket, { topic, event: 'presence_state', payload: {}, ref: null });
    for (let n = 0; n < 3; n++) json(socket, { topic, event: 'postgres_changes', payload: { ids: [0], data: { type: 'INSERT', record: { id: n } } }, ref: null });
    return undefined;
  });
}

// The second version of the serializer: arrays, and binary pushes.
function phoenix(socket) {
  socket.on('message', (data, isBinary) => {
    if (isBinary) return socket.send(data, { binary: true });
    const [joinRef, ref, topic, event, payload] = JSON.parse(data);
    const reply = (status, response) => json(socket, [joinRef, ref, topic, 'phx_reply', { status, response }]);
    if (topic === 'phoenix' && event === 'heartbeat') return reply('ok', {});
    if (event === 'phx_join') return topic.startsWith('room:') ? reply('ok', { members: 1 }) : reply('error', { reason: 'unmatched topic' });
    if (event === 'shout') { json(socket, [null, null, topic, 'shout', payload]); return reply('ok', {}); }
    reply('ok', {});
    return json(socket, [joinRef, ref, topic, 'phx_close', {}]);
  });
}

function mqtt(socket) {
  if (socket.protocol !== 'mqtt') return socket.close(1002, 'mqtt only');
  const sockets = new Set();
  let rest = Buffer.alloc(0);
  socket.on('message', (data, isBinary) => {
    if (!isBinary) return socket.close(1003);
    // A packet may be cut anywhere, and a message may have several.
    rest = Buffer.concat([rest, data]);
    while (rest.length >= 2 && rest.length >= 2 + rest[1]) {
      const packet = rest.subarray(0, 2 + rest[1]);
      rest = rest.subarray(2 + packet[1]);
      const [type, flags] = [packet[0] >> 4, packet[0] & 15];
      if (type === 1) socket.send(Buffer.from([0x20, 2, 0, 0]));
      else if (type === 8) { sockets.add(packet.subarray(6, 6 + packet[5]).toString()); socket.send(Buffer.from([0x90, 3, packet[2], packet[3], 0])); }
      else if (type === 3) {
        const topic = packet.subarray(4, 4 + packet[3]).toString(), qos = (flags >> 1) & 3;
        const at = 4 + packet[3];
        if (qos === 1) socket.send(Buffer.from([0x40, 2, packet[at], packet[at + 1]]));
        const body = packet.subarray(at + (qos ? 2 : 0));
        if (sockets.has(topic)) socket.send(Buffer.concat([Buffer.from([0x30, 2 + topic.length + body.length, 0, topic.length]), Buffer.from(topic), body]));
      } else if (type === 12) socket.send(Buffer.from([0xd0, 0]));
      else if (type === 14) socket.close(1000);
    }
    return undefined;
  });
  return undefined;
}

function rpc(socket) {
  const one = ({ jsonrpc, id, method, params }) => {
    if (jsonrpc !== '2.0') return { jsonrpc: '2.0', id: null, error: { code: -32600, message: 'Invalid Request' } };
    if (id === undefined) return undefined;
    if (method === 'add') return { jsonrpc, id, result: params.reduce((sum, n) => sum + n, 0) };
    if (method === 'eth_blockNumber') return { jsonrpc, id, result: '0x10' };
    return { jsonrpc, id, error: { code: -32601, message: 'Method not found' } };
  };
  socket.on('message', (data) => {
    let call;
    try { call = JSON.parse(data); } catch { return json(socket, { jsonrpc: '2.0', id: null, error: { code: -32700, message: 'Parse error' } }); }
    if (call.method === 'subscribe') {
      json(socket, { jsonrpc: '2.0', id: call.id, result: 'sub1' });
      for (let n = 0; n < 3; n++) json(socket, { jsonrpc: '2.0', method: 'subscription', params: { subscription: 'sub1', result: { number: n } } });
      return undefined;
    }
    const answer = Array.isArray(call) ? call.map(one).filter(Boolean) : one(call);
    if (answer !== undefined && (!Array.isArray(answer) || answer.length)) json(socket, answer);
    return undefined;
  });
}

function closes(socket, request, url) {
  const code = Number(url.searchParams.get('code'));
  socket.send('before');
  if (code === 1006) return socket._socket.end();
  if (code === 1005) return socket.close();
  return socket.close(code, url.searchParams.get('reason') ?? '');
}

function pings(socket) {
  let count = 0;
  socket.on('pong', (data) => { socket.send(`pong ${data}`); if (++count === 3) socket.close(1000); else socket.ping(String(count)); });
  socket.ping('0');
}

const rooms = new Map();
function room(socket, request, url) {
  const name = url.searchParams.get('name');
  const members = rooms.get(name) ?? new Set();
  rooms.set(name, members.add(socket));
  const all = (message) => members.forEach((member) => json(member, message));
  if (members.size === Number(url.searchParams.get('size'))) all({ type: 'full', size: members.size });
  socket.on('message', (data) => all({ type: 'said', text: String(data) }));
  socket.on('close', () => members.delete(socket));
}

server.listen(0, '127.0.0.1', () => console.log(`http://127.0.0.1:${server.address().port}`));
process.stdin.resume();
process.stdin.on('end', () => process.exit(0));
