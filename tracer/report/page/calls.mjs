// SPDX-License-Identifier: Apache-2.0
// Exact calls of a thread in the timeline: below its samples' slices, a row for each depth. They are drawn by time, not
// by call: of those that share a pixel one is seen, and the next one is looked for behind it.
import { formatTime } from './format.mjs';
import { canvasFont, fitText } from './scroll_canvas.mjs';
import { ROWS_PER_SLICE } from './work.mjs';

const ROWS_CLOSED = 6, ROWS_OPEN = 60, ROW_CLOSED = 9, ROW_OPEN = 15, GAP = 4;
const HOW = ['', 'left by a jump (tail call)', 'unwound', 'open at the end of the trace', 'its end was lost'];

// Columns are those of pack.h, as numbers. Threads with calls get `calls`.
export function* giveCalls(threads, columns) {
    const ends = columns.begin.length;
    let at = 0;
    for (let lane = 0; lane < columns.thread.length; lane++) {
        const thread = threads[columns.thread[lane]], end = Math.min(at + columns.count[lane], ends);
        const calls = thread.calls || (thread.calls = { rows: [], count: 0 }), firstRow = calls.rows.length;
        for (let time = 0; at < end; at++) {
            time += columns.begin[at];
            const row = firstRow + Math.min(columns.depth[at], ROWS_OPEN * 4);
            while (calls.rows.length <= row) {
                calls.rows.push({ begin: [], end: [], func: [], how: [] });
            }
            const { begin, end: until, func, how } = calls.rows[row];
            begin.push(time);
            until.push(time + columns.length[at]);
            func.push(columns.func[at]);
            how.push(columns.how[at]);
            calls.count++;
            if (at % ROWS_PER_SLICE === 0) {
                yield;
            }
        }
    }
}

// The first of a row that ends behind a time.
export function firstBehind({ end }, time) {
    let low = 0, high = end.length;
    while (low < high) {
        const middle = (low + high) >> 1;
        if (end[middle] <= time) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

// What a track has room for.
export class CallRows {
    constructor(thread) {
        this.calls = thread.calls || null;
    }
    count(isOpen) {
        return this.calls ? Math.min(this.calls.rows.length, isOpen ? ROWS_OPEN : ROWS_CLOSED) : 0;
    }
    rowHeight(isOpen) {
        return isOpen ? ROW_OPEN : ROW_CLOSED;
    }
    height(isOpen) {
        return this.calls ? GAP + this.count(isOpen) * this.rowHeight(isOpen) : 0;
    }
    // The call at a time, y pixels below the rows' top; null: there is none.
    at(time, nextTime, y, isOpen) {
        const row = Math.floor((y - GAP) / this.rowHeight(isOpen));
        if (!this.calls || row < 0 || row >= this.count(isOpen)) {
            return null;
        }
        const of = this.calls.rows[row], i = firstBehind(of, time);
        return i < of.begin.length && of.begin[i] <= nextTime ? { from: of.begin[i], to: of.end[i], func: of.func[i], how: of.how[i] } : null;
    }
    draw(context, painter, trace, y, isOpen) {
        const height = this.rowHeight(isOpen), { theme, view, gutter, width, colours } = painter;
        context.textBaseline = 'middle';
        context.font = canvasFont;
        for (let row = 0; row < this.count(isOpen); row++) {
            const { begin, end, func, how } = this.calls.rows[row], top = y + GAP + row * height;
            for (let i = firstBehind({ end }, view.from); i < begin.length && begin[i] < view.to;) {
                const left = Math.max(painter.x(begin[i]), gutter), right = Math.min(painter.x(end[i]), width), wide = Math.max(right - left, 1);
                context.fillStyle = colours.func(func[i]);
                context.globalAlpha = how[i] > 1 ? 0.55 : 1;
                context.fillRect(left, top, wide > 3 ? wide - 0.75 : wide, height - 1);
                context.globalAlpha = 1;
                if (height >= ROW_OPEN && wide > 24) {
                    context.fillStyle = theme['box-ink'];
                    context.fillText(fitText(context, trace.functionName(func[i]), wide - 6), left + 3, top + height / 2);
                }
                // What ends within the same pixel is not seen beside it.
                i = wide > 1 ? i + 1 : Math.max(i + 1, firstBehind({ end }, view.from + (left + 1 - gutter) / painter.scale));
            }
        }
    }
}

export function describeCall(trace, { from, to, func, how }) {
    const lines = [`${formatTime(to - from)}, exactly`, trace.moduleName(func), HOW[how]];
    return { heading: trace.functionName(func), lines: lines.filter(Boolean) };
}
