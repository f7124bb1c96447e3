// SPDX-License-Identifier: Apache-2.0
// Workers of node: waiting, in compiled code, with timers, in a regular expression, in native code.
const { Worker } = require('worker_threads');
const bodies = [
  'Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)',
  'setInterval(() => {}, 1000000)',
  'let x = 0; const f = n => n ? f(n - 1) + 1 : x; for (;;) x = f(50) & 1',
  '/^(a+)+$/.test("a".repeat(64) + "b")',
  'require("crypto").pbkdf2Sync("a", "b", 2000000000, 64, "sha512")',
  '[3, 1, 2].sort(() => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0))',
];
for (const body of bodies)
  new Worker(body, { eval: true });
setTimeout(() => console.log('ready'), 1500);
setInterval(() => {}, 1000000);
