// SPDX-License-Identifier: Apache-2.0
// Two traces, as files and as Parquet tables, and how rows of SQL engines are compared: for tests of several engines.
import { execFileSync, spawnSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { skip } from '../../support/consumers/consumers.mjs';

// Goes to a new folder, in which golden.qtrace is, and tables/. `files`: what commands are given, with labels; `ask`: the
// rows of qut query.
export function twoTraces(qut, goldenMaker, checks) {
    const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'qut-query-'));
    process.on('exit', () => fs.rmSync(folder, { recursive: true, force: true }));
    process.chdir(folder);
    const run = (...words) => spawnSync(qut, words, { encoding: 'utf8' });
    function record(name) { // a segment is in memory
        const segment = `/dev/shm/qut-query-${process.pid}-${name}`;
        try {
            execFileSync(goldenMaker, [segment, 'close']);
            execFileSync(qut, ['collect', '--quiet', segment, '-o', `${name}.qtrace`]);
        } finally {
            fs.rmSync(segment, { force: true });
        }
    }
    try {
        fs.accessSync('/dev/shm', fs.constants.W_OK);
    } catch {
        skip('/dev/shm cannot be written to');
    }
    record('golden');
    record('second');
    if (run('query', 'losses', 'golden.qtrace').stderr.includes('without SQLite'))
        skip('this qut was built without SQLite');

    // The second one has other labels, and its identity may be the first one's: then it is the same trace.
    const files = ['golden.qtrace,host=web1,version=1'];
    if (run('query', 'losses', 'golden.qtrace', 'second.qtrace').status < 2)
        files.push('second.qtrace,host=web2,version=2');
    for (const file of files)
        execFileSync(qut, ['export', file, '-f', 'parquet', '-o', 'tables', '--quiet']);

    function ask(sql, ...more) {
        const result = run('query', sql, ...files, '--json', '--quiet', ...more);
        return checks.ok(result.status < 2, `${sql}: ${result.stderr}`) ? JSON.parse(result.stdout) : [];
    }
    return { folder, files, run, ask };
}

export function readyQueries(run) {
    return run('query', '--list').stdout.trimEnd().split('\n').map((line) => line.split(' ')[0]);
}

export const tableOrders = [['traces', 'trace'], ['samples', 'trace, tid, time_ns, kind, event, stack, count, cpu_ns, flow'],
    ['stacks', 'trace, stack, depth'], ['frames', 'trace, frame']];

// Numbers may come as text, and are rounded to three digits by each engine.
export function isSame(a, b) {
    const plain = (value) => (typeof value === 'string' && !/^-?\d+$/.test(value) ? value : Number(value));
    return a.length === b.length && a.every((row, i) => Object.keys(row).every((key) => {
        const [left, right] = [plain(row[key]), plain(b[i][key])];
        return left === right || Math.abs(left - right) < 0.0021;
    }));
}
