// SPDX-License-Identifier: Apache-2.0
// Records of one chunk. Each value counts from the record before; the first one's from the chunk's header.
#include <string.h>

#include "base/cursor_inline.h"
#include "tracer/trace/inside.h"

struct state {
    struct decoder *decoder;
    const struct qut_trace_chunk *header;
    uint64_t time, cpu_time, cpu_step; // units
    uint64_t metrics[QUT_TRACE_METRIC_COUNT];
    uint32_t metrics_index; // where they stand in the trace; TRACE_NONE: nowhere yet
    unsigned kind, flags;
    uint64_t latest_time;                    // that can be said in ns
    uint32_t recent[QUT_TRACE_RECENT_COUNT]; // ids
    struct decoded *decoded;
    bool no_memory;
};

static int64_t unzigzag(uint64_t value)
{
    return (int64_t)(value >> 1 ^ -(value & 1));
}

static uint64_t read_node(struct state *state, struct base_cursor *cursor, bool is_recent)
{
    if (is_recent)
        return state->recent[base_read_u8(cursor)];
    uint64_t id = base_read_uleb(cursor);
    if (id >> QUT_TRACE_NODE_BITS_MAX)
        cursor->failed = true;
    else
        state->recent[qut_trace_recent_index((uint32_t)id)] = (uint32_t)id;
    return id;
}

static bool move_time(struct state *state, struct base_cursor *cursor, uint64_t units)
{
    if (units > state->latest_time - state->time) {
        cursor->failed = true;
        return false;
    }
    state->time += units;
    return true;
}

static void read_metrics(struct state *state, struct base_cursor *cursor)
{
    unsigned mask = base_read_u8(cursor);
    for (unsigned i = 0; i < QUT_TRACE_METRIC_COUNT; i++)
        if (mask >> i & 1)
            state->metrics[i] += base_read_uleb(cursor);
    state->metrics_index = TRACE_NONE;
}

static void add_extra(struct state *state, struct trace_sample *sample, unsigned key, uint64_t value)
{
    struct trace_extra *extra = trace_vector_add(&state->decoder->extras);
    if (!extra) {
        state->no_memory = true;
        return;
    }
    *extra = (struct trace_extra){.key = key, .value = value};
    sample->extra_count++;
}

// growth: units of processor time since the run before.
static void read_told(struct state *state, struct base_cursor *cursor, uint64_t growth, struct trace_sample *sample)
{
    const uint64_t units = growth + (uint64_t)unzigzag(base_read_uleb(cursor));
    if (state->decoder->image->header.version == QUT_TRACE_VERSION_OLDEST ||
        !(state->header->flags & QUT_TRACE_HAS_CPU_TIME) || units > state->latest_time)
        cursor->failed = true;
    else
        add_extra(state, sample, QUT_TRACE_EXTRA_CPU_NS, units << state->decoder->time_shift);
}

// Returns how much earlier than its record the sample was.
static uint64_t read_extras(struct state *state, struct base_cursor *cursor, struct trace_sample *sample)
{
    unsigned count = base_read_u8(cursor);
    uint64_t earlier_ns = 0;
    if (count > QUT_TRACE_EXTRAS_MAX + 1) {
        cursor->failed = true;
        return 0;
    }
    for (unsigned i = 0; i < count && !cursor->failed; i++) {
        unsigned key = base_read_u8(cursor);
        uint64_t value = base_read_uleb(cursor);
        if (key == QUT_TRACE_EXTRA_EARLIER_NS) {
            earlier_ns = value;
            continue;
        }
        if (key == QUT_TRACE_EXTRA_RESULT)
            value = (uint64_t)unzigzag(value);
        if (key == QUT_TRACE_EXTRA_BEGIN_NODE)
            value = trace_node_index(state->decoder->nodes, value);
        add_extra(state, sample, key, value);
    }
    return earlier_ns;
}

static bool place_metrics(struct state *state, struct trace_sample *sample)
{
    sample->metrics = TRACE_NONE;
    if (!state->header->metric_mask)
        return true;
    if (state->metrics_index == TRACE_NONE) {
        void *place = trace_vector_add(&state->decoder->metrics);
        if (!place)
            return false;
        memcpy(place, state->metrics, sizeof state->metrics);
        state->metrics_index = (uint32_t)(state->decoder->metrics.count - 1);
    }
    sample->metrics = state->metrics_index;
    return true;
}

static bool add_sample(struct state *state, const struct trace_sample *sample)
{
    struct trace_sample *place = trace_vector_add(&state->decoder->samples);
    if (!place)
        return false;
    *place = *sample;
    state->decoded->samples += sample->count;
    return true;
}

static void note_time(struct state *state, uint64_t first_ns)
{
    if (!state->decoded->end_ns)
        state->decoded->first_record_ns = first_ns;
    state->decoded->end_ns = state->time << state->decoder->time_shift;
}

static void read_run(struct state *state, struct base_cursor *cursor, unsigned tag)
{
    struct decoder *decoder = state->decoder;
    unsigned shift = decoder->time_shift;
    struct trace_sample sample = {
        .level = state->header->level, .count = 1, .first_extra = (uint32_t)decoder->extras.count};
    if (tag & QUT_TRACE_TAG_KIND) {
        state->kind = base_read_u8(cursor);
        state->flags = base_read_u8(cursor);
    }
    sample.kind = (uint16_t)state->kind;
    sample.flags = (uint16_t)state->flags;
    uint64_t node = read_node(state, cursor, tag & QUT_TRACE_TAG_RECENT);
    if (!move_time(state, cursor, base_read_uleb(cursor)))
        return;
    sample.first_ns = state->time << shift;
    if (tag & QUT_TRACE_TAG_COUNT) {
        uint64_t more = base_read_uleb(cursor);
        if (more > UINT32_MAX - 2 || !move_time(state, cursor, base_read_uleb(cursor))) {
            cursor->failed = true;
            return;
        }
        sample.count = (uint32_t)more + 2;
    }
    sample.last_ns = state->time << shift;
    uint64_t growth = 0;
    if (state->header->flags & QUT_TRACE_HAS_CPU_TIME) {
        growth = (uint64_t)unzigzag(base_read_uleb(cursor)) + state->cpu_step * sample.count;
        state->cpu_time += growth;
        state->cpu_step = (uint64_t)((int64_t)growth / (int64_t)sample.count);
        sample.cpu_ns = state->cpu_time << shift;
    }
    if (tag & QUT_TRACE_TAG_METRICS)
        read_metrics(state, cursor);
    if (tag & QUT_TRACE_TAG_TOLD)
        read_told(state, cursor, growth, &sample);
    uint64_t earlier_ns = tag & QUT_TRACE_TAG_EXTRAS ? read_extras(state, cursor, &sample) : 0;
    if (earlier_ns > sample.first_ns)
        cursor->failed = true;
    if (cursor->failed || cursor->overlong)
        return;
    note_time(state, sample.first_ns);
    sample.first_ns -= earlier_ns;
    sample.last_ns -= earlier_ns;
    sample.node = trace_node_index(decoder->nodes, node);
    state->no_memory =
        state->no_memory || sample.node == UINT32_MAX || !place_metrics(state, &sample) || !add_sample(state, &sample);
}

static void read_mark(struct state *state, struct base_cursor *cursor)
{
    unsigned kind = base_read_u8(cursor);
    if (!move_time(state, cursor, base_read_uleb(cursor)))
        return;
    uint64_t id = base_read_uleb(cursor);
    uint64_t name = base_read_uleb(cursor);
    if (cursor->failed || cursor->overlong)
        return;
    struct trace_mark *mark = trace_vector_add(&state->decoder->marks);
    if (!mark) {
        state->no_memory = true;
        return;
    }
    uint64_t time_ns = state->time << state->decoder->time_shift;
    note_time(state, time_ns);
    *mark = (struct trace_mark){
        .time_ns = time_ns, .id = id, .name = trace_image_string(state->decoder->image, name), .kind = kind};
}

static bool add_open_run(struct state *state, const struct qut_trace_run *run)
{
    unsigned shift = state->decoder->time_shift;
    if (run->first_time < state->time || run->last_time < run->first_time || run->last_time > state->latest_time) {
        state->decoded->is_damaged = true;
        return true;
    }
    struct trace_sample sample = {.first_ns = run->first_time << shift,
                                  .last_ns = run->last_time << shift,
                                  .count = run->count,
                                  .kind = run->kind,
                                  .flags = run->flags,
                                  .level = state->header->level,
                                  .first_extra = (uint32_t)state->decoder->extras.count,
                                  .node = trace_node_index(state->decoder->nodes, run->node)};
    if (state->header->flags & QUT_TRACE_HAS_CPU_TIME)
        sample.cpu_ns = run->cpu_time << shift;
    if (memcmp(state->metrics, run->metrics, sizeof state->metrics) != 0) {
        memcpy(state->metrics, run->metrics, sizeof state->metrics);
        state->metrics_index = TRACE_NONE;
    }
    state->time = run->last_time;
    note_time(state, sample.first_ns);
    return sample.node != UINT32_MAX && place_metrics(state, &sample) && add_sample(state, &sample);
}

bool trace_decode_chunk(struct decoder *decoder, const struct image_chunk *chunk, const struct qut_trace_run *run,
                        struct decoded *decoded)
{
    const struct qut_trace_chunk *header = (const void *)chunk->bytes;
    struct state state = {.decoder = decoder,
                          .header = header,
                          .time = header->base_time,
                          .cpu_time = header->base_cpu_time,
                          .metrics_index = TRACE_NONE,
                          .kind = header->base_kind & 0xff,
                          .flags = header->base_kind >> 8,
                          .latest_time = UINT64_MAX >> decoder->time_shift,
                          .decoded = decoded};
    *decoded = (struct decoded){0};
    memcpy(state.metrics, header->base_metrics, sizeof state.metrics);
    if (state.time > state.latest_time) {
        decoded->is_damaged = true;
        return true;
    }
    struct base_cursor cursor = base_cursor((struct base_bytes){chunk->bytes + sizeof *header, chunk->used_bytes});
    while (base_cursor_left(&cursor) && !cursor.failed && !cursor.overlong && !state.no_memory) {
        unsigned tag = base_read_u8(&cursor);
        size_t extras_before = decoder->extras.count;
        switch (tag & QUT_TRACE_TAG_TYPE_MASK) {
        case QUT_TRACE_TAG_RUN: read_run(&state, &cursor, tag); break;
        case QUT_TRACE_TAG_MARK: read_mark(&state, &cursor); break;
        default: cursor.failed = true;
        }
        if (cursor.failed || cursor.overlong)
            decoder->extras.count = extras_before;
    }
    decoded->end_time = state.time;
    if (state.no_memory)
        return false;
    if (cursor.failed || cursor.overlong) {
        decoded->is_damaged = true;
        return true;
    }
    bool added = !run || !run->count || add_open_run(&state, run);
    decoded->end_time = state.time;
    return added;
}
