// SPDX-License-Identifier: Apache-2.0
// What a choice of samples weighs: per frame of the tree, and per function.
import { columnOf, countersOf } from './attribution.mjs';
import { Certainty, WeightSums } from './certainty.mjs';
import { blockedIn } from './intervals.mjs';
import { FLAG_TOLD } from './kinds.mjs';
import { hasStack } from './segments.mjs';
import { ROWS_PER_SLICE } from './work.mjs';

// What samples can weigh: {id, name, unit, counter}. The first one is shown first.
export function weightsOf(trace) {
    const counters = countersOf(trace).map((counter) => ({ id: counter.id, name: counter.name, unit: counter.unit, counter }));
    const cpu = counters.find(({ id }) => id === 'cpu'), hasIntervals = trace.intervals.count > 0;
    const weights = cpu ? [cpu] : [];
    if (cpu && hasIntervals) {
        weights.push({ id: 'wall', name: 'processor + blocked time', unit: 'ns', counter: cpu.counter });
    }
    if (hasIntervals) {
        weights.push({ id: 'blocked', name: 'blocked time', unit: 'ns' });
    }
    weights.push(...counters.filter((weight) => weight !== cpu));
    weights.push({ id: 'samples', name: 'samples', unit: 'count' }, { id: 'time', name: 'time', unit: 'ns' });
    return weights;
}

// How many of `count` samples, evenly from first to last, lie in [from, to).
export function countInRange(first, last, count, from, to) {
    if (first >= from && last < to) {
        return count;
    }
    if (count === 1 || last <= first) {
        return first >= from && first < to ? count : 0;
    }
    const step = (last - first) / (count - 1);
    const before = (time) => Math.min(count, Math.max(0, Math.ceil((time - first) / step - 1e-9)));
    return before(to) - before(from);
}

export function isChosen(thread, choice) {
    return choice.thread >= 0 ? thread.index === choice.thread : !(choice.process >= 0) || thread.process === choice.process;
}

// Adds to `self`, and to `told` what the coarse clock told of it. Returns how sure the sums are.
function* weighSamples(trace, column, choice, self, told) {
    const { samples, threads } = trace, { kind, from, to } = choice, fine = new WeightSums(), coarse = new WeightSums();
    for (const thread of threads) {
        if (!isChosen(thread, choice)) {
            continue;
        }
        for (let i = thread.firstSample; i < thread.firstSample + thread.sampleCount; i++) {
            if (i % ROWS_PER_SLICE === 0) {
                yield;
            }
            if (kind >= 0 && samples.kind[i] !== kind) {
                continue;
            }
            const all = samples.count[i];
            const counted = countInRange(samples.first[i], samples.last[i], all, from, to);
            if (counted > 0) {
                const each = column ? column[i] / all : 1, isTold = told && samples.flags[i] & FLAG_TOLD;
                self[samples.frame[i]] += each * counted;
                (isTold ? coarse : fine).add(each, counted);
                if (isTold) {
                    told[samples.frame[i]] += each * counted;
                }
            }
        }
    }
    return new Certainty(fine, coarse, trace.kernelTickNs);
}

function* weighTime(trace, segments, choice, self) {
    const { kind, from, to } = choice, { kind: kinds, frame: frames } = trace.samples;
    for (let t = 0; t < segments.length; t++) {
        if (!isChosen(trace.threads[t], choice)) {
            continue;
        }
        const { count, start, sample, state } = segments[t];
        for (let i = 0; i < count; i++) {
            if (i % ROWS_PER_SLICE === 0) {
                yield;
            }
            if (!hasStack(state[i]) || (kind >= 0 && kinds[sample[i]] !== kind)) {
                continue;
            }
            const time = Math.min(start[i + 1], to) - Math.max(start[i], from);
            if (time > 0) {
                self[frames[sample[i]]] += time; // an interval's time is its sample's, whatever stack it began with
            }
        }
    }
}

// Each interval as long as it was: what was not recorded of them (too short, throttled) is not here.
function* weighBlocked(trace, choice, self) {
    const { intervals, samples } = trace, { kind, from, to } = choice;
    for (const thread of trace.threads) {
        if (!isChosen(thread, choice)) {
            continue;
        }
        const { first, count } = intervals.threads[thread.index];
        for (let i = first; i < first + count; i++) {
            if (i % ROWS_PER_SLICE === 0) {
                yield;
            }
            const sample = intervals.sample[i];
            if (kind < 0 || samples.kind[sample] === kind) {
                self[samples.frame[sample]] += blockedIn(intervals, i, from, to);
            }
        }
    }
}

// choice: {weight (of weightsOf), process, thread (index, or -1: all), kind (number, or -1: all), from, to (ns, to not
// included)}. Returns {self, total: of each frame, told, totalTold: of these, by the coarse clock; certainty (certainty.mjs;
// null: these are no estimates)}.
export function* aggregate(trace, segments, choice) {
    const { frames } = trace, { id, counter } = choice.weight;
    const self = new Float64Array(frames.count), told = id === 'cpu' ? new Float64Array(frames.count) : null;
    let certainty = null;
    if (id === 'time') {
        yield* weighTime(trace, segments, choice, self);
    } else if (id !== 'blocked') {
        const column = counter ? yield* columnOf(counter, trace) : null;
        certainty = yield* weighSamples(trace, column, choice, self, told);
    }
    if (id === 'blocked' || id === 'wall') {
        yield* weighBlocked(trace, choice, self);
        certainty = null;
    }
    const total = self.slice(), totalTold = told && told.slice();
    for (let i = frames.count - 1; i > 0; i--) {
        total[frames.parent[i]] += total[i];
        if (told) {
            totalTold[frames.parent[i]] += totalTold[i];
        }
        if (i % ROWS_PER_SLICE === 0) {
            yield;
        }
    }
    return { self, total, told, totalTold, certainty };
}

// For each frame whether the same function stands further out in its stack. Counting totals of functions, such a frame
// is in the outer one's already.
export function* findRepeats(trace) {
    const { frames, functions } = trace;
    const repeats = new Uint8Array(frames.count), onPath = new Uint32Array(functions.name.length);
    let frame = frames.firstChild[0], steps = 0;
    while (frame !== 0) {
        repeats[frame] = onPath[frames.func[frame]]++ > 0 ? 1 : 0;
        if (++steps % ROWS_PER_SLICE === 0) {
            yield;
        }
        if (frames.firstChild[frame] !== 0) {
            frame = frames.firstChild[frame];
            continue;
        }
        while (frame !== 0) {
            onPath[frames.func[frame]]--;
            if (frames.nextSibling[frame] !== 0) {
                frame = frames.nextSibling[frame];
                break;
            }
            frame = frames.parent[frame];
        }
    }
    return repeats;
}

// Rows {func, self, total, told, totalTold} of the functions that weigh something.
export function* functionTable(trace, repeats, sums) {
    const { frames, functions } = trace, count = functions.name.length;
    const self = new Float64Array(count), total = new Float64Array(count), told = new Float64Array(count), totalTold = new Float64Array(count);
    for (let i = 1; i < frames.count; i++) {
        self[frames.func[i]] += sums.self[i];
        told[frames.func[i]] += sums.told ? sums.told[i] : 0;
        if (!repeats[i]) {
            total[frames.func[i]] += sums.total[i];
            totalTold[frames.func[i]] += sums.told ? sums.totalTold[i] : 0;
        }
        if (i % ROWS_PER_SLICE === 0) {
            yield;
        }
    }
    const rows = [];
    for (let func = 0; func < total.length; func++) {
        if (total[func] > 0) {
            rows.push({ func, self: self[func], total: total[func], told: told[func], totalTold: totalTold[func] });
        }
    }
    return rows;
}

// Modules by what their functions weigh themselves: [{module, self, told}], the heaviest first.
export function moduleShares(trace, rows) {
    const shares = new Map();
    for (const { func, self, told } of rows) {
        const module = trace.functions.module[func], share = shares.get(module) || { module, self: 0, told: 0 };
        share.self += self;
        share.told += told || 0;
        shares.set(module, share);
    }
    return [...shares.values()].filter(({ self }) => self > 0)
        .sort((a, b) => b.self - a.self || a.module - b.module);
}

// Which functions a search means: text anywhere in the name or the module, capitals or not; /.../ is a regular
// expression. Null: of no use (empty, or no regular expression).
export function* searchFunctions(trace, query) {
    let test;
    const expression = /^\/(.+)\/$/.exec(query);
    if (query === '') {
        return null;
    }
    if (expression) {
        try {
            const compiled = new RegExp(expression[1], 'i');
            test = (text) => compiled.test(text);
        } catch {
            return null;
        }
    } else {
        const wanted = query.toLowerCase();
        test = (text) => text.toLowerCase().includes(wanted);
    }
    const { functions, strings } = trace;
    const ofString = new Int8Array(strings.starts.length).fill(-1);
    const means = (string) => {
        if (ofString[string] < 0) {
            ofString[string] = test(strings.text(string)) ? 1 : 0;
        }
        return ofString[string] === 1;
    };
    const matches = new Uint8Array(functions.name.length);
    for (let func = 0; func < matches.length; func++) {
        matches[func] = means(functions.name[func]) || means(functions.module[func]) ? 1 : 0;
        if (func % 1024 === 0) {
            yield;
        }
    }
    return matches;
}

// What the stacks weigh that have one of these functions in them, and how many functions those are.
export function matchedShare(trace, total, matches) {
    const { frames } = trace;
    const covered = new Uint8Array(frames.count), seen = new Uint8Array(matches.length);
    let sum = 0, count = 0;
    for (let i = 1; i < frames.count; i++) {
        const isMatch = matches[frames.func[i]] && total[i] > 0;
        if (isMatch && !seen[frames.func[i]]) {
            seen[frames.func[i]] = 1;
            count++;
        }
        covered[i] = covered[frames.parent[i]];
        if (isMatch && !covered[i]) {
            covered[i] = 1;
            sum += total[i];
        }
    }
    return { sum, count };
}
