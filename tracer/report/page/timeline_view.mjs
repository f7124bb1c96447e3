// SPDX-License-Identifier: Apache-2.0
// The timeline: a track for each thread under one scale, moved and zoomed by wheel, mouse and keys; a stretch of time
// that is selected filters all else.
import { formatMoment, formatTime } from './format.mjs';
import { instantNear } from './marks.mjs';
import { canvasFont, ScrollCanvas, themeOf } from './scroll_canvas.mjs';
import { hasStack } from './segments.mjs';
import { drawFlows } from './timeline_flows.mjs';
import { gutterOf, segmentAt } from './timeline_layout.mjs';
import { openAround, rowsOf, shownRow, visibleRows } from './timeline_rows.mjs';
import { LANE, Track, TrackPainter } from './timeline_tracks.mjs';

const AXIS = 22, LEAST_NS = 100, CLICK_PIXELS = 3, INSTANT_PIXELS = 5;
const SEEN_PIXELS = 4, AROUND = 12, AROUND_LEAST_NS = 50000;

// The window that shows [from, to) with what is around it: the one that is seen, if it is to be told apart there; never
// so near that nothing but the stretch is in it.
export function windowAround(from, to, view, width) {
    const span = view.to - view.from, length = to - from, middle = (from + to) / 2;
    const isWide = length / span * width >= SEEN_PIXELS, isInside = from >= view.from && to <= view.to;
    if (isInside && isWide) {
        return view;
    }
    const room = length > span ? 1.5 * length : isWide ? span : Math.min(span, Math.max(AROUND * length, AROUND_LEAST_NS));
    return { from: middle - room / 2, to: middle + room / 2 };
}

export function* buildTracks(trace, segments) {
    const tracks = [];
    for (const thread of trace.threads) {
        tracks.push(yield* Track.build(trace, thread, segments[thread.index]));
    }
    return tracks;
}

export class TimelineView {
    // events: onPoint(hit or null, event), onSelect({from, to} or null), onPick(hit or null: what a click or Enter
    // picks).
    constructor(host, canvas, trace, tracks, flows, colours, events) {
        this.trace = trace;
        this.colours = colours;
        this.events = events;
        this.flows = flows;
        this.tracks = tracks;
        this.all = rowsOf(trace, tracks);
        this.order = visibleRows(this.all); // processes, groups and threads
        if (tracks.length === 1) {
            tracks[0].isOpen = tracks[0].canOpen && tracks[0].depth <= 40;
        }
        this.picked = null; // {samples: a set, of waits; sample: the one among them}
        this.full = { from: 0, to: Math.max(trace.lengthNs, LEAST_NS) };
        this.view = { ...this.full };
        this.selection = null;
        this.drag = null;
        this.current = 0; // in `order`
        this.surface = new ScrollCanvas(host, canvas, (...all) => this.drawAll(...all));
        this.refreshTheme();
        this.place();
        this.listen(canvas);
    }
    listen(canvas) {
        canvas.addEventListener('wheel', (event) => this.wheel(event), { passive: false });
        canvas.addEventListener('mousedown', (event) => this.press(event));
        window.addEventListener('mousemove', (event) => this.move(event));
        window.addEventListener('mouseup', (event) => this.release(event));
        canvas.addEventListener('mouseleave', () => this.events.onPoint(null));
        canvas.addEventListener('dblclick', (event) => this.zoomToSlice(event));
        canvas.addEventListener('keydown', (event) => this.key(event));
        canvas.addEventListener('focus', () => this.surface.draw());
        canvas.addEventListener('blur', () => this.surface.draw());
    }
    refreshTheme() {
        this.theme = themeOf(this.surface.canvas);
        this.surface.draw();
    }
    // Lays the tracks below each other.
    place() {
        const current = this.order[this.current];
        this.order = visibleRows(this.all);
        this.current = Math.max(0, this.order.indexOf(current));
        let top = AXIS;
        for (const track of this.order) {
            track.top = top;
            top += track.height;
        }
        this.surface.setContentHeight(top);
        this.surface.draw();
    }
    get gutter() {
        return gutterOf(this.surface.width);
    }
    get wantedHeight() {
        const last = this.order[this.order.length - 1];
        return last ? last.top + last.height : AXIS;
    }
    setView(from, to) {
        const span = Math.min(Math.max(to - from, LEAST_NS), this.full.to);
        const begin = Math.min(Math.max(from, 0), this.full.to - span);
        this.view = { from: begin, to: begin + span };
        this.surface.draw();
    }
    zoomBy(factor, at = (this.view.from + this.view.to) / 2) {
        this.setView(at - (at - this.view.from) * factor, at + (this.view.to - at) * factor);
    }
    panBy(share) {
        const by = (this.view.to - this.view.from) * share;
        this.setView(this.view.from + by, this.view.to + by);
    }
    select(selection) {
        this.selection = selection;
        this.surface.draw();
        this.events.onSelect(selection);
    }
    // Points out a sample: the arrows to `samples` (waits), a frame around `sample`. null: none.
    pick(sample, samples = new Set([sample])) {
        this.picked = sample === null ? null : { sample, samples };
        this.surface.draw();
    }
    // Moves what is seen so that a stretch of a thread's time is, with room around it.
    reveal(threadIndex, from, to) {
        const track = this.tracks[threadIndex];
        if (openAround(this.all, track)) {
            this.place();
        }
        const { from: seenFrom, to: seenTo } = this.view, window = windowAround(from, to, this.view, this.surface.width - this.gutter);
        if (window.from !== seenFrom || window.to !== seenTo) {
            this.setView(window.from, window.to);
        }
        this.current = this.order.indexOf(track);
        this.surface.show(Math.max(0, track.top - AXIS), Math.min(track.height + AXIS, this.surface.height));
        this.surface.draw();
    }
    time(x) {
        const share = (x - this.gutter) / (this.surface.width - this.gutter);
        return this.view.from + share * (this.view.to - this.view.from);
    }

    // ---- drawing

    drawAll(context, width, height, scrollTop) {
        const { theme } = this;
        context.fillStyle = theme.paper;
        context.fillRect(0, 0, width, height);
        const painter = new TrackPainter(context, theme, this.colours, this.view, width);
        const hasFocus = document.activeElement === this.surface.canvas;
        this.order.forEach((track, i) => {
            const y = track.top - scrollTop;
            if (y >= height || y + track.height <= 0) {
                return;
            }
            const isCurrent = hasFocus && i === this.current;
            if (track.children) {
                track.draw(context, painter, y, isCurrent);
            } else {
                painter.draw(track, y, isCurrent);
            }
        });
        const isShown = (sample) => this.trackOfSample(sample) === shownRow(this.all, this.trackOfSample(sample));
        const place = (sample) => ({ x: painter.x(this.trace.samples.first[sample]), y: this.rowOfSample(sample) - scrollTop, isShown: isShown(sample) });
        drawFlows(context, this.flows, this.picked && this.picked.samples, place,
            { left: this.gutter, top: AXIS, right: width, bottom: height }, theme);
        this.drawPicked(context, painter, width, scrollTop);
        this.drawSelection(context, painter, width, height);
        this.drawAxis(context, width);
        if (painter.isLate) {
            this.surface.draw();
        }
    }
    drawAxis(context, width) {
        const { theme, view } = this, span = view.to - view.from;
        context.fillStyle = theme.paper;
        context.fillRect(0, 0, width, AXIS);
        context.font = canvasFont;
        context.textBaseline = 'middle';
        const wanted = span / Math.max(1, (width - this.gutter) / 110);
        const power = 10 ** Math.floor(Math.log10(wanted));
        const step = [1, 2, 5, 10].map((n) => n * power).find((n) => n >= wanted);
        for (let tick = Math.ceil(view.from / step); tick * step <= view.to; tick++) {
            const x = this.gutter + (tick * step - view.from) / span * (width - this.gutter);
            context.fillStyle = theme.line;
            context.fillRect(x, AXIS - 6, 1, 5);
            context.fillStyle = theme.faint;
            const text = formatMoment(tick * step, step, Math.max(view.to, 1));
            if (x + 7 * text.length + 4 < width) {
                context.fillText(text, x + 4, AXIS / 2);
            }
        }
        context.fillStyle = theme.line;
        context.fillRect(0, AXIS - 1, width, 1);
    }
    drawSelection(context, painter, width, height) {
        const selection = this.drag && this.drag.selection ? this.drag.selection : this.selection;
        if (!selection) {
            return;
        }
        const left = Math.max(this.gutter, painter.x(selection.from)), right = Math.min(width, painter.x(selection.to));
        context.fillStyle = this.theme.select;
        context.fillRect(this.gutter, AXIS, Math.max(0, left - this.gutter), height);
        context.fillRect(Math.max(right, this.gutter), AXIS, width, height);
        context.fillStyle = this.theme.accent;
        for (const x of [left, right]) {
            if (x >= this.gutter && x <= width) {
                context.fillRect(x - 0.5, AXIS, 1, height);
            }
        }
    }
    threadOfSample(sample) {
        const { threads } = this.trace;
        let low = 0, high = threads.length;
        while (low + 1 < high) {
            const middle = (low + high) >> 1;
            if (threads[middle].firstSample <= sample) {
                low = middle;
            } else {
                high = middle;
            }
        }
        return threads[low];
    }
    trackOfSample(sample) {
        return this.tracks[this.threadOfSample(sample).index];
    }
    // Where the lane of its thread is; or the line that it is behind.
    rowOfSample(sample) {
        const track = this.trackOfSample(sample), row = shownRow(this.all, track);
        return row === track ? track.top + track.laneTop + LANE / 2 : row.top + row.height / 2;
    }
    drawPicked(context, painter, width, scrollTop) {
        if (!this.picked) {
            return;
        }
        const { sample } = this.picked, { intervals, samples } = this.trace, interval = intervals.ofSample.get(sample);
        const from = interval === undefined ? samples.first[sample] : intervals.begin[interval];
        const to = interval === undefined ? samples.last[sample] : intervals.end[interval];
        const left = Math.max(this.gutter, painter.x(from)), right = Math.min(width, painter.x(to));
        if (right >= this.gutter && left <= width) {
            context.strokeStyle = this.theme.ink;
            context.lineWidth = 2;
            const top = this.rowOfSample(sample) - scrollTop - LANE / 2 - 1;
            if (top > AXIS - LANE) {
                context.strokeRect(left - 1, top, Math.max(right - left, 1) + 2, LANE + 1);
            }
        }
    }

    // ---- mouse

    trackAt(y) {
        return this.order.find((track) => y >= track.top && y < track.top + track.height);
    }
    // {track, time, segment, depth, frame, slice: {from, to} or null} under the mouse.
    hit(event) {
        const { x, y } = this.surface.place(event);
        const track = y - this.surface.host.scrollTop < AXIS ? undefined : this.trackAt(y);
        if (!track || (x < this.gutter && !track.children)) {
            return null;
        }
        if (track.children) {
            return track.subject;
        }
        const time = this.time(x), { segments } = track;
        const call = track.calls.at(this.time(Math.floor(x)), this.time(Math.floor(x) + 1), y - track.top - track.callsTop, track.isOpen);
        if (call) {
            return { track, time, segment: -1, depth: 0, frame: 0, call, slice: call };
        }
        const reach = INSTANT_PIXELS * (this.view.to - this.view.from) / (this.surface.width - this.gutter);
        const instant = track.isMarksAt(y - track.top) ? instantNear(this.trace, track.thread, time, reach) : null;
        if (instant) {
            return { track, time, segment: -1, depth: 0, frame: 0, instant };
        }
        const counter = track.counters.at(time, y - track.top - track.countersTop, track.isOpen);
        if (counter) {
            return { track, time, segment: -1, depth: 0, frame: 0, counter };
        }
        if (time < segments.start[0] || time > segments.start[segments.count]) {
            return { track, time, segment: -1, depth: 0, frame: 0 };
        }
        // What is drawn of a pixel is the longest in it.
        const segment = track.pyramid.longestOf(segmentAt(segments, this.time(Math.floor(x))),
            Math.min(segmentAt(segments, this.time(Math.floor(x) + 1)) + 1, segments.count));
        const { frames } = this.trace;
        let frame = segments.frame[segment], depth = track.depthAt(y - track.top);
        if (depth > frames.depth[frame] || depth === 0) {
            depth = 0;
        }
        while (depth > 0 && frames.depth[frame] > depth) {
            frame = frames.parent[frame];
        }
        return { track, time, segment, depth, frame, slice: depth ? this.sliceAt(segments, segment, depth) : null };
    }
    sliceAt(segments, segment, depth) {
        let from = segment, to = segment + 1;
        while (from > 0 && segments.common[from] >= depth) {
            from--;
        }
        while (to < segments.count && segments.common[to] >= depth && hasStack(segments.state[to])) {
            to++;
        }
        return { from: segments.start[from], to: segments.start[to] };
    }
    wheel(event) {
        const { x } = this.surface.place(event);
        if (event.ctrlKey || event.metaKey) {
            this.zoomBy(Math.exp(Math.max(-1, Math.min(1, event.deltaY * 0.003))), this.time(x));
        } else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
            this.panBy((event.deltaX || event.deltaY) / (this.surface.width - this.gutter));
        } else {
            return; // scrolls
        }
        event.preventDefault();
    }
    press(event) {
        if (event.button > 1) {
            return;
        }
        const { x, y } = this.surface.place(event);
        const onAxis = y - this.surface.host.scrollTop < AXIS;
        this.drag = { x, y, time: this.time(x), view: this.view, pans: onAxis || event.shiftKey || event.button === 1, moved: false };
        if (event.button === 1) {
            event.preventDefault();
        }
    }
    move(event) {
        if (!this.drag) {
            if (event.target === this.surface.canvas) {
                this.events.onPoint(this.hit(event), event);
            }
            return;
        }
        const { x } = this.surface.place(event), { drag } = this;
        drag.moved = drag.moved || Math.abs(x - drag.x) > CLICK_PIXELS;
        if (!drag.moved || drag.x < this.gutter) {
            return;
        }
        if (drag.pans) {
            const by = (drag.x - x) / (this.surface.width - this.gutter) * (drag.view.to - drag.view.from);
            this.setView(drag.view.from + by, drag.view.to + by);
            return;
        }
        const time = Math.min(Math.max(this.time(Math.max(x, this.gutter)), 0), this.full.to);
        drag.selection = { from: Math.min(drag.time, time), to: Math.max(drag.time, time) };
        this.surface.draw();
        this.events.onPoint(null);
    }
    release(event) {
        const { drag } = this;
        this.drag = null;
        if (!drag) {
            return;
        }
        if (drag.selection) {
            this.select(drag.selection);
        } else if (!drag.moved) {
            const track = this.trackAt(drag.y);
            if (track) {
                this.current = this.order.indexOf(track);
            }
            if (track && (drag.x < this.gutter || track.children)) {
                this.toggle(track);
            } else if (event.target === this.surface.canvas) {
                if (this.selection) {
                    this.select(null);
                }
                this.events.onPick(this.hit(event));
            }
        }
        this.surface.draw();
    }
    zoomToSlice(event) {
        const hit = this.hit(event);
        if (hit && hit.slice) {
            const pad = (hit.slice.to - hit.slice.from) * 0.05;
            this.setView(hit.slice.from - pad, hit.slice.to + pad);
        }
    }

    // ---- keys

    toggle(track) {
        track.isOpen = !track.isOpen && Boolean(track.children || track.canOpen);
        this.place();
    }
    step(by) {
        this.current = Math.min(Math.max(this.current + by, 0), this.order.length - 1);
        const track = this.order[this.current];
        this.surface.show(Math.max(0, track.top - AXIS), Math.min(track.height + AXIS, this.surface.height));
        this.surface.draw();
        this.events.onPoint(track.children ? track.subject
            : { track, time: this.view.from, segment: -1, depth: 0, frame: 0 });
    }
    // The next (by 1) or last (by -1) wait of the current thread, from the one that is picked or from what is seen on.
    stepWait(by) {
        const track = this.order[this.current], { intervals } = this.trace;
        if (!track || track.children) {
            return;
        }
        const { first, count } = intervals.threads[track.thread.index];
        const picked = this.picked && intervals.ofSample.get(this.picked.sample);
        let next;
        if (picked !== undefined && picked !== null && picked >= first && picked < first + count) {
            next = picked + by;
        } else {
            next = first;
            while (next < first + count - 1 && intervals.begin[next] < this.view.from) {
                next++;
            }
        }
        if (next >= first && next < first + count) {
            this.events.onPick({ sample: intervals.sample[next] });
        }
    }
    key(event) {
        if (event.ctrlKey || event.metaKey || event.altKey) {
            return;
        }
        const actions = {
            ArrowLeft: () => this.panBy(-0.1), ArrowRight: () => this.panBy(0.1),
            ArrowUp: () => this.step(-1), ArrowDown: () => this.step(1),
            '+': () => this.zoomBy(0.7), '=': () => this.zoomBy(0.7), '-': () => this.zoomBy(1 / 0.7),
            Home: () => this.setView(0, this.full.to),
            n: () => this.stepWait(1), p: () => this.stepWait(-1),
            ' ': () => this.toggle(this.order[this.current]),
            Enter: () => this.select({ ...this.view }),
        };
        if (event.key === 'Escape' && this.picked) {
            this.events.onPick(null);
        } else if (event.key === 'Escape' && this.selection) {
            this.select(null);
        } else if (actions[event.key] && this.order.length) {
            actions[event.key]();
        } else {
            return;
        }
        event.preventDefault();
        event.stopPropagation();
    }
    describeView() {
        return `${formatTime(this.view.to - this.view.from)} from ${formatTime(this.view.from)}`;
    }
}
