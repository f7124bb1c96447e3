// SPDX-License-Identifier: Apache-2.0
// Pages and what they must say, from the programs beside; and the page's own modules, run in node.
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import zlib from 'node:zlib';

const here = path.dirname(fileURLToPath(import.meta.url));
export const pageModule = (name) => import(path.join(here, '..', '..', '..', '..', 'tracer', 'report', 'page', `${name}.mjs`));

// The programs' paths are the test's last two arguments.
const [maker, expected] = process.argv.slice(-2);
const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'qut-report-'));
process.on('exit', () => fs.rmSync(folder, { recursive: true, force: true }));

export function makePage(what) {
    const file = path.join(folder, `${what}.html`);
    execFileSync(maker, [what, file]);
    return file;
}

export function expectedOf(what) {
    return JSON.parse(execFileSync(expected, [what], { maxBuffer: 1 << 30, encoding: 'utf8' }));
}

// The bytes in a page, as its own script gets them.
export function bytesOf(file) {
    const text = fs.readFileSync(file, 'latin1'), parts = [];
    let packing = '';
    for (const [, itsPacking, base64] of text.matchAll(/class="data" data-packing="(\w+)">\n([^<]*)<\/script>/g)) {
        packing = itsPacking;
        parts.push(Buffer.from(base64, 'base64'));
    }
    const bytes = Buffer.concat(parts);
    return new Uint8Array(packing === 'deflate' ? zlib.inflateSync(bytes) : bytes);
}

// All of a trace that the page has before it shows anything.
export async function readPageFile(file) {
    const { decodeTrace } = await pageModule('data'), { buildSegments } = await pageModule('segments');
    const { findRepeats } = await pageModule('aggregate'), { runAtOnce } = await pageModule('work');
    const trace = runAtOnce(decodeTrace(bytesOf(file)));
    return { trace, segments: runAtOnce(buildSegments(trace)), repeats: runAtOnce(findRepeats(trace)) };
}

export const readPage = (what) => readPageFile(makePage(what));
