// SPDX-License-Identifier: Apache-2.0
// One sample or wait: what is known of it, and its stacks, with that of the thread that ended it.
import { EXTRA_BEGIN_FRAME, extraNumber, extrasOf, describeExtras } from './extras.mjs';
import { formatCount, formatMoment, formatTime } from './format.mjs';
import { waitOf } from './kinds.mjs';
import { element, stackList } from './stack_list.mjs';
import { lockFacts } from './waits.mjs';
import { threadLabel } from './waits_view.mjs';

export class DetailView {
    // parts: {section, title, facts, stacks, last, next, where, close}. events: onClose(), onSample(sample, group),
    // onFunction(func), threadOf(sample).
    constructor(parts, trace, finder, releases, events) {
        Object.assign(this, { parts, trace, finder, releases, events, members: null, at: 0 });
        parts.close.addEventListener('click', () => events.onClose());
        parts.last.addEventListener('click', () => this.step(-1));
        parts.next.addEventListener('click', () => this.step(1));
    }
    hide() {
        this.parts.section.hidden = true;
        this.members = null;
    }
    step(by) {
        const at = this.at + by;
        if (this.members && at >= 0 && at < this.members.length) {
            this.events.onSample(this.members[at], this.members);
        }
    }
    fact(name, value) {
        const box = element('div');
        box.append(element('dt', '', name), element('dd', '', value));
        return value ? box : '';
    }
    thread(process, tid, time) {
        const thread = tid ? this.finder.find(process, tid, time) : null;
        return thread ? threadLabel(thread) : tid ? String(tid) : '';
    }
    // The stack at an interval's beginning; -1: not known, or the same as at its end, as far as it is the program's.
    beginFrame(sample) {
        const { extras, samples } = this.trace, [from, to] = extrasOf(extras, sample);
        for (let i = from; i < to; i++) {
            const frame = extraNumber(extras, i);
            if (extras.key[i] === EXTRA_BEGIN_FRAME && frame !== samples.frame[sample]) {
                return frame;
            }
        }
        return -1;
    }
    // members: samples to step through, this one among them; null: none.
    show(sample, members) {
        const { trace, parts } = this, { samples, intervals } = trace;
        const thread = this.events.threadOf(sample), interval = intervals.ofSample.get(sample), kind = samples.kind[sample];
        const end = samples.last[sample], moment = (time) => formatMoment(time, 1000, Math.max(trace.lengthNs, 1));
        const { lock, address, owner, waker } = lockFacts(trace, sample), facts = [this.fact('thread', threadLabel(thread))];
        if (trace.processes.length > 1) {
            facts.push(this.fact('process', String(trace.processes[thread.process].pid)));
        }
        if (interval === undefined) {
            const count = samples.count[sample] > 1 ? `${formatCount(samples.count[sample])} samples` : 'Sample';
            this.text = `${count}: ${trace.kinds.get(kind)}, at ${moment(samples.first[sample])}`;
            parts.title.textContent = this.text;
            facts.push(this.fact('carries', describeExtras(trace.extras, sample)));
        } else {
            const isOpen = intervals.isOpen[interval], length = formatTime(intervals.end[interval] - intervals.begin[interval]);
            const { letter, name, colour } = waitOf(kind);
            this.text = `${trace.kinds.get(kind) || name}: blocked for ${length}${isOpen ? ', its end is not in the trace' : ''}`;
            parts.title.replaceChildren(element('span', `badge ${colour}`, letter), this.text);
            facts.push(this.fact('from', moment(intervals.begin[interval])), this.fact(isOpen ? 'seen until' : 'to', moment(intervals.end[interval])));
            facts.push(this.fact('lock', lock === address ? lock : `${lock} (${address})`), this.fact('held by', this.thread(thread.process, owner, end)));
            facts.push(this.fact('released by', this.thread(thread.process, waker, end)));
            facts.push(lock || owner ? '' : this.fact('carries', describeExtras(trace.extras, sample)));
        }
        parts.facts.replaceChildren(...facts.filter(Boolean));
        this.showStacks(sample, interval);
        this.members = members && members.length > 1 ? members : null;
        this.at = members ? members.indexOf(sample) : 0;
        parts.last.hidden = parts.next.hidden = parts.where.hidden = !this.members;
        if (this.members) {
            parts.where.textContent = `${formatCount(this.at + 1)} of ${formatCount(members.length)}`;
            parts.last.disabled = this.at === 0;
            parts.next.disabled = this.at + 1 === members.length;
        }
        parts.section.hidden = false;
    }
    showStacks(sample, interval) {
        const { trace } = this, { samples } = trace, lists = [], begin = this.beginFrame(sample), release = this.releases.get(sample);
        const list = (frame, heading) => lists.push(stackList(trace, frame, heading, this.events.onFunction));
        if (begin >= 0) {
            list(begin, 'Stack when it began');
        }
        list(samples.frame[sample], interval === undefined ? 'Stack' : begin >= 0 ? 'Stack when it ended' : 'Stack');
        if (release !== undefined) {
            list(samples.frame[release], `Released by ${threadLabel(this.events.threadOf(release))}`);
        }
        this.parts.stacks.replaceChildren(...lists);
    }
}
