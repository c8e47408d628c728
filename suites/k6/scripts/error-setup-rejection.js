// A rejection in setup that nobody handles.
export async function setup() { await new Promise((resolve) => setTimeout(resolve, 5)); throw new Error('setup'); }
export default function () {}
