// SPDX-License-Identifier: Apache-2.0
// The fields are told in docs/qut-stack.md; programs rely on them.
#include <inttypes.h>
#include <string.h>

#include "base/json.h"
#include "formats/qut_table_name_inline.h"
#include "tracer/stack/print.h"

enum { TEXT_BYTES = 8192 };

static void write_address(struct base_json *json, const char *key, uint64_t address)
{
    char text[24];
    snprintf(text, sizeof text, "0x%" PRIx64, address);
    base_json_string(json, key, text);
}

static void write_module(struct base_json *json, const struct stack_place *place)
{
    const struct qut_module_info *info = &place->module->info;
    char build_id[2 * 64 + 1];
    base_json_string(json, "module", info->path);
    if (stack_place_offset(place))
        write_address(json, "module_offset", stack_place_offset(place));
    if (place->entry)
        base_json_string(json, "entry", place->entry);
    if (*info->soname)
        base_json_string(json, "soname", info->soname);
    if (info->build_id_size && info->build_id_size <= 64) {
        qut_hex(info->build_id, info->build_id_size, build_id);
        base_json_string(json, "build_id", build_id);
    }
    if (info->deleted)
        base_json_bool(json, "deleted", true);
}

static const char *kind_of(const struct qut_frame *frame)
{
    if (frame->flags & QUT_FRAME_PYTHON)
        return "python";
    if (frame->flags & QUT_FRAME_SCRIPT)
        return "javascript";
    if (frame->flags & QUT_FRAME_DEX)
        return "dex";
    if (frame->flags & QUT_FRAME_INTERPRETER)
        return "interpreter";
    if (frame->flags & QUT_FRAME_JIT)
        return "jit";
    return frame->flags & QUT_FRAME_MANAGED ? "managed" : "native";
}

static void write_frame(struct base_json *json, const struct stack_report *report, const struct qut_frame *frame,
                        size_t index, size_t level)
{
    struct stack_place place;
    stack_describe(report->modules, report->options, frame, index, level, &place);
    base_json_open(json, NULL, '{');
    base_json_string(json, "kind", kind_of(frame));
    write_address(json, "pc", frame->pc);
    write_address(json, "sp", frame->sp);
    if (place.module) {
        write_address(json, "module_pc", place.pc);
        write_module(json, &place);
    }
    if (place.function)
        base_json_string(json, "function", place.function);
    if (place.function && !place.is_inlined && !(frame->flags & (QUT_FRAME_PYTHON | QUT_FRAME_SCRIPT)))
        base_json_number(json, "function_offset", place.function_offset);
    if (place.mangled)
        base_json_string(json, "mangled", place.mangled);
    if (place.file)
        base_json_string(json, "file", place.file);
    if (place.line)
        base_json_number(json, "line", place.line);
    if (place.is_inlined)
        base_json_bool(json, "inlined", true);
    if (place.is_near)
        base_json_bool(json, "near", true);
    if (frame->flags & QUT_FRAME_SIGNAL)
        base_json_bool(json, "signal_frame", true);
    if (frame->flags & QUT_FRAME_GUESSED)
        base_json_bool(json, "guessed", true);
    if (frame->flags & QUT_FRAME_FROM_CODE)
        base_json_bool(json, "from_code", true);
    if (frame->flags & QUT_FRAME_DOUBTFUL)
        base_json_bool(json, "doubtful", true);
    base_json_close(json, '}');
    stack_place_free(&place);
}

static void write_threads(struct base_json *json, const struct stack_report *report, size_t group)
{
    const struct stack_groups *groups = report->groups;
    base_json_open(json, "threads", '[');
    for (size_t i = groups->first[group]; i != SIZE_MAX; i = groups->next[i]) {
        const struct qut_thread_info *info = &report->take->threads[i].info;
        base_json_open(json, NULL, '{');
        base_json_number(json, "tid", (uint64_t)info->tid);
        base_json_string(json, "name", info->name);
        if (info->signal_number)
            base_json_number(json, "signal", (uint64_t)info->signal_number);
        if (info->crashed)
            base_json_bool(json, "crashed", true);
        if (info->asleep_in && *info->asleep_in)
            base_json_string(json, "asleep_in", info->asleep_in);
        base_json_close(json, '}');
    }
    base_json_close(json, ']');
}

static void write_end(struct base_json *json, const struct stack_report *report, const struct stack_thread *thread)
{
    const struct qut_end *end = &thread->end;
    char text[TEXT_BYTES];
    base_json_open(json, "end", '{');
    base_json_string(json, "reason", qut_end_reason_name(end->reason));
    base_json_bool(json, "outermost", end->reason == QUT_END_OUTERMOST);
    if (end->reason != QUT_END_OUTERMOST) {
        base_json_string(json, "text", stack_end_text(report->modules, thread, text, sizeof text));
        write_address(json, "pc", end->pc);
    }
    if (end->reason == QUT_END_REFUSED)
        base_json_string(json, "refusal", qut_refusal_name(end->refusal));
    if (end->reason == QUT_END_BAD_MEMORY)
        write_address(json, "address", end->address);
    base_json_close(json, '}');
}

void stack_print_json(const struct stack_report *report)
{
    const struct stack_options *options = report->options;
    struct base_json json = {.stream = stdout};
    base_json_open(&json, NULL, '{');
    base_json_string(&json, "qut", QUT_VERSION);
    base_json_string(&json, "arch", qut_target_arch(report->modules->target));
    if (options->pid) {
        base_json_number(&json, "pid", (uint64_t)options->pid);
        base_json_number(&json, "stopped_us", report->take->stopped_ns / 1000);
    }
    if (options->core)
        base_json_string(&json, "core", options->core);
    if (options->snapshot)
        base_json_string(&json, "snapshot", options->snapshot);
    base_json_open(&json, "stacks", '[');
    for (size_t group = 0; group < report->groups->count; group++) {
        const struct stack_thread *thread = &report->take->threads[report->groups->first[group]];
        base_json_open(&json, NULL, '{');
        write_threads(&json, report, group);
        base_json_open(&json, "frames", '[');
        for (size_t i = 0; i < thread->count; i++) {
            size_t count = stack_level_count(report->modules, options, &thread->frames[i]);
            for (size_t level = 0; level < count; level++)
                write_frame(&json, report, &thread->frames[i], i, level);
        }
        base_json_close(&json, ']');
        write_end(&json, report, thread);
        if (thread->python_reason)
            base_json_string(&json, "python_reason", thread->python_reason);
        base_json_close(&json, '}');
    }
    base_json_close(&json, ']');
    base_json_close(&json, '}');
    fputc('\n', stdout);
}
