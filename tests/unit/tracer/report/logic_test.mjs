// SPDX-License-Identifier: Apache-2.0
// What the page computes, without a browser: read from real pages, compared with what was found out without them.
import { Checks } from '../../../support/consumers/consumers.mjs';
import { expectedOf, pageModule, readPage } from './pages.mjs';

const { aggregate, countInRange, functionTable, matchedShare, searchFunctions, weightsOf } = await pageModule('aggregate');
const { CounterRows, describeCounter, formatSigned, signedValue, valueAt } = await pageModule('counters');
const { allocatedBytes, extrasOf, flowsOf } = await pageModule('extras');
const { formatAmount, formatBytes, formatCount, formatError, formatMoment, formatShare, formatSureShare, formatTime } = await pageModule('format');
const { Certainty, WeightSums } = await pageModule('certainty');
const { exactTotal, hotSpots } = await pageModule('hot_spots');
const { layoutFlame, REST } = await pageModule('flame_layout');
const { buildSegments, hasStack, slicesOf, BLOCKED, OVERWRITTEN, LOST } = await pageModule('segments');
const { Pyramid, segmentAt, slicesOfSteps, stepsOf } = await pageModule('timeline_layout');
const { instantNear } = await pageModule('marks');
const { groupWaits, innermost, releasesOf, ThreadFinder } = await pageModule('waits');
const { runAtOnce } = await pageModule('work');

const checks = new Checks();
const everything = (trace, id) =>
    ({ weight: weightsOf(trace).find((weight) => weight.id === id), process: -1, thread: -1, kind: -1, from: -Infinity, to: Infinity });

function tableOf({ trace, segments, repeats }, choice) {
    const sums = runAtOnce(aggregate(trace, segments, choice));
    return { sums, rows: runAtOnce(functionTable(trace, repeats, sums)) };
}

// ---- sums

function checkSums(page, expected, what) {
    const { trace } = page, { sums, rows } = tableOf(page, everything(trace, 'samples'));
    checks.equal(sums.total[0], expected.samples, `${what}: samples`);
    const found = rows.map(({ func, self, total }) => [trace.functionName(func), self, total]);
    // The page shows control characters as signs.
    const wanted = expected.functions.map(([name, self, total]) => [name.replace(/[\u0000-\u001f]/g, '\ufffd'), self, total]);
    const order = (a, b) => (a.join() < b.join() ? -1 : 1);
    checks.equal(found.sort(order), wanted.sort(order), `${what}: functions`);
}

// A range and what is outside of it are all; so are threads, and kinds.
function checkParts(page, what) {
    const { trace } = page;
    for (const { id } of weightsOf(trace)) {
        const all = everything(trace, id), sum = (choice) => tableOf(page, { ...all, ...choice }).sums.total[0];
        const close = (a, b) => Math.abs(a - b) <= 1e-9 * Math.max(a, b, 1);
        const third = trace.lengthNs / 3;
        checks.ok(close(sum({ to: third }) + sum({ from: third }), sum({})), `${what}: ${id} of two ranges`);
        const threads = trace.threads.reduce((value, { index }) => value + sum({ thread: index }), 0);
        checks.ok(close(threads, sum({})), `${what}: ${id} of the threads: ${threads}, ${sum({})}`);
        const kinds = [...trace.kinds.keys()].reduce((value, kind) => value + sum({ kind }), 0);
        checks.ok(close(kinds, sum({})), `${what}: ${id} of the kinds`);
    }
}

// ---- slices: as tracer/export/slices.c tells them

function checkSlices({ trace, segments }, expected, what) {
    const wanted = [], open = new Map();
    for (const [thread, isEnter, time, func] of expected.events) {
        if (!open.has(thread)) {
            open.set(thread, []);
        }
        const stack = open.get(thread);
        if (isEnter) {
            stack.push([thread, time, func]);
        } else {
            const [, from, itsFunc] = stack.pop();
            wanted.push([thread, from, time, itsFunc, stack.length + 1]);
            checks.ok(itsFunc === func, `${what}: slices nest`);
        }
    }
    const found = [];
    segments.forEach((ofThread, thread) => {
        for (const { from, to, frame, depth } of slicesOf(trace, ofThread)) {
            found.push([thread, from, to, trace.frames.func[frame], depth]);
        }
    });
    const long = (slices) => slices.filter(([, from, to]) => to > from).map((slice) => slice.join()).sort();
    const a = long(found), b = long(wanted);
    checks.ok(b.length > 0 || expected.records === 0, `${what}: there are slices`);
    checks.equal(a.length, b.length, `${what}: number of slices`);
    const different = a.findIndex((slice, i) => slice !== b[i]);
    checks.ok(different < 0, `${what}: slices: ${a[different]} instead of ${b[different]} (thread, from, to, function, depth)`);
}

// What is drawn of any window is a part of these: each drawn slice that is wide enough is a whole one, cut by the window
// only.
function checkLevels({ trace, segments }, what) {
    const thread = segments.findIndex(({ count }) => count > 4), ofThread = segments[thread];
    if (thread < 0) {
        return;
    }
    const pyramid = runAtOnce(Pyramid.build(ofThread)), whole = new Set();
    for (const { from, to, frame, depth } of slicesOf(trace, ofThread)) {
        whole.add(`${depth} ${frame} ${from} ${to}`);
    }
    const end = ofThread.start[ofThread.count], width = 1000;
    for (const share of [1, 0.3, 0.01]) {
        const from = end * (1 - share) / 2, to = from + end * share;
        const steps = stepsOf(ofThread, pyramid, from, to, width);
        let last = 0, isInOrder = true;
        for (const { left, right } of steps) {
            isInOrder = isInOrder && left >= last - 1e-6 && right > left && right <= width + 1e-6;
            last = right;
        }
        checks.ok(isInOrder, `${what}: steps go from left to right`);
        let drawn = 0, wrong = 0;
        slicesOfSteps(trace.frames, ofThread, pyramid, steps, Infinity, (frame, depth, left, right) => {
            drawn++;
            const time = (x) => from + x * (to - from) / width;
            // Of one that is wider than some pixels: somewhere in its middle this slice is there, over its width.
            if (right - left < 4) {
                return;
            }
            const middle = segmentAt(ofThread, time((left + right) / 2));
            const isThere = [time(left + 1.5), time(right - 1.5)].every((at) => {
                const segment = segmentAt(ofThread, at);
                const [low, high] = [Math.min(segment, middle), Math.max(segment, middle)];
                return pyramid.leastCommon(low + 1, high + 1) >= depth;
            });
            let itsFrame = ofThread.frame[middle];
            while (trace.frames.depth[itsFrame] > depth) {
                itsFrame = trace.frames.parent[itsFrame];
            }
            wrong += isThere && itsFrame === frame ? 0 : 1;
        });
        checks.ok((drawn > 0 || share < 1) && wrong === 0, `${what}: ${wrong} of ${drawn} drawn slices are none`);
    }
}

function checkPyramid() {
    const count = 5000, common = new Uint32Array(count), start = new Float64Array(count + 1);
    for (let i = 0, state = 1; i < count; i++) {
        state = Math.imul(state, 1103515245) + 12345 >>> 0;
        common[i] = state >>> 20;
        start[i + 1] = start[i] + (state >>> 8) % 1000;
    }
    const pyramid = runAtOnce(Pyramid.build({ count, common, start }));
    for (const [from, to] of [[0, count], [0, 1], [17, 18], [3, 4999], [16, 256], [255, 257], [1000, 3000], [4990, 5000]]) {
        checks.equal(pyramid.leastCommon(from, to), Math.min(...common.subarray(from, to)), `least in ${from}..${to}`);
        let longest = from;
        for (let i = from; i < to; i++) {
            longest = start[i + 1] - start[i] > start[longest + 1] - start[longest] ? i : longest;
        }
        checks.equal(pyramid.longestOf(from, to), longest, `longest in ${from}..${to}`);
    }
}

// ---- the flame graph's boxes

function checkFlame(page, what) {
    const { trace } = page, { sums } = tableOf(page, everything(trace, 'samples')), width = 1200;
    const layout = layoutFlame(trace.frames, sums.total, 0, width);
    let wrong = 0;
    for (let row = 0; row < layout.rowCount; row++) {
        for (let box = layout.rows[row]; box < layout.rows[row + 1]; box++) {
            const frame = layout.frame[box], parent = layout.parent[box];
            const inside = parent < 0 || (layout.left[box] >= layout.left[parent] - 1e-6 && layout.right[box] <= layout.right[parent] + 1e-6);
            const apart = box === layout.rows[row] || layout.left[box] >= layout.right[box - 1] - 1e-6;
            const exact = frame === REST || sums.total[0] === 0 ||
                Math.abs((layout.right[box] - layout.left[box]) - width * sums.total[frame] / sums.total[0]) < 1e-6;
            const below = frame === REST || trace.frames.depth[frame] === row;
            wrong += inside && apart && exact && below ? 0 : 1;
        }
    }
    checks.equal(wrong, 0, `${what}: boxes that lie wrong`);
    // Zoomed: the frame and those outside of it fill the width.
    const deep = trace.frames.count - 1, zoomed = layoutFlame(trace.frames, sums.total, deep, width);
    checks.equal(zoomed.frame[zoomed.rootBox], deep, `${what}: zoomed to the frame`);
    checks.equal(zoomed.rowOf(zoomed.rootBox), trace.frames.depth[deep], `${what}: in its row`);
    checks.ok(zoomed.right[zoomed.rootBox] === width && zoomed.left[0] === 0, `${what}: which it fills`);
    // Keys: in and out again, right and left again.
    const inner = layout.neighbour(0, 'in');
    if (sums.total[0] > 0) {
        checks.equal(layout.neighbour(inner, 'out'), 0, `${what}: in and out`);
        checks.equal(layout.at(1, layout.left[inner] + 0.1), inner, `${what}: found by its place`);
        const right = layout.neighbour(inner, 'right');
        checks.ok(right < 0 || layout.neighbour(right, 'left') === inner, `${what}: right and left`);
    }
}

// ---- the golden trace by heart

function checkGolden(page) {
    const { trace, segments } = page, table = (id) => tableOf(page, everything(trace, id));
    checks.equal(trace.threads.map(({ tid, name }) => [tid, name]),
        [[4242, 'main'], [4243, 'w"<b>;\ufffd\\ork'], [4194303, ''], [4245, 'idle']], 'threads');
    checks.equal(table('allocated').sums.total[0], (8192 << 4) - 8192, 'allocated bytes');
    checks.equal(table('allocations').sums.total[0], 4, 'allocations');
    // Sizes of allocations say the same, but for the first, before which there is nothing to grow from.
    checks.equal(runAtOnce(allocatedBytes(trace.extras, trace.samples)).reduce((a, b) => a + b), 4096 * 31, 'allocated bytes by size');
    // The worker waited 30 ms for the lock, up to 131 ms; the flow comes from the release at 130 ms.
    const worker = segments[1], waiting = segmentAt(worker, 115e6);
    checks.equal(worker.state[waiting], BLOCKED, 'blocked at 115 ms');
    checks.equal([worker.start[waiting], worker.start[waiting + 1]], [101e6, 131e6], 'from when to when');
    const flows = runAtOnce(flowsOf(trace));
    checks.equal(flows.map(({ from, to }) => [trace.samples.first[from], trace.samples.first[to]]), [[130e6, 131e6]], 'the flow');
    checks.equal(worker.state[segmentAt(worker, 180e6)], LOST, 'lost at 180 ms');
    checks.equal(segments[2].state[segmentAt(segments[2], 400e6)], OVERWRITTEN, 'overwritten at 400 ms');
    checks.ok(!hasStack(segments[0].state[segmentAt(segments[0], 600e6)]), 'nothing is known of main at 600 ms');
    // Three requests: their marks cut, what has the same stack does not go on.
    const cuts = slicesOf(trace, segments[0]).filter(({ from, to, depth }) => depth === 1 && from >= 40e6 && to <= 70e6 && to > from);
    checks.ok(cuts.length >= 5, `marks cut: ${cuts.length} slices`);
    const mutex = [...Array(trace.functions.name.length).keys()].find((func) => trace.functionName(func) === 'pthread_mutex_lock');
    checks.equal(table('time').rows.find(({ func }) => func === mutex).self >= 30e6, true, 'the wait counts for the lock');
    // Its extras, by the sample.
    const [from, to] = extrasOf(trace.extras, flows[0].to);
    checks.equal([...trace.extras.key.slice(from, to)], [1, 2, 3, 4, 6], 'extras of the wait');
}

function checkMarks({ trace }) {
    const [main, worker] = trace.threads, rows = new CounterRows(trace, main), [queue] = rows.counters;
    checks.equal(rows.counters.map(({ name, time, value }) => [name, time, value]), [['queue', [80e6, 81e6, 82e6], [3, 2 ** 62, 5]]], 'a counter');
    checks.equal([79e6, 80e6, 81.5e6, 900e6].map((time) => valueAt(queue, time)), [-1, 0, 1, 2], 'its value at a time');
    checks.equal([signedValue(2 ** 32 - 5, 2 ** 32 - 1), signedValue(5, 0), formatSigned(-1234)], [-5, 5, '−1,234'], 'signs');
    const at = (time) => rows.at(time, 10, false);
    checks.equal([at(70e6), at(81.5e6)], [{ name: 'queue' }, { name: 'queue', value: 2 ** 62, from: 81e6, to: 82e6 }], 'what is pointed at');
    checks.equal(at(500e6).to, trace.lengthNs, 'the last value holds to the end');
    checks.equal([rows.at(81e6, -1, false), rows.at(81e6, rows.height(false), false)], [null, null], 'above and below is nothing');
    checks.equal(describeCounter(trace, at(80.5e6)).heading, 'queue: 3', 'in words');
    checks.equal(new CounterRows(trace, worker).height(true), 0, 'without counters there is no room for them');
    const instant = (time) => instantNear(trace, main, time, 1e6);
    checks.equal([instant(75.5e6), instant(77e6)], [{ text: 'instant', time: 75e6 }, null], 'an instant that is pointed at');
}

function checkSearch(page) {
    const { trace } = page, { sums } = tableOf(page, everything(trace, 'samples'));
    const share = (query) => {
        const matches = runAtOnce(searchFunctions(trace, query));
        return matches && matchedShare(trace, sums.total, matches);
    };
    checks.equal(share('MAIN'), { sum: 120, count: 1 }, 'search, capitals or not');
    checks.equal(share('/^a$/'), { sum: 75, count: 1 }, 'search by expression; a in a counts once');
    checks.equal(share('libgolden').sum, 6, 'search by module');
    checks.equal(share('nowhere to be found'), { sum: 0, count: 0 }, 'search without result');
    checks.equal(share('/(/'), null, 'search by no expression');
    checks.equal(share(''), null, 'no search');
}

// ---- waits, as tests/unit/tracer/report/traces.h tells them

function checkWaits(page) {
    const { trace, segments } = page, ms = 1e6, all = everything(trace, 'blocked');
    const threadOf = (tid) => trace.threads.find((thread) => thread.tid === tid);
    checks.equal(trace.processes.map(({ pid, parent, command, threads }) => [pid, parent, command, threads.length]),
        [[100, 0, '/usr/bin/server --threads 2', 3], [200, 100, '/bin/gzip -9', 1]], 'processes');
    const blocked = (choice) => tableOf(page, { ...all, ...choice }).sums.total[0] / ms;
    checks.equal([100, 101, 102, 200].map((tid) => blocked({ thread: threadOf(tid).index })), [2090, 56, 51 + 2300, 100], 'blocked time of each thread');
    checks.equal([blocked({ process: 0 }), blocked({ process: 1 })], [4497, 100], 'of each process');
    checks.equal(blocked({ from: 1000 * ms, to: 1550 * ms }), 550 + 550 + 50, 'of a range');
    const byName = (id) => new Map(tableOf(page, everything(trace, id)).rows.map(({ func, self }) => [trace.functionName(func), self]));
    checks.equal(byName('blocked').get('read'), 2000 * ms, 'two seconds in read');
    // Allocations between ticks take no processor time away from these.
    const cpu = byName('cpu');
    checks.equal([cpu.get('malloc'), cpu.get('parse'), cpu.get('deflate')].map((ns) => ns || 0), [0, 13.5 * ms, 49 * ms], 'processor time is that of ticks');
    checks.equal(cpu.get('pthread_mutex_lock'), 0.5 * ms, 'and of intervals whose beginning was seen');
    checks.equal(byName('wall').get('read') + byName('wall').get('parse'), 2013.5 * ms, 'processor and blocked time');
    const { locks, calls } = runAtOnce(groupWaits(trace, all));
    checks.equal(locks.map(({ lock, waiter, owner, waker, count, total, longestTime }) => [lock, waiter.tid, owner, waker, count, total / ms, longestTime / ms]),
        [['0x5000', 102, 101, 101, 10, 51, 6], ['queue_ready', 101, 0, 100, 1, 50, 50], ['0x5000', 101, 102, 102, 3, 6, 2]], 'who waits for whom');
    checks.equal(calls.map(({ func, count, open, total }) => [trace.functionName(func), count, open, total / ms]),
        [['nanosleep', 1, 1, 2300], ['read', 1, 0, 2000], ['write', 1, 0, 100], ['epoll_wait', 1, 0, 90], ['pthread_mutex_lock', 13, 0, 57],
            ['pthread_cond_wait', 1, 0, 50]], 'blocked in');
    const releases = releasesOf(runAtOnce(flowsOf(trace))), names = (sample) => innermost(trace, trace.samples.frame[sample], 2)
        .map((frame) => trace.functionName(trace.frames.func[frame]));
    checks.equal(locks.map(({ longest }) => names(releases.get(trace.intervals.sample[longest]))),
        [['pthread_mutex_unlock', 'update'], ['pthread_cond_signal', 'queue_push'], ['pthread_mutex_unlock', 'update']], 'stacks of the releases');
    checks.ok(locks.every(({ members }) => members.every((sample) => {
        const time = trace.samples.first[sample] - trace.samples.first[releases.get(sample)];
        return time >= 0 && time < 1.2 * ms;
    })), 'each wait has its own release');
    const sleeper = segments[threadOf(102).index], at = segmentAt(sleeper, 2000 * ms);
    checks.equal([sleeper.state[at], sleeper.start[at] / ms, sleeper.start[at + 1] / ms], [BLOCKED, 700, 3000], 'what has no end lasts');
    checks.equal(new ThreadFinder(trace).find(0, 101, 0).name, 'worker-a', 'a thread by its tid');
    checks.equal(new ThreadFinder(trace).find(1, 101, 0), null, 'in its process only');
}

function checkHotSpots({ trace, segments }) {
    const weight = (id) => weightsOf(trace).find((one) => one.id === id), all = everything(trace, 'samples');
    const { rows, all: sum } = runAtOnce(hotSpots(trace, segments, all, weight('allocated'), weight('allocations')));
    checks.equal([sum, rows.map(({ amount, beside }) => [amount, beside])], [9 * 2 ** 20, [[5 * 2 ** 20, 500], [4 * 2 ** 20, 400]]], 'who allocates');
    checks.equal(runAtOnce(hotSpots(trace, segments, all, weight('faults'), null)).all, 9 * 256, 'who faults');
    checks.equal(exactTotal(trace, all, 'allocations'), 1007, 'exact totals');
    checks.equal([0, 1].map((process) => exactTotal(trace, { ...all, process }, 'allocated-bytes')), [10 * 2 ** 20, 70000], 'of each process');
    checks.equal(exactTotal(trace, { ...all, thread: 3 }, 'allocations'), 7, 'of a thread');
}

// [weight, count] of each clock's samples.
function certaintyOf(...clocks) {
    const [fine, coarse] = clocks.map(([each, count]) => {
        const sums = new WeightSums();
        sums.add(each || 0, count || 0);
        return sums;
    });
    return new Certainty(fine, coarse, 0);
}

// 10,000 rounds of n samples of a share: how often it lies within what is said.
function checkError() {
    let state = 12345, inside = 0;
    const random = () => { // splitmix, of 32 bits
        state = state + 0x9e3779b9 >>> 0;
        let mixed = Math.imul(state ^ state >>> 16, 0x21f0aaad);
        mixed = Math.imul(mixed ^ mixed >>> 15, 0x735a2d97);
        return ((mixed ^ mixed >>> 15) >>> 0) / 2 ** 32;
    };
    const share = 0.3, samples = 400, rounds = 10000, certainty = certaintyOf([1, samples], []);
    for (let round = 0; round < rounds; round++) {
        let hits = 0;
        for (let i = 0; i < samples; i++) {
            hits += random() < share ? 1 : 0;
        }
        const error = Number(formatError(hits, samples, certainty).slice(1));
        inside += Math.abs(100 * hits / samples - 100 * share) <= error + 0.05 ? 1 : 0;
    }
    checks.ok(inside > 0.935 * rounds && inside < 0.97 * rounds, `the error is kept by ${inside} of ${rounds}`);
    checks.equal([formatSureShare(25, 100, certaintyOf([1, 100], [])), formatSureShare(1, 4, null), formatSureShare(100, 100, certaintyOf([1, 100], []))],
        ['25.0 % ±8.5', '25.0 %', '100.0 %'], 'shares');
    // As the unit test of analysis_share_error has it: 1000 looks that met the kernel 200 times, and many fine ticks.
    const two = certaintyOf([1e-9, 8e11], [1, 200]), chance = 1.96 * Math.sqrt(0.2 * 0.8 / 1000);
    const near = (error, wanted) => Math.abs(error - wanted) < 1e-5;
    checks.ok(near(two.errorOf(200, 200), chance) && near(two.errorOf(800, 0), chance) && near(two.errorOf(1000, 200), 0) &&
        near(two.errorOf(400, 0), chance / 2) && near(two.errorOf(100, 100), 1.96 * Math.sqrt(0.1 * 0.9 / 1000)), 'two clocks');
    checks.ok(two.errorOf(100) >= two.errorOf(100, 100) && two.errorOf(100) >= two.errorOf(100, 0), 'at least, where it is not known');
}

// ---- small things

function checkFormats() {
    checks.equal([0, 999, 1000, 1234567].map(formatCount), ['0', '999', '1,000', '1,234,567'], 'counts');
    checks.equal([0, 1, 999, 1500, 2.5e6, 3e9, 123.4e9].map(formatTime), ['0 ns', '1 ns', '999 ns', '1.50 µs', '2.50 ms', '3 s', '123 s'], 'times');
    checks.equal([0, 1023, 1536, 5 * 2 ** 30].map(formatBytes), ['0 B', '1,023 B', '1.50 KiB', '5 GiB'], 'bytes');
    checks.equal([formatShare(1, 3), formatShare(0, 5), formatShare(5, 5), formatShare(0, 0)], ['33.3 %', '0.0 %', '100.0 %', '–'], 'shares');
    checks.equal([formatMoment(1.5e9, 5e8, 3e9), formatMoment(2e6, 1e6, 5e6)], ['1.5 s', '2 ms'], 'moments');
    checks.equal(formatAmount(1500, 'ns'), '1.50 µs', 'amounts');
    checks.equal(countInRange(10, 19, 10, 10, 20), 10, 'all of a run');
    checks.equal(countInRange(10, 19, 10, 0, 15), 5, 'the first part of a run');
    checks.equal(countInRange(10, 19, 10, 15, 100), 5, 'the rest of it');
    checks.equal(countInRange(10, 10, 1, 10, 11), 1, 'one sample');
    checks.equal(countInRange(10, 10, 1, 5, 10), 0, 'one behind the range');
}

for (const what of ['golden', 'empty', 'waits', '20000', 'noisy-5000']) {
    const page = await readPage(what), expected = expectedOf(what);
    checkSums(page, expected, what);
    checkParts(page, what);
    checkSlices(page, expected, what);
    checkLevels(page, what);
    checkFlame(page, what);
    if (what === 'golden') {
        checkGolden(page);
        checkMarks(page);
        checkSearch(page);
    } else if (what === 'waits') {
        checkWaits(page);
        checkHotSpots(page);
    }
}
checkError();
checkPyramid();
checkFormats();
checks.end('report logic');
