// A teardown() that never ends.
export const options = { teardownTimeout: '1s' };

export function teardown() {
  while (true);
}

export default function () {}
