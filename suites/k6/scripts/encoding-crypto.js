// Base64 and hashes.
import http from 'k6/http';
import { check, group, sleep, fail } from 'k6';
const BASE = __ENV.BASE;
import encoding from 'k6/encoding';
import crypto from 'k6/crypto';
export default function () {
  check(0, { b64: () => encoding.b64encode('hello') === 'aGVsbG8=' && encoding.b64decode('aGVsbG8=', 'std', 's') === 'hello', sha: () => crypto.sha256('a', 'hex') === 'ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb', hmac: () => crypto.hmac('md5', 'k', 'd', 'hex').length === 32, random: () => crypto.randomBytes(8).byteLength === 8 });
}
