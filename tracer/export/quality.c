// SPDX-License-Identifier: Apache-2.0
#include "tracer/export/quality.h"

#include <stdlib.h>
#include <string.h>

#include "tracer/analysis/agent_frames.h"
#include "tracer/analysis/weights.h"

// ---- what a stack is

enum node_trait {
    NODE_IS_WHOLE = 1,
    NODE_IS_KERNEL = 2,
    NODE_IS_RUN_TIME = 4,
    NODE_IS_GUESSED = 8, // or what it hangs from is
};

// No file has it: memory that was written and then run, whether it has a name or not.
static bool is_run_time(const struct trace *trace, const struct trace_node *node)
{
    bool is_in_file = node->module != TRACE_NONE && !(trace->modules[node->module].flags & QUT_TRACE_MODULE_JIT);
    return node->class_ == QUT_TRACE_CLASS_JIT || (node->class_ == QUT_TRACE_CLASS_RAW && !is_in_file);
}

// By parent, which stands before its children. The kernel's time is its own, whoever called.
static uint8_t *traits_of(const struct trace *trace)
{
    uint8_t *traits = calloc(trace->node_count + 1, 1);
    if (!traits)
        return NULL;
    for (size_t i = 1; i < trace->node_count; i++) {
        const struct trace_node *node = &trace->nodes[i];
        bool is_whole = node->class_ != QUT_TRACE_CLASS_END && (!node->parent || traits[node->parent] & NODE_IS_WHOLE);
        traits[i] =
            (uint8_t)((is_whole ? NODE_IS_WHOLE : 0) | (node->class_ == QUT_TRACE_CLASS_KERNEL ? NODE_IS_KERNEL : 0) |
                      (is_run_time(trace, node) ? NODE_IS_RUN_TIME : 0) | (traits[node->parent] & NODE_IS_GUESSED) |
                      (node->kind & QUT_TRACE_NODE_GUESSED ? NODE_IS_GUESSED : 0));
    }
    return traits;
}

static bool is_named(const struct names *names, uint32_t node)
{
    return names_count(names, node) && names_at(names, node, 0)->is_known;
}

// ---- what has no name

static const char *why_unnamed(const struct names *names, const char *path)
{
    const struct names_missing *missing;
    size_t count = names_missing(names, &missing);
    for (size_t i = 0; i < count; i++)
        if (strcmp(missing[i].path, path) == 0)
            return missing[i].why;
    return "no function is known there";
}

static int by_weight(const void *one, const void *other)
{
    const struct quality_unnamed *a = one, *b = other;
    return a->weight != b->weight ? (a->weight > b->weight ? -1 : 1) : strcmp(a->path, b->path);
}

// Of files: one may be loaded in several places.
static void add_unnamed(struct quality_unnamed *files, size_t *count, const char *path, uint64_t weight)
{
    size_t at = 0;
    while (at < *count && strcmp(files[at].path, path) != 0)
        at++;
    if (at == *count)
        files[(*count)++] = (struct quality_unnamed){.path = path};
    files[at].weight += weight;
}

static int find_unnamed(struct quality *quality, const struct trace *trace, const struct names *names,
                        const uint64_t *weight_of_module)
{
    struct quality_unnamed *files = calloc(trace->module_count + 1, sizeof *files);
    size_t count = 0;
    if (!files)
        return -1;
    for (size_t i = 0; i < trace->module_count; i++)
        if (weight_of_module[i])
            add_unnamed(files, &count, trace->modules[i].path, weight_of_module[i]);
    qsort(files, count, sizeof *files, by_weight);
    quality->unnamed_count = count < QUALITY_UNNAMED_MAX ? count : QUALITY_UNNAMED_MAX;
    for (size_t i = 0; i < quality->unnamed_count; i++) {
        quality->unnamed[i] = files[i];
        quality->unnamed[i].why = why_unnamed(names, files[i].path);
    }
    free(files);
    return 0;
}

static const char *machine_of(const struct trace *trace)
{
    static const struct {
        const char *file, *machine;
    } machines[] = {
        {"libjvm.so", "java"},
        {"node", "node"},
        {"nodejs", "node"},
        {"libnode.so", "node"},
        {"libcoreclr.so", ".NET"},
        {"libart.so", "ART"},
        {"libmonosgen-2.0.so", "mono"},
        {"libluajit-5.1.so.2", "LuaJIT"},
    };
    for (size_t i = 0; i < trace->module_count; i++) {
        const char *slash = strrchr(trace->modules[i].path, '/'), *base = slash ? slash + 1 : trace->modules[i].path;
        for (size_t at = 0; at < sizeof machines / sizeof *machines; at++)
            if (strcmp(base, machines[at].file) == 0)
                return machines[at].machine;
    }
    return NULL;
}

// ---- what has no root

// The outermost frame of a stack that ends before its root; the end itself, where no frame is known.
static uint32_t outermost_of(const struct trace *trace, uint32_t node)
{
    while (trace->nodes[node].class_ != QUT_TRACE_CLASS_END && trace->nodes[node].parent) {
        uint32_t parent = trace->nodes[node].parent;
        if (trace->nodes[parent].class_ == QUT_TRACE_CLASS_END)
            break;
        node = parent;
    }
    return node;
}

static struct quality_end end_at(const struct trace *trace, const struct names *names, uint32_t outermost)
{
    const struct trace_node *node = &trace->nodes[outermost];
    if (node->class_ == QUT_TRACE_CLASS_END)
        return (struct quality_end){.why = outermost ? node->label : "[no stack]", .function = ""};
    bool hangs_from_end = node->parent && trace->nodes[node->parent].class_ == QUT_TRACE_CLASS_END;
    size_t count = names_count(names, outermost);
    return (struct quality_end){.why = hangs_from_end ? trace->nodes[node->parent].label : "[no room]",
                                .function = count ? names_at(names, outermost, count - 1)->function : ""};
}

static int ends_by_weight(const void *one, const void *other)
{
    const struct quality_end *a = one, *b = other;
    return a->weight != b->weight ? (a->weight > b->weight ? -1 : 1) : strcmp(a->function, b->function);
}

static int ends_by_words(const void *one, const void *other)
{
    const struct quality_end *a = one, *b = other;
    int order = strcmp(a->why, b->why);
    return order ? order : strcmp(a->function, b->function);
}

// One function may have ended stacks at several addresses.
static int find_ends(struct quality *quality, const struct trace *trace, const struct names *names,
                     const uint64_t *cut_weight_of_node)
{
    size_t count = 0, merged = 0;
    for (size_t i = 0; i < trace->node_count; i++)
        count += cut_weight_of_node[i] != 0;
    struct quality_end *ends = calloc(count + 1, sizeof *ends);
    if (!ends)
        return -1;
    count = 0;
    for (uint32_t i = 0; i < trace->node_count; i++) {
        if (!cut_weight_of_node[i])
            continue;
        ends[count] = end_at(trace, names, i);
        ends[count++].weight = cut_weight_of_node[i];
    }
    qsort(ends, count, sizeof *ends, ends_by_words);
    for (size_t i = 0; i < count; i++) {
        if (merged && ends_by_words(&ends[merged - 1], &ends[i]) == 0)
            ends[merged - 1].weight += ends[i].weight;
        else
            ends[merged++] = ends[i];
    }
    qsort(ends, merged, sizeof *ends, ends_by_weight);
    quality->end_count = merged < QUALITY_ENDS_MAX ? merged : QUALITY_ENDS_MAX;
    memcpy(quality->ends, ends, quality->end_count * sizeof *ends);
    free(ends);
    return 0;
}

// ---- summing up

// Of what is not good: where its time is.
struct faults {
    uint64_t *unnamed_of_module, *cut_of_node; // weights
};

static void weigh(struct quality *quality, const struct trace *trace, const struct names *names, const uint8_t *traits,
                  const struct faults *faults)
{
    for (size_t t = 0; t < trace->thread_count; t++) {
        uint64_t unticked_ns =
            quality->measure == MEASURE_CPU ? analysis_cpu_unticked_ns(trace, &trace->threads[t]) : 0;
        quality->of[QUALITY_UNTICKED] += unticked_ns;
        struct weights_walk walk;
        struct weights weights;
        const struct trace_sample *sample;
        analysis_weights_begin(&walk, trace, &trace->threads[t]);
        while (analysis_weights_next(&walk, &sample, &weights)) {
            uint64_t weight = weights.of[quality->measure];
            uint8_t trait = traits[sample->node];
            const struct trace_node *node = &trace->nodes[sample->node];
            if (analysis_is_own(trace, sample))
                continue;
            quality->sum += weight;
            quality->samples += weight ? sample->count : 0;
            if (trait & NODE_IS_WHOLE && !(sample->flags & QUT_TRACE_SAMPLE_CUT))
                quality->of[QUALITY_WHOLE] += weight;
            else if (weight)
                faults->cut_of_node[outermost_of(trace, sample->node)] += weight;
            if (trait & NODE_IS_KERNEL)
                quality->of[QUALITY_KERNEL] += weight;
            if (trait & NODE_IS_RUN_TIME)
                quality->of[QUALITY_RUN_TIME] += weight;
            if (trait & NODE_IS_GUESSED)
                quality->of[QUALITY_GUESSED] += weight;
            if (is_named(names, sample->node))
                quality->of[QUALITY_NAMED] += weight;
            else if (trait & NODE_IS_RUN_TIME)
                quality->unnamed_run_time += weight;
            else if (sample->node && node->module != TRACE_NONE)
                faults->unnamed_of_module[node->module] += weight;
        }
    }
    // Of what no tick met there is no stack that could be whole, or have a name.
    uint64_t all = quality->sum + quality->of[QUALITY_UNTICKED];
    quality->all[QUALITY_WHOLE] = quality->all[QUALITY_NAMED] = quality->sum;
    quality->all[QUALITY_KERNEL] = quality->all[QUALITY_RUN_TIME] = all;
    if (quality->of[QUALITY_GUESSED])
        quality->all[QUALITY_GUESSED] = all;
    if (quality->of[QUALITY_UNTICKED])
        quality->all[QUALITY_UNTICKED] = all;
}

static void count_losses(struct quality *quality, const struct trace *trace)
{
    uint64_t ticks_lost = trace_note_sum(trace, "ticks-lost");
    uint64_t missing = trace->overwritten_samples + trace->damaged_samples;
    for (unsigned i = 0; i < QUT_TRACE_LOST_COUNT; i++)
        missing += trace->counts.lost[i];
    quality->of[QUALITY_LOST] = missing + ticks_lost;
    quality->all[QUALITY_LOST] = trace->counts.hits - trace->counts.throttled + ticks_lost;
    quality->of[QUALITY_LATE] = trace_note_sum(trace, "ticks-late");
    quality->all[QUALITY_LATE] = trace_note_sum(trace, "ticks-due");
}

int export_quality_make(struct quality *quality, const struct trace *trace, const struct names *names)
{
    *quality = (struct quality){.measure = trace->has_cpu_time ? MEASURE_CPU : MEASURE_SAMPLES};
    uint8_t *traits = traits_of(trace);
    struct faults faults = {calloc(trace->module_count + 1, sizeof *faults.unnamed_of_module),
                            calloc(trace->node_count + 1, sizeof *faults.cut_of_node)};
    int status = -1;
    if (traits && faults.unnamed_of_module && faults.cut_of_node) {
        weigh(quality, trace, names, traits, &faults);
        count_losses(quality, trace);
        quality->machine = machine_of(trace);
        status = find_unnamed(quality, trace, names, faults.unnamed_of_module) == 0
                     ? find_ends(quality, trace, names, faults.cut_of_node)
                     : -1;
    }
    free(traits);
    free(faults.unnamed_of_module);
    free(faults.cut_of_node);
    return status;
}
