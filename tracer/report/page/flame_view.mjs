// SPDX-License-Identifier: Apache-2.0
// The flame graph on its canvas: drawn, pointed at, zoomed, walked through by keys.
import { frameName } from './data.mjs';
import { layoutFlame, REST } from './flame_layout.mjs';
import { canvasFont, fitText, ScrollCanvas, themeOf } from './scroll_canvas.mjs';

const ROW = 18;
const FLAG_INLINED = 1, FLAG_GUESSED = 2, CLASS_END = 6;

export class FlameView {
    // events: onPoint(frame or -1, rest), onZoom(frame), onPick(frame): what the status line tells.
    constructor(host, canvas, trace, colours, events) {
        this.trace = trace; // whose frames may be another tree of the same functions: setTree
        this.colours = colours;
        this.events = events;
        this.root = 0;
        this.isUpward = false;
        this.sums = null;
        this.matches = null;
        this.hovered = -1;
        this.picked = -1; // a frame, by keys
        this.surface = new ScrollCanvas(host, canvas, (...all) => this.drawRows(...all));
        this.surface.onResize = () => this.layOut();
        this.refreshTheme();
        canvas.addEventListener('mousemove', (event) => this.point(event));
        canvas.addEventListener('mouseleave', () => this.hover(-1));
        canvas.addEventListener('click', (event) => this.click(event));
        canvas.addEventListener('keydown', (event) => this.key(event));
        canvas.addEventListener('focus', () => this.surface.draw());
        canvas.addEventListener('blur', () => this.surface.draw());
    }
    refreshTheme() {
        this.theme = themeOf(this.surface.canvas);
        this.surface.draw();
    }
    // A tree and what it weighs; frames of one are none of another.
    setTree(frames, sums) {
        if (frames !== this.trace.frames) {
            this.trace = { ...this.trace, frames };
            this.zoom(0);
        }
        this.sums = sums;
        let root = this.root;
        while (root !== 0 && sums.total[root] === 0) {
            root = this.trace.frames.parent[root];
        }
        if (root === this.root) {
            this.layOut();
        } else {
            this.zoom(root); // what was zoomed to weighs nothing now
        }
    }
    setMatches(matches) {
        this.matches = matches;
        this.surface.draw();
    }
    setUpward(isUpward) {
        this.isUpward = isUpward;
        this.layOut();
        this.surface.host.scrollTop = isUpward ? this.surface.contentHeight : 0;
    }
    zoom(frame) {
        this.root = frame;
        this.picked = frame;
        this.layOut();
        const row = this.layout ? this.layout.rowOf(this.layout.rootBox) : 0;
        this.surface.show(this.top(row), ROW);
        this.events.onZoom(frame);
    }
    layOut() {
        if (!this.sums || !this.surface.width) {
            return;
        }
        this.layout = layoutFlame(this.trace.frames, this.sums.total, this.root, this.surface.width);
        this.surface.setContentHeight(this.layout.rowCount * ROW);
        this.hovered = -1;
        this.surface.draw();
    }
    get wantedHeight() {
        return this.layout ? this.layout.rowCount * ROW : 0;
    }
    top(row) {
        return this.isUpward ? this.surface.contentHeight - (row + 1) * ROW : row * ROW;
    }
    rowAt(y) {
        return Math.floor((this.isUpward ? this.surface.contentHeight - y : y) / ROW);
    }
    drawRows(context, width, height, scrollTop) {
        context.fillStyle = this.theme.paper;
        context.fillRect(0, 0, width, height);
        if (!this.layout) {
            return;
        }
        context.font = canvasFont;
        context.textBaseline = 'middle';
        const a = this.rowAt(scrollTop), b = this.rowAt(scrollTop + height);
        const last = Math.min(this.layout.rowCount - 1, Math.max(a, b));
        for (let row = Math.max(0, Math.min(a, b)); row <= last; row++) {
            const y = this.top(row) - scrollTop;
            for (let box = this.layout.rows[row]; box < this.layout.rows[row + 1]; box++) {
                this.drawBox(context, box, y);
            }
        }
        this.outline(context, this.hovered, scrollTop, this.theme.ink, 1);
        if (document.activeElement === this.surface.canvas && this.picked >= 0) {
            this.outline(context, this.layout.boxOf(this.picked), scrollTop, this.theme.accent, 2);
        }
    }
    drawBox(context, box, y) {
        const { trace, theme } = this, frame = this.layout.frame[box];
        const left = this.layout.left[box], width = this.layout.right[box] - left;
        const inner = Math.max(width - (width > 3 ? 1 : 0), 0.5);
        if (frame === REST) {
            context.fillStyle = this.colours.grey;
            context.globalAlpha = 0.5;
            context.fillRect(left, y, inner, ROW - 1);
            context.globalAlpha = 1;
            return;
        }
        const func = trace.frames.func[frame];
        const isMatch = this.matches && frame !== 0 && this.matches[func];
        context.globalAlpha = this.matches && !isMatch ? 0.25 : box < this.layout.rootBox ? 0.6 : 1;
        context.fillStyle = this.colours.frame(frame, trace.frames);
        context.fillRect(left, y, inner, ROW - 1);
        context.globalAlpha = 1;
        if (isMatch) {
            context.fillStyle = theme.faint;
            context.fillRect(left, y + ROW - 3, inner, 2);
        }
        if (width < 24) {
            return;
        }
        const flags = trace.frames.flags[frame];
        const text = fitText(context, (flags & FLAG_GUESSED ? '? ' : '') + frameName(trace, frame), width - 8);
        context.fillStyle = this.matches && !isMatch ? theme.faint : theme['box-ink'];
        if (text) {
            context.font = flags & FLAG_INLINED || trace.frames.cls[frame] === CLASS_END ? `italic ${canvasFont}` : canvasFont;
            context.fillText(text, left + 4, y + ROW / 2);
        }
    }
    outline(context, box, scrollTop, colour, thickness) {
        if (box < 0) {
            return;
        }
        const { left, right } = this.layout;
        context.strokeStyle = colour;
        context.lineWidth = thickness;
        context.strokeRect(left[box] + 0.5, this.top(this.layout.rowOf(box)) - scrollTop + 0.5,
            Math.max(right[box] - left[box] - 2, 1), ROW - 2);
    }
    boxAt(event) {
        if (!this.layout) {
            return -1;
        }
        const { x, y } = this.surface.place(event);
        return this.layout.at(this.rowAt(y), x);
    }
    point(event) {
        this.hover(this.boxAt(event), event);
    }
    hover(box, event) {
        if (box !== this.hovered) {
            this.hovered = box;
            this.surface.draw();
        }
        const frame = box < 0 ? -1 : this.layout.frame[box];
        this.surface.canvas.style.cursor = frame >= 0 && frame !== REST ? 'pointer' : 'default';
        this.events.onPoint(frame, event);
    }
    click(event) {
        const box = this.boxAt(event);
        if (box >= 0 && this.layout.frame[box] !== REST) {
            this.zoom(this.layout.frame[box]);
        }
    }
    pick(box) {
        if (box < 0 || this.layout.frame[box] === REST) {
            return;
        }
        this.picked = this.layout.frame[box];
        this.surface.show(this.top(this.layout.rowOf(box)), ROW);
        this.surface.draw();
        this.events.onPick(this.picked);
    }
    key(event) {
        if (!this.layout || event.ctrlKey || event.metaKey || event.altKey) {
            return;
        }
        const from = this.layout.boxOf(this.picked), box = from < 0 ? this.layout.rootBox : from;
        const inward = this.isUpward ? 'ArrowUp' : 'ArrowDown', outward = this.isUpward ? 'ArrowDown' : 'ArrowUp';
        const direction = { ArrowLeft: 'left', ArrowRight: 'right', [inward]: 'in', [outward]: 'out' }[event.key];
        if (direction) {
            this.pick(from < 0 ? box : this.layout.neighbour(box, direction));
        } else if (event.key === 'Enter' || event.key === ' ') {
            this.zoom(this.layout.frame[box]);
        } else if (event.key === 'Escape' && this.root !== 0) {
            this.zoom(this.trace.frames.parent[this.root]);
            event.stopPropagation();
        } else if (event.key === 'Home') {
            this.zoom(0);
        } else {
            return;
        }
        event.preventDefault();
    }
}
