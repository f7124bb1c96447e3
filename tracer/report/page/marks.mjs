// SPDX-License-Identifier: Apache-2.0
// Instants among a thread's marks: the one that is pointed at.
import { formatMoment } from './format.mjs';

const MARK_INSTANT = 0;

// The one nearest to a time, at most `reach` away; null: there is none.
export function instantNear({ marks, strings }, thread, time, reach) {
    let low = thread.firstMark, high = thread.firstMark + thread.markCount, nearest = -1;
    while (low < high) {
        const middle = (low + high) >> 1;
        if (marks.time[middle] < time - reach) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    for (let i = low; i < thread.firstMark + thread.markCount && marks.time[i] <= time + reach; i++) {
        if (marks.kind[i] === MARK_INSTANT && (nearest < 0 || Math.abs(marks.time[i] - time) < Math.abs(marks.time[nearest] - time))) {
            nearest = i;
        }
    }
    return nearest < 0 ? null : { text: strings.text(marks.name[nearest]), time: marks.time[nearest] };
}

export function describeInstant({ text, time }, view) {
    return { heading: text || 'mark', lines: [`at ${formatMoment(time, (view.to - view.from) / 1000, Math.max(view.to, 1))}`] };
}
