// SPDX-License-Identifier: Apache-2.0
// The same SQL over the same traces: in qut query, which has SQLite read the traces, and in DuckDB, which reads the
// Parquet files of qut export; and both say what qut info says. Then what qut query refuses.
//
//     node query_test.mjs QUT GOLDEN_MAKER
import { execFileSync, spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { Checks, consumerFile } from '../../support/consumers/consumers.mjs';
import { isSame, readyQueries, tableOrders, twoTraces } from './two_traces.mjs';

const [qut, goldenMaker] = process.argv.slice(2).map((file) => path.resolve(file));
const checks = new Checks();
const { folder, files, run, ask } = twoTraces(qut, goldenMaker, checks);
const info = JSON.parse(execFileSync(qut, ['info', '--json', 'golden.qtrace'], { encoding: 'utf8' }));

// ---- the counts are those of qut info
const first = `trace = (SELECT trace FROM traces WHERE file = 'golden.qtrace')`;
const [counts] = ask(`SELECT hits, stored, merged, throttled, under_way, present_samples, overwritten_samples,
    damaged_samples, records FROM traces WHERE ${first}`);
checks.equal(Object.values(counts), Object.keys(counts).map((key) => info[key]), 'traces: counts');
checks.equal(ask(`SELECT sum(count) AS n FROM samples WHERE ${first}`), [{ n: info.present_samples }], 'samples: count');
const kinds = ask(`SELECT event, sum(count) AS n FROM samples WHERE ${first} AND count > 0 GROUP BY event`);
checks.equal(Object.fromEntries(kinds.map((row) => [row.event, row.n])), Object.fromEntries(
    Object.entries(info.kinds).sort(([a], [b]) => (a < b ? -1 : 1))), 'samples: kinds');

// ---- a stack has one number, in all traces; no other stack has it
const framesOf = new Map();
for (const row of ask(`SELECT s.trace, CAST(s.stack AS TEXT) AS stack, s.depth, s.repeated, f.* FROM stacks AS s
    JOIN frames AS f ON f.trace = s.trace AND f.frame = s.frame ORDER BY s.trace, s.stack, s.depth`)) {
    const { trace, stack, depth, frame, date, service, ...says } = row;
    const key = `${stack} ${trace}`;
    framesOf.set(key, [...(framesOf.get(key) ?? []), says]);
    checks.equal(depth, framesOf.get(key).length - 1, `stack ${key} is listed once`);
}
const [textsOf, numbersOf] = [new Map(), new Map()];
for (const [key, frames] of framesOf) {
    const [number, text] = [key.split(' ')[0], JSON.stringify(frames)];
    textsOf.set(number, (textsOf.get(number) ?? new Set()).add(text));
    numbersOf.set(text, (numbersOf.get(text) ?? new Set()).add(number));
}
checks.ok(textsOf.size > 5 && framesOf.size === textsOf.size * files.length, `${framesOf.size} stacks have ${textsOf.size} numbers`);
checks.ok([...textsOf.values(), ...numbersOf.values()].every((set) => set.size === 1), 'a number and its frames belong together');
const some = [...textsOf.keys()].sort()[3];

// ---- each plan of the virtual tables finds what a plain scan finds
for (const [quick, slow] of [
    [`samples WHERE stack = ${some}`, `samples WHERE stack + 0 = ${some}`],
    [`samples WHERE ${first}`, `samples WHERE trace + 0 IN (SELECT trace FROM traces WHERE file = 'golden.qtrace')`],
    [`stacks WHERE stack = ${some}`, `stacks WHERE stack + 0 = ${some}`],
    [`stacks WHERE stack = ${some} AND depth = 1`, `stacks WHERE stack + 0 = ${some} AND depth + 0 = 1`],
    [`stacks WHERE stack = ${some} AND depth = 100000`, 'stacks WHERE 1 = 0'],
    [`stacks WHERE stack = '${some}'`, `stacks WHERE stack + 0 = ${some}`], [`stacks WHERE stack = ${some}0`, 'stacks WHERE 1 = 0'],
    ['frames WHERE frame = 3', 'frames WHERE frame + 0 = 3'],
    ['frames WHERE frame = 3.5', 'frames WHERE 1 = 0'], ['frames WHERE frame = NULL', 'frames WHERE 1 = 0'],
    ['frames WHERE frame = -1', 'frames WHERE 1 = 0'], ['samples WHERE stack = -9', 'samples WHERE 1 = 0']]) {
    const [a, b] = [ask(`SELECT * FROM ${quick} ORDER BY 1, 2, 3, 4, 5, 6`), ask(`SELECT * FROM ${slow} ORDER BY 1, 2, 3, 4, 5, 6`)];
    checks.ok(JSON.stringify(a) === JSON.stringify(b), `${quick}: ${a.length} rows, not the ${b.length} of a scan`);
    checks.ok(slow.includes('1 = 0') || b.length > 0, `${slow} finds something`);
}
checks.equal(ask(`SELECT depth FROM stacks WHERE stack = ${some} AND ${first} ORDER BY stack, depth`).map((row) => row.depth),
    JSON.parse([...textsOf.get(some)][0]).map((_, i) => i), 'frames of a stack come in order');
const grouped = ask('SELECT trace, stack, sum(count) AS n FROM samples GROUP BY trace, stack');
const sorted = ask('SELECT trace, stack, sum(count) AS n FROM samples GROUP BY trace + 0, stack + 0 ORDER BY 1, 2');
checks.equal(grouped.length > 5 && grouped, sorted, 'sums by stack');

// ---- what is refused
function refuses(what, status, says, ...words) {
    const result = run('query', ...words);
    checks.ok(result.status === status && result.stderr.includes(says), `${what}: ${result.status} ${result.stderr}`);
}
refuses('a wrong column', 2, '       ^', 'SELECT thred FROM samples', 'golden.qtrace');
refuses('two statements', 2, 'one statement', 'SELECT 1; SELECT 2', 'golden.qtrace');
for (const sql of ["ATTACH 'x.db' AS y", 'PRAGMA user_version = 1', 'CREATE TABLE x (a)', 'DELETE FROM samples',
    "SELECT load_extension('x')", 'CREATE TEMP TABLE x (a)', "VACUUM INTO 'x.db'"])
    refuses(sql, 2, '', sql, 'golden.qtrace');
checks.ok(!fs.existsSync('x.db'), 'no file was made');
refuses('no such query', 2, 'neither SQL nor', 'hotest', 'golden.qtrace');
refuses('the same trace twice', 2, 'given twice', 'hottest', 'golden.qtrace', 'golden.qtrace');
refuses('no trace', 2, '', 'hottest', qut);
refuses('no file', 2, 'needs a FILE', 'hottest');
fs.writeFileSync('one.sql', 'SELECT count(*) AS n\nFROM frames;\n');
checks.equal(ask('@one.sql'), ask('SELECT count(*) AS n FROM frames'), 'SQL from a file');
const csv = run('query', `SELECT 'a,"b' AS x, 1 AS y`, 'golden.qtrace', '--csv');
checks.equal(csv.stdout, 'x,y\r\n"a,""b",1\r\n', 'CSV');

// ---- the ready ones, in both
const ready = readyQueries(run);
checks.ok(ready.length >= 12, `${ready.length} queries are ready`);
const results = new Map(ready.map((name) => [name, ask(name)]));
checks.ok(results.get('hottest').length > 2 && results.get('total').length > results.get('hottest').length / 2,
    'there is something hot');
const { DuckDBInstance } = await import(pathToFileURL(consumerFile('@duckdb/node-api', 'lib/index.js')));
const duckdb = await (await DuckDBInstance.create(':memory:')).connect();
for (const table of ['traces', 'samples', 'stacks', 'frames'])
    await duckdb.run(`CREATE VIEW ${table} AS FROM read_parquet('tables/${table}/**/*.parquet', hive_partitioning = true)`);
for (const name of ready) {
    const sql = run('query', '--show', name).stdout;
    const rows = (await duckdb.runAndReadAll(sql)).getRowObjectsJson();
    checks.ok(isSame(results.get(name), rows), `${name}: ${JSON.stringify(results.get(name)).slice(0, 300)} in SQLite, ` +
        `${JSON.stringify(rows).slice(0, 300)} in DuckDB`);
}
for (const [table, order] of tableOrders) {
    const sql = `SELECT * FROM ${table} ORDER BY ${order}`;
    const rows = (await duckdb.runAndReadAll(sql)).getRowObjectsJson().map((row) => ({ ...row, date: String(row.date) }));
    checks.ok(isSame(ask(sql), rows), `all rows of ${table}`);
}

// ---- qut query itself by DuckDB: the same file of SQL, the same rows
const library = consumerFile('@duckdb/node-bindings-linux-x64', 'libduckdb.so');
const byDuckdb = (...words) => spawnSync(qut, ['query', '--engine', 'duckdb', ...words],
    { encoding: 'utf8', env: { ...process.env, QUT_DUCKDB: library, TMPDIR: folder } });
for (const name of ready) {
    fs.writeFileSync('ready.sql', run('query', '--show', name).stdout);
    const result = byDuckdb('@ready.sql', ...files, '--json', '--quiet');
    checks.ok(result.status < 2 && isSame(results.get(name), JSON.parse(result.stdout)) &&
        JSON.stringify(Object.keys(JSON.parse(result.stdout)[0] ?? {})) === JSON.stringify(Object.keys(results.get(name)[0] ?? {})),
        `${name}: ${JSON.stringify(results.get(name)).slice(0, 300)} by SQLite, ${result.stdout.slice(0, 300)} by DuckDB ${result.stderr}`);
}
for (const [table, order] of tableOrders) {
    const sql = `SELECT * FROM ${table} ORDER BY ${order}`;
    for (const form of ['--json', '--csv']) {
        const result = byDuckdb(sql, ...files, form, '--quiet');
        checks.ok(result.status < 2 && result.stdout.length > 100 && result.stdout === run('query', sql, ...files, form, '--quiet').stdout,
            `all rows of ${table}, ${form}: to the last byte ${result.stderr}`);
    }
}
checks.equal(JSON.parse(byDuckdb("SELECT sum(9000000000000000000 + 0 * count) > 1 AS a, 1.5 AS b, NULL AS c, 'x' AS d, sum(count) AS e FROM samples",
    ...files, '--json', '--quiet').stdout), JSON.parse(run('query', "SELECT 1 AS a, 1.5 AS b, NULL AS c, 'x' AS d, sum(count) AS e FROM samples",
    ...files, '--json', '--quiet').stdout), 'types of cells');
function duckdbRefuses(sql, says) {
    const result = byDuckdb(sql, 'golden.qtrace');
    checks.ok(result.status === 2 && result.stderr.includes(says), `${sql}: ${result.status} ${result.stderr}`);
}
duckdbRefuses('SELECT thred FROM samples', 'thred');
duckdbRefuses('SELECT 1; SELECT 2', 'DuckDB');
for (const sql of ["COPY samples TO 'x.csv'", 'CREATE TABLE x (a INTEGER)', 'DELETE FROM samples', "ATTACH 'x.db' AS y", "SET threads = 1"])
    duckdbRefuses(sql, '');
duckdbRefuses("SELECT * FROM read_csv('/etc/passwd')", 'disabled');
checks.ok(!fs.existsSync('x.csv') && !fs.existsSync('x.db'), 'DuckDB makes no file');
checks.ok(!fs.readdirSync(folder).some((name) => name.startsWith('qut-query-')), 'what was written for it is gone');

// ---- folders of Parquet: the same rows as of the traces that they were written from
for (const name of ready) {
    const result = byDuckdb(name, 'tables', '--json', '--quiet');
    checks.ok(result.status < 2 && isSame(results.get(name), JSON.parse(result.stdout)), `${name} of a folder: ${result.stdout.slice(0, 300)} ${result.stderr}`);
}
run('export', files[0], '-f', 'parquet', '-o', 'first');
for (const [table, order] of tableOrders) {
    const sql = `SELECT * FROM ${table} ORDER BY ${order}`;
    const rows = byDuckdb(sql, ...files, '--json', '--quiet').stdout;
    checks.equal(byDuckdb(sql, 'tables', '--json', '--quiet').stdout, rows, `all rows of ${table} of a folder`);
    checks.equal(byDuckdb(sql, ...files.slice(1), 'first', '--json', '--quiet').stdout, rows, `all rows of ${table} of a folder and files`);
}
const statuses = [byDuckdb('losses', 'tables', '--quiet'), byDuckdb('losses', ...files, '--quiet')].map(({ status }) => status);
checks.equal(statuses[0], statuses[1], 'exit status where a trace is incomplete');
const refused = (says, ...words) => {
    const result = spawnSync(qut, ['query', ...words], { encoding: 'utf8', env: { ...process.env, QUT_DUCKDB: library, TMPDIR: folder } });
    checks.ok(result.status === 2 && result.stdout === '' && says.test(result.stderr), `${words}: ${result.status} ${result.stderr}`);
};
const told = /qut query --engine duckdb reads the folder that qut export -f parquet has written/;
const [someFile] = fs.readdirSync('tables/samples', { recursive: true }).filter((name) => name.endsWith('.parquet'));
refused(told, 'hottest', 'tables');
refused(told, 'hottest', `tables/samples/${someFile}`);
refused(told, '--engine', 'duckdb', 'hottest', `tables/samples/${someFile}`);
refused(/traces are there twice/, '--engine', 'duckdb', 'hottest', 'tables', 'first');
refused(/traces are there twice/, '--engine', 'duckdb', 'hottest', 'tables', files[0]);
fs.mkdirSync('strange');
refused(/strange.*has no folder traces: it is none that qut export -f parquet has written/, '--engine', 'duckdb', 'hottest', 'strange');
fs.cpSync('tables', "it's", { recursive: true });
refused(/is none that DuckDB can be told/, '--engine', 'duckdb', 'hottest', "it's");
fs.cpSync('tables', 'foreign', { recursive: true });
fs.copyFileSync(`tables/samples/${someFile}`, `foreign/frames/${someFile}`);
refused(/DuckDB: .*/, '--engine', 'duckdb', 'hottest', 'foreign');
fs.cpSync('tables', 'cut', { recursive: true });
fs.truncateSync(`cut/samples/${someFile}`, 100);
refused(/DuckDB: .*/, '--engine', 'duckdb', 'hottest', 'cut');
checks.ok(!fs.readdirSync(folder).some((name) => name.startsWith('qut-query-')), 'what was written for it is gone then, too');
const without = spawnSync(qut, ['query', '--engine', 'duckdb', 'hottest', 'golden.qtrace'],
    { encoding: 'utf8', env: { ...process.env, QUT_DUCKDB: '/nonexistent.so' } });
checks.ok(without.status === 2 && without.stderr.includes('DuckDB cannot be loaded'), `without the library: ${without.stderr}`);
checks.end('query');
