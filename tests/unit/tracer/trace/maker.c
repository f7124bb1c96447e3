// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/tracer/trace/maker.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SHIFT = QUT_TRACE_TIME_SHIFT };

// Not Check's: a program that is no test makes segments, too.
static void require(bool holds)
{
    if (!holds)
        abort();
}

uint64_t maker_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static uint64_t below(struct maker *maker, uint64_t bound)
{
    return maker_random(&maker->random) % bound;
}

static void make_stacks(struct maker *maker)
{
    struct segment *segment = &maker->segment;
    const struct qut_trace_module module = {.code_bytes = 0x10000,
                                            .start = 0x7f0000401000,
                                            .start_vaddr = 0x1000,
                                            .load_ns = 1,
                                            .build_id_bytes = 4,
                                            .build_id = {1, 2, 3, 4}};
    int index = segment_module_add(segment, &module, "/usr/bin/made");
    require(index >= 0);
    uint64_t base = segment->modules[index].code_base;
    for (unsigned i = 0; i < MAKER_STACKS; i++) {
        uint32_t node = 0;
        maker->depths[i] = 1 + (unsigned)below(maker, MAKER_DEPTH_MAX);
        for (unsigned depth = 0; depth < maker->depths[i]; depth++) {
            // Few outer frames, many inner ones; every third one in no module.
            uint64_t offset = 16 * below(maker, 1 + depth * 4);
            if (depth % 3 == 2) {
                uint64_t address = 0x500000000000 + offset;
                maker->pcs[i][depth] = address;
                node = segment_node(segment, node, segment_raw(segment, address),
                                    QUT_TRACE_CLASS_RAW << QUT_TRACE_CLASS_SHIFT);
            } else {
                maker->pcs[i][depth] = 0x1000 + offset;
                node = segment_node(segment, node, base + offset, QUT_TRACE_CLASS_CODE << QUT_TRACE_CLASS_SHIFT);
            }
            require(node != 0);
        }
        maker->stacks[i] = node;
    }
}

void maker_begin(struct maker *maker, const struct maker_options *options)
{
    *maker = (struct maker){.random = options->seed * 2654435761u + 1, .now_ns = 5000000000};
    const struct segment_options made = {.segment_bytes = options->segment_bytes,
                                         .path = options->path,
                                         .mode = options->mode,
                                         .flags = QUT_TRACE_HAS_CPU_TIME,
                                         .metric_mask = 1,
                                         .thread_count = 8,
                                         .node_bits = 12,
                                         .merge_gap_ns = 20000000,
                                         .pid = options->pid ? options->pid : (uint32_t)getpid(),
                                         .arch = 1,
                                         .word_bytes = 8,
                                         .command = "made by a test"};
    require(segment_create(&maker->segment, &made) == 0);
    make_stacks(maker);
    for (unsigned i = 0; i < MAKER_THREADS; i++) {
        static const char *const names[MAKER_THREADS] = {"main", "worker", "painter"};
        maker->threads[i].slot = segment_thread_begin(&maker->segment, 100 + i, names[i], maker->now_ns + i);
        require(maker->threads[i].slot != NULL);
    }
    maker->mark_name = segment_string(&maker->segment, "request", 7);
}

static void *add(void *items, size_t *count, size_t *room, size_t item_bytes)
{
    if (*count == *room) {
        *room = *room ? *room * 2 : 64;
        items = realloc(items, *room * item_bytes);
        require(items != NULL);
    }
    ++*count;
    return items;
}

static void append(struct maker *maker, struct made_thread *thread, struct qut_trace_writer *writer, unsigned level,
                   bool no_extras)
{
    size_t *count = &thread->hit_count[level];
    const struct made_hit *last = *count ? &thread->hits[level][*count - 1] : NULL;
    struct made_hit hit = {.time_ns = maker->now_ns,
                           .cpu_ns = maker->now_ns / 2,
                           .stack = (uint32_t)below(maker, MAKER_STACKS),
                           .kind = (uint16_t)(1 + below(maker, 3)),
                           .faults = last ? last->faults : 0};
    if (last && below(maker, 2)) {
        hit.stack = last->stack;
        hit.kind = last->kind;
        hit.flags = last->flags;
    } else if (below(maker, 4) == 0) {
        hit.flags = QUT_TRACE_SAMPLE_ON_CPU;
    }
    if (!no_extras && below(maker, 10) == 0)
        hit.size_extra = 1 + below(maker, 100000);
    if (below(maker, 5) == 0)
        hit.faults += below(maker, 300);
    const struct segment_extra extras[] = {{.key = QUT_TRACE_EXTRA_SIZE, .value = hit.size_extra},
                                           {.key = QUT_TRACE_EXTRA_RESULT, .value = 0 - hit.size_extra}};
    const uint64_t metrics[QUT_TRACE_METRIC_COUNT] = {hit.faults};
    const struct segment_sample sample = {.time_ns = hit.time_ns,
                                          .cpu_ns = hit.cpu_ns,
                                          .node = maker->stacks[hit.stack],
                                          .kind = hit.kind,
                                          .flags = hit.flags,
                                          .metrics = metrics,
                                          .extras = extras,
                                          .extra_count = hit.size_extra ? 2 : 0};
    if (segment_append(&maker->segment, thread->slot, writer, &sample) < 0) {
        thread->lost++;
        return;
    }
    thread->hits[level] = add(thread->hits[level], count, &thread->hit_room[level], sizeof hit);
    thread->hits[level][*count - 1] = hit;
}

static void mark(struct maker *maker, struct made_thread *thread, struct qut_trace_writer *writer)
{
    struct made_mark made = {.time_ns = maker->now_ns, .id = below(maker, 1000), .kind = QUT_TRACE_MARK_BEGIN};
    if (segment_mark(&maker->segment, thread->slot, writer, made.time_ns, made.kind, made.id, maker->mark_name) < 0)
        return;
    thread->marks = add(thread->marks, &thread->mark_count, &thread->mark_room, sizeof made);
    thread->marks[thread->mark_count - 1] = made;
}

// One hit, at the outermost level or, now and then, inside of others.
static void step(struct maker *maker, const struct maker_options *options)
{
    struct made_thread *thread = &maker->threads[below(maker, MAKER_THREADS)];
    unsigned level = below(maker, 8) == 0 ? (unsigned)below(maker, QUT_TRACE_LEVELS) : 0;
    struct qut_trace_writer *writer = NULL;
    maker->now_ns += 1 + below(maker, 3000000);
    for (unsigned i = 0; i <= level; i++)
        writer = segment_begin(thread->slot, 0, 0, 0);
    require(writer != NULL);
    switch (options->no_extras ? 9 : below(maker, 12)) {
    case 0:
        segment_skip(writer);
        writer->counts.passed++;
        thread->throttled += 2;
        break;
    case 1: mark(maker, thread, writer); break;
    case 2: {
        uint64_t amount = below(maker, 5000);
        segment_add(writer, QUT_TRACE_TOTAL_ALLOCATED_BYTES, amount);
        thread->allocated += amount;
        break;
    }
    default: append(maker, thread, writer, level, options->no_extras);
    }
    for (unsigned i = 0; i <= level; i++)
        segment_end_of(thread->slot);
}

void maker_run(struct maker *maker, const struct maker_options *options, size_t steps)
{
    for (size_t i = 0; i < steps; i++)
        step(maker, options);
}

void maker_close(struct maker *maker)
{
    segment_close(&maker->segment);
}

void maker_free(struct maker *maker)
{
    for (unsigned i = 0; i < MAKER_THREADS; i++) {
        for (unsigned level = 0; level < QUT_TRACE_LEVELS; level++)
            free(maker->threads[i].hits[level]);
        free(maker->threads[i].marks);
    }
}

// ---- comparing

// Check writes a line to a file for each assertion that holds: too slow for millions.
static void same(uint64_t found, uint64_t wanted, const char *what)
{
    if (found != wanted)
        ck_abort_msg("%s: %ju, not %ju", what, (uintmax_t)found, (uintmax_t)wanted);
}

static uint64_t rounded(uint64_t time_ns)
{
    return time_ns >> SHIFT << SHIFT;
}

static void compare_stack(const struct maker *maker, const struct trace *trace, uint32_t stack, uint32_t node)
{
    for (unsigned depth = maker->depths[stack]; depth-- > 0;) {
        same(node != 0, true, "a node");
        const struct trace_node *at = &trace->nodes[node];
        same(at->pc, maker->pcs[stack][depth], "at->pc");
        same(at->depth, depth + 1, "at->depth");
        bool is_placed = at->module != TRACE_NONE && strcmp(trace->modules[at->module].path, "/usr/bin/made") == 0;
        same(is_placed, depth % 3 != 2, "in the module");
        same(at->parent < node, true, "parents first");
        node = at->parent;
    }
    same(node, 0, "node");
}

static void compare_run(const struct maker *maker, const struct trace *trace, const struct made_hit *hits,
                        const struct trace_sample *sample)
{
    const struct made_hit *last = &hits[sample->count - 1];
    same(sample->first_ns, rounded(hits->time_ns), "sample->first_ns");
    same(sample->last_ns, rounded(last->time_ns), "sample->last_ns");
    same(sample->cpu_ns, rounded(last->cpu_ns), "sample->cpu_ns");
    same(trace->metrics[sample->metrics][0], last->faults, "trace->metrics[sample->metrics][0]");
    compare_stack(maker, trace, hits->stack, sample->node);
    for (uint32_t i = 0; i < sample->count; i++) {
        same(maker->stacks[hits[i].stack], maker->stacks[hits->stack], "stacks[hits[i].stack]");
        same(hits[i].kind, sample->kind, "hits[i].kind");
        same(hits[i].flags, sample->flags, "hits[i].flags");
    }
    uint64_t size = 0, result = 0;
    same(trace_extra(trace, sample, QUT_TRACE_EXTRA_SIZE, &size), hits->size_extra != 0, "has the extra");
    same(size, hits->size_extra, "size");
    trace_extra(trace, sample, QUT_TRACE_EXTRA_RESULT, &result);
    same(result, 0 - hits->size_extra, "result");
}

// The samples of one level, from the last one back.
static uint64_t compare_level(const struct maker *maker, const struct trace *trace, const struct made_thread *made,
                              const struct trace_thread *thread, unsigned level)
{
    size_t left = made->hit_count[level];
    for (size_t i = thread->sample_count; i-- > 0;) {
        const struct trace_sample *sample = &trace->samples[thread->first_sample + i];
        if (i)
            same(sample->first_ns >= sample[-1].first_ns, true, "in order");
        if (sample->level != level)
            continue;
        same(left >= sample->count, true, "no more than was put in");
        left -= sample->count;
        compare_run(maker, trace, &made->hits[level][left], sample);
    }
    return left;
}

// Of a level whose chunks were overwritten later than another one's, some in between may be missing.
static void compare_marks(const struct trace *trace, const struct made_thread *made, const struct trace_thread *thread)
{
    size_t at = made->mark_count;
    for (size_t i = thread->mark_count; i-- > 0;) {
        const struct trace_mark *mark = &trace->marks[thread->first_mark + i];
        while (at > 0 && rounded(made->marks[at - 1].time_ns) > mark->time_ns)
            at--;
        same(at > 0 ? rounded(made->marks[at - 1].time_ns) : 0, mark->time_ns, "mark's time");
        same(mark->id, made->marks[at - 1].id, "mark's id");
        same(strcmp(mark->name, "request") == 0, true, "mark's name");
        at--;
    }
}

static const struct trace_thread *find_thread(const struct trace *trace, uint32_t tid)
{
    for (size_t i = 0; i < trace->thread_count; i++)
        if (trace->threads[i].tid == tid)
            return &trace->threads[i];
    ck_abort_msg("no thread %u", tid);
}

void maker_compare(const struct maker *maker, const struct trace *trace, bool all)
{
    uint64_t missing = 0, hits = 0, throttled = 0, allocated = 0;
    for (unsigned i = 0; i < MAKER_THREADS; i++) {
        const struct made_thread *made = &maker->threads[i];
        const struct trace_thread *thread = find_thread(trace, 100 + i);
        for (unsigned level = 0; level < QUT_TRACE_LEVELS; level++) {
            missing += compare_level(maker, trace, made, thread, level);
            hits += made->hit_count[level];
        }
        if (all)
            same(thread->mark_count, made->mark_count, "thread->mark_count");
        hits += made->throttled + made->lost;
        throttled += made->throttled;
        allocated += made->allocated;
        compare_marks(trace, made, thread);
    }
    same(trace->counts.hits, hits, "trace->counts.hits");
    same(trace->counts.throttled, throttled, "trace->counts.throttled");
    same(trace->totals[QUT_TRACE_TOTAL_ALLOCATED_BYTES], allocated, "trace->totals[QUT_TRACE_TOTAL_ALLOCATED_BYTES]");
    same(trace->overwritten_samples + trace->damaged_samples, missing,
         "trace->overwritten_samples + trace->damaged_samples");
    if (all)
        same(missing, 0, "missing");
    struct trace_balance balance = trace_balance(trace);
    same((uint64_t)balance.hits_missing, 0, "balance.hits_missing");
    same((uint64_t)balance.samples_missing, 0, "balance.samples_missing");
    ck_assert_str_eq(trace->command, "made by a test");
}
