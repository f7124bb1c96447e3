// SPDX-License-Identifier: Apache-2.0
// Drawing a thread's track: its name, the lane that says whether it ran, its marks, its slices, and where records are
// missing.
import { Activity } from './activity.mjs';
import { drawActivity } from './activity_lane.mjs';
import { CallRows } from './calls.mjs';
import { CounterRows } from './counters.mjs';
import { frameName } from './data.mjs';
import { formatCount } from './format.mjs';
import { canvasFont, fitText } from './scroll_canvas.mjs';
import { hasStack } from './segments.mjs';
import { gutterOf, Pyramid, slicesOfSteps, stepsOf } from './timeline_layout.mjs';
import { drawGaps, drawStates, statesOf } from './timeline_states.mjs';
import { ROWS_PER_SLICE, sliceMs } from './work.mjs';

export const LANE = 12;
const MARKS = 13, PAD = 5, ACTIVITY = 16, RARE = 0.02, SMALL_HEIGHT = 56, SMALL_HEIGHT_MOST = 72, ROW_LARGE = 15, ROW_SMALL_MAX = 9;
const MARK_BEGIN = 1, MARK_END = 2, MARK_COUNTER = 3;

// The depth that the stacks have at most, and that which they do not exceed for nine tenths of the time: what a closed
// track has room for.
function* measureDepth(frames, segments) {
    const times = new Float64Array(frames.maxDepth + 1);
    let all = 0, most = 1;
    for (let i = 0; i < segments.count; i++) {
        if (hasStack(segments.state[i])) {
            const time = segments.start[i + 1] - segments.start[i], depth = frames.depth[segments.frame[i]];
            times[depth] += time;
            all += time;
            most = depth > most ? depth : most;
        }
        if (i % ROWS_PER_SLICE === 0) {
            yield;
        }
    }
    let usual = 0;
    for (let sum = times[0]; usual < most && sum < 0.9 * all; sum += times[usual]) {
        usual++;
    }
    const length = segments.count ? segments.start[segments.count] - segments.start[0] : 0;
    return { most, usual: Math.max(1, usual), isRare: all < RARE * length };
}

export class Track {
    constructor(trace, thread, segments, pyramid, depth, activity) {
        Object.assign(this, { trace, thread, segments, pyramid, activity });
        this.activityHeight = activity.cpu && thread.sampleCount > 0 ? ACTIVITY : 0;
        this.isGrouped = false; // one of many: its stacks are seen when it is opened
        this.depth = depth.most;
        this.usualDepth = depth.usual;
        this.isRare = depth.isRare; // there is next to nothing to see until it is opened and near
        this.isOpen = false;
        this.calls = new CallRows(thread);
        this.counters = new CounterRows(trace, thread);
        this.hasMarks = false;
        for (let i = thread.firstMark; i < thread.firstMark + thread.markCount; i++) {
            this.hasMarks = this.hasMarks || trace.marks.kind[i] !== MARK_COUNTER;
        }
        this.top = 0;
        this.image = null; // of its slices, a pixel for each row and column
    }
    static* build(trace, thread, segments) {
        const pyramid = yield* Pyramid.build(segments);
        const depth = yield* measureDepth(trace.frames, segments);
        return new Track(trace, thread, segments, pyramid, depth, yield* Activity.build(trace, thread));
    }
    get rowHeight() {
        return this.isOpen ? ROW_LARGE : Math.max(2, Math.min(ROW_SMALL_MAX, Math.floor(SMALL_HEIGHT / this.usualDepth)));
    }
    get rowCount() {
        if (this.thread.sampleCount === 0 || (!this.isOpen && (this.isGrouped || this.isRare))) {
            return 0;
        }
        return this.isOpen ? this.depth : Math.min(this.depth, Math.floor(SMALL_HEIGHT_MOST / this.rowHeight));
    }
    // The lane of states.
    get laneTop() {
        return PAD + this.activityHeight;
    }
    // Whether y pixels below the track's top is the lane of marks.
    isMarksAt(y) {
        const top = this.laneTop + LANE + 2;
        return this.hasMarks && y >= top && y < top + MARKS;
    }
    get slicesTop() {
        return this.laneTop + LANE + 2 + (this.hasMarks ? MARKS : 0);
    }
    get callsTop() {
        return this.slicesTop + this.rowCount * this.rowHeight;
    }
    get countersTop() {
        return this.callsTop + this.calls.height(this.isOpen);
    }
    get height() {
        return Math.max(this.countersTop + this.counters.height(this.isOpen) + PAD, 28);
    }
    get canOpen() {
        return this.thread.sampleCount > 0 || this.calls.calls !== null || this.counters.hasMore;
    }
    // The depth at y pixels below the track's top; 0: none.
    depthAt(y) {
        const row = Math.floor((y - this.slicesTop) / this.rowHeight);
        return row >= 0 && row < this.rowCount ? row + 1 : 0;
    }
}

export class TrackPainter {
    // view: {from, to} in ns.
    constructor(context, theme, colours, view, width) {
        Object.assign(this, { context, theme, colours, view, width });
        this.until = performance.now() + sliceMs;
        this.isLate = false; // a track had to wait for the next frame
        this.gutter = gutterOf(width);
        this.scale = (width - this.gutter) / (view.to - view.from);
    }
    x(time) {
        return this.gutter + (time - this.view.from) * this.scale;
    }
    draw(track, y, isCurrent) {
        const { context, width } = this;
        context.save();
        context.beginPath();
        context.rect(this.gutter, y, width - this.gutter, track.height);
        context.clip();
        context.translate(this.gutter, 0);
        const image = this.imageOf(track);
        if (image) {
            this.drawSlices(track, image, y + track.slicesTop);
            drawStates(context, this.theme, track, image.states, y + track.laneTop, LANE, y + track.slicesTop);
            this.drawNames(track, image, y + track.slicesTop);
        }
        context.translate(-this.gutter, 0);
        track.calls.draw(context, this, track.trace, y + track.callsTop, track.isOpen);
        track.counters.draw(context, this, y + track.countersTop, track.isOpen);
        if (track.activityHeight) {
            drawActivity(context, this, track, [track.activity], y + 3, track.activityHeight, '');
        }
        drawGaps(context, this.theme, track, (time) => this.x(time), { left: this.gutter, right: width, lane: y + track.laneTop, laneHeight: LANE, slices: y + track.slicesTop });
        if (track.hasMarks) {
            this.drawMarks(track, y + track.laneTop + LANE + 2);
        }
        context.restore();
        this.drawName(track, y, isCurrent);
    }
    drawName(track, y, isCurrent) {
        const { context, theme } = this, { thread } = track;
        context.fillStyle = isCurrent ? theme.panel : theme.paper;
        context.fillRect(0, y, this.gutter - 6, track.height);
        if (isCurrent) {
            context.fillStyle = theme.accent;
            context.fillRect(0, y, 3, track.height);
        }
        context.fillStyle = theme.ink;
        context.textBaseline = 'top';
        context.font = `600 ${canvasFont}`;
        const arrow = !track.canOpen ? '·' : track.isOpen ? '▾' : '▸';
        context.fillText(fitText(context, `${arrow} ${thread.name || '[no name]'}`, this.gutter - 22), 8, y + PAD);
        context.font = canvasFont;
        context.fillStyle = theme.faint;
        if (track.height > 30) {
            context.fillText(`  ${thread.tid}`, 8, y + PAD + 13);
        }
        if (track.height > 48 && thread.lost) {
            context.fillStyle = theme.gap;
            context.fillText(fitText(context, `  ${formatCount(thread.lost)} lost`, this.gutter - 22), 8, y + PAD + 26);
        }
        context.fillStyle = theme.line;
        context.fillRect(0, y + track.height - 1, this.width, 1);
    }
    // Thousands of slices are a pixel or two wide: they go through an image, and are stretched to their height.
    drawSlices(track, image, y) {
        const { context, theme } = this, height = track.rowHeight, deep = track.rowCount * height;
        if (deep === 0) {
            return;
        }
        context.imageSmoothingEnabled = false;
        context.drawImage(image.canvas, 0, y, image.width, deep);
        context.fillStyle = theme.paper;
        if (height > 4) {
            for (let row = 1; row <= track.rowCount; row++) {
                context.fillRect(0, y + row * height - 1, image.width, 1);
            }
        }
        for (const [, depth, , right] of image.wide) {
            context.fillRect(right - 0.75, y + (depth - 1) * height, 0.75, height);
        }
    }
    // Above the pale and the stripes.
    drawNames(track, image, y) {
        const { context, theme } = this, height = track.rowHeight;
        if (height < ROW_LARGE) {
            return;
        }
        context.fillStyle = theme['box-ink'];
        context.textBaseline = 'middle';
        context.font = canvasFont;
        for (const [frame, depth, left, right] of image.wide) {
            const shown = Math.max(0, left); // the name stays where its slice begins left of the window
            if (right - shown > 24) {
                const text = fitText(context, frameName(track.trace, frame), right - shown - 6);
                context.fillText(text, shown + 3, y + (depth - 1) * height + height / 2);
            }
        }
    }
    // {canvas, width, wide: slices [frame, depth, left, right] of more than some pixels, states}; kept until the view
    // changes. Null: it has to be made, and this frame has no time for it any more.
    imageOf(track) {
        const width = Math.max(1, Math.ceil(this.width - this.gutter)), rows = track.rowCount;
        const key = [this.view.from, this.view.to, width, rows, this.colours.isDark].join();
        if (track.image && track.image.key === key) {
            return track.image;
        }
        if (performance.now() > this.until) {
            this.isLate = true;
            return null;
        }
        const steps = stepsOf(track.segments, track.pyramid, this.view.from, this.view.to, this.width - this.gutter);
        const canvas = document.createElement('canvas'), wide = [];
        canvas.width = width;
        canvas.height = Math.max(rows, 1);
        const context = canvas.getContext('2d'), image = context.createImageData(width, canvas.height);
        const pixels = new Uint32Array(image.data.buffer);
        slicesOfSteps(track.trace.frames, track.segments, track.pyramid, steps, rows, (frame, depth, left, right) => {
            const row = (depth - 1) * width, first = Math.round(left);
            pixels.fill(this.colours.pixel(frame), row + first, row + Math.max(Math.round(right), Math.min(first + 1, width)));
            if (right - left > 3) {
                wide.push([frame, depth, left, right]);
            }
        });
        context.putImageData(image, 0, 0);
        track.image = { key, canvas, width, wide, states: statesOf(steps, track) };
        return track.image;
    }
    drawMarks(track, y) {
        const { context, theme } = this, { marks, strings } = track.trace, { thread } = track;
        context.font = canvasFont;
        context.textBaseline = 'middle';
        let open = -1, last = -1, lastInstant = -1;
        const bar = (i, to) => {
            const left = Math.max(this.x(marks.time[i]), this.gutter), right = Math.min(this.x(to), this.width);
            if (right <= this.gutter || left >= this.width || Math.floor(right) === last) {
                return;
            }
            last = Math.floor(right);
            context.fillStyle = theme.panel;
            context.fillRect(left, y, Math.max(right - left - 1, 1), MARKS - 2);
            context.fillStyle = theme.accent;
            context.globalAlpha = right - left < 8 ? 0.4 : 1;
            context.fillRect(left, y, right - left < 8 ? 1 : 2, MARKS - 2);
            context.globalAlpha = 1;
            const text = `${strings.text(marks.name[i])} ${marks.high[i] * 2 ** 32 + marks.low[i]}`;
            if (right - left > 24) {
                context.fillStyle = theme.ink;
                context.fillText(fitText(context, text, right - left - 8), left + 5, y + MARKS / 2 - 1);
            }
        };
        for (let i = thread.firstMark; i < thread.firstMark + thread.markCount; i++) {
            const kind = marks.kind[i];
            if (kind === MARK_COUNTER) {
                continue;
            }
            if (open >= 0 && (kind === MARK_BEGIN || kind === MARK_END)) {
                bar(open, marks.time[i]);
                open = -1;
            }
            if (kind === MARK_BEGIN) {
                open = i;
            } else if (kind !== MARK_END) {
                const x = this.x(marks.time[i]), isNew = Math.floor(x) !== lastInstant; // one of a pixel is seen
                lastInstant = Math.floor(x);
                if (isNew && x > this.gutter - 4 && x < this.width + 4) {
                    this.drawInstant(x, y);
                }
            }
        }
        if (open >= 0) {
            bar(open, track.segments.start[track.segments.count]);
        }
    }
    drawInstant(x, y) {
        const { context, theme } = this;
        context.fillStyle = theme.accent;
        context.beginPath();
        context.moveTo(x, y);
        context.lineTo(x + 4, y + 5);
        context.lineTo(x, y + 10);
        context.lineTo(x - 4, y + 5);
        context.fill();
    }
}
