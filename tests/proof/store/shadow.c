// SPDX-License-Identifier: Apache-2.0
#include "tests/proof/store/shadow.h"

#include <string.h>
#include <sys/mman.h>

struct shadow *shadow_create(void)
{
    void *memory = mmap(NULL, sizeof(struct shadow), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

void shadow_destroy(struct shadow *shadow)
{
    munmap(shadow, sizeof *shadow);
}

static bool find_pair(const uint32_t *nodes, uint32_t first, uint32_t count, uint32_t *a, uint32_t *b)
{
    for (*a = first; *a < count; ++*a)
        for (*b = *a + 1; *b < count; ++*b)
            if (qut_trace_recent_index(nodes[*a]) == qut_trace_recent_index(nodes[*b]))
                return true;
    return false;
}

static void swap(uint32_t *a, uint32_t *b)
{
    uint32_t was = *a;
    *a = *b;
    *b = was;
}

// Nodes with the same index in the table of recent ones, side by side: each takes the place of the other.
static bool pair_up(uint32_t *nodes, uint32_t count, uint32_t pairs)
{
    for (uint32_t first = 0; first < 2 * pairs; first += 2) {
        uint32_t a, b;
        if (!find_pair(nodes, first, count, &a, &b))
            return false;
        swap(&nodes[first], &nodes[a]);
        swap(&nodes[first + 1], &nodes[b]);
    }
    return true;
}

bool shadow_begin(struct shadow *shadow, struct segment *segment, const struct shadow_plan *plan)
{
    memset(shadow, 0, sizeof *shadow);
    shadow->plan = *plan;
    shadow->start_units = (segment->header->start_ns >> QUT_TRACE_TIME_SHIFT) + 1;
    enum { MADE = 3 * SHADOW_NODES, PAIRS = 10 }; // from so many, so many pairs
    uint32_t nodes[MADE], parent = 0;
    for (uint32_t i = 0; i < MADE; i++) {
        nodes[i] = segment_node(segment, parent, 4096 + i * 16, QUT_TRACE_NODE_EXACT);
        if (nodes[i] == 0)
            return false;
        if (i % 7 != 0) // a tree, not one chain
            parent = nodes[i];
    }
    if (!pair_up(nodes, MADE, PAIRS))
        return false;
    memcpy(shadow->nodes, nodes, sizeof shadow->nodes);
    return true;
}

// ---- append number `n` of a writer

static bool is_mark(const struct shadow_plan *plan, uint64_t n)
{
    return plan->mark_every != 0 && n % plan->mark_every == plan->mark_every - 1;
}

static uint32_t node_of(const struct shadow *shadow, uint64_t n)
{
    return shadow->nodes[n / shadow->plan.run_length % SHADOW_NODES];
}

static uint16_t kind_of(uint64_t n)
{
    return (uint16_t)(1 + n / 40 % 3);
}

static uint16_t flags_of(uint64_t n)
{
    return n / 80 % 2 ? QUT_TRACE_SAMPLE_ON_CPU : 0;
}

static uint64_t cpu_units_of(uint64_t n)
{
    return n * 13 + n / 5 * 100;
}

static uint64_t metric_of(uint64_t n, unsigned metric)
{
    return metric == 0 ? n / 3 : metric == 5 ? n * 1000 : 0;
}

static uint64_t extra_of(uint64_t n)
{
    return n * 0x9e3779b97f4a7c15u;
}

// Two, or every other time one that a record may say by its bit.
static uint32_t extras_of(const struct shadow_plan *plan, uint64_t n, struct segment_extra extras[2])
{
    if (plan->extra_every == 0 || n % plan->extra_every != 0)
        return 0;
    if (n / plan->extra_every % 2) {
        extras[0] = (struct segment_extra){QUT_TRACE_EXTRA_CPU_NS, 0, extra_of(n) >> 40 << QUT_TRACE_TIME_SHIFT};
        return 1;
    }
    extras[0] = (struct segment_extra){QUT_TRACE_EXTRA_OWN_FIRST, 0, n};
    extras[1] = (struct segment_extra){127, 0, extra_of(n)};
    return 2;
}

static void add_doubt(struct shadow_writer *writer, uint64_t n)
{
    if (writer->doubt_count == SHADOW_DOUBTS)
        return;
    writer->doubts[writer->doubt_count] = n;
    writer->doubt_count = writer->doubt_count + 1;
}

// The last one, if it was not finished: it may be there or not.
static void doubt(struct shadow_writer *writer)
{
    if (writer->done == writer->begun)
        return;
    add_doubt(writer, writer->begun - 1);
    writer->done = writer->begun;
}

int shadow_append(struct shadow *shadow, struct shadow_thread *of, struct segment *segment,
                  struct qut_trace_thread *thread, uintptr_t stack_low, uintptr_t stack_high)
{
    struct qut_trace_writer *writer =
        segment_begin(thread, (uintptr_t)__builtin_frame_address(0), stack_low, stack_high);
    if (!writer) {
        __atomic_fetch_add(&of->hits, 1, __ATOMIC_RELAXED);
        __atomic_fetch_add(&of->refused, 1, __ATOMIC_RELAXED);
        return -1;
    }
    struct shadow_writer *mine = &of->writers[writer - thread->writers];
    doubt(mine); // one that was jumped out of
    uint64_t n = mine->begun;
    mine->begun = n + 1;
    uint64_t time_ns = (shadow->start_units + n * SHADOW_STEP_UNITS) << QUT_TRACE_TIME_SHIFT;
    int result;
    if (is_mark(&shadow->plan, n)) {
        result = segment_mark(segment, thread, writer, time_ns, QUT_TRACE_MARK_INSTANT, extra_of(n), 0);
    } else {
        uint64_t metrics[QUT_TRACE_METRIC_COUNT];
        for (unsigned i = 0; i < QUT_TRACE_METRIC_COUNT; i++)
            metrics[i] = metric_of(n, i);
        struct segment_extra extras[2];
        struct segment_sample sample = {
            .time_ns = time_ns,
            .cpu_ns = cpu_units_of(n) << QUT_TRACE_TIME_SHIFT,
            .node = node_of(shadow, n),
            .kind = kind_of(n),
            .flags = flags_of(n),
            .metrics = shadow->plan.has_metrics ? metrics : NULL,
            .extras = extras,
            .extra_count = extras_of(&shadow->plan, n, extras),
        };
        __atomic_fetch_add(&of->hits, 1, __ATOMIC_RELAXED);
        result = segment_append(segment, thread, writer, &sample);
    }
    if (result < 0) {
        mine->lost = mine->lost + 1;
        add_doubt(mine, n);
    }
    __atomic_store_n(&mine->done, n + 1, __ATOMIC_RELEASE);
    segment_end_of(thread);
    return result;
}

void shadow_doubt(struct shadow_thread *of)
{
    for (int level = 0; level < QUT_TRACE_LEVELS; level++)
        doubt(&of->writers[level]);
}

// ---- checking

struct piece { // the records of one chunk, or an open record
    uint64_t chunk_seq, first, last;
    uint8_t thread, level;
};

enum { PIECES_MAX = 4096 };

struct check {
    struct shadow *shadow;
    struct decoder *decoder;
    struct piece pieces[PIECES_MAX];
    uint32_t count;
};

static bool is_doubtful(const struct shadow_writer *writer, uint64_t n)
{
    uint32_t low = 0, high = writer->doubt_count;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (writer->doubts[middle] < n)
            low = middle + 1;
        else
            high = middle;
    }
    return low < writer->doubt_count && writer->doubts[low] == n;
}

static bool fits(const struct shadow *shadow, const struct decoded_record *record, uint64_t n)
{
    return !is_mark(&shadow->plan, n) && node_of(shadow, n) == record->node && kind_of(n) == record->kind &&
           flags_of(n) == record->flags;
}

static void check_sample(struct check *check, const struct shadow_writer *writer, const struct decoded_record *record,
                         uint64_t first, uint64_t last)
{
    const struct shadow *shadow = check->shadow;
    uint64_t present = 0, doubtful = 0;
    for (uint64_t n = first; n <= last; n++) {
        // What does not fit and is in doubt was not stored: equal samples on both sides are neighbours. Seen where
        // every one of twice as many as there are nodes was jumped out of.
        if (is_doubtful(writer, n)) {
            doubtful += fits(shadow, record, n);
            continue;
        }
        present++;
        if (!fits(shadow, record, n))
            decoder_fault(check->decoder, "level %u: append %llu: node %u, kind %u, flags %u", record->level,
                          (unsigned long long)n, record->node, record->kind, record->flags);
    }
    // Its own first and last sample are in it.
    if (!fits(shadow, record, first) || !fits(shadow, record, last))
        decoder_fault(check->decoder, "level %u: %llu to %llu: node %u", record->level, (unsigned long long)first,
                      (unsigned long long)last, record->node);
    if (record->count < present || record->count > present + doubtful)
        decoder_fault(check->decoder, "level %u: %u samples from %llu to %llu", record->level, record->count,
                      (unsigned long long)first, (unsigned long long)last);
    if ((check->decoder->header.flags & QUT_TRACE_HAS_CPU_TIME) && record->cpu_time != cpu_units_of(last))
        decoder_fault(check->decoder, "level %u: append %llu: cpu time %llu", record->level, (unsigned long long)last,
                      (unsigned long long)record->cpu_time);
    for (unsigned i = 0; shadow->plan.has_metrics && i < QUT_TRACE_METRIC_COUNT; i++)
        if ((check->decoder->header.metric_mask >> i & 1) && record->metrics[i] != metric_of(last, i))
            decoder_fault(check->decoder, "level %u: append %llu: metric %u is %llu", record->level,
                          (unsigned long long)last, i, (unsigned long long)record->metrics[i]);
    struct segment_extra extras[2];
    const uint32_t extra_count = extras_of(&shadow->plan, first, extras);
    bool are_same = record->extra_count == extra_count;
    for (uint32_t i = 0; are_same && i < extra_count; i++)
        are_same = record->extras[i].key == extras[i].key && record->extras[i].value == extras[i].value;
    if (!are_same)
        decoder_fault(check->decoder, "level %u: append %llu: extras", record->level, (unsigned long long)first);
}

static void check_record(void *context, const struct decoded_record *record)
{
    struct check *check = context;
    const struct shadow *shadow = check->shadow;
    uint32_t t = 0;
    while (t < SHADOW_THREADS && shadow->threads[t].uid != record->thread_uid)
        t++;
    uint64_t first = (record->first_time - shadow->start_units) / SHADOW_STEP_UNITS;
    uint64_t last = (record->last_time - shadow->start_units) / SHADOW_STEP_UNITS;
    if (t == SHADOW_THREADS || record->level >= QUT_TRACE_LEVELS || record->first_time < shadow->start_units ||
        shadow->start_units + first * SHADOW_STEP_UNITS != record->first_time ||
        shadow->start_units + last * SHADOW_STEP_UNITS != record->last_time || last - first > 1u << 24) {
        decoder_fault(check->decoder, "a record of thread %u, level %u, from %llu to %llu", record->thread_uid,
                      record->level, (unsigned long long)record->first_time, (unsigned long long)record->last_time);
        return;
    }
    const struct shadow_writer *writer = &shadow->threads[t].writers[record->level];
    if (!record->is_mark)
        check_sample(check, writer, record, first, last);
    else if (!is_mark(&shadow->plan, first) || record->id != extra_of(first) || record->mark_kind != 0)
        decoder_fault(check->decoder, "level %u: append %llu: mark %llu", record->level, (unsigned long long)first,
                      (unsigned long long)record->id);

    struct piece *piece = check->count ? &check->pieces[check->count - 1] : NULL;
    if (piece && piece->chunk_seq == record->chunk_seq && piece->thread == t && piece->level == record->level) {
        for (uint64_t n = piece->last + 1; n < first; n++)
            if (!is_doubtful(writer, n))
                decoder_fault(check->decoder, "level %u: append %llu is not in its chunk", record->level,
                              (unsigned long long)n);
        if (first <= piece->last)
            decoder_fault(check->decoder, "level %u: append %llu after %llu", record->level, (unsigned long long)first,
                          (unsigned long long)piece->last);
        piece->last = last;
    } else if (check->count < PIECES_MAX) {
        check->pieces[check->count++] = (struct piece){record->chunk_seq, first, last, (uint8_t)t, record->level};
    } else {
        decoder_fault(check->decoder, "more chunks than the check has room for");
    }
}

// Appends from `first` to before `end` are not there: each is lost, doubtful, a mark, or was overwritten.
static uint64_t missing(struct check *check, const struct shadow_writer *writer, uint64_t first, uint64_t end)
{
    uint64_t count = 0;
    for (uint64_t n = first; n < end; n++)
        count += !is_doubtful(writer, n) && !is_mark(&check->shadow->plan, n);
    return count;
}

static uint64_t check_writer(struct check *check, uint32_t thread, uint32_t level)
{
    const struct shadow_writer *writer = &check->shadow->threads[thread].writers[level];
    uint64_t next = 0, gone = 0, seq = 0;
    for (;;) { // pieces in the order of their chunks; there are few
        const struct piece *best = NULL;
        for (uint32_t i = 0; i < check->count; i++) {
            const struct piece *piece = &check->pieces[i];
            if (piece->thread == thread && piece->level == level && piece->chunk_seq > seq &&
                (!best || piece->chunk_seq < best->chunk_seq))
                best = piece;
        }
        if (!best)
            break;
        if (best->first < next)
            decoder_fault(check->decoder, "thread %u, level %u: append %llu is there twice", thread, level,
                          (unsigned long long)best->first);
        gone += missing(check, writer, next, best->first);
        next = best->last + 1;
        seq = best->chunk_seq;
    }
    if (next > writer->begun)
        decoder_fault(check->decoder, "thread %u, level %u: %llu appends, %llu begun", thread, level,
                      (unsigned long long)next, (unsigned long long)writer->begun);
    return gone + missing(check, writer, next, writer->done);
}

bool shadow_check(struct shadow *shadow, struct decoder *decoder, struct decoded_totals *totals)
{
    static struct check check;
    check.shadow = shadow;
    check.decoder = decoder;
    check.count = 0;
    decoder_all(decoder, 0, check_record, &check, totals);
    uint64_t gone = 0, hits = 0, doubts = 0;
    for (uint32_t t = 0; t < SHADOW_THREADS; t++) {
        hits += shadow->threads[t].hits;
        for (uint32_t level = 0; level < QUT_TRACE_LEVELS; level++) {
            gone += check_writer(&check, t, level);
            doubts += shadow->threads[t].writers[level].doubt_count;
        }
    }
    if (gone > totals->overwritten || gone + doubts < totals->overwritten)
        decoder_fault(decoder, "%llu appends are not there, %llu overwritten", (unsigned long long)gone,
                      (unsigned long long)totals->overwritten);
    uint32_t under_way = shadow->hits_in_doubt;
    for (uint32_t t = 0; t < SHADOW_THREADS; t++)
        under_way += shadow->threads[t].uid ? QUT_TRACE_LEVELS + 1 : 0;
    if (totals->sum.hits > hits + under_way || hits > totals->sum.hits + under_way)
        decoder_fault(decoder, "%llu hits, counted %llu", (unsigned long long)hits,
                      (unsigned long long)totals->sum.hits);
    return decoder->fault_count == 0;
}
