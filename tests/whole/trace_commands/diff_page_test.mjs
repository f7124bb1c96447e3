// SPDX-License-Identifier: Apache-2.0
// The page of qut diff: all of both sides is in it, what became more is red and what became less is blue, and the tables say so.
// node diff_page_test.mjs QUT TELL PLAIN SLOWER; QUT_PICTURES=DIR: screenshots
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';

import { Browser } from '../../support/consumers/browser.mjs';
import { Checks } from '../../support/consumers/consumers.mjs';
import { bytesOf } from '../../unit/tracer/report/pages.mjs';
import { colourOf, isTold, treeOf } from '../../../tracer/report/page_diff/diff_model.mjs';

const [qut, tell, plain, slower] = process.argv.slice(2).map((file) => path.resolve(file));
const checks = new Checks(), pictures = process.env.QUT_PICTURES;
const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'qut-page-'));
process.on('exit', () => fs.rmSync(folder, { recursive: true, force: true }));
process.chdir(folder);

// Where the machine is busy, ticks come late and as one: of fewer rounds, what became less was within chance, and grey.
execFileSync(qut, ['record', '--quiet', '-o', 'a.qtrace', '--', plain, '1500']);
execFileSync(qut, ['record', '--quiet', '-o', 'b.qtrace', '--', slower, '1000']);
execFileSync(qut, ['diff', '--quiet', '--html', 'page.html', 'a.qtrace', 'b.qtrace']);

// ---- what is in it
const told = JSON.parse(new TextDecoder().decode(bytesOf('page.html'))), { frames, share } = treeOf(told);
checks.ok(Math.abs(share[0][0] - 1) < 1e-9 && Math.abs(share[1][0] - 1) < 1e-9, 'the tree has all of both sides');
for (const { function: name, index, total_sum: total } of told.functions) {
    const sums = [0, 1].map((side) => share[side].reduce((sum, one, frame) => {
        let outer = frames.parent[frame];
        while (outer !== 0 && frames.func[outer] !== index) {
            outer = frames.parent[outer];
        }
        return frame !== 0 && frames.func[frame] === index && outer === 0 ? sum + one * told.sum[side] : sum;
    }, 0));
    checks.ok(sums.every((sum, side) => Math.abs(sum - total[side]) <= 1 + 1e-9 * total[side]), `${name}: its frames are its total`);
}
const [red, , blue] = colourOf(0.5, true, false).match(/\d+/g).map(Number), [less, , bluer] = colourOf(-0.5, true, false).match(/\d+/g).map(Number);
checks.ok(red > blue + 60 && bluer > less + 60, 'more is red, less is blue');
checks.equal(told.functions.filter(isTold).some(({ function: name }) => name === 'first'), true, 'first is told');

// ---- what is seen
const browser = await Browser.start(), page = await browser.page();
const show = async (file, name) => {
    await page.goto(path.resolve(file));
    await page.waitFor(`document.documentElement.dataset.ready === 'true'`);
    await page.evaluate('new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => requestAnimationFrame(() => done(0)))))');
    if (pictures) {
        await page.screenshot(path.join(pictures, `diff-${name}.png`));
    }
};
const text = (selector) => page.evaluate(`document.querySelector('${selector}').textContent`);
await show('page.html', 'samples');
const [reds, blues] = await page.evaluate(`(() => {
    const canvas = document.getElementById('flame-canvas'), { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
    let red = 0, blue = 0;
    for (let i = 0; i < data.length; i += 4) {
        red += data[i] > data[i + 2] + 60;
        blue += data[i + 2] > data[i] + 60;
    }
    return [red, blue];
})()`);
checks.ok(reds > 1000 && blues > 1000, `both colours are there: ${reds}, ${blues}`);
checks.ok(/more|less/.test(await text('#diff-table tbody tr')), 'what is told stands first');
await page.evaluate(`document.getElementById('search').value = 'third'; document.getElementById('search').dispatchEvent(new Event('input'))`);
checks.equal(await page.evaluate(`document.querySelectorAll('#diff-table tbody tr').length`), 1, 'one function is found');

// ---- exact calls
execFileSync(tell, ['before', 'a1 b2 /b2 /a1 a1 /a1', '1']);
execFileSync(tell, ['after', 'a1 b2 /b2 b2 /b2 /a1', '1']);
const calls = JSON.parse(execFileSync(qut, ['diff', '--quiet', '--json', '--html', 'calls.html', 'before', 'after'])).calls;
// The third one is of a function whose calls were only counted.
checks.equal(calls.filter(({ total_ns: [a] }) => a).map(({ calls: count }) => count).sort(), [[1, 2], [2, 1]], 'calls of both sides are counted');
checks.equal(calls.every(({ mean_ns: { verdict } }) => verdict === 'cannot tell'), true, 'one recording a side says nothing of the next');
await show('calls.html', 'calls');
checks.equal(await page.evaluate(`document.querySelectorAll('#exact-table tbody tr').length`), 3, 'they have a table');
checks.equal(await page.evaluate(`document.getElementById('flame').hidden`), true, 'and no graph is there without samples');
await browser.close?.();
checks.end('diff_page');
