// SPDX-License-Identifier: Apache-2.0
#include "tracer/traced/events.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock_inline.h"
#include "tracer/traced/clock.h"
#include "tracer/traced/filter.h"
#include "tracer/traced/passed.h"

enum { BATCH = 4096, LOOKS_BATCHES_MAX = 64 };
static const uint64_t hole_patience_ns = 1000000000;

struct traced_ring {
    uint32_t thread;                  // in the file
    bool is_known;                    // it has a thread
    uint64_t tail;                    // events that were read; what the process has as tail_events
    uint64_t lost_enters, lost_exits; // that were told
    // A place that is not written while those behind it are.
    bool has_hole;
    uint64_t hole_at; // of all events
    unsigned hole_looks;
    uint64_t hole_since_ns;
    struct traced_passed passed; // places that their writers may still write
    struct traced_filter filter;
    struct traced_scope scope;
};

struct look { // at one ring
    struct traced_process *process;
    struct traced_ring *ring;
    struct qut_calls_ring *shared;
    struct qut_calls_event *places;
    uint64_t mask;
    uint64_t now_ns;
    bool is_last; // nobody writes any more
};

int traced_rings_begin(struct traced_process *process, struct base_error *error)
{
    process->rings = calloc(process->header.ring_count, sizeof *process->rings);
    process->batch = malloc(BATCH * sizeof *process->batch);
    return process->rings && process->batch ? 0 : base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "no memory for rings");
}

void traced_rings_end(struct traced_process *process)
{
    for (uint32_t i = 0; process->rings && i < process->header.ring_count; i++) {
        traced_filter_free(&process->rings[i].filter);
        traced_scope_free(&process->rings[i].scope);
    }
    free(process->rings);
    free(process->batch);
    process->rings = NULL;
    process->batch = NULL;
}

static struct qut_calls_ring *entry_of(const struct traced_process *process, uint32_t index)
{
    return (struct qut_calls_ring *)(void *)(process->memory + process->header.directory_offset_bytes) + index;
}

// ---- threads

// As the process has it: "" where the thread is gone already.
static void read_name(pid_t pid, uint32_t tid, char name[QUT_TRACE_NAME_BYTES])
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/task/%u/comm", (int)pid, tid);
    FILE *file = fopen(path, "re");
    size_t length = file ? fread(name, 1, QUT_TRACE_NAME_BYTES - 1, file) : 0;
    if (file)
        fclose(file);
    name[length] = 0;
    name[strcspn(name, "\n")] = 0;
}

static int know_thread(struct look *look, struct base_error *error)
{
    struct traced_process *process = look->process;
    const uint32_t tid = __atomic_load_n(&look->shared->tid, __ATOMIC_RELAXED);
    char name[QUT_TRACE_NAME_BYTES];
    if (look->ring->is_known)
        return 0;
    read_name(process->pid, tid, name);
    if (collect_calls_thread(process->writer, tid, name, look->now_ns, &look->ring->thread, error) != 0)
        return -1;
    look->ring->is_known = true;
    process->result.threads++;
    return traced_running_write(process, tid, look->ring->thread, &look->ring->scope, error);
}

int traced_running_rest(struct traced_process *process, struct base_error *error)
{
    uint32_t tid, thread;
    int status = 0;
    while (status == 0 && (tid = traced_running_next(process)) != 0) {
        struct traced_scope scope = {.callers = 0};
        char name[QUT_TRACE_NAME_BYTES];
        read_name(process->pid, tid, name);
        if (collect_calls_thread(process->writer, tid, name, base_clock_now_ns(), &thread, error) != 0 ||
            traced_running_write(process, tid, thread, &scope, error) != 0)
            status = -1;
        traced_scope_free(&scope);
        process->result.threads++;
    }
    return status;
}

// ---- one ring

static uint32_t full_behind(const struct look *look)
{
    uint32_t full = 0;
    for (uint64_t i = 1; i <= QUT_CALLS_SPARE_EVENTS && i <= look->mask; i++)
        full += __atomic_load_n(&look->places[(look->ring->tail + i) & look->mask].word, __ATOMIC_ACQUIRE) != 0;
    return full;
}

// Nothing is at the place where the next event will be. True: its writer was left by a jump, and never writes it.
static bool is_to_be_passed(struct look *look)
{
    struct traced_ring *ring = look->ring;
    const uint32_t full = full_behind(look);
    if (!full) {
        ring->has_hole = false;
        return false;
    }
    if (!ring->has_hole || ring->hole_at != ring->tail) {
        ring->has_hole = true;
        ring->hole_at = ring->tail;
        ring->hole_looks = 0;
        ring->hole_since_ns = look->now_ns;
    }
    ring->hole_looks++;
    const bool is_gone =
        look->is_last || __atomic_load_n(&look->shared->state, __ATOMIC_ACQUIRE) == QUT_CALLS_RING_ENDED;
    return is_gone || (ring->hole_looks >= 2 &&
                       (full >= QUT_CALLS_SPARE_EVENTS / 2 || look->now_ns - ring->hole_since_ns >= hole_patience_ns));
}

static void pass(struct look *look)
{
    struct traced_ring *ring = look->ring;
    traced_passed_add(&ring->passed, ring->tail);
    ring->has_hole = false;
    ring->tail++;
}

static bool take(struct look *look, struct qut_calls_event *event)
{
    const struct traced_ring *ring = look->ring;
    while (qut_calls_event_take(&look->places[ring->tail & look->mask], event))
        if (!traced_passed_is_late(&look->ring->passed, event, look->mask, ring->tail))
            return true;
    return false;
}

// What is recorded of a thinned function becomes that function's.
static void note_event(struct traced_process *process, struct qut_calls_event *event)
{
    const uint32_t id = qut_calls_word_id(event->word);
    if (id >= process->functions.count)
        return;
    const uint32_t same_as = process->functions.items[id].same_as;
    struct traced_function *function = &process->functions.items[same_as ? same_as : id];
    if (same_as)
        event->word = (event->word & ~(uint64_t)QUT_CALLS_ID_MAX) | same_as;
    if (qut_calls_word_is_exit(event->word))
        return;
    function->thinned_enters += same_as != 0;
    function->entered_now++;
}

static size_t take_batch(struct look *look, struct qut_calls_event batch[BATCH])
{
    struct traced_process *process = look->process;
    struct traced_ring *ring = look->ring;
    size_t count = 0;
    traced_passed_look(&ring->passed, look->places, look->mask, ring->tail, false); // they are full, and behind no hole
    while (count < BATCH) {
        struct qut_calls_event event;
        if (!take(look, &event)) {
            if (!is_to_be_passed(look))
                break;
            // Its writer may have come to it, and on, after we looked.
            if (!take(look, &event)) {
                pass(look);
                continue;
            }
        }
        ring->tail++;
        note_event(process, &event);
        batch[count++] = event;
    }
    traced_passed_look(&ring->passed, look->places, look->mask, ring->tail, false);
    __atomic_store_n(&look->shared->tail_events, ring->tail, __ATOMIC_RELEASE);
    return count;
}

static uint64_t least_ticks(const void *context, uint32_t id)
{
    const struct traced_process *process = context;
    return id < process->functions.count ? process->functions.items[id].least_ticks : process->least_ticks;
}

static void note_shorter(void *context, uint32_t id)
{
    struct traced_process *process = context;
    process->result.short_calls++;
    if (id < process->functions.count)
        process->functions.items[id].short_calls++;
}

static int write_events(struct look *look, const struct qut_calls_event *events, size_t count, struct base_error *error)
{
    struct traced_process *process = look->process;
    for (size_t i = 0; i < count; i++)
        *(qut_calls_word_is_exit(events[i].word) ? &process->result.exits : &process->result.enters) += 1;
    return collect_calls_events(process->writer, look->ring->thread, events, count, error);
}

static bool is_caller(const void *context, uint32_t id)
{
    const struct traced_process *process = context;
    return id < process->functions.count && process->functions.items[id].is_caller;
}

static void note_outside(void *context, uint32_t id)
{
    struct traced_process *process = context;
    process->result.outside++;
    if (id < process->functions.count)
        process->functions.items[id].short_calls++;
}

ptrdiff_t traced_keep(struct traced_process *process, struct traced_scope *scope, struct qut_calls_event *events,
                      size_t count, struct base_error *error)
{
    const struct traced_scope_options options = {.has_callers = process->options->has_callers,
                                                 .is_caller = is_caller,
                                                 .left_out = note_outside,
                                                 .context = process,
                                                 .depth = process->options->depth};
    if (!options.has_callers && !options.depth)
        return (ptrdiff_t)count;
    const ptrdiff_t kept = traced_scope(scope, &options, events, count);
    if (kept < 0)
        base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "no memory for calls that are open");
    return kept;
}

static struct traced_filter_options filter_options(struct traced_process *process)
{
    return (struct traced_filter_options){.least_ticks = least_ticks, .shorter = note_shorter, .context = process};
}

static int write_batch(struct look *look, struct qut_calls_event *batch, size_t count, struct base_error *error)
{
    struct traced_process *process = look->process;
    const ptrdiff_t kept = traced_keep(process, &look->ring->scope, batch, count, error);
    if (kept < 0)
        return -1;
    count = (size_t)kept;
    if (!process->leasts)
        return write_events(look, batch, count, error);
    const struct traced_filter_options options = filter_options(process);
    struct traced_filter_out out = {.count = 0};
    int status = -1;
    if (traced_filter(&look->ring->filter, &options, batch, count, &out))
        status = write_events(look, out.items, out.count, error);
    else
        base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "no memory for calls that are open");
    base_vector_free(&out.vector);
    return status;
}

static int end_filter(struct look *look, struct base_error *error)
{
    struct traced_process *process = look->process;
    const struct traced_filter_options options = filter_options(process);
    struct traced_filter_out out = {.count = 0};
    int status = 0;
    if (traced_filter_end(&look->ring->filter, &options, traced_ticks(), &out))
        status = write_events(look, out.items, out.count, error);
    base_vector_free(&out.vector);
    traced_filter_free(&look->ring->filter);
    look->ring->filter = (struct traced_filter){.written = 0};
    return status;
}

static int write_losses(struct look *look, struct base_error *error)
{
    struct traced_ring *ring = look->ring;
    const uint64_t enters = __atomic_load_n(&look->shared->lost_enters, __ATOMIC_RELAXED);
    const uint64_t exits = __atomic_load_n(&look->shared->lost_exits, __ATOMIC_RELAXED);
    const uint64_t more_enters = enters - ring->lost_enters + ring->passed.enters,
                   more_exits = exits - ring->lost_exits + ring->passed.exits;
    if (more_enters == 0 && more_exits == 0)
        return 0;
    ring->passed.enters = ring->passed.exits = 0;
    ring->lost_enters = enters;
    ring->lost_exits = exits;
    look->process->result.lost_enters += more_enters;
    look->process->result.lost_exits += more_exits;
    return collect_calls_lost(look->process->writer, ring->thread, more_enters, more_exits, error);
}

// A thread that is gone leaves its ring to another one.
static int give_back(struct look *look, struct base_error *error)
{
    struct traced_ring *ring = look->ring;
    int status = look->process->leasts ? end_filter(look, error) : 0;
    if (status == 0)
        status = collect_calls_thread_is(look->process->writer, ring->thread, NULL, look->now_ns, error);
    __atomic_store_n(&look->shared->lost_enters, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&look->shared->lost_exits, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&look->shared->tail_events, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&look->shared->state, QUT_CALLS_RING_FREE, __ATOMIC_RELEASE);
    traced_scope_free(&ring->scope);
    *ring = (struct traced_ring){.thread = 0};
    return status;
}

// Returns how many events were there; -1: *error.
static int64_t drain_ring(struct look *look, struct base_error *error)
{
    struct qut_calls_event *batch = look->process->batch;
    const uint32_t state = __atomic_load_n(&look->shared->state, __ATOMIC_ACQUIRE);
    int64_t all = 0;
    if (state == QUT_CALLS_RING_FREE)
        return 0;
    if (know_thread(look, error) != 0)
        return -1;
    // One thread that is faster than we are does not keep the others waiting for ever.
    for (unsigned i = 0; i < LOOKS_BATCHES_MAX || look->is_last || state == QUT_CALLS_RING_ENDED; i++) {
        const size_t count = take_batch(look, batch);
        if (count && write_batch(look, batch, count, error) != 0)
            return -1;
        all += (int64_t)count;
        if (count < BATCH)
            break;
    }
    if (look->is_last || state == QUT_CALLS_RING_ENDED)
        traced_passed_look(&look->ring->passed, look->places, look->mask, look->ring->tail, true);
    if (write_losses(look, error) != 0)
        return -1;
    return state == QUT_CALLS_RING_ENDED && give_back(look, error) != 0 ? -1 : all;
}

static int drain(struct traced_process *process, bool is_last, struct base_error *error)
{
    const struct qut_calls_header *now = (const void *)process->memory;
    const uint64_t events_max = process->header.ring_bytes / sizeof(struct qut_calls_event);
    uint32_t used = __atomic_load_n(&now->rings_used, __ATOMIC_ACQUIRE);
    int64_t fullest = 0;
    if (used > process->header.ring_count)
        used = process->header.ring_count;
    for (uint32_t i = 0; i < used; i++) {
        struct look look = {
            .process = process,
            .ring = &process->rings[i],
            .shared = entry_of(process, i),
            .places = (void *)(process->memory + process->header.rings_offset_bytes + i * process->header.ring_bytes),
            .mask = events_max - 1,
            .now_ns = base_clock_now_ns(),
            .is_last = is_last};
        const int64_t count = drain_ring(&look, error);
        if (count < 0)
            return -1;
        if (is_last && look.ring->is_known && process->leasts && end_filter(&look, error) != 0)
            return -1;
        fullest = count > fullest ? count : fullest;
    }
    const uint64_t percent = (uint64_t)fullest * 100 / events_max;
    if (percent > process->result.rings_fullest_percent)
        process->result.rings_fullest_percent = percent > 100 ? 100 : percent;
    return (int)(percent > 100 ? 100 : percent);
}

int traced_drain(struct traced_process *process, struct base_error *error)
{
    return drain(process, false, error);
}

int traced_drain_last(struct traced_process *process, struct base_error *error)
{
    return drain(process, true, error) < 0 ? -1 : 0;
}

uint64_t traced_cell(const struct traced_process *process, uint32_t cell)
{
    const struct qut_calls_header *header = &process->header;
    uint64_t sum = 0;
    if (cell >= header->cell_count)
        return 0;
    for (uint32_t i = 0; i < header->ring_count; i++) {
        const uint64_t at = header->counts_offset_bytes + ((uint64_t)i * header->cell_count + cell) * 8;
        sum += __atomic_load_n((const uint64_t *)(const void *)(process->memory + at), __ATOMIC_RELAXED);
    }
    return sum;
}
