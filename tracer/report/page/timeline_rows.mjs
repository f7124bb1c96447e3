// SPDX-License-Identifier: Apache-2.0
// The timeline's rows: threads, and where there is more than one process a line for each of these above its threads,
// which opens and closes them.
import { formatCount } from './format.mjs';
import { canvasFont, fitText } from './scroll_canvas.mjs';
import { GUTTER } from './timeline_tracks.mjs';

const HEIGHT = 22, OPEN_AT_FIRST = 6, BAR = 16;

function programOf({ command }) {
    return command.split(' ')[0].replace(/.*\//, '') || '[no name]';
}

export function processLabel(process) {
    return [programOf(process), process.pid, ...process.command.split(' ').slice(1)].join(' ');
}

export class ProcessRow {
    constructor(process, tracks, isOpen) {
        Object.assign(this, { process, tracks, isOpen, top: 0, height: HEIGHT });
    }
    // From its first to its last moment.
    draw(context, theme, x, y, width, isCurrent) {
        const { process } = this;
        context.fillStyle = isCurrent ? theme.line : theme.panel;
        context.fillRect(0, y, width, HEIGHT - 1);
        if (isCurrent) {
            context.fillStyle = theme.accent;
            context.fillRect(0, y, 3, HEIGHT - 1);
        }
        const left = Math.max(GUTTER, x(process.startNs)), right = Math.min(width, x(process.endNs));
        if (right > GUTTER && left < width) {
            context.fillStyle = theme.accent;
            context.globalAlpha = 0.18;
            context.fillRect(left, y + (HEIGHT - BAR) / 2, Math.max(right - left, 1), BAR);
            context.globalAlpha = 1;
        }
        context.textBaseline = 'middle';
        context.font = `600 ${canvasFont}`;
        context.fillStyle = theme.ink;
        const pid = ` ${process.pid}`, room = GUTTER - 16 - context.measureText(pid).width; // which is never cut
        context.fillText(fitText(context, `${this.isOpen ? '▾' : '▸'} ${programOf(process)}`, room) + pid, 8, y + HEIGHT / 2);
        // What else is known of it stands on its bar, or before that where it begins far to the right.
        const count = this.tracks.length, [, ...rest] = process.command.split(' ');
        const text = `${formatCount(count)} thread${count === 1 ? '' : 's'}${rest.length ? ` · ${rest.join(' ')}` : ''}`;
        const after = width - left - 12, before = left - GUTTER - 12, needed = Math.min(text.length * 7, 280);
        context.font = canvasFont;
        context.fillStyle = theme.faint;
        if (after >= needed || after >= before) {
            context.fillText(fitText(context, text, after), left + 6, y + HEIGHT / 2);
        } else {
            const fitting = fitText(context, text, before);
            context.fillText(fitting, left - 6 - context.measureText(fitting).width, y + HEIGHT / 2);
        }
    }
}

// Threads with samples first; else as they began. Of many processes the first ones are open.
export function rowsOf(trace, tracks) {
    const bySamples = (list) => [...list].sort((a, b) => (b.thread.sampleCount > 0) - (a.thread.sampleCount > 0));
    if (trace.processes.length < 2) {
        return { groups: [], rows: bySamples(tracks), byProcess: new Map() };
    }
    const groups = trace.processes.filter(({ threads }) => threads.length > 0)
        .map((process) => new ProcessRow(process, bySamples(process.threads.map(({ index }) => tracks[index])), false));
    [...groups].sort((a, b) => weightOf(b) - weightOf(a)).slice(0, OPEN_AT_FIRST).forEach((group) => {
        group.isOpen = true;
    });
    return { groups, rows: [], byProcess: new Map(groups.map((group) => [group.process.index, group])) };
}

function weightOf({ tracks }) {
    return tracks.reduce((sum, { thread }) => sum + thread.sampleCount, 0);
}

// What is seen of them, from top to bottom.
export function visibleRows({ groups, rows }) {
    return groups.length ? groups.flatMap((group) => (group.isOpen ? [group, ...group.tracks] : [group])) : rows;
}
