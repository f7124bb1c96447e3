// SPDX-License-Identifier: Apache-2.0
#include "tracer/cli/calls_options.h"

#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/diagnostics.h"
#include "cli/nearest.h"
#include "tracer/calls/patterns.h"
#include "tracer/calls/plan.h"
#include "tracer/prototypes/prototypes.h"
#include "tracer/record/program_paths.h"

// ---- files, and their plans

int cli_calls_plan(const struct calls_options *options, const char *path, const char *module, struct calls_plan **plan,
                   struct base_error *error)
{
    struct calls_plan_cache cache = {.directory = options->cache_directory};
    return options->no_cache ? calls_plan_make(path, module, plan, error)
                             : calls_plan_get(path, module, &cache, plan, error);
}

static int cannot_read(pid_t pid)
{
    char number[24];
    snprintf(number, sizeof number, "%d", (int)pid);
    cli_report(stderr, number, "its mappings cannot be read");
    return CLI_BAD;
}

// Every file that it executes, once.
static int of_process(pid_t pid, void (*take)(void *context, const char *path), void *context)
{
    char path[64], last[PATH_MAX] = "";
    snprintf(path, sizeof path, "/proc/%d/maps", (int)pid);
    FILE *file = fopen(path, "re");
    if (!file)
        return cannot_read(pid);
    char *line = NULL;
    size_t room = 0;
    while (getline(&line, &room, file) > 0) {
        char *name = strchr(line, '/'), *mode = strchr(line, ' ');
        if (!name || !mode || mode[3] != 'x')
            continue;
        name[strcspn(name, "\n")] = 0;
        if (strcmp(name, last) != 0)
            take(context, name);
        snprintf(last, sizeof last, "%s", name);
    }
    free(line);
    fclose(file);
    return CLI_OK;
}

static int of_command(const char *command, void (*take)(void *context, const char *path), void *context)
{
    struct program program;
    struct record_paths paths;
    struct base_error error = {0};
    const int status = record_program_find(&program, command, &error);
    if (status) {
        cli_report(stderr, command, "%s", error.detail);
        return status;
    }
    record_program_paths(&program, &paths);
    for (size_t i = 0; i < paths.count; i++) {
        char whole[PATH_MAX];
        take(context, realpath(paths.items[i], whole) ? whole : paths.items[i]);
    }
    record_paths_free(&paths);
    return CLI_OK;
}

int cli_calls_files(const struct calls_options *options, void (*take)(void *context, const char *path), void *context)
{
    return options->pid ? of_process(options->pid, take, context) : of_command(options->command[0], take, context);
}

// ---- what a pattern that no function fits may have meant: a name without wildcards that is spelt nearly so

enum { HINT_BYTES = 256 };

struct looking {
    const struct calls_options *options;
    struct calls_patterns patterns; // the one
    bool is_module;                 // its module is what nothing fits
    struct cli_nearest nearest;
    char found[HINT_BYTES]; // what `nearest` has, in a place that stays
};

static void offer(struct looking *looking, const char *word)
{
    const unsigned before = looking->nearest.distance;
    const char *had = looking->nearest.word;
    cli_nearest_offer(&looking->nearest, word);
    if (looking->nearest.word == had && looking->nearest.distance == before)
        return;
    snprintf(looking->found, sizeof looking->found, "%s", word);
    looking->nearest.word = looking->found;
}

static void offer_bare(struct looking *looking, const char *readable)
{
    char name[HINT_BYTES];
    offer(looking, calls_name_bare(readable, name, sizeof name));
}

static void look_at_module(void *context, const char *path)
{
    struct looking *looking = context;
    looking->is_module &= !calls_patterns_want_module(&looking->patterns, cli_basename(path));
}

static void offer_module(void *context, const char *path)
{
    struct looking *looking = context;
    const char *name = cli_basename(path), *stem_end = strstr(name, ".so");
    offer(looking, name);
    char stem[HINT_BYTES] = "";
    if (stem_end && (size_t)(stem_end - name) < sizeof stem) {
        memcpy(stem, name, (size_t)(stem_end - name));
        offer(looking, stem);
    }
}

static void offer_functions(void *context, const char *path)
{
    struct looking *looking = context;
    const char *module = cli_basename(path);
    struct base_error error = {0};
    struct calls_plan *plan;
    if (!calls_patterns_want_module(&looking->patterns, module) ||
        cli_calls_plan(looking->options, path, module, &plan, &error) != 0)
        return;
    for (uint32_t i = 0; i < plan->header->function_count; i++)
        offer_bare(looking, calls_plan_readable(plan, &plan->functions[i]));
    for (uint32_t i = 0; i < plan->header->alias_count; i++)
        offer_bare(looking, plan->names + plan->aliases[i].readable);
    calls_plan_free(plan);
}

// Where the process or the command is gone meanwhile nothing is said: that was.
static void look(struct looking *looking)
{
    const struct calls_pattern *pattern = &looking->patterns.items[0];
    const int pid = looking->options->pid;
    if (pid && kill(pid, 0) != 0)
        return;
    looking->is_module = pattern->module != NULL;
    cli_calls_files(looking->options, look_at_module, looking);
    const char *text = looking->is_module ? pattern->module : pattern->glob;
    if (strpbrk(text, "*?["))
        return;
    cli_nearest_begin(&looking->nearest, text, strlen(text));
    cli_calls_files(looking->options, looking->is_module ? offer_module : offer_functions, looking);
}

const char *cli_calls_hint(const struct calls_options *options, const char *text, struct calls_hint *hint)
{
    struct looking *looking = calloc(1, sizeof *looking);
    struct base_error error = {0};
    hint->text[0] = 0;
    if (!looking)
        return hint->text;
    looking->options = options;
    if (calls_patterns_add(&looking->patterns, text, false, &error) == 0)
        look(looking);
    if (looking->nearest.word)
        snprintf(hint->text, sizeof hint->text, ": did you mean %s\"%.40s\"?", looking->is_module ? "the module " : "",
                 looking->found);
    calls_patterns_free(&looking->patterns);
    free(looking);
    return hint->text;
}

// ---- the list

enum { NAME_BYTES = 4096 };

struct list {
    const struct calls_options *options;
    struct calls_patterns patterns;
    bool has_traps;
    uint64_t traced, refused;
    bool has_failed;
    struct prototypes *prototypes; // of the file; NULL: names alone
};

// "bool Parser::take(int)" would have its arguments twice.
static char *declared(struct list *list, const struct calls_plan *plan, const struct qut_plan_function *function)
{
    char name[NAME_BYTES];
    struct base_error error = {0};
    if (!list->prototypes)
        return NULL;
    calls_name_bare(calls_plan_readable(plan, function), name, sizeof name);
    char *text = prototypes_text(list->prototypes, function->entry_vaddr, *name ? name : NULL, &error);
    list->has_failed |= !text && error.reason == BASE_ERR_NO_MEMORY;
    return text;
}

static void print_function(struct list *list, const struct calls_plan *plan, const struct qut_plan_function *function,
                           const char *module)
{
    const bool is_traced = function->kind != QUT_PLAN_REFUSED && (function->kind != QUT_PLAN_TRAP || list->has_traps);
    const char *trap = list->options->lists_probes ? "room for a trap only" : "room for a trap only: --traps";
    char *prototype = declared(list, plan, function);
    *(is_traced ? &list->traced : &list->refused) += 1;
    const char *how = is_traced                         ? calls_kind_text(function->kind)
                      : function->kind == QUT_PLAN_TRAP ? trap
                                                        : calls_refusal_text(function->refusal);
    printf("%-12s %#12" PRIx64 " %7" PRIu32 "  ", is_traced ? how : "refused", function->entry_vaddr,
           function->size_bytes);
    cli_print_name(stdout, module);
    printf("!");
    const char *name = calls_plan_readable(plan, function);
    cli_print_name(stdout, prototype ? prototype : *name ? name : "?");
    free(prototype);
    printf(is_traced ? "\n" : "  (%s)\n", how);
}

static void list_file(void *context, const char *path)
{
    struct list *list = context;
    const char *module = cli_basename(path);
    struct base_error error = {0}, why = {0};
    struct calls_plan *plan = NULL;
    struct calls_selection selection = {.count = 0};
    if (!calls_patterns_want_module(&list->patterns, module))
        return;
    if (cli_calls_plan(list->options, path, module, &plan, &error) != 0 ||
        calls_patterns_select(&list->patterns, module, plan, &selection, &error) != 0) {
        cli_report_error(stderr, path, &error);
        list->has_failed = true;
    }
    if (list->options->lists_probes && selection.count + selection.refused.count)
        list->prototypes = prototypes_open(path, "/usr/lib/debug", &why);
    list->has_failed |= why.reason == BASE_ERR_NO_MEMORY;
    for (size_t i = 0; i < selection.count; i++)
        print_function(list, plan, &plan->functions[selection.items[i]], module);
    for (size_t i = 0; i < selection.refused.count; i++)
        print_function(list, plan, &plan->functions[selection.refused.items[i]], module);
    prototypes_close(list->prototypes);
    list->prototypes = NULL;
    calls_selection_free(&selection);
    calls_plan_free(plan);
}

static bool add_patterns(struct list *list, const struct traced_options *options)
{
    struct base_error error = {0};
    for (size_t i = 0; i < options->pattern_count; i++)
        if (calls_patterns_add(&list->patterns, options->patterns[i], options->is_excluded[i], &error) != 0) {
            cli_report_error(stderr, options->patterns[i], &error);
            return false;
        }
    return true;
}

static int say_sums(const struct list *list, const struct calls_options *options)
{
    int status = list->has_failed ? CLI_NO : CLI_OK;
    for (size_t i = 0; i < list->patterns.count; i++) {
        const struct calls_pattern *pattern = &list->patterns.items[i];
        if (pattern->functions || pattern->is_excluded)
            continue;
        struct calls_hint hint;
        cli_report(stderr, pattern->text, "no function fits%s%s",
                   options->pid ? "" : ", neither of the command's file nor of the libraries that it is linked with",
                   cli_calls_hint(options, pattern->text, &hint));
        status = CLI_BAD;
    }
    if (status != CLI_BAD)
        cli_report(stderr, NULL, "%" PRIu64 " functions would be %s, %" PRIu64 " are refused", list->traced,
                   options->lists_probes ? "probed" : "traced", list->refused);
    return status;
}

int cli_calls_list(const struct calls_options *options)
{
    struct list list = {.options = options, .has_traps = options->traced.traps};
    int status = add_patterns(&list, &options->traced) ? cli_calls_files(options, list_file, &list) : CLI_BAD;
    fflush(stdout);
    if (status == CLI_OK)
        status = say_sums(&list, options);
    calls_patterns_free(&list.patterns);
    return status;
}
