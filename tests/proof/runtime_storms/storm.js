// SPDX-License-Identifier: Apache-2.0
// V8 in uproar: workers that come and go, a small heap, functions that are made and thrown away, WebAssembly, exceptions,
// native calls in the pool of threads. Its own sums say at the end whether all of it went right.
'use strict';
const { Worker, isMainThread, parentPort, workerData } = require('worker_threads');
const crypto = require('crypto');
const zlib = require('zlib');

// (func (export "sum") (param i32) (result i32)): the numbers below its argument, in a loop
const WASM = new Uint8Array([
  0, 97, 115, 109, 1, 0, 0, 0, 1, 6, 1, 96, 1, 127, 1, 127, 3, 2, 1, 0, 7, 7, 1, 3, 115, 117, 109, 0, 0, 10, 37, 1, 35, 1, 2, 127,
  2, 64, 3, 64, 32, 1, 32, 0, 78, 13, 1, 32, 2, 32, 1, 106, 33, 2, 32, 1, 65, 1, 106, 33, 1, 12, 0, 11, 11, 32, 2, 11]);

function check(holds, what) {
  if (!holds)
    throw new Error(`went wrong: ${what}`);
}

function work(seed) {
  let sum = seed | 0;
  for (let i = 0; i < 2000; i++)
    sum = (Math.imul(sum, 31) + i) | 0;
  return sum;
}

function made(round) {
  const add = round % 1000;
  const twice = new Function('n', `let s = 0; for (let i = 0; i < n; i++) s += i + ${add}; return s;`);
  for (let i = 0; i < 300; i++)
    check(twice(100) === 4950 + 100 * add, 'a function that was made');
}

function garbage() {
  const lists = new Map();
  for (let i = 0; i < 3000; i++) {
    const key = `key${i % 97}`;
    lists.set(key, [...(lists.get(key) || []), i]);
  }
  let sum = 0;
  for (const list of lists.values())
    sum += list.reduce((a, b) => a + b, 0);
  check(sum === 3000 * 2999 / 2, 'garbage');
}

function deep(depth) {
  if (depth === 0)
    throw new RangeError('thrown');
  return deep(depth - 1) + 1;
}

function exceptions(round) {
  let caught = false;
  try {
    deep(20 + round % 200);
  } catch (error) {
    caught = error.stack.includes('deep');
  }
  check(caught, 'an exception');
}

const wasm = new WebAssembly.Module(WASM);

function uproar(round) {
  made(round);
  garbage();
  exceptions(round);
  check(new WebAssembly.Instance(wasm).exports.sum(1000) === 499500, 'WebAssembly');
  return work(round);
}

async function natives() {
  const text = Buffer.from('abcdefgh'.repeat(2000));
  const back = await new Promise((resolve, reject) =>
    zlib.gzip(text, (error, packed) => error ? reject(error) : zlib.gunzip(packed, (wrong, all) => wrong ? reject(wrong) : resolve(all))));
  check(back.equals(text), 'a native call');
  const key = await new Promise((resolve, reject) =>
    crypto.pbkdf2('password', 'salt', 50, 32, 'sha256', (error, made) => error ? reject(error) : resolve(made)));
  check(key.length === 32, 'another');
}

function worker(round) {
  return new Promise((resolve, reject) => {
    const one = new Worker(__filename, { workerData: round, resourceLimits: { maxOldGenerationSizeMb: 32 } });
    one.once('error', reject);
    one.once('message', (sum) => {
      check(sum === work(round), 'a worker');
      one.terminate().then(resolve, reject);
    });
  });
}

async function main() {
  const end = Date.now() + Number(process.argv[2]) * 1000;
  for (let round = 0; Date.now() < end; round++) {
    uproar(round);
    await natives();
    if (round % 5 === 0)
      await Promise.all([worker(round), worker(round + 1)]);
  }
  console.log('all sums hold');
}

if (isMainThread) {
  main().catch((error) => {
    console.error(error);
    process.exit(1);
  });
} else {
  let sum = 0;
  for (let i = 0; i < 3; i++)
    sum = uproar(workerData);
  parentPort.postMessage(sum);
}
