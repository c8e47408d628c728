// 4: readable streams, with default readers and default controllers.
(function (common, module) {
  'use strict';
  const { Deferred, Queue, strategyOf, methodsOf, released } = common;

  // The slots of a stream and of its controller.
  class Core {
    constructor(source, { mark, sizeOf }) {
      Object.assign(this, { source, mark, sizeOf, state: 'readable', error: undefined, queue: new Queue() });
      // Who reads: the promise `closed`, and the reads that wait for chunks.
      this.lock = undefined;
      this.isStarted = this.isClosing = this.isPulling = this.pullsAgain = false;
    }
    // 4.9.4, SetUpReadableStreamDefaultController; what `start` throws, the constructor throws.
    start() {
      this.controller = controllerOf(this);
      Promise.resolve(this.source.start(this.controller)).then(
        () => { this.isStarted = true; this.pullIfNeeded(); },
        (error) => this.fail(error),
      );
    }
    canTake() { return this.state === 'readable' && !this.isClosing; }
    isAwaited() { return this.lock !== undefined && this.lock.reads.length > 0; }
    desiredSize() {
      if (this.state === 'errored') return null;
      return this.state === 'closed' ? 0 : this.mark - this.queue.size;
    }
    // 4.9.4, CallPullIfNeeded
    pullIfNeeded() {
      if (!this.canTake() || !this.isStarted || !(this.isAwaited() || this.desiredSize() > 0)) return;
      if (this.isPulling) { this.pullsAgain = true; return; }
      this.isPulling = true;
      this.source.pull(this.controller).then(() => {
        this.isPulling = false;
        if (this.pullsAgain) { this.pullsAgain = false; this.pullIfNeeded(); }
      }, (error) => this.fail(error));
    }
    // 4.9.4, Enqueue
    enqueue(chunk) {
      if (this.isAwaited()) {
        this.lock.reads.shift().resolve({ value: chunk, done: false });
      } else {
        try {
          const { sizeOf } = this;
          this.queue.put(chunk, +sizeOf(chunk));
        } catch (error) {
          this.fail(error);
          throw error;
        }
      }
      this.pullIfNeeded();
    }
    // 4.9.4, Close: what is queued can still be read.
    close() {
      this.isClosing = true;
      if (this.queue.isEmpty()) this.finish();
    }
    // 4.9.2, ReadableStreamClose
    finish() {
      this.state = 'closed';
      if (this.lock === undefined) return;
      this.lock.closed.resolve();
      for (const read of this.lock.reads.splice(0)) read.resolve({ value: undefined, done: true });
    }
    // 4.9.4, Error
    fail(error) {
      if (this.state !== 'readable') return;
      this.queue.clear();
      Object.assign(this, { state: 'errored', error });
      if (this.lock === undefined) return;
      this.lock.closed.reject(error).quietly();
      for (const read of this.lock.reads.splice(0)) read.reject(error);
    }
    // 4.9.2, ReadableStreamCancel
    cancel(reason) {
      if (this.state === 'closed') return Promise.resolve();
      if (this.state === 'errored') return Promise.reject(this.error);
      this.finish();
      this.queue.clear();
      return this.source.cancel(reason).then(() => {});
    }
    // 4.6.4, PullSteps
    read() {
      const read = new Deferred();
      if (this.state === 'closed') {
        read.resolve({ value: undefined, done: true });
      } else if (this.state === 'errored') {
        read.reject(this.error);
      } else if (this.queue.isEmpty()) {
        this.lock.reads.push(read);
        this.pullIfNeeded();
      } else {
        const value = this.queue.take();
        if (this.isClosing && this.queue.isEmpty()) this.finish(); else this.pullIfNeeded();
        read.resolve({ value, done: false });
      }
      return read.promise;
    }
    // 4.9.3, ReadableStreamReaderGenericInitialize
    acquire() {
      if (this.lock !== undefined) throw new TypeError('stream is locked');
      this.lock = { closed: new Deferred(), reads: [] };
      if (this.state === 'closed') this.lock.closed.resolve();
      if (this.state === 'errored') this.lock.closed.reject(this.error).quietly();
      return this.lock;
    }
    // 4.9.3, ReadableStreamDefaultReaderRelease: the reader sees nothing of the stream from now on.
    release(lock) {
      const error = new TypeError('reader released');
      if (!lock.closed.isPending) lock.closed = new Deferred();
      lock.closed.reject(error).quietly();
      this.lock = undefined;
      for (const read of lock.reads.splice(0)) read.reject(error);
    }
  }

  // 4.6: what the functions of a source are given.
  const controllerOf = (core) => ({
    get desiredSize() { return core.desiredSize(); },
    close() { mustTake(core); core.close(); },
    enqueue(chunk) { mustTake(core); core.enqueue(chunk); },
    error(error) { core.fail(error); },
  });
  const mustTake = (core) => { if (!core.canTake()) throw new TypeError('cannot close or enqueue'); };

  const unsupported = (what) => Object.assign(new Error(`${what} is not supported yet`), { name: 'NotSupportedError' });

  let coreOf;
  // 4.2
  class ReadableStream {
    #core;
    static { coreOf = (stream) => stream.#core; }
    constructor(underlyingSource, strategy) {
      const source = methodsOf(underlyingSource, 'underlyingSource', ['start', 'pull', 'cancel']);
      const type = underlyingSource?.type;
      if (type !== undefined) throw String(type) === 'bytes' ? unsupported("'bytes' stream") : new TypeError('invalid underlying source type');
      this.#core = new Core(source, strategyOf(strategy));
      this.#core.start();
    }
    get locked() { return this.#core.lock !== undefined; }
    cancel(reason) {
      return this.locked ? Promise.reject(new TypeError('cannot cancel a locked stream')) : this.#core.cancel(reason);
    }
    getReader(options) {
      const mode = options?.mode;
      if (mode === undefined) return new ReadableStreamDefaultReader(this);
      throw String(mode) === 'byob' ? unsupported("'byob' mode") : new TypeError("options.mode is not 'byob'");
    }
    tee() { throw unsupported("'tee()'"); }
  }

  // 4.4
  class ReadableStreamDefaultReader {
    // None: it was released.
    #core;
    #lock;
    constructor(stream) {
      if (!(stream instanceof ReadableStream)) throw new TypeError('ReadableStreamDefaultReader argument must be a ReadableStream');
      this.#core = coreOf(stream);
      this.#lock = this.#core.acquire();
    }
    get closed() { return this.#lock.closed.promise; }
    read() { return this.#core?.read() ?? released(); }
    cancel(reason) { return this.#core?.cancel(reason) ?? released(); }
    releaseLock() {
      this.#core?.release(this.#lock);
      this.#core = undefined;
    }
  }

  Object.assign(module, { ReadableStream, ReadableStreamDefaultReader });
})
