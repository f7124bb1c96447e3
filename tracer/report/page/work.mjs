// SPDX-License-Identifier: Apache-2.0
// Long work in slices: generators that yield now and then, so that the page answers meanwhile.

export const ROWS_PER_SLICE = 8192; // a generator yields after so many: a millisecond or two

export const sliceMs = 12;

// The browser gets its turn, and we the next one soon: unlike setTimeout, without a pause that grows.
export function pause() {
    return new Promise((resolve) => {
        const channel = new MessageChannel();
        channel.port1.onmessage = () => {
            channel.port1.close();
            resolve();
        };
        channel.port2.postMessage(null);
    });
}

// What the generator returns; undefined where isWanted says that it is no longer waited for.
export async function runInSlices(generator, isWanted = () => true) {
    for (;;) {
        const until = performance.now() + sliceMs;
        do {
            const step = generator.next();
            if (step.done) {
                return step.value;
            }
        } while (performance.now() < until);
        await pause();
        if (!isWanted()) {
            generator.return();
            return undefined;
        }
    }
}

// The same at once.
export function runAtOnce(generator) {
    for (;;) {
        const step = generator.next();
        if (step.done) {
            return step.value;
        }
    }
}
