// SPDX-License-Identifier: Apache-2.0
// What samples carry besides (formats/qut_trace.h).
import { formatBytes, formatCount, formatHex, formatTime } from './format.mjs';
import { ROWS_PER_SLICE } from './work.mjs';

export const EXTRA_DURATION = 1, EXTRA_LOCK = 2, EXTRA_FLOW = 6;
const EXTRA_SIZE = 7, EXTRA_WEIGHT = 13, KIND_ALLOCATE = 3;
export const EXTRA_BEGIN_FRAME = 11; // a frame of the page, not a node of the trace

const keys = new Map([
    [1, ['duration', 'ns']], [2, ['lock', 'lock']], [3, ['held by', 'tid']], [4, ['woken by', 'tid']],
    [5, ['woke', 'tid']], [6, ['flow', 'hex']], [7, ['size', 'bytes']], [8, ['address', 'hex']],
    [9, ['descriptor', 'count']], [10, ['result', 'signed']], [11, ['begun at frame', 'count']],
    [12, ['earlier by', 'ns']], [13, ['stands for', 'count']],
]);

export function extraNumber(extras, i) {
    return extras.high[i] * 2 ** 32 + extras.low[i];
}

// The extras of a sample: [from, to) in the columns.
export function extrasOf(extras, sample) {
    let low = 0, high = extras.sample.length;
    while (low < high) {
        const middle = (low + high) >> 1;
        if (extras.sample[middle] < sample) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    let end = low;
    while (end < extras.sample.length && extras.sample[end] === sample) {
        end++;
    }
    return [low, end];
}

// "table_lock", or its address.
export function lockText(extras, i) {
    return extras.lockNames.get(i) || formatHex(extras.low[i], extras.high[i]);
}

function valueText(extras, i, how) {
    const value = extraNumber(extras, i);
    switch (how) {
    case 'ns': return formatTime(value);
    case 'bytes': return formatBytes(value);
    case 'lock': return lockText(extras, i);
    case 'hex': return formatHex(extras.low[i], extras.high[i]);
    case 'signed': return String((extras.high[i] | 0) * 2 ** 32 + extras.low[i]);
    case 'tid': return String(value);
    default: return formatCount(value);
    }
}

// "lock 0x7ffc0de0, held by 4242"
export function describeExtras(extras, sample) {
    const [from, to] = extrasOf(extras, sample), parts = [];
    for (let i = from; i < to; i++) {
        const [name, how] = keys.get(extras.key[i]) || [`extra ${extras.key[i]}`, 'count'];
        parts.push(`${name} ${valueText(extras, i, how)}`);
    }
    return parts.join(', ');
}

// Causes with their effects: pairs of samples with the same number, the earlier one first.
export function* flowsOf(trace) {
    const { extras, samples } = trace, byNumber = new Map();
    for (let i = 0; i < extras.sample.length; i++) {
        if (i % ROWS_PER_SLICE === 0) {
            yield;
        }
        if (extras.key[i] !== EXTRA_FLOW) {
            continue;
        }
        const number = formatHex(extras.low[i], extras.high[i]);
        if (!byNumber.has(number)) {
            byNumber.set(number, []);
        }
        byNumber.get(number).push(extras.sample[i]);
    }
    const flows = [];
    for (const ends of byNumber.values()) {
        ends.sort((a, b) => samples.first[a] - samples.first[b]);
        // One cause may end the waits of many: of these none is the cause of the next.
        for (let i = 1, cause = 0; i < ends.length; i++) {
            flows.push({ from: ends[cause], to: ends[i] });
            cause = trace.intervals.durations.has(ends[i]) && !trace.intervals.durations.has(ends[cause]) ? cause : i;
        }
    }
    return flows;
}

// What allocations say of their sizes, each as often as it stands for hits; null where none does. Of a trace without a
// metric for that.
export function* allocatedBytes(extras, samples) {
    const sizes = new Float64Array(samples.size), hits = new Map();
    let isThere = false;
    for (let i = 0; i < extras.sample.length; i++) {
        const sample = extras.sample[i];
        if (extras.key[i] === EXTRA_SIZE && samples.kind[sample] === KIND_ALLOCATE) {
            sizes[sample] = extraNumber(extras, i);
            isThere = true;
        } else if (extras.key[i] === EXTRA_WEIGHT) {
            hits.set(sample, extraNumber(extras, i));
        }
        if (i % ROWS_PER_SLICE === 0) {
            yield;
        }
    }
    hits.forEach((count, sample) => {
        sizes[sample] *= count;
    });
    return isThere ? sizes : null;
}
