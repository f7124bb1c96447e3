// SPDX-License-Identifier: Apache-2.0
// 31 optimized functions on the stack, which work: sort, call, allocate. Their walks are measured by node_walks.c. The one
// who runs this tells the compiler not to inline what is called.
'use strict';
const DEPTH = 30;
const texts = Array.from({length: 600}, (_, i) => `text ${i * 7919 % 601}`);
let kept;

function leaf(a, b) {
    return (a * 31 + (b ^ a >>> 7)) | 0;
}

function work() {
    let sum = 0;
    for (let round = 0; round < 4; round++) {
        const sorted = texts.slice().sort();
        for (let i = 0; i < 20000; i++)
            sum = sum + leaf(sum, i) | 0;
        const bytes = new Uint8Array(4000 + round);
        for (let i = 0; i < bytes.length; i++)
            sum = sum * 31 + bytes[i] | 0;
        kept = sorted;
    }
    return sum;
}

function descend(left) {
    return left === 0 ? work() : descend(left - 1) + 1;
}

process.env.WALKS_SECONDS = process.argv[3];
require(process.argv[2]);
for (;;)
    kept = descend(DEPTH);
