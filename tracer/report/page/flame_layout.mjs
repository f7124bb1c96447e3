// SPDX-License-Identifier: Apache-2.0
// Where the frames of a flame graph lie: rows of boxes, each row from left to right, the heaviest child first.

export const REST = 0xffffffff; // a box for all children that are too narrow

export class Layout {
    constructor() {
        this.frame = [];
        this.left = [];
        this.right = [];
        this.parent = []; // index of the box above; -1
        this.rows = [0]; // where each row begins, and the end of the last one
        this.rootBox = 0; // of the frame that fills the width
    }
    add(frame, left, right, parent) {
        this.frame.push(frame);
        this.left.push(left);
        this.right.push(right);
        this.parent.push(parent);
    }
    get rowCount() {
        return this.rows.length - 1;
    }
    get count() {
        return this.frame.length;
    }
    rowOf(box) {
        let low = 0, high = this.rowCount;
        while (low + 1 < high) {
            const middle = (low + high) >> 1;
            if (this.rows[middle] <= box) {
                low = middle;
            } else {
                high = middle;
            }
        }
        return low;
    }
    // The box at x of a row; -1: there is none.
    at(row, x) {
        if (row < 0 || row >= this.rowCount) {
            return -1;
        }
        let low = this.rows[row], high = this.rows[row + 1];
        while (low < high) {
            const middle = (low + high) >> 1;
            if (this.right[middle] <= x) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        return low < this.rows[row + 1] && this.left[low] <= x ? low : -1;
    }
    boxOf(frame) {
        return this.frame.indexOf(frame);
    }
    // Next to a box: 'left', 'right', 'out' (its parent), 'in' (its heaviest child). -1: there is none.
    neighbour(box, direction) {
        const row = this.rowOf(box);
        switch (direction) {
        case 'left': return box > this.rows[row] ? box - 1 : -1;
        case 'right': return box + 1 < this.rows[row + 1] ? box + 1 : -1;
        case 'out': return this.parent[box];
        default:
            for (let i = this.rows[row + 1]; i < (this.rows[row + 2] || 0); i++) {
                if (this.parent[i] === box) {
                    return i;
                }
            }
            return -1;
        }
    }
}

function childrenOf(frames, total, frame) {
    const children = [];
    for (let child = frames.firstChild[frame]; child !== 0; child = frames.nextSibling[child]) {
        if (total[child] > 0) {
            children.push(child);
        }
    }
    return children.sort((a, b) => total[b] - total[a] || a - b);
}

function addChildren(layout, frames, total, box, leastWidth) {
    const frame = layout.frame[box], scale = (layout.right[box] - layout.left[box]) / total[frame];
    let left = layout.left[box], rest = 0;
    for (const child of childrenOf(frames, total, frame)) {
        const width = total[child] * scale;
        if (width < leastWidth) {
            rest += width;
            continue;
        }
        layout.add(child, left, left + width, box);
        left += width;
    }
    if (rest >= leastWidth) {
        layout.add(REST, left, left + rest, box);
    }
}

// `root` fills the width, and so does each frame outside of it. Boxes narrower than leastWidth are drawn as one.
export function layoutFlame(frames, total, root, width, leastWidth = 0.5) {
    const layout = new Layout(), path = [];
    for (let frame = root; frame !== 0; frame = frames.parent[frame]) {
        path.push(frame);
    }
    path.push(0);
    for (let box = 0; path.length; box++) {
        layout.add(path.pop(), 0, width, box - 1);
        layout.rows.push(layout.count);
    }
    layout.rootBox = layout.count - 1;
    for (let begin = layout.rootBox; total[root] > 0;) {
        const end = layout.count;
        for (let box = begin; box < end; box++) {
            if (layout.frame[box] !== REST) {
                addChildren(layout, frames, total, box, leastWidth);
            }
        }
        if (layout.count === end) {
            break;
        }
        layout.rows.push(layout.count);
        begin = end;
    }
    return layout;
}
