// SPDX-License-Identifier: Apache-2.0
// Allocations and faults: what is exact above, what was sampled below.
import { formatAmount, formatBytes, formatCount, formatShare, formatSureShare } from './format.mjs';
import { exactTotal, hotSpots } from './hot_spots.mjs';
import { element, stackCell } from './stack_list.mjs';

function fact(name, value) {
    const box = element('div');
    box.append(element('dt', '', name), element('dd', '', value));
    return box;
}

export class HotView {
    // parts: {section, allocation: {box, facts, table}, faults: {box, facts, table}}. events: onStack(weight, frame).
    constructor(parts, trace, segments, weights, events) {
        const weight = (id) => weights.find((one) => one.id === id);
        Object.assign(this, { parts, trace, segments, events });
        this.bytes = weight('allocated');
        this.allocations = weight('allocations');
        this.faults = weight('faults');
        this.hasTotals = trace.totals.some(({ name }) => name === 'allocations');
        parts.allocation.box.hidden = !this.bytes && !this.hasTotals;
        parts.faults.box.hidden = !this.faults;
        parts.section.hidden = parts.allocation.box.hidden && parts.faults.box.hidden;
    }
    // What there is to show for a choice.
    * compute(choice) {
        const { trace, segments } = this;
        return {
            choice,
            bytes: this.bytes ? yield* hotSpots(trace, segments, choice, this.bytes, this.allocations) : null,
            faults: this.faults ? yield* hotSpots(trace, segments, choice, this.faults, null) : null,
        };
    }
    set({ choice, bytes, faults }) {
        const exact = (name) => exactTotal(this.trace, choice, name), { allocation, faults: faulting } = this.parts;
        const allocated = exact('allocated-bytes'), freed = exact('freed-bytes'), facts = [];
        if (this.hasTotals) {
            const when = choice.from === -Infinity && choice.to === Infinity ? '' : ' (of the whole time)';
            facts.push(fact(`allocations, exact${when}`, formatCount(exact('allocations'))));
            facts.push(allocated ? fact('bytes, exact', formatBytes(allocated)) : '');
            facts.push(exact('frees') ? fact('frees, exact', formatCount(exact('frees'))) : '');
            facts.push(freed ? fact('bytes freed, exact', formatBytes(freed)) : '');
        }
        if (bytes) {
            facts.push(fact('in the samples below', `${formatBytes(bytes.all)}${allocated && choice.from === -Infinity ? `, ${formatShare(bytes.all, allocated)} of all` : ''}`));
            this.fill(allocation.table, bytes, this.bytes);
        }
        allocation.facts.replaceChildren(...facts);
        if (faults) {
            faulting.facts.replaceChildren(fact('in the samples below', formatCount(faults.all)));
            this.fill(faulting.table, faults, this.faults);
        }
    }
    fill(table, { rows, all, certainty }, weight) {
        const hasBeside = table.dataset.beside !== undefined;
        table.tBodies[0].replaceChildren(...rows.map(({ frame, amount, beside }) => {
            const row = element('tr'), first = element('td', 'number'), show = element('button', 'plain', formatAmount(amount, weight.unit));
            show.type = 'button';
            show.title = 'Show this stack in the flame graph';
            show.addEventListener('click', () => this.events.onStack(weight, frame));
            first.append(show);
            first.dataset.value = amount;
            row.append(first, element('td', 'number', formatSureShare(amount, all, certainty)));
            if (hasBeside) {
                row.append(element('td', 'number', this.allocations ? formatCount(beside) : '–'));
            }
            row.append(stackCell(this.trace, frame));
            return row;
        }));
        table.hidden = rows.length === 0;
    }
}
