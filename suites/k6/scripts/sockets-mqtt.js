// MQTT 3.1.1 in binary messages: packets written with DataView, one message with two packets, one packet in two messages.
import { WebSocket } from 'k6/websockets';
import { check } from 'k6';
const URL = __ENV.SOCKETS.replace('http', 'ws') + '/mqtt';
export const options = { vus: 2, iterations: 4, thresholds: { ws_msgs_received: ['count==28'] } };
const text = (s) => [0, s.length, ...Array.from(s, (c) => c.charCodeAt(0))];
const packet = (type, body) => new Uint8Array([type, body.length, ...body]);
const publish = (topic, body, id) => packet(id ? 0x32 : 0x30, [...text(topic), ...(id ? [0, id] : []), ...Array.from(body, (c) => c.charCodeAt(0))]);
const joined = (...all) => { const out = new Uint8Array(all.reduce((n, p) => n + p.length, 0)); let at = 0; for (const p of all) { out.set(p, at); at += p.length; } return out; };
export default function () {
  const socket = new WebSocket(URL, 'mqtt');
  socket.binaryType = 'arraybuffer';
  const log = [];
  socket.onopen = () => {
    check(socket, { 'subprotocol mqtt': (s) => s.protocol === 'mqtt', 'binary type': (s) => s.binaryType === 'arraybuffer' });
    socket.send(packet(0x10, [...text('MQTT'), 4, 2, 0, 60, ...text(`vu${__VU}`)]).buffer);
  };
  socket.onmessage = ({ data }) => {
    const view = new DataView(data), type = view.getUint8(0) >> 4;
    log.push(type);
    if (type === 2) socket.send(packet(0x82, [0, 1, ...text('t/a'), 0]));
    if (type === 9) {
      socket.send(joined(publish('t/a', 'zero'), publish('t/a', 'one', 7)));
      const cut = publish('t/b', 'nobody', 8);
      socket.send(cut.slice(0, 3));
      socket.send(cut.subarray(3));
    }
    if (type === 3) check(String.fromCharCode(...new Uint8Array(data, 4 + view.getUint8(3))), { payload: (body) => body === 'zero' || body === 'one' });
    if (type === 4 && view.getUint16(2) === 8) { socket.send(new Uint8Array([0xc0, 0])); }
    if (type === 13) { socket.send(new Uint8Array([0xe0, 0]).buffer); }
  };
  socket.onclose = (e) => { log.push(e.code); check(log.join(), { packets: (all) => all === '2,9,3,4,3,4,13,1000' }); };
}
