// SPDX-License-Identifier: Apache-2.0
// Tables as Parquet, read by three readers that share no code: hyparquet (JavaScript), arrow-rs (parquet-wasm), DuckDB.
// The first says that what is in them is what is in the trace; the others, that they read the same.
//
//     node parquet_test.mjs GOLDEN_EXPORT [--large]
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { Checks, consumerFile } from '../../support/consumers/consumers.mjs';

const [goldenExport, ...words] = process.argv.slice(2);
const checks = new Checks();
const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'qut-parquet-'));
process.on('exit', () => fs.rmSync(folder, { recursive: true, force: true }));

const imported = (name, file) => import(pathToFileURL(consumerFile(name, file)));
const { parquetReadObjects, parquetMetadata } = await imported('hyparquet', 'src/index.js');
const { compressors } = await imported('hyparquet-compressors', 'src/index.js');
const arrow = await imported('parquet-wasm', 'node/parquet_wasm.js');
const { DuckDBInstance } = await imported('@duckdb/node-api', 'lib/index.js');
const duckdb = await (await DuckDBInstance.create(':memory:')).connect();

const tableNames = ['traces', 'samples', 'stacks', 'frames'];
const plain = (rows) => JSON.stringify(rows.map((row) => Object.values(row).map(String)));
const clean = (name) => (name || '[no name]').replace(/[\0-\x1f\x7f]/g, ' ');

function arrayOf(file) {
    const bytes = fs.readFileSync(file);
    return bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length);
}

// Of many rows: how many, and the sum of each column of numbers.
async function sumsOf(file, rows) {
    const numbers = Object.keys(rows[0]).filter((key) => typeof rows[0][key] !== 'string');
    const sums = numbers.map((key) => rows.reduce((sum, row) => sum + BigInt(row[key]), 0n).toString());
    const asked = numbers.map((key) => `sum(${key})::VARCHAR AS ${key}`).join(', ');
    const result = await duckdb.runAndReadAll(`SELECT count(*)::VARCHAR AS n, ${asked} FROM '${file}'`);
    return [[String(rows.length), ...sums], Object.values(result.getRowObjects()[0])];
}

// What the footer says of each column of each row group holds of the values, which are in the order of the rows.
function checkFooter(what, metadata, rows) {
    let first = 0;
    for (const group of metadata.row_groups) {
        const part = rows.slice(first, first += Number(group.num_rows));
        for (const { meta_data: column } of group.columns) {
            const values = part.map((row) => row[column.path_in_schema[0]]);
            const { min_value: min, max_value: max, null_count: nulls } = column.statistics;
            checks.equal(String(nulls), '0', `${what}: ${column.path_in_schema}: nulls`);
            if (min === undefined)
                continue;
            // Text is ordered by its bytes.
            const key = (value) => (typeof value === 'string' ? Buffer.from(value).toString('hex') : value);
            const sorted = values.map(key).reduce(([low, high], value) =>
                [value < low ? value : low, value > high ? value : high], [key(values[0]), key(values[0])]);
            checks.ok(String(key(min)) === String(sorted[0]) && String(key(max)) === String(sorted[1]),
                `${what}: ${column.path_in_schema}: ${min} to ${max} instead of ${sorted}`);
        }
    }
    checks.equal(first, rows.length, `${what}: rows in groups`);
}

// The rows of each table of a folder, as hyparquet has them; and the others' word that they have the same.
async function readFolder(what, where, quickly) {
    const tables = {};
    for (const name of tableNames) {
        const files = fs.readdirSync(path.join(where, name), { recursive: true }).filter((one) => one.endsWith('.parquet'));
        checks.equal(files.length, 1, `${what}: files of ${name}`);
        checks.ok(/^date=\d{4}-\d\d-\d\d\/service=a%20service\/[0-9a-f]{16}\.parquet$/.test(files[0]),
            `${what}: ${files[0]}`);
        const file = path.join(where, name, files[0]);
        const array = arrayOf(file);
        const rows = tables[name] = await parquetReadObjects({ file: array, compressors });
        checkFooter(`${what} ${name}`, parquetMetadata(array), rows);
        // arrow-rs reads all of it; what it writes then without compression has the same rows.
        const table = arrow.readParquet(new Uint8Array(array));
        checks.equal(table.recordBatches().reduce((sum, batch) => sum + batch.numRows, 0), rows.length,
            `${what} ${name}: rows of arrow-rs`);
        if (quickly) {
            checks.equal(...await sumsOf(file, rows), `${what} ${name}: DuckDB`);
            continue;
        }
        if (rows.length) {
            const again = arrow.writeParquet(table, new arrow.WriterPropertiesBuilder()
                .setCompression(arrow.Compression.UNCOMPRESSED).build());
            const copy = again.buffer.slice(again.byteOffset, again.byteOffset + again.length);
            checks.ok(plain(await parquetReadObjects({ file: copy })) === plain(rows), `${what} ${name}: arrow-rs`);
        }
        const result = await duckdb.runAndReadAll(`FROM read_parquet('${file}', hive_partitioning = false)`);
        checks.ok(plain(result.getRowObjects()) === plain(rows), `${what} ${name}: DuckDB`);
        if (rows.length) { // what is passed over by the least and largest value must not be there
            const column = { samples: 'time_ns', stacks: 'stack', frames: 'function', traces: 'trace' }[name];
            const value = rows[rows.length >> 1][column];
            const wanted = rows.filter((row) => row[column] === value).length;
            const quoted = typeof value === 'string' ? `'${value.replaceAll("'", "''")}'` : value;
            const found = await duckdb.runAndReadAll(`SELECT count(*) AS n FROM '${file}' WHERE ${column} = ${quoted}`);
            checks.equal(Number(found.getRowObjects()[0].n), wanted, `${what} ${name}: ${column} = ${value}`);
        }
    }
    return tables;
}

async function check(what, options) {
    const where = path.join(folder, what);
    execFileSync(goldenExport, ['parquet', where, ...options]);
    const truthFile = path.join(folder, `${what}.truth`);
    execFileSync(goldenExport, ['truth', truthFile, ...options]);
    const truth = fs.readFileSync(truthFile, 'utf8').trimEnd().split('\n').map((line) => JSON.parse(line));
    const wanted = truth.filter((record) => record.what === 'sample');
    const { traces, samples, stacks, frames } = await readFolder(what, where, false);

    checks.equal([traces.length, traces[0].host], [1, 'golden'], `${what}: the trace`);
    for (const rows of [samples, stacks, frames])
        checks.ok(rows.every((row) => row.trace === traces[0].trace), `${what}: the trace of each row`);
    const functionOf = new Map(frames.map((frame) => [frame.frame, frame.function]));
    checks.equal(functionOf.size, frames.length, `${what}: frames have different numbers`);
    const stackOf = new Map();
    for (const row of stacks) {
        const stack = stackOf.get(row.stack) ?? [];
        stackOf.set(row.stack, stack);
        checks.equal(row.depth, stack.length, `${what}: depth in stack ${row.stack}`);
        stack.push(row);
    }
    for (const rows of stackOf.values()) { // by name at least: what is the same function is of one name
        const names = rows.map((row) => functionOf.get(row.frame));
        rows.forEach((row, i) => checks.ok(!row.repeated || names.indexOf(names[i], i + 1) > 0, `${what}: repeated`));
        checks.ok(new Set(names).size <= rows.filter((row) => !row.repeated).length, `${what}: each function once`);
    }
    const start = Number(traces[0].start_ns);
    // Random ones have open waits that are told more than once: of these the last time is the first.
    const line = (tid, event, count, first, last, stack) =>
        JSON.stringify([tid, event, count, first, what.startsWith('random') ? null : last, stack]);
    const found = samples.filter((row) => row.count).map((row) => line(row.tid, row.event, Number(row.count),
        Number(row.time_ns - traces[0].start_ns), Number(row.time_ns + row.span_ns - traces[0].start_ns),
        (stackOf.get(row.stack) ?? []).map((one) => functionOf.get(one.frame))));
    const expected = wanted.map((sample) => line(sample.tid, sample.kind, sample.count, sample.first_ns, sample.last_ns,
        sample.stack.map(clean)));
    checks.ok(start >= 0 && expected.length > 0, `${what}: there is something to compare`);
    checks.equal(found.length, expected.length, `${what}: samples`);
    const left = expected.sort(), right = found.sort();
    left.forEach((one, i) => checks.ok(one === right[i], `${what}: ${right[i]?.slice(0, 300)} instead of ${one.slice(0, 300)}`));
    const sum = (rows, key) => rows.reduce((total, row) => total + Number(row[key]), 0);
    checks.equal(sum(samples, 'count'), sum(wanted, 'count'), `${what}: the sum of counts`);
    const key = (name, record) => record[name] ?? 0;
    checks.equal(sum(samples, 'lock'), wanted.reduce((total, one) => total + key('extra2', one), 0), `${what}: locks`);
}

await check('golden', []);
await check('damaged', ['--damage']);
for (let seed = 1; seed <= 4; seed++)
    await check(`random${seed}`, ['--random', String(seed)]);
await check('processes', ['--processes', '3']);
// More rows than a row group has.
const large = words.includes('--large') ? ['1000000', '8', '40'] : ['130000', '3', '6'];
execFileSync(goldenExport, ['parquet', path.join(folder, 'large'), '--large', ...large]);
const { samples } = await readFolder('large', path.join(folder, 'large'), true);
checks.ok(samples.filter((row) => row.count).length >= Number(large[0]) - 8, 'large: rows');

// Into the same folder again: the same files. Into one of somebody else's: refused.
const again = (where) => execFileSync(goldenExport, ['parquet', where], { stdio: 'pipe' });
again(path.join(folder, 'golden'));
checks.equal(fs.readdirSync(path.join(folder, 'golden'), { recursive: true }).filter((one) => one.endsWith('t')).length, 4,
    'the same trace again: the same files');
fs.mkdirSync(path.join(folder, 'others'));
fs.writeFileSync(path.join(folder, 'others', 'thesis.odt'), 'x');
let refused = '';
try {
    again(path.join(folder, 'others'));
} catch (error) {
    refused = String(error.stderr);
}
checks.ok(refused.includes('thesis.odt'), `a folder of others: ${refused}`);
checks.equal(fs.readdirSync(path.join(folder, 'others')).length, 1, 'a folder of others stays as it is');
checks.end('parquet');
