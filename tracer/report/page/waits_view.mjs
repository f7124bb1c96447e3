// SPDX-License-Identifier: Apache-2.0
// Two tables: which thread waits for which, and in which calls threads are blocked. A row's button shows its waits one by one.
import { formatCount, formatShare, formatTime } from './format.mjs';
import { waitOf } from './kinds.mjs';
import { element, stackCell } from './stack_list.mjs';

const ROWS_AT_ONCE = 25;

export function threadLabel(thread) {
    return `${thread.name || '[no name]'} ${thread.tid}`;
}

function badge(kind, text) {
    const { letter, name, colour } = waitOf(kind), mark = element('span', `badge ${colour}`, letter);
    mark.title = name;
    const box = element('span', 'badged');
    box.append(mark, text);
    return box;
}

function number(row, text, value) {
    const cell = element('td', 'number', text);
    cell.dataset.value = value;
    row.append(cell);
}

class Rows {
    constructor(table, more, makeRow) {
        Object.assign(this, { table, more, makeRow, groups: [], shown: ROWS_AT_ONCE });
        more.addEventListener('click', () => {
            this.shown += 10 * ROWS_AT_ONCE;
            this.fill();
        });
    }
    set(groups) {
        this.groups = groups;
        this.shown = ROWS_AT_ONCE;
        this.fill();
    }
    fill() {
        this.table.tBodies[0].replaceChildren(...this.groups.slice(0, this.shown).map(this.makeRow));
        const hidden = this.groups.length - Math.min(this.groups.length, this.shown);
        this.more.hidden = hidden === 0;
        this.more.textContent = `Show more (${formatCount(hidden)} not shown)`;
    }
}

export class WaitsView {
    // parts: {section, locks, locksMore, locksNone, calls, callsMore}. events: onGroup(group), onFrame(frame).
    constructor(parts, trace, finder, releases, events) {
        Object.assign(this, { parts, trace, finder, releases, events });
        this.locks = new Rows(parts.locks, parts.locksMore, (group) => this.lockRow(group));
        this.calls = new Rows(parts.calls, parts.callsMore, (group) => this.callRow(group));
        parts.section.hidden = trace.intervals.count === 0;
    }
    set({ locks, calls }) {
        this.all = calls.reduce((sum, { total }) => sum + total, 0);
        this.locks.set(locks);
        this.calls.set(calls);
        this.parts.locks.hidden = locks.length === 0;
        this.parts.locksNone.hidden = locks.length > 0;
    }
    tid(group, tid) {
        if (!tid) {
            return 'not known';
        }
        const thread = this.finder.find(group.waiter.process, tid, this.trace.intervals.end[group.longest]);
        return thread ? threadLabel(thread) : String(tid);
    }
    times(row, group) {
        number(row, formatCount(group.count) + (group.open ? ` (${formatCount(group.open)} without end)` : ''), group.count);
        number(row, formatTime(group.total), group.total);
        number(row, formatTime(group.longestTime), group.longestTime);
    }
    lockRow(group) {
        const { trace } = this, row = element('tr'), first = element('td'), show = element('button', 'plain');
        show.type = 'button';
        show.title = group.address === group.lock ? 'Show these waits one by one' : `Show these waits one by one; the lock is at ${group.address}`;
        show.append(badge(group.kind, group.lock || 'no lock'));
        show.addEventListener('click', () => this.events.onGroup(group));
        first.append(show);
        row.append(first, element('td', '', threadLabel(group.waiter)), element('td', '', this.tid(group, group.owner)),
            element('td', '', this.tid(group, group.waker)));
        this.times(row, group);
        const sample = trace.intervals.sample[group.longest], release = this.releases.get(sample);
        row.append(stackCell(trace, trace.samples.frame[sample]), stackCell(trace, release === undefined ? -1 : trace.samples.frame[release]));
        return row;
    }
    callRow(group) {
        const { trace } = this, row = element('tr'), first = element('td'), show = element('button', 'plain');
        show.type = 'button';
        show.title = 'Show the longest of them';
        show.append(badge(group.kind, group.frame === 0 ? '[no frame]' : trace.functionName(group.func)));
        show.addEventListener('click', () => this.events.onGroup(group));
        first.append(show);
        row.append(first, element('td', '', trace.kinds.get(group.kind) || ''));
        this.times(row, group);
        number(row, formatShare(group.total, this.all), group.total);
        number(row, formatCount(group.threadSet.size), group.threadSet.size);
        row.append(stackCell(trace, trace.samples.frame[trace.intervals.sample[group.longest]]));
        return row;
    }
}
