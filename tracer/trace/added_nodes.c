// SPDX-License-Identifier: Apache-2.0
// What a whole trace gets beside what its samples say: nodes, and which of its threads made which calls.
#include <stdlib.h>
#include <string.h>

#include "tracer/trace/raw_trace.h"

static bool add_nodes(struct trace *trace, const struct trace_node *added, size_t count)
{
    struct trace_node *nodes = trace_memory_take(trace->memory, trace->node_count + count, sizeof *nodes);
    if (!nodes)
        return false;
    memcpy(nodes, trace->nodes, trace->node_count * sizeof *nodes);
    memcpy(nodes + trace->node_count, added, count * sizeof *nodes);
    trace->nodes = nodes;
    trace->node_count += count;
    return true;
}

// ---- threads that no tick met

// Ticks tell where processor time went. A thread that ends before its first one, or had none yet, has used time all the
// same, and its samples at sync points, its end among them, say nothing of where. That time has a frame of its own.
static bool has_tick(const struct trace *trace, size_t first, size_t count)
{
    for (size_t i = first; i < first + count; i++)
        if (trace_sample_is_tick(&trace->samples[i]))
            return true;
    return false;
}

static bool were_ticks_due(const struct trace *trace)
{
    for (size_t i = 0; i < trace->note_count; i++)
        if (trace->notes[i].text && strcmp(trace->notes[i].name, "trigger") == 0 &&
            strcmp(trace->notes[i].text, "none") != 0)
            return true;
    return has_tick(trace, 0, trace->sample_count);
}

bool trace_thread_is_unticked(const struct trace *trace, const struct trace_thread *thread)
{
    const struct trace_sample *samples = &trace->samples[thread->first_sample];
    size_t count = thread->sample_count;
    if (trace->recording_count && !trace->recordings[trace->processes[thread->process].recording].has_unticked)
        return false; // where no ticks were to be, another recording's do not matter
    return count && samples[count - 1].cpu_ns > samples[0].cpu_ns && !has_tick(trace, thread->first_sample, count);
}

bool trace_add_unticked(struct trace *trace)
{
    size_t at = 0;
    if (!trace->has_cpu_time || !were_ticks_due(trace))
        return true;
    while (at < trace->thread_count && !trace_thread_is_unticked(trace, &trace->threads[at]))
        at++;
    if (at == trace->thread_count || trace->node_count >= UINT32_MAX)
        return true;
    const struct trace_node node = {.kind = QUT_TRACE_CLASS_LABEL << QUT_TRACE_CLASS_SHIFT,
                                    .class_ = QUT_TRACE_CLASS_LABEL,
                                    .depth = 1,
                                    .module = TRACE_NONE,
                                    .label = "[met by no tick]"};
    trace->unticked_node = (uint32_t)trace->node_count;
    return add_nodes(trace, &node, 1);
}

// ---- exact calls

// Processes that trace the same functions share their nodes: a test suite starts thousands of one program.
struct call_nodes {
    struct trace_vector modules, nodes; // struct trace_module, struct trace_node: the trace's, and what is added
    struct base_hash_index by_place;    // added nodes by module and address
};

static uint32_t find_module(const struct call_nodes *all, const struct call_events_module *module)
{
    const struct trace_module *modules = all->modules.items;
    for (size_t i = 0; i < all->modules.count; i++) {
        const struct trace_module *other = &modules[i];
        if (!(other->flags & (QUT_TRACE_MODULE_JIT | QUT_TRACE_MODULE_FILE)) &&
            other->build_id_bytes == module->build_id_bytes &&
            memcmp(other->build_id, module->build_id, module->build_id_bytes) == 0 &&
            strcmp(other->path, module->path) == 0)
            return (uint32_t)i;
    }
    return TRACE_NONE;
}

// TRACE_NONE: no memory.
static uint32_t need_module(struct call_nodes *all, const struct call_events_module *told)
{
    const uint32_t found = find_module(all, told);
    struct trace_module *module = found == TRACE_NONE ? trace_vector_add(&all->modules) : NULL;
    if (!module)
        return found;
    *module = (struct trace_module){
        .start = told->bias, .unload_ns = UINT64_MAX, .path = told->path, .build_id_bytes = told->build_id_bytes};
    memcpy(module->build_id, told->build_id, told->build_id_bytes);
    return (uint32_t)(all->modules.count - 1);
}

static bool is_node(const struct trace_node *node, const struct trace_node *other)
{
    return node->module == other->module && node->pc == other->pc &&
           (node->label == other->label || (node->label && other->label && strcmp(node->label, other->label) == 0));
}

// TRACE_NONE: no memory.
static uint32_t need_node(struct call_nodes *all, const struct trace_node *wanted)
{
    const uint64_t place = base_hash_word(base_hash_word(0, wanted->module), wanted->pc);
    const uint64_t word = wanted->label ? base_hash_bytes(place, wanted->label, strlen(wanted->label)) : place;
    const struct trace_node *nodes = all->nodes.items;
    uint32_t found;
    for (uint32_t step = 0; (found = base_hash_next(&all->by_place, word, &step)) != BASE_HASH_NONE;)
        if (is_node(&nodes[found], wanted))
            return found;
    const size_t index = all->nodes.count;
    struct trace_node *node = index < TRACE_NONE ? trace_vector_add(&all->nodes) : NULL;
    if (!node || !base_hash_add(&all->by_place, word, (uint32_t)index))
        return TRACE_NONE;
    *node = *wanted;
    return (uint32_t)index;
}

static bool add_functions(struct call_nodes *all, struct call_events *calls)
{
    struct trace_memory *memory = all->nodes.memory;
    uint32_t *map = trace_memory_take(memory, calls->modules.count, sizeof *map);
    if (!map)
        return false;
    for (size_t i = 0; i < calls->modules.count; i++)
        if ((map[i] = need_module(all, &calls->modules.items[i])) == TRACE_NONE)
            return false;
    for (size_t i = 0; i < calls->functions.count; i++) {
        struct call_events_function *function = &calls->functions.items[i];
        const bool is_placed = function->module != CALL_EVENTS_NONE;
        const unsigned class_ = is_placed ? QUT_TRACE_CLASS_CODE : QUT_TRACE_CLASS_LABEL;
        const struct trace_node node = {
            .kind = (uint8_t)(class_ << QUT_TRACE_CLASS_SHIFT | (is_placed ? QUT_TRACE_NODE_EXACT : 0)),
            .class_ = (uint8_t)class_,
            .depth = 1,
            .module = is_placed ? map[function->module] : TRACE_NONE,
            .pc = is_placed ? function->vaddr : 0,
            .label = is_placed ? NULL : function->name};
        if ((function->node = need_node(all, &node)) == TRACE_NONE)
            return false;
    }
    return true;
}

// A copy of an array of the trace's that can grow.
static bool copy_items(struct trace_vector *vector, const void *items, size_t count)
{
    if (!trace_vector_reserve(vector, count + 1))
        return false;
    if (count)
        memcpy(vector->items, items, count * vector->item_bytes);
    vector->count = count;
    return true;
}

bool trace_add_call_nodes(struct trace *trace)
{
    struct call_nodes all = {.modules = trace_vector(trace->memory, sizeof *trace->modules),
                             .nodes = trace_vector(trace->memory, sizeof *trace->nodes)};
    bool has_memory = copy_items(&all.modules, trace->modules, trace->module_count) &&
                      copy_items(&all.nodes, trace->nodes, trace->node_count);
    for (size_t i = 0; i < trace->calls_count && has_memory; i++)
        has_memory = add_functions(&all, trace->calls[i]);
    base_hash_free(&all.by_place);
    if (!has_memory)
        return false;
    trace->modules = all.modules.items;
    trace->module_count = all.modules.count;
    trace->nodes = all.nodes.items;
    trace->node_count = all.nodes.count;
    return true;
}

static void take_threads(struct trace *trace, const struct call_events *calls)
{
    struct trace_process *process = &trace->processes[trace->process_count];
    *process = (struct trace_process){.pid = calls->told.pid,
                                      .command = calls->command,
                                      .arch = (uint8_t)calls->told.arch,
                                      .word_bytes = 8,
                                      .is_complete = true,
                                      .start_ns = calls->told.begin_ns,
                                      .end_ns = calls->told.end_ns,
                                      .first_thread = trace->thread_count,
                                      .thread_count = calls->threads.count};
    for (size_t i = 0; i < calls->threads.count; i++) {
        const struct call_events_thread *told = &calls->threads.items[i];
        struct trace_thread *thread = &trace->threads[trace->thread_count++];
        *thread = (struct trace_thread){.uid = (uint32_t)trace->thread_count,
                                        .tid = told->tid,
                                        .process = (uint32_t)trace->process_count,
                                        .start_ns = told->start_ns,
                                        .end_ns = told->end_ns};
        memcpy(thread->name, told->name, sizeof thread->name);
    }
    trace->process_count++;
    if (calls->told.begin_ns < trace->start_ns)
        trace->start_ns = calls->told.begin_ns;
    if (calls->told.end_ns > trace->end_ns)
        trace->end_ns = calls->told.end_ns;
}

bool trace_of_calls(struct trace *trace, struct call_events *const *calls, size_t count)
{
    size_t thread_count = 0;
    for (size_t i = 0; i < count; i++)
        thread_count += calls[i]->threads.count;
    *trace = (struct trace){.memory = trace_memory_new(),
                            .word_bytes = 8,
                            .is_complete = true,
                            .arch = (uint8_t)calls[0]->told.arch,
                            .pid = calls[0]->told.pid,
                            .command = calls[0]->command,
                            .start_ns = UINT64_MAX};
    if (!trace->memory)
        return false;
    trace->nodes = trace_memory_take(trace->memory, 1, sizeof *trace->nodes);
    trace->processes = trace_memory_take(trace->memory, count, sizeof *trace->processes);
    trace->threads = trace_memory_take(trace->memory, thread_count, sizeof *trace->threads);
    if (!trace->nodes || !trace->processes || !trace->threads) {
        trace_free(trace);
        return false;
    }
    trace->nodes[0] = (struct trace_node){.module = TRACE_NONE};
    trace->node_count = 1;
    for (size_t i = 0; i < count; i++)
        take_threads(trace, calls[i]);
    return true;
}

// ---- whose calls they are

// Lives of threads: by number and process, then by when they began. Numbers are given again.
struct life {
    uint32_t tid, pid;
    uint64_t start_ns;
    uint64_t ended_ns; // the latest end of those before it with its number in its process, and of its own
    uint32_t thread;   // index in threads
};

static int by_start(const void *left, const void *right)
{
    const struct life *a = left, *b = right;
    if (a->tid != b->tid)
        return a->tid < b->tid ? -1 : 1;
    if (a->pid != b->pid)
        return a->pid < b->pid ? -1 : 1;
    if (a->start_ns != b->start_ns)
        return a->start_ns < b->start_ns ? -1 : 1;
    return a->thread < b->thread ? -1 : 1;
}

static bool is_same_number(const struct life *life, uint32_t tid, uint32_t pid)
{
    return life->tid == tid && life->pid == pid;
}

// NULL: no memory.
static struct life *list_lives(const struct trace *trace)
{
    struct life *lives = malloc((trace->thread_count + 1) * sizeof *lives);
    if (!lives)
        return NULL;
    for (size_t i = 0; i < trace->thread_count; i++) {
        const struct trace_thread *thread = &trace->threads[i];
        lives[i] =
            (struct life){thread->tid, trace_pid_of(trace, thread), thread->start_ns, thread->end_ns, (uint32_t)i};
    }
    qsort(lives, trace->thread_count, sizeof *lives, by_start);
    for (size_t i = 1; i < trace->thread_count; i++)
        if (is_same_number(&lives[i - 1], lives[i].tid, lives[i].pid) && lives[i].ended_ns < lives[i - 1].ended_ns)
            lives[i].ended_ns = lives[i - 1].ended_ns;
    return lives;
}

// Of threads with its number in its process, the first that lived with it. A file can have a hundred thousand of one
// number, and as many that look for theirs.
static uint32_t find_thread(const struct life *lives, size_t count, uint32_t pid, const struct call_events_thread *told)
{
    size_t first = 0;
    for (size_t left = count; left > 0;) {
        const struct life *middle = &lives[first + left / 2];
        const bool is_before = middle->tid != told->tid ? middle->tid < told->tid
                               : middle->pid != pid     ? middle->pid < pid
                                                        : middle->ended_ns < told->start_ns;
        first += is_before ? left / 2 + 1 : 0;
        left = is_before ? left - left / 2 - 1 : left / 2;
    }
    const bool lived =
        first < count && is_same_number(&lives[first], told->tid, pid) && lives[first].start_ns <= told->end_ns;
    return lived ? lives[first].thread : TRACE_NONE;
}

bool trace_find_call_threads(const struct trace *trace)
{
    struct life *lives = list_lives(trace);
    if (!lives)
        return false;
    for (size_t i = 0; i < trace->calls_count; i++) {
        struct call_events *calls = trace->calls[i];
        for (size_t j = 0; j < calls->threads.count; j++)
            calls->threads.items[j].thread =
                find_thread(lives, trace->thread_count, calls->told.pid, &calls->threads.items[j]);
    }
    free(lives);
    return true;
}
