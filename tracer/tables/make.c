// SPDX-License-Identifier: Apache-2.0
// What the tables are made of: the selection with nothing left out but frames of the agent and of interpreters, what
// the trace is called, and its stacks.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/utf8_inline.h"
#include "formats/qut_table_name_inline.h"
#include "tracer/analysis/agent_frames.h"
#include "tracer/analysis/interpreter_frames.h"
#include "tracer/export/clean.h"
#include "tracer/tables/inside.h"

const char *tables_keep_text(struct tables *tables, const char *text)
{
    if (!text)
        return "";
    if (!text[base_utf8_plain(text, "")])
        return text;
    size_t size = 0;
    struct sink *sink = sink_in_memory();
    if (!sink)
        return NULL;
    export_clean_text(sink, text, '\0', '\0');
    const uint8_t *bytes = sink_memory(sink, &size);
    const uint32_t number = base_interner_add_part(&tables->texts, (const char *)bytes, size);
    const bool is_good = sink_close(sink, true, NULL) == 0 && !tables->texts.has_failed;
    return is_good ? base_interner_text(&tables->texts, number) : NULL;
}

// A copy of a text that does not stay.
static const char *copy_text(struct tables *tables, const char *text)
{
    const uint32_t number = base_interner_add(&tables->texts, text);
    return tables->texts.has_failed ? NULL : tables_keep_text(tables, base_interner_text(&tables->texts, number));
}

// Of the file that the program was started from; "" where it is not known.
static const char *program_version(struct tables *tables)
{
    const struct trace *trace = tables->whole;
    char build_id[2 * QUT_TRACE_BUILD_ID_BYTES + 1];
    for (size_t i = 0; i < trace->module_count; i++) {
        const struct trace_module *module = &trace->modules[i];
        const char *slash = strrchr(module->path, '/');
        if (!module->code_base || !slash || strcmp(slash + 1, tables->service) != 0)
            continue;
        qut_hex(module->build_id, module->build_id_bytes, build_id);
        return copy_text(tables, build_id);
    }
    return "";
}

static void set_id(struct tables *tables)
{
    const struct trace *trace = tables->whole;
    uint64_t hash = base_hash_bytes(0, trace->identity, sizeof trace->identity);
    hash = base_hash_word(hash, trace->start_ns);
    hash = base_hash_word(hash, trace->end_ns);
    hash = base_hash_word(hash, trace->pid);
    tables->id = (int64_t)(base_hash_word(hash, trace->present_samples) & INT64_MAX);
    const time_t began = (time_t)(trace->realtime_ns / 1000000000u);
    struct tm parts = {0};
    gmtime_r(&began, &parts);
    if (!strftime(tables->date, sizeof tables->date, "%Y-%m-%d", &parts))
        strcpy(tables->date, "1970-01-01");
}

static bool set_labels(struct tables *tables, const struct analysis_labels *labels)
{
    const struct trace *trace = tables->whole;
    char name[CLEAN_PROCESS_NAME_BYTES];
    const struct trace_thread of_trace = {.process = TRACE_NONE}; // the trace's own command
    export_clean_process_name(trace, &of_trace, name);
    tables->host = tables_keep_text(tables, labels->host);
    tables->service = labels->service ? tables_keep_text(tables, labels->service) : copy_text(tables, name);
    tables->path = tables_keep_text(tables, trace->path);
    tables->command = tables_keep_text(tables, trace->command);
    if (tables->service)
        tables->version = labels->version ? tables_keep_text(tables, labels->version) : program_version(tables);
    bool is_good = tables->host && tables->service && tables->version && tables->path && tables->command;
    for (unsigned kind = 0; is_good && kind <= TABLES_KINDS; kind++)
        is_good = (tables->kind_names[kind] = tables_keep_text(tables, trace_kind_name(trace, kind))) != NULL;
    return is_good;
}

static bool set_threads(struct tables *tables)
{
    const struct trace *trace = &tables->selection.trace;
    tables->threads = calloc(trace->thread_count + 1, sizeof *tables->threads);
    for (size_t i = 0; tables->threads && i < trace->thread_count; i++) {
        const struct trace_thread *thread = &trace->threads[i];
        char name[CLEAN_THREAD_NAME_BYTES];
        export_clean_thread_name(thread, name);
        tables->threads[i] = (struct tables_process){trace_pid_of(trace, thread), thread->tid, copy_text(tables, name)};
        if (!tables->threads[i].name)
            return false;
    }
    return tables->threads != NULL;
}

// As the other formats show stacks, but with all samples: which are our own a column says.
static int select_all(struct tables *tables, const struct tables_options *options, struct base_error *error)
{
    struct selection_wanted wanted = options->wanted;
    wanted.show_agent = wanted.show_interpreters = true;
    if (analysis_selection_make(&tables->selection, tables->whole, &wanted, error) != 0)
        return -1;
    const struct trace *whole = tables->whole;
    struct trace *trace = &tables->selection.trace;
    tables->is_own = calloc(whole->node_count + 1, sizeof *tables->is_own);
    if (!tables->is_own)
        return base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "tables of %zu nodes", whole->node_count);
    for (uint32_t node = 0; node < whole->node_count; node++)
        tables->is_own[node] = analysis_is_own_place(whole, node);
    if (!options->wanted.show_agent)
        analysis_agent_leave_out(whole, trace->nodes);
    if (!options->wanted.show_interpreters)
        analysis_interpreters_leave_out(whole, trace->nodes);
    for (size_t i = 0; i < trace->sample_count; i++) {
        struct trace_sample *sample = &trace->samples[i];
        if (sample->node == whole->unticked_node && whole->unticked_node)
            sample->count = 0; // it is none, but has time
        if (!options->wanted.show_agent && !(trace_sample_is_tick(sample) && tables->is_own[sample->node]))
            sample->node = analysis_called_node(whole, sample->node);
        if (!options->wanted.show_interpreters)
            sample->node = analysis_run_node(whole, sample->node);
    }
    return 0;
}

struct tables *tables_make(const struct trace *trace, const struct names *names, const struct tables_options *options,
                           struct base_error *error)
{
    struct tables *tables = calloc(1, sizeof *tables);
    if (!tables) {
        base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "tables");
        return NULL;
    }
    tables->whole = trace;
    tables->names = names;
    set_id(tables);
    if (select_all(tables, options, error) == 0) {
        if (set_labels(tables, &options->labels) && set_threads(tables) && tables_make_stacks(tables))
            return tables;
        base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "tables of %zu samples", trace->sample_count);
    }
    tables_free(tables);
    return NULL;
}

void tables_free(struct tables *tables)
{
    if (!tables)
        return;
    analysis_selection_free(&tables->selection);
    base_interner_free(&tables->texts);
    base_vector_free(&tables->frames.vector);
    base_hash_free(&tables->frame_index);
    free(tables->threads);
    free(tables->first_place);
    free(tables->places);
    free(tables->stacks);
    free(tables->first_row);
    free(tables->by_number);
    free(tables->stack_of);
    free(tables->by_stack);
    free(tables->is_own);
    free(tables);
}

int64_t tables_trace_id(const struct tables *tables)
{
    return tables->id;
}

const char *tables_date(const struct tables *tables)
{
    return tables->date;
}

const char *tables_service(const struct tables *tables)
{
    return tables->service;
}
