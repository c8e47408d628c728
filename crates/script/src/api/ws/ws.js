// `k6/ws`: a WebSocket whose events are handled while `connect` waits for its end.
(function (native) {
  'use strict';
  const OPEN = 1, GOING_AWAY = 1001, NO_STATUS = 1005;

  // What Go gives a script for an error.
  const errorOf = (text) => ({ error: () => text, toString: () => text });

  // When functions are to be called, in milliseconds on the clock of `native.now`.
  class Timers {
    constructor() { this.list = []; }
    add(name, call, ms, repeats) {
      const every = Number(ms);
      if (!(every > 0)) throw new Error(`${name} requires a >0 timeout parameter, received ${(every || 0).toFixed(2)}`);
      this.list.push({ call, every, repeats, due: native.now() + every });
    }
    next() { return this.list.reduce((first, timer) => (first === undefined || timer.due < first.due ? timer : first), undefined); }
    // Calls the one that is due; false: none is.
    run() {
      const timer = this.next(), now = native.now();
      if (timer === undefined || timer.due > now) return false;
      // Of calls that were missed, one is made.
      if (timer.repeats) timer.due += timer.every * Math.max(1, Math.floor((now - timer.due) / timer.every));
      else this.list.splice(this.list.indexOf(timer), 1);
      const { call } = timer;
      call();
      return true;
    }
  }

  const argumentsOf = (args) => {
    if (args.length !== 1 && args.length !== 2) throw new Error('invalid number of arguments to ws.connect');
    const setup = args[args.length - 1];
    if (typeof setup !== 'function') throw new Error('last argument to ws.connect must be a function');
    return [args.length === 2 ? args[0] : undefined, setup];
  };

  const nameOf = (value) => (value == null ? String(value) : value.constructor.name);

  const connect = (url, ...args) => {
    const [params, setup] = argumentsOf(args);
    const id = native.connect(String(url), params);
    let first;
    while ((first = native.take(id)) === undefined) native.wait();
    const [type, { status, headers, body }, failure] = first;
    if (type === 'refused') {
      native.finish(id);
      if (native.throws()) throw new Error(failure);
      return { url: '', status, headers, body, error: status === 0 ? failure : '' };
    }

    const handlers = {}, timers = new Timers();
    let isOver = false;
    const emit = (event, ...values) => { for (const handler of [...(handlers[event] ?? [])]) handler(...values); };
    const shutDown = (code) => {
      if (isOver) return;
      isOver = true;
      native.close(id, code === NO_STATUS ? undefined : code, '');
      emit('close', code);
    };
    const isOpen = () => {
      if (native.state(id) === OPEN) return true;
      emit('error', errorOf('websocket: close sent'));
      return false;
    };
    // As in k6, what is not sent counts, too.
    const send = (message) => { isOpen(); native.send(id, message); };
    const socket = {
      on(event, handler) { if (typeof handler === 'function') (handlers[event] ??= []).push(handler); },
      send(message) { send(String(message)); },
      sendBinary(message) {
        if (arguments.length === 0) throw new Error('missing argument, expected ArrayBuffer');
        if (!(message instanceof ArrayBuffer)) throw new Error(`expected ArrayBuffer as argument, received: ${nameOf(message)}`);
        send(message);
      },
      ping() { if (isOpen()) native.ping(id); },
      setTimeout(call, ms) { timers.add('setTimeout', call, ms, false); },
      setInterval(call, ms) { timers.add('setInterval', call, ms, true); },
      close(code) { shutDown(code === undefined ? GOING_AWAY : Math.trunc(Number(code)) || 0); },
    };
    const handle = ([kind, value, , error]) => {
      switch (kind) {
        case 'text': return emit('message', value);
        case 'binary': return emit('binaryMessage', value);
        case 'closed':
          if (error !== undefined) emit('error', errorOf(error));
          return shutDown(value ?? GOING_AWAY);
        case undefined: return undefined;
        default: return emit(kind);
      }
    };
    try {
      setup(socket);
      emit('open');
      while (!isOver) {
        if (timers.run()) continue;
        const event = native.take(id);
        if (event === undefined) native.wait(timers.next()?.due);
        else handle(event);
      }
    } finally {
      shutDown(GOING_AWAY);
      native.finish(id);
    }
    return { url: String(url), status, headers, body, error: '' };
  };
  return { connect };
})
