// SPDX-License-Identifier: Apache-2.0
// Counters of a thread in the timeline: below its slices and calls, a row for each, as steps from its least value to its
// greatest, 0 among them. A value holds until the next one.
import { formatCount, formatMoment } from './format.mjs';
import { canvasFont, fitText } from './scroll_canvas.mjs';

const ROWS_CLOSED = 8, ROWS_OPEN = 512, ROW = 24, GAP = 4, PAD = 2, MARK_COUNTER = 3;

// Of 64 bits in two halves, with a sign; exact up to 2^53.
export function signedValue(low, high) {
    return (high >= 2 ** 31 ? high - 2 ** 32 : high) * 2 ** 32 + low;
}

export function formatSigned(value) {
    return `${value < 0 ? '−' : ''}${formatCount(Math.abs(value))}`;
}

// The last of a counter's values at a time; -1: there is none yet.
export function valueAt({ time }, at) {
    let low = 0, high = time.length;
    while (low < high) {
        const middle = (low + high) >> 1;
        if (time[middle] <= at) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low - 1;
}

export class CounterRows {
    constructor({ marks, strings, lengthNs }, thread) {
        const all = new Map();
        for (let i = thread.firstMark; i < thread.firstMark + thread.markCount; i++) {
            if (marks.kind[i] === MARK_COUNTER) {
                const name = strings.text(marks.name[i]), counter = all.get(name) || { name, time: [], value: [], least: 0, most: 0 };
                const value = signedValue(marks.low[i], marks.high[i]);
                counter.time.push(marks.time[i]);
                counter.value.push(value);
                counter.least = Math.min(counter.least, value);
                counter.most = Math.max(counter.most, value);
                all.set(name, counter);
            }
        }
        this.counters = [...all.values()];
        this.endTime = thread.endNs === null ? lengthNs : thread.endNs;
    }
    count(isOpen) {
        return Math.min(this.counters.length, isOpen ? ROWS_OPEN : ROWS_CLOSED);
    }
    get hasMore() {
        return this.counters.length > ROWS_CLOSED;
    }
    height(isOpen) {
        return this.counters.length ? GAP + this.count(isOpen) * ROW : 0;
    }
    // The counter at a time, y pixels below the rows' top, with its value and how long it holds; null: there is none.
    at(time, y, isOpen) {
        const row = Math.floor((y - GAP) / ROW);
        if (row < 0 || row >= this.count(isOpen)) {
            return null;
        }
        const counter = this.counters[row], i = valueAt(counter, time);
        return i < 0 ? { name: counter.name } : { name: counter.name, value: counter.value[i], from: counter.time[i], to: this.until(counter, i) };
    }
    until({ time }, i) {
        return i + 1 < time.length ? time[i + 1] : Math.max(this.endTime, time[i]);
    }
    draw(context, painter, y, isOpen) {
        for (let row = 0; row < this.count(isOpen); row++) {
            this.drawRow(context, painter, this.counters[row], y + GAP + row * ROW);
        }
    }
    drawRow(context, painter, counter, top) {
        const { theme, view, gutter, width } = painter, { time, value, least, most } = counter;
        const scale = most > least ? (ROW - 2 * PAD) / (most - least) : 0, zero = top + PAD + most * scale;
        context.fillStyle = theme.line;
        context.fillRect(gutter, top + ROW - 1, width - gutter, 1);
        for (let i = Math.max(0, valueAt(counter, view.from)); i < time.length && time[i] < view.to;) {
            const left = Math.max(painter.x(time[i]), gutter), right = Math.min(painter.x(this.until(counter, i)), width);
            if (right >= gutter && most > least) {
                const at = zero - value[i] * scale, wide = Math.max(right - left, 1);
                context.fillStyle = theme.running;
                context.globalAlpha = 0.3;
                context.fillRect(left, Math.min(at, zero), wide, Math.abs(zero - at));
                context.globalAlpha = 1;
                context.fillRect(left, at - 0.75, wide, 1.5);
            }
            // Of those that share a pixel the last one is seen.
            i = right - left >= 1 ? i + 1 : Math.max(i + 1, valueAt(counter, view.from + (left + 1 - gutter) / painter.scale));
        }
        this.drawLabel(context, painter, counter, top);
    }
    // On a ground of its own, so that the steps below do not spoil it.
    drawLabel(context, { theme, view, gutter, width }, counter, top) {
        const i = valueAt(counter, view.to), room = Math.max(0, (width - gutter) * 0.6);
        const text = fitText(context, `${counter.name}${i < 0 ? '' : `  ${formatSigned(counter.value[i])}`}`, room);
        context.font = canvasFont;
        context.textBaseline = 'middle';
        context.fillStyle = theme.paper;
        context.globalAlpha = 0.8;
        context.fillRect(gutter + 2, top + 5, context.measureText(text).width + 6, ROW - 11);
        context.globalAlpha = 1;
        context.fillStyle = theme.ink;
        context.fillText(text, gutter + 5, top + ROW / 2);
    }
}

export function describeCounter(trace, { name, value, from, to }) {
    if (value === undefined) {
        return { heading: name, lines: ['no value yet'] };
    }
    const step = Math.max(to - from, 1) / 100, moment = (time) => formatMoment(time, step, Math.max(trace.lengthNs, 1));
    return { heading: `${name}: ${formatSigned(value)}`, lines: [`from ${moment(from)} to ${moment(to)}`] };
}
