// SPDX-License-Identifier: Apache-2.0
// One writer against a model: what went in, in the plainest words, is what comes out.
#include <stdlib.h>
#include <string.h>

#include "libqut/include/qut/trace.h"
#include "libqut/segment/segment.h"
#include "tests/support/tap.h"
#include "tests/unit/libqut/segment/decode.h"

enum { NODES = 700, GAP_NS = 20 * 1000 * 1000 };

struct model {
    struct segment segment;
    struct qut_trace_thread *thread;
    uint32_t nodes[NODES];
    uint64_t random;
    uint64_t now_ns, cpu_ns, metrics[QUT_TRACE_METRIC_COUNT];
    // What is expected.
    struct decoded *records;
    size_t count, capacity;
    bool is_open; // the last one: equal ones are merged into it
    uint64_t last_time, last_metrics[QUT_TRACE_METRIC_COUNT];
    uint64_t hits, stored, merged, throttled, bad, pool, marks, lost_marks;
};

static uint64_t draw(struct model *m, uint64_t below)
{
    m->random ^= m->random << 13;
    m->random ^= m->random >> 7;
    m->random ^= m->random << 17;
    return m->random % below;
}

static bool begin(struct model *m, const struct segment_options *options, uint64_t seed)
{
    memset(m, 0, sizeof *m);
    m->random = seed * 0x9e3779b97f4a7c15u + 1;
    m->now_ns = 1000000000;
    int result = segment_create(&m->segment, options);
    if (!CHECK(result == 0, "%d", result))
        return false;
    m->thread = segment_thread_begin(&m->segment, 77, "model", m->now_ns);
    CHECK(m->thread != NULL, "no slot");
    for (uint32_t i = 0; i < NODES; i++)
        m->nodes[i] = i ? segment_node(&m->segment, m->nodes[i / 2], 4096 + i * 40, 0) : 0;
    return m->thread != NULL;
}

static struct decoded *expect(struct model *m)
{
    if (m->count == m->capacity) {
        m->capacity = m->capacity ? m->capacity * 2 : 1024;
        m->records = realloc(m->records, m->capacity * sizeof *m->records);
        if (!m->records)
            abort();
    }
    struct decoded *record = &m->records[m->count++];
    memset(record, 0, sizeof *record);
    record->uid = 1;
    return record;
}

static void draw_time(struct model *m, struct segment_sample *sample)
{
    static const uint64_t steps[] = {0,       1,       255,     256,     999,     50000,
                                     1000000, 1000000, 1000000, 1000000, 4000000, 1000000000};
    uint64_t which = draw(m, 40);
    if (which < sizeof steps / sizeof *steps)
        m->now_ns += steps[which];
    else if (which == 12) // the limit exactly, in units
        m->now_ns = ((m->last_time + (GAP_NS >> QUT_TRACE_TIME_SHIFT)) << QUT_TRACE_TIME_SHIFT) +
                    draw(m, 1 << QUT_TRACE_TIME_SHIFT);
    else if (which == 13)
        m->now_ns = (m->last_time + (GAP_NS >> QUT_TRACE_TIME_SHIFT) + 1) << QUT_TRACE_TIME_SHIFT;
    else
        m->now_ns += 1000000 + draw(m, 60000);
    m->cpu_ns += draw(m, 1100000);
    sample->time_ns = m->now_ns;
    sample->cpu_ns = m->cpu_ns;
    if (which == 39) { // a clock that was read before the last one's
        sample->time_ns -= draw(m, 3000000);
        sample->cpu_ns -= draw(m, m->cpu_ns + 1);
    }
}

static void draw_sample(struct model *m, struct segment_sample *sample, struct segment_extra *extras)
{
    static uint32_t last_node;
    static uint16_t last_kind, last_flags;
    if (draw(m, 3)) {
        last_node = m->nodes[draw(m, 10) ? draw(m, 40) : draw(m, NODES)];
        if (!draw(m, 10))
            last_kind = (uint16_t)draw(m, 128);
        if (!draw(m, 10))
            last_flags = (uint16_t)draw(m, 8);
    }
    *sample = (struct segment_sample){.node = last_node, .kind = last_kind, .flags = last_flags};
    draw_time(m, sample);
    for (int i = 0; i < QUT_TRACE_METRIC_COUNT; i++)
        if (!draw(m, 3))
            m->metrics[i] += draw(m, 100) ? draw(m, 300) : draw(m, UINT64_MAX >> 8);
    if (!draw(m, 200))
        m->metrics[draw(m, QUT_TRACE_METRIC_COUNT)] /= 2;
    sample->metrics = draw(m, 5) ? m->metrics : NULL;
    if (!draw(m, 20)) {
        sample->extra_count = (uint32_t)draw(m, QUT_TRACE_EXTRAS_MAX + 1);
        for (uint32_t i = 0; i < sample->extra_count; i++)
            extras[i] = (struct segment_extra){.key = 1 + (uint32_t)draw(m, 127), .value = m->random >> draw(m, 64)};
        if (!draw(m, 4)) { // told: mostly whole units, near what its time grew by; any other as well
            uint64_t told_ns = draw(m, 4) ? draw(m, 1100000) : m->random >> draw(m, 64);
            told_ns = draw(m, 4) ? told_ns >> QUT_TRACE_TIME_SHIFT << QUT_TRACE_TIME_SHIFT : told_ns;
            extras[0] = (struct segment_extra){.key = QUT_TRACE_EXTRA_CPU_NS, .value = told_ns};
            sample->extra_count = 1;
        }
        sample->extras = extras;
    }
    if (draw(m, 500))
        return;
    switch (draw(m, 5)) { // malformed
    case 0: sample->node = m->segment.node_mask; break;
    case 1: sample->node = UINT32_MAX; break;
    case 2: sample->kind = 128; break;
    case 3: sample->flags = 256; break;
    default:
        extras[0].key = 0;
        sample->extras = extras;
        sample->extra_count = 1;
        break;
    }
}

static bool is_bad(const struct model *m, const struct segment_sample *sample)
{
    bool is_earlier = sample->time_ns >> QUT_TRACE_TIME_SHIFT < m->last_time;
    if (sample->node >= m->segment.node_mask || sample->kind > 127 || sample->flags > 255)
        return true;
    if (sample->extra_count && sample->extras[0].key == 0)
        return true;
    return is_earlier && sample->extra_count == QUT_TRACE_EXTRAS_MAX;
}

static void set_metrics(struct model *m, struct decoded *record, const uint64_t *metrics)
{
    for (int i = 0; i < QUT_TRACE_METRIC_COUNT; i++)
        if (metrics && m->segment.metric_mask >> i & 1 && metrics[i] > m->last_metrics[i])
            m->last_metrics[i] = metrics[i];
    memcpy(record->metrics, m->last_metrics, sizeof record->metrics);
}

static int model_sample(struct model *m, const struct segment_sample *sample)
{
    uint64_t time = sample->time_ns >> QUT_TRACE_TIME_SHIFT;
    uint64_t cpu_time = m->segment.flags & QUT_TRACE_HAS_CPU_TIME ? sample->cpu_ns >> QUT_TRACE_TIME_SHIFT : 0;
    m->hits++;
    if (is_bad(m, sample)) {
        m->bad++;
        return QUT_STORED_NOT;
    }
    struct decoded *last = m->count ? &m->records[m->count - 1] : NULL;
    if (m->is_open && last->node == sample->node && last->kind == sample->kind && last->flags == sample->flags &&
        !sample->extra_count && time >= m->last_time && time - m->last_time <= GAP_NS >> QUT_TRACE_TIME_SHIFT) {
        last->last_time = m->last_time = time;
        last->cpu_time = cpu_time;
        last->count++;
        set_metrics(m, last, sample->metrics);
        m->merged++;
        return QUT_STORED_MERGED;
    }
    struct decoded *record = expect(m);
    bool is_earlier = time < m->last_time;
    record->first_time = record->last_time = is_earlier ? m->last_time : time;
    record->cpu_time = cpu_time;
    record->node = sample->node;
    record->count = 1;
    record->kind = sample->kind;
    record->flags = sample->flags;
    for (uint32_t i = 0; i < sample->extra_count && i < QUT_TRACE_EXTRAS_MAX; i++) {
        record->extra_keys[i] = (uint8_t)sample->extras[i].key;
        record->extra_values[i] = sample->extras[i].value;
    }
    record->extra_count = (uint8_t)sample->extra_count;
    if (is_earlier && record->extra_count < QUT_TRACE_EXTRAS_MAX) {
        record->extra_keys[record->extra_count] = QUT_TRACE_EXTRA_EARLIER_NS;
        record->extra_values[record->extra_count++] = (m->last_time << QUT_TRACE_TIME_SHIFT) - sample->time_ns;
    }
    set_metrics(m, record, sample->metrics);
    m->last_time = record->last_time;
    m->is_open = !record->extra_count;
    m->stored++;
    return QUT_STORED;
}

// What was expected did not happen, since there was no room: the open record was closed for that.
static void model_lost(struct model *m)
{
    m->count--;
    m->is_open = false;
    struct decoded *last = m->count ? &m->records[m->count - 1] : NULL;
    m->last_time = last ? last->last_time : 0;
    if (last)
        memcpy(m->last_metrics, last->metrics, sizeof m->last_metrics);
}

static void step_sample(struct model *m, struct qut_trace_writer *writer)
{
    struct segment_extra extras[QUT_TRACE_EXTRAS_MAX];
    struct segment_sample sample;
    draw_sample(m, &sample, extras);
    uint64_t kept_metrics[QUT_TRACE_METRIC_COUNT];
    memcpy(kept_metrics, m->last_metrics, sizeof kept_metrics);
    int expected = model_sample(m, &sample);
    int stored = segment_append(&m->segment, m->thread, writer, &sample);
    if (stored == QUT_STORED_NOT && expected == QUT_STORED && m->segment.mode == QUT_TRACE_STREAM) {
        model_lost(m);
        memcpy(m->last_metrics, kept_metrics, sizeof kept_metrics);
        m->stored--;
        m->pool++;
        return;
    }
    CHECK(stored == expected, "%d, not %d, at hit %llu", stored, expected, (unsigned long long)m->hits);
}

static void step_mark(struct model *m, struct qut_trace_writer *writer)
{
    uint64_t time_ns = m->now_ns - draw(m, 2000000), time = time_ns >> QUT_TRACE_TIME_SHIFT,
             id = m->random >> draw(m, 64);
    uint32_t kind = (uint32_t)draw(m, 4), string = (uint32_t)draw(m, 100);
    m->marks++;
    m->is_open = false;
    if (segment_mark(&m->segment, m->thread, writer, time_ns, kind, id, string) != QUT_STORED) {
        m->lost_marks++;
        return;
    }
    struct decoded *record = expect(m);
    record->is_mark = true;
    record->mark_kind = kind;
    record->mark_string = string;
    record->mark_id = id;
    record->first_time = record->last_time = time > m->last_time ? time : m->last_time;
    m->last_time = record->last_time;
}

static bool identity_holds(struct model *m)
{
    struct segment_sums s;
    segment_sum(&m->segment, &s);
    return CHECK(s.counts.hits == m->hits && s.stored == m->stored && s.merged == m->merged && s.under_way == 0 &&
                     s.counts.throttled == m->throttled && s.counts.lost[QUT_TRACE_LOST_BAD] == m->bad &&
                     s.counts.lost[QUT_TRACE_LOST_POOL] == m->pool && s.counts.marks == m->marks &&
                     s.counts.lost_marks == m->lost_marks,
                 "hits %llu/%llu stored %llu/%llu merged %llu/%llu pool %llu/%llu", (unsigned long long)s.counts.hits,
                 (unsigned long long)m->hits, (unsigned long long)s.stored, (unsigned long long)m->stored,
                 (unsigned long long)s.merged, (unsigned long long)m->merged,
                 (unsigned long long)s.counts.lost[QUT_TRACE_LOST_POOL], (unsigned long long)m->pool);
}

// The newest that were expected are what is there, and all of them where nothing may be overwritten.
static bool records_are_there(struct model *m, bool all)
{
    struct decode d;
    decode_segment(&d, m->segment.header);
    struct segment_sums s;
    segment_sum(&m->segment, &s);
    bool good =
        CHECK(!d.fault, "%s", d.fault) && CHECK(d.count <= m->count, "%zu of %zu", d.count, m->count) &&
        CHECK(!all || d.count == m->count, "%zu of %zu", d.count, m->count) &&
        CHECK(d.samples + s.overwritten == m->stored + m->merged, "%llu + %llu of %llu", (unsigned long long)d.samples,
              (unsigned long long)s.overwritten, (unsigned long long)(m->stored + m->merged));
    for (size_t i = 0; good && i < d.count; i++) {
        struct decoded *expected = &m->records[m->count - d.count + i];
        // Marks have no kind, no metrics.
        good = CHECK(memcmp(&d.records[i], expected, sizeof *expected) == 0,
                     "record %zu of %zu: node %u %u time %llu %llu", i, d.count, d.records[i].node, expected->node,
                     (unsigned long long)d.records[i].last_time, (unsigned long long)expected->last_time);
    }
    free(d.records);
    return good;
}

static void run_model(const struct segment_options *options, uint64_t seed, unsigned steps)
{
    struct model m;
    if (!begin(&m, options, seed))
        return;
    bool good = true;
    for (unsigned i = 0; good && i < steps; i++) {
        struct qut_trace_writer *writer = segment_begin(m.thread, (uintptr_t)&m, 0, 0);
        uint64_t what = draw(&m, 50);
        if (what == 0) {
            step_mark(&m, writer);
        } else if (what == 1) {
            segment_skip(writer);
            m.hits++;
            m.throttled++;
        } else {
            step_sample(&m, writer);
        }
        segment_end_of(m.thread);
        good = !tap.failed_checks && identity_holds(&m);
        if (good && (i % 7777 == 0 || i + 1 == steps))
            good = records_are_there(&m, options->mode == QUT_TRACE_STREAM);
    }
    struct segment_sums sums;
    segment_sum(&m.segment, &sums);
    if (steps >= 100000) // else the test is about less than it says
        CHECK(options->mode == QUT_TRACE_STREAM ? m.pool > 0 : sums.overwritten > 0, "never full");
    segment_thread_end(&m.segment, m.thread, m.now_ns);
    records_are_there(&m, options->mode == QUT_TRACE_STREAM);
    free(m.records);
    segment_close(&m.segment);
}

static unsigned steps = 100000;

TEST(overwrite_is_as_the_model)
{
    struct segment_options options = {.segment_bytes = 1 << 20, .mode = QUT_TRACE_OVERWRITE, .thread_count = 4};
    options.node_bits = 12;
    for (uint64_t seed = 1; seed <= 3; seed++) {
        options.flags = seed & 1 ? QUT_TRACE_HAS_CPU_TIME : 0;
        options.metric_mask = seed == 2 ? 0xff : 0;
        run_model(&options, seed, steps);
    }
}

TEST(overwrite_with_metrics_is_as_the_model)
{
    struct segment_options options = {.segment_bytes = 512 << 10, .thread_count = 4, .node_bits = 12};
    options.flags = QUT_TRACE_HAS_CPU_TIME;
    options.metric_mask = 0x2d;
    run_model(&options, 11, steps);
}

TEST(stream_is_as_the_model)
{
    struct segment_options options = {.segment_bytes = 768 << 10, .mode = QUT_TRACE_STREAM, .thread_count = 4};
    options.node_bits = 12;
    options.flags = QUT_TRACE_HAS_CPU_TIME;
    for (uint64_t seed = 21; seed <= 22; seed++) {
        options.metric_mask = seed == 22 ? 0xff : 0;
        run_model(&options, seed, steps);
    }
}

int main(int count, char **arguments)
{
    if (count > 1)
        steps = (unsigned)atoi(arguments[1]);
    RUN(overwrite_is_as_the_model);
    RUN(overwrite_with_metrics_is_as_the_model);
    RUN(stream_is_as_the_model);
    return tap_finish();
}
