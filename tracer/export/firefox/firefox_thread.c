// SPDX-License-Identifier: Apache-2.0
// A stack has one frame of its own: the tables are large rather than hard to follow. Times are milliseconds since the
// recording's start.
#include "tracer/export/firefox/firefox_thread.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/interner.h"
#include "tracer/export/clean.h"

static const int64_t nothing = INT64_MIN; // null

struct stack {
    int64_t prefix, frame, function, address, depth, category, line;
};
struct function {
    int64_t name, resource, file;
};
struct resource {
    int64_t lib, name;
};
struct marker {
    int64_t name, start_ns, end_ns;
    const struct interval *wait;
};

struct tables {
    struct firefox *to;
    struct base_interner strings;
    BASE_VECTOR_AS(struct stack, stacks);
    struct {
        BASE_VECTOR(struct function);
    } functions;
    struct {
        BASE_VECTOR(struct resource);
    } resources;
    struct {
        BASE_VECTOR(struct marker);
    } markers;
    uint32_t *stack_of_node, *function_of_name, *resource_of_module; // index + 1; 0: none yet
    bool has_failed;
};

static int64_t string_of(struct tables *tables, const char *text)
{
    return (int64_t)base_interner_add(&tables->strings, text);
}

// ---- tables

static int64_t resource_of(struct tables *tables, uint32_t module)
{
    if (module == TRACE_NONE || tables->to->lib_of_module[module] == TRACE_NONE)
        return -1;
    uint32_t *index = &tables->resource_of_module[module];
    if (*index)
        return (int64_t)*index - 1;
    const char *path = tables->to->selection->trace.modules[module].path, *slash = strrchr(path, '/');
    struct resource *resource = BASE_ADD(&tables->resources);
    if (!resource) {
        tables->has_failed = true;
        return -1;
    }
    *resource = (struct resource){tables->to->lib_of_module[module], string_of(tables, slash ? slash + 1 : path)};
    *index = (uint32_t)tables->resources.count;
    return (int64_t)*index - 1;
}

static int64_t function_of(struct tables *tables, const struct name *name, uint32_t module)
{
    uint32_t *index = &tables->function_of_name[name->id];
    if (*index)
        return (int64_t)*index - 1;
    struct function *function = BASE_ADD(&tables->functions);
    if (!function) {
        tables->has_failed = true;
        return 0;
    }
    *function = (struct function){string_of(tables, name->function), resource_of(tables, module),
                                  name->file ? string_of(tables, name->file) : nothing};
    *index = (uint32_t)tables->functions.count;
    return (int64_t)*index - 1;
}

// What is shown in which colour: the program's own file, libraries, the kernel, code of virtual machines.
static enum firefox_category category_of(const struct trace *trace, uint32_t node)
{
    const struct trace_node *at = &trace->nodes[node];
    if (at->class_ == QUT_TRACE_CLASS_KERNEL)
        return FIREFOX_KERNEL;
    if (at->class_ == QUT_TRACE_CLASS_JIT || at->class_ == QUT_TRACE_CLASS_DEX)
        return FIREFOX_JAVA;
    if (at->class_ == QUT_TRACE_CLASS_LABEL || at->class_ == QUT_TRACE_CLASS_END || at->module == TRACE_NONE)
        return FIREFOX_OTHER;
    const struct trace_module *module = &trace->modules[at->module];
    if (module->flags & QUT_TRACE_MODULE_MANAGED)
        return FIREFOX_JAVA;
    return strstr(module->path, ".so") || module->flags & QUT_TRACE_MODULE_VDSO ? FIREFOX_NATIVE : FIREFOX_USER;
}

static void add_node(struct tables *tables, uint32_t node)
{
    const struct trace *trace = &tables->to->selection->trace;
    const struct trace_node *at = &trace->nodes[node];
    bool is_in_file = at->module != TRACE_NONE && tables->to->lib_of_module[at->module] != TRACE_NONE;
    int64_t prefix = at->parent ? (int64_t)tables->stack_of_node[at->parent] - 1 : nothing, depth = 0;
    for (size_t i = names_count(tables->to->names, node); i-- > 0; depth++) {
        const struct name *name = names_at(tables->to->names, node, i);
        struct stack *stack = base_vector_add(&tables->vector, sizeof *stack);
        if (!stack) {
            tables->has_failed = true;
            return;
        }
        *stack = (struct stack){.prefix = prefix,
                                .frame = (int64_t)tables->count - 1,
                                .function = function_of(tables, name, at->module),
                                .address = is_in_file && at->pc <= INT64_MAX ? (int64_t)at->pc : -1,
                                .depth = depth,
                                .category = category_of(trace, node),
                                .line = name->line ? (int64_t)name->line : nothing};
        prefix = stack->frame;
    }
    tables->stack_of_node[node] = (uint32_t)tables->count;
}

// Readers leave out samples without a stack.
static void add_without_frames(struct tables *tables)
{
    const struct name name = {.function = "[no frames]", .id = (uint32_t)names_id_count(tables->to->names)};
    struct stack *stack = tables->stack_of_node[0] ? NULL : base_vector_add(&tables->vector, sizeof *stack);
    if (stack) {
        *stack = (struct stack){.prefix = nothing,
                                .frame = (int64_t)tables->count - 1,
                                .function = function_of(tables, &name, TRACE_NONE),
                                .address = -1,
                                .category = FIREFOX_OTHER,
                                .line = nothing};
        tables->stack_of_node[0] = (uint32_t)tables->count;
    }
    tables->has_failed = tables->has_failed || !tables->stack_of_node[0];
}

static void add_stack(struct tables *tables, uint32_t node)
{
    if (!node)
        add_without_frames(tables);
    const struct trace_node *nodes = tables->to->selection->trace.nodes;
    BASE_VECTOR(uint32_t) missing = {{0}}; // innermost first
    for (; node && !tables->stack_of_node[node]; node = nodes[node].parent) {
        uint32_t *added = BASE_ADD(&missing);
        if (!added) {
            tables->has_failed = true;
            break;
        }
        *added = node;
    }
    while (missing.count && !tables->has_failed)
        add_node(tables, missing.items[--missing.count]);
    base_vector_free(&missing.vector);
}

static bool counts(const struct tables *tables, size_t sample)
{
    const uint64_t *weights = tables->to->selection->weights[sample];
    return weights[tables->to->options->weight] || weights[MEASURE_SAMPLES];
}

static void add_waits(struct tables *tables, const struct trace_thread *thread)
{
    const struct selection *selection = tables->to->selection;
    const struct intervals *waits = &tables->to->waits;
    size_t *next = &tables->to->next_wait;
    uint32_t *index = &tables->to->whole_thread; // threads that are selected are in the same order
    while (selection->whole->threads[*index].uid != thread->uid)
        ++*index;
    while (*next < waits->count && waits->items[*next].thread < *index)
        ++*next;
    for (; *next < waits->count && waits->items[*next].thread == *index; ++*next) {
        const struct interval *wait = &waits->items[*next];
        uint64_t from_ns = wait->from_ns > selection->start_ns ? wait->from_ns : selection->start_ns;
        uint64_t to_ns = wait->to_ns < selection->end_ns ? wait->to_ns : selection->end_ns;
        if (!wait->blocked_ns || to_ns < from_ns)
            continue;
        struct marker *marker = BASE_ADD(&tables->markers);
        if (!marker) {
            tables->has_failed = true;
            return;
        }
        uint64_t start_ns = selection->trace.start_ns;
        *marker = (struct marker){string_of(tables, trace_kind_name(selection->whole, wait->kind)),
                                  (int64_t)(from_ns - start_ns), (int64_t)(to_ns - start_ns), wait};
    }
}

// ---- columns

static void put_key(struct sink *sink, const char *key)
{
    sink_text(sink, ",\"");
    sink_text(sink, key);
    sink_text(sink, "\":[");
}

// The same member of all items, of int64_t.
static void put_column(struct sink *sink, const char *key, const int64_t *first, size_t count, size_t item_bytes)
{
    put_key(sink, key);
    for (size_t i = 0; i < count; i++) {
        const int64_t *value = (const int64_t *)(const void *)((const char *)first + i * item_bytes);
        sink_text(sink, i ? "," : "");
        if (*value == nothing)
            sink_text(sink, "null");
        else
            sink_fixed(sink, *value, 0);
    }
    sink_text(sink, "]");
}

static void put_same(struct sink *sink, const char *key, const char *value, size_t count)
{
    put_key(sink, key);
    for (size_t i = 0; i < count; i++) {
        sink_text(sink, i ? "," : "");
        sink_text(sink, value);
    }
    sink_text(sink, "]");
}

static void open_table(struct sink *sink, const char *key, size_t count)
{
    sink_text(sink, ",\n\"");
    sink_text(sink, key);
    sink_text(sink, "\":{\"length\":");
    sink_number(sink, count);
}

#define COLUMN(sink, key, items, count, member)                                                                        \
    put_column(sink, key, (count) ? &(items)->member : NULL, count, sizeof *(items))

static void write_stacks(const struct tables *tables)
{
    struct sink *sink = tables->to->sink;
    open_table(sink, "frameTable", tables->count);
    COLUMN(sink, "address", tables->stacks, tables->count, address);
    COLUMN(sink, "inlineDepth", tables->stacks, tables->count, depth);
    COLUMN(sink, "category", tables->stacks, tables->count, category);
    put_same(sink, "subcategory", "0", tables->count);
    COLUMN(sink, "func", tables->stacks, tables->count, function);
    COLUMN(sink, "line", tables->stacks, tables->count, line);
    for (const char *const *key =
             (const char *const[]){"nativeSymbol", "innerWindowID", "implementation", "column", "optimizations", NULL};
         *key; key++)
        put_same(sink, *key, "null", tables->count);
    sink_text(sink, "}");
    open_table(sink, "stackTable", tables->count);
    COLUMN(sink, "prefix", tables->stacks, tables->count, prefix);
    COLUMN(sink, "frame", tables->stacks, tables->count, frame);
    COLUMN(sink, "category", tables->stacks, tables->count, category);
    put_same(sink, "subcategory", "0", tables->count);
    sink_text(sink, "}");
}

static void write_functions(const struct tables *tables)
{
    struct sink *sink = tables->to->sink;
    size_t count = tables->functions.count;
    open_table(sink, "funcTable", count);
    COLUMN(sink, "name", tables->functions.items, count, name);
    COLUMN(sink, "resource", tables->functions.items, count, resource);
    COLUMN(sink, "fileName", tables->functions.items, count, file);
    put_same(sink, "isJS", "false", count);
    put_same(sink, "relevantForJS", "false", count);
    put_same(sink, "lineNumber", "null", count);
    put_same(sink, "columnNumber", "null", count);
    sink_text(sink, "}");
    open_table(sink, "resourceTable", tables->resources.count);
    COLUMN(sink, "lib", tables->resources.items, tables->resources.count, lib);
    COLUMN(sink, "name", tables->resources.items, tables->resources.count, name);
    put_same(sink, "host", "null", tables->resources.count);
    put_same(sink, "type", "1", tables->resources.count); // a library
    sink_text(sink, "}");
    sink_text(sink,
              ",\n\"nativeSymbols\":{\"length\":0,\"address\":[],\"functionSize\":[],\"libIndex\":[],\"name\":[]}");
}

// A weight that is a time is milliseconds.
static void write_samples(const struct tables *tables, const struct trace_thread *thread)
{
    struct sink *sink = tables->to->sink;
    const struct selection *selection = tables->to->selection;
    unsigned weight = tables->to->options->weight;
    bool is_time = weight == MEASURE_CPU || weight == MEASURE_WALL || weight == MEASURE_BLOCKED;
    size_t first = thread->first_sample, past = first + thread->sample_count, count = 0;
    for (size_t i = first; i < past; i++)
        count += counts(tables, i);
    open_table(sink, "samples", count);
    sink_text(sink, ",\"weightType\":\"");
    sink_text(sink, is_time ? "tracing-ms" : weight == MEASURE_BYTES ? "bytes" : "samples");
    sink_text(sink, "\"");
    for (unsigned column = 0; column < 3; column++) {
        put_key(sink, (const char *const[]){"time", "stack", "weight"}[column]);
        const char *comma = "";
        for (size_t i = first; i < past; i++) {
            const struct trace_sample *sample = &selection->trace.samples[i];
            if (!counts(tables, i))
                continue;
            sink_text(sink, comma);
            comma = ",";
            if (column == 0)
                sink_fixed(sink, (int64_t)(sample->last_ns - selection->trace.start_ns), 6);
            else if (column == 2)
                sink_fixed(sink, (int64_t)selection->weights[i][weight], is_time ? 6 : 0);
            else
                sink_number(sink, tables->stack_of_node[sample->node] - 1);
        }
        sink_text(sink, "]");
    }
    sink_text(sink, "}");
}

static void write_markers(const struct tables *tables)
{
    struct sink *sink = tables->to->sink;
    size_t count = tables->markers.count;
    const struct marker *markers = tables->markers.items;
    open_table(sink, "markers", count);
    COLUMN(sink, "name", markers, count, name);
    for (unsigned end = 0; end < 2; end++) {
        put_key(sink, end ? "endTime" : "startTime");
        for (size_t i = 0; i < count; i++) {
            sink_text(sink, i ? "," : "");
            sink_fixed(sink, end ? markers[i].end_ns : markers[i].start_ns, 6);
        }
        sink_text(sink, "]");
    }
    put_same(sink, "phase", "1", count); // an interval
    put_same(sink, "category", "0", count);
    put_key(sink, "data");
    for (size_t i = 0; i < count; i++) {
        char text[160];
        snprintf(text, sizeof text, "%s{\"type\":\"Wait\",\"lock\":\"0x%" PRIx64 "\",\"ended\":%s}", i ? "," : "",
                 markers[i].wait->lock, markers[i].wait->is_open ? "\"no\"" : "\"yes\"");
        sink_text(sink, text);
    }
    sink_text(sink, "]}");
}

static void write_strings(const struct tables *tables)
{
    struct sink *sink = tables->to->sink;
    sink_text(sink, ",\n\"stringArray\":[");
    for (uint32_t i = 0; i < tables->strings.count; i++) {
        sink_text(sink, i ? "," : "");
        sink_json_string(sink, base_interner_text(&tables->strings, i));
    }
    sink_text(sink, "]");
}

static void write_head(const struct tables *tables, const struct trace_thread *thread)
{
    const struct trace *trace = &tables->to->selection->trace;
    struct sink *sink = tables->to->sink;
    char name[CLEAN_THREAD_NAME_BYTES], process[CLEAN_PROCESS_NAME_BYTES], text[320];
    uint32_t pid = trace_pid_of(trace, thread);
    uint64_t start_ns = thread->start_ns > trace->start_ns ? thread->start_ns - trace->start_ns : 0;
    sink_text(sink, "{\"name\":");
    sink_json_string(sink, export_clean_thread_name(thread, name));
    sink_text(sink, ",\"processName\":");
    sink_json_string(sink, export_clean_process_name(trace, thread, process));
    snprintf(text, sizeof text,
             ",\"processType\":\"default\",\"isMainThread\":%s,\"pid\":\"%" PRIu32 "\",\"tid\":%" PRIu32
             ",\"pausedRanges\":[],\"processStartupTime\":0,\"processShutdownTime\":null,\"unregisterTime\":null"
             ",\"registerTime\":",
             thread->tid == pid ? "true" : "false", pid, thread->tid);
    sink_text(sink, text);
    sink_fixed(sink, (int64_t)start_ns, 6);
}

int export_firefox_thread(struct firefox *firefox, const struct trace_thread *thread)
{
    const struct trace *trace = &firefox->selection->trace;
    struct tables tables = {.to = firefox};
    tables.stack_of_node = calloc(trace->node_count + 1, sizeof *tables.stack_of_node);
    tables.function_of_name = calloc(names_id_count(firefox->names) + 1, sizeof *tables.function_of_name);
    tables.resource_of_module = calloc(trace->module_count + 1, sizeof *tables.resource_of_module);
    tables.has_failed = !tables.stack_of_node || !tables.function_of_name || !tables.resource_of_module;
    for (size_t i = 0; i < thread->sample_count && !tables.has_failed; i++)
        if (counts(&tables, thread->first_sample + i))
            add_stack(&tables, trace->samples[thread->first_sample + i].node);
    if (!tables.has_failed)
        add_waits(&tables, thread);
    bool is_good = !tables.has_failed && !tables.strings.has_failed;
    if (is_good) {
        write_head(&tables, thread);
        write_samples(&tables, thread);
        write_markers(&tables);
        write_stacks(&tables);
        write_functions(&tables);
        write_strings(&tables);
        sink_text(firefox->sink, "}");
    }
    base_vector_free(&tables.vector);
    base_vector_free(&tables.functions.vector);
    base_vector_free(&tables.resources.vector);
    base_vector_free(&tables.markers.vector);
    base_interner_free(&tables.strings);
    free(tables.stack_of_node);
    free(tables.function_of_name);
    free(tables.resource_of_module);
    return is_good ? 0 : -1;
}
