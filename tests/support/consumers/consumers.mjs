// SPDX-License-Identifier: Apache-2.0
// Where the programs are that tests/support/consumers/setup fetched, and how a test ends.
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const here = path.dirname(fileURLToPath(import.meta.url));
export const consumersRoot = process.env.QUT_CONSUMERS || path.join(here, '..', '..', '..', 'build', 'consumers');

// The test cannot run here: said, and told to the runner, which counts it.
export function skip(why) {
    console.log(`SKIP: ${why}`);
    process.exit(77);
}

// A file of a fetched package, say ('speedscope', 'dist/release/index.html'). Not there: the test is skipped.
export function consumerFile(packageName, file) {
    const found = path.join(consumersRoot, 'node_modules', packageName, file);
    if (!fs.existsSync(found)) {
        skip(`${packageName} is not in ${consumersRoot} (tests/support/consumers/setup fetches it)`);
    }
    return found;
}

// A program on the machine, the first of these that is there. None: null.
export function findProgram(...names) {
    for (const name of names) {
        const places = name.includes('/') ? [''] : (process.env.PATH || '').split(':');
        for (const place of places) {
            const file = place ? path.join(place, name) : name;
            try {
                fs.accessSync(file, fs.constants.X_OK);
                return file;
            } catch {
                // the next one
            }
        }
    }
    return null;
}

// Checks that go on after a failure, so that one run shows all of them.
export class Checks {
    constructor() {
        this.failures = 0;
        this.passes = 0;
    }
    ok(condition, what) {
        if (condition) {
            this.passes++;
        } else {
            this.failures++;
            console.log(`FAILED: ${what}`);
        }
        return Boolean(condition);
    }
    equal(found, wanted, what) {
        const a = JSON.stringify(found), b = JSON.stringify(wanted);
        return this.ok(a === b, `${what}: ${a} instead of ${b}`);
    }
    // Prints the sum and ends the process.
    end(name) {
        console.log(`${name}: ${this.passes} checks passed, ${this.failures} failed`);
        process.exit(this.failures ? 1 : 0);
    }
}
