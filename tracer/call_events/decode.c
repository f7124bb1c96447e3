// SPDX-License-Identifier: Apache-2.0
// Events out of their blocks. A block is gone through once when it is taken: what passes that is decoded later without
// a look at whether it can be.
#include <stdlib.h>

#include "tracer/call_events/inside.h"
#include "tracer/call_events/open_list_inline.h"

struct decoder {
    const struct call_events_block *block;
    struct base_cursor kinds, times, ids, slots;
    uint32_t left; // events
    uint64_t ticks;
    struct call_list list;
};

struct call_events_reader {
    const struct call_events *calls;
    const struct call_events_thread *thread;
    uint32_t index;
    size_t block;      // the next one
    size_t loss;       // the next one
    uint64_t expected; // number of the next event
    uint64_t done;     // its number
    struct decoder decoder;
};

static void begin(struct decoder *decoder, const struct call_events_block *block)
{
    struct base_cursor *cursors[] = {&decoder->kinds, &decoder->times, &decoder->ids, &decoder->slots};
    for (unsigned i = 0; i < QUT_TRACE_FILE_CALL_STREAM_COUNT; i++)
        *cursors[i] = base_cursor((struct base_bytes){block->streams[i], block->stream_bytes[i]});
    decoder->block = block;
    decoder->left = block->count;
    decoder->ticks = block->first_ticks;
    call_list_clear(&decoder->list);
}

// False: malformed. The function is the id.
static bool decode(struct decoder *decoder, struct call_event *event)
{
    struct call_list *list = &decoder->list;
    const unsigned byte = base_read_u8(&decoder->kinds), kind = byte & (QUT_TRACE_FILE_CALL_EARLIER - 1);
    const uint64_t distance = base_read_uleb(&decoder->times);
    if ((byte & ~(unsigned)QUT_TRACE_FILE_CALL_EARLIER) >= QUT_TRACE_FILE_CALL_KIND_COUNT || decoder->kinds.failed ||
        decoder->times.failed)
        return false;
    decoder->ticks += byte & QUT_TRACE_FILE_CALL_EARLIER ? -distance : distance;
    decoder->left--;
    *event = (struct call_event){.ticks = decoder->ticks};
    if (kind == QUT_TRACE_FILE_CALL_EXIT_LAST) {
        const struct call_list_item *last = call_list_last(list);
        if (!last)
            return false;
        event->slot = last->slot;
        event->function = last->id;
        event->is_exit = true;
        call_list_exit_last(list);
        return true;
    }
    const uint64_t id = base_read_uleb(&decoder->ids), zigzag = base_read_uleb(&decoder->slots);
    if (id >> QUT_TRACE_FILE_CALL_ID_BITS || decoder->ids.failed || decoder->slots.failed)
        return false;
    event->function = (uint32_t)id;
    event->slot = call_list_reference(list) + 8 * (zigzag >> 1 ^ -(zigzag & 1));
    event->is_exit = kind == QUT_TRACE_FILE_CALL_EXIT;
    event->is_tail = kind == QUT_TRACE_FILE_CALL_TAIL;
    if (event->is_exit)
        call_list_exit(list, event->slot);
    else
        call_list_enter(list, event->function, event->slot);
    return true;
}

static bool is_behind(const struct decoder *decoder)
{
    return !base_cursor_left(&decoder->kinds) && !base_cursor_left(&decoder->times) &&
           !base_cursor_left(&decoder->ids) && !base_cursor_left(&decoder->slots);
}

struct sums {
    uint64_t enters, exits, last_ticks;
};

static bool check(const struct call_events_block *block, struct sums *sums)
{
    struct decoder *decoder = malloc(sizeof *decoder);
    if (!decoder)
        return false;
    struct call_event event;
    bool is_good = true;
    for (begin(decoder, block); decoder->left && is_good;) {
        is_good = decode(decoder, &event);
        sums->enters += !event.is_exit;
        sums->exits += event.is_exit;
        if (event.ticks > sums->last_ticks)
            sums->last_ticks = event.ticks;
    }
    is_good = is_good && is_behind(decoder);
    free(decoder);
    return is_good;
}

// What functions are met, each of them one of the part's; their sums.
static bool count_functions(struct call_events *calls, const struct call_events_block *block)
{
    struct decoder *decoder = malloc(sizeof *decoder);
    if (!decoder)
        return false;
    struct call_event event;
    bool is_good = true;
    uint32_t id = CALL_EVENTS_NONE, at = 0;
    for (begin(decoder, block); decoder->left && is_good;) {
        decode(decoder, &event);
        if (event.function != id)
            at = call_events_need(calls, id = event.function);
        is_good = at != CALL_EVENTS_NONE;
        if (is_good) {
            calls->functions.items[at].enters += !event.is_exit;
            calls->functions.items[at].exits += event.is_exit;
        }
    }
    free(decoder);
    return is_good;
}

static bool cut(struct base_cursor *cursor, struct call_events_block *block, const uint32_t *stream_bytes)
{
    for (unsigned i = 0; i < QUT_TRACE_FILE_CALL_STREAM_COUNT; i++) {
        const struct base_bytes stream = base_read_bytes(cursor, stream_bytes[i]);
        block->streams[i] = stream.data;
        block->stream_bytes[i] = (uint32_t)stream.size;
    }
    return !cursor->failed && !base_cursor_left(cursor) &&
           block->stream_bytes[QUT_TRACE_FILE_CALL_KINDS] == block->count;
}

bool call_events_take_events(struct call_events *calls, struct base_bytes contents, bool *no_memory)
{
    struct qut_trace_file_call_events head;
    if (contents.size < sizeof head)
        return false;
    memcpy(&head, contents.data, sizeof head);
    struct call_events_block block = {
        .first_event = head.first_event, .first_ticks = head.first_ticks, .count = head.count};
    struct base_cursor cursor =
        base_cursor((struct base_bytes){contents.data + sizeof head, contents.size - sizeof head});
    struct sums sums = {.last_ticks = head.first_ticks};
    if (!head.count || head.count > QUT_TRACE_FILE_CALL_EVENTS_MAX || head.thread >= QUT_TRACE_FILE_CALL_THREADS_MAX ||
        head.first_event > UINT64_MAX / 2 || !cut(&cursor, &block, head.stream_bytes) || !check(&block, &sums))
        return false;
    const uint8_t *kept = call_events_keep(calls, contents.data + sizeof head, contents.size - sizeof head);
    struct call_events_thread *thread = kept ? call_events_thread_at(calls, head.thread) : NULL;
    *no_memory |= !thread;
    if (!thread)
        return false;
    const struct call_events_block *before =
        thread->blocks.count ? &thread->blocks.items[thread->blocks.count - 1] : NULL;
    const uint64_t expected = before ? before->first_event + before->count : 0;
    if (block.first_event < expected)
        return false; // the same once more
    cursor = base_cursor((struct base_bytes){kept, contents.size - sizeof head});
    cut(&cursor, &block, head.stream_bytes);
    struct call_events_block *place = BASE_ADD(&thread->blocks);
    *no_memory |= !place || !count_functions(calls, &block);
    if (*no_memory)
        return false;
    *place = block;
    thread->is_damaged |= block.first_event != expected;
    thread->first_ticks = before ? thread->first_ticks : block.first_ticks;
    thread->last_ticks = before && thread->last_ticks > sums.last_ticks ? thread->last_ticks : sums.last_ticks;
    thread->enters += sums.enters;
    thread->exits += sums.exits;
    calls->event_bytes += contents.size - sizeof head;
    return true;
}

struct call_events_reader *call_events_begin(const struct call_events *calls, uint32_t thread)
{
    struct call_events_reader *reader = calloc(1, sizeof *reader);
    if (!reader)
        return NULL;
    reader->calls = calls;
    reader->thread = &calls->threads.items[thread];
    reader->index = thread;
    for (size_t high = calls->losses.count; reader->loss < high;) {
        const size_t middle = reader->loss + (high - reader->loss) / 2;
        if (calls->losses.items[middle].thread < thread)
            reader->loss = middle + 1;
        else
            high = middle;
    }
    return reader;
}

static bool is_after_loss(struct call_events_reader *reader)
{
    bool is_after = reader->done != reader->expected;
    const struct call_events *calls = reader->calls;
    for (; reader->loss < calls->losses.count && calls->losses.items[reader->loss].thread == reader->index &&
           calls->losses.items[reader->loss].before_event <= reader->done;
         reader->loss++)
        is_after = true;
    return is_after;
}

bool call_events_next(struct call_events_reader *reader, struct call_event *event)
{
    if (!reader->decoder.left) {
        if (reader->block == reader->thread->blocks.count)
            return false;
        begin(&reader->decoder, &reader->thread->blocks.items[reader->block++]);
        reader->done = reader->decoder.block->first_event;
    }
    decode(&reader->decoder, event);
    event->function = call_events_find(reader->calls, event->function);
    event->after_loss = is_after_loss(reader);
    reader->expected = ++reader->done;
    return true;
}

void call_events_end(struct call_events_reader *reader)
{
    free(reader);
}
