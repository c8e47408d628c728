// A rejection in the init code that nobody handles.
Promise.reject(new Error('init'));
export default function () {}
