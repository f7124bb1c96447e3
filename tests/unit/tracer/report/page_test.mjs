// SPDX-License-Identifier: Apache-2.0
// The page in a browser: says the trace's own numbers, answers keys and mouse, runs nothing that a trace smuggles in,
// and asks for nothing.
import fs from 'node:fs';
import path from 'node:path';
import { Browser } from '../../../support/consumers/browser.mjs';
import { Checks } from '../../../support/consumers/consumers.mjs';
import { bytesOf, expectedOf, makePage } from './pages.mjs';

const checks = new Checks();
const pictures = process.env.QUT_PICTURES; // a folder for screenshots
const heavy = Boolean(process.env.QUT_REPORT_HEAVY); // 10^6 records, too
const browser = await Browser.start();
const page = await browser.page();

const text = (id) => page.evaluate(`document.getElementById('${id}').textContent`);
const count = (id) => page.evaluate(`document.querySelector('[data-count="${id}"]').textContent.replaceAll(',', '')`).then(Number);
const settled = () => page.waitFor(`document.getElementById('main').getAttribute('aria-busy') === 'false'`);
const focus = (id) => page.evaluate(`document.getElementById('${id}').focus()`);
const frame = () => page.evaluate('new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(0))))');

async function choose(id, label) {
    await page.evaluate(`(() => {
        const select = document.getElementById('${id}');
        select.value = [...select.options].find((option) => option.textContent === ${JSON.stringify(label)}).value;
        select.dispatchEvent(new Event('change'));
    })()`);
    await settled();
}

async function search(query) {
    await page.evaluate(`(() => {
        const input = document.getElementById('search');
        input.value = ${JSON.stringify(query)};
        input.dispatchEvent(new Event('input'));
    })()`);
    await new Promise((resolve) => setTimeout(resolve, 100));
}

async function picture(name) {
    if (pictures) {
        await frame();
        await page.screenshot(path.join(pictures, `${name}.png`));
    }
}

async function open(what) {
    const file = makePage(what);
    await page.goto(file);
    await page.waitFor(`document.documentElement.dataset.ready === 'true'`);
    return file;
}

// Rows [self, total, name] of the table.
const tableRows = () => page.evaluate(`[...document.querySelectorAll('#table tbody tr')].map((row) =>
    [Number(row.cells[0].dataset.value), Number(row.cells[2].dataset.value), row.cells[4].firstChild.title.split('\\n')[0]])`);

// The colour in the middle of a canvas's place, as [r, g, b].
const pixel = (id, x, y) => page.evaluate(`(() => {
    const canvas = document.getElementById('${id}'), ratio = canvas.width / canvas.clientWidth;
    return [...canvas.getContext('2d').getImageData(${x} * ratio, ${y} * ratio, 1, 1).data].slice(0, 3);
})()`);

async function checkSummary() {
    checks.equal(await count('hits'), 320, 'hits');
    checks.equal([await count('stored'), await count('merged'), await count('throttled'), await count('under-way')], [137, 120, 17, 1],
        'what became of them');
    checks.equal([await count('lost-0'), await count('lost-1'), await count('lost-2')], [2, 40, 3], 'lost, by reason');
    checks.equal([await count('present'), await count('overwritten'), await count('damaged')], [167, 90, 0], 'where samples are');
    checks.ok(/^45 lost .*90 overwritten/.test(await text('verdict')), `the verdict: ${await text('verdict')}`);
    checks.ok(/Both sums are exact/.test(await text('balance')), 'it balances');
    checks.ok((await page.evaluate(`document.getElementById('losses').getBoundingClientRect().top`)) === 0, 'losses are at the top');
    checks.ok((await text('command')).startsWith('/opt/app/golden --name=a"b<script>alert(1)</script>;c'), 'the command, as text');
}

async function checkTable(expected) {
    const rows = await tableRows();
    const wanted = expected.functions.map(([name, self, total]) => [self, total, name.replace(/[\u0000-\u001f]/g, '\ufffd')]);
    const order = (a, b) => (a.join() < b.join() ? -1 : 1);
    checks.equal([...rows].sort(order), wanted.sort(order), 'the table');
    checks.ok(rows.every((row, i) => i === 0 || rows[i - 1][0] >= row[0]), 'sorted by self');
    await page.evaluate(`document.querySelector('#table th[data-sort=total] button').click()`);
    const byTotal = await tableRows();
    checks.ok(byTotal.every((row, i) => i === 0 || byTotal[i - 1][1] >= row[1]), 'sorted by total');
    checks.equal(await page.evaluate(`document.querySelector('#table th[data-sort=total]').getAttribute('aria-sort')`), 'descending', 'which it says');
    await page.evaluate(`document.querySelector('#table th[data-sort=total] button').click()`);
    checks.ok((await tableRows())[0][1] <= byTotal[0][1] && (await tableRows()).at(-1)[1] === byTotal[0][1], 'and the other way');
}

async function checkKeys() {
    await page.evaluate('document.activeElement.blur()');
    await page.press('/');
    checks.equal(await page.evaluate('document.activeElement.id'), 'search', '/ goes to the search');
    await page.press(...'main');
    await page.waitFor(`document.getElementById('found').textContent !== ''`);
    checks.equal(await text('found'), '71.9 % ±6.8 in 1 functions', 'what the search found');
    await page.press('Escape');
    checks.equal(await page.evaluate(`document.getElementById('search').value`), '', 'Escape clears it');
    checks.equal(await page.evaluate('document.activeElement.id'), 'flame-canvas', 'and goes to the flame graph');
    await page.press('Home', 'ArrowDown', 'ArrowDown');
    checks.ok((await text('status')).startsWith('main   ·   self 2 (1.20 % ±1.6), total 120 (71.9 % ±6.8)'), `by keys to main: ${await text('status')}`);
    await page.press('Enter');
    checks.equal(await page.evaluate(`[...document.querySelectorAll('#breadcrumb button')].map((button) => button.textContent)`),
        ['all', '_start', 'main'], 'zoomed, by Enter');
    await page.press('Escape');
    checks.equal(await page.evaluate(`document.querySelector('#breadcrumb [aria-current]').textContent`), '_start', 'out by Escape');
    await page.press('Home');
    await page.press('?');
    checks.ok(await page.evaluate(`document.getElementById('help').open`), '? opens the help');
    await page.press('Escape');
    checks.ok(!(await page.evaluate(`document.getElementById('help').open`)), 'Escape closes it');
    const controls = await page.evaluate(`[...document.querySelectorAll('button, select, input, canvas')].filter((control) => {
        const name = control.getAttribute('aria-label') || control.textContent.trim() || (control.labels && control.labels.length);
        return !name || control.tabIndex < 0;
    }).map((control) => control.outerHTML.slice(0, 80))`);
    checks.equal(controls, [], 'each control has a name and can be reached by Tab');
}

async function checkChoices() {
    await choose('weight', 'processor time');
    const cpu = (await tableRows()).reduce((sum, [self]) => sum + self, 0);
    await choose('weight', 'allocated bytes');
    const bytes = await tableRows();
    checks.equal(bytes.filter(([self]) => self > 0), [[(8192 << 4) - 8192, (8192 << 4) - 8192, 'inner']], 'allocated bytes');
    checks.ok(cpu > 0, 'processor time');
    await choose('weight', 'samples');
    await choose('thread', 'main 4242');
    const expected = 1 + 10 + 11 + 3 * 8 + 5 + 1 + 1 + 1 + 1; // as tests/support/golden/golden.c takes them
    checks.ok((await text('functions-count')).includes(`with ${expected} samples`), `one thread: ${await text('functions-count')}`);
    await choose('kind', 'own <kind>');
    checks.ok(/with 1 samples/.test(await text('functions-count')), 'one kind of it');
    await choose('kind', 'all');
    await choose('thread', 'all 4');
}

async function checkRange() {
    const box = await page.evaluate(`(() => { const { left, top, width } =
        document.getElementById('timeline-canvas').getBoundingClientRect(); return { left, top, width }; })()`);
    const gutter = 148, at = (share) => box.left + gutter + (box.width - gutter) * share, y = box.top + 40;
    const send = (type, x) => page.send('Input.dispatchMouseEvent', { type, x, y, button: 'left', buttons: 1, clickCount: 1 });
    await send('mousePressed', at(0));
    await send('mouseMoved', at(0.02));
    await send('mouseMoved', at(0.05));
    await send('mouseReleased', at(0.05));
    await settled();
    checks.ok(/^(49\.\d|50(\.\d)?) ms from/.test(await text('range')), `a range by the mouse: ${await text('range')}`);
    const range = await text('functions-count');
    checks.ok(/with (30|31) samples/.test(range), `samples in it: ${range}`); // 1 + 10 + 11, and of the first request 8
    await focus('timeline-canvas');
    await page.press('Escape');
    await settled();
    checks.equal(await text('range'), 'whole trace', 'Escape takes it back');
    checks.ok(/with 167 samples/.test(await text('functions-count')), 'all samples are there again');
    for (let i = 0; i < 4; i++) {
        await page.press('+');
    }
    await page.press('Enter');
    await settled();
    checks.ok(/^240 ms from 380 ms/.test(await text('range')), `what is seen, by Enter: ${await text('range')}`);
    checks.ok((await text('functions-count')).includes('with 50 samples'), `samples in it: ${await text('functions-count')}`);
    await picture('range');
    await page.press('Escape', 'Home', 'ArrowDown', ' ');
    await frame();
    checks.ok((await text('status')).startsWith('w"<b>;'), `the second thread by keys: ${await text('status')}`);
    await picture('opened');
    await page.press(' ');
}

// Counters and instants say what they are when they are pointed at: down the timeline at a time, until something does.
async function checkPointed() {
    const box = await page.evaluate(`(() => { const { left, top, width, height } =
        document.getElementById('timeline-canvas').getBoundingClientRect(); return { left, top, width, height }; })()`);
    const gutter = 148, tooltip = `document.getElementById('tooltip')`;
    const pointed = async (ms, wanted) => {
        for (let y = box.top; y < box.top + Math.min(box.height, 400); y += 4) {
            await page.send('Input.dispatchMouseEvent', { type: 'mouseMoved', x: box.left + gutter + (box.width - gutter) * ms / 1000, y });
            await frame();
            const said = await page.evaluate(`${tooltip}.hidden ? '' : ${tooltip}.textContent`);
            if (said.startsWith(wanted)) {
                return said;
            }
        }
        return `nothing says "${wanted}"`;
    };
    checks.equal(await pointed(500, 'queue'), 'queue: 5from 0.082 s to 1.000 smain (4242)', 'a counter');
    checks.equal(await pointed(40, 'queue'), 'queueno value yetmain (4242)', 'before its first value');
    checks.equal(await pointed(75, 'instant'), 'instantat 0.075 smain (4242)', 'an instant');
    await picture('counters');
}

async function checkTheme() {
    const paper = async () => pixel('flame-canvas', 1, 400);
    await page.setDark(false);
    await frame();
    const light = await paper();
    await page.setDark(true);
    let dark = await paper();
    for (let i = 0; i < 100 && dark[0] >= 40; i++) { // on a busy machine it is not there with the next frame
        await frame();
        dark = await paper();
    }
    checks.ok(light[0] > 240 && dark[0] < 40, `light and dark as the machine says: ${light}, ${dark}`);
    await picture('dark');
    await page.evaluate('document.activeElement.blur()');
    await page.press('t');
    let after = await paper();
    for (let i = 0; i < 100 && after[0] <= 240; i++) { // on a busy machine a key is not there with the next frame
        await frame();
        after = await paper();
    }
    checks.ok(after[0] > 240, `t changes it: ${after}`);
    await page.press('t');
    await page.setDark(false);
    await frame();
}

// Contrast of text and of what is pointed out, by WCAG's formula.
async function checkContrast() {
    const contrasts = await page.evaluate(`['light', 'dark'].map((theme) => {
        const root = document.documentElement, before = root.dataset.theme;
        root.dataset.theme = theme;
        const style = getComputedStyle(root), parse = (name) => style.getPropertyValue(name).trim().match(/[0-9a-f]{2}/gi)
            .map((part) => parseInt(part, 16) / 255).map((part) => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
        const light = (name) => { const [r, g, b] = parse(name); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
        const contrast = (a, b) => (Math.max(light(a), light(b)) + 0.05) / (Math.min(light(a), light(b)) + 0.05);
        const found = [contrast('--ink', '--paper'), contrast('--faint', '--paper'), contrast('--faint', '--panel'),
            contrast('--accent', '--paper'), contrast('--gap', '--paper'),
            ...['lock', 'condition', 'read', 'write', 'poll', 'sleep', 'other'].map((name) => contrast('--wait-' + name, '--paper'))];
        root.dataset.theme = before;
        return found;
    })`);
    for (const found of contrasts) {
        checks.ok(found.every((value) => value >= 4.5), `contrasts of 4.5 and more: ${found.map((value) => value.toFixed(1))}`);
    }
}

async function checkHostile() {
    checks.ok(await page.evaluate(`[...document.querySelectorAll('#table td.name')].some((cell) => cell.firstChild.title.includes('<script>alert(1)'))`),
        'the hostile name is shown');
    checks.equal(await page.evaluate(`document.querySelectorAll('script:not(.data)').length`), 1, 'there is one script, ours');
    await search('<script>');
    checks.ok(/in 1 functions/.test(await text('found')), `which is found: ${await text('found')}`);
    await search('');
    // And if something got in, it would not run.
    await page.evaluate(`(() => { const script = document.createElement('script'); script.textContent = 'window.isHacked = true';
        document.body.append(script); document.body.insertAdjacentHTML('beforeend', '<img src="x" onerror="window.isHacked = true">'); })()`);
    await new Promise((resolve) => setTimeout(resolve, 200));
    checks.ok(!(await page.evaluate('window.isHacked')), 'a script from elsewhere does not run');
    const said = page.errors.splice(0);
    checks.ok(said.length >= 2 && said.every((error) => /Content Security Policy/.test(error)), `it is refused: ${said}`);
}

async function checkClean(what) {
    checks.equal(page.errors, [], `${what}: errors of the page`);
    const asked = page.requests.splice(0).filter((url) => !url.startsWith('file:'));
    checks.equal(asked, [], `${what}: requests`);
}

async function golden() {
    const file = await open('golden');
    await picture('golden');
    await checkSummary();
    await choose('weight', 'samples');
    await checkTable(expectedOf('golden'));
    await checkKeys();
    await checkChoices();
    await checkRange();
    await checkPointed();
    await checkTheme();
    await checkContrast();
    await page.mouse('move', 400, 500);
    await checkClean('golden');
    await checkHostile();
    checks.ok(!/<script>alert/.test(fs.readFileSync(file, 'utf8')), 'no name is markup');
    page.requests.splice(0);
}

async function others() {
    await open('damaged');
    checks.ok(/25 damaged; the trace is incomplete/.test(await text('verdict')), `damage is told: ${await text('verdict')}`);
    checks.ok(/chunk 7/.test(await text('damages')), 'in words');
    await checkClean('damaged');
    await open('empty');
    checks.ok(/^Nothing was lost/.test(await text('verdict')), 'an empty trace');
    checks.equal(await tableRows(), [], 'has no functions');
    await picture('empty');
    await checkClean('empty');
    await open('hollow');
    checks.ok(/^Nothing was lost\. Quality: NOT GOOD: 49\.\d % of .* with the whole stack.* 33\.3 % of ticks late/.test(await text('verdict')), `hollow: ${await text('verdict')}`);
    checks.equal(await page.evaluate(`document.getElementById('losses').className`), 'has-flaw', 'which is no green tick');
    checks.ok(/in the kernel2\d\.\d %/.test(await text('facts')), `the kernel's share: ${await text('facts')}`);
    await picture('hollow');
    await checkClean('hollow');
    // A page that was cut off says so.
    const cut = makePage('golden').replace('golden', 'cut'), whole = fs.readFileSync(makePage('golden'), 'latin1');
    const block = whole.indexOf('class="data"');
    fs.writeFileSync(cut, whole.slice(0, block + 400) + '</script>' + whole.slice(whole.indexOf('</script>', block) + 9), 'latin1');
    await page.goto(cut);
    await page.waitFor(`document.getElementById('loading').textContent.startsWith('This report cannot be shown')`);
    checks.equal(await count('hits'), 320, 'a page that was cut still says what was lost');
    page.errors.splice(0);
}

// Many samples: what is there, not how fast; the figures are for people.
async function large(what) {
    const records = Number(what.replace('noisy-', ''));
    await page.send('Page.addScriptToEvaluateOnNewDocument', { source: `window.longest = 0;
        new PerformanceObserver((list) => list.getEntries().forEach(({ duration }) => { longest = Math.max(longest, duration); }))
            .observe({ type: 'longtask', buffered: true });` });
    const began = Date.now(), file = await open(what), expected = expectedOf(what);
    checks.equal(await count('present'), expected.samples, `${records}: samples`);
    await choose('weight', 'samples');
    checks.ok((await text('functions-count')).includes(`${expected.samples.toLocaleString('en-US')} samples`), `${records}: in the sums`);
    checks.equal((await tableRows()).length, 100, `${records}: the first rows only`);
    const boxes = await page.evaluate(`document.getElementsByTagName('*').length`);
    checks.ok(boxes < 2500, `${records}: ${boxes} elements: what is many is drawn, not built`);
    await picture(what);
    await choose('weight', 'time');
    await search('function_2');
    await focus('timeline-canvas');
    await page.press(...'+++++', 'Enter');
    await settled();
    await page.press('Escape', 'Home');
    await settled();
    console.log(`${records} records: ${(fs.statSync(file).size / 1e6).toFixed(1)} MB, ` +
        `${(bytesOf(file).length / records).toFixed(1)} bytes each unpacked, done after ${Date.now() - began} ms, ` +
        `longest task ${await page.evaluate('longest')} ms`);
    await checkClean(what);
}

await page.setSize(1400, 1000);
await golden();
await others();
await large('noisy-20000');
if (heavy) {
    await large('noisy-1000000');
}
await browser.close();
checks.end('report page');
