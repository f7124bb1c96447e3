// SPDX-License-Identifier: Apache-2.0
// Exact calls in the page of qut report: all of them are in it, with their times, and the timeline shows them.
// node calls_page_test.mjs QUT TELL; QUT_PICTURES=DIR: screenshots
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';

import { Browser } from '../../support/consumers/browser.mjs';
import { Checks } from '../../support/consumers/consumers.mjs';
import { pageModule, readPageFile } from '../../unit/tracer/report/pages.mjs';

const [qut, tell] = process.argv.slice(2).map((file) => path.resolve(file));
const checks = new Checks(), pictures = process.env.QUT_PICTURES;
const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'qut-page-'));
process.on('exit', () => fs.rmSync(folder, { recursive: true, force: true }));
process.chdir(folder);

// Of a tree of calls at random, the same each time.
let state = 3;
const random = (below) => (state = (state * 1103515245 + 12345) % 2147483648) % below;
function story(depth, name) {
    const inner = depth < 8 ? Array.from({ length: random(5) }, () => story(depth + 1, 'bcdefghij'[random(9)])) : [];
    return [`${name}${2 * depth}`, ...inner, `/${name}${2 * depth}`].join(' ');
}
const told = Array.from({ length: 3 }, () => Array.from({ length: 8 }, () => story(1, 'a')).join(' ')).join(' | ');
execFileSync(tell, ['trace', told, '3']);
execFileSync(qut, ['report', '--quiet', '-o', 'page.html', 'trace']);

// ---- what is in it
const { trace } = await readPageFile('page.html');
const [info] = JSON.parse(execFileSync(qut, ['info', '--json', '--calls', 'trace'], { maxBuffer: 1 << 28 })).calls;
const sums = new Map();
for (const { calls } of trace.threads) {
    for (const { begin, end, func } of calls.rows) {
        func.forEach((f, i) => {
            const name = trace.functionName(f), [count, longest] = sums.get(name) || [0, 0];
            sums.set(name, [count + 1, Math.max(longest, end[i] - begin[i])]);
        });
    }
}
const shown = trace.callSums.map((row) => [trace.functionName(row.func), row.calls, row.counted, row.how, row.total, row.self, row.min, row.max,
    [...row.histogram].map(([bucket, count]) => [bucket ? 2 ** bucket : 0, count])]);
checks.equal(shown.filter(([, calls]) => calls).sort(), info.functions.filter(({ calls }) => calls).map((row) => [row.function, row.calls, row.counted,
    [row.returned, row.tail_calls, row.unwound, row.open, row.lost], row.total_ns, row.self_ns, row.min_ns, row.max_ns,
    Object.entries(row.histogram).map(([from, count]) => [Number(from), count])]).sort(), 'sums by function are those of qut info --calls');
checks.equal(trace.callSums.filter(({ calls }) => !calls).map(({ counted }) => counted), [1234567], 'and calls that were only counted are there');
checks.equal(trace.callsHidden, 0, 'none is hidden');
checks.equal([...sums].sort(), info.functions.filter(({ calls }) => calls).map((row) => [row.function, [row.calls, row.max_ns]]).sort(),
    'calls, and the longest of each function');
checks.equal(trace.threads[0].calls.rows.every(({ begin, end }) => begin.every((time, i) => time <= end[i] && (i === 0 || end[i - 1] <= time))), true,
    'a row has one behind the other');

// Of b and c one of several calls is recorded, of y none, of x all.
execFileSync(tell, ['thinned.qtrace', 'a1 b2 /b2 b2 c3 /c3 /b2 c2 /c2 c2 /c2 /a1 x1 /x1', '1', 'b61 c2 y7000 x0']);
execFileSync(qut, ['report', '--quiet', '-o', 'thinned.html', 'thinned.qtrace']);
const { trace: thinned } = await readPageFile('thinned.html'), { ratioText, callSums } = await pageModule('call_table');
checks.equal(thinned.callSums.map((row) => [thinned.functionName(row.func), ratioText(row)]).sort(),
    [['a', ''], ['b', '[1 of 32]'], ['c', '[1 of 2]'], ['x', ''], ['y', '[0 of 7,000]'], ['z', '']], 'of what is thinned, for how many calls one stands');
// Of two processes, in one of which it is thinned: 10 calls with events there, 630 without; 5 and 1,000 in the other.
const both = callSums({ func: [3, 3], counted: [630, 1000], how: [10, 0, 0, 0, 0, 5, 0, 0, 0, 0], times: [9, 9, 1, 1, 9, 9, 1, 1],
    histogram: [0, 0], recorded: [11, 0] });
checks.equal([both.length, both[0].counted, ratioText(both[0])], [1, 1630, '[1 of 64]'], 'and so where another process is not');

// ---- what is seen
const browser = await Browser.start(), page = await browser.page();
await page.goto(path.resolve('page.html'));
await page.waitFor(`document.documentElement.dataset.ready === 'true'`);
const frame = () => page.evaluate('new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(0))))');
const picture = async (name) => pictures && page.screenshot(path.join(pictures, `calls-${name}.png`));
// How many of the timeline's pixels have a colour.
const coloured = () => page.evaluate(`(() => {
    const canvas = document.getElementById('timeline-canvas'), { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
    let count = 0;
    for (let i = 0; i < data.length; i += 4) {
        count += Math.max(data[i], data[i + 1], data[i + 2]) - Math.min(data[i], data[i + 1], data[i + 2]) > 20;
    }
    return count / (data.length / 4);
})()`);
await frame();
checks.ok((await page.evaluate(`document.getElementById('facts').textContent`)).includes(`exact calls${info.enters.toLocaleString('en')} in the timeline`), 'their number is told');
checks.ok(await coloured() > 0.1, 'calls are seen in the timeline');
checks.equal(await page.evaluate(`document.querySelectorAll('#exact-table tbody tr').length`), Math.min(100, trace.callSums.length), 'the table has a row for each function');
checks.ok(await page.evaluate(`document.querySelectorAll('#exact-table tbody svg rect').length`) > 0, 'with its durations');
await picture('whole');
await page.evaluate(`document.getElementById('exact').scrollIntoView()`);
await frame();
await picture('table');
await page.evaluate(`document.getElementById('timeline-canvas').focus()`);
for (const key of ['ArrowDown', 'ArrowDown', ' ', '+', '+', '+', '+', '+', '+']) {
    await page.evaluate(`document.getElementById('timeline-canvas').dispatchEvent(new KeyboardEvent('keydown', { key: '${key}', bubbles: true }))`);
}
await frame();
checks.ok(await coloured() > 0.05, 'and in an open track, from near');
await picture('near');
await page.goto(path.resolve('thinned.html'));
await page.waitFor(`document.documentElement.dataset.ready === 'true'`);
checks.equal(await page.evaluate(`[...document.querySelectorAll('#exact-table tbody td.stack')].map((cell) => cell.textContent).sort()`),
    ['a', 'b [1 of 32]', 'c [1 of 2]', 'x', 'y [0 of 7,000]', 'z'], 'the table says so');
await browser.close?.();
checks.end('calls_page');
