// SPDX-License-Identifier: Apache-2.0
// How the page puts what it computes: names, groups of threads, colours, callers, lines, and what is around a wait; without
// a browser.
import fs from 'node:fs';
import { Checks } from '../../../support/consumers/consumers.mjs';
import { expectedOf, pageModule, readPage } from './pages.mjs';

const { Activity } = await pageModule('activity');
const { aggregate, functionTable, weightsOf } = await pageModule('aggregate');
const { invert, linesOf, neighboursOf } = await pageModule('callers');
const { Colours } = await pageModule('colours');
const { flowsOf } = await pageModule('extras');
const { fitName, foldTemplates, nameParts } = await pageModule('names');
const { foldThreadName, groupThreads, processTree, workOf } = await pageModule('thread_groups');
const { windowAround } = await pageModule('timeline_view');
const { runAtOnce } = await pageModule('work');

const checks = new Checks();
const everything = (trace, id) =>
    ({ weight: weightsOf(trace).find((weight) => weight.id === id), process: -1, thread: -1, kind: -1, from: -Infinity, to: Infinity });

// ---- waits: those of the page are those of qut info

function checkBlocked({ trace }, expected, what) {
    const found = trace.threads.map(({ index }) => {
        const { first, count } = trace.intervals.threads[index], sum = (column) => column.subarray(first, first + count).reduce((a, b) => a + b, 0);
        const counted = trace.intervals.blocked.subarray(first, first + count).filter((ns) => ns > 0).length;
        return [index, sum(trace.intervals.blocked), counted, sum(trace.intervals.isOpen)];
    });
    checks.equal(found, expected.blocked, `${what}: blocked as qut info --blocked has it`);
}

function checkWindow() {
    const view = { from: 0, to: 10e9 }, width = 1200;
    const short = windowAround(5e9, 5e9 + 75, view, width), span = short.to - short.from;
    checks.ok(span >= 50000 && short.from < 5e9 && short.to > 5e9 + 75, `75 ns are shown in ${span} ns`);
    const usual = windowAround(5e9, 5e9 + 1e6, view, width);
    checks.ok(1e6 / (usual.to - usual.from) * width > 50 && usual.to - usual.from > 10e6, 'a millisecond, with what is around it');
    checks.equal(windowAround(5e9, 6e9, view, width), view, 'what is to be seen stays where it is');
    const long = windowAround(0, 9e9, { from: 1e9, to: 2e9 }, width);
    checks.ok(long.from <= 0 && long.to >= 9e9, 'all of a long one');
}

// A broadcast ends three waits: each has its release, none the wait before. What is handed on goes from each to the next.
function checkFlows() {
    const flows = (waits) => runAtOnce(flowsOf({ extras: { sample: [0, 1, 2, 3], key: [6, 6, 6, 6], low: [9, 9, 9, 9], high: [0, 0, 0, 0] },
        samples: { first: [10, 11, 12, 13] }, intervals: { durations: new Map(waits.map((sample) => [sample, 5])) } })).map(({ from, to }) => [from, to]);
    checks.equal(flows([1, 2, 3]), [[0, 1], [0, 2], [0, 3]], 'one release of many');
    checks.equal(flows([]), [[0, 1], [1, 2], [2, 3]], 'handed on');
}

// ---- names

function checkNames() {
    const vector = 'std::vector<std::map<int, int>, std::allocator<std::map<int, int> > >::push_back(std::map<int, int> const&)';
    checks.equal(foldTemplates(vector), 'std::vector<…>::push_back(std::map<…> const&)', 'templates are folded');
    for (const name of ['bool operator< (A const&, B)', 'std::ostream& operator<< (char)', 'A::operator->() const', 'f(int)', 'a->b', '<T as Trait>::f',
        'main::<lambda()>', 'foo::<impl Bar for Baz>::run', 'x < y', 'broken<', '']) {
        checks.equal(foldTemplates(name), name, 'no template');
    }
    checks.equal(['operator<< <char>(x)', 'operator< <int>()', 'std::operator==<char, A<int> >(b)', 'A<Bar>::operator->()'].map(foldTemplates),
        ['operator<< <…>(x)', 'operator< <…>()', 'std::operator==<…>(b)', 'A<…>::operator->()'], 'of operators');
    checks.equal(foldTemplates('<alloc::vec::Vec<T, A> as core::iter::Iterator>::next'), '<alloc::vec::Vec<…> as core::iter::Iterator>::next', 'in a path');
    for (let room = 0; room < 120; room++) {
        const fitted = fitName(vector, room);
        checks.ok(fitted.length <= room && (room < 3) === (fitted === ''), `${room} characters: ${fitted}`);
        checks.ok(room < 16 || fitted.includes('ack'), `the end stays at ${room}: ${fitted}`);
    }
    const [a, b] = ['alpha', 'omega'].map((end) => fitName(`a::rather::long::path::${'x'.repeat(300)}::${end}`, 30));
    checks.ok(a !== b && a.endsWith('alpha') && b.endsWith('omega'), `names that differ at their ends do so when cut: ${a}, ${b}`);
    checks.equal(nameParts(vector).join(''), foldTemplates(vector), 'all parts are all of it');
    checks.equal(nameParts('f(int)'), ['f', '', '(int)'], 'parameters are a part');
    checks.equal(nameParts('A::operator()(int) const'), ['A::operator()', '', '(int) const'], 'an operator is none');
}

// ---- threads and processes

function checkGroups() {
    checks.equal(['worker-12', 'io pool 3', 'main', '42', ''].map(foldThreadName), ['worker-*', 'io pool *', 'main', '42', ''], 'numbers at the end');
    const names = ['main', ...Array.from({ length: 200 }, (_, i) => `worker-${i}`), 'io-1', 'io-2'];
    const threads = names.map((name, index) => ({ index, name }));
    const work = threads.map(({ index }) => ({ cpu: index === 150 ? 9e9 : index === 0 ? 5e9 : 0, blocked: index === 7 ? 3e9 : index, samples: 1 }));
    const groups = groupThreads(threads, work);
    checks.equal(groups.map(({ name, threads: { length } }) => [name, length]), [['worker-*', 200], ['main', 1], ['io-2', 1], ['io-1', 1]], 'groups, by work');
    checks.equal(groups[0].threads.slice(0, 2).map(({ index }) => index), [150, 7], 'within them too: processor time, then blocked');
    checks.equal(groups[0].work.cpu, 9e9, 'a group has the work of all');
    const process = (pid, parent, startNs, index) => ({ pid, parent, startNs, index, threads: [{ index }] });
    const processes = [process(1, 0, 0, 0), process(2, 1, 1, 1), process(3, 1, 2, 2), process(4, 3, 3, 3), process(8, 9, 0, 4), process(9, 8, 0, 5)];
    const tree = processTree({ processes }, [1, 2, 3, 40, 0, 0].map((cpu) => ({ cpu, blocked: 0, samples: 1 })));
    checks.equal(tree.slice(0, 4).map(({ process: { pid }, depth }) => [pid, depth]), [[1, 0], [3, 1], [4, 2], [2, 1]], 'children below their parents, by work');
    checks.equal(tree.map(({ process: { pid } }) => pid).sort(), [1, 2, 3, 4, 8, 9], 'each once, also where parents go round');
    const hosts = [{ ...process(1, 0, 0, 0), recording: 0 }, { ...process(1, 0, 1, 1), recording: 1 }, { ...process(2, 1, 2, 2), recording: 0 }];
    const ofHosts = processTree({ processes: hosts }, [1, 2, 4].map((cpu) => ({ cpu, blocked: 0, samples: 1 })));
    checks.equal(ofHosts.map(({ process: { index }, depth }) => [index, depth]), [[0, 0], [2, 1], [1, 0]], 'a parent is of the same recording');
}

function checkActivity({ trace }, what) {
    const work = workOf(trace), length = trace.lengthNs * 1.5, count = 77;
    for (const thread of trace.threads) {
        const { cpu, blocked } = Activity.shares([runAtOnce(Activity.build(trace, thread))], 0, length, count);
        const sum = (shares) => shares.reduce((a, b) => a + b, 0) * length / count, close = (a, b) => Math.abs(a - b) <= 1e-6 * Math.max(a, b, 1);
        checks.ok(close(sum(cpu), work[thread.index].cpu), `${what}: the lane of ${thread.tid} has its processor time: ${sum(cpu)}, ${work[thread.index].cpu}`);
        checks.ok(close(sum(blocked), work[thread.index].blocked), `${what}: and its blocked time`);
    }
}

// ---- colours

const channels = (css) => css.match(/[0-9.]+/g).map(Number).map((value) => value / 255);
const linear = (value) => (value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4);
const luminance = (css) => channels(css).map(linear).reduce((sum, value, i) => sum + value * [0.2126, 0.7152, 0.0722][i], 0);
const contrast = (a, b) => (Math.max(luminance(a), luminance(b)) + 0.05) / (Math.min(luminance(a), luminance(b)) + 0.05);

// How far apart two colours look: the distance in OKLab; 0.02 is just seen.
function distance(a, b) {
    const lab = (css) => {
        const [red, green, blue] = channels(css).map(linear);
        const l = Math.cbrt(0.4122214708 * red + 0.5363325363 * green + 0.0514459929 * blue);
        const m = Math.cbrt(0.2119034982 * red + 0.6806995451 * green + 0.1073969566 * blue);
        const s = Math.cbrt(0.0883024619 * red + 0.2817188376 * green + 0.6299787005 * blue);
        return [0.2104542553 * l + 0.7936177850 * m - 0.0040720468 * s, 1.9779984951 * l - 2.4285922050 * m + 0.4505937099 * s,
            0.0259040371 * l + 0.7827717662 * m - 0.8086757660 * s];
    };
    const [one, other] = [lab(a), lab(b)];
    return Math.hypot(...one.map((value, i) => value - other[i]));
}

// The variables of the style sheet, of one theme.
function styleOf(isDark) {
    const css = fs.readFileSync(new URL('../../../../tracer/report/page/page.css', import.meta.url), 'utf8');
    const block = css.split(':root')[isDark ? 2 : 1];
    return new Map([...block.matchAll(/--([a-z-]+): #([0-9a-f]{6});/g)].map(([, name, hex]) => [name, `rgb(${hex.match(/../g).map((part) => parseInt(part, 16))})`]));
}

function checkColours() {
    const count = 12, names = ['', ...Array.from({ length: count }, (_, i) => `module-${i}.so`), '[kernel] write', '[kernel]', ...Array.from({ length: 40 }, (_, i) => `f${i}`)];
    const func = [0], module = [0], name = [0];
    for (let i = 0; i < 480; i++) { // 40 functions of each module
        func.push(func.length);
        module.push(1 + i % count);
        name.push(names.indexOf(`f${Math.floor(i / count)}`));
    }
    const kernel = func.push(func.length) - 1;
    module.push(names.indexOf('[kernel]'));
    name.push(names.indexOf('[kernel] write'));
    const interrupts = func.push(func.length) - 1;
    module.push(0);
    name.push(names.indexOf('[kernel]'));
    const text = (index) => names[index], zeroes = new Array(func.length).fill(0);
    const colours = new Colours({ strings: { text }, functions: { name, module }, frames: { count: func.length, func, cls: zeroes }, functionName: (id) => text(name[id]) });
    for (const isDark of [false, true]) {
        colours.setDark(isDark);
        const theme = isDark ? 'dark' : 'light', style = styleOf(isDark), modules = module.slice(1, 1 + count).map((one) => colours.module(one));
        const states = [...style].filter(([key]) => /^(running|wait-|quiet|gap)/.test(key));
        checks.ok(states.length >= 9, 'there are states');
        modules.push(colours.frame(kernel));
        checks.ok(distance(colours.module(names.indexOf('[kernel]')), colours.frame(kernel)) < 0.06, `${theme}: the kernel's swatch is its frames' colour`);
        checks.equal(colours.frame(interrupts), colours.frame(kernel), `${theme}: the kernel is one, named or not`);
        modules.forEach((one, i) => {
            modules.slice(0, i).forEach((other, j) => checks.ok(distance(one, other) > 0.045, `${theme}: modules ${i} and ${j}: ${distance(one, other)}`));
            states.forEach(([state, colour]) => checks.ok(distance(one, colour) > 0.07, `${theme}: module ${i} and ${state}: ${distance(one, colour)}`));
        });
        const least = Math.min(...func.slice(1).map((frame) => contrast(colours.frame(frame), style.get('box-ink'))));
        checks.ok(least >= 4.5, `${theme}: names on boxes: ${least}`);
        const ofModule = func.slice(1, 481).every((frame) => distance(colours.frame(frame), colours.module(module[frame])) < 0.06);
        checks.ok(ofModule, `${theme}: a function looks like its module`);
    }
}

// ---- callers, callees, lines, bottom up: against stacks taken apart one by one

function checkNeighbours({ trace, segments, repeats }, expected, what) {
    const { samples, frames } = trace, choice = everything(trace, 'samples'), sums = runAtOnce(aggregate(trace, segments, choice));
    const rows = runAtOnce(functionTable(trace, repeats, sums)), pairs = new Map();
    const add = (key, amount) => pairs.set(key, (pairs.get(key) || 0) + amount);
    for (let i = 0; i < samples.size; i++) {
        const path = [], calls = new Set();
        for (let at = samples.frame[i]; at !== 0; at = frames.parent[at]) {
            path.unshift(frames.func[at]);
        }
        path.forEach((func, depth) => {
            calls.add(depth === 0 ? `-1 ${func}` : `${path[depth - 1]} ${func}`);
            add(`first ${path.indexOf(func) === depth ? (depth ? path[depth - 1] : -1) : 'again'} ${func}`, samples.count[i]);
        });
        calls.forEach((call) => add(call, samples.count[i]));
    }
    let wrong = 0;
    for (const { func, self, total } of rows) {
        const found = runAtOnce(neighboursOf(trace, repeats, sums, func));
        wrong += found.self === self && found.total === total ? 0 : 1;
        wrong += found.callers.reduce((sum, { amount }) => sum + amount, 0) === total ? 0 : 1;
        found.callers.forEach(({ key, amount }) => { wrong += pairs.get(`first ${key} ${func}`) === amount ? 0 : 1; });
        found.callees.forEach(({ key, amount }) => { wrong += pairs.get(`${func} ${key}`) === amount ? 0 : 1; });
        wrong += found.callees.length === [...pairs.keys()].filter((key) => key.startsWith(`${func} `)).length ? 0 : 1;
    }
    checks.ok(wrong === 0 && (rows.length > 0 || samples.size === 0), `${what}: ${wrong} callers or callees are wrong`);
    const { frames: inverted, sums: turned } = runAtOnce(invert(trace, sums)), first = new Map();
    for (let i = 1; i < inverted.count; i++) {
        if (inverted.depth[i] === 1) {
            first.set(inverted.func[i], (first.get(inverted.func[i]) || 0) + turned.total[i]);
        }
        const children = [];
        for (let child = inverted.firstChild[i]; child !== 0; child = inverted.nextSibling[child]) {
            children.push(turned.total[child]);
        }
        checks.ok(children.reduce((a, b) => a + b, 0) <= turned.total[i] + 1e-6, `${what}: callers weigh no more than what they call`);
    }
    const wanted = rows.filter(({ self }) => self > sums.total[0] / 4000).map(({ func, self }) => [func, self]).sort((a, b) => a[0] - b[0]);
    checks.equal([...first].sort((a, b) => a[0] - b[0]), wanted, `${what}: bottom up begins with what stacks end in`);
    const lines = new Map();
    expected.lines.forEach(([name, line, count]) => lines.set(`${name}:${line}`, (lines.get(`${name}:${line}`) || 0) + count));
    const found = new Map();
    rows.forEach(({ func }) => runAtOnce(linesOf(trace, segments, choice, func)).forEach(({ key, amount }) => {
        found.set(`${trace.functionName(func)}:${key}`, (found.get(`${trace.functionName(func)}:${key}`) || 0) + amount);
    }));
    checks.equal([...found].sort(), [...lines].sort(), `${what}: lines`);
    return lines.size;
}

checkWindow();
checkFlows();
checkNames();
checkGroups();
checkColours();
let lines = 0;
for (const what of ['golden', 'empty', 'waits', 'noisy-5000']) {
    const page = await readPage(what), expected = expectedOf(what);
    checkBlocked(page, expected, what);
    checkActivity(page, what);
    lines += checkNeighbours(page, expected, what);
}
checks.ok(lines >= 3, `there are lines: ${lines}`);
checks.end('report views');
