// The protocol of graphql-ws: operations side by side, errors of one, and the close codes of wrong clients.
import { WebSocket } from 'k6/websockets';
import { check, group } from 'k6';
const URL = __ENV.SOCKETS.replace('http', 'ws') + '/graphql';
export const options = { vus: 2, iterations: 4, thresholds: { 'checks{kind:graphql}': ['rate==1'], ws_sessions: ['count==16'] } };
function talk(protocols, first, onMessage) {
  return new Promise((resolve) => {
    const socket = new WebSocket(URL, protocols, { tags: { kind: 'graphql' } });
    socket.onopen = () => first.forEach((m) => socket.send(typeof m === 'string' ? m : JSON.stringify(m)));
    socket.onmessage = ({ data }) => onMessage && onMessage(JSON.parse(data), socket);
    socket.onclose = ({ code, reason }) => resolve({ code, reason, protocol: socket.protocol });
    socket.onerror = () => {};
  });
}
export default async function () {
  const seen = {};
  let left = 3;
  const subscribe = (id, query, count) => ({ id, type: 'subscribe', payload: { query, variables: { count } } });
  const ended = await talk(['graphql-transport-ws'], [{ type: 'connection_init', payload: { token: 'x' } }], (message, socket) => {
    const { id, type } = message;
    if (type === 'connection_ack') [subscribe('a', 'subscription { counter }', 4), subscribe('b', 'subscription { counter }', 2), subscribe('c', 'broken')].forEach((m) => socket.send(JSON.stringify(m)));
    if (id) (seen[id] = seen[id] || []).push(type);
    if ((type === 'complete' || type === 'error') && --left === 0) socket.send(JSON.stringify({ type: 'ping', payload: { n: 1 } }));
    if (type === 'pong') socket.close(1000, 'done');
  });
  const tags = { kind: 'graphql' };
  group('operations', () => {
    check(ended, { 'closed by the client': (e) => e.code === 1000 && e.protocol === 'graphql-transport-ws' }, tags);
    check(seen, { 'four and a complete': (s) => s.a.join() === 'next,next,next,next,complete', 'two and a complete': (s) => s.b.length === 3, 'an error': (s) => s.c.join() === 'error' }, tags);
  });
  const init = { type: 'connection_init' };
  for (const [name, protocols, messages, code] of [
    ['no subprotocol', null, [], 4406],
    ['not initialised', ['graphql-transport-ws'], [subscribe('a', 'x', 1)], 4401],
    ['not JSON', ['graphql-transport-ws'], [init, '{'], 4400],
  ]) {
    const end = await talk(protocols, messages);
    check(end, { [`${name}: ${code}`]: (e) => e.code === code && e.reason.length > 0 }, tags);
  }
}
