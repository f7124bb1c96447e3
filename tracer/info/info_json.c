// SPDX-License-Identifier: Apache-2.0
#include "base/json.h"
#include "formats/qut_table_name_inline.h"
#include "tracer/export/losses.h"
#include "tracer/info/info.h"
#include "tracer/info/info_tables.h"

static void print_loss(void *context, const char *text)
{
    base_json_string(context, NULL, text);
}

static void print_counts(struct base_json *json, const struct qut_trace_counts *counts)
{
    base_json_number(json, "hits", counts->hits);
    base_json_number(json, "throttled", counts->throttled);
    base_json_open(json, "lost", '{');
    for (unsigned i = 0; i < QUT_TRACE_LOST_COUNT; i++)
        if (counts->lost[i])
            base_json_number(json, trace_lost_name(i), counts->lost[i]);
    base_json_close(json, '}');
    base_json_open(json, "cut", '{');
    for (unsigned i = 0; i < QUT_TRACE_CUT_COUNT; i++)
        if (counts->cut[i])
            base_json_number(json, trace_cut_name(i), counts->cut[i]);
    base_json_close(json, '}');
    base_json_number(json, "marks", counts->marks);
    base_json_number(json, "lost_marks", counts->lost_marks);
}

static void print_balance(struct base_json *json, const struct trace *trace)
{
    struct trace_balance balance = trace_balance(trace);
    base_json_bool(json, "balanced", !balance.hits_missing && !balance.samples_missing);
    base_json_bool(json, "complete", trace->is_complete);
    print_counts(json, &trace->counts);
    base_json_number(json, "stored", trace->stored);
    base_json_number(json, "merged", trace->merged);
    base_json_number(json, "under_way", trace->under_way);
    base_json_number(json, "present_samples", trace->present_samples);
    base_json_number(json, "records", trace->sample_count);
    base_json_number(json, "overwritten_samples", trace->overwritten_samples);
    base_json_number(json, "damaged_samples", trace->damaged_samples);
    base_json_number(json, "damaged_chunks", trace->damaged_chunks);
    base_json_number(json, "damaged_blocks", trace->damaged_blocks);
}

static void print_sums(struct base_json *json, const struct info *info)
{
    const struct trace *trace = info->trace;
    base_json_open(json, "kinds", '{');
    for (unsigned i = 0; i < INFO_KINDS; i++)
        if (info->kinds[i])
            base_json_number(json, trace_kind_name(trace, i), info->kinds[i]);
    if (info->unknown_kinds)
        base_json_number(json, "unknown", info->unknown_kinds);
    base_json_close(json, '}');
    base_json_open(json, "totals", '{');
    for (unsigned i = 0; i < QUT_TRACE_TOTAL_COUNT; i++)
        if (trace->totals[i])
            base_json_number(json, trace_total_name(i), trace->totals[i]);
    base_json_close(json, '}');
    base_json_open(json, "mark_kinds", '{');
    for (unsigned i = 0; i < sizeof info->marks / sizeof *info->marks; i++)
        if (info->marks[i])
            base_json_number(json, info_mark_kind_name(i), info->marks[i]);
    base_json_close(json, '}');
    base_json_open(json, "frames", '{');
    for (unsigned i = 0; i < QUT_TRACE_CLASS_COUNT; i++)
        if (info->frames[i])
            base_json_number(json, info_class_name(i), info->frames[i]);
    base_json_close(json, '}');
}

static void print_threads(struct base_json *json, const struct trace *trace)
{
    base_json_open(json, "threads", '[');
    for (size_t i = 0; i < trace->thread_count; i++) {
        const struct trace_thread *thread = &trace->threads[i];
        base_json_open(json, NULL, '{');
        base_json_number(json, "uid", thread->uid);
        base_json_number(json, "tid", thread->tid);
        base_json_number(json, "pid", trace_pid_of(trace, thread));
        base_json_string(json, "name", thread->name);
        base_json_number(json, "start_ns", thread->start_ns);
        if (thread->end_ns != UINT64_MAX)
            base_json_number(json, "end_ns", thread->end_ns);
        print_counts(json, &thread->counts);
        base_json_number(json, "stored", thread->stored);
        base_json_number(json, "merged", thread->merged);
        base_json_number(json, "records", thread->sample_count);
        base_json_number(json, "gaps", thread->gap_count);
        base_json_close(json, '}');
    }
    base_json_close(json, ']');
}

static void print_modules(struct base_json *json, const struct trace *trace)
{
    base_json_open(json, "modules", '[');
    for (size_t i = 0; i < trace->module_count; i++) {
        const struct trace_module *module = &trace->modules[i];
        char build_id[2 * QUT_TRACE_BUILD_ID_BYTES + 1];
        qut_hex(module->build_id, module->build_id_bytes, build_id);
        base_json_open(json, NULL, '{');
        base_json_string(json, "path", trace_module_file(module));
        base_json_string(json, "build_id", build_id);
        base_json_bool(json, "unloaded", module->unload_ns != UINT64_MAX);
        base_json_bool(json, "jit", module->flags & QUT_TRACE_MODULE_JIT);
        base_json_close(json, '}');
    }
    base_json_close(json, ']');
}

int info_print_json(const struct info *info, FILE *output)
{
    const struct trace *trace = info->trace;
    struct base_json json = {.stream = output};
    base_json_open(&json, NULL, '{');
    base_json_string(&json, "file", trace->path);
    base_json_open(&json, "losses", '[');
    export_losses_say(trace, print_loss, &json);
    base_json_close(&json, ']');
    if (info->quality)
        export_quality_json(info->quality, &json);
    print_balance(&json, trace);
    base_json_number(&json, "pid", trace->pid);
    base_json_string(&json, "arch", info_arch_name(trace->arch));
    base_json_string(&json, "command", trace->command);
    base_json_string(&json, "mode", trace->mode == QUT_TRACE_STREAM ? "stream" : "overwrite");
    base_json_bool(&json, "segment", info->is_segment);
    base_json_number(&json, "start_ns", trace->start_ns);
    base_json_number(&json, "end_ns", trace->end_ns);
    base_json_number(&json, "realtime_ns", trace->realtime_ns);
    print_sums(&json, info);
    base_json_number(&json, "file_bytes", trace->file_bytes);
    base_json_number(&json, "chunks", trace->chunk_count);
    base_json_number(&json, "chunk_bytes", trace->chunk_bytes);
    base_json_real(&json, "bytes_per_sample", info->record_bytes_per_sample, 3);
    if (!info->is_segment)
        base_json_real(&json, "disk_bytes_per_sample", info->file_bytes_per_sample, 3);
    info_processes_json(info, &json);
    print_threads(&json, trace);
    print_modules(&json, trace);
    int result = info->names ? info_tables_json(info->wanted, info->selection, info->names, &json) : 0;
    if (result != 0)
        base_json_string(&json, "error", base_reason_name(BASE_ERR_NO_MEMORY));
    base_json_close(&json, '}');
    return result;
}
