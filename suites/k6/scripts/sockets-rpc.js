// JSON-RPC 2.0: calls by id, batches, notifications, subscriptions and errors, with a trend of round trips by method.
import ws from 'k6/ws';
import { check } from 'k6';
import { Trend, Counter } from 'k6/metrics';
const URL = __ENV.SOCKETS.replace('http', 'ws') + '/rpc';
const round = new Trend('rpc_round_trip', true), errors = new Counter('rpc_errors');
export const options = { vus: 2, iterations: 4, summaryTrendStats: ['avg', 'p(95)', 'count'],
  thresholds: { rpc_errors: ['count==12'], 'rpc_round_trip{method:add}': ['p(95)<5000'], 'rpc_round_trip{method:nope}': ['avg>=0'], 'ws_msgs_sent{name:rpc}': ['count==24'] } };
export default function () {
  const pending = {};
  let id = 0, notified = 0;
  const answers = [];
  const res = ws.connect(URL, { tags: { name: 'rpc' }, headers: { Origin: 'https://example.org' }, compression: 'deflate' }, (socket) => {
    const call = (method, params) => { pending[++id] = { method, at: Date.now() }; socket.send(JSON.stringify({ jsonrpc: '2.0', id, method, params })); };
    socket.on('open', () => {
      call('add', [1, 2, 3]);
      call('nope');
      socket.send(JSON.stringify({ jsonrpc: '2.0', method: 'add', params: [1] }));
      socket.send(JSON.stringify([{ jsonrpc: '2.0', id: 'b1', method: 'eth_blockNumber' }, { jsonrpc: '2.0', method: 'add', params: [] }, { id: 'b2' }]));
      socket.send('{');
      call('subscribe', ['newHeads']);
    });
    socket.on('message', (text) => {
      for (const answer of [].concat(JSON.parse(text))) {
        if (answer.error) errors.add(1, { code: String(answer.error.code) });
        if (answer.method === 'subscription' && ++notified === 3) socket.close(1000);
        const sent = pending[answer.id];
        if (sent) round.add(Date.now() - sent.at, { method: sent.method });
        answers.push(answer.error ? answer.error.code : answer.result ?? answer.params.result.number);
      }
    });
    socket.on('error', (e) => answers.push(e.error()));
  });
  check(res, { 'status is 101': (r) => r.status === 101, compression: (r) => String(r.headers['Sec-Websocket-Extensions']).includes('permessage-deflate') });
  check(answers.join(), { answers: (all) => all === '6,-32601,0x10,-32600,-32700,sub1,0,1,2' });
}
