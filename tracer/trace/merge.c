// SPDX-License-Identifier: Apache-2.0
#include "tracer/trace/merge.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tracer/trace/raw_trace.h"

enum { DAMAGES_KEPT = 64 };

bool trace_merge_begin(struct merger *merger)
{
    struct trace_memory *memory = trace_memory_new();
    if (!memory)
        return false;
    *merger = (struct merger){
        .memory = memory,
        .modules = trace_vector(memory, sizeof(struct trace_module)),
        .nodes = trace_vector(memory, sizeof(struct trace_node)),
        .threads = trace_vector(memory, sizeof(struct trace_thread)),
        .samples = trace_vector(memory, sizeof(struct trace_sample)),
        .extras = trace_vector(memory, sizeof(struct trace_extra)),
        .metrics = trace_vector(memory, sizeof *merger->trace.metrics),
        .marks = trace_vector(memory, sizeof(struct trace_mark)),
        .gaps = trace_vector(memory, sizeof(struct trace_gap)),
        .processes = trace_vector(memory, sizeof(struct trace_process)),
        .notes = trace_vector(memory, sizeof(struct trace_note)),
        .own_notes = trace_vector(memory, sizeof(struct trace_note)),
        .damages = trace_vector(memory, sizeof(char *)),
        .texts = trace_vector(memory, sizeof(char *)),
        .recordings = trace_vector(memory, sizeof(struct trace_recording)),
        .calls = trace_vector(memory, sizeof(struct call_events *)),
    };
    merger->trace.is_complete = true;
    merger->trace.start_ns = UINT64_MAX;
    return true;
}

static int no_memory(struct base_error *error)
{
    return base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "no memory for the trace");
}

static void add_damage(struct merger *merger, const char *text)
{
    merger->trace.is_complete = false;
    if (merger->damages.count >= DAMAGES_KEPT)
        return;
    const char *copy = trace_merge_text(merger, text);
    char **place = copy ? trace_vector_add(&merger->damages) : NULL;
    if (place)
        *place = (char *)(uintptr_t)copy;
}

static void add_damages(struct merger *merger, const struct trace *part)
{
    for (size_t i = 0; i < part->damage_count; i++) {
        char text[512];
        if (strcmp(part->damages[i], TRACE_DIED_TEXT) == 0) {
            merger->died_count++;
            merger->trace.is_complete = false;
            continue;
        }
        if (merger->damage_of)
            snprintf(text, sizeof text, "%s: %s", merger->damage_of, part->damages[i]);
        else
            snprintf(text, sizeof text, "process %" PRIu32 ": %s", part->pid, part->damages[i]);
        add_damage(merger, text);
    }
}

// Own kinds have numbers of their process; here they have those of all. One too many becomes "other".
static bool add_kinds(struct merger *merger, const struct trace *part)
{
    const char **names = merger->trace.kind_names;
    for (unsigned i = 0; i < QUT_TRACE_OWN_KIND_COUNT; i++) {
        merger->kind_map[i] = QUT_TRACE_KIND_OTHER;
        const char *name = trace_merge_text(merger, part->kind_names[i]);
        if (part->kind_names[i] && !name)
            return false;
        for (unsigned to = 0; name && to < QUT_TRACE_OWN_KIND_COUNT; to++) {
            // A name's own number, if that is free or its own; else the first that is.
            unsigned at = (i + to) % QUT_TRACE_OWN_KIND_COUNT;
            if (names[at] && names[at] != name)
                continue;
            names[at] = name;
            merger->kind_map[i] = (uint16_t)(QUT_TRACE_OWN_KIND_FIRST + at);
            break;
        }
    }
    return true;
}

// `count` items behind those that are there; NULL: no memory.
static void *add_items(struct trace_vector *to, const void *items, size_t count)
{
    if (!trace_vector_reserve(to, count + 1)) // one more, so that there is always a place
        return NULL;
    char *place = (char *)to->items + to->count * to->item_bytes;
    if (count)
        memcpy(place, items, count * to->item_bytes);
    to->count += count;
    return place;
}

static bool add_samples(struct merger *merger, const struct trace *part)
{
    size_t first_extra = merger->extras.count, first_metrics = merger->metrics.count;
    if (part->extra_count >= UINT32_MAX - first_extra || part->metrics_count >= UINT32_MAX - first_metrics)
        return false;
    struct trace_sample *samples = add_items(&merger->samples, part->samples, part->sample_count);
    struct trace_extra *extras = add_items(&merger->extras, part->extras, part->extra_count);
    if (!samples || !extras || !add_items(&merger->metrics, part->metrics, part->metrics_count))
        return false;
    for (size_t i = 0; i < part->sample_count; i++) {
        struct trace_sample *sample = &samples[i];
        sample->node = merger->node_map.items[sample->node];
        sample->first_extra += (uint32_t)first_extra;
        if (sample->metrics != TRACE_NONE)
            sample->metrics += (uint32_t)first_metrics;
        if (sample->kind >= QUT_TRACE_OWN_KIND_FIRST &&
            sample->kind < QUT_TRACE_OWN_KIND_FIRST + QUT_TRACE_OWN_KIND_COUNT)
            sample->kind = merger->kind_map[sample->kind - QUT_TRACE_OWN_KIND_FIRST];
    }
    for (size_t i = 0; i < part->extra_count; i++) {
        if (extras[i].key == QUT_TRACE_EXTRA_BEGIN_NODE && extras[i].value < part->node_count)
            extras[i].value = merger->node_map.items[extras[i].value];
        if (extras[i].key == QUT_TRACE_EXTRA_FLOW) // numbers of one process mean nothing in another one
            extras[i].value ^= merger->flow_salt;
    }
    return true;
}

static bool add_marks(struct merger *merger, const struct trace *part)
{
    struct trace_mark *marks = add_items(&merger->marks, part->marks, part->mark_count);
    for (size_t i = 0; marks && i < part->mark_count; i++) {
        marks[i].name = trace_merge_text(merger, marks[i].name);
        if (part->marks[i].name && !marks[i].name)
            return false;
    }
    return marks && add_items(&merger->gaps, part->gaps, part->gap_count);
}

static bool add_threads(struct merger *merger, const struct trace *part, size_t first_sample, size_t first_mark,
                        size_t first_gap)
{
    uint32_t uid = merger->uid;
    struct trace_thread *threads = add_items(&merger->threads, part->threads, part->thread_count);
    for (size_t i = 0; threads && i < part->thread_count; i++) {
        struct trace_thread *thread = &threads[i];
        thread->process += (uint32_t)merger->processes.count;
        thread->uid += uid;
        if (thread->uid > merger->uid)
            merger->uid = thread->uid;
        thread->first_sample += first_sample;
        thread->first_mark += first_mark;
        thread->first_gap += first_gap;
    }
    return threads;
}

static bool add_notes(struct merger *merger, struct trace_vector *to, const struct trace_note *notes, size_t count)
{
    struct trace_note *added = add_items(to, notes, count);
    for (size_t i = 0; added && i < count; i++) {
        added[i].name = trace_merge_text(merger, notes[i].name);
        added[i].text = trace_merge_text(merger, notes[i].text);
        if (!added[i].name || (notes[i].text && !added[i].text))
            return false;
    }
    return added;
}

static bool add_processes(struct merger *merger, const struct trace *part, size_t first_thread, size_t first_note)
{
    struct trace_process *processes = add_items(&merger->processes, part->processes, part->process_count);
    for (size_t i = 0; processes && i < part->process_count; i++) {
        processes[i].command = trace_merge_text(merger, processes[i].command);
        processes[i].first_thread += first_thread;
        processes[i].first_note += first_note;
        if (!processes[i].command)
            return false;
    }
    return processes;
}

static void add_sums(struct merger *merger, const struct trace *part)
{
    struct trace *trace = &merger->trace;
    uint64_t *counts = (uint64_t *)&trace->counts;
    const uint64_t *more = (const uint64_t *)&part->counts;
    for (size_t i = 0; i < sizeof trace->counts / sizeof *counts; i++)
        counts[i] += more[i];
    for (unsigned i = 0; i < QUT_TRACE_TOTAL_COUNT; i++)
        trace->totals[i] += part->totals[i];
    trace->stored += part->stored;
    trace->merged += part->merged;
    trace->under_way += part->under_way;
    trace->present_samples += part->present_samples;
    trace->overwritten_samples += part->overwritten_samples;
    trace->damaged_samples += part->damaged_samples;
    trace->damaged_chunks += part->damaged_chunks;
    trace->damaged_blocks += part->damaged_blocks;
    trace->chunk_bytes += part->chunk_bytes;
    trace->chunk_count += part->chunk_count;
    trace->metric_mask |= part->metric_mask;
    trace->has_cpu_time = trace->has_cpu_time || part->has_cpu_time;
    trace->is_complete = trace->is_complete && part->is_complete;
    if (part->end_ns > trace->end_ns)
        trace->end_ns = part->end_ns;
    if (part->start_ns >= trace->start_ns)
        return;
    trace->start_ns = part->start_ns;
    trace->realtime_ns = part->realtime_ns;
    trace->boottime_ns = part->boottime_ns;
}

int trace_merge_add(struct merger *merger, const struct trace *part, struct base_error *error)
{
    if (!merger->nodes.count) { // the root is always the first
        struct trace_node *root = trace_vector_add(&merger->nodes);
        if (!root)
            return no_memory(error);
        *root = part->nodes[0];
    }
    uint64_t salt;
    memcpy(&salt, part->identity, sizeof salt);
    salt = (salt ^ merger->processes.count) * 0x9e3779b97f4a7c15u;
    merger->flow_salt = merger->processes.count ? salt ^ salt >> 29 : 0;
    size_t first_thread = merger->threads.count, first_sample = merger->samples.count, first_mark = merger->marks.count;
    size_t first_gap = merger->gaps.count, first_note = merger->notes.count;
    const size_t own_note_count = part->note_count - part->first_own_note;
    if (!trace_merge_modules(merger, part) || !trace_merge_nodes(merger, part) || !add_kinds(merger, part) ||
        !add_samples(merger, part) || !add_marks(merger, part) ||
        !add_threads(merger, part, first_sample, first_mark, first_gap) ||
        !add_notes(merger, &merger->notes, part->notes, part->first_own_note) ||
        (own_note_count &&
         !add_notes(merger, &merger->own_notes, part->notes + part->first_own_note, own_note_count)) ||
        !add_processes(merger, part, first_thread, first_note))
        return no_memory(error);
    if (part->unticked_node)
        merger->trace.unticked_node = merger->node_map.items[part->unticked_node];
    add_sums(merger, part);
    add_damages(merger, part);
    return 0;
}

// ---- the end

struct place {
    uint64_t start_ns;
    size_t index;
};

static int compare_places(const void *a, const void *b)
{
    const struct place *left = a, *right = b;
    if (left->start_ns != right->start_ns)
        return left->start_ns < right->start_ns ? -1 : 1;
    return left->index < right->index ? -1 : left->index > right->index;
}

// Processes in the order in which they began, each with its threads.
static bool order_processes(struct merger *merger, struct trace *trace)
{
    size_t count = merger->processes.count, next = 0;
    const struct trace_process *from = merger->processes.items;
    const struct trace_thread *threads = merger->threads.items;
    struct place *places = trace_memory_take(merger->memory, count, sizeof *places);
    trace->processes = trace_memory_take(merger->memory, count, sizeof *trace->processes);
    trace->threads = trace_memory_take(merger->memory, merger->threads.count, sizeof *trace->threads);
    merger->thread_map = trace_memory_take(merger->memory, merger->threads.count, sizeof *merger->thread_map);
    if (!places || !trace->processes || !trace->threads || !merger->thread_map)
        return false;
    for (size_t i = 0; i < count; i++)
        places[i] = (struct place){from[i].start_ns, i};
    qsort(places, count, sizeof *places, compare_places);
    for (size_t i = 0; i < count; i++) {
        struct trace_process *process = &trace->processes[i];
        *process = from[places[i].index];
        for (size_t t = 0; t < process->thread_count; t++) {
            trace->threads[next + t] = threads[process->first_thread + t];
            merger->thread_map[process->first_thread + t] = (uint32_t)(next + t);
            trace->threads[next + t].process = (uint32_t)i;
        }
        process->first_thread = next;
        next += process->thread_count;
    }
    trace->process_count = count;
    trace->thread_count = next;
    return true;
}

int trace_merge_end(struct merger *merger, struct trace *trace, struct base_error *error)
{
    if (merger->died_count) {
        char text[128];
        snprintf(text, sizeof text,
                 "%" PRIu64 " processes ended without closing their trace; all that they had stored "
                 "is here",
                 merger->died_count);
        add_damage(merger, text);
    }
    *trace = merger->trace;
    trace->first_own_note = merger->notes.count;
    if (!add_items(&merger->notes, merger->own_notes.items, merger->own_notes.count) || !order_processes(merger, trace))
        return no_memory(error);
    const struct trace_process *first = &trace->processes[0];
    trace->pid = first->pid;
    trace->command = first->command;
    memcpy(trace->identity, first->identity, sizeof trace->identity);
    trace->arch = first->arch;
    trace->word_bytes = first->word_bytes;
    trace->mode = first->mode;
    trace->modules = merger->modules.items;
    trace->module_count = merger->modules.count;
    trace->nodes = merger->nodes.items;
    trace->node_count = merger->nodes.count;
    trace->samples = merger->samples.items;
    trace->sample_count = merger->samples.count;
    trace->extras = merger->extras.items;
    trace->extra_count = merger->extras.count;
    trace->metrics = merger->metrics.items;
    trace->metrics_count = merger->metrics.count;
    trace->marks = merger->marks.items;
    trace->mark_count = merger->marks.count;
    trace->gaps = merger->gaps.items;
    trace->gap_count = merger->gaps.count;
    trace->notes = merger->notes.items;
    trace->note_count = merger->notes.count;
    trace->damages = merger->damages.items;
    trace->damage_count = merger->damages.count;
    trace->memory = merger->memory;
    return 0;
}

void trace_merge_free(struct merger *merger)
{
    struct call_events *const *calls = merger->calls.items;
    for (size_t i = 0; i < merger->calls.count; i++) // that came to no end
        call_events_free(calls[i]);
    base_hash_free(&merger->module_index);
    base_hash_free(&merger->trace_node_index);
    base_hash_free(&merger->text_index);
    base_vector_free(&merger->module_map.vector);
    base_vector_free(&merger->node_map.vector);
}
