// SPDX-License-Identifier: Apache-2.0
// Kinds and flags of samples (formats/qut_trace.h), and what a thread waits in by its kind: a letter and a colour, of
// which the letter is enough.

export const KIND_CPU = 1, KIND_WALL = 2, KIND_ALLOCATE = 3, KIND_LOCK = 5, KIND_WAIT = 7, KIND_FAULT = 18;
export const FLAG_OFF_CPU = 4, FLAG_BEGINS = 8, FLAG_TOLD = 64, FLAG_OPEN = 128; // the last two are the report's own (columns.h)

// colour: a variable of the style sheet, --wait-NAME.
const waits = new Map([
    [KIND_LOCK, { letter: 'L', name: 'lock', colour: 'wait-lock' }],
    [KIND_WAIT, { letter: 'C', name: 'wait for another', colour: 'wait-condition' }],
    [9, { letter: 'R', name: 'read', colour: 'wait-read' }],
    [10, { letter: 'W', name: 'write', colour: 'wait-write' }],
    [11, { letter: 'P', name: 'poll', colour: 'wait-poll' }],
    [12, { letter: 'S', name: 'sleep', colour: 'wait-sleep' }],
]);
const otherWait = { letter: 'B', name: 'other', colour: 'wait-other' };

export function waitOf(kind) {
    return waits.get(kind) || otherWait;
}

// Those that occur among these kinds, each once.
export function waitsAmong(kinds) {
    return [...new Set([...kinds].map(waitOf))];
}
