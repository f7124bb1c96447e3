// SPDX-License-Identifier: Apache-2.0
// Stretches of time in which a thread was blocked: samples that carry a duration end one; one that began and did not
// end lasts until its thread is seen again, or to that one's end. As tracer/analysis/analysis.h tells them.
import { EXTRA_DURATION, extraNumber } from './extras.mjs';
import { FLAG_OFF_CPU, FLAG_OPEN } from './kinds.mjs';
import { ROWS_PER_SLICE } from './work.mjs';

class Builder {
    constructor() {
        this.count = 0;
        this.sample = new Int32Array(1024);
        this.begin = new Float64Array(1024);
        this.end = new Float64Array(1024);
        this.blocked = new Float64Array(1024);
        this.isOpen = new Uint8Array(1024);
    }
    add(sample, begin, end, blocked, isOpen) {
        if (this.count === this.sample.length) {
            for (const name of ['sample', 'begin', 'end', 'blocked', 'isOpen']) {
                const old = this[name];
                this[name] = new old.constructor(old.length * 2);
                this[name].set(old);
            }
        }
        this.sample[this.count] = sample;
        this.begin[this.count] = begin;
        this.end[this.count] = end;
        this.blocked[this.count] = blocked;
        this.isOpen[this.count++] = isOpen ? 1 : 0;
    }
    finish(threads, ofSample, durations) {
        const all = { count: this.count, threads, ofSample, durations };
        for (const name of ['sample', 'begin', 'end', 'blocked', 'isOpen']) {
            all[name] = this[name].subarray(0, this.count);
        }
        return all;
    }
}

// Of [begin, end) what no interval of the thread before, from `first` on, has counted. Those of handlers lie inside of
// those that they interrupt, and end before.
function uncounted(all, first, begin, end) {
    let time = end - begin;
    for (let i = all.count - 1; i >= first && all.end[i] > begin; i--) {
        time -= Math.min(all.blocked[i], all.end[i] - Math.max(begin, all.begin[i]));
    }
    return Math.max(0, time);
}

// Of one thread, in the order in which they end.
function* ofThread(trace, thread, durations, all) {
    const { samples } = trace, sampleEnd = thread.firstSample + thread.sampleCount, first = all.count;
    const threadEnd = thread.endNs === null ? trace.processes[thread.process].endNs : thread.endNs;
    for (let i = thread.firstSample; i < sampleEnd; i++) {
        if (i % ROWS_PER_SLICE === 0) {
            yield;
        }
        const flags = samples.flags[i], duration = durations.get(i);
        if (!(flags & FLAG_OFF_CPU)) {
            continue;
        }
        if (duration !== undefined) {
            const begin = Math.max(0, samples.first[i] - duration);
            all.add(i, begin, samples.first[i], uncounted(all, first, begin, samples.first[i]), false);
        } else if (flags & FLAG_OPEN) {
            const seenAgain = i + 1 < sampleEnd ? samples.first[i + 1] - (durations.get(i + 1) || 0) : threadEnd;
            const begin = samples.first[i], end = Math.max(begin, seenAgain);
            all.add(i, begin, end, end - begin, true);
        }
    }
}

// Columns: sample (that ends it, or that began it where it is open), begin, end, blocked (ns that count for it), isOpen;
// {first, count} of each thread; ofSample: a sample's interval; durations: those of all
// samples that carry one.
export function* buildIntervals(trace) {
    const { extras } = trace, durations = new Map(), all = new Builder(), threads = [];
    for (let i = 0; i < extras.sample.length; i++) {
        if (extras.key[i] === EXTRA_DURATION) {
            durations.set(extras.sample[i], extraNumber(extras, i));
        }
        if (i % ROWS_PER_SLICE === 0) {
            yield;
        }
    }
    for (const thread of trace.threads) {
        const first = all.count;
        yield* ofThread(trace, thread, durations, all);
        threads.push({ first, count: all.count - first });
    }
    const ofSample = new Map();
    for (let i = 0; i < all.count; i++) {
        ofSample.set(all.sample[i], i);
        if (i % ROWS_PER_SLICE === 0) {
            yield;
        }
    }
    return all.finish(threads, ofSample, durations);
}

// Of an interval, what of it lies in [from, to) and counts.
export function blockedIn(intervals, i, from, to) {
    const length = intervals.end[i] - intervals.begin[i];
    const part = Math.min(intervals.end[i], to) - Math.max(intervals.begin[i], from);
    return part > 0 && length > 0 ? intervals.blocked[i] * part / length : 0;
}
