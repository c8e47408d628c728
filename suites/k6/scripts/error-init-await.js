// What the init code waits for is rejected.
await Promise.reject(new Error('init'));
export default function () {}
