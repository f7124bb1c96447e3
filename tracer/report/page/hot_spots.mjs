// SPDX-License-Identifier: Apache-2.0
// Where most is allocated, and where most pages are touched first: the heaviest stacks of a weight.
import { aggregate } from './aggregate.mjs';

const HOT_SPOTS = 12;

// {frame, amount}, the heaviest first: of stacks as they end.
function heaviest(self, count) {
    const rows = [];
    for (let frame = 1; frame < self.length; frame++) {
        if (self[frame] > 0) {
            rows.push({ frame, amount: self[frame] });
        }
    }
    return rows.sort((a, b) => b.amount - a.amount || a.frame - b.frame).slice(0, count);
}

// Of a weight, for a choice; `beside`: another weight, of the same stacks (NULL: none). {rows: [{frame, amount,
// beside}], all, certainty}.
export function* hotSpots(trace, segments, choice, weight, beside) {
    const sums = yield* aggregate(trace, segments, { ...choice, kind: -1, weight });
    const others = beside ? yield* aggregate(trace, segments, { ...choice, kind: -1, weight: beside }) : null;
    const { self } = sums, other = others ? others.self : null;
    const rows = heaviest(self, HOT_SPOTS).map(({ frame, amount }) => ({ frame, amount, beside: other ? other[frame] : 0 }));
    return { rows, all: sums.total[0], certainty: sums.certainty };
}

// The exact sum of a total over the chosen threads; of all, those that left no thread in the trace are in it, too.
export function exactTotal(trace, choice, name) {
    const total = trace.totals.find((one) => one.name === name);
    if (!total) {
        return 0;
    }
    const ofThreads = (threads) => threads.reduce((sum, { index }) => sum + total.ofThread[index], 0);
    if (choice.thread >= 0) {
        return total.ofThread[choice.thread];
    }
    if (choice.process >= 0) {
        return total.ofProcess[choice.process] ?? ofThreads(trace.threads.filter(({ process }) => process === choice.process));
    }
    return total.all;
}
