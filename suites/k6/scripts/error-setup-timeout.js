// A setup() that never ends.
export const options = { setupTimeout: '1s' };

export function setup() {
  while (true);
}

export default function () {}
