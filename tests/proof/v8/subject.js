// SPDX-License-Identifier: Apache-2.0
// Calls that are known: each line that calls says who calls whom, "// CALLER -> NAME, NAME".
// usage: node subject.js SECONDS [told]: with "told" each chain's own account is printed once, by Error().stack
'use strict';
const seconds = Number(process.argv[2] || 5);
const told = process.argv[3] === 'told';
const until = Date.now() + seconds * 1000;
let kept = 0;
let rubbish = [];

function burn(turns) {
  for (let i = 0; i < turns; i++) kept = (kept * 31 + i) | 0;
  return kept;
}
function litter(turns) {
  for (let i = 0; i < turns; i++) {
    rubbish.push({ text: 'x' + i, list: [i, kept] });
    if (rubbish.length > 2000) rubbish = [];
  }
  return burn(turns); // litter -> burn
}
function leaf(n) {
  if (told && n === 3) say();
  if (n % 2) return litter(300); // leaf -> litter
  return burn(4000); // leaf -> burn
}
function recurse(depth, n) {
  if (depth === 0) return leaf(n); // recurse -> leaf
  return 1 + recurse(depth - 1, n); // recurse -> recurse
}
class Shape {
  constructor(n) {
    this.size = recurse(2, n); // Shape -> recurse
  }
  area(n) {
    return recurse(6, n) + this.width(n); // area -> recurse, width
  }
  width(n) {
    return leaf(n); // width -> leaf
  }
  get height() {
    return leaf(2); // height -> leaf
  }
  static make(n) {
    return new Shape(n); // make -> Shape
  }
}
const closure = ((hidden) => {
  const inner = (n) => recurse(hidden, n); // inner -> recurse
  return function outer(n) {
    return inner(n) + 1; // outer -> inner
  };
})(3);
function* numbers(n) {
  yield leaf(n); // numbers -> leaf
  yield recurse(1, n); // numbers -> recurse
}
const compare = (a, b) => {
  leaf(a); // compare -> leaf
  return b - a;
};
function each(n) {
  [n].forEach(function visit(item) { // each -> visit
    closure(item); // visit -> outer
  });
  [n, n + 1].sort(compare); // each -> compare
  for (const item of numbers(n)) kept += item; // each -> numbers
  JSON.stringify({ toJSON: function convert() { return leaf(n); } }); // each -> convert; convert -> leaf
  'x'.replace(/x/, function replacer() { return String(leaf(n)); }); // each -> replacer; replacer -> leaf
  return Reflect.apply(recurse, null, [1, n]); // each -> recurse
}
function once(n) {
  const shape = Shape.make(n); // once -> make
  shape.area(n); // once -> area
  kept += shape.height; // once -> height
  each(n); // once -> each
}
function main() {
  for (let n = 0; Date.now() < until; n = (n + 1) % 6) once(n); // main -> once
}
const accounts = new Set();
function say() {
  Error.stackTraceLimit = 50;
  accounts.add(new Error('told').stack);
}
process.stdout.write('ready\n');
main(); // (anonymous:1) -> main
for (const account of accounts) console.log(account);
