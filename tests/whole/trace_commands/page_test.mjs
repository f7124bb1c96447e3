// SPDX-License-Identifier: Apache-2.0
// The page says what qut info says: the same functions, the same shares, the same errors, and none of the agent's own.
// node page_test.mjs QUT PROGRAM, which allocates, waits for a lock, reads and computes
import { execFileSync, spawnSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';

import { Checks } from '../../support/consumers/consumers.mjs';
import { pageModule, readPageFile } from '../../unit/tracer/report/pages.mjs';

const { aggregate, functionTable, weightsOf } = await pageModule('aggregate');
const { groupWaits } = await pageModule('waits');
const { runAtOnce } = await pageModule('work');
const [qut, program] = process.argv.slice(2).map((file) => path.resolve(file));
const checks = new Checks();
const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'qut-page-'));
process.on('exit', () => fs.rmSync(folder, { recursive: true, force: true }));
process.chdir(folder);

const run = (...words) => execFileSync(qut, words, { encoding: 'utf8', maxBuffer: 1 << 28, env: { ...process.env, QUT_CACHE: `${folder}/cache` } });

// {name: [self, its error, total, its error]}
async function pageOf(...options) {
    return pageOfTrace('trace', ...options);
}

async function pageOfTrace(name, ...options) {
    run('report', '--quiet', ...options, '-o', 'page.html', name);
    const { trace, segments, repeats } = await readPageFile('page.html'), weight = weightsOf(trace).find(({ id }) => id === 'cpu');
    const everything = { process: -1, thread: -1, kind: -1, from: -Infinity, to: Infinity };
    const sums = runAtOnce(aggregate(trace, segments, { weight, ...everything }));
    const error = (part, told) => sums.certainty.errorOf(part, told);
    const rows = runAtOnce(functionTable(trace, repeats, sums)).map(({ func, self, total, told, totalTold }) =>
        [trace.functionName(func), [self, error(self, told), total, error(total, totalTold)]]);
    const locks = runAtOnce(groupWaits(trace, everything)).locks.map(({ lock, address }) => `${address} ${lock === address ? '' : lock}`);
    return { all: sums.total[0], locks: [...new Set(locks)].sort(), rows: new Map(rows), modules: new Set([...trace.functions.module].map((module) => trace.strings.text(module))) };
}

function compare(page, info, what) {
    checks.equal(Math.round(page.all), info.top_sum, `${what}: the sum`);
    const names = info.top.map((row) => row.function), unique = info.top.filter((row) => names.indexOf(row.function) === names.lastIndexOf(row.function));
    checks.ok(unique.length > 5, `${what}: there are functions`);
    const differ = unique.filter((row) => {
        const [self, selfError, total, totalError] = page.rows.get(row.function) || [];
        return !(Math.round(self) === row.self && Math.round(total) === row.total && Math.abs(selfError - row.self_error) < 2e-6 &&
            Math.abs(totalError - row.total_error) < 2e-6);
    });
    checks.equal(differ.map((row) => [row, page.rows.get(row.function)]), [], `${what}: functions, shares and errors`);
}

const recorded = spawnSync(qut, ['record', '--quiet', '-o', 'trace', '-F', '1000', '--sync', 'all', '--',
    'sh', '-c', `${program} && dd if=/dev/zero of=/dev/null bs=1M count=3000 2>/dev/null`], { encoding: 'utf8' });
checks.equal(recorded.status, 0, `the recording: ${recorded.stderr}`);
const info = (...options) => JSON.parse(run('info', '--json', '--top', '100000', ...options, 'trace'));
// info tells the agent's frames around a call; the page and the exports do not: without sync points both have none.
const page = await pageOf(), whole = info();
checks.ok(whole.top.some((row) => row.function.startsWith('[kernel]')), 'the kernel is there');
checks.ok(![...page.rows.keys()].some((name) => name === 'qut_trace_throttle'), 'nothing of the agent');
const own = new Set(whole.top.filter((row) => row.module === 'libqut-agent.so').map((row) => row.function));
compare(page, { ...whole, top: whole.top.filter((row) => !own.has(row.function)) }, 'all of it');
// On a busy machine its first hundred milliseconds may hold hardly a tick.
const half = ['--between', `0,${Math.floor((whole.end_ns - whole.start_ns) / 2e6)}ms`];
compare(await pageOf(...half), { ...info(...half), top: info(...half).top.filter((row) => !own.has(row.function)) }, 'a part of it');
const shown = await pageOf('--show-agent'), withAgent = info('--show-agent');
compare(shown, withAgent, 'with the agent');
// Where modules were is known of the first process.
run('record', '--quiet', '-o', 'locks', '--sync', 'all', '--', program);
const { locks } = await pageOfTrace('locks'), told = JSON.parse(run('info', '--json', '--locks', 'locks')).locks;
checks.equal(locks, [...new Set(told.map(({ lock, lock_name: name }) => `0x${lock.toString(16)} ${name}`))].sort(), 'locks and their names');
checks.ok(locks.some((lock) => lock.endsWith(' lock')), 'the program\'s lock has its name');
checks.end('page');
