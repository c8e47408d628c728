// A script without a function.
export const options = { vus: 2 };
