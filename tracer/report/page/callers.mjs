// SPDX-License-Identifier: Apache-2.0
// One function: who calls it, what it calls, and in which of its lines the time is; and all stacks turned round, from the
// functions that things end in to those that call them.
import { aggregate } from './aggregate.mjs';
import { ROWS_PER_SLICE } from './work.mjs';

const PARTS_DRAWN = 4000; // what is a smaller part of all is no box of its own

const largestFirst = (sums) => [...sums].map(([key, amount]) => ({ key, amount })).filter(({ amount }) => amount > 0)
    .sort((a, b) => b.amount - a.amount || a.key - b.key);

// Whether the same call, of one function by another, stands further out in the stack.
function isRepeatedCall({ frames }, frame) {
    const { func, parent } = frames, callee = func[frame], caller = func[parent[frame]];
    for (let at = parent[frame]; at !== 0; at = parent[at]) {
        if (parent[at] !== 0 && func[at] === callee && func[parent[at]] === caller) {
            return true;
        }
    }
    return false;
}

// {self, total, callers, callees}: lists of {key (a function; -1: none), amount}, the heaviest first. repeats: of
// findRepeats. A function that calls itself is its own callee, and counts once.
export function* neighboursOf(trace, repeats, sums, wanted) {
    const { frames } = trace, callers = new Map(), callees = new Map(), result = { self: 0, total: 0 };
    const add = (map, key, amount) => map.set(key, (map.get(key) || 0) + amount);
    for (let frame = 1; frame < frames.count; frame++) {
        if (frame % ROWS_PER_SLICE === 0) {
            yield;
        }
        const parent = frames.parent[frame];
        if (frames.func[frame] === wanted) {
            result.self += sums.self[frame];
            if (!repeats[frame]) {
                result.total += sums.total[frame];
                add(callers, parent === 0 ? -1 : frames.func[parent], sums.total[frame]);
            }
        }
        if (parent !== 0 && frames.func[parent] === wanted && sums.total[frame] > 0 && !isRepeatedCall(trace, frame)) {
            add(callees, frames.func[frame], sums.total[frame]);
        }
    }
    return { ...result, callers: largestFirst(callers), callees: largestFirst(callees) };
}

// The lines that a function's own time is in: [{key: line, amount}]; none where no line is known. Samples are weighed as
// they are for frames, with a frame for each line.
export function* linesOf(trace, segments, choice, wanted) {
    const { samples, frames } = trace, lines = [0], indexOf = new Map();
    const frame = new Uint32Array(samples.size);
    for (let i = 0; i < samples.size; i++) {
        const line = frames.func[samples.frame[i]] === wanted && samples.frame[i] !== 0 ? samples.line[i] : 0;
        if (line > 0 && !indexOf.has(line)) {
            indexOf.set(line, lines.push(line) - 1);
        }
        frame[i] = line > 0 ? indexOf.get(line) : 0;
        if (i % ROWS_PER_SLICE === 0) {
            yield;
        }
    }
    if (lines.length === 1) {
        return [];
    }
    const byLine = { ...trace, samples: { ...samples, frame }, frames: { count: lines.length, parent: new Uint32Array(lines.length) } };
    const { self } = yield* aggregate(byLine, segments, choice);
    return largestFirst(lines.map((line, i) => [line, self[i]]).slice(1));
}

class InvertedTree {
    constructor() {
        Object.assign(this, { parent: [0], func: [0], cls: [0], flags: [0], low: [0], high: [0], depth: [0], total: [0] });
    }
    // A child like a frame of the trace's tree.
    add(parent, frames, like, total) {
        this.parent.push(parent);
        this.depth.push(this.depth[parent] + 1);
        for (const name of ['func', 'cls', 'flags', 'low', 'high']) {
            this[name].push(frames[name][like]);
        }
        return this.total.push(total) - 1;
    }
    finish(self) {
        const count = this.parent.length, frames = { count, maxDepth: this.depth.reduce((most, depth) => Math.max(most, depth), 0) };
        for (const name of ['parent', 'func', 'depth', 'cls', 'flags', 'low', 'high']) {
            frames[name] = this[name];
        }
        frames.firstChild = new Uint32Array(count);
        frames.nextSibling = new Uint32Array(count);
        for (let i = count - 1; i > 0; i--) {
            frames.nextSibling[i] = frames.firstChild[frames.parent[i]];
            frames.firstChild[frames.parent[i]] = i;
        }
        return { frames, sums: { self, total: Float64Array.from(this.total), certainty: null } };
    }
}

// {frames, sums}: a tree whose first row are the functions that stacks end in, below each its callers.
export function* invert(trace, sums) {
    const { frames } = trace, tree = new InvertedTree(), least = sums.total[0] / PARTS_DRAWN;
    tree.total[0] = sums.total[0];
    let level = [{ at: 0, ends: [] }];
    for (let frame = 1; frame < frames.count; frame++) {
        if (sums.self[frame] > 0) {
            level[0].ends.push([frame, sums.self[frame]]);
        }
    }
    while (level.length) {
        const next = [];
        for (const { at, ends } of level) {
            const children = new Map();
            for (const [frame, amount] of ends) {
                const key = `${frames.func[frame]} ${frames.cls[frame]}`, child = children.get(key) || { like: frame, amount: 0, ends: [] };
                child.amount += amount;
                if (frames.parent[frame] !== 0) {
                    child.ends.push([frames.parent[frame], amount]);
                }
                children.set(key, child);
            }
            for (const child of children.values()) {
                if (child.amount >= least) {
                    next.push({ at: tree.add(at, frames, child.like, child.amount), ends: child.ends });
                }
            }
            yield;
        }
        level = next;
    }
    const self = new Float64Array(tree.parent.length);
    for (let i = 1; i < self.length; i++) {
        self[i] = tree.depth[i] === 1 ? tree.total[i] : 0;
    }
    const inverted = tree.finish(self);
    inverted.sums.certainty = sums.certainty;
    return inverted;
}
