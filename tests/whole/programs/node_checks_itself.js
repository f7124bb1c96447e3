// SPDX-License-Identifier: Apache-2.0
// A program for node that checks what it computes: digests, packing, errors and their stacks, JSON, expressions, numbers,
// threads, timers, files, sockets. Ends with "all as it should be"; an assertion that fails ends it with status 1.
"use strict";
const assert = require("assert");
const crypto = require("crypto");
const fs = require("fs");
const net = require("net");
const os = require("os");
const path = require("path");
const zlib = require("zlib");
const { Worker, isMainThread, parentPort } = require("worker_threads");

function sumOf(rounds) {
    let sum = 0;
    for (let i = 0; i < rounds; i++) sum = (sum * 31 + i) % 1000003;
    return sum;
}

function deep(n) {
    return n ? deep(n - 1) : new Error("deep").stack.split("\n").length;
}

function checkPlain() {
    assert.strictEqual(crypto.createHash("sha256").update("abc").digest("hex"),
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    const key = crypto.scryptSync("password", "salt", 32), nonce = Buffer.alloc(12, 7);
    const seal = crypto.createCipheriv("aes-256-gcm", key, nonce);
    const sealed = Buffer.concat([seal.update("a secret"), seal.final()]);
    const open = crypto.createDecipheriv("aes-256-gcm", key, nonce).setAuthTag(seal.getAuthTag());
    assert.strictEqual(Buffer.concat([open.update(sealed), open.final()]).toString(), "a secret");
    const text = "abcdefgh".repeat(20000);
    for (const [pack, unpack] of [["gzipSync", "gunzipSync"], ["deflateSync", "inflateSync"], ["brotliCompressSync", "brotliDecompressSync"]])
        assert.strictEqual(zlib[unpack](zlib[pack](text)).toString(), text);
    for (let i = 0; i < 300; i++) assert.strictEqual(deep(12 + (i % 5)), 11);
    assert.throws(() => deep(1e7), RangeError);
    assert.throws(() => null.x, TypeError);
    const value = { a: [1, { b: "é" }], c: null, d: 1.5e300 };
    assert.deepStrictEqual(JSON.parse(JSON.stringify(value)), value);
    assert.deepStrictEqual([..."2024-05-06 x 1999-12-31".matchAll(/(\d+)-(\d+)-(\d+)/g)].map((found) => found[1]), ["2024", "1999"]);
    assert.strictEqual(2n ** 521n % 1000000007n, 213363750n);
    const sorted = Array.from({ length: 5000 }, (_, i) => (i * 7919) % 5003).sort((a, b) => a - b);
    assert.ok(sorted.every((x, i) => i === 0 || sorted[i - 1] < x));
    assert.strictEqual(new Map(sorted.map((x) => [x, x + 1])).get(sorted[77]), sorted[77] + 1);
    assert.strictEqual(new Function("x", "return x * 2")(21), 42);
}

async function checkWaiting() {
    const sums = await Promise.all([1, 2, 3].map((n) => new Promise((resolve, reject) => {
        const worker = new Worker(__filename);
        worker.once("message", resolve).once("error", reject);
        worker.postMessage(n * 100000);
    })));
    assert.deepStrictEqual(sums, [sumOf(100000), sumOf(200000), sumOf(300000)]);
    const file = path.join(fs.mkdtempSync(path.join(os.tmpdir(), "node-checks-")), "file");
    await fs.promises.writeFile(file, "x".repeat(100000));
    assert.strictEqual((await fs.promises.readFile(file)).length, 100000);
    await fs.promises.rm(path.dirname(file), { recursive: true });
    const server = net.createServer((socket) => socket.pipe(socket));
    await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
    const echoed = await new Promise((resolve, reject) => {
        const client = net.connect(server.address().port, "127.0.0.1", () => client.end("there and back"));
        let got = "";
        client.on("data", (data) => { got += data; }).on("end", () => resolve(got)).on("error", reject);
    });
    server.close();
    assert.strictEqual(echoed, "there and back");
    await assert.rejects(async () => { throw new Error("rejected"); }, /rejected/);
}

if (!isMainThread) {
    parentPort.once("message", (rounds) => parentPort.postMessage(sumOf(rounds)));
} else {
    checkPlain();
    checkWaiting().then(() => console.log("all as it should be"), (error) => { console.error(error); process.exit(1); });
}
