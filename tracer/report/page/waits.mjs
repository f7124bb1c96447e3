// SPDX-License-Identifier: Apache-2.0
// What was waited for, by which thread, and for which: intervals in groups.
import { isChosen } from './aggregate.mjs';
import { EXTRA_LOCK, extraNumber, extrasOf, lockText } from './extras.mjs';
import { formatHex } from './format.mjs';
import { blockedIn } from './intervals.mjs';
import { ROWS_PER_SLICE } from './work.mjs';

const EXTRA_OWNER = 3, EXTRA_WAKER = 4, EXTRA_FLOW = 6;

// What the extras of a sample say of a lock: {lock (its name, or address), address, owner, waker, flow}; texts, tids; ''
// and 0 where they do not.
export function lockFacts(trace, sample) {
    const { extras } = trace, facts = { lock: '', address: '', owner: 0, waker: 0, flow: '' };
    const [from, to] = extrasOf(extras, sample);
    for (let i = from; i < to; i++) {
        switch (extras.key[i]) {
        case EXTRA_LOCK:
            facts.lock = lockText(extras, i);
            facts.address = formatHex(extras.low[i], extras.high[i]);
            break;
        case EXTRA_OWNER: facts.owner = extraNumber(extras, i); break;
        case EXTRA_WAKER: facts.waker = extraNumber(extras, i); break;
        case EXTRA_FLOW: facts.flow = formatHex(extras.low[i], extras.high[i]); break;
        }
    }
    return facts;
}

// Threads by tid, of the same process: tids are used again, so the time decides.
export class ThreadFinder {
    constructor(trace) {
        this.byTid = new Map();
        for (const thread of trace.threads) {
            const key = `${thread.process} ${thread.tid}`;
            if (!this.byTid.has(key)) {
                this.byTid.set(key, []);
            }
            this.byTid.get(key).push(thread);
        }
    }
    // null: no such thread is in the trace.
    find(process, tid, time) {
        const all = this.byTid.get(`${process} ${tid}`) || [], sampled = all.filter(({ sampleCount }) => sampleCount > 0);
        const list = sampled.length ? sampled : all;
        let found = list[0] || null;
        for (const thread of list) {
            found = thread.startNs <= time ? thread : found;
        }
        return found;
    }
}

// The releases, by the samples of the waits that they ended.
export function releasesOf(flows) {
    const releases = new Map();
    for (const { from, to } of flows) {
        releases.set(to, from);
    }
    return releases;
}

function add(groups, key, make, time, interval, intervals) {
    let group = groups.get(key);
    if (!group) {
        group = { ...make(), count: 0, total: 0, longest: -1, longestTime: -1, open: 0 };
        groups.set(key, group);
    }
    group.count++;
    group.total += time;
    group.open += intervals.isOpen[interval];
    if (time > group.longestTime) {
        group.longestTime = time;
        group.longest = interval;
    }
}

// choice as for aggregate. Returns {locks: [{lock, address, waiter (thread), owner, waker (tids), count, total, longest (an
// interval), longestTime, open, members (its intervals' samples)}], calls: [{kind, func, threads (how many), count,
// ...}]}, the longest totals first.
export function* groupWaits(trace, choice) {
    const { intervals, samples, threads, frames } = trace, { kind, from, to } = choice;
    const locks = new Map(), calls = new Map();
    for (const thread of threads) {
        if (!isChosen(thread, choice)) {
            continue;
        }
        const { first, count } = intervals.threads[thread.index];
        for (let i = first; i < first + count; i++) {
            if (i % ROWS_PER_SLICE === 0) {
                yield;
            }
            const sample = intervals.sample[i], itsKind = samples.kind[sample];
            if ((kind >= 0 && itsKind !== kind) || intervals.end[i] < from || intervals.begin[i] >= to) {
                continue;
            }
            const time = blockedIn(intervals, i, from, to), frame = samples.frame[sample];
            const func = frames.func[frame], call = `${itsKind} ${frame === 0 ? -1 : func}`;
            add(calls, call, () => ({ kind: itsKind, frame, func, threadSet: new Set() }), time, i, intervals);
            calls.get(call).threadSet.add(thread.index);
            const { lock, address, owner, waker } = lockFacts(trace, sample);
            if (lock || owner || waker) {
                const key = `${itsKind} ${address} ${thread.index} ${owner} ${waker}`;
                add(locks, key, () => ({ lock, address, kind: itsKind, waiter: thread, owner, waker, members: [] }), time, i, intervals);
                locks.get(key).members.push(sample);
            }
        }
    }
    const largestFirst = (a, b) => b.total - a.total || b.count - a.count;
    return { locks: [...locks.values()].sort(largestFirst), calls: [...calls.values()].sort(largestFirst) };
}

// The innermost frames of a stack, innermost first, as far as there are so many.
export function innermost(trace, frame, count) {
    const list = [];
    for (; frame !== 0 && list.length < count; frame = trace.frames.parent[frame]) {
        list.push(frame);
    }
    return list;
}
