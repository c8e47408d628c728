// CommonJS.
const http = require('k6/http'); const { check } = require('k6');
module.exports.options = { iterations: 2 };
module.exports.default = function () { check(http.get(__ENV.BASE + '/get'), { ok: (r) => r.status === 200 }); };
