// SPDX-License-Identifier: Apache-2.0
#include "tracer/call_events/encode.h"

#include <stdlib.h>

#include "tracer/call_events/open_list_inline.h"

enum { LEB_BYTES_MAX = 10, BATCH = 256 };
static_assert((int)QUT_TRACE_FILE_CALL_ID_BITS >= (int)QUT_CALLS_ID_BITS, "ids are the same");

struct stream {
    BASE_VECTOR(uint8_t);
};

struct call_events_encoder {
    struct qut_trace_file_call_events head;
    struct stream streams[QUT_TRACE_FILE_CALL_STREAM_COUNT];
    uint64_t last_ticks;
    uint32_t enters; // in the block
    bool is_written; // the next event begins a block
    struct call_list list;
};

static void begin_block(struct call_events_encoder *encoder)
{
    encoder->head.first_event += encoder->head.count;
    encoder->head.count = encoder->enters = 0;
    for (unsigned i = 0; i < QUT_TRACE_FILE_CALL_STREAM_COUNT; i++)
        encoder->streams[i].count = 0;
    call_list_clear(&encoder->list);
    encoder->is_written = false;
}

struct call_events_encoder *call_events_encoder_new(uint32_t thread, uint64_t event_count)
{
    struct call_events_encoder *encoder = calloc(1, sizeof *encoder);
    if (!encoder)
        return NULL;
    encoder->head.thread = thread;
    encoder->head.first_event = event_count;
    begin_block(encoder);
    return encoder;
}

void call_events_encoder_free(struct call_events_encoder *encoder)
{
    if (!encoder)
        return;
    for (unsigned i = 0; i < QUT_TRACE_FILE_CALL_STREAM_COUNT; i++)
        base_vector_free(&encoder->streams[i].vector);
    free(encoder);
}

// There is room.
static inline void put(struct call_events_encoder *encoder, enum qut_trace_file_call_stream which, uint64_t value)
{
    struct stream *stream = &encoder->streams[which];
    for (; value >= 0x80; value >>= 7)
        stream->items[stream->count++] = (uint8_t)(value | 0x80);
    stream->items[stream->count++] = (uint8_t)value;
}

static bool reserve(struct call_events_encoder *encoder, size_t count)
{
    for (unsigned i = 0; i < QUT_TRACE_FILE_CALL_STREAM_COUNT; i++)
        if (!BASE_RESERVE(&encoder->streams[i], count * LEB_BYTES_MAX))
            return false;
    return true;
}

static void encode(struct call_events_encoder *encoder, const struct qut_calls_event *event)
{
    struct call_list *list = &encoder->list;
    const struct call_list_item *last = call_list_last(list);
    const uint32_t id = qut_calls_word_id(event->word);
    const uint64_t slot = qut_calls_word_slot(event->word), ticks = event->time_ticks;
    const bool is_exit = qut_calls_word_is_exit(event->word);
    const bool is_exit_of_last = is_exit && last && last->slot == slot && last->id == id;
    if (!encoder->head.count)
        encoder->head.first_ticks = encoder->last_ticks = ticks;
    const bool is_earlier = ticks < encoder->last_ticks;
    const unsigned kind = is_exit_of_last                       ? QUT_TRACE_FILE_CALL_EXIT_LAST
                          : is_exit                             ? QUT_TRACE_FILE_CALL_EXIT
                          : qut_calls_word_is_tail(event->word) ? QUT_TRACE_FILE_CALL_TAIL
                                                                : QUT_TRACE_FILE_CALL_ENTER;
    struct stream *kinds = &encoder->streams[QUT_TRACE_FILE_CALL_KINDS];
    kinds->items[kinds->count++] = (uint8_t)(kind | (is_earlier ? QUT_TRACE_FILE_CALL_EARLIER : 0));
    put(encoder, QUT_TRACE_FILE_CALL_TIMES, is_earlier ? encoder->last_ticks - ticks : ticks - encoder->last_ticks);
    encoder->last_ticks = ticks;
    encoder->head.count++;
    encoder->enters += !is_exit;
    if (is_exit_of_last) {
        call_list_exit_last(list);
        return;
    }
    const int64_t distance = (int64_t)(slot - call_list_reference(list)) / 8;
    put(encoder, QUT_TRACE_FILE_CALL_IDS, id);
    put(encoder, QUT_TRACE_FILE_CALL_SLOTS, (uint64_t)distance << 1 ^ (uint64_t)(distance >> 63));
    if (is_exit)
        call_list_exit(list, slot);
    else
        call_list_enter(list, id, slot);
}

size_t call_events_encode(struct call_events_encoder *encoder, const struct qut_calls_event *events, size_t count,
                          bool *no_memory)
{
    if (encoder->is_written)
        begin_block(encoder);
    size_t done = 0, room = QUT_TRACE_FILE_CALL_EVENTS_MAX - encoder->head.count;
    if (count > room)
        count = room;
    while (done < count) {
        const size_t batch = count - done < BATCH ? count - done : BATCH;
        if (!reserve(encoder, batch)) {
            *no_memory = true;
            break;
        }
        for (const size_t end = done + batch; done < end; done++)
            encode(encoder, &events[done]);
    }
    return done;
}

uint32_t call_events_encoded(const struct call_events_encoder *encoder)
{
    return encoder->is_written ? 0 : encoder->head.count;
}

uint64_t call_events_told(const struct call_events_encoder *encoder)
{
    return encoder->head.first_event + encoder->head.count;
}

uint32_t call_events_enters(const struct call_events_encoder *encoder)
{
    return encoder->is_written ? 0 : encoder->enters;
}

void call_events_block(struct call_events_encoder *encoder, struct base_bytes pieces[CALL_EVENTS_PIECES])
{
    pieces[0] = (struct base_bytes){(const uint8_t *)&encoder->head, sizeof encoder->head};
    for (unsigned i = 0; i < QUT_TRACE_FILE_CALL_STREAM_COUNT; i++) {
        encoder->head.stream_bytes[i] = (uint32_t)encoder->streams[i].count;
        pieces[i + 1] = (struct base_bytes){encoder->streams[i].items, encoder->streams[i].count};
    }
    encoder->is_written = true;
}

void call_events_drop(struct call_events_encoder *encoder)
{
    encoder->head.count = 0;
    begin_block(encoder);
}
