// SPDX-License-Identifier: Apache-2.0
// The golden trace, as the real Perfetto trace processor sees it, against what is in it.
//
//     perfetto_test.mjs GOLDEN_EXPORT [--large]
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { Checks } from '../../support/consumers/consumers.mjs';
import { complaints, openTrace } from '../../support/consumers/trace_processor.mjs';

const startNs = 1000000000000; // of the golden trace
const lostInGolden = 45;       // 40 no room, 2 nested too deep, 3 without a slot
const checks = new Checks();
const [exporter, ...options] = process.argv.slice(2);
const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'qut-perfetto-'));
process.on('exit', () => fs.rmSync(folder, { recursive: true, force: true }));

function exported(format, ...more) {
    const file = path.join(folder, `${format}${more.join('')}`);
    execFileSync(exporter, [format, file, ...more]);
    return file;
}

// ---- the file's own end: what Perfetto does not look for

// The slice that is written last, with its numbers; null where the file was cut off.
async function accountOf(trace) {
    const rows = await trace.query(`select slice.name, dur, arg_set_id from slice
        join process_track on slice.track_id = process_track.id where process_track.name = 'QUT trace'`);
    if (rows.length !== 1 || rows[0].dur < 0)
        return null;
    const args = await trace.query(`select key, int_value, string_value from args where arg_set_id = ${rows[0].arg_set_id}`);
    const account = { name: rows[0].name };
    for (const { key, int_value: number, string_value: text } of args)
        account[key.replace(/^debug\./, '')] = number ?? text;
    return account;
}

// The packets of a file: [begin, end, fields at their top].
function packetsOf(bytes) {
    const packets = [];
    const number = (at) => {
        let value = 0, shift = 1;
        for (; bytes[at] & 0x80; at++, shift *= 128)
            value += (bytes[at] & 0x7f) * shift;
        return [value + bytes[at] * shift, at + 1];
    };
    for (let at = 0; at < bytes.length;) {
        const begin = at;
        const [size, first] = number(at + 1);
        const fields = [];
        for (at = first; at < first + size;) {
            let tag, value;
            [tag, at] = number(at);
            [value, at] = number(at);
            fields.push(Math.floor(tag / 8));
            if (tag % 8 === 2)
                at += value;
        }
        packets.push({ begin, end: at, fields });
    }
    return packets;
}

// ---- stacks

async function stacksOf(trace) {
    const callsites = new Map();
    for (const row of await trace.query(`select c.id, c.parent_id, f.name from stack_profile_callsite c
            join stack_profile_frame f on c.frame_id = f.id order by c.id`))
        callsites.set(row.id, row);
    return (id) => {
        const names = []; // innermost first
        for (let at = callsites.get(id); at; at = callsites.get(at.parent_id))
            names.push(at.name);
        return names;
    };
}

async function checkSamples(trace, truth) {
    const stackOf = await stacksOf(trace);
    const rows = await trace.query(`select ps.ts, tid, callsite_id, unwind_error from perf_sample ps
        join thread using (utid) order by ps.ts`);
    checks.equal(rows.length, truth.samples.reduce((sum, sample) => sum + sample.count, 0), 'samples');
    const found = new Map();
    for (const row of rows) {
        const key = `${row.tid} ${row.ts - startNs}`;
        found.set(key, [...(found.get(key) || []), row]);
    }
    for (const sample of truth.samples) {
        for (const ns of [sample.first_ns, sample.last_ns]) {
            const key = `${sample.tid} ${ns}`;
            const stacks = (found.get(key) || []).map((row) => JSON.stringify(stackOf(row.callsite_id)));
            checks.ok(stacks.includes(JSON.stringify(sample.stack)),
                `stack of ${key}: ${stacks} instead of ${JSON.stringify(sample.stack)}`);
        }
    }
    const files = await trace.query(`select distinct f.name, source_file from stack_profile_frame f
        join stack_profile_symbol using (symbol_set_id) where f.name in ('a', 'inner') order by 1`);
    checks.equal(files.map((row) => row.source_file), ['/src/main.cc', '/src/in.h'], 'source files');
    const builds = await trace.query(`select distinct build_id from stack_profile_mapping where name = '/opt/app/golden'`);
    checks.equal(builds.map((row) => row.build_id), ['b0b1b2b3b4b5b6b7b8b9babbbcbdbebf'], 'build id');
    const [{ sum }] = await trace.query(`include perfetto module linux.perf.samples;
        select sum(self_count) as sum from linux_perf_samples_summary_tree`);
    checks.equal(sum, rows.filter((row) => row.callsite_id !== null).length, 'samples in the tree that Perfetto draws');
    const kinds = {};
    for (const sample of truth.samples)
        kinds[sample.kind] = (kinds[sample.kind] || 0) + sample.count;
    const foundKinds = {};
    for (const row of await trace.query(`select t.name, count(*) as n from counter c join track t on c.track_id = t.id
            where t.type = 'perf_cpu_counter' group by t.name`))
        foundKinds[row.name] = row.n;
    checks.equal(Object.entries(foundKinds).sort(), Object.entries(kinds).sort(), 'samples of each kind');
    const errors = rows.filter((row) => row.unwind_error).map((row) => `${row.ts - startNs} ${row.unwind_error}`);
    checks.equal(errors, ['202000000 unwind_info', '203000000 memory_invalid', '204000000 unwind_info'],
        'stacks that are not whole');
}

// ---- slices

async function tracksOf(trace, suffix) {
    return trace.query(`select t.id, tid from thread_track t join thread using (utid) where t.name like '%(${suffix})'`);
}

// At the time of each sample its stack is the slices that are there then.
async function checkSlices(trace, truth) {
    let count = 0;
    for (const { id, tid } of await tracksOf(trace, 'samples')) {
        const slices = await trace.query(`select id, ts, dur, name, parent_id from slice where track_id = ${id} order by id`);
        count += slices.length;
        checks.ok(slices.every((slice) => slice.dur >= 0), `all slices of ${tid} end`);
        const at = (ns, touches) => {
            const stack = [];
            for (let parent = null; ;) {
                const inner = slices.filter((slice) => slice.parent_id === parent && touches(slice, ns)).pop();
                if (!inner)
                    return stack;
                stack.unshift(inner.name);
                parent = inner.id;
            }
        };
        for (const sample of truth.samples.filter((one) => one.tid === tid)) {
            for (const offset of [sample.first_ns, sample.last_ns]) {
                const ns = offset + startNs, what = `slices of ${tid} at ${offset}`;
                const after = at(ns, (slice) => slice.ts <= ns && ns < slice.ts + slice.dur);
                if (after.length || !sample.stack.length) {
                    checks.equal(after, sample.stack, what);
                    continue;
                }
                // It is the last one before nothing is known: its slices end there.
                const until = at(ns, (slice) => slice.ts <= ns && ns <= slice.ts + slice.dur);
                checks.equal(until.slice(until.length - sample.stack.length), sample.stack, what);
            }
        }
    }
    return count;
}

async function checkMarks(trace, truth) {
    const found = [];
    for (const { id, tid } of await tracksOf(trace, 'marks'))
        for (const row of await trace.query(`select ts, dur, name, extract_arg(arg_set_id, 'debug.id') as id from slice
                where track_id = ${id}`))
            found.push([tid, row.ts - startNs, row.dur, row.name, row.id]);
    const wanted = [];
    for (const mark of truth.marks.filter((one) => one.kind < 2)) {
        const end = truth.marks.find((one) => one.tid === mark.tid && one.kind === 2 && one.time_ns >= mark.time_ns);
        wanted.push([mark.tid, mark.time_ns, mark.kind ? end.time_ns - mark.time_ns : 0, mark.name, mark.id]);
    }
    checks.equal(found, wanted, 'marks');
}

async function checkExtras(trace, truth) {
    const blocked = [];
    for (const { id, tid } of await tracksOf(trace, 'blocked'))
        for (const row of await trace.query(`select ts, dur, name, extract_arg(arg_set_id, 'debug.lock') as lock,
                extract_arg(arg_set_id, 'debug.result') as result from slice where track_id = ${id} and parent_id is null`))
            blocked.push([tid, row.ts + row.dur - startNs, row.dur, row.name, row.lock, row.result]);
    const waits = truth.samples.filter((sample) => sample.extra1);
    checks.equal(blocked.sort(), waits.map((sample) => [sample.tid, sample.first_ns, sample.extra1, sample.kind,
        sample.extra2 ?? null, sample.extra10 === undefined ? null : -2]).sort(), 'blocked stretches');
    let events = 0;
    for (const { id } of await tracksOf(trace, 'events'))
        events += (await trace.query(`select count(*) as n from slice where track_id = ${id}`))[0].n;
    const isEvent = (sample) => !sample.extra1 && Object.keys(sample).some((key) => key.startsWith('extra'));
    checks.equal(events, truth.samples.filter(isEvent).length, 'samples with extras');
    const flows = await trace.query(`select o.name as cause, i.name as effect, ot.name as 'from', it.name as 'to' from flow
        join slice o on slice_out = o.id join slice i on slice_in = i.id
        join thread_track ot on o.track_id = ot.id join thread_track it on i.track_id = it.id`);
    checks.equal(flows.map((flow) => [flow.cause, flow.effect, flow.from]), [['unlock', 'resumed', 'main (events)']], 'flows');
}

async function checkCounters(trace, truth) {
    const values = async (name) => (await trace.query(`select ts, value from counter c join track t on c.track_id = t.id
        where t.name = '${name}' order by ts`)).map((row) => [row.ts - startNs, row.value]);
    const queue = truth.marks.filter((mark) => mark.kind === 3);
    checks.equal((await values('queue')).map((row) => row[0]), queue.map((mark) => mark.time_ns), 'times of a counter');
    checks.equal((await values('queue')).map((row) => row[1]), queue.map((mark) => Number(mark.id)), 'values of a counter');
    checks.equal((await values('minor-faults')).map((row) => row[1]), [100, 103, 106, 109, 112], 'a metric');
    checks.equal((await values('allocated-bytes')).map((row) => row[1]), [4096, 12288, 28672, 61440, 126976], 'bytes');
    const cpu = new Map((await values('cpu time')).map((row) => row));
    checks.ok(truth.samples.every((sample) => cpu.get(sample.last_ns) === sample.cpu_ns), 'processor time of each sample');
}

async function checkThreads(trace, truth) {
    const threads = await trace.query('select tid, name from thread where tid > 0 order by tid');
    const wanted = truth.threads.map((one) => ({ tid: one.tid, name: one.name || `thread ${one.tid}` }));
    checks.equal(threads, wanted.sort((a, b) => a.tid - b.tid), 'threads');
    const processes = await trace.query('select pid, name from process where pid > 0');
    checks.equal(processes.length, 1, 'one process');
    checks.ok(processes[0].name.startsWith('/opt/app/golden --name='), 'its name');
}

async function checkGaps(trace, truth) {
    const found = [];
    for (const { id, tid } of await tracksOf(trace, 'losses'))
        for (const row of await trace.query(`select ts, dur, name from slice where track_id = ${id}`))
            found.push([tid, row.ts - startNs, row.dur, parseInt(row.name, 10)]);
    checks.equal(found, truth.gaps.map((gap) => [gap.tid, gap.from_ns, gap.to_ns - gap.from_ns, gap.lost]), 'gaps');
}

function readTruth() {
    const truth = { samples: [], marks: [], gaps: [], threads: [] };
    for (const line of fs.readFileSync(exported('truth'), 'utf8').trim().split('\n')) {
        const record = JSON.parse(line);
        truth[`${record.what}s`].push(record);
    }
    return truth;
}

async function checkGolden() {
    const truth = readTruth(), file = exported('perfetto');
    const trace = await openTrace(file);
    checks.equal(await complaints(trace), [{ name: 'perf_cpu_lost_records', severity: 'data_loss', value: lostInGolden }],
        'what Perfetto complains about: the losses that there are');
    await checkSamples(trace, truth);
    const slices = await checkSlices(trace, truth);
    await checkMarks(trace, truth);
    await checkExtras(trace, truth);
    await checkCounters(trace, truth);
    await checkThreads(trace, truth);
    await checkGaps(trace, truth);

    const account = await accountOf(trace), bytes = fs.readFileSync(file), packets = packetsOf(bytes);
    checks.ok(account, 'the account is there');
    checks.equal([account.packets, account['written slices'], account.complete], [packets.length, slices, 1], 'the account');
    const lost = Object.keys(account).filter((key) => key.startsWith('lost: ')).reduce((sum, key) => sum + account[key], 0);
    checks.equal([account.hits, lost], [account.stored + account.merged + account.throttled + lost + account['under way'],
        lostInGolden], 'the balance');
    checks.equal([account['missing in hits'], account['missing in samples']], [0, 0], 'nothing is missing in it');
    await checkSpoiled(bytes, packets);
}

// That what is checked above can be seen to fail.
async function checkSpoiled(bytes, packets) {
    for (const share of [0.3, 0.6, 0.9])
        checks.equal(await accountOf(await openTrace(bytes.subarray(0, bytes.length * share))), null, `cut off at ${share}`);
    const last = packets[packets.length - 1];
    checks.equal(await accountOf(await openTrace(bytes.subarray(0, last.begin))), null, 'cut off by one packet');
    checks.ok((await accountOf(await openTrace(Buffer.concat([bytes.subarray(0, packets[9].begin),
        bytes.subarray(packets[10].begin)])))).packets !== packets.length - 1, 'one packet taken out');
    const interned = 12;
    const without = packets.filter((packet) => !packet.fields.includes(interned));
    const spoiled = Buffer.concat(without.map((packet) => bytes.subarray(packet.begin, packet.end)));
    const rows = await complaints(await openTrace(spoiled));
    checks.ok(rows.some((row) => row.severity === 'error'), `the gate sees missing stacks: ${JSON.stringify(rows)}`);
}

async function checkDamaged() {
    const trace = await openTrace(exported('perfetto', '--damage')), account = await accountOf(trace);
    checks.equal(await complaints(trace), [{ name: 'perf_cpu_lost_records', severity: 'data_loss', value: lostInGolden + 25 }],
        'a damaged trace says so');
    checks.equal([account.complete, account['damaged samples']], [0, 25], 'its account');
    checks.ok(/missing/.test(account.name), 'its name');
}

// Each thread is of its process, with that one's name; each sample of its thread.
async function checkProcesses() {
    const trace = await openTrace(exported('perfetto', '--processes', '2')), account = await accountOf(trace);
    const complained = await complaints(trace);
    checks.equal(complained.filter((row) => row.name !== 'perf_cpu_lost_records'), [], 'several processes: no complaints');
    const processes = await trace.query(`select pid, process.name as name, count(distinct tid) as threads,
        count(perf_sample.id) as samples from process join thread using (upid) join perf_sample using (utid)
        group by pid order by pid`);
    checks.equal(processes.map((row) => [row.pid, row.name]),
        [[7001, '/bin/part0 with arguments'], [7002, '/bin/part1 with arguments']], 'processes');
    checks.ok(processes.every((row) => row.threads > 0), 'each with threads');
    checks.equal(processes.reduce((sum, row) => sum + row.samples, 0), account.samples, 'all samples are of one of them');
    const [{ n }] = await trace.query(`select count(*) as n from slice s join thread_track t on s.track_id = t.id
        join thread using (utid) join process using (upid) where pid = 7002 and t.name like '%(samples)'`);
    checks.ok(n > 0, 'the second one has slices');
}

// Traces without sense: whatever is in them, Perfetto finds nothing wrong with what we make of it.
async function checkRandom(seed) {
    const trace = await openTrace(exported('perfetto', '--random', String(seed))), account = await accountOf(trace);
    checks.equal(await complaints(trace), [], `random trace ${seed}`);
    const [{ n }] = await trace.query('select count(*) as n from perf_sample');
    checks.equal([n, n], [account.samples, account['written samples']], `its samples`);
    const [{ unfinished }] = await trace.query('select count(*) as unfinished from slice where dur < 0');
    checks.equal(unfinished, 0, 'its slices');
}

async function checkLarge(samples) {
    const file = exported('perfetto', '--large', String(samples), '8', '60');
    const trace = await openTrace(file), account = await accountOf(trace);
    checks.equal(await complaints(trace), [], 'a large trace: no complaints');
    const [{ n }] = await trace.query('select count(*) as n from perf_sample');
    checks.equal([n, n], [account.samples, account['written samples']], 'its samples');
    const [slices] = await trace.query(`select count(*) as n, sum(dur < 0) as unfinished from slice s
        join thread_track t on s.track_id = t.id where t.name like '%(samples)'`);
    checks.equal([slices.n, slices.unfinished], [account['written slices'], 0], 'its slices');
}

await checkGolden();
await checkDamaged();
await checkProcesses();
for (let seed = 1; seed <= (options.includes('--large') ? 100 : 5); seed++)
    await checkRandom(seed);
await checkLarge(options.includes('--large') ? 500000 : 20000);
checks.end('perfetto');
