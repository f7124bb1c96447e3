// SPDX-License-Identifier: Apache-2.0
// The trace, out of the bytes that tracer/report/pack.c wrote (tracer/report/pack.h says what is where). Times are
// nanoseconds since the trace's beginning.
import { callSums } from './call_table.mjs';
import { giveCalls } from './calls.mjs';
import { EXTRA_LOCK, allocatedBytes } from './extras.mjs';
import { buildIntervals } from './intervals.mjs';
import { ROWS_PER_SLICE } from './work.mjs';

const METRIC_ALLOCATED_BYTES = 5;

// LEB128 numbers, one after the other. Exact up to 2^53.
class Numbers {
    constructor(bytes) {
        this.bytes = bytes;
        this.at = 0;
    }
    next() {
        let byte = this.bytes[this.at++];
        if (byte < 128) {
            return byte;
        }
        let value = byte & 127, unit = 128;
        do {
            byte = this.bytes[this.at++];
            value += (byte & 127) * unit;
            unit *= 128;
        } while (byte >= 128);
        return value;
    }
    nextSigned() {
        const value = this.next();
        return value % 2 ? -(value + 1) / 2 : value / 2;
    }
}

export class Strings {
    constructor(lengths, bytes) {
        this.starts = new Uint32Array(lengths.length + 1);
        lengths.forEach((length, i) => {
            this.starts[i + 1] = this.starts[i] + length;
        });
        this.bytes = bytes;
        this.decoder = new TextDecoder(); // what is no UTF-8 becomes U+FFFD
        this.texts = new Array(lengths.length);
    }
    text(index) {
        let text = this.texts[index];
        if (text === undefined) {
            text = this.decoder.decode(this.bytes.subarray(this.starts[index], this.starts[index + 1]));
            // One line, and nothing that changes the direction of the text around it.
            text = text.replace(/[\u0000-\u001f\u007f-\u009f\u200e\u200f\u2028-\u202e\u2066-\u2069]/g, '\ufffd');
            this.texts[index] = text;
        }
        return text;
    }
}

function splitSections(bytes) {
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    const headerBytes = view.getUint32(0, true);
    const header = JSON.parse(new TextDecoder().decode(bytes.subarray(4, 4 + headerBytes)));
    const sections = new Map();
    let at = 4 + headerBytes;
    for (const [name, size] of header.sections) {
        sections.set(name, bytes.subarray(at, at + size));
        at += size;
    }
    if (at !== bytes.length) {
        throw new Error(`the data of this report are ${bytes.length} bytes, not ${at}: the file is cut off or changed`);
    }
    return { header, sections };
}

// All numbers of a section, whose count is that of the bytes that end one.
function* allNumbers(sections, name) {
    const bytes = sections.get(name);
    let count = 0;
    for (let i = 0; i < bytes.length; i++) {
        count += bytes[i] < 128 ? 1 : 0;
    }
    return yield* fill(new Float64Array(count), sections, name);
}

// A column into `values`, each number changed by `change(number, index)`.
function* fill(values, sections, name, change = (value) => value) {
    const numbers = new Numbers(sections.get(name));
    for (let i = 0; i < values.length; i++) {
        values[i] = change(numbers.next(), i);
        if (i % ROWS_PER_SLICE === 0) {
            yield;
        }
    }
    return values;
}

function* decodeFrames(sections) {
    const count = sections.get('frame_class').length + 1; // and the root
    const behindRoot = (array) => array.subarray(1);
    const frames = {
        count,
        parent: new Uint32Array(count),
        func: new Uint32Array(count),
        cls: new Uint8Array(count),
        flags: new Uint8Array(count),
        low: new Uint32Array(count),
        high: new Uint32Array(count),
        depth: new Uint32Array(count),
        firstChild: new Uint32Array(count),
        nextSibling: new Uint32Array(count),
        maxDepth: 0,
    };
    yield* fill(behindRoot(frames.parent), sections, 'frame_parent', (back, i) => i + 1 - back);
    yield* fill(behindRoot(frames.func), sections, 'frame_function');
    frames.cls.set(sections.get('frame_class'), 1);
    frames.flags.set(sections.get('frame_flags'), 1);
    yield* fill(behindRoot(frames.low), sections, 'frame_low');
    yield* fill(behindRoot(frames.high), sections, 'frame_high', (more, i) => frames.low[i + 1] + more);
    for (let i = 1; i < count; i++) {
        frames.depth[i] = frames.depth[frames.parent[i]] + 1;
        frames.maxDepth = Math.max(frames.maxDepth, frames.depth[i]);
    }
    for (let i = count - 1; i > 0; i--) {
        frames.nextSibling[i] = frames.firstChild[frames.parent[i]];
        frames.firstChild[frames.parent[i]] = i;
    }
    return frames;
}

function* decodeThreads(sections, strings, unitNs) {
    const names = ['uid', 'tid', 'process', 'name', 'start', 'end', 'samples', 'marks', 'gaps', 'hold', 'stored', 'merged', 'throttled', 'lost'];
    const columns = {};
    for (const name of names) {
        columns[name] = yield* allNumbers(sections, `thread_${name}`);
    }
    const threads = [];
    let firstSample = 0, firstMark = 0, firstGap = 0;
    for (let i = 0; i < columns.uid.length; i++) {
        const thread = {
            index: i, uid: columns.uid[i], tid: columns.tid[i], process: columns.process[i],
            name: strings.text(columns.name[i]),
            startNs: columns.start[i] * unitNs, endNs: columns.end[i] ? columns.end[i] * unitNs : null,
            firstSample, sampleCount: columns.samples[i],
            firstMark, markCount: columns.marks[i],
            firstGap, gapCount: columns.gaps[i],
            holdNs: columns.hold[i] || Infinity,
            stored: columns.stored[i], merged: columns.merged[i], throttled: columns.throttled[i], lost: columns.lost[i],
        };
        firstSample += thread.sampleCount;
        firstMark += thread.markCount;
        firstGap += thread.gapCount;
        threads.push(thread);
    }
    return { threads, sampleCount: firstSample, markCount: firstMark, gapCount: firstGap };
}

function* decodeProcesses(sections, strings, unitNs, threads) {
    const columns = {};
    for (const name of ['pid', 'parent', 'command', 'start', 'end', 'complete', 'recording']) {
        columns[name] = yield* allNumbers(sections, `process_${name}`);
    }
    const processes = [...columns.pid].map((pid, index) => ({
        index, pid, parent: columns.parent[index], command: strings.text(columns.command[index]),
        startNs: columns.start[index] * unitNs, endNs: columns.end[index] * unitNs, isComplete: columns.complete[index] === 1,
        recording: columns.recording[index],
        threads: [],
    }));
    threads.forEach((thread) => processes[thread.process].threads.push(thread));
    return processes;
}

// Exact sums: {name, all, ofProcess, ofThread}.
function* decodeTotals(sections, totals) {
    const decoded = [];
    for (const { index, name, all } of totals) {
        decoded.push({ name, all, ofProcess: yield* allNumbers(sections, `ptotal_${index}`),
            ofThread: yield* allNumbers(sections, `ttotal_${index}`) });
    }
    return decoded;
}

function* decodeSamples(sections, threads, count, unitNs, frames) {
    const samples = {
        size: count,
        first: new Float64Array(count), last: new Float64Array(count),
        count: new Uint32Array(count), frame: new Uint32Array(count),
        cpu: null, // processor time since the thread's last sample
        line: yield* fill(new Uint32Array(count), sections, 'sample_line'), // of its innermost frame; 0: not known
        kind: sections.get('sample_kind'), flags: sections.get('sample_flags'), level: sections.get('sample_level'),
    };
    const time = new Numbers(sections.get('sample_time')), span = new Numbers(sections.get('sample_span'));
    const frame = new Numbers(sections.get('sample_frame'));
    yield* fill(samples.count, sections, 'sample_count');
    for (const thread of threads) {
        let last = 0, lastFrame = 0;
        for (let i = thread.firstSample; i < thread.firstSample + thread.sampleCount; i++) {
            last += time.nextSigned();
            samples.first[i] = last * unitNs;
            if (samples.count[i] > 1) {
                last += span.next();
            }
            samples.last[i] = last * unitNs;
            lastFrame += frame.nextSigned();
            samples.frame[i] = Math.min(lastFrame, frames.count - 1);
            if (i % ROWS_PER_SLICE === 0) {
                yield;
            }
        }
    }
    if (sections.has('sample_cpu')) {
        const signed = (value) => (value % 2 ? -(value + 1) / 2 : value / 2);
        samples.cpu = yield* fill(new Float64Array(count), sections, 'sample_cpu', signed);
        samples.cpuOwn = yield* fill(new Float64Array(count), sections, 'sample_cpu_stands', signed);
        for (let i = 0; i < count; i++) {
            samples.cpuOwn[i] += samples.cpu[i];
        }
    }
    return samples;
}

function* decodeExtras(sections, strings) {
    let sample = 0;
    const extras = {
        sample: yield* allNumbers(sections, 'extra_sample'),
        key: yield* allNumbers(sections, 'extra_key'),
        low: yield* allNumbers(sections, 'extra_low'),
        high: yield* allNumbers(sections, 'extra_high'),
        lockNames: new Map(), // by index; where there is one
    };
    const names = yield* allNumbers(sections, 'lock_name');
    let lockCount = 0;
    for (let i = 0; i < extras.sample.length; i++) {
        sample += extras.sample[i];
        extras.sample[i] = sample;
        const name = extras.key[i] === EXTRA_LOCK ? strings.text(names[lockCount++]) : '';
        if (name) {
            extras.lockNames.set(i, name);
        }
    }
    return extras;
}

// Each thread's times count from its last one.
function* absoluteTimes(sections, name, threads, first, count, unitNs) {
    const signed = (value) => (value % 2 ? -(value + 1) / 2 : value / 2);
    const times = yield* allNumbers(sections, name);
    for (const thread of threads) {
        let last = 0;
        for (let i = thread[first]; i < thread[first] + thread[count]; i++) {
            last += signed(times[i]);
            times[i] = last * unitNs;
        }
    }
    return times;
}

function* decodeMarks(sections, threads, unitNs) {
    return {
        time: yield* absoluteTimes(sections, 'mark_time', threads, 'firstMark', 'markCount', unitNs),
        kind: yield* allNumbers(sections, 'mark_kind'),
        low: yield* allNumbers(sections, 'mark_low'),
        high: yield* allNumbers(sections, 'mark_high'),
        name: yield* allNumbers(sections, 'mark_name'),
    };
}

function* decodeGaps(sections, threads, unitNs) {
    const lengths = yield* allNumbers(sections, 'gap_length');
    return {
        from: yield* absoluteTimes(sections, 'gap_from', threads, 'firstGap', 'gapCount', unitNs),
        length: lengths.map((units) => units * unitNs),
        lost: yield* allNumbers(sections, 'gap_lost'),
        reason: yield* allNumbers(sections, 'gap_reason'),
    };
}

// Exact calls, if there are any, are their threads'. How many are not here.
function* decodeCalls(sections, threads) {
    const columns = { thread: yield* allNumbers(sections, 'call_lane_thread'), count: yield* allNumbers(sections, 'call_lane_count') };
    for (const [key, name] of Object.entries({ begin: 'begin', length: 'length', func: 'function', depth: 'depth', how: 'how' })) {
        columns[key] = yield* allNumbers(sections, `call_${name}`);
    }
    yield* giveCalls(threads, columns);
    return (yield* allNumbers(sections, 'call_hidden'))[0];
}

export function* decodeTrace(bytes) {
    const { header, sections } = splitSections(bytes);
    const unitNs = 2 ** header.timeShift;
    const strings = new Strings(yield* allNumbers(sections, 'strings'), sections.get('string_bytes'));
    const functions = {};
    for (const column of ['name', 'module', 'file']) {
        functions[column] = yield* allNumbers(sections, `function_${column}`);
    }
    const frames = yield* decodeFrames(sections);
    const { threads, sampleCount } = yield* decodeThreads(sections, strings, unitNs);
    const samples = yield* decodeSamples(sections, threads, sampleCount, unitNs, frames);
    const metrics = [];
    for (const { index, name } of header.metrics) {
        metrics.push({ index, name, growth: yield* fill(new Float64Array(sampleCount), sections, `metric_${index}`) });
    }
    const extras = yield* decodeExtras(sections, strings);
    if (!metrics.some(({ index }) => index === METRIC_ALLOCATED_BYTES)) {
        const growth = yield* allocatedBytes(extras, samples);
        if (growth) {
            metrics.push({ index: METRIC_ALLOCATED_BYTES, name: 'allocated-bytes', growth });
        }
    }
    const processes = yield* decodeProcesses(sections, strings, unitNs, threads);
    const totals = yield* decodeTotals(sections, header.totals);
    const kinds = new Map();
    const kindNames = yield* allNumbers(sections, 'kind_name'), kindNumbers = yield* allNumbers(sections, 'kind_number');
    kindNumbers.forEach((number, i) => kinds.set(number, strings.text(kindNames[i])));
    const trace = {
        lengthNs: header.lengthNs, kernelTickNs: header.kernelTickNs, strings, functions, frames, processes, threads, totals, samples, metrics, kinds,
        extras,
        marks: yield* decodeMarks(sections, threads, unitNs),
        gaps: yield* decodeGaps(sections, threads, unitNs),
        callsHidden: yield* decodeCalls(sections, threads),
        callSums: yield* decodeCallSums(sections),
        functionName: (id) => strings.text(functions.name[id]),
        moduleName: (id) => strings.text(functions.module[id]),
        fileName: (id) => strings.text(functions.file[id]),
    };
    trace.intervals = yield* buildIntervals(trace);
    return trace;
}

// And their sums by function.
function* decodeCallSums(sections) {
    const columns = {};
    for (const [key, name] of Object.entries({ func: 'function', counted: 'counted', how: 'how', times: 'times', histogram: 'histogram', recorded: 'recorded' })) {
        columns[key] = yield* allNumbers(sections, `call_sum_${name}`);
    }
    return callSums(columns);
}

// Frame 0 has no function.
export function frameName(trace, frame) {
    return frame === 0 ? 'all' : trace.functionName(trace.frames.func[frame]);
}
