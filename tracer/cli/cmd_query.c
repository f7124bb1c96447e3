// SPDX-License-Identifier: Apache-2.0
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/vector.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/diagnostics.h"
#include "tracer/cli/trace_options.h"
#include "tracer/export/losses.h"
#include "tracer/query/query.h"

static const char help[] =
    "Usage: qut query SQL FILE...\n"
    "       qut query NAME FILE...\n"
    "       qut query --list\n"
    "       qut query --show NAME\n\n"
    "Asks traces in SQL. They are four tables, of all FILEs together: traces, samples, stacks, frames. Nothing is\n"
    "copied or changed. NAME is a query that is ready; @FILE instead of SQL reads it from a file. FILE may have\n"
    "labels: FILE,host=NAME,service=NAME,version=NAME.\n\n"
    "  traces   trace, host, service, version, date, hits, lost, ...\n"
    "  samples  trace, stack, pid, tid, thread, time_ns, kind, event, count, cpu_ns, blocked_ns, bytes, ...\n"
    "  stacks   trace, stack, depth (0: innermost), frame, repeated\n"
    "  frames   trace, frame, function, module, build_id, address, ...\n\n"
    "--engine duckdb asks DuckDB, where its library is installed ($QUT_DUCKDB names another file): it has the\n"
    "tables in its memory, and its own SQL. It reads folders of qut export -f parquet as well as traces. All columns:\n"
    "docs/qut-query.md.\n\n"
    "The exit status is 1 where a trace is incomplete, which is said; 2 where the SQL or a FILE is wrong: nothing was\n"
    "printed then, or not all.\n\n"
    "Example: qut query hottest app.qtrace\n"
    "         qut query --engine duckdb total *.qtrace\n"
    "         qut query --engine duckdb by-host fleet\n"
    "         qut query 'SELECT thread, sum(cpu_ns) FROM samples GROUP BY thread' *.qtrace --csv\n";

struct trace_of_file {
    struct trace trace;
    struct names *names;
    struct tables *tables;
};

struct job {
    enum query_form form;
    bool is_list, quiet, by_duckdb;
    const char *show; // NULL: not asked for
    struct names_options names;
    struct trace_of_file *files;
    size_t file_count;
    const char **folders; // of Parquet
    size_t folder_count;
    bool is_incomplete;
};

enum { ID_JSON = 256, ID_CSV, ID_LIST, ID_SHOW, ID_DEBUG_ROOT, ID_SYSROOT, ID_NO_INLINES, ID_LINES, ID_ENGINE };

static const struct cli_argument arguments[] = {
    {"list", NULL, ID_LIST, 0, "the queries that are ready, with a sentence for each"},
    {"show", "NAME", ID_SHOW, 0, "the SQL of one of them"},
    {"json", NULL, ID_JSON, 0, "rows as one JSON array of objects"},
    {"csv", NULL, ID_CSV, 0, "rows as CSV, the columns' names first"},
    {"engine", "ENGINE", ID_ENGINE, 0,
     "sqlite (default), or duckdb, whose libduckdb.so is loaded: faster over many samples"},
    {"debug-root", "DIR", ID_DEBUG_ROOT, 0, "where separate debug files are (/usr/lib/debug)"},
    {"sysroot", "DIR", ID_SYSROOT, 0, "open the files of modules below DIR: a trace of another machine"},
    {"no-inlines", NULL, ID_NO_INLINES, 0, "no inlined functions, which need debug information: faster"},
    {"lines", NULL, ID_LINES, 0, "source files and lines, where there is debug information"},
    {"quiet", NULL, 'q', 0, "no remarks on standard error, errors only"},
    {"help", NULL, CLI_ID_HELP, 0, "this text"},
};

static const char *const engines[] = {"sqlite", "duckdb", NULL};

static int take(void *context, int id, const char *value)
{
    struct job *job = context;
    switch (id) {
    case ID_JSON: job->form = QUERY_JSON; return 0;
    case ID_CSV: job->form = QUERY_CSV; return 0;
    case ID_LIST: job->is_list = true; return 0;
    case ID_SHOW: job->show = value; return 0;
    case ID_DEBUG_ROOT: job->names.debug_root = value; return 0;
    case ID_SYSROOT: job->names.system_root = value; return 0;
    case ID_NO_INLINES: job->names.inlined = false; return 0;
    case ID_LINES: job->names.lines = true; return 0;
    case ID_ENGINE:
        job->by_duckdb = strcmp(value, engines[1]) == 0;
        return job->by_duckdb || strcmp(value, engines[0]) == 0 ? 0
                                                                : cli_bad_value("engine", value, "sqlite or duckdb");
    case 'q': job->quiet = true; return 0;
    default: return -1;
    }
}

static const char *word_of(int id, size_t index)
{
    return id == ID_SHOW ? query_ready[index].name : id == ID_ENGINE ? engines[index] : NULL;
}

static int list_ready(void)
{
    for (const struct query_ready *ready = query_ready; ready->name; ready++)
        printf("%-14s %s\n", ready->name, ready->what);
    return CLI_OK;
}

static int show_ready(const char *name)
{
    const struct query_ready *ready = query_ready_find(name);
    if (!ready) {
        cli_report(stderr, name, "is no query that is ready: qut query --list names them");
        return CLI_BAD;
    }
    printf("%s\n", ready->sql);
    return CLI_OK;
}

// What is asked: freed by the caller. NULL: it has said why.
static char *sql_of(const char *operand)
{
    const struct query_ready *ready = query_ready_find(operand);
    if (ready || *operand != '@') {
        if (!ready && !strpbrk(operand, " \t\r\n")) {
            cli_report(stderr, operand, "is neither SQL nor a query that is ready: qut query --list names them");
            return NULL;
        }
        return strdup(ready ? ready->sql : operand);
    }
    struct {
        BASE_VECTOR(char);
    } text = {0};
    FILE *file = fopen(operand + 1, "re");
    bool is_good = file != NULL;
    for (int byte; is_good && (byte = fgetc(file)) != EOF;) {
        char *place = BASE_ADD(&text);
        is_good = place != NULL;
        if (place)
            *place = (char)byte;
    }
    char *end = is_good && !ferror(file) ? BASE_ADD(&text) : NULL;
    if (end)
        *end = 0;
    else
        cli_report(stderr, operand + 1, "cannot be read");
    if (!end)
        base_vector_free(&text.vector);
    if (file)
        fclose(file);
    return text.items;
}

static void say_loss(void *context, const char *text)
{
    cli_report(stderr, context, "%s", text);
}

static int read_file(struct job *job, char *operand, struct trace_of_file *file)
{
    struct tables_options options = {.wanted = {.kind = SELECTION_ALL, .to_ns = UINT64_MAX}};
    struct base_error error = {0};
    if (!cli_trace_options_labels(operand, &options.labels))
        return CLI_BAD;
    if (trace_read(operand, &file->trace, &error) != 0) {
        cli_report_error(stderr, operand, &error);
        return CLI_BAD;
    }
    job->file_count++;
    const struct trace_balance balance = trace_balance(&file->trace);
    job->is_incomplete |= !file->trace.is_complete || balance.hits_missing || balance.samples_missing;
    if (!job->quiet)
        export_losses_say(&file->trace, say_loss, operand);
    file->names = names_of(&file->trace, &job->names, &error);
    file->tables = file->names ? tables_make(&file->trace, file->names, &options, &error) : NULL;
    if (file->tables)
        return CLI_OK;
    cli_report_error(stderr, operand, &error);
    return CLI_BAD;
}

// Parquet, which DuckDB reads. CLI_GO_ON: it is something else.
static int take_folder(struct job *job, const char *operand)
{
    static const char own[] = ".parquet",
                      how[] = "qut query --engine duckdb reads the folder that qut export -f parquet has written";
    const size_t length = strlen(operand);
    struct base_error error = {0};
    struct stat status;
    if (stat(operand, &status) != 0)
        return CLI_GO_ON;
    if (!S_ISDIR(status.st_mode) && (length < sizeof own - 1 || strcmp(operand + length - (sizeof own - 1), own) != 0))
        return CLI_GO_ON;
    if (!S_ISDIR(status.st_mode) || !job->by_duckdb)
        cli_report(stderr, operand, "is %s, and no trace: %s", S_ISDIR(status.st_mode) ? "a folder" : "of Parquet",
                   how);
    else if (tables_check_written(operand, &error) != 0)
        cli_report_error(stderr, operand, &error);
    else
        return job->folders[job->folder_count++] = operand, CLI_OK;
    return CLI_BAD;
}

// The line of the SQL that is wrong, and a mark below the place.
static void show_place(const char *sql, int at)
{
    const char *begin = sql + at;
    while (begin > sql && begin[-1] != '\n')
        begin--;
    cli_report(stderr, "SQL", "%.*s", (int)strcspn(begin, "\n"), begin);
    cli_report(stderr, "SQL", "%*s^", (int)(sql + at - begin), "");
}

static int ask(struct job *job, const char *sql)
{
    struct base_error error = {0};
    int at = -1;
    struct tables **tables = calloc(job->file_count + 1, sizeof *tables);
    for (size_t i = 0; tables && i < job->file_count; i++)
        tables[i] = job->files[i].tables;
    int status = -1;
    if (!tables)
        base_fail(&error, BASE_ERR_NO_MEMORY, "", 0, "query");
    else if (job->by_duckdb)
        status = query_run_duckdb(tables, job->file_count, &(struct query_folders){job->folders, job->folder_count},
                                  sql, job->form, stdout, &job->is_incomplete, &error);
    else
        status = query_run(tables, job->file_count, sql, job->form, stdout, &at, &error);
    free(tables);
    if (status == 0)
        return job->is_incomplete ? CLI_NO : CLI_OK;
    cli_report_error(stderr, "query", &error);
    if (at >= 0 && (size_t)at <= strlen(sql))
        show_place(sql, at);
    return CLI_BAD;
}

static int run(struct job *job, const char *sql, char **operands, size_t count)
{
    int status = CLI_OK;
    job->files = calloc(count + 1, sizeof *job->files);
    job->folders = calloc(count + 1, sizeof *job->folders);
    if (!job->files || !job->folders) {
        free(job->files);
        free(job->folders);
        cli_report(stderr, "query", "out of memory");
        return CLI_BAD;
    }
    for (size_t i = 0; i < count && status == CLI_OK; i++) {
        status = take_folder(job, operands[i]);
        if (status == CLI_GO_ON)
            status = read_file(job, operands[i], &job->files[job->file_count]);
    }
    if (status == CLI_OK)
        status = ask(job, sql);
    for (size_t i = 0; i < job->file_count; i++) {
        tables_free(job->files[i].tables);
        names_free(job->files[i].names);
        trace_free(&job->files[i].trace);
    }
    free(job->files);
    free(job->folders);
    return status;
}

static int query_command(const struct cli_command *command, int argc, char **argv)
{
    struct job job = {.names = {.inlined = true}};
    const struct cli_parser parser = {.command = command->name,
                                      .help = help,
                                      .arguments = arguments,
                                      .argument_count = sizeof arguments / sizeof *arguments,
                                      .take = take,
                                      .context = &job,
                                      .word = word_of};
    int first;
    int status = cli_parse(&parser, argc, argv, &first);
    if (status != CLI_GO_ON)
        return status;
    if (job.is_list || job.show)
        return job.is_list ? list_ready() : show_ready(job.show);
    if (argc - first < 2) {
        cli_report(stderr, "query", argc == first ? "needs SQL, or the name of a query, and a FILE" : "needs a FILE");
        return cli_usage_error("query");
    }
    if (!job.by_duckdb && !query_is_built()) {
        cli_report(stderr, "query", "this qut was built without SQLite: --engine duckdb, or qut export -f parquet");
        return CLI_BAD;
    }
    char *sql = sql_of(argv[first]);
    if (!sql)
        return CLI_BAD;
    status = run(&job, sql, argv + first + 1, (size_t)(argc - first - 1));
    free(sql);
    return status;
}

const struct cli_command command_query = {"query", "ask traces in SQL", query_command, NULL};
