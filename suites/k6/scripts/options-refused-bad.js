// A range of addresses that is none.
export const options = { blacklistIPs: ['not a range'] };
export default function () {}
