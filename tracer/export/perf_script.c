// SPDX-License-Identifier: Apache-2.0
// The text of "perf script": a line for each sample, with what it counts for where perf has its period, then one for
// each frame, innermost first, then an empty one.
#include <string.h>

#include "tracer/export/clean.h"
#include "tracer/export/locations.h"
#include "tracer/export/stack_text.h"

struct writer {
    const struct selection *selection;
    unsigned weight;
    const struct trace *trace;
    const struct names *names;
    struct sink *sink;
    struct stack_text stacks;
};

static void put_address(struct sink *sink, uint64_t address)
{
    static const char digits[] = "0123456789abcdef";
    char text[17];
    size_t at = sizeof text;
    do {
        text[--at] = digits[address & 15];
        address >>= 4;
    } while (address);
    while (at > 1) // 16 places, right-aligned
        text[--at] = ' ';
    sink_bytes(sink, text + 1, sizeof text - 1);
}

// Readers take what stands in the last parentheses of a line, without blanks, for the module.
static void put_module(struct sink *sink, const char *path)
{
    for (; *path; path++) {
        char byte = *path;
        sink_bytes(sink, (byte > 0x20 && byte < 0x7f && byte != '(' && byte != ')') ? &byte : "_", 1);
    }
}

static void write_node(void *context, uint32_t node, struct sink *sink)
{
    const struct writer *writer = context;
    size_t count = names_count(writer->names, node);
    uint32_t module = writer->trace->nodes[node].module;
    for (size_t i = 0; i < count; i++) {
        const struct name *name = names_at(writer->names, node, i);
        sink_bytes(sink, "\t", 1);
        put_address(sink, export_location_address(writer->trace, node));
        sink_bytes(sink, " ", 1);
        export_clean_text(sink, name->function, 0, 0);
        sink_bytes(sink, " (", 2);
        if (name->is_inlined)
            sink_text(sink, "inlined");
        else
            put_module(sink, module == TRACE_NONE ? "[unknown]" : trace_module_file(&writer->trace->modules[module]));
        sink_bytes(sink, ")\n", 2);
    }
}

// "main 4242/4243 "
static void put_thread(struct sink *sink, const struct trace *trace, const struct trace_thread *thread)
{
    char name[CLEAN_THREAD_NAME_BYTES];
    export_clean_text(sink, export_clean_thread_name(thread, name), ' ', '_');
    sink_bytes(sink, " ", 1);
    sink_number(sink, trace_pid_of(trace, thread));
    sink_bytes(sink, "/", 1);
    sink_number(sink, thread->tid);
    sink_bytes(sink, " ", 1);
}

// A field of the event, not its name: some readers show the first event's samples only.
static void put_kind(struct sink *sink, const char *kind)
{
    for (; *kind; kind++) // a word
        sink_bytes(sink, *kind > 0x20 && *kind < 0x7f && *kind != ':' ? kind : "_", 1);
}

// A run's samples are as far from each other as they were on average.
static uint64_t time_of(const struct trace_sample *sample, uint32_t index)
{
    if (sample->count < 2)
        return sample->first_ns;
    uint64_t duration_ns = sample->last_ns - sample->first_ns, steps = sample->count - 1;
    return sample->first_ns + duration_ns / steps * index + duration_ns % steps * index / steps;
}

// A run's weight, shared out evenly: what its first `index` samples have.
static uint64_t weight_before(uint64_t weight, const struct trace_sample *sample, uint32_t index)
{
    return (uint64_t)((unsigned __int128)weight * index / sample->count);
}

static void put_head(struct writer *writer, const struct sink *thread, uint64_t time_ns, uint64_t weight)
{
    size_t size;
    const uint8_t *text = sink_memory(thread, &size);
    sink_bytes(writer->sink, text, size);
    sink_fixed(writer->sink, (int64_t)(time_ns / 1000), 6); // perf's digits: readers ask for them
    sink_text(writer->sink, ": ");
    for (uint64_t least = 1000000000; least > 1 && weight < least; least /= 10) // 10 places, right-aligned
        sink_bytes(writer->sink, " ", 1);
    sink_number(writer->sink, weight);
    sink_text(writer->sink, " sample: kind=");
}

static bool perfetto_write_sample(struct writer *writer, const struct sink *thread, size_t index)
{
    static const char no_frames[] = "\t               0 [no frames] ([unknown])\n";
    const struct trace_sample *sample = &writer->trace->samples[index];
    const uint64_t *weights = writer->selection->weights[index];
    uint64_t weight = weights[writer->weight];
    size_t size;
    if (!weight && !weights[MEASURE_SAMPLES])
        return true;
    const char *stack = export_stack_text_of(&writer->stacks, sample->node, &size);
    if (!stack)
        return false;
    if (!sample->node) {
        stack = no_frames;
        size = sizeof no_frames - 1;
    }
    for (uint32_t i = 0; i < sample->count && !sink_failed(writer->sink); i++) {
        put_head(writer, thread, time_of(sample, i),
                 weight_before(weight, sample, i + 1) - weight_before(weight, sample, i));
        put_kind(writer->sink, trace_kind_name(writer->trace, sample->kind));
        sink_bytes(writer->sink, "\n", 1);
        sink_bytes(writer->sink, stack, size);
        sink_bytes(writer->sink, "\n", 1);
    }
    return true;
}

static bool perfetto_write_thread(struct writer *writer, const struct trace_thread *thread)
{
    struct sink *head = sink_in_memory();
    if (!head)
        return false;
    put_thread(head, writer->trace, thread);
    bool is_good = !sink_failed(head);
    for (size_t i = 0; i < thread->sample_count && is_good && !sink_failed(writer->sink); i++)
        is_good = perfetto_write_sample(writer, head, thread->first_sample + i);
    sink_close(head, false, NULL);
    return is_good;
}

static int write_perf_script(const struct selection *selection, const struct names *names,
                             const struct export_options *options, struct sink *sink, struct base_error *error)
{
    const struct trace *trace = &selection->trace;
    struct writer writer = {
        .selection = selection, .weight = options->weight, .trace = trace, .names = names, .sink = sink};
    writer.stacks =
        (struct stack_text){.trace = trace, .write = write_node, .context = &writer, .innermost_first = true};
    bool is_good = export_stack_text_begin(&writer.stacks);
    for (size_t i = 0; i < trace->thread_count && is_good; i++) {
        is_good = perfetto_write_thread(&writer, &trace->threads[i]);
        if (options->progress)
            options->progress(options->progress_context, i + 1, trace->thread_count);
    }
    export_stack_text_free(&writer.stacks);
    return is_good ? 0 : base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "perf script");
}

const struct export_format export_perf_script = {
    .name = "perf-script",
    .extension = ".perf.txt",
    .what = "text as of perf script (Firefox Profiler, Perfetto, speedscope, FlameGraph's scripts)",
    .write = write_perf_script,
    .weight = EXPORT_WEIGHT_SAMPLES,
};
