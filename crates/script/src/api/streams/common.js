// What readable and writable streams share. Numbers in comments are sections of the Streams Standard.
(function () {
  'use strict';
  // A promise that is settled from outside.
  class Deferred {
    constructor() {
      this.isPending = true;
      this.promise = new Promise((resolve, reject) => { this.accept = resolve; this.refuse = reject; });
    }
    resolve(value) { this.isPending = false; this.accept(value); return this; }
    reject(error) { this.isPending = false; this.refuse(error); return this; }
    // Nobody has to look at it.
    quietly() { this.promise.catch(() => {}); return this; }
  }

  // 8.1: values with their sizes.
  class Queue {
    constructor() { this.clear(); }
    clear() { this.values = []; this.sizes = []; this.size = 0; }
    isEmpty() { return this.values.length === 0; }
    first() { return this.values[0]; }
    put(value, size) {
      if (!(size >= 0 && size < Infinity)) throw new RangeError('size must be a finite, non-NaN number');
      this.values.push(value);
      this.sizes.push(size);
      this.size += size;
    }
    take() {
      // Sizes may be fractions, whose sums are rounded.
      this.size = Math.max(0, this.size - this.sizes.shift());
      return this.values.shift();
    }
  }

  const isObject = (value) => typeof value === 'object' && value !== null;

  // 7.3
  class CountQueuingStrategy {
    constructor(init) {
      const name = 'CountQueuingStrategy';
      if (arguments.length !== 1) throw new TypeError(`${name} takes a single argument`);
      if (!isObject(init)) throw new TypeError(`${name} argument must be an object`);
      const { highWaterMark } = init;
      if (highWaterMark == null) throw new TypeError(`${name} argument must have 'highWaterMark' property`);
      for (const [key, value] of [['highWaterMark', highWaterMark], ['size', one]]) {
        Object.defineProperty(this, key, { value, enumerable: true });
      }
    }
  }
  const one = () => 1;

  // 7.4: a strategy as its two parts; other than the standard, k6 takes a number alone for the mark.
  const strategyOf = (given) => {
    const { highWaterMark, size } = given ?? {};
    const mark = highWaterMark ?? 1, sizeOf = size ?? one;
    if (typeof sizeOf !== 'function') throw new TypeError('size must be a function');
    if (typeof mark !== 'number' || !(mark >= 0)) throw new RangeError('highWaterMark must be a non-negative number');
    return { mark, sizeOf };
  };

  // The functions of a source or a sink, called as its methods; all but `start` give a promise.
  const methodsOf = (owner, what, names) => {
    const methods = {};
    if (owner !== undefined && !isObject(owner)) throw new TypeError(`${what} must be an object`);
    for (const name of names) {
      const method = owner?.[name];
      if (method !== undefined && typeof method !== 'function') throw new TypeError(`${what}.[[${name}]] must be a function`);
      const call = (...args) => method === undefined ? undefined : Reflect.apply(method, owner, args);
      methods[name] = name === 'start' ? call : (...args) => {
        try { return Promise.resolve(call(...args)); } catch (error) { return Promise.reject(error); }
      };
    }
    return methods;
  };

  // What a reader or a writer gives that was released.
  const released = () => Promise.reject(new TypeError('stream is undefined'));

  return { Deferred, Queue, CountQueuingStrategy, strategyOf, methodsOf, released };
})
