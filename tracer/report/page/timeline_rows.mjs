// SPDX-License-Identifier: Apache-2.0
// The timeline's rows: threads; above many of one name a line for all of them; and where there is more than one process a
// line for each of these. Lines open and close what is below them.
import { drawActivity } from './activity_lane.mjs';
import { formatCount, formatTime } from './format.mjs';
import { waitOf } from './kinds.mjs';
import { canvasFont, fitText } from './scroll_canvas.mjs';
import { groupThreads, processTree, workOf } from './thread_groups.mjs';
import { gutterOf } from './timeline_layout.mjs';

const HEIGHT = 22, GROUP_HEIGHT = 44, OPEN_AT_FIRST = 6, CALLERS_OPEN_AT_FIRST = 12, BAR = 16, INDENT = 10;

function programOf({ command }) {
    return command.split(' ')[0].replace(/.*\//, '') || '[no name]';
}

export function processLabel(process) {
    return [programOf(process), process.pid, ...process.command.split(' ').slice(1)].join(' ');
}

function drawFrame(context, theme, row, y, width, isCurrent) {
    context.fillStyle = isCurrent ? theme.line : theme.panel;
    context.fillRect(0, y, width, row.height - 1);
    if (isCurrent) {
        context.fillStyle = theme.accent;
        context.fillRect(0, y, 3, row.height - 1);
    }
    context.textBaseline = 'middle';
    context.font = `600 ${canvasFont}`;
    context.fillStyle = theme.ink;
}

export class ProcessRow {
    constructor({ process, depth, work }, children) {
        Object.assign(this, { process, depth, work, children, isOpen: false, top: 0, height: HEIGHT });
        this.tracks = children.flatMap((child) => child.tracks || [child]);
    }
    get subject() {
        return { process: this.process };
    }
    // From its first to its last moment.
    draw(context, painter, y, isCurrent) {
        const { process } = this, { theme, width } = painter, gutter = gutterOf(width), indent = 8 + INDENT * Math.min(this.depth, 4);
        drawFrame(context, theme, this, y, width, isCurrent);
        const pid = ` ${process.pid}`, room = gutter - 8 - indent - context.measureText(pid).width; // which is never cut
        context.fillText(fitText(context, `${this.isOpen ? '▾' : '▸'} ${programOf(process)}`, room) + pid, indent, y + HEIGHT / 2);
        const left = Math.max(gutter, painter.x(process.startNs)), right = Math.min(width, painter.x(process.endNs));
        if (right > gutter && left < width) {
            context.fillStyle = theme.accent;
            context.globalAlpha = 0.18;
            context.fillRect(left, y + (HEIGHT - BAR) / 2, Math.max(right - left, 1), BAR);
            context.globalAlpha = 1;
        }
        // What else is known of it stands on its bar, or before that where it begins far to the right.
        const count = this.tracks.length, [, ...rest] = process.command.split(' ');
        const text = `${formatCount(count)} thread${count === 1 ? '' : 's'}${this.work.cpu ? ` · ${formatTime(this.work.cpu)}` : ''}` +
            `${rest.length ? ` · ${rest.join(' ')}` : ''}`;
        const after = width - left - 12, before = left - gutter - 12, needed = Math.min(text.length * 7, 280);
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

export class GroupRow {
    constructor({ name, work }, tracks) {
        Object.assign(this, { name, work, tracks, children: tracks, isOpen: false, top: 0, height: GROUP_HEIGHT });
        this.waitColour = longestWait(tracks);
        tracks.forEach((track) => {
            track.isGrouped = true;
        });
    }
    get subject() {
        return { group: this };
    }
    draw(context, painter, y, isCurrent) {
        const { theme, width } = painter, gutter = gutterOf(width), { cpu, blocked } = this.work;
        drawFrame(context, theme, this, y, width, isCurrent);
        const count = ` ×${this.tracks.length}`, room = gutter - 16 - context.measureText(count).width;
        context.fillText(fitText(context, `${this.isOpen ? '▾' : '▸'} ${this.name || '[no name]'}`, room) + count, 8, y + 12);
        context.font = canvasFont;
        context.fillStyle = theme.faint;
        const text = [cpu ? `${formatTime(cpu)} run` : '', blocked ? `${formatTime(blocked)} blocked` : ''].filter(Boolean);
        text.slice(0, 2).forEach((line, i) => context.fillText(fitText(context, line, gutter - 26), 20, y + 12 + 12 * (i + 1)));
        drawActivity(context, painter, this, this.tracks.map(({ activity }) => activity), y + 4, GROUP_HEIGHT - 9, this.waitColour && theme[this.waitColour]);
    }
}

// The colour of what these threads were blocked in longest.
function longestWait(tracks) {
    const sums = new Map();
    for (const { trace, thread } of tracks) {
        const { intervals, samples } = trace, { first, count } = intervals.threads[thread.index];
        for (let i = first; i < first + count; i++) {
            const { colour } = waitOf(samples.kind[intervals.sample[i]]);
            sums.set(colour, (sums.get(colour) || 0) + intervals.blocked[i]);
        }
    }
    return [...sums].reduce((best, [colour, sum]) => (sum > best[1] ? [colour, sum] : best), ['', 0])[0];
}

// Those that worked most come first. Of many processes the first ones are open.
export function rowsOf(trace, tracks) {
    const work = workOf(trace), parents = new Map();
    const rowsOfThreads = (threads) => groupThreads(threads, work).map((group) => {
        const members = group.threads.map(({ index }) => tracks[index]);
        return members.length === 1 ? members[0] : new GroupRow(group, members);
    });
    const rows = trace.processes.length < 2 ? rowsOfThreads(trace.threads)
        : processTree(trace, work).filter(({ process }) => process.threads.length > 0)
            .map((node) => new ProcessRow(node, rowsOfThreads(node.process.threads)));
    const see = (row) => (row.children || []).forEach((child) => {
        parents.set(child, row);
        see(child);
    });
    rows.forEach(see);
    // Exact calls are not hidden behind a line.
    parents.forEach((row) => {
        row.isOpen = row.isOpen || (row.tracks.length <= CALLERS_OPEN_AT_FIRST && row.tracks.some(({ canOpen, thread }) => canOpen && thread.calls));
    });
    rows.filter((row) => row instanceof ProcessRow).slice(0, OPEN_AT_FIRST).forEach((row) => {
        row.isOpen = true;
    });
    return { rows, parents };
}

// What is seen of them, from top to bottom.
export function visibleRows({ rows }) {
    const listed = (row) => (row.children && row.isOpen ? [row, ...row.children.flatMap(listed)] : [row]);
    return rows.flatMap(listed);
}

// Opens all that a row lies in. Whether something was closed.
export function openAround({ parents }, row) {
    let hasOpened = false;
    for (let at = parents.get(row); at; at = parents.get(at)) {
        hasOpened = hasOpened || !at.isOpen;
        at.isOpen = true;
    }
    return hasOpened;
}

// The row that stands for a thread's: itself, or the outermost closed one around it.
export function shownRow({ parents }, row) {
    let shown = row;
    for (let at = parents.get(row); at; at = parents.get(at)) {
        shown = at.isOpen ? shown : at;
    }
    return shown;
}
