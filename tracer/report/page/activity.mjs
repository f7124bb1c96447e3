// SPDX-License-Identifier: Apache-2.0
// How busy a thread was, and how long it was blocked, in any window of time: sums up to each of its samples, between
// which it is taken to be even. While a thread is known to be blocked it uses no processor time.
import { ROWS_PER_SLICE } from './work.mjs';

class Curve {
    constructor(capacity) {
        this.time = new Float64Array(capacity);
        this.sum = new Float64Array(capacity);
        this.count = 0;
    }
    add(time, sum) {
        this.time[this.count] = Math.max(time, this.count ? this.time[this.count - 1] : 0);
        this.sum[this.count++] = sum;
    }
    // Up to a time.
    at(time) {
        let low = 0, high = this.count;
        while (low < high) {
            const middle = (low + high) >> 1;
            if (this.time[middle] <= time) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        if (low === 0 || low === this.count) {
            return low === 0 ? 0 : this.sum[low - 1];
        }
        const from = this.time[low - 1], share = (time - from) / (this.time[low] - from);
        return this.sum[low - 1] + share * (this.sum[low] - this.sum[low - 1]);
    }
}

function* cpuCurve(trace, thread) {
    const { samples, intervals } = trace, curve = new Curve(2 * thread.sampleCount + 1);
    let sum = 0;
    curve.add(thread.startNs, 0);
    for (let i = thread.firstSample; i < thread.firstSample + thread.sampleCount; i++) {
        const interval = intervals.ofSample.get(i);
        sum += Math.max(0, samples.cpu[i]);
        curve.add(interval === undefined ? samples.last[i] : intervals.begin[interval], sum);
        if (interval !== undefined) {
            curve.add(intervals.end[interval], sum);
        }
        if (i % ROWS_PER_SLICE === 0) {
            yield;
        }
    }
    return curve;
}

function blockedCurve(trace, thread) {
    const { intervals } = trace, { first, count } = intervals.threads[thread.index], curve = new Curve(2 * count + 1);
    let sum = 0;
    curve.add(thread.startNs, 0);
    for (let i = first; i < first + count; i++) {
        curve.add(intervals.begin[i], sum);
        sum += intervals.blocked[i];
        curve.add(intervals.end[i], sum);
    }
    return curve;
}

export class Activity {
    constructor(cpu, blocked) {
        Object.assign(this, { cpu, blocked });
    }
    static* build(trace, thread) {
        return new Activity(trace.samples.cpu ? yield* cpuCurve(trace, thread) : null, blockedCurve(trace, thread));
    }
    // What it used in each of `count` equal parts of [from, to), as shares of their time: {cpu, blocked}.
    static shares(activities, from, to, count) {
        const cpu = new Float64Array(count), blocked = new Float64Array(count), step = (to - from) / count;
        for (const one of activities) {
            for (const [curve, shares] of [[one.cpu, cpu], [one.blocked, blocked]]) {
                for (let i = 0, last = curve ? curve.at(from) : 0; curve && i < count; i++) {
                    const next = curve.at(from + (i + 1) * step);
                    shares[i] += (next - last) / step;
                    last = next;
                }
            }
        }
        return { cpu, blocked };
    }
}
