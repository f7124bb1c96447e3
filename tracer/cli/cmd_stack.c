// SPDX-License-Identifier: Apache-2.0
// The order is what matters: modules and tables first, then stop, walk and let go, then names. Nothing is looked up,
// opened or printed while a thread waits.
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include <qutc/provide.h>

#include "base/quantity.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/diagnostics.h"
#include "cli/interrupt.h"
#include "qutc/cache.h"
#include "tracer/stack/print.h"

enum { OUTPUT_BUFFER_BYTES = 65536 };

struct session {
    struct stack_options options;
    struct qutc_provide_options provide;
    struct elsewhere *elsewhere; // NULL: no server is asked
    unsigned tables_made;
    bool no_memory; // for a table, or for a name
    char *cache;
    struct qut_target *target;
    struct stack_take take;
};

static int compile(void *context, const struct qut_compile_request *request, void **table, size_t *table_size,
                   char *reason, size_t reason_size)
{
    struct session *session = context;
    int result = qutc_compile_for_qut(&session->provide, request, table, table_size, reason, reason_size);
    session->tables_made += result == 0;
    session->no_memory |= result != 0 && errno == ENOMEM; // `reason` is for people
    return result;
}

static bool open_elsewhere(struct session *session, const char *cache)
{
    struct base_error error = {0};
    const struct stack_options *options = &session->options;
    const struct elsewhere_options wanted = {.urls = options->urls,
                                             .url_count = options->url_count,
                                             .key = options->key,
                                             .cache_directory = cache,
                                             .debug_root = options->debug_root,
                                             .debuginfod = options->debuginfod};
    if (!options->url_count && !options->debuginfod)
        return true;
    session->elsewhere = elsewhere_open(&wanted, &error);
    if (!session->elsewhere) {
        cli_report(stderr, options->url_count ? "--tables-url" : "--debuginfod", "%s", error.detail);
        return false;
    }
    session->provide.take = elsewhere_take;
    session->provide.take_context = session->elsewhere;
    return true;
}

static void print_error(const struct qut_target_error *error)
{
    fprintf(stderr, "%s: ", cli_program);
    cli_print_name(stderr, error->text);
    fputc('\n', stderr);
}

// False: it was said why.
static bool open_target(struct session *session)
{
    const struct stack_options *options = &session->options;
    // Without a place for a cache, tables are made each time.
    struct base_error unsafe = {0};
    int result = options->no_cache ? 0
                 : options->cache  ? qutc_cache_is_safe(options->cache, &unsafe)
                                   : qutc_cache_directory(&session->cache, &unsafe);
    session->no_memory |= unsafe.reason == BASE_ERR_NO_MEMORY;
    if (result != 0)
        cli_report(stderr, "cache", "%s; tables are made anew", unsafe.detail);
    const char *cache = result != 0 ? NULL : options->cache ? options->cache : session->cache;
    session->provide = (struct qutc_provide_options){
        .size = sizeof session->provide, .cache_directory = cache, .debug_root = options->debug_root};
    if (!open_elsewhere(session, cache))
        return false;
    struct qut_target_error error = {{0}};
    const struct qut_target_options target_options = {.size = sizeof target_options,
                                                      .cache_directory = cache,
                                                      .compile = compile,
                                                      .compile_context = session,
                                                      .sysroot = options->sysroot,
                                                      .interrupt = options->interrupt,
                                                      .one_by_one = !options->together,
                                                      .frame_pointers = true};
    if (options->pid)
        session->target = qut_target_process((pid_t)options->pid, &target_options, &error);
    else if (options->core)
        session->target = qut_target_core(options->core, options->exe, &target_options, &error);
    else
        session->target = qut_target_snapshot(options->snapshot, &target_options, &error);
    if (!session->target)
        print_error(&error);
    return session->target;
}

static size_t walked_threads(const struct stack_take *take)
{
    size_t walked = 0;
    for (size_t i = 0; i < take->count; i++)
        walked += take->threads[i].count > 0;
    return walked;
}

static void print_dex_refusals(const struct stack_modules *modules)
{
    const struct stack_module *first = modules->dex_first;
    char text[256];
    if (modules->dex_refused)
        cli_report(stderr, first && *first->info.path ? first->info.path : "stack",
                   "no names for bytecode (%u times): %s", modules->dex_refused,
                   modules->dex_first_error.reason ? base_error_text(&modules->dex_first_error, text, sizeof text)
                                                   : "no dex file there");
}

static int print(struct session *session)
{
    struct stack_modules modules = {
        .target = session->target, .debug_root = session->options.debug_root, .elsewhere = session->elsewhere};
    struct stack_groups groups;
    if (stack_groups_make(&groups, &session->take, session->options.group) != 0) {
        cli_report(stderr, "stack", "no memory for %zu threads", session->take.count);
        return CLI_BAD;
    }
    // Many threads make megabytes; glibc heeds a size only with a buffer.
    static char buffer[OUTPUT_BUFFER_BYTES];
    setvbuf(stdout, buffer, _IOFBF, sizeof buffer);
    const struct stack_report report = {&session->options, &session->take, &groups, &modules};
    if (session->options.json)
        stack_print_json(&report);
    else
        stack_print_text(&report);
    if (session->options.verbose)
        print_dex_refusals(&modules);
    session->no_memory |= modules.no_memory;
    stack_groups_free(&groups);
    stack_modules_free(&modules);
    return CLI_OK;
}

static void print_elsewhere(const struct session *session)
{
    if (!session->elsewhere)
        return;
    const struct elsewhere_counts counts = elsewhere_counts(session->elsewhere);
    cli_report(stderr, "stack", "from servers: %u tables, %u files for tables", counts.tables, counts.files);
}

static void print_remarks(const struct session *session, size_t walked)
{
    const struct stack_options *options = &session->options;
    if (options->verbose && options->pid && !options->no_stop)
        cli_report(stderr, "stack", "no thread was stopped for longer than %s",
                   base_quantity_time(session->take.stopped_ns).text);
    if (options->verbose)
        cli_report(stderr, "stack", "%zu threads, %zu walked; %u tables compiled", session->take.count, walked,
                   session->tables_made);
    if (options->verbose)
        print_elsewhere(session);
    if (walked == 0 && !options->quiet)
        cli_report(stderr, "stack", "%s",
                   options->no_stop ? "no thread slept in a system call" : "no thread could be walked");
}

// It names the file or the process already; the name can hold anything.
static int run(struct session *session)
{
    const struct stack_options *options = &session->options;
    struct qut_target_error error = {{0}};
    if (options->pid == getpid()) {
        cli_report(stderr, "stack", "%d is this process; it cannot stop itself", options->pid);
        return CLI_BAD;
    }
    if (!open_target(session))
        return CLI_BAD;
    if (cli_interrupt_came())
        return cli_interrupt_status();
    if (stack_take(session->target, options, &session->take, &error) != 0) {
        print_error(&error);
        return CLI_NO;
    }
    // All go on again.
    if (cli_interrupt_unwatch())
        return cli_interrupt_status();
    if (options->tid && session->take.count == 0) {
        cli_report(stderr, "stack", "no thread %d", options->tid);
        return CLI_BAD;
    }
    size_t walked = walked_threads(&session->take);
    int status = print(session);
    print_remarks(session, walked);
    if (session->no_memory)
        cli_report(stderr, "stack", "%s: frames or names are missing", base_reason_name(BASE_ERR_NO_MEMORY));
    return status == CLI_OK && (walked == 0 || session->no_memory) ? CLI_NO : status;
}

static int stack_command(const struct cli_command *command, int argc, char **argv)
{
    (void)command;
    struct session session = {0};
    int status = stack_options_parse(&session.options, argc, argv);
    if (status != CLI_GO_ON)
        return status;
    cli_interrupt_watch();
    status = run(&session);
    if (session.target)
        qut_target_close(session.target);
    elsewhere_close(session.elsewhere);
    stack_take_free(&session.take);
    free(session.cache);
    return status;
}

const struct cli_command command_stack = {"stack", "print the stacks of a process, a core file, a snapshot",
                                          stack_command, NULL};
