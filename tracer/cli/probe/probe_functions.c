// SPDX-License-Identifier: Apache-2.0
#include "tracer/cli/probe/probe_functions.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/diagnostics.h"
#include "tracer/calls/patterns.h"
#include "tracer/calls/plan.h"

static const char debug_root[] = "/usr/lib/debug";

struct probe_file {
    char *path;
    bool is_planned;
    struct calls_plan *plan; // NULL: it cannot be read, and nothing of it is probed
};

size_t cli_probe_pattern(struct calls_options *calls, const char *text)
{
    for (size_t i = 0; i < calls->traced.pattern_count; i++)
        if (strcmp(calls->patterns[i], text) == 0)
            return i;
    calls->patterns[calls->traced.pattern_count] = text;
    return calls->traced.pattern_count++;
}

// ---- files

static void no_memory(struct probe_functions *functions)
{
    cli_report(stderr, "probe", "no memory");
    functions->status = CLI_BAD;
}

static void take_file(void *context, const char *path)
{
    struct probe_functions *functions = context;
    for (size_t i = 0; i < functions->files.count; i++)
        if (strcmp(functions->files.items[i].path, path) == 0)
            return;
    char *copy = strdup(path);
    struct probe_file *file = copy ? BASE_ADD(&functions->files) : NULL;
    if (file) {
        *file = (struct probe_file){.path = copy};
        return;
    }
    free(copy);
    no_memory(functions);
}

static bool know_files(struct probe_functions *functions)
{
    if (!functions->is_known) {
        functions->is_known = true;
        const int status = cli_calls_files(functions->calls, take_file, functions);
        functions->status = status ? status : functions->status;
    }
    return functions->status == CLI_OK;
}

// What cannot be read is said by the recording, which reads it again. False: no memory.
static bool plan_file(struct probe_functions *functions, struct probe_file *file)
{
    struct base_error error = {0};
    if (file->is_planned)
        return true;
    file->is_planned = true;
    return cli_calls_plan(functions->calls, file->path, cli_basename(file->path), &file->plan, &error) == 0 ||
           error.reason != BASE_ERR_NO_MEMORY;
}

// ---- functions that a pattern fits

struct taking {
    struct probe_functions *functions;
    uint32_t pattern, count;
    bool is_of_callers;         // which need not be such that can be probed
    struct prototypes_set *set; // NULL: they are counted only
};

static bool take_function(struct taking *taking, const struct probe_file *file, uint32_t index)
{
    const struct qut_plan_function *function = &file->plan->functions[index];
    if (function->kind == QUT_PLAN_TRAP) // no probe is put there
        return true;
    taking->count++;
    if (!taking->set)
        return true;
    struct traced_asked *asked = BASE_ADD(&taking->functions->asked);
    if (!asked)
        return false;
    *asked = traced_asked_make(taking->pattern, file->plan->header, function->entry_vaddr);
    return prototypes_set_add(taking->set, file->path, function->entry_vaddr, calls_plan_name(file->plan, function)) ==
           0;
}

static bool take_of_file(struct taking *taking, struct calls_patterns *patterns, struct probe_file *file)
{
    const char *module = cli_basename(file->path);
    struct calls_selection selection = {.count = 0};
    struct base_error error = {0};
    if (!calls_patterns_want_module(patterns, module))
        return true;
    if (!plan_file(taking->functions, file))
        return false;
    if (!file->plan)
        return true;
    bool is_good = calls_patterns_select(patterns, module, file->plan, &selection, &error) == 0;
    if (taking->is_of_callers)
        taking->count += (uint32_t)(selection.count + selection.refused.count);
    for (size_t i = 0; is_good && !taking->is_of_callers && i < selection.count; i++)
        is_good = take_function(taking, file, selection.items[i]);
    calls_selection_free(&selection);
    return is_good;
}

// False: no memory.
static bool take_functions(struct taking *taking, const char *text)
{
    struct probe_functions *functions = taking->functions;
    struct calls_patterns patterns = {.count = 0};
    struct base_error error = {0};
    if (!know_files(functions))
        return true;
    bool is_good = calls_patterns_add(&patterns, text, false, &error) == 0;
    if (!is_good && error.reason != BASE_ERR_NO_MEMORY) // it names none
        return true;
    for (size_t i = 0; is_good && i < functions->files.count; i++)
        is_good = take_of_file(taking, &patterns, &functions->files.items[i]);
    calls_patterns_free(&patterns);
    return is_good;
}

// ---- what a script asks

static int find(void *context, const char *pattern, struct prototypes_set *set)
{
    struct probe_functions *functions = context;
    struct taking taking = {
        .functions = functions, .pattern = (uint32_t)cli_probe_pattern(functions->calls, pattern), .set = set};
    return take_functions(&taking, pattern) ? 0 : -1;
}

static int know_nothing(struct probe_resolver *resolver, const char *const *patterns, size_t pattern_count,
                        const struct probe_path *path, struct probe_recipe *recipe, struct probe_unresolved *why)
{
    (void)resolver, (void)patterns, (void)pattern_count, (void)path, (void)recipe;
    snprintf(why->text, sizeof why->text, "it is known of a program only: a COMMAND, or -p PID");
    return -1;
}

struct probe_resolver *cli_probe_functions_begin(struct probe_functions *functions, struct calls_options *calls)
{
    *functions = (struct probe_functions){.calls = calls, .nothing = {know_nothing}};
    if (!calls->pid && !calls->command)
        return &functions->nothing;
    functions->set = prototypes_set_new(find, functions, debug_root);
    return functions->set ? prototypes_set_resolver(functions->set) : NULL;
}

struct probe_counts *cli_probe_functions_count(struct probe_functions *functions, const struct probe_script *script)
{
    struct probe_counts *counts = calloc(script->places.count + 1, sizeof *counts);
    bool is_good = counts != NULL;
    for (size_t i = 0; is_good && i < script->places.count; i++) {
        const struct probe_place *place = &script->places.items[i];
        struct taking called = {.functions = functions}, callers = {.functions = functions, .is_of_callers = true};
        if (place->pattern)
            is_good = take_functions(&called, place->pattern);
        if (is_good && place->caller)
            is_good = take_functions(&callers, place->caller);
        counts[i] = (struct probe_counts){called.count, callers.count};
    }
    if (!is_good)
        no_memory(functions);
    if (functions->status == CLI_OK)
        return counts;
    free(counts);
    return NULL;
}

void cli_probe_functions_tell(struct probe_functions *functions, const struct probe_script *script,
                              struct traced_probe *probe)
{
    for (size_t i = 0; i < script->places.count; i++)
        if (script->places.items[i].is_resolved)
            probe->asking_programs |= UINT32_C(1) << script->places.items[i].program;
    traced_asked_sort(functions->asked.items, functions->asked.count);
    probe->asked = functions->asked.items;
    probe->asked_count = functions->asked.count;
}

void cli_probe_functions_end(struct probe_functions *functions)
{
    for (size_t i = 0; i < functions->files.count; i++) {
        calls_plan_free(functions->files.items[i].plan);
        free(functions->files.items[i].path);
    }
    base_vector_free(&functions->files.vector);
    base_vector_free(&functions->asked.vector);
    prototypes_set_free(functions->set);
}
