// SPDX-License-Identifier: Apache-2.0
// The page of several processes whose threads wait (tests/unit/tracer/report/traces.h), in a browser: tables, one wait with its
// stacks, arrows, keys, small windows.
import path from 'node:path';
import { Browser } from '../../../support/consumers/browser.mjs';
import { Checks } from '../../../support/consumers/consumers.mjs';
import { makePage } from './pages.mjs';

const checks = new Checks();
const pictures = process.env.QUT_PICTURES; // a folder for screenshots
const browser = await Browser.start();
const page = await browser.page();

const text = (id) => page.evaluate(`document.getElementById('${id}').textContent.trim()`);
const isHidden = (id) => page.evaluate(`document.getElementById('${id}').hidden`);
const frame = () => page.evaluate('new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(0))))');
const settled = () => page.waitFor(`document.getElementById('main').getAttribute('aria-busy') === 'false'`);
const focus = (id) => page.evaluate(`document.getElementById('${id}').focus()`);
const rows = (id) => page.evaluate(`[...document.querySelectorAll('#${id} tbody tr')].map((row) => [...row.cells].map((cell) => cell.textContent))`);
const stacks = () => page.evaluate(`[...document.querySelectorAll('#detail .stack-list')].map((list) =>
    [list.querySelector('h3').textContent, ...[...list.querySelectorAll('li button')].map((button) => button.textContent)])`);

async function choose(id, label) {
    await page.evaluate(`(() => {
        const select = document.getElementById('${id}');
        select.value = [...select.options].find((option) => option.textContent === ${JSON.stringify(label)}).value;
        select.dispatchEvent(new Event('change'));
    })()`);
    await settled();
}

async function picture(name) {
    if (pictures) {
        await frame();
        await page.screenshot(path.join(pictures, `${name}.png`));
    }
}

async function checkTables() {
    checks.equal(await rows('locks'), [
        ['L0x5000', 'worker-b 102', 'worker-a 101', 'worker-a 101', '10', '51 ms', '6 ms',
            'pthread_mutex_lock ← update ← work ← thread', 'pthread_mutex_unlock ← update ← work ← thread'],
        ['Cqueue_ready', 'worker-a 101', 'not known', 'server 100', '1', '50 ms', '50 ms',
            'pthread_cond_wait ← queue_pop ← work ← thread', 'pthread_cond_signal ← queue_push ← serve ← main'],
        ['L0x5000', 'worker-a 101', 'worker-b 102', 'worker-b 102', '3', '6 ms', '2 ms',
            'pthread_mutex_lock ← update ← work ← thread', 'pthread_mutex_unlock ← update ← work ← thread'],
    ], 'who waits for whom');
    checks.equal((await rows('calls')).slice(0, 2).map((row) => row.slice(0, 4)),
        [['Snanosleep', 'sleep', '1 (1 without end)', '2.30 s'], ['Rread', 'read', '1', '2 s']], 'blocked in');
    checks.ok(/allocations, exact1,007/.test(await text('allocation-facts')), `exact: ${await text('allocation-facts')}`);
    checks.equal((await rows('allocation-table'))[0], ['5 MiB', '55.6 % ±32', '500', 'malloc ← read_header ← serve ← main'], 'who allocates');
    checks.equal((await rows('faults-table'))[0], ['1,280', '55.6 % ±32', 'malloc ← read_header ← serve ← main'], 'who faults');
}

async function checkLosses() {
    checks.ok(/1 tick lost/.test(await text('verdict')), `a tick was lost: ${await text('verdict')}`);
    checks.ok(/Of 250 ticks due, 12 fell into the kernel, 3 came late/.test(await text('verdict')), 'and where others were');
    const count = (id) => page.evaluate(`document.querySelector('[data-count="${id}"]').textContent`);
    checks.equal([await count('ticks-due'), await count('ticks-taken'), await count('ticks-kernel'), await count('trigger')],
        ['250', '234', '12', 'task-clock'], 'all notes');
    checks.ok(/processes2/.test(await text('facts')), 'two processes');
}

// A row of the table, and what it shows of the longest wait.
async function checkDetail() {
    checks.ok(await isHidden('detail'), 'nothing is pointed out at first');
    await page.evaluate(`document.querySelector('#locks tbody button').click()`);
    checks.equal(await text('detail-title'), 'Llock: blocked for 6 ms', 'the longest wait');
    checks.equal(await text('detail-where'), '4 of 10', 'of ten');
    checks.ok(/held byworker-a 101.*released byworker-a 101/.test(await text('detail-facts')), `for whom: ${await text('detail-facts')}`);
    checks.equal(await stacks(), [['Stack', 'pthread_mutex_lock', 'update', 'work', 'thread'],
        ['Released by worker-a 101', 'pthread_mutex_unlock', 'update', 'work', 'thread']], 'both stacks');
    checks.equal(await page.evaluate('document.activeElement.id'), 'detail-close', 'the keyboard is there');
    await picture('wait');
    await page.evaluate(`document.getElementById('detail-next').click()`);
    checks.ok(/5 of 10/.test(await text('detail-where')) && /blocked for 5 ms/.test(await text('detail-title')), 'the next one');
    await page.evaluate(`document.getElementById('detail-close').click()`);
    checks.ok(await isHidden('detail'), 'closed');
}

async function checkKeys() {
    await focus('timeline-canvas');
    await page.press('Home', ...Array(6).fill('ArrowUp'), 'ArrowDown', 'ArrowDown', 'ArrowDown', 'n');
    checks.equal(await text('detail-title'), 'Llock: blocked for 5 ms', 'the first wait of worker-b by keys');
    for (let i = 0; i < 10; i++) {
        await page.press('n');
    }
    checks.equal(await text('detail-title'), 'Ssleep: blocked for 2.30 s, its end is not in the trace', 'the last one');
    await page.press('p');
    checks.ok(/^Llock/.test(await text('detail-title')), 'and back');
    await page.press('Escape');
    checks.ok(await isHidden('detail'), 'Escape closes it');
    // A process's line closes by Space: its threads are gone from the timeline.
    await page.press('Home', ...Array(6).fill('ArrowUp'), ' ');
    const height = () => page.evaluate(`document.querySelector('#timeline-host').scrollHeight`);
    await frame();
    checks.ok((await text('status')).startsWith('server 100 --threads 2'), `the first process: ${await text('status')}`);
    await picture('closed');
    await page.press(' ');
    await frame();
    checks.ok((await height()) > 0, 'and opens again');
}

// The middle of the read of two seconds: clicked, it is told.
async function checkClick() {
    await page.press('Home');
    await frame();
    const box = await page.evaluate(`(() => { const { left, top, width } =
        document.getElementById('timeline-canvas').getBoundingClientRect(); return { left, top, width }; })()`);
    const gutter = 148, x = box.left + gutter + (box.width - gutter) * 0.5;
    // Lanes are some pixels high: whichever row it is in, a click in its lane tells the wait.
    for (let y = box.top + 24; y < box.top + 330 && await text('detail-title') !== 'Rread: blocked for 2 s'; y += 4) {
        for (const type of ['mouseMoved', 'mousePressed', 'mouseReleased']) {
            await page.send('Input.dispatchMouseEvent', { type, x, y, button: 'left', buttons: type === 'mousePressed' ? 1 : 0, clickCount: 1 });
        }
        await frame();
    }
    checks.equal(await text('detail-title'), 'Rread: blocked for 2 s', 'a click tells what it was');
    checks.equal(await stacks(), [['Stack', 'read', 'load_config', 'serve', 'main']], 'with its stack');
    await page.press('Escape');
}

async function checkChoices() {
    await choose('weight', 'blocked time');
    checks.ok(/with 4.60 s blocked time/.test(await text('functions-count')), `blocked: ${await text('functions-count')}`);
    await choose('process', 'gzip 200 -9');
    checks.ok(/with 100 ms blocked time/.test(await text('functions-count')), 'of one process');
    checks.equal(await page.evaluate(`[...document.getElementById('thread').options].map(({ text }) => text)`), ['all 1', 'gzip 200'], 'its threads');
    checks.equal((await rows('calls')).map((row) => row[0]), ['Wwrite'], 'its waits');
    checks.ok(!(await isHidden('locks-none')), 'none of them for a lock');
    await picture('process');
    await choose('process', 'all 2');
    await page.evaluate(`document.querySelector('#allocation-table tbody button').click()`);
    await settled();
    await frame();
    checks.equal(await page.evaluate(`document.getElementById('weight').selectedOptions[0].textContent`), 'allocated bytes', 'a hot spot leads to its weight');
    checks.equal(await page.evaluate(`document.querySelector('#breadcrumb [aria-current]').textContent`), 'malloc', 'and to its stack');
    await choose('weight', 'processor + blocked time');
    await picture('wall');
}

async function checkFunction() {
    await page.evaluate(`[...document.querySelectorAll('#table td.name button')].find(({ title }) => title.startsWith('work\\n')).click()`);
    await page.waitFor(`!document.getElementById('function').hidden`);
    const lists = await page.evaluate(`[...document.querySelectorAll('#function .neighbours')].map((list) => [list.querySelector('h3').textContent,
        ...[...list.querySelectorAll('td.name')].map(({ textContent }) => textContent)])`);
    checks.equal(lists.map(([heading]) => heading), ['Callers', 'Callees'], 'of a function without lines');
    checks.equal(lists[0], ['Callers', 'thread'], 'its caller');
    checks.equal([...lists[1].slice(1)].sort(), ['back_off', 'compute', 'hash', 'queue_pop', 'update'], 'its callees');
    await page.evaluate(`[...document.querySelectorAll('#function td.name button')].find(({ textContent }) => textContent === 'thread').click()`);
    await page.waitFor(`document.getElementById('function-title').textContent === 'thread'`);
    await picture('function');
    await page.evaluate(`document.getElementById('function-close').click()`);
    await page.waitFor(`document.getElementById('function').hidden`);
    checks.equal(await page.evaluate(`document.getElementById('search').value`), '', 'closed, nothing is searched for');
    await page.evaluate(`document.getElementById('inverted').click()`);
    await frame();
    await focus('flame-canvas');
    await page.press('Home', 'ArrowDown', 'ArrowDown');
    checks.ok((await text('status')).length > 0 && !(await text('status')).startsWith('thread'), `bottom up, the first row is what stacks end in: ${await text('status')}`);
    await picture('inverted');
    await page.evaluate(`document.getElementById('inverted').click()`);
    await frame();
}

async function checkNarrow() {
    await page.setSize(390, 844);
    await frame();
    const wide = await page.evaluate('document.documentElement.scrollWidth');
    checks.ok(wide <= 390, `a narrow window is not scrolled sideways: ${wide}`);
    const names = await page.evaluate(`[...document.querySelectorAll('#table td.name')].map((cell) => cell.getBoundingClientRect()).map(({ width, right }) => [width, right])`);
    checks.ok(names.length > 0 && names.every(([width, right]) => width >= 120 && right <= 390), `names have room: ${names[0]}`);
    const small = await page.evaluate(`[...document.querySelectorAll('#toolbar button, #toolbar select, #timeline button, #table td.name button')]
        .filter((control) => control.offsetParent && control.getBoundingClientRect().height < 32).map(({ id, textContent }) => id || textContent)`);
    checks.equal(small, [], 'what is pressed is as large as a finger');
    await picture('narrow');
    await page.evaluate(`document.getElementById('waits').scrollIntoView()`);
    await picture('narrow-waits');
    await page.setSize(1400, 1000);
}

await page.setSize(1400, 1000);
await page.goto(makePage('waits'));
await page.waitFor(`document.documentElement.dataset.ready === 'true'`);
await picture('waits');
await checkTables();
await checkLosses();
await checkDetail();
await checkKeys();
await checkClick();
await checkChoices();
await checkFunction();
await checkNarrow();
await page.setDark(true);
await page.evaluate(`window.scrollTo(0, 0); document.querySelector('#locks tbody button').click()`);
await picture('waits-dark');
checks.equal(page.errors, [], 'errors of the page');
await browser.close();
checks.end('report waits page');
