// SPDX-License-Identifier: Apache-2.0
// The golden trace in the formats of others, read by those others: the programs themselves count its samples, name its
// functions, and find nothing wrong with the files.
//
//     node formats_test.mjs GOLDEN_EXPORT [--screenshots DIR] [speedscope|pprof|perfetto|firefox|callgrind]...
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { Browser } from '../../support/consumers/browser.mjs';
import { Checks, consumerFile, findProgram, skip } from '../../support/consumers/consumers.mjs';
import { complaints, openTrace } from '../../support/consumers/trace_processor.mjs';

const [goldenExport, ...words] = process.argv.slice(2);
const shots = words[0] === '--screenshots' ? words.splice(0, 2)[1] : null;
const all = ['speedscope', 'pprof', 'perfetto', 'firefox', 'callgrind'];
const wanted = words.length ? words : all;
const checks = new Checks();
const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'qut-formats-'));
process.on('exit', () => fs.rmSync(folder, { recursive: true, force: true }));

const names = { speedscope: '.speedscope.json', pprof: '.pb.gz', collapsed: '.collapsed.txt', chrome: '.trace.json',
    'perf-script': '.perf.txt', firefox: '.firefox.json', callgrind: '.callgrind.out', truth: '.truth' };
function exported(format, ...options) {
    const file = path.join(folder, 'golden' + options.join('') + names[format]);
    execFileSync(goldenExport, [format, file, ...options]);
    return file;
}

const truth = fs.readFileSync(exported('truth'), 'utf8').trimEnd().split('\n').map((line) => JSON.parse(line));
const samples = truth.filter((record) => record.what === 'sample');
const threads = new Map(truth.filter((record) => record.what === 'thread')
    .map((thread) => [thread.tid, thread.name || `thread ${thread.tid}`]));
const sampleCount = samples.reduce((sum, sample) => sum + sample.count, 0);
const clean = (name) => (name || '[no name]').replace(/[\0-\x1f\x7f]/g, ' ');

// Weights by stack, outermost first, as a sorted list: comparable.
class Stacks {
    sums = new Map();
    add(stack, weight) {
        const key = JSON.stringify(stack);
        if (weight)
            this.sums.set(key, (this.sums.get(key) || 0) + weight);
    }
    list() {
        return [...this.sums].sort((a, b) => (a[0] < b[0] ? -1 : 1));
    }
}

function truthStacks(nameOf, frameOf = clean) {
    const stacks = new Stacks();
    for (const sample of samples)
        stacks.add([...nameOf(sample), ...sample.stack.map(frameOf).reverse()], sample.count);
    return stacks;
}

function expectSame(found, expected, what, tolerance = 0) {
    const a = new Map(found.list()), b = new Map(expected.list());
    checks.ok(b.size > 0, `${what}: there is something to compare`);
    for (const key of new Set([...a.keys(), ...b.keys()]))
        checks.ok(Math.abs((a.get(key) || 0) - (b.get(key) || 0)) <= 1e-6 * (b.get(key) || 1) + tolerance,
            `${what}: ${key.slice(0, 200)}: ${a.get(key)} instead of ${b.get(key)}`);
}

// ---- speedscope: its page, which is made to export what it has read

function replay(profile, frames, unit = 1) {
    const stacks = new Stacks(), open = [];
    let before = 0;
    for (const event of profile.events) {
        stacks.add(open.map((frame) => frames[frame].name), (event.at - before) * unit);
        before = event.at;
        if (event.type === 'O')
            open.push(event.frame);
        else
            checks.equal(open.pop(), event.frame, 'speedscope: what is left was entered last');
    }
    checks.equal(open.length, 0, 'speedscope: all is left in the end');
    stacks.sums.delete('[]');
    return stacks;
}

async function inSpeedscope(browser, file) {
    const page = await browser.page();
    await page.goto(consumerFile('speedscope', 'dist/release/index.html'));
    await page.waitFor('document.querySelector("input[type=file]")');
    await page.evaluate(`window.saved = []; const create = URL.createObjectURL;
        URL.createObjectURL = (blob) => { saved.push(blob); return create.call(URL, blob); }; 1`);
    await page.setFile('input[type=file]', file);
    await page.waitFor('document.body.innerText.includes("Sandwich")');
    await page.evaluate(`[...document.querySelectorAll("*")].filter((e) => /Export/.test(e.innerText || "")).pop().click()`);
    await page.waitFor('saved.length > 0');
    if (shots)
        await page.screenshot(path.join(shots, path.basename(file) + '.png'));
    const read = JSON.parse(await page.evaluate('saved[0].text()'));
    const what = path.basename(file);
    checks.equal(page.errors, [], `speedscope: errors with ${what}`);
    checks.equal(page.requests.filter((url) => !url.startsWith('file:')), [], `speedscope: requests with ${what}`);
    return read;
}

async function speedscope() {
    const browser = await Browser.start();
    const withSamples = [...threads.keys()].filter((tid) => samples.some((sample) => sample.tid === tid));

    // By weight: all stacks and counts.
    const ours = await inSpeedscope(browser, exported('speedscope', '--weight', '0'));
    checks.equal(ours.profiles.length, withSamples.length, 'speedscope: profiles');
    const found = new Stacks();
    ours.profiles.forEach((profile, index) => {
        for (const [stack, weight] of replay(profile, ours.shared.frames).sums)
            found.add([withSamples[index], ...JSON.parse(stack)], weight);
    });
    const expected = truthStacks((sample) => [sample.tid], (name) => name || '[no name]');
    expected.sums.delete(JSON.stringify([4243])); // a sample without frames
    expectSame(found, expected, 'speedscope');

    // By time: what it has read is what stands in the file.
    const file = exported('speedscope');
    const timed = await inSpeedscope(browser, file), written = JSON.parse(fs.readFileSync(file, 'utf8'));
    const times = written.profiles.map((profile) => replay(profile, written.shared.frames));
    timed.profiles.forEach((profile, index) => {
        checks.equal(profile.name, written.profiles[index].name, 'speedscope: name of a profile');
        expectSame(replay(profile, timed.shared.frames), times[index], `speedscope, time of ${profile.name}`);
    });

    // The same slices as Chrome's events, with requests around them.
    const requests = new Set(truth.filter((record) => record.what === 'mark' && record.kind === 1)
        .map((mark) => mark.name));
    const chrome = await inSpeedscope(browser, exported('chrome'));
    checks.equal(chrome.profiles.length, times.length, 'speedscope: threads of Chrome events');
    chrome.profiles.forEach((profile, index) => {
        const stacks = new Stacks();
        for (const [text, weight] of replay(profile, chrome.shared.frames, 1000).sums) {
            const stack = JSON.parse(text).map((name) => name.replace(/ \{"id":\d+\}$/, ''));
            // The labels of the golden trace have a "request" too, which stands around "parse".
            if (requests.has(stack[0]) && stack[1] !== 'parse')
                stack.shift();
            if (stack.length)
                stacks.add(stack, weight);
        }
        expectSame(stacks, times[index], `speedscope, Chrome events of ${profile.name}`,
            100); // a nanosecond lies between an end and a beginning
    });

    const collapsed = await inSpeedscope(browser, exported('collapsed'));
    expectSame(replay(collapsed.profiles[0], collapsed.shared.frames),
        truthStacks((sample) => [clean(threads.get(sample.tid)).replaceAll(';', ':')],
            (name) => clean(name).replaceAll(';', ':')), 'speedscope, collapsed');

    const pprof = await inSpeedscope(browser, exported('pprof'));
    // Of functions inlined into each other it shows the outermost one.
    const fromPprof = truthStacks(() => [], (name) => name || '[no name]');
    const inlined = JSON.stringify(['_start', 'main', 'a', 'outer', 'middle', 'inner']);
    fromPprof.add(['_start', 'main', 'a', 'outer'], fromPprof.sums.get(inlined));
    fromPprof.sums.delete(inlined);
    fromPprof.add(['[no frames]'], fromPprof.sums.get('[]'));
    fromPprof.sums.delete('[]');
    expectSame(replay(pprof.profiles[0], pprof.shared.frames), fromPprof, 'speedscope, pprof');

    // perf script has times, no weights: threads and functions. An address behind a name is not shown.
    const perf = await inSpeedscope(browser, exported('perf-script'));
    checks.equal(perf.profiles.map((profile) => profile.name).sort(), withSamples.map((tid) =>
        `${clean(threads.get(tid)).replaceAll(' ', '_')} pid: 4242 tid: ${tid}`).sort(), 'speedscope, perf script: threads');
    const functions = new Set(samples.flatMap((sample) => sample.stack.length ? sample.stack : ['[no frames]'])
        .map((name) => clean(name).replace(/\+0x[\da-f]+$/, '')));
    checks.equal([...new Set(perf.shared.frames.map((frame) => frame.name))].sort(), [...functions].sort(),
        'speedscope, perf script: functions');
    await browser.close();
}

// ---- go tool pprof

function findPprof() {
    for (const root of fs.existsSync('/usr/lib') ? fs.readdirSync('/usr/lib').filter((name) => /^go-/.test(name)) : [])
        for (const tools of fs.readdirSync(path.join('/usr/lib', root, 'pkg/tool'), { withFileTypes: true }))
            if (tools.isDirectory() && fs.existsSync(path.join('/usr/lib', root, 'pkg/tool', tools.name, 'pprof')))
                return path.join('/usr/lib', root, 'pkg/tool', tools.name, 'pprof');
    return findProgram('pprof');
}

function pprof() {
    const program = findPprof();
    if (!program)
        skip('go tool pprof is not installed');
    const file = exported('pprof');
    const run = (...options) => execFileSync(program, [...options, file],
        { encoding: 'utf8', env: { ...process.env, HOME: folder }, stdio: ['ignore', 'pipe', 'ignore'] });
    const raw = run('-raw');
    const [, body] = raw.split('\nSamples:\n');
    const [sampleText, rest] = body.split('\nLocations\n');
    const [locationText, mappingText] = rest.split('\nMappings\n');
    const locations = new Map();
    let last;
    for (const line of locationText.split('\n')) {
        // "     1: 0x555500001100 M=2 _start golden:0 s=0", and further functions of it below
        const match = /^ *(\d+): 0x[0-9a-f]+ (?:M=\d+ )?(.*) \S*:\d+ s=\d+(?:\(.*\))?$/.exec(line);
        const more = /^ {2,}(.*) \S*:\d+ s=\d+(?:\(.*\))?$/.exec(line);
        if (match)
            locations.set(match[1], last = [match[2]]);
        else if (more)
            last.push(more[1].trimStart());
    }
    let sum = 0;
    const byLeaf = new Map();
    for (const line of sampleText.split('\n')) {
        const match = /^ *(\d+)(?: +\d+)+: ([\d ]+)$/.exec(line);
        if (!match)
            continue;
        sum += Number(match[1]);
        const leaf = locations.get(match[2].split(' ')[0])?.[0];
        byLeaf.set(leaf, (byLeaf.get(leaf) || 0) + Number(match[1]));
    }
    checks.equal(sum, sampleCount, 'pprof -raw: samples');
    for (const name of ['a', 'main', 'inner', 'parse', 'on_signal', '[no frames]'])
        checks.equal(byLeaf.get(name), samples.filter((sample) => (sample.stack[0] ?? '[no frames]') === name)
            .reduce((count, sample) => count + sample.count, 0), `pprof -raw: samples in ${name}`);
    checks.ok(/^Comment: 135 of 303 samples are missing$/m.test(raw), 'pprof -raw: losses');
    checks.ok(/golden b0b1b2b3/.test(mappingText), 'pprof -raw: build-id');
    const top = run('-top', '-sample_index=samples', '-nodecount=1000', '-nodefraction=0');
    checks.ok(top.includes(`Total samples = ${sampleCount}`), 'pprof -top: samples');
    checks.ok(/^ +36 .* a$/m.test(run('-top', '-sample_index=samples', '-tagfocus=main', '-nodefraction=0')),
        'pprof -top: of one thread');
}

// ---- Perfetto's trace processor

async function perfetto() {
    const chromeFile = exported('chrome');
    const events = JSON.parse(fs.readFileSync(chromeFile, 'utf8')).traceEvents;
    const count = (phase) => events.filter((event) => event.ph === phase).length;
    const chrome = await openTrace(chromeFile);
    checks.equal(await complaints(chrome), [], 'Perfetto, Chrome events: complaints');
    const [row] = await chrome.query(`select
        (select count(*) from slice join thread_track on track_id = thread_track.id where dur >= 0) as slices,
        (select count(*) from slice where dur < 0) as open_slices,
        (select count(*) from flow) as flows, (select count(*) from counter) as counters`);
    checks.equal(row, { slices: count('B') + count('i'), open_slices: 0, flows: 1, counters: count('C') },
        'Perfetto, Chrome events');
    const [flow] = await chrome.query(`select a.name as holder, b.name as waiter from flow
        join slice a on a.id = slice_out join slice b on b.id = slice_in`);
    checks.equal(flow, { holder: 'unlock', waiter: 'lock' }, 'Perfetto: the flow');

    const perf = await openTrace(exported('perf-script'));
    checks.equal(await complaints(perf), [], 'Perfetto, perf script: complaints');
    const byThread = await perf.query(`select tid, count(*) as n from cpu_profile_stack_sample join thread using (utid)
        group by tid order by tid`);
    checks.equal(byThread.map((row) => row.n).reduce((a, b) => a + b), sampleCount, 'Perfetto, perf script: samples');
    for (const { tid, n } of byThread)
        checks.equal(n, samples.filter((sample) => sample.tid === tid).reduce((sum, sample) => sum + sample.count, 0),
            `Perfetto, perf script: samples of ${tid}`);

    for (const format of ['pprof', 'collapsed']) {
        const profile = await openTrace(exported(format));
        checks.equal(await complaints(profile), [], `Perfetto, ${format}: complaints`);
        const [{ sum }] = await profile.query(`select sum(value) as sum from __intrinsic_aggregate_sample s
            join __intrinsic_aggregate_profile p on p.id = s.aggregate_profile_id
            where sample_type_type = 'samples'`);
        checks.equal(sum, sampleCount, `Perfetto, ${format}: samples`);
    }
}

// ---- Firefox Profiler

function firefox() {
    const program = consumerFile('@firefox-devtools/profiler-cli', 'dist/profiler-cli.js');
    const run = (...options) => execFileSync(process.execPath, [program, ...options],
        { encoding: 'utf8', env: { ...process.env, HOME: folder }, stdio: ['ignore', 'pipe', 'pipe'], timeout: 60000 });
    // It gives its daemon half a second to start; on a busy machine that is not enough, and the daemon comes later.
    const ask = (...options) => {
        for (let tries = 0; ; tries++) {
            try {
                return JSON.parse(run(...options, '--json'));
            } catch (error) {
                if (tries === 40)
                    throw error;
                execFileSync('sleep', ['0.25']);
            }
        }
    };
    const load = (file) => {
        try {
            run('load', file);
        } catch (error) {
            checks.ok(/did not become ready/.test(error.stderr), `Firefox: ${file}: ${error.stderr}`);
        }
    };
    try {
        load(exported('perf-script'));
        let sum = 0;
        for (const { threads: listed } of ask('profile', 'info').processes)
            for (const thread of listed)
                sum += ask('thread', 'samples', '--thread', thread.threadHandle).categoryBreakdown.totalSamples;
        checks.equal(sum, sampleCount, 'Firefox, perf script: samples');
        run('stop', '--all');
        load(exported('collapsed'));
        checks.equal(ask('thread', 'samples', '--thread', 't-0').categoryBreakdown.totalSamples, sampleCount,
            'Firefox, collapsed: samples');
        run('stop', '--all');
        load(exported('chrome'));
        checks.equal(ask('profile', 'info').threadCount, 3, 'Firefox, Chrome events: threads');
        run('stop', '--all');
        load(exported('firefox'));
        let own = 0;
        for (const { threads: listed } of ask('profile', 'info').processes)
            for (const thread of listed)
                own += ask('thread', 'samples', '--thread', thread.threadHandle).categoryBreakdown.totalSamples;
        checks.equal(own, sampleCount, 'Firefox, its own format: samples');
    } finally {
        try {
            run('stop', '--all');
        } catch {
            // it had not started
        }
    }
}

// ---- callgrind_annotate

function callgrind() {
    const program = findProgram('callgrind_annotate');
    if (!program)
        skip('callgrind_annotate is not installed (valgrind)');
    const text = execFileSync(program, ['--threshold=100', exported('callgrind')], { encoding: 'utf8' });
    const cost = (name) => {
        const row = text.split('\n').find((line) => line.replace(/ \[[^\]]*\]$/, '').endsWith(`:${name}`) || line.endsWith(name));
        return row ? Number(/^ *([\d,]+)/.exec(row)[1].replaceAll(',', '')) : 0;
    };
    checks.equal(cost('PROGRAM TOTALS'), sampleCount, 'callgrind_annotate: samples');
    for (const name of ['a', 'main', 'inner', 'parse'])
        checks.equal(cost(name), samples.filter((sample) => sample.stack[0] === name)
            .reduce((count, sample) => count + sample.count, 0), `callgrind_annotate: samples in ${name}`);
}

const parts = { speedscope, pprof, perfetto, firefox, callgrind };
for (const name of wanted)
    await parts[name]();
checks.end(wanted.join(', '));
