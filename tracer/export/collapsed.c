// SPDX-License-Identifier: Apache-2.0
// "thread;outermost;...;innermost weight", a line for each stack: what flamegraph.pl reads, and most others. Sorted, so
// that two exports can be compared. Threads of the same name are one. Where there are several processes, the name of
// the thread's stands before it, and those of the same name are one.
#include <stdlib.h>
#include <string.h>

#include "tracer/export/clean.h"
#include "tracer/export/name_tree.h"
#include "tracer/export/stack_text.h"
#include "tracer/export/sums.h"

struct line {
    const struct trace_thread *thread;
    uint32_t rank, node;
    uint64_t weight;
};

struct lines {
    BASE_VECTOR(struct line);
};

static void write_function(const struct name *name, struct sink *sink)
{
    export_clean_text(sink, name->function, ';', ':');
}

static void write_node(void *context, uint32_t node, struct sink *sink)
{
    const struct names *names = context;
    for (size_t i = names_count(names, node); i-- > 0;) {
        sink_bytes(sink, ";", 1);
        write_function(names_at(names, node, i), sink);
    }
}

static bool add_lines(struct lines *lines, const struct sums *sums, const struct trace_thread *thread,
                      const struct name_tree *tree, unsigned weight)
{
    if (!BASE_RESERVE(lines, sums->count))
        return false;
    for (size_t i = 0; i < sums->count; i++) {
        const struct sum *sum = &sums->items[i];
        if (sum->of[weight])
            lines->items[lines->count++] = (struct line){thread, tree->rank[sum->node], sum->node, sum->of[weight]};
    }
    return true;
}

static int compare_processes(const struct trace *trace, const struct trace_thread *left,
                             const struct trace_thread *right)
{
    char record_left_name[CLEAN_PROCESS_NAME_BYTES], right_name[CLEAN_PROCESS_NAME_BYTES];
    if (left->process == right->process)
        return 0;
    return strcmp(export_clean_process_name(trace, left, record_left_name),
                  export_clean_process_name(trace, right, right_name));
}

static int compare_threads(const struct trace *trace, const struct trace_thread *left, const struct trace_thread *right)
{
    char record_left_name[CLEAN_THREAD_NAME_BYTES], right_name[CLEAN_THREAD_NAME_BYTES];
    int order = left == right ? 0 : compare_processes(trace, left, right);
    return order || left == right
               ? order
               : strcmp(export_clean_thread_name(left, record_left_name), export_clean_thread_name(right, right_name));
}

static int compare_lines(const void *a, const void *b, void *trace)
{
    const struct line *left = a, *right = b;
    int order = compare_threads(trace, left->thread, right->thread);
    return order ? order : (left->rank > right->rank) - (left->rank < right->rank);
}

static void write_process(const struct trace *trace, const struct trace_thread *thread, struct sink *sink)
{
    char name[CLEAN_PROCESS_NAME_BYTES];
    if (trace->process_count < 2)
        return;
    export_clean_text(sink, export_clean_process_name(trace, thread, name), ';', ':');
    sink_bytes(sink, ";", 1);
}

static bool write_lines(const struct trace *trace, const struct lines *lines, struct stack_text *text,
                        struct sink *sink)
{
    void *context = (void *)(uintptr_t)trace;
    for (size_t i = 0; i < lines->count && !sink_failed(sink);) {
        const struct line *line = &lines->items[i];
        uint64_t weight = 0;
        for (; i < lines->count && compare_lines(line, &lines->items[i], context) == 0; i++)
            weight += lines->items[i].weight;
        size_t size;
        const char *stack = export_stack_text_of(text, line->node, &size);
        if (!stack)
            return false;
        char name[CLEAN_THREAD_NAME_BYTES];
        write_process(trace, line->thread, sink);
        export_clean_text(sink, export_clean_thread_name(line->thread, name), ';', ':');
        sink_bytes(sink, stack, size);
        sink_bytes(sink, " ", 1);
        sink_number(sink, weight);
        sink_bytes(sink, "\n", 1);
    }
    return true;
}

static bool gather(struct lines *lines, const struct selection *selection, const struct export_options *options,
                   const struct name_tree *tree)
{
    const struct trace *trace = &selection->trace;
    struct sums sums = {0};
    bool is_good = true;
    for (size_t i = 0; i < trace->thread_count && is_good; i++) {
        const struct trace_thread *thread = &trace->threads[i];
        is_good = export_sums_of_thread(&sums, selection, thread, false) == 0 &&
                  add_lines(lines, &sums, thread, tree, options->weight);
        if (options->progress)
            options->progress(options->progress_context, i + 1, trace->thread_count);
    }
    export_sums_free(&sums);
    return is_good;
}

static int write_collapsed(const struct selection *selection, const struct names *names,
                           const struct export_options *options, struct sink *sink, struct base_error *error)
{
    const struct trace *trace = &selection->trace;
    struct name_tree tree = {0};
    struct lines lines = {0};
    struct stack_text text = {.trace = trace, .write = write_node, .context = (void *)(uintptr_t)names};
    bool is_good = export_stack_text_begin(&text) && export_name_tree_make(&tree, trace, names, write_function) == 0 &&
                   gather(&lines, selection, options, &tree);
    if (is_good && lines.count) {
        qsort_r(lines.items, lines.count, sizeof *lines.items, compare_lines, (void *)(uintptr_t)trace);
        is_good = write_lines(trace, &lines, &text, sink);
    }
    export_stack_text_free(&text);
    export_name_tree_free(&tree);
    base_vector_free(&lines.vector);
    return is_good ? 0 : base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "collapsed stacks");
}

const struct export_format export_collapsed = {
    .name = "collapsed",
    .extension = ".collapsed.txt",
    .what = "a line for each stack (flamegraph.pl and many others)",
    .write = write_collapsed,
    .weight = EXPORT_WEIGHT_SAMPLES,
};
