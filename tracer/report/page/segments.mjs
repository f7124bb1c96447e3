// SPDX-License-Identifier: Apache-2.0
// A thread's samples as what was when: stretches of time, each with a stack, one after the other without holes. A stack
// holds until the next sample, if that is not too far away. `common` says how many frames, from the root on, a segment's stack goes on from the one
// before: slices are read off that. Marks that begin or end something, and gaps, let nothing go on.
import { EXTRA_BEGIN_FRAME, EXTRA_DURATION, extraNumber } from './extras.mjs';
import { FLAG_OFF_CPU, FLAG_OPEN } from './kinds.mjs';
import { ROWS_PER_SLICE } from './work.mjs';

export const RUNNING = 0;   // as far as is known
export const BLOCKED = 1;   // its sample says so, of an interval or of itself
export const QUIET = 2;     // the processor time says that it hardly ran
export const LOST = 3;      // records are missing: 3 + enum trace_gap_reason
export const OVERWRITTEN = 4;
export const DAMAGED = 5;
export const UNSAMPLED = 6; // before its first sample, after its last, behind a gap, and where it had none for too long
export const IDLE = 7;      // the same, and the processor time says that it hardly ran

export const stateNames = ['running', 'blocked', 'not running', 'lost', 'overwritten', 'damaged', 'no samples',
    'no samples, hardly ran'];

const QUIET_SHARE = 0.1;
const MARK_BEGIN = 1, MARK_END = 2;

export const hasStack = (state) => state <= QUIET;

// The depth of the last frame that two stacks have in common. A parent's index is smaller than its children's.
export function commonDepth(frames, a, b) {
    while (a !== b) {
        if (a > b) {
            a = frames.parent[a];
        } else {
            b = frames.parent[b];
        }
    }
    return frames.depth[a];
}

class Builder {
    constructor(frames, capacity) {
        this.frames = frames;
        this.count = 0;
        this.start = new Float64Array(capacity + 1);
        this.frame = new Uint32Array(capacity);
        this.sample = new Int32Array(capacity);
        this.common = new Uint32Array(capacity);
        this.state = new Uint8Array(capacity);
    }
    grow() {
        const capacity = this.frame.length * 2 + 16;
        for (const name of ['start', 'frame', 'sample', 'common', 'state']) {
            const old = this[name];
            this[name] = new old.constructor(name === 'start' ? capacity + 1 : capacity);
            this[name].set(old);
        }
    }
    // From `time` on. `isCut`: nothing goes on.
    add(time, frame, sample, state, isCut) {
        let at = this.count;
        if (at > 0 && time < this.start[at - 1]) {
            time = this.start[at - 1];
        }
        if (at === this.frame.length) {
            this.grow();
        }
        const goesOn = at > 0 && !isCut && hasStack(state) && hasStack(this.state[at - 1]);
        this.start[at] = time;
        this.frame[at] = frame;
        this.sample[at] = sample;
        this.state[at] = state;
        this.common[at] = goesOn ? commonDepth(this.frames, this.frame[at - 1], frame) : 0;
        this.count = at + 1;
    }
    // The same stack from `time` on, in another state or cut.
    change(time, state, isCut) {
        const at = this.count - 1;
        if (state !== this.state[at] || isCut) {
            this.add(time, this.frame[at], this.sample[at], state, isCut);
        }
    }
    get lastStart() {
        return this.count ? this.start[this.count - 1] : 0;
    }
    get lastState() {
        return this.count ? this.state[this.count - 1] : UNSAMPLED;
    }
    finish(end) {
        this.start[this.count] = Math.max(end, this.count ? this.start[this.count - 1] : 0);
        return {
            count: this.count,
            start: this.start.subarray(0, this.count + 1),
            frame: this.frame.subarray(0, this.count),
            sample: this.sample.subarray(0, this.count),
            common: this.common.subarray(0, this.count),
            state: this.state.subarray(0, this.count),
        };
    }
}

function* extrasBySample(extras, key) {
    const bySample = new Map();
    for (let i = 0; i < extras.sample.length; i++) {
        if (extras.key[i] === key) {
            bySample.set(extras.sample[i], extraNumber(extras, i));
        }
        if (i % ROWS_PER_SLICE === 0) {
            yield;
        }
    }
    return bySample;
}

// Goes through a thread's events in the order of their time. Of equal ones the first here: the end of a run, a mark that
// does not end anything, a sample (or an interval's beginning), the end of a request, a gap. tracer/export/slices.c goes
// the same way.
class Walk {
    constructor(trace, thread, intervals) {
        this.trace = trace;
        this.thread = thread;
        this.intervals = intervals;
        this.sample = thread.firstSample;
        this.sampleEnd = thread.firstSample + thread.sampleCount;
        this.mark = thread.firstMark;
        this.markEnd = thread.firstMark + thread.markCount;
        this.gap = thread.firstGap;
        this.gapEnd = thread.firstGap + thread.gapCount;
        this.intervalOf = -1; // the sample whose interval has begun
        this.runs = []; // samples whose runs are under way: those of a higher level lie inside of lower ones
        this.builder = new Builder(trace.frames, thread.sampleCount + 4 * (thread.gapCount + thread.markCount) + 4);
        this.builder.add(thread.startNs, 0, -1, UNSAMPLED, true);
    }
    // Whether the processor time says that from the end of the sample before i to the end of i the thread hardly ran.
    isQuiet(i) {
        const { samples } = this.trace;
        if (!samples.cpu || i <= this.thread.firstSample || i >= this.sampleEnd) {
            return false;
        }
        const time = samples.last[i] - samples.last[i - 1];
        return time > 0 && samples.cpu[i] < QUIET_SHARE * time;
    }
    endOfRun() {
        let best = -1;
        for (let i = 0; i < this.runs.length; i++) {
            if (best < 0 || this.trace.samples.last[this.runs[i]] < this.trace.samples.last[this.runs[best]]) {
                best = i;
            }
        }
        return best;
    }
    isBlocked(sample) {
        return Boolean(this.trace.samples.flags[sample] & FLAG_OFF_CPU) && !this.intervals.duration.has(sample);
    }
    // From now on, until something happens.
    stand(time, sample, inRun) {
        const quiet = this.isQuiet(inRun ? sample : this.sample);
        const state = this.isBlocked(sample) ? BLOCKED : quiet ? QUIET : RUNNING;
        this.builder.add(time, this.trace.samples.frame[sample], sample, state, false);
    }
    // There is no sample any more, or the next one is too far away: nothing is known from here on.
    endIfOver(time) {
        // An interval that did not end lasts until its thread is seen again, or to that one's end.
        if (this.runs.length > 0 || this.trace.samples.flags[this.sample - 1] & FLAG_OPEN) {
            return;
        }
        const next = this.sample;
        if (next >= this.sampleEnd) {
            this.builder.add(time, 0, -1, UNSAMPLED, true);
        } else {
            const begin = this.trace.samples.first[next] - (this.intervals.duration.get(next) || 0);
            if (begin - time > this.thread.holdNs) {
                this.builder.add(time, 0, -1, this.isQuiet(next) ? IDLE : UNSAMPLED, true);
            }
        }
    }
    takeSample() {
        const { samples } = this.trace, i = this.sample++;
        const isRun = samples.last[i] > samples.first[i];
        this.stand(samples.first[i], i, isRun);
        if (isRun) {
            this.runs = this.runs.filter((run) => samples.level[run] !== samples.level[i]);
            this.runs.push(i);
        }
        this.endIfOver(samples.first[i]);
    }
    beginInterval(time) {
        const i = this.sample, { begin } = this.intervals;
        this.intervalOf = i;
        const { frame, flags } = this.trace.samples;
        this.builder.add(time, begin.has(i) ? begin.get(i) : frame[i], i, flags[i] & FLAG_OFF_CPU ? BLOCKED : RUNNING, false);
    }
    takeMark() {
        const { marks } = this.trace, i = this.mark++;
        if ((marks.kind[i] === MARK_BEGIN || marks.kind[i] === MARK_END) && hasStack(this.builder.lastState)) {
            this.builder.change(marks.time[i], this.builder.lastState, true);
        }
    }
    takeGap() {
        const { gaps } = this.trace, i = this.gap++, to = gaps.from[i] + gaps.length[i];
        this.builder.add(gaps.from[i], 0, -1, LOST + gaps.reason[i], true);
        // What comes before its end ends it.
        const next = Math.min(this.sampleTime(), this.gap < this.gapEnd ? gaps.from[this.gap] : Infinity);
        if (to < next) {
            this.builder.add(to, 0, -1, UNSAMPLED, true);
        }
    }
    sampleTime() {
        const i = this.sample;
        if (i >= this.sampleEnd) {
            return Infinity;
        }
        const first = this.trace.samples.first[i], duration = this.intervals.duration.get(i);
        if (!duration || this.intervalOf === i) {
            return first;
        }
        const begin = first - duration;
        return begin >= this.builder.lastStart ? begin : Math.min(first, this.builder.lastStart);
    }
    // False: there is nothing more.
    step() {
        const { samples, marks, gaps } = this.trace;
        const run = this.endOfRun();
        const runTime = run < 0 ? Infinity : samples.last[this.runs[run]];
        const sampleTime = this.sampleTime();
        const markTime = this.mark < this.markEnd ? marks.time[this.mark] : Infinity;
        const gapTime = this.gap < this.gapEnd ? gaps.from[this.gap] : Infinity;
        if (run >= 0 && runTime <= sampleTime && runTime <= markTime && runTime <= gapTime) {
            const [sample] = this.runs.splice(run, 1);
            this.stand(runTime, sample, false);
            this.endIfOver(runTime);
            return true;
        }
        const markIsFirst = this.mark < this.markEnd &&
            (marks.kind[this.mark] === MARK_END ? markTime < sampleTime : markTime <= sampleTime);
        if (markIsFirst && markTime <= gapTime) {
            this.takeMark();
        } else if (sampleTime !== Infinity && sampleTime <= gapTime) {
            if (this.intervals.duration.get(this.sample) && this.intervalOf !== this.sample) {
                this.beginInterval(sampleTime);
            } else {
                this.takeSample();
            }
        } else if (gapTime !== Infinity) {
            this.takeGap();
        } else {
            return false;
        }
        return true;
    }
}

function* segmentsOfThread(trace, thread, intervals) {
    const walk = new Walk(trace, thread, intervals);
    for (let steps = 1; walk.step(); steps++) {
        if (steps % ROWS_PER_SLICE === 0) {
            yield;
        }
    }
    return walk.builder.finish(thread.endNs === null ? trace.processes[thread.process].endNs : thread.endNs);
}

// For each thread its segments.
export function* buildSegments(trace) {
    const all = [];
    const intervals = {
        duration: yield* extrasBySample(trace.extras, EXTRA_DURATION),
        begin: yield* extrasBySample(trace.extras, EXTRA_BEGIN_FRAME),
    };
    for (const thread of trace.threads) {
        all.push(yield* segmentsOfThread(trace, thread, intervals));
        yield;
    }
    return all;
}

// The slices of a thread, each {from, to, frame, depth}, in the order in which they end: what the timeline shows when it
// is near enough. For a few; the timeline draws without them.
export function slicesOf(trace, segments) {
    const { frames } = trace, open = [], slices = [];
    const closeTo = (depth, time) => {
        while (open.length > depth) {
            const slice = open.pop();
            slices.push({ ...slice, to: time });
        }
    };
    for (let i = 0; i < segments.count; i++) {
        closeTo(hasStack(segments.state[i]) ? segments.common[i] : 0, segments.start[i]);
        const stack = [];
        for (let frame = segments.frame[i]; frames.depth[frame] > open.length; frame = frames.parent[frame]) {
            stack.push(frame);
        }
        while (stack.length) {
            const frame = stack.pop();
            open.push({ from: segments.start[i], frame, depth: open.length + 1 });
        }
    }
    closeTo(0, segments.start[segments.count]);
    return slices;
}
