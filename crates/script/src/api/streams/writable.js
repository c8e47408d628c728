// 5: writable streams, with default writers and default controllers.
(function (common, module) {
  'use strict';
  const { Deferred, Queue, strategyOf, methodsOf, released } = common;

  // 5.4.2: stands in the queue for the end of the stream.
  const CLOSE = Symbol('close');

  // The slots of a stream and of its controller. `error` is that of the states `erroring` (what is in flight ends first) and `errored`.
  class Core {
    constructor(sink, { mark, sizeOf }) {
      Object.assign(this, { sink, mark, sizeOf, state: 'writable', error: undefined, queue: new Queue(), isStarted: false });
      // Who writes: the promises `ready` and `closed`.
      this.lock = undefined;
      // The writes whose chunks are queued; the one and the close that the sink has; the close and the abort that wait.
      this.writes = [];
      this.writeInFlight = this.closeInFlight = this.closing = this.aborting = undefined;
      this.isFull = this.desiredSize() <= 0;
    }
    // 5.5.4, SetUpWritableStreamDefaultController; what `start` throws, the constructor throws.
    start() {
      this.controller = { error: (error) => { if (this.state === 'writable') this.startErroring(error); } };
      Promise.resolve(this.sink.start(this.controller)).then(
        () => { this.isStarted = true; this.advance(); },
        (error) => { this.isStarted = true; this.onRejection(error); },
      );
    }
    desiredSize() {
      if (this.state === 'erroring' || this.state === 'errored') return null;
      return this.state === 'closed' ? 0 : this.mark - this.queue.size;
    }
    isClosing() { return this.closing !== undefined || this.closeInFlight !== undefined; }
    isBusy() { return this.writeInFlight !== undefined || this.closeInFlight !== undefined; }

    // 5.5.4, GetChunkSize
    sizeOfChunk(chunk) {
      // A stream that failed, or whose sink is closing, asks no more.
      if (this.state !== 'writable' || this.closeInFlight !== undefined) return 1;
      try {
        const { sizeOf } = this;
        return +sizeOf(chunk);
      } catch (error) {
        if (this.state === 'writable') this.startErroring(error);
        return 1;
      }
    }
    // 5.5.3, Write; the size is asked for before, because asking may change everything.
    write(chunk, size) {
      if (this.state === 'errored') return Promise.reject(this.error);
      if (this.isClosing() || this.state === 'closed') return Promise.reject(new TypeError('stream is closing or closed'));
      if (this.state === 'erroring') return Promise.reject(this.error);
      const write = new Deferred();
      this.writes.push(write);
      try {
        this.queue.put(chunk, size);
      } catch (error) {
        this.startErroring(error);
        return write.promise;
      }
      this.updateFullness();
      this.advance();
      return write.promise;
    }
    // 5.5.2, UpdateBackpressure: a writer waits at `ready` while the queue is full.
    updateFullness() {
      if (this.isClosing() || this.state !== 'writable') return;
      const isFull = this.desiredSize() <= 0;
      if (this.lock !== undefined && isFull !== this.isFull) {
        if (isFull) this.lock.ready = new Deferred(); else this.lock.ready.resolve();
      }
      this.isFull = isFull;
    }
    // 5.5.4, AdvanceQueueIfNeeded
    advance() {
      if (!this.isStarted || this.writeInFlight !== undefined) return;
      if (this.state === 'erroring') { this.finishErroring(); return; }
      if (this.queue.isEmpty()) return;
      if (this.queue.first() === CLOSE) this.giveClose(); else this.giveWrite(this.queue.first());
    }
    // 5.5.4, ProcessWrite
    giveWrite(chunk) {
      this.writeInFlight = this.writes.shift();
      const finish = () => { const write = this.writeInFlight; this.writeInFlight = undefined; return write; };
      this.sink.write(chunk, this.controller).then(() => {
        finish().resolve();
        this.queue.take();
        this.updateFullness();
        this.advance();
      }, (error) => {
        finish().reject(error);
        this.onRejection(error);
      });
    }
    // 5.5.4, ProcessClose
    giveClose() {
      this.closeInFlight = this.closing;
      this.closing = undefined;
      this.queue.take();
      const finish = () => { const close = this.closeInFlight; this.closeInFlight = undefined; return close; };
      this.sink.close().then(() => {
        finish().resolve();
        this.finishClose();
      }, (error) => {
        finish().reject(error);
        this.aborting?.promise.reject(error);
        this.aborting = undefined;
        this.onRejection(error);
      });
    }
    // 5.5.2, FinishInFlightClose: a close that succeeds undoes an error that came meanwhile.
    finishClose() {
      if (this.state === 'erroring') {
        this.error = undefined;
        this.aborting?.promise.resolve();
        this.aborting = undefined;
      }
      this.state = 'closed';
      this.lock?.closed.resolve();
    }
    // 5.5.2, DealWithRejection
    onRejection(error) {
      if (this.state === 'writable') this.startErroring(error); else this.finishErroring();
    }
    startErroring(error) {
      Object.assign(this, { state: 'erroring', error });
      if (this.lock !== undefined) this.lock.ready = rejected(this.lock.ready, error);
      if (!this.isBusy() && this.isStarted) this.finishErroring();
    }
    finishErroring() {
      this.state = 'errored';
      this.queue.clear();
      for (const write of this.writes.splice(0)) write.reject(this.error);
      const abort = this.aborting;
      this.aborting = undefined;
      if (abort === undefined || abort.cameLate) {
        abort?.promise.reject(this.error);
        this.rejectClosed();
        return;
      }
      this.sink.abort(abort.reason).then(
        () => { abort.promise.resolve(); this.rejectClosed(); },
        (error) => { abort.promise.reject(error); this.rejectClosed(); },
      );
    }
    rejectClosed() {
      this.closing?.reject(this.error);
      this.closing = undefined;
      this.lock?.closed.reject(this.error).quietly();
    }
    // 5.5.1, WritableStreamAbort
    abort(reason) {
      if (this.state === 'closed' || this.state === 'errored') return Promise.resolve();
      if (this.aborting === undefined) {
        const cameLate = this.state === 'erroring';
        this.aborting = { promise: new Deferred(), reason, cameLate };
        const { promise } = this.aborting.promise;
        if (!cameLate) this.startErroring(reason);
        return promise;
      }
      return this.aborting.promise.promise;
    }
    // 5.5.1, WritableStreamClose
    close() {
      if (this.isClosing()) return Promise.reject(new TypeError('stream is already closing'));
      if (this.state === 'closed' || this.state === 'errored') return Promise.reject(new TypeError('stream is already closed or errored'));
      const close = this.closing = new Deferred();
      if (this.isFull && this.state === 'writable') this.lock?.ready.resolve();
      this.queue.put(CLOSE, 0);
      this.advance();
      return close.promise;
    }
    // 5.5.1, SetUpWritableStreamDefaultWriter
    acquire() {
      if (this.lock !== undefined) throw new TypeError('stream is locked');
      const ready = new Deferred(), closed = new Deferred();
      if (this.state === 'erroring' || this.state === 'errored') ready.reject(this.error).quietly();
      else if (this.state === 'closed' || this.isClosing() || !this.isFull) ready.resolve();
      if (this.state === 'closed') closed.resolve();
      if (this.state === 'errored') closed.reject(this.error).quietly();
      return this.lock = { ready, closed };
    }
    // 5.5.3, Release: the writer sees nothing of the stream from now on.
    release(lock) {
      const error = new TypeError('writer released');
      lock.ready = rejected(lock.ready, error);
      lock.closed = rejected(lock.closed, error);
      this.lock = undefined;
    }
  }

  // The promise where it is pending, else a new one; rejected.
  const rejected = (deferred, error) => (deferred.isPending ? deferred : new Deferred()).reject(error).quietly();

  let coreOf;
  // 5.2
  class WritableStream {
    #core;
    static { coreOf = (stream) => stream.#core; }
    constructor(underlyingSink, strategy) {
      const sink = methodsOf(underlyingSink, 'underlyingSink', ['start', 'write', 'close', 'abort']);
      if (underlyingSink?.type !== undefined) throw new RangeError("'type' is not supported by WritableStream");
      this.#core = new Core(sink, strategyOf(strategy));
      this.#core.start();
    }
    get locked() { return this.#core.lock !== undefined; }
    abort(reason) {
      return this.locked ? Promise.reject(new TypeError('cannot abort a locked stream')) : this.#core.abort(reason);
    }
    close() { return this.locked ? Promise.reject(new TypeError('cannot close a locked stream')) : this.#core.close(); }
    getWriter() { return new WritableStreamDefaultWriter(this); }
  }

  // 5.3
  class WritableStreamDefaultWriter {
    // None: it was released.
    #core;
    #lock;
    constructor(stream) {
      if (!(stream instanceof WritableStream)) throw new TypeError('WritableStreamDefaultWriter argument must be a WritableStream');
      this.#core = coreOf(stream);
      this.#lock = this.#core.acquire();
    }
    get closed() { return this.#lock.closed.promise; }
    get ready() { return this.#lock.ready.promise; }
    get desiredSize() {
      if (this.#core === undefined) throw new TypeError('stream is undefined');
      return this.#core.desiredSize();
    }
    write(chunk) {
      const core = this.#core;
      if (core === undefined) return released();
      const size = core.sizeOfChunk(chunk);
      return this.#core === core ? core.write(chunk, size) : released();
    }
    close() { return this.#core?.close() ?? released(); }
    abort(reason) { return this.#core?.abort(reason) ?? released(); }
    releaseLock() {
      this.#core?.release(this.#lock);
      this.#core = undefined;
    }
  }

  Object.assign(module, { WritableStream, WritableStreamDefaultWriter });
})
