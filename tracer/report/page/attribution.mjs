// SPDX-License-Identifier: Apache-2.0
// Whose a counter's growth is. A thread's counters are read at each of its samples, whatever that is taken for, but
// only some of these say where it grows: allocations what allocates, faults what faults. Where a thread has such
// samples, growth up to one of them is that one's, what others saw of it included. In a thread without such samples it is
// the next sample's. As tracer/analysis/weights.h has it. Of processor time each sample comes with its own
// (tracer/analysis/cpu_account.h).
import { KIND_ALLOCATE, KIND_CPU, KIND_FAULT, KIND_WALL } from './kinds.mjs';
import { ROWS_PER_SLICE } from './work.mjs';

const METRIC_MINOR_FAULTS = 0, METRIC_MAJOR_FAULTS = 1, METRIC_ALLOCATIONS = 4, METRIC_ALLOCATED_BYTES = 5;

export const isTick = (kind) => kind === KIND_CPU || kind === KIND_WALL;
const isAllocation = (kind) => kind === KIND_ALLOCATE;
const isFault = (kind) => kind === KIND_FAULT;

function* attribute(trace, { growth, isIts }) {
    const { kind } = trace.samples, column = new Float64Array(growth.length);
    for (const { firstSample, sampleCount } of trace.threads) {
        const end = firstSample + sampleCount;
        let hasIts = false, carried = 0;
        for (let i = firstSample; i < end && !hasIts; i++) {
            hasIts = isIts(kind[i]);
        }
        for (let i = firstSample; i < end; i++) {
            const grown = Math.max(0, growth[i]);
            if (!hasIts) {
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
    const counters = [], add = (id, name, unit, growth, isIts) => growth && counters.push({ id, name, unit, growth, isIts });
    const growthOf = (index) => metric(trace, index) && metric(trace, index).growth;
    if (trace.samples.cpuOwn) {
        counters.push({ id: 'cpu', name: 'processor time', unit: 'ns', growth: trace.samples.cpu, isIts: isTick, column: trace.samples.cpuOwn });
    }
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
