// SPDX-License-Identifier: Apache-2.0
// Frames and moments in words, for the status line and the tooltip: a heading and lines below it.
import { describeCall } from './calls.mjs';
import { describeCounter } from './counters.mjs';
import { describeInstant } from './marks.mjs';
import { frameName } from './data.mjs';
import { describeExtras } from './extras.mjs';
import { formatAmount, formatCount, formatMoment, formatSureShare, formatTime } from './format.mjs';
import { processLabel } from './timeline_rows.mjs';
import { stateText } from './timeline_states.mjs';

const FLAG_INLINED = 1, FLAG_GUESSED = 2;
const classNames = ['', 'signal frame', 'address in no module', 'compiled at run time', 'bytecode', 'label', 'the walk ended here',
    'in the kernel'];

// "libc.so.6, malloc.c:12–40, inlined"
export function describePlace(trace, frame) {
    if (frame === 0) {
        return '';
    }
    const { frames } = trace, func = frames.func[frame], parts = [];
    const module = trace.moduleName(func), file = trace.fileName(func);
    if (module) {
        parts.push(module);
    }
    if (file) {
        const low = frames.low[frame], high = frames.high[frame];
        parts.push(file + (low ? `:${low}${high > low ? `–${high}` : ''}` : ''));
    }
    if (classNames[frames.cls[frame]]) {
        parts.push(classNames[frames.cls[frame]]);
    }
    if (frames.flags[frame] & FLAG_INLINED) {
        parts.push('inlined');
    }
    if (frames.flags[frame] & FLAG_GUESSED) {
        parts.push('rests on a guess');
    }
    return parts.join(', ');
}

export function describeFrame(trace, frame, sums, unit) {
    const all = sums.total[0];
    const amount = (value, told) => `${formatAmount(value, unit)} (${formatSureShare(value, all, sums.certainty, told && told[frame])})`;
    return {
        heading: frameName(trace, frame),
        lines: [`self ${amount(sums.self[frame], sums.told)}, total ${amount(sums.total[frame], sums.totalTold)}`, describePlace(trace, frame)],
    };
}

function describeThread({ thread }) {
    const parts = [`${formatCount(thread.stored + thread.merged)} samples`];
    if (thread.throttled) {
        parts.push(`${formatCount(thread.throttled)} throttled`);
    }
    if (thread.lost) {
        parts.push(`${formatCount(thread.lost)} lost`);
    }
    return { heading: `${thread.name || '[no name]'} (${thread.tid})`, lines: [parts.join(', ')] };
}

function describeProcess(process) {
    const { threads, startNs, endNs, parent, isComplete } = process;
    const lines = [`${formatCount(threads.length)} threads, ${formatTime(endNs - startNs)} from ${formatTime(startNs)}`];
    if (parent) {
        lines.push(`child of ${parent}`);
    }
    if (!isComplete) {
        lines.push('its part of the trace is incomplete');
    }
    return { heading: processLabel(process), lines };
}

function describeGroup({ name, tracks, work }) {
    return { heading: `${name || '[no name]'}`, lines: [`${formatCount(tracks.length)} threads, ${formatTime(work.cpu)} of processor time, ` +
        `${formatTime(work.blocked)} blocked`] };
}

export function describeHit(trace, hit, view) {
    if (hit.process || hit.group) {
        return hit.process ? describeProcess(hit.process) : describeGroup(hit.group);
    }
    const { track, time, segment, frame, slice } = hit;
    const about = describeThread(track);
    if (hit.counter) {
        const counter = describeCounter(trace, hit.counter);
        return { heading: counter.heading, lines: [...counter.lines, about.heading] };
    }
    if (hit.instant) {
        const instant = describeInstant(hit.instant, view);
        return { heading: instant.heading, lines: [...instant.lines, about.heading] };
    }
    if (hit.call) {
        const call = describeCall(trace, hit.call);
        return { heading: call.heading, lines: [...call.lines, about.heading] };
    }
    if (segment < 0) {
        return about;
    }
    const { segments } = track, lines = [];
    if (slice) {
        lines.push(`${formatTime(slice.to - slice.from)}, as far as samples tell`, describePlace(trace, frame));
    }
    const sample = segments.sample[segment];
    if (sample >= 0) {
        const kind = trace.kinds.get(trace.samples.kind[sample]), state = stateText(segments, segment);
        const count = trace.samples.count[sample] > 1 ? ` × ${formatCount(trace.samples.count[sample])}` : '';
        const interval = trace.intervals.ofSample.get(sample), { begin, end, isOpen } = trace.intervals;
        const length = interval === undefined ? '' : `${formatTime(end[interval] - begin[interval])}${isOpen[interval] ? ', no end' : ''}`;
        lines.push([`sample: ${kind}${count}`, state, length, describeExtras(trace.extras, sample)].filter(Boolean).join(', '));
    } else {
        lines.push(stateText(segments, segment));
    }
    lines.push(`at ${formatMoment(time, (view.to - view.from) / 1000, Math.max(view.to, 1))}`);
    return {
        heading: slice ? frameName(trace, frame) : about.heading,
        lines: slice ? [...lines, about.heading] : lines,
    };
}
