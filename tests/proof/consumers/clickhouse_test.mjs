// SPDX-License-Identifier: Apache-2.0
// The Parquet files of qut export in ClickHouse: all rows of all tables, and each ready query, as qut query has them. Its
// library is 566 MB, so this is not part of the default run: tests/support/consumers/setup clickhouse fetches it.
//
//     node clickhouse_test.mjs QUT GOLDEN_MAKER
import { createRequire } from 'node:module';
import path from 'node:path';
import { Checks, consumerFile } from '../../support/consumers/consumers.mjs';
import { isSame, readyQueries, tableOrders, twoTraces } from './two_traces.mjs';

const [qut, goldenMaker] = process.argv.slice(2).map((file) => path.resolve(file));
const checks = new Checks();
const { Session } = createRequire(import.meta.url)(path.dirname(consumerFile('chdb', 'package.json')));
const { folder, run, ask } = twoTraces(qut, goldenMaker, checks);
const session = new Session(path.join(folder, 'clickhouse'));
// Columns are named as in the query, and JOIN gives NULL where there is no row: standard SQL, which is a setting there.
const settings = 'SETTINGS prefer_column_name_to_alias = 1, join_use_nulls = 1, output_format_json_quote_64bit_integers = 1';
const rowsOf = (sql) => session.query(`${sql.trim().replace(/;$/, '')} ${settings}`, 'JSONEachRow').trim().split('\n')
    .filter(Boolean).map((line) => JSON.parse(line));
for (const [table] of tableOrders)
    session.query(`CREATE VIEW ${table} AS SELECT * FROM file('${folder}/tables/${table}/**/*.parquet', Parquet)`);

for (const [table, order] of tableOrders) {
    const sql = `SELECT * FROM ${table} ORDER BY ${order}`;
    const [ours, theirs] = [ask(sql), rowsOf(sql)];
    checks.ok(ours.length > 0 && isSame(ours, theirs), `all rows of ${table}`);
}
for (const name of readyQueries(run)) {
    let theirs;
    try {
        theirs = rowsOf(run('query', '--show', name).stdout);
    } catch (error) {
        theirs = [String(error).slice(0, 300)];
    }
    const ours = ask(name);
    checks.ok(isSame(ours, theirs), `${name}: ${JSON.stringify(ours).slice(0, 300)} in SQLite, ${JSON.stringify(theirs).slice(0, 300)} ` +
        'in ClickHouse');
}
checks.end('clickhouse');
