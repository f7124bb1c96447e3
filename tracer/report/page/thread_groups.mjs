// SPDX-License-Identifier: Apache-2.0
// Threads as people look for them: those of equal work together, whoever worked most first, under their processes.

const GROUP_LEAST = 3; // fewer are told one by one

// "worker-12" -> "worker-*": numbers at the end tell threads of one kind apart.
export function foldThreadName(name) {
    return name.replace(/\d+$/, '*').replace(/^\*$/, name);
}

// What each thread did: {cpu, blocked}, ns.
export function workOf(trace) {
    const { samples, intervals } = trace;
    return trace.threads.map(({ index, firstSample, sampleCount }) => {
        const { first, count } = intervals.threads[index];
        let cpu = 0, blocked = 0;
        for (let i = firstSample; samples.cpu && i < firstSample + sampleCount; i++) {
            cpu += Math.max(0, samples.cpu[i]);
        }
        for (let i = first; i < first + count; i++) {
            blocked += intervals.blocked[i];
        }
        return { cpu, blocked, samples: sampleCount };
    });
}

export function sumOfWork(all) {
    const sum = { cpu: 0, blocked: 0, samples: 0 };
    for (const { cpu, blocked, samples } of all) {
        sum.cpu += cpu;
        sum.blocked += blocked;
        sum.samples += samples;
    }
    return sum;
}

// Most processor time first, then the longest blocked; what was never seen comes last.
export function byWork(a, b) {
    return b.work.cpu - a.work.cpu || b.work.blocked - a.work.blocked || b.work.samples - a.work.samples || a.order - b.order;
}

// [{name, threads, work}], by work; threads too. A group of one is that thread.
export function groupThreads(threads, work) {
    const byName = new Map();
    for (const thread of threads) {
        const name = foldThreadName(thread.name);
        byName.set(name, byName.get(name) || []);
        byName.get(name).push({ thread, work: work[thread.index], order: thread.index });
    }
    const groups = [];
    for (const [name, members] of byName) {
        const sorted = members.sort(byWork);
        if (members.length < GROUP_LEAST) {
            groups.push(...sorted.map((member) => ({ name: member.thread.name, threads: [member.thread], work: member.work, order: member.order })));
        } else {
            groups.push({ name, threads: sorted.map(({ thread }) => thread), work: sumOfWork(sorted.map((member) => member.work)), order: sorted[0].order });
        }
    }
    return groups.sort(byWork);
}

// [{process, depth, work}]: each below the process that started it, those that worked most first, with all that they
// started.
export function processTree(trace, work) {
    const own = (process) => sumOfWork(process.threads.map(({ index }) => work[index]));
    const nodes = trace.processes.map((process) => ({ process, children: [], work: own(process), order: process.index, isPlaced: false }));
    const parentOf = ({ process }) => {
        const older = nodes.filter((other) => other.process.pid === process.parent && other.process !== process &&
            other.process.recording === process.recording && other.process.startNs <= process.startNs);
        return older[older.length - 1]; // pids are used again: the last one that was there
    };
    const roots = nodes.filter((node) => {
        const parent = parentOf(node);
        if (parent) {
            parent.children.push(node);
        }
        return !parent;
    });
    const listed = [];
    const sumUp = (node) => {
        node.isPlaced = true;
        const children = node.children.filter(({ isPlaced }) => !isPlaced);
        children.forEach(sumUp);
        node.children = children;
        node.all = sumOfWork([node.work, ...children.map(({ all }) => all)]);
    };
    const list = (some, depth) => some.map((node) => ({ node, work: node.all, order: node.order })).sort(byWork).forEach(({ node }) => {
        listed.push({ process: node.process, depth, work: node.work });
        list(node.children, depth + 1);
    });
    roots.forEach(sumUp);
    // Of processes that are each other's parents, which only a damaged trace has, the first one is a root.
    for (const node of nodes.filter(({ isPlaced }) => !isPlaced)) {
        if (!node.isPlaced) {
            roots.push(node);
            sumUp(node);
        }
    }
    list(roots, 0);
    return listed;
}
