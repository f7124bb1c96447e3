// SPDX-License-Identifier: Apache-2.0
#include "cli/json.h"
#include "tracer/export/losses.h"
#include "tracer/info.h"
#include "tracer/info_tables.h"

static void print_loss(void *context, const char *text)
{
    cli_json_string(context, NULL, text);
}

static void print_counts(struct cli_json *json, const struct qut_trace_counts *counts)
{
    cli_json_number(json, "hits", counts->hits);
    cli_json_number(json, "throttled", counts->throttled);
    cli_json_open(json, "lost", '{');
    for (unsigned i = 0; i < QUT_TRACE_LOST_COUNT; i++)
        if (counts->lost[i])
            cli_json_number(json, trace_lost_name(i), counts->lost[i]);
    cli_json_close(json, '}');
    cli_json_open(json, "cut", '{');
    for (unsigned i = 0; i < QUT_TRACE_CUT_COUNT; i++)
        if (counts->cut[i])
            cli_json_number(json, trace_cut_name(i), counts->cut[i]);
    cli_json_close(json, '}');
    cli_json_number(json, "marks", counts->marks);
    cli_json_number(json, "lost_marks", counts->lost_marks);
}

static void print_balance(struct cli_json *json, const struct trace *trace)
{
    struct trace_balance balance = trace_balance(trace);
    cli_json_bool(json, "balanced", !balance.hits_missing && !balance.samples_missing);
    cli_json_bool(json, "complete", trace->is_complete);
    print_counts(json, &trace->counts);
    cli_json_number(json, "stored", trace->stored);
    cli_json_number(json, "merged", trace->merged);
    cli_json_number(json, "under_way", trace->under_way);
    cli_json_number(json, "present_samples", trace->present_samples);
    cli_json_number(json, "records", trace->sample_count);
    cli_json_number(json, "overwritten_samples", trace->overwritten_samples);
    cli_json_number(json, "damaged_samples", trace->damaged_samples);
    cli_json_number(json, "damaged_chunks", trace->damaged_chunks);
    cli_json_number(json, "damaged_blocks", trace->damaged_blocks);
}

static void print_sums(struct cli_json *json, const struct info *info)
{
    const struct trace *trace = info->trace;
    cli_json_open(json, "kinds", '{');
    for (unsigned i = 0; i < INFO_KINDS; i++)
        if (info->kinds[i])
            cli_json_number(json, trace_kind_name(trace, i), info->kinds[i]);
    if (info->unknown_kinds)
        cli_json_number(json, "unknown", info->unknown_kinds);
    cli_json_close(json, '}');
    cli_json_open(json, "totals", '{');
    for (unsigned i = 0; i < QUT_TRACE_TOTAL_COUNT; i++)
        if (trace->totals[i])
            cli_json_number(json, trace_total_name(i), trace->totals[i]);
    cli_json_close(json, '}');
    cli_json_open(json, "mark_kinds", '{');
    for (unsigned i = 0; i < sizeof info->marks / sizeof *info->marks; i++)
        if (info->marks[i])
            cli_json_number(json, info_mark_kind_name(i), info->marks[i]);
    cli_json_close(json, '}');
    cli_json_open(json, "frames", '{');
    for (unsigned i = 0; i < QUT_TRACE_CLASS_COUNT; i++)
        if (info->frames[i])
            cli_json_number(json, info_class_name(i), info->frames[i]);
    cli_json_close(json, '}');
}

static void print_threads(struct cli_json *json, const struct trace *trace)
{
    cli_json_open(json, "threads", '[');
    for (size_t i = 0; i < trace->thread_count; i++) {
        const struct trace_thread *thread = &trace->threads[i];
        cli_json_open(json, NULL, '{');
        cli_json_number(json, "uid", thread->uid);
        cli_json_number(json, "tid", thread->tid);
        cli_json_number(json, "pid", trace_pid_of(trace, thread));
        cli_json_string(json, "name", thread->name);
        cli_json_number(json, "start_ns", thread->start_ns);
        if (thread->end_ns != UINT64_MAX)
            cli_json_number(json, "end_ns", thread->end_ns);
        print_counts(json, &thread->counts);
        cli_json_number(json, "stored", thread->stored);
        cli_json_number(json, "merged", thread->merged);
        cli_json_number(json, "records", thread->sample_count);
        cli_json_number(json, "gaps", thread->gap_count);
        cli_json_close(json, '}');
    }
    cli_json_close(json, ']');
}

static void print_modules(struct cli_json *json, const struct trace *trace)
{
    cli_json_open(json, "modules", '[');
    for (size_t i = 0; i < trace->module_count; i++) {
        const struct trace_module *module = &trace->modules[i];
        char build_id[2 * QUT_TRACE_BUILD_ID_BYTES + 1] = "";
        for (uint32_t byte = 0; byte < module->build_id_bytes; byte++)
            snprintf(build_id + 2 * byte, 3, "%02x", module->build_id[byte]);
        cli_json_open(json, NULL, '{');
        cli_json_string(json, "path", module->path);
        cli_json_string(json, "build_id", build_id);
        cli_json_bool(json, "unloaded", module->unload_ns != UINT64_MAX);
        cli_json_bool(json, "jit", module->flags & QUT_TRACE_MODULE_JIT);
        cli_json_close(json, '}');
    }
    cli_json_close(json, ']');
}

void info_print_json(const struct info *info, FILE *output)
{
    const struct trace *trace = info->trace;
    struct cli_json json = {.stream = output};
    cli_json_open(&json, NULL, '{');
    cli_json_string(&json, "file", trace->path);
    cli_json_open(&json, "losses", '[');
    losses_say(trace, print_loss, &json);
    cli_json_close(&json, ']');
    print_balance(&json, trace);
    cli_json_number(&json, "pid", trace->pid);
    cli_json_string(&json, "arch", info_arch_name(trace->arch));
    cli_json_string(&json, "command", trace->command);
    cli_json_string(&json, "mode", trace->mode == QUT_TRACE_STREAM ? "stream" : "overwrite");
    cli_json_bool(&json, "segment", info->is_segment);
    cli_json_number(&json, "start_ns", trace->start_ns);
    cli_json_number(&json, "end_ns", trace->end_ns);
    cli_json_number(&json, "realtime_ns", trace->realtime_ns);
    print_sums(&json, info);
    cli_json_number(&json, "file_bytes", trace->file_bytes);
    cli_json_number(&json, "chunks", trace->chunk_count);
    cli_json_number(&json, "chunk_bytes", trace->chunk_bytes);
    cli_json_real(&json, "bytes_per_sample", info->record_bytes_per_sample, 3);
    if (!info->is_segment)
        cli_json_real(&json, "disk_bytes_per_sample", info->file_bytes_per_sample, 3);
    info_processes_json(info, &json);
    print_threads(&json, trace);
    print_modules(&json, trace);
    if (info->names && info_tables_json(info->options, trace, info->names, &json) != 0)
        cli_json_string(&json, "error", "out of memory");
    cli_json_close(&json, '}');
}
