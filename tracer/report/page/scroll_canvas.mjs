// SPDX-License-Identifier: Apache-2.0
// A canvas as large as its frame only, in which a drawing of any height scrolls: nothing is drawn that is not seen.

import { fitName } from './names.mjs';

let lastDrawn = -1;

export class ScrollCanvas {
    // `host`: an element that scrolls. `draw(context, width, height, scrollTop)` is called once a frame at most.
    constructor(host, canvas, draw) {
        this.host = host;
        this.canvas = canvas;
        this.context = canvas.getContext('2d', { alpha: false });
        this.spacer = document.createElement('div');
        host.append(this.spacer);
        this.drawNow = draw;
        this.isAsked = false;
        this.width = 0;
        this.height = 0;
        this.wantedHeight = 0;
        this.onResize = () => {};
        host.addEventListener('scroll', () => this.draw(), { passive: true });
        new ResizeObserver(() => this.resize()).observe(host);
        this.resize();
    }
    resize() {
        const width = this.host.clientWidth, height = this.host.clientHeight, ratio = window.devicePixelRatio || 1;
        if (width === this.width && height === this.height && ratio === this.ratio) {
            return;
        }
        const isNewWidth = width !== this.width;
        Object.assign(this, { width, height, ratio });
        this.canvas.width = Math.round(width * ratio);
        this.canvas.height = Math.round(height * ratio);
        this.canvas.style.width = `${width}px`;
        this.canvas.style.height = `${height}px`;
        // It has no transparency, so it would be black until its first frame.
        this.context.fillStyle = getComputedStyle(document.documentElement).getPropertyValue('--paper');
        this.context.fillRect(0, 0, this.canvas.width, this.canvas.height);
        this.setContentHeight(this.wantedHeight);
        if (isNewWidth) {
            this.onResize();
        }
        this.draw();
    }
    setContentHeight(height) {
        this.wantedHeight = height;
        this.contentHeight = Math.max(height, this.height);
        this.spacer.style.height = `${Math.max(0, height - this.height)}px`;
    }
    draw() {
        if (this.isAsked) {
            return;
        }
        this.isAsked = true;
        requestAnimationFrame((time) => this.drawFrame(time));
    }
    drawFrame(time) {
        // One canvas a frame: two large drawings in one would be felt.
        if (time === lastDrawn) {
            requestAnimationFrame((next) => this.drawFrame(next));
            return;
        }
        lastDrawn = time;
        this.isAsked = false;
        if (this.width && this.height) {
            this.context.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
            this.drawNow(this.context, this.width, this.height, this.host.scrollTop);
        }
    }
    // Where in the content a mouse event is.
    place(event) {
        const box = this.canvas.getBoundingClientRect();
        return { x: event.clientX - box.left, y: event.clientY - box.top + this.host.scrollTop };
    }
    show(top, height) {
        const { scrollTop } = this.host;
        if (top < scrollTop) {
            this.host.scrollTop = top;
        } else if (top + height > scrollTop + this.height) {
            this.host.scrollTop = top + height - this.height;
        }
    }
}

export const canvasFont = '11px ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace';

let characterWidth = 0;

// A name as it fits into the width; '' where that is too little to be of use.
export function fitText(context, text, width) {
    if (!characterWidth) {
        characterWidth = context.measureText('mmmmmmmmmm').width / 10;
    }
    return fitName(text, Math.floor(width / characterWidth));
}

// The page's own colours, as the style sheet has them.
export function themeOf(element) {
    const style = getComputedStyle(element), theme = {};
    for (const name of ['paper', 'ink', 'faint', 'line', 'panel', 'accent', 'quiet', 'running', 'gap', 'select', 'box-ink',
        'wait-lock', 'wait-condition', 'wait-read', 'wait-write', 'wait-poll', 'wait-sleep', 'wait-other']) {
        theme[name] = style.getPropertyValue(`--${name}`).trim();
    }
    return theme;
}
