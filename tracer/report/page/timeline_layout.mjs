// SPDX-License-Identifier: Apache-2.0
// What of a thread is seen in a window of time: slices that are wide enough as they are, and where many segments share
// a column of pixels, the stack of the longest of them. Whether a frame goes on from one drawn stack to the next is
// exact: the least that any two neighbours between them have in common. That takes a few steps for each column, however
// many segments there are.
import { hasStack } from './segments.mjs';
import { ROWS_PER_SLICE } from './work.mjs';

const FAN = 16;

// What names of threads take of a width.
export const gutterOf = (width) => (width < 600 ? 112 : 148);

// For ranges of segments: the least `common`, and the longest one.
export class Pyramid {
    constructor(segments) {
        this.segments = segments;
        this.least = [segments.common];
        this.longest = [null];
    }
    static* build(segments) {
        const pyramid = new Pyramid(segments), { least, longest } = pyramid;
        for (let size = segments.count, level = 0; size > FAN; level++) {
            const above = Math.ceil(size / FAN);
            least.push(new Uint32Array(above));
            longest.push(new Uint32Array(above));
            for (let i = 0; i < above; i++) {
                pyramid.sumUp(level, i, Math.min(size, (i + 1) * FAN));
                if (i % ROWS_PER_SLICE === 0) {
                    yield;
                }
            }
            size = above;
        }
        return pyramid;
    }
    sumUp(level, i, end) {
        const below = this.least[level], { start } = this.segments;
        let least = below[i * FAN], longest = this.longestAt(level, i * FAN), time = start[longest + 1] - start[longest];
        for (let j = i * FAN + 1; j < end; j++) {
            least = below[j] < least ? below[j] : least;
            const other = level === 0 ? j : this.longest[level][j], itsTime = start[other + 1] - start[other];
            if (itsTime > time) {
                longest = other;
                time = itsTime;
            }
        }
        this.least[level + 1][i] = least;
        this.longest[level + 1][i] = longest;
    }
    longestAt(level, i) {
        return level === 0 ? i : this.longest[level][i];
    }
    // Calls take(level, index) for blocks that together are [from, to).
    cover(from, to, take) {
        for (let level = 0; from < to; level++) {
            const isTop = level + 1 >= this.least.length;
            while (from < to && (isTop || from % FAN !== 0)) {
                take(level, from++);
            }
            while (from < to && to % FAN !== 0) {
                take(level, --to);
            }
            from /= FAN;
            to /= FAN;
        }
    }
    // The least of common[from], ..., common[to - 1].
    leastCommon(from, to) {
        let least = Infinity;
        this.cover(from, to, (level, i) => {
            least = Math.min(least, this.least[level][i]);
        });
        return least;
    }
    // Of equally long ones the first.
    longestOf(from, to) {
        const { start } = this.segments;
        let longest = from, time = start[from + 1] - start[from];
        this.cover(from, to, (level, i) => {
            const other = this.longestAt(level, i), itsTime = start[other + 1] - start[other];
            if (itsTime > time || (itsTime === time && other < longest)) {
                longest = other;
                time = itsTime;
            }
        });
        return longest;
    }
}

// The segment at a time: the last one that begins at or before it.
export function segmentAt(segments, time, low = 0) {
    let high = segments.count;
    while (low + 1 < high) {
        const middle = (low + high) >> 1;
        if (segments.start[middle] <= time) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return low;
}

// The window [from, to) ns on `width` pixels, as steps from left to right: {left, right, segment}, left and right in
// pixels. None is narrower than a pixel, but for the last.
export function stepsOf(segments, pyramid, from, to, width) {
    const steps = [], { start, count } = segments;
    if (count === 0 || to <= from) {
        return steps;
    }
    const scale = width / (to - from), x = (time) => (time - from) * scale;
    const end = Math.min(width, x(start[count]));
    let left = Math.max(0, x(start[0])), i = segmentAt(segments, Math.max(from, start[0]));
    while (left < end) {
        const columnEnd = left + 1;
        let right = x(start[i + 1]), shown = i, next = i + 1;
        if (right < columnEnd && next < count) {
            // All that end in this column, and the one that goes beyond it does not count.
            next = Math.max(i + 1, segmentAt(segments, from + columnEnd / scale, i));
            shown = pyramid.longestOf(i, next);
            right = Math.max(columnEnd, x(start[next]));
        }
        right = Math.min(right, end);
        if (right > left) {
            steps.push({ left, right, segment: shown });
            left = right;
        } else if (next >= count) {
            break;
        }
        i = next;
        if (i >= count) {
            break;
        }
    }
    return steps;
}

// The steps' slices: emit(frame, depth (from 1 on), left, right), none deeper than depthMax.
export function slicesOfSteps(frames, segments, pyramid, steps, depthMax, emit) {
    const openFrame = [], openLeft = [];
    let previous = -1, x = 0;
    const closeTo = (depth) => {
        while (openFrame.length > depth) {
            const depthOfIt = openFrame.length;
            emit(openFrame.pop(), depthOfIt, openLeft.pop(), x);
        }
    };
    const stack = [];
    for (const { left, right, segment } of steps) {
        const has = hasStack(segments.state[segment]);
        closeTo(!has || previous < 0 ? 0 : Math.min(depthMax, pyramid.leastCommon(previous + 1, segment + 1)));
        if (has) {
            let frame = segments.frame[segment];
            while (frames.depth[frame] > depthMax) {
                frame = frames.parent[frame];
            }
            for (; frames.depth[frame] > openFrame.length; frame = frames.parent[frame]) {
                stack.push(frame);
            }
            while (stack.length) {
                openFrame.push(stack.pop());
                openLeft.push(left);
            }
        }
        previous = has ? segment : -1;
        x = right;
    }
    closeTo(0);
}
