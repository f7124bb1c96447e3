// SPDX-License-Identifier: Apache-2.0
// Questions to DuckDB over a folder of Parquet files that qut export wrote, and how long they take. Prints JSON.
//
//     node ask.mjs FOLDER ROUNDS THREADS COPIES FILE.sql...
//
// COPIES: a folder, into which DuckDB writes each table itself; "": it does not.
import fs from 'node:fs';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { consumerFile } from '../../tests/support/consumers/consumers.mjs';

const [folder, rounds, threads, copies, ...questions] = process.argv.slice(2);
const { DuckDBInstance } = await import(pathToFileURL(consumerFile('@duckdb/node-api', 'lib/index.js')));
const duckdb = await (await DuckDBInstance.create(':memory:', { threads })).connect();
const tables = ['traces', 'samples', 'stacks', 'frames'];
const answer = { rows: {}, questions: {}, copies: {} };
const rowsOf = async (sql) => (await duckdb.runAndReadAll(sql)).getRowObjectsJson();
for (const table of tables) {
    await duckdb.run(`CREATE VIEW ${table} AS FROM read_parquet('${folder}/${table}/**/*.parquet', hive_partitioning = true)`);
    answer.rows[table] = Number((await rowsOf(`SELECT count(*) AS n FROM ${table}`))[0].n);
}
for (const file of questions) {
    const sql = fs.readFileSync(file, 'utf8');
    const one = answer.questions[path.basename(file, '.sql')] = { wall_ms: [], cpu_ms: [], rows: 0 };
    one.rows = (await rowsOf(sql)).length; // and files are in memory
    for (let round = 0; round < Number(rounds); round++) {
        const cpu = process.cpuUsage(), wall = process.hrtime.bigint();
        await duckdb.runAndReadAll(sql);
        one.wall_ms.push(Number(process.hrtime.bigint() - wall) / 1e6);
        const used = process.cpuUsage(cpu);
        one.cpu_ms.push((used.user + used.system) / 1e3);
    }
}
for (const table of copies ? tables : []) {
    const to = path.join(copies, `${table}.parquet`);
    const wanted = `FROM read_parquet('${folder}/${table}/**/*.parquet', hive_partitioning = false)`;
    await duckdb.run(`COPY (${wanted}) TO '${to}' (FORMAT parquet, COMPRESSION zstd)`);
    answer.copies[table] = fs.statSync(to).size;
}
console.log(JSON.stringify(answer));
