// SPDX-License-Identifier: Apache-2.0
// The lane above a thread's slices: whether it ran, what it waited in (colour and letter), and where records are
// missing; the same shows in the slices below.
import { formatCount, formatTime } from './format.mjs';
import { FLAG_OPEN, waitOf } from './kinds.mjs';
import { canvasFont } from './scroll_canvas.mjs';
import { BLOCKED, hasStack, IDLE, QUIET, RUNNING, stateNames, UNSAMPLED } from './segments.mjs';

const LETTER_WIDTH = 9, CHARACTER = 6, ALONE = 3;
const laneFont = '700 10px ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace';

// Diagonal stripes, so that states are told apart without colours too.
function stripes(context, x, y, width, height, colour, step) {
    context.save();
    context.beginPath();
    context.rect(x, y, width, height);
    context.clip();
    context.strokeStyle = colour;
    context.lineWidth = 1;
    context.beginPath();
    for (let at = x - height - ((x - height) % step); at < x + width; at += step) {
        context.moveTo(at, y + height);
        context.lineTo(at + height, y);
    }
    context.stroke();
    context.restore();
}

// Steps next to each other in the same state, and of stacks as deep, are one; so are waits that are too short to be told
// apart.
export function statesOf(steps, { segments, trace }) {
    const { state, frame, sample } = segments, depths = trace.frames.depth, runs = [];
    for (const { left, right, segment } of steps) {
        const last = runs[runs.length - 1], depth = depths[frame[segment]], its = state[segment];
        const kind = its === BLOCKED ? trace.samples.kind[sample[segment]] : -1;
        const isSame = last && last.state === its && last.depth === depth && last.kind === kind && left - last.right < 0.01;
        const isApart = isSame && kind >= 0 && last.sample !== sample[segment] && (right - left > ALONE || last.right - last.left > ALONE);
        if (isSame && !isApart) {
            last.right = right;
        } else {
            runs.push({ left, right, state: its, depth, kind, sample: sample[segment] });
        }
    }
    return runs;
}

// A wait: its colour, its letter, its length where there is room; one that did not end is open to the right.
function drawWait(context, theme, track, { left, right, kind, sample }, y, height) {
    const { letter, colour } = waitOf(kind), { trace } = track, width = Math.max(right - left, 1);
    const isOpen = trace.samples.flags[sample] & FLAG_OPEN, fill = theme[colour];
    context.fillStyle = fill;
    if (isOpen && width > ALONE) {
        context.strokeStyle = fill;
        context.lineWidth = 1;
        context.setLineDash([4, 3]);
        context.strokeRect(left + 0.5, y + 0.5, width + 4, height - 1);
        context.setLineDash([]);
        context.fillRect(left, y, Math.min(width, LETTER_WIDTH + 2), height);
    } else {
        context.fillRect(left, y, width - (width > ALONE ? 1 : 0), height);
    }
    const seen = Math.max(left, 0);
    if (right - seen < LETTER_WIDTH) {
        return;
    }
    context.font = laneFont;
    context.textBaseline = 'middle';
    context.fillStyle = theme.paper;
    context.fillText(letter, seen + 2, y + height / 2 + 0.5);
    const interval = trace.intervals.ofSample.get(sample);
    if (interval === undefined) {
        return;
    }
    const text = `${formatTime(trace.intervals.end[interval] - trace.intervals.begin[interval])}${isOpen ? ', no end' : ''}`;
    if (right - seen > LETTER_WIDTH + 8 + CHARACTER * text.length) {
        context.fillStyle = isOpen ? theme.ink : theme.paper;
        context.fillText(text, seen + LETTER_WIDTH + 4, y + height / 2 + 0.5);
    }
}

// y: the lane's top; slices: theirs.
export function drawStates(context, theme, track, runs, y, height, slices) {
    for (const run of runs) {
        const { left, right, state, depth } = run;
        const width = Math.max(right - left, 1), deep = Math.min(depth, track.rowCount) * track.rowHeight;
        if (state === RUNNING) {
            context.fillStyle = theme.running;
            context.fillRect(left, y + 2, width, height - 5);
        } else if (state === BLOCKED) {
            drawWait(context, theme, track, run, y, height - 1);
            context.globalAlpha = 0.5;
            stripes(context, left, slices, width, deep, theme[waitOf(run.kind).colour], 7);
            context.globalAlpha = 1;
        } else if (state === QUIET) {
            context.fillStyle = theme.quiet;
            context.fillRect(left, y + 4, width, 3);
            context.globalAlpha = 0.55;
            context.fillStyle = theme.paper;
            context.fillRect(left, slices, width, deep);
            context.globalAlpha = 1;
        } else if (state === IDLE) {
            context.fillStyle = theme.quiet;
            context.fillRect(left, y + 4, width, 3);
        } else if (state === UNSAMPLED) {
            context.fillStyle = theme.line;
            context.fillRect(left, y + 5, width, 1);
        }
    }
}

// At least two pixels wide, however short they are: nothing that is missing is out of sight.
export function drawGaps(context, theme, track, x, { left: leftmost, right: rightmost, lane, laneHeight, slices }) {
    const { gaps } = track.trace, { thread } = track, deep = track.rowCount * track.rowHeight;
    let behind = -Infinity;
    for (let i = thread.firstGap; i < thread.firstGap + thread.gapCount; i++) {
        const left = Math.max(x(gaps.from[i]), leftmost), right = x(gaps.from[i] + gaps.length[i]);
        if (right < leftmost || left > rightmost || right < behind) {
            continue;
        }
        const width = Math.max(2, Math.min(right, rightmost) - left);
        behind = left + width;
        context.fillStyle = theme.gap;
        context.fillRect(left, lane, width, laneHeight - 2);
        stripes(context, left, slices, width, deep, theme.gap, 5);
        const text = `${formatCount(gaps.lost[i])} ${stateNames[3 + gaps.reason[i]]}`;
        if (width > 8 + 7 * text.length && deep >= 14) {
            context.font = canvasFont;
            context.textBaseline = 'middle';
            context.fillStyle = theme.paper;
            context.fillRect(left + 4, slices + 2, 7 * text.length + 4, 14);
            context.fillStyle = theme.ink;
            context.fillText(text, left + 6, slices + 9);
        }
    }
}

// What stands at a time and a depth, in words for the status line.
export function stateText(segments, i) {
    const state = segments.state[i];
    return hasStack(state) && state !== RUNNING ? stateNames[state] : hasStack(state) ? '' : stateNames[state];
}
