// `k6/x/sse`: an event stream whose events are handled while `open` waits for its end.
(function (native) {
  'use strict';
  // What Go gives a script for an error.
  const errorOf = (text) => ({ error: () => text, toString: () => text });

  const argumentsOf = (args) => {
    if (args.length !== 1 && args.length !== 2) throw new Error('invalid number of arguments to sse.open');
    const setup = args[args.length - 1];
    if (typeof setup !== 'function') throw new Error('last argument to sse.open must be a function');
    return [args.length === 2 ? args[0] : undefined, setup];
  };

  const open = (url, ...args) => {
    const [params, setup] = argumentsOf(args);
    const id = native.open(String(url), params);
    let first;
    while ((first = native.take(id)) === undefined) native.wait();
    const [type, { status, headers }, failure] = first;
    if (type === 'refused') {
      native.finish(id);
      if (native.throws()) throw new Error(failure);
      return { url: '', status: 0, headers: {}, error: failure };
    }

    const handlers = {}, decoder = native.decoder();
    let isOver = false;
    const emit = (event, ...values) => { for (const handler of [...(handlers[event] ?? [])]) handler(...values); };
    const client = {
      on(event, handler) { if (typeof handler === 'function') (handlers[event] ??= []).push(handler); },
      close() { isOver = true; },
    };
    const handleData = (bytes) => {
      for (const { error, ...event } of decoder.push(bytes)) {
        if (isOver) return;
        if (error !== undefined) {
          emit('error', errorOf(error));
        } else {
          native.count(id);
          emit('event', event);
        }
      }
    };
    const handle = ([kind, value, , error]) => {
      if (kind === 'data') handleData(value);
      if (kind !== 'closed') return;
      isOver = true;
      if (value === undefined) emit('error', errorOf(error));
    };
    try {
      setup(client);
      emit('open');
      while (!isOver) {
        const event = native.take(id);
        if (event === undefined) native.wait();
        else handle(event);
      }
    } finally {
      native.finish(id);
    }
    return { url: String(url), status, headers, error: '' };
  };
  return { open };
})
