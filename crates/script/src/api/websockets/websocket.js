// `WebSocket` of `k6/websockets`, after the WebSockets Standard (https://websockets.spec.whatwg.org), as far as k6 has it.
(function (native) {
  'use strict';
  const CONNECTING = 0, OPEN = 1, CLOSING = 2, CLOSED = 3;
  const TYPES = ['open', 'message', 'error', 'close', 'ping', 'pong'];
  const REASON_BYTES_MAX = 123;
  const sockets = new Map();

  class Event {
    #at = native.now();
    #target;
    constructor(type, target, more) {
      this.type = type;
      this.#target = target;
      Object.assign(this, more);
    }
    get target() { return this.#target; }
    get timestamp() { return Date.now() - (native.now() - this.#at); }
  }

  class Blob {
    #bytes;
    #type;
    constructor(parts = [], options) {
      if (options !== undefined && (typeof options !== 'object' || options === null)) throw new Error('[options] must be an object');
      if (!Array.isArray(parts)) throw new Error('failed to process [blobParts]: it must be an array');
      this.#bytes = joined(parts.map(bytesOfPart));
      this.#type = options?.type === undefined ? '' : String(options.type);
    }
    get size() { return this.#bytes.length; }
    get type() { return this.#type; }
    async arrayBuffer() { return this.#bytes.slice().buffer; }
    async bytes() { return this.#bytes.slice(); }
    async text() { return new TextDecoder().decode(this.#bytes); }
    slice(begin, end, type = '') { return new Blob([this.#bytes.slice(begin, end)], { type }); }
    stream() {
      const { ReadableStream } = native.streams();
      return new ReadableStream({ start: (controller) => { controller.enqueue(this.#bytes.slice()); controller.close(); } });
    }
    toString() { return '[object Blob]'; }
    static bytesOf(blob) { return blob.#bytes; }
  }

  const bytesOfPart = (part) => {
    if (typeof part === 'string') return new TextEncoder().encode(part);
    if (part instanceof Blob) return Blob.bytesOf(part);
    if (part instanceof ArrayBuffer) return new Uint8Array(part);
    if (ArrayBuffer.isView(part)) return new Uint8Array(part.buffer, part.byteOffset, part.byteLength);
    throw new Error(`failed to process [blobParts]: unsupported type: ${typeof part}`);
  };

  const joined = (parts) => {
    const bytes = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
    let at = 0;
    for (const part of parts) { bytes.set(part, at); at += part.length; }
    return bytes;
  };

  const protocolsOf = (given) => {
    if (given == null) return [];
    return Array.isArray(given) ? given.map(String) : typeof given === 'string' ? [given] : [];
  };

  class WebSocket {
    #id;
    #url;
    #binaryType = 'blob';
    #protocol = '';
    #extensions = [];
    #closeCode;
    #handlers = {};
    #listeners = {};

    constructor(url, protocols, params) {
      this.#url = url == null ? url : String(url);
      this.#id = native.open(this.#url, protocolsOf(protocols), params);
      sockets.set(this.#id, this);
    }
    get url() { return this.#url; }
    get readyState() { return native.state(this.#id); }
    get bufferedAmount() { return native.unsent(this.#id); }
    get extensions() { return this.#extensions; }
    get protocol() { return this.#protocol; }
    get binaryType() { return this.#binaryType; }
    set binaryType(type) {
      if (type !== 'blob' && type !== 'arraybuffer') {
        throw new Error(`unknown binaryType ${type}, the supported ones are "blob" and "arraybuffer"`);
      }
      this.#binaryType = type;
    }

    addEventListener(type, listener) {
      if (typeof listener !== 'function') throw new Error(`handler for event type "${type}" isn't a callable function`);
      if (TYPES.includes(type)) (this.#listeners[type] ??= []).push(listener);
      else console.warn(`can't add event handler: unknown event type: ${type}`);
    }
    send(data) {
      this.#needOpen();
      if (typeof data === 'string' || data instanceof ArrayBuffer || ArrayBuffer.isView(data)) native.send(this.#id, data);
      else if (data instanceof Blob) native.send(this.#id, Blob.bytesOf(data));
      else throw new Error(`unsupported send type ${data === null ? 'null' : typeof data}`);
    }
    ping() {
      this.#needOpen();
      native.ping(this.#id);
    }
    close(given, reason = '') {
      if (this.readyState >= CLOSING) return;
      const code = Math.trunc(Number(given)) || 0;
      if (code !== 0 && code !== 1000 && !(code >= 3000 && code <= 4999)) {
        throw new Error(`InvalidAccessError: Failed to execute 'close' on 'WebSocket': The close code must be either 1000, or between 3000 and 4999. ${code} is neither`);
      }
      if (new TextEncoder().encode(String(reason)).length > REASON_BYTES_MAX) {
        throw new Error(`SyntaxError: Failed to execute 'close' on 'WebSocket': The message must not be greater than ${REASON_BYTES_MAX} bytes`);
      }
      this.#closeCode = code || 1000;
      native.close(this.#id, this.#closeCode, String(reason));
    }

    #needOpen() { if (this.readyState !== OPEN) throw new Error('InvalidStateError'); }
    #emit(type, more) {
      const event = new Event(type, this, more);
      const own = this.#handlers[type];
      for (const listener of [...(own ? [own] : []), ...(this.#listeners[type] ?? [])]) listener(event);
    }
    // What a listener throws ends the connection, and the iteration.
    #emitOrEnd(type, more) {
      try {
        this.#emit(type, more);
      } catch (error) {
        this.#end(String(error), this.#closeCode, '');
        throw error;
      }
    }
    #end(error, code, reason) {
      sockets.delete(this.#id);
      native.finish(this.#id);
      if (error !== undefined) this.#emit('error', { error });
      this.#emit('close', code === undefined ? { reason } : { code, reason });
    }
    #handle(type, value, reason, error) {
      switch (type) {
        case 'open':
          this.#protocol = value.protocol;
          this.#extensions = value.extensions;
          return this.#emitOrEnd('open');
        case 'refused':
          native.abandon(this.#id);
          return this.#end(reason, undefined, '');
        case 'text': return this.#emitOrEnd('message', { data: value, origin: this.#url });
        case 'binary': {
          const data = this.#binaryType === 'blob' ? new Blob([value]) : value;
          return this.#emitOrEnd('message', { data, origin: this.#url });
        }
        // A connection that breaks without a close frame is the end and no error to k6.
        case 'closed': return this.#end(value === undefined ? undefined : error, value ?? this.#closeCode, reason);
        default: return this.#emit(type);
      }
    }
    static {
      for (const type of TYPES) {
        Object.defineProperty(this.prototype, `on${type}`, {
          get() { return this.#handlers[type] ?? null; },
          set(handler) {
            if (handler != null && typeof handler !== 'function') throw new Error(`a value for 'on${type}' should be callable`);
            this.#handlers[type] = handler;
          },
          enumerable: true,
        });
      }
      for (const [name, value] of Object.entries({ CONNECTING, OPEN, CLOSING, CLOSED })) {
        Object.defineProperty(this, name, { value, enumerable: true });
        Object.defineProperty(this.prototype, name, { value, enumerable: true });
      }
      native.handle = (id, ...event) => sockets.get(id)?.#handle(...event);
    }
  }
  return { WebSocket, Blob, handle: native.handle };
})
