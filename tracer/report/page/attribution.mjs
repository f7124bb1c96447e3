// SPDX-License-Identifier: Apache-2.0
// Whose a counter's growth is. A thread's counters are read at each of its samples, whatever that is taken for, but
// only some of these say where it grows: ticks where processor time goes, allocations what allocates. Where a thread has
// such samples, growth up to one of them is that one's, what others saw of it included; so sampling at allocations
// takes nothing away from those that compute. In a thread without such samples it is the next sample's. What an interval
// used of the processor is its own where its beginning was the sample before. As tracer/analysis/weights.h has it.
import { FLAG_BEGINS, FLAG_OPEN, KIND_ALLOCATE, KIND_CPU, KIND_FAULT, KIND_WALL } from './kinds.mjs';
import { ROWS_PER_SLICE } from './work.mjs';

const METRIC_MINOR_FAULTS = 0, METRIC_MAJOR_FAULTS = 1, METRIC_ALLOCATIONS = 4, METRIC_ALLOCATED_BYTES = 5;

export const isTick = (kind) => kind === KIND_CPU || kind === KIND_WALL;
const isAllocation = (kind) => kind === KIND_ALLOCATE;
const isFault = (kind) => kind === KIND_FAULT;

// Whether the sample before is the beginning of the interval that this one ends.
function hasOwnBeginning({ samples, intervals }, i, firstSample) {
    const flags = i > firstSample ? samples.flags[i - 1] : 0;
    return Boolean(flags & FLAG_BEGINS) && !(flags & FLAG_OPEN) && samples.kind[i - 1] === samples.kind[i] && intervals.durations.has(i);
}

function* attribute(trace, { growth, isIts, isOfIntervals }) {
    const { kind } = trace.samples, column = new Float64Array(growth.length);
    for (const { firstSample, sampleCount } of trace.threads) {
        const end = firstSample + sampleCount;
        let hasIts = false, carried = 0;
        for (let i = firstSample; i < end && !hasIts; i++) {
            hasIts = isIts(kind[i]);
        }
        for (let i = firstSample; i < end; i++) {
            const grown = Math.max(0, growth[i]);
            if (!hasIts || (isOfIntervals && !isIts(kind[i]) && hasOwnBeginning(trace, i, firstSample))) {
                column[i] = grown;
            } else if (isIts(kind[i])) {
                column[i] = carried + grown;
                carried = 0;
            } else {
                carried += grown;
            }
            if (i % ROWS_PER_SLICE === 0) {
                yield;
            }
        }
    }
    return column;
}

// The growth of two counters.
function sumOf(a, b) {
    return a && b ? a.map((value, i) => value + b[i]) : a || b;
}

const metric = (trace, index) => trace.metrics.find((one) => one.index === index);

// {id, name, unit, growth, isIts}: what can be read off counters, in the order of interest.
export function countersOf(trace) {
    const counters = [], add = (id, name, unit, growth, isIts) => growth && counters.push({ id, name, unit, growth, isIts, isOfIntervals: id === 'cpu' });
    const growthOf = (index) => metric(trace, index) && metric(trace, index).growth;
    add('cpu', 'processor time', 'ns', trace.samples.cpu, isTick);
    add('allocated', 'allocated bytes', 'bytes', growthOf(METRIC_ALLOCATED_BYTES), isAllocation);
    add('allocations', 'allocations', 'count', growthOf(METRIC_ALLOCATIONS), isAllocation);
    add('faults', 'page faults', 'count', sumOf(growthOf(METRIC_MINOR_FAULTS), growthOf(METRIC_MAJOR_FAULTS)), isFault);
    for (const { index, name, growth } of trace.metrics) {
        if (index > METRIC_MAJOR_FAULTS && index !== METRIC_ALLOCATIONS && index !== METRIC_ALLOCATED_BYTES) {
            add(`metric ${index}`, name.replaceAll('-', ' '), /bytes/.test(name) ? 'bytes' : 'count', growth, () => false);
        }
    }
    if (growthOf(METRIC_MAJOR_FAULTS)) {
        add('major', 'major faults', 'count', growthOf(METRIC_MAJOR_FAULTS), isFault);
    }
    return counters;
}

// Of each sample what of a counter is its own; computed once.
export function* columnOf(counter, trace) {
    counter.column = counter.column || (yield* attribute(trace, counter));
    return counter.column;
}
