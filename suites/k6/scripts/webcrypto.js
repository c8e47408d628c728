// crypto.subtle: every algorithm, every format, and the names of errors.
import { check } from 'k6';
import encoding from 'k6/encoding';
const subtle = crypto.subtle;
const bytes = (text) => new Uint8Array([...text].map((letter) => letter.charCodeAt(0)));
const b64 = (buffer) => encoding.b64encode(buffer, 'rawurl');
const named = (promise) => promise.then(() => 'fulfilled', (error) => error.name);
const RSA = { modulusLength: 2048, publicExponent: new Uint8Array([1, 0, 1]), hash: { name: 'SHA-256' } };

async function digests() {
  check(b64(await subtle.digest('SHA-1', bytes('abc'))), { 'sha-1': (text) => text === 'qZk-NkcGgWq6PiVxeFDCbJzQ2J0' });
  check(b64(await subtle.digest({ name: 'sha-256' }, bytes('abc').buffer)), { 'sha-256': (text) => text === 'ungWv48Bz-pBQUDeXa4iI7ADYaOWF3qctBD_YfIAFa0' });
}

async function secrets() {
  const hmac = await subtle.importKey('jwk', { kty: 'oct', k: b64(bytes('Jefe')) }, { name: 'HMAC', hash: 'SHA-256' }, true, ['sign', 'verify']);
  const signature = await subtle.sign('HMAC', hmac, bytes('what do ya want for nothing?'));
  check(b64(signature), { 'hmac': (text) => text === 'W9zBRr9gdU5qBCQmCJV1x1oAPwidJzmDnexYuWTsOEM' });
  check(await subtle.verify({ name: 'HMAC' }, hmac, signature, bytes('nothing')), { 'hmac of other data': (ok) => ok === false });
  check(await subtle.exportKey('jwk', hmac), { 'hmac jwk': (key) => key.alg === 'HS256' && key.kty === 'oct' && key.ext && key.key_ops.length === 2 });
  const key = await subtle.importKey('raw', bytes('0123456789abcdef'), 'AES-CBC', false, ['encrypt', 'decrypt']);
  const cbc = { name: 'AES-CBC', iv: bytes('0123456789abcdef') };
  check(b64(await subtle.encrypt(cbc, key, bytes('hello'))), { 'aes-cbc': (text) => text === 'MOfLtxzZ0YgS4-5cPylFYw' });
  const ctr = { name: 'AES-CTR', counter: bytes('0123456789abcdef'), length: 64 };
  const counting = await subtle.importKey('raw', bytes('0123456789abcdef'), { name: 'AES-CTR' }, true, ['encrypt']);
  check(b64(await subtle.encrypt(ctr, counting, bytes('hello'))), { 'aes-ctr': (text) => text === 'GhcS5HE' });
  const gcm = { name: 'AES-GCM', iv: bytes('0123456789ab'), additionalData: bytes('more'), tagLength: 104 };
  const sealing = await subtle.importKey('raw', bytes('0123456789abcdef'), 'aes-gcm', true, ['encrypt', 'decrypt']);
  const sealed = await subtle.encrypt(gcm, sealing, bytes('hello'));
  check(b64(sealed), { 'aes-gcm': (text) => text === 'Cidhl0EM9qKA0mr35HBuZE_J' });
  check(b64(await subtle.decrypt(gcm, sealing, sealed)), { 'aes-gcm back': (text) => text === b64(bytes('hello')) });
  check(sealing, { 'aes key': ({ type, extractable, algorithm, usages }) => type === 'secret' && extractable && algorithm.name === 'AES-GCM' && algorithm.length === 128 && usages.join() === 'encrypt,decrypt' });
}

async function passwords() {
  const how = { name: 'PBKDF2', hash: { name: 'SHA-1' }, salt: bytes('salt'), iterations: 4096 };
  const base = await subtle.importKey('raw', bytes('password'), 'PBKDF2', false, ['deriveBits', 'deriveKey']);
  check(b64(await subtle.deriveBits(how, base, 160)), { 'pbkdf2 bits': (text) => text === 'SwB5AbdlSJq-rUnZJvch0GWkKcE' });
  const key = await subtle.deriveKey(how, base, { name: 'AES-GCM', length: 128 }, true, ['encrypt']);
  check(b64(await subtle.exportKey('raw', key)), { 'pbkdf2 key': (text) => text === 'SwB5AbdlSJq-rUnZJvch0A' });
}

async function curves(namedCurve) {
  const signers = await subtle.generateKey({ name: 'ECDSA', namedCurve }, true, ['sign', 'verify']);
  const how = { name: 'ECDSA', hash: 'SHA-512' };
  const signature = await subtle.sign(how, signers.privateKey, bytes('a'));
  for (const format of ['raw', 'spki', 'jwk']) {
    const key = await subtle.importKey(format, await subtle.exportKey(format, signers.publicKey), { name: 'ECDSA', namedCurve }, true, ['verify']);
    check(await subtle.verify(how, key, signature, bytes('a')), { [`ecdsa ${namedCurve} ${format}`]: (ok) => ok });
  }
  const [one, other] = [await agreers(namedCurve), await agreers(namedCurve)];
  for (const format of ['pkcs8', 'jwk']) {
    const key = await subtle.importKey(format, await subtle.exportKey(format, one.privateKey), { name: 'ECDH', namedCurve }, true, ['deriveBits']);
    const [here, there] = [await agreed(key, other.publicKey), await agreed(other.privateKey, one.publicKey)];
    check(0, { [`ecdh ${namedCurve} ${format}`]: () => here === there });
  }
}

const agreers = (namedCurve) => subtle.generateKey({ name: 'ECDH', namedCurve }, true, ['deriveBits', 'deriveKey']);
const agreed = async (own, other) => b64(await subtle.deriveBits({ name: 'ECDH', public: other }, own, 256));

async function rsa() {
  for (const name of ['RSASSA-PKCS1-v1_5', 'RSA-PSS']) {
    const pair = await subtle.generateKey({ name, ...RSA }, true, ['sign', 'verify']);
    const signer = await subtle.importKey('pkcs8', await subtle.exportKey('pkcs8', pair.privateKey), { name, ...RSA }, true, ['sign']);
    const verifier = await subtle.importKey('spki', await subtle.exportKey('spki', pair.publicKey), { name, ...RSA }, true, ['verify']);
    const signature = await subtle.sign({ name, saltLength: 20 }, signer, bytes('a'));
    check(await subtle.verify({ name, saltLength: 20 }, verifier, signature, bytes('a')), { [name]: (ok) => ok });
    check(pair.publicKey, { [`${name} key`]: (key) => key.type === 'public' && key.algorithm.modulusLength === 2048 && key.algorithm.hash.name === 'SHA-256' && key.usages.join() === 'verify' });
  }
  const pair = await subtle.generateKey({ name: 'RSA-OAEP', ...RSA }, true, ['encrypt', 'decrypt']);
  const jwk = await subtle.exportKey('jwk', pair.privateKey);
  const opener = await subtle.importKey('jwk', jwk, { name: 'RSA-OAEP', ...RSA }, true, ['decrypt']);
  const sealed = await subtle.encrypt({ name: 'RSA-OAEP', label: bytes('label') }, pair.publicKey, bytes('hello'));
  check(b64(await subtle.decrypt({ name: 'RSA-OAEP', label: bytes('label') }, opener, sealed)), { 'RSA-OAEP': (text) => text === b64(bytes('hello')) });
  check(await named(subtle.decrypt({ name: 'RSA-OAEP' }, opener, sealed)), { 'RSA-OAEP without its label': (name) => name === 'OperationError' });
}

async function errors() {
  const aes = await subtle.generateKey({ name: 'AES-CBC', length: 128 }, false, ['encrypt']);
  const pair = await agreers('P-256');
  const tries = {
    'NotSupportedError': [() => subtle.digest('MD5', bytes('a')), () => subtle.generateKey('PBKDF2', true, []), () => subtle.importKey('spki', bytes('a'), 'AES-CBC', true, ['encrypt']),
      () => subtle.generateKey({ name: 'ECDSA', namedCurve: 'P-1' }, true, ['sign']), () => subtle.sign({ name: 'AES-CBC' }, aes, bytes('a'))],
    'SyntaxError': [() => subtle.generateKey({ name: 'AES-CBC' }, true, ['encrypt']), () => subtle.generateKey({ name: 'AES-CBC', length: 128 }, true, []),
      () => subtle.generateKey({ name: 'AES-CBC', length: 128 }, true, ['sign']), () => subtle.generateKey('HMAC', true, ['sign']), () => subtle.importKey('raw', bytes('a'), 'PBKDF2', true, ['deriveBits'])],
    'OperationError': [() => subtle.generateKey({ name: 'AES-CBC', length: 100 }, true, ['encrypt']), () => subtle.encrypt({ name: 'AES-CBC', iv: bytes('a') }, aes, bytes('a')),
      () => subtle.deriveBits({ name: 'ECDH', public: pair.publicKey }, pair.privateKey, 264), () => subtle.deriveBits({ name: 'ECDH', public: pair.publicKey }, pair.privateKey, 7),
      () => subtle.generateKey({ name: 'RSA-PSS', ...RSA, publicExponent: new Uint8Array([2]) }, true, ['sign'])],
    'InvalidAccessError': [() => subtle.exportKey('raw', aes), () => subtle.exportKey('raw', pair.privateKey), () => subtle.decrypt({ name: 'AES-CBC', iv: bytes('0123456789abcdef') }, aes, bytes('0123456789abcdef')),
      () => subtle.encrypt({ name: 'AES-GCM', iv: bytes('0123456789ab') }, aes, bytes('a')), () => subtle.encrypt({ name: 'AES-CBC', iv: bytes('a') }, 5, bytes('a')),
      () => subtle.deriveBits({ name: 'ECDH', public: pair.privateKey }, pair.privateKey, 8), () => subtle.deriveBits({ name: 'ECDH', public: pair.publicKey }, pair.publicKey, 8)],
    'DataError': [() => subtle.importKey('raw', bytes('a'), 'AES-CBC', true, ['encrypt']), () => subtle.importKey('jwk', { kty: 'EC' }, 'AES-CBC', true, ['encrypt']),
      () => subtle.importKey('spki', bytes('a'), { name: 'ECDSA', namedCurve: 'P-256' }, true, ['verify']), () => subtle.importKey('pkcs8', bytes('a'), { name: 'RSA-PSS', ...RSA }, true, ['sign'])],
    'ImplementationError': [() => subtle.importKey('hex', bytes('a'), 'AES-CBC', true, ['encrypt']), () => subtle.exportKey('raw', {})],
    'TypeError': [() => subtle.deriveBits({ name: 'ECDH' }, pair.privateKey, 8), () => subtle.sign('HMAC', {}, bytes('a'))],
  };
  for (const [name, calls] of Object.entries(tries)) {
    for (const [idx, call] of calls.entries()) check(await named(call()), { [`${name} ${idx}`]: (thrown) => thrown === name });
  }
}

export default async function () {
  await digests();
  await secrets();
  await passwords();
  for (const curve of ['P-256', 'P-384', 'P-521']) await curves(curve);
  await rsa();
  await errors();
}
