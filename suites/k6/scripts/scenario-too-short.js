// A scenario below a second.
export const options = { scenarios: { s: { executor: 'per-vu-iterations', maxDuration: '500ms' } } };
export default function () {}
