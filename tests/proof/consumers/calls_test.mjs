// SPDX-License-Identifier: Apache-2.0
// Exact calls, as Perfetto's own trace processor sees them in what we write for it and for Chrome: each with its name,
// its time and the thread it is of, one within the other as they were.
//
//     calls_test.mjs QUT TELL
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { Checks } from '../../support/consumers/consumers.mjs';
import { openTrace } from '../../support/consumers/trace_processor.mjs';

const checks = new Checks();
const [qut, tell] = process.argv.slice(2);
const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'qut-calls-'));
process.on('exit', () => fs.rmSync(folder, { recursive: true, force: true }));

const told = path.join(folder, 'told.qtrace');
execFileSync(tell, [told, 'a1 b2 c3 /c3 c3 /c3 /b2 d2 >e2 /e2 /a1 | f1 g1000 /f1 h1 /g1000 /h1', '2']);
// Name, depth, duration in ns, of what; "d" was left by a jump to "e"; "g" ran on a stack of its own.
const wanted = {
    'thread 0 (calls)': ['a 0 100', 'b 1 50', 'c 2 10', 'c 2 10', 'd 1 10', 'e 1 10'],
    'thread 1 (calls)': ['f 0 20', 'h 0 20'],
    'thread 1 (calls, stack 2)': ['g 0 30'],
};

for (const format of ['perfetto', 'chrome']) {
    const file = path.join(folder, format);
    execFileSync(qut, ['export', '-q', '-f', format, '-o', file, told]);
    const trace = await openTrace(file);
    const names = format === 'perfetto' ? 'track.name' : 'thread.name';
    const rows = await trace.query(`select slice.name as name, slice.depth as depth, slice.dur as dur, slice.ts as ts,
        ${names} as lane from slice join track on slice.track_id = track.id
        left join thread_track on thread_track.id = track.id left join thread using (utid)
        where slice.name != 'all samples are here' order by slice.ts, slice.depth`);
    for (const [lane, slices] of Object.entries(wanted)) {
        const found = rows.filter((row) => row.lane === lane).map((row) => `${row.name} ${row.depth} ${row.dur}`);
        // Where one ends and the next begins a nanosecond lies between them.
        checks.equal(found.map(round), slices, `${format}: ${lane}`);
    }
    checks.equal(rows.filter((row) => row.lane in wanted).length, 9, `${format}: all of them`);
    trace.close?.();
}

function round(text) {
    const [name, depth, ns] = text.split(' ');
    return `${name} ${depth} ${Math.round(ns / 10) * 10}`;
}

checks.end('calls');
