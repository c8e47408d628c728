// What the things are called that a load makes. Requests, handshakes and idle connections are never added up, so each figure names its own.

import type { LoadKind } from './data';

export interface Words { title: string; one: string; many: string; ok: string; latency: string }

export const WORDS: Record<LoadKind, Words> = {
  requests: { title: 'Requests', one: 'request', many: 'requests', ok: 'succeeded', latency: 'latency' },
  handshakes: { title: 'Handshakes', one: 'handshake', many: 'handshakes', ok: 'completed', latency: 'time' },
  streams: { title: 'Streams', one: 'stream', many: 'streams', ok: 'complete', latency: 'time to the end' },
  websockets: { title: 'WebSockets', one: 'connection', many: 'connections', ok: 'opened', latency: 'time to open' },
  idle_connections: { title: 'Idle connections', one: 'connection', many: 'connections', ok: 'opened', latency: 'time to open' },
};

export const wordsOf = (kind: LoadKind | null | undefined): Words => WORDS[kind ?? 'requests'];

/** What comes on the connections or streams of such loads, whose latency is another figure than that of opening them. */
export const cameOf = (kind: LoadKind | null | undefined): string => (kind === 'streams' ? 'events' : kind === 'websockets' ? 'messages' : 'messages, events');

export const capital = (text: string) => text.charAt(0).toUpperCase() + text.slice(1);
