// SPDX-License-Identifier: Apache-2.0
// Two sides as one tree: what qut diff's JSON says, laid out as the flame graph and the table want it.
const CLASS_CODE = 0;

// The tree with frame 0, the root; `share`: of each side, the part of the whole that a frame and what is in it have.
export function treeOf(told) {
    const { parent, function: func, a, b } = told.tree, count = parent.length + 1;
    const frames = { count, parent: new Uint32Array(count), func: new Uint32Array(count), firstChild: new Uint32Array(count),
        nextSibling: new Uint32Array(count), depth: new Uint16Array(count), cls: new Uint8Array(count).fill(CLASS_CODE), flags: new Uint8Array(count) };
    const share = [new Float64Array(count), new Float64Array(count)];
    for (let i = 1; i < count; i++) {
        frames.parent[i] = parent[i - 1];
        frames.func[i] = func[i - 1];
        frames.depth[i] = frames.depth[frames.parent[i]] + 1;
        share[0][i] = told.sum[0] ? a[i - 1] / told.sum[0] : 0;
        share[1][i] = told.sum[1] ? b[i - 1] / told.sum[1] : 0;
    }
    const self = share.map((one) => one.slice());
    for (let i = count - 1; i > 0; i--) {
        share.forEach((one) => {
            one[frames.parent[i]] += one[i];
        });
        frames.nextSibling[i] = frames.firstChild[frames.parent[i]];
        frames.firstChild[frames.parent[i]] = i;
    }
    return { frames, share, self };
}

// From -1 (all of it went) to 1 (all of it is new).
export function changeOf(a, b) {
    const most = Math.max(a, b);
    return most > 0 ? (b - a) / most : 0;
}

// A frame's colour: red where it is more, blue where less, as much as it changed by; a change by half is full colour.
// Pale: of a function of which nothing is told.
export function colourOf(change, isTold, isDark) {
    const strength = Math.min(1, Math.abs(change) * 2) * (isTold ? 1 : 0.3);
    const none = isDark ? [58, 64, 74] : [232, 235, 240], red = isDark ? [170, 52, 44] : [238, 110, 98], blue = isDark ? [40, 92, 176] : [106, 158, 240];
    const full = change > 0 ? red : blue;
    return `rgb(${none.map((part, i) => Math.round(part + (full[i] - part) * strength)).join(',')})`;
}

export const isTold = (row) => row.self.verdict !== 'cannot tell' || row.total.verdict !== 'cannot tell';

// Of a recording of each side.
export function amountsOf(told, row) {
    return [row.self_sum[0] / told.a.length, row.self_sum[1] / told.b.length];
}

const keys = {
    self_a: (told, row) => row.self.a,
    self_b: (told, row) => row.self.b,
    self: (told, row) => Math.abs(row.self.change),
    total_a: (told, row) => row.total.a,
    total_b: (told, row) => row.total.b,
    total: (told, row) => Math.abs(row.total.change),
    amount: (told, row) => Math.abs(amountsOf(told, row)[1] - amountsOf(told, row)[0]),
};

// Rows by a column, the largest first; names from a to z. What is told stands first where changes are sorted.
export function sorted(told, rows, by, isReversed) {
    const sign = isReversed ? -1 : 1, key = keys[by];
    const isChange = by === 'self' || by === 'total' || by === 'amount';
    return [...rows].sort((left, right) => sign * (key
        ? (isChange ? isTold(right) - isTold(left) : 0) || key(told, right) - key(told, left)
        : left.function < right.function ? -1 : left.function > right.function ? 1 : 0));
}
