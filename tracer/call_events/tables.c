// SPDX-License-Identifier: Apache-2.0
// What a part says beside its events. Later entries take the place of earlier ones.
#include <stdio.h>
#include <stdlib.h>

#include "tracer/call_events/inside.h"

struct call_events *call_events_new(void)
{
    struct call_events *calls = calloc(1, sizeof *calls);
    if (calls)
        calls->command = "";
    return calls;
}

void call_events_free(struct call_events *calls)
{
    if (!calls)
        return;
    for (size_t i = 0; i < calls->threads.count; i++)
        base_vector_free(&calls->threads.items[i].blocks.vector);
    for (size_t i = 0; i < calls->kept.count; i++)
        free(calls->kept.items[i]);
    base_vector_free(&calls->modules.vector);
    base_vector_free(&calls->functions.vector);
    base_vector_free(&calls->threads.vector);
    base_vector_free(&calls->clocks.vector);
    base_vector_free(&calls->losses.vector);
    base_vector_free(&calls->kept.vector);
    base_hash_free(&calls->by_id);
    free(calls);
}

uint8_t *call_events_keep(struct call_events *calls, const void *bytes, size_t size)
{
    if (!BASE_RESERVE(&calls->kept, 1))
        return NULL;
    uint8_t *copy = malloc(size + 1);
    if (!copy)
        return NULL;
    memcpy(copy, bytes, size);
    copy[size] = 0;
    return *(uint8_t **)BASE_ADD(&calls->kept) = copy;
}

struct call_events_thread *call_events_thread_at(struct call_events *calls, uint32_t index)
{
    if (index >= calls->threads.count && !BASE_RESERVE(&calls->threads, index - calls->threads.count + 1))
        return NULL;
    while (index >= calls->threads.count)
        *BASE_ADD(&calls->threads) = (struct call_events_thread){.thread = CALL_EVENTS_NONE, .end_ns = UINT64_MAX};
    return &calls->threads.items[index];
}

uint32_t call_events_find(const struct call_events *calls, uint32_t id)
{
    uint32_t found;
    for (uint32_t step = 0; (found = base_hash_next(&calls->by_id, base_hash_word(0, id), &step)) != BASE_HASH_NONE;)
        if (calls->functions.items[found].id == id)
            return found;
    return CALL_EVENTS_NONE;
}

uint32_t call_events_need(struct call_events *calls, uint32_t id)
{
    uint32_t found = call_events_find(calls, id);
    if (found != CALL_EVENTS_NONE)
        return found;
    found = (uint32_t)calls->functions.count;
    if (!BASE_RESERVE(&calls->functions, 1) || !base_hash_add(&calls->by_id, base_hash_word(0, id), found))
        return CALL_EVENTS_NONE;
    *BASE_ADD(&calls->functions) = (struct call_events_function){.id = id, .module = CALL_EVENTS_NONE, .name = ""};
    return found;
}

static bool take_told(struct call_events *calls, struct base_bytes contents)
{
    if (contents.size != sizeof calls->told)
        return false;
    memcpy(&calls->told, contents.data, sizeof calls->told);
    calls->has_told = true;
    return true;
}

// A text of so many bytes, none of which is NUL.
static bool take_text(struct base_cursor *cursor, uint32_t bytes, struct base_bytes *text)
{
    *text = base_read_bytes(cursor, bytes);
    return !cursor->failed && bytes <= QUT_TRACE_FILE_NOTE_BYTES_MAX && !memchr(text->data, 0, text->size);
}

static bool take_module(struct call_events *calls, struct base_cursor *cursor, bool *no_memory)
{
    struct qut_trace_file_call_module told;
    struct base_bytes head = base_read_bytes(cursor, sizeof told), path;
    if (cursor->failed)
        return false;
    memcpy(&told, head.data, sizeof told);
    if (!take_text(cursor, told.path_bytes, &path) || told.build_id_bytes > sizeof told.build_id ||
        calls->modules.count == QUT_TRACE_FILE_CALL_MODULES_MAX)
        return false;
    struct call_events_module module = {.bias = told.bias, .build_id_bytes = told.build_id_bytes};
    memcpy(module.build_id, told.build_id, told.build_id_bytes);
    module.path = (const char *)call_events_keep(calls, path.data, path.size);
    struct call_events_module *place = module.path ? BASE_ADD(&calls->modules) : NULL;
    *no_memory |= !place;
    if (place)
        *place = module;
    return place;
}

static bool take_function(struct call_events *calls, struct base_cursor *cursor, bool *no_memory)
{
    struct qut_trace_file_call_function told;
    struct base_bytes head = base_read_bytes(cursor, sizeof told), name;
    if (cursor->failed)
        return false;
    memcpy(&told, head.data, sizeof told);
    if (!take_text(cursor, told.name_bytes, &name) || told.id >> QUT_TRACE_FILE_CALL_ID_BITS)
        return false;
    const char *kept = name.size ? (const char *)call_events_keep(calls, name.data, name.size) : "";
    const uint32_t at = kept ? call_events_need(calls, told.id) : CALL_EVENTS_NONE;
    *no_memory |= at == CALL_EVENTS_NONE;
    if (at == CALL_EVENTS_NONE)
        return false;
    struct call_events_function *function = &calls->functions.items[at];
    function->vaddr = told.vaddr;
    function->size = told.size;
    function->module = told.module; // checked when all are there
    function->flags = told.flags;
    function->name = kept;
    return true;
}

static bool take_each(struct call_events *calls, struct base_bytes contents, bool *no_memory,
                      bool (*take)(struct call_events *, struct base_cursor *, bool *))
{
    struct base_cursor cursor = base_cursor(contents);
    while (base_cursor_left(&cursor))
        if (!take(calls, &cursor, no_memory))
            return false;
    return true;
}

static bool take_thread(struct call_events *calls, struct base_cursor *cursor, bool *no_memory)
{
    struct qut_trace_file_call_thread told;
    struct base_bytes bytes = base_read_bytes(cursor, sizeof told);
    if (cursor->failed)
        return false;
    memcpy(&told, bytes.data, sizeof told);
    if (told.index >= QUT_TRACE_FILE_CALL_THREADS_MAX)
        return false;
    struct call_events_thread *thread = call_events_thread_at(calls, told.index);
    *no_memory |= !thread;
    if (!thread)
        return false;
    thread->tid = told.tid;
    thread->start_ns = told.start_ns;
    thread->end_ns = told.end_ns;
    memcpy(thread->name, told.name, sizeof thread->name);
    thread->name[sizeof thread->name - 1] = 0;
    return true;
}

static bool take_clock(struct call_events *calls, struct base_cursor *cursor, bool *no_memory)
{
    struct qut_trace_file_call_clock told;
    struct base_bytes bytes = base_read_bytes(cursor, sizeof told);
    if (cursor->failed)
        return false;
    memcpy(&told, bytes.data, sizeof told);
    if (calls->clocks.count) {
        const struct qut_trace_file_call_clock *before = &calls->clocks.items[calls->clocks.count - 1];
        if (told.ticks <= before->ticks || told.ns < before->ns)
            return false;
    }
    struct qut_trace_file_call_clock *place = BASE_ADD(&calls->clocks);
    *no_memory |= !place;
    if (place)
        *place = told;
    return place;
}

static bool take_loss(struct call_events *calls, struct base_cursor *cursor, bool *no_memory)
{
    struct qut_trace_file_call_loss told;
    struct base_bytes bytes = base_read_bytes(cursor, sizeof told);
    if (cursor->failed)
        return false;
    memcpy(&told, bytes.data, sizeof told);
    if (told.thread >= QUT_TRACE_FILE_CALL_THREADS_MAX)
        return false;
    struct call_events_thread *thread = call_events_thread_at(calls, told.thread);
    struct qut_trace_file_call_loss *place = thread ? BASE_ADD(&calls->losses) : NULL;
    *no_memory |= !place;
    if (!place)
        return false;
    *place = told;
    thread->lost_enters += told.enters;
    thread->lost_exits += told.exits;
    return true;
}

static bool take_count(struct call_events *calls, struct base_cursor *cursor, bool *no_memory)
{
    struct qut_trace_file_call_count told;
    struct base_bytes bytes = base_read_bytes(cursor, sizeof told);
    if (cursor->failed)
        return false;
    memcpy(&told, bytes.data, sizeof told);
    if (told.id >> QUT_TRACE_FILE_CALL_ID_BITS)
        return false;
    const uint32_t at = call_events_need(calls, told.id);
    *no_memory |= at == CALL_EVENTS_NONE;
    if (at != CALL_EVENTS_NONE)
        calls->functions.items[at].counted = told.count;
    return at != CALL_EVENTS_NONE;
}

bool call_events_take(struct call_events *calls, unsigned type, struct base_bytes contents, bool *no_memory)
{
    switch (type) {
    case QUT_TRACE_FILE_CALLS: return take_told(calls, contents);
    case QUT_TRACE_FILE_CALL_MODULES: return take_each(calls, contents, no_memory, take_module);
    case QUT_TRACE_FILE_CALL_FUNCTIONS: return take_each(calls, contents, no_memory, take_function);
    case QUT_TRACE_FILE_CALL_THREADS: return take_each(calls, contents, no_memory, take_thread);
    case QUT_TRACE_FILE_CALL_CLOCKS: return take_each(calls, contents, no_memory, take_clock);
    case QUT_TRACE_FILE_CALL_LOSSES: return take_each(calls, contents, no_memory, take_loss);
    case QUT_TRACE_FILE_CALL_COUNTS: return take_each(calls, contents, no_memory, take_count);
    case QUT_TRACE_FILE_CALL_EVENTS: return call_events_take_events(calls, contents, no_memory);
    default: return false;
    }
}

uint64_t call_events_one_of(const struct call_events_function *function)
{
    const uint64_t recorded = function->enters;
    if (!(function->flags & QUT_TRACE_FILE_CALL_THINNED) || !function->counted)
        return 0;
    return recorded ? function->counted / recorded + 1 + (function->counted % recorded >= recorded - recorded / 2)
                    : UINT64_MAX;
}

static int by_place(const void *one, const void *other)
{
    const struct qut_trace_file_call_loss *a = one, *b = other;
    if (a->thread != b->thread)
        return a->thread < b->thread ? -1 : 1;
    return (a->before_event > b->before_event) - (a->before_event < b->before_event);
}

bool call_events_settle(struct call_events *calls)
{
    if (calls->losses.count)
        qsort(calls->losses.items, calls->losses.count, sizeof *calls->losses.items, by_place);
    for (size_t i = 0; i < calls->functions.count; i++) {
        struct call_events_function *function = &calls->functions.items[i];
        if (function->module >= calls->modules.count)
            function->module = CALL_EVENTS_NONE;
        calls->counted += function->counted;
        if (*function->name || function->module != CALL_EVENTS_NONE)
            continue;
        char text[32];
        const int length = snprintf(text, sizeof text, "[function %u]", function->id);
        function->name = (const char *)call_events_keep(calls, text, (size_t)length);
        if (!function->name)
            return false;
    }
    for (size_t i = 0; i < calls->losses.count; i++) {
        struct call_events_thread *thread = &calls->threads.items[calls->losses.items[i].thread];
        const size_t blocks = thread->blocks.count;
        const struct call_events_block *last = blocks ? &thread->blocks.items[blocks - 1] : NULL;
        thread->ends_in_loss |= !last || calls->losses.items[i].before_event >= last->first_event + last->count;
    }
    for (size_t i = 0; i < calls->threads.count; i++) {
        const struct call_events_thread *thread = &calls->threads.items[i];
        calls->enters += thread->enters;
        calls->exits += thread->exits;
        calls->lost_enters += thread->lost_enters;
        calls->lost_exits += thread->lost_exits;
    }
    return true;
}

uint64_t call_events_ns(const struct call_events *calls, uint64_t ticks)
{
    const struct qut_trace_file_call_clock *clocks = calls->clocks.items;
    size_t low = 0, high = calls->clocks.count;
    if (high < 2) // as if a tick were a nanosecond
        return high ? clocks[0].ns + (ticks - clocks[0].ticks) : ticks;
    while (high - low > 1) {
        const size_t middle = low + (high - low) / 2;
        if (clocks[middle].ticks <= ticks)
            low = middle;
        else
            high = middle;
    }
    const size_t at = low + 1 < calls->clocks.count ? low : low - 1;
    const struct qut_trace_file_call_clock *one = &clocks[at], *next = one + 1;
    const double ratio = (double)(next->ns - one->ns) / (double)(next->ticks - one->ticks);
    const double distance = (double)(int64_t)(ticks - one->ticks) * ratio;
    const double ns = (double)INT64_MAX / 2;
    if (distance < -(double)one->ns) // what is spoiled does not go beyond what there is
        return 0;
    return distance > ns ? UINT64_MAX / 2
                         : one->ns + (uint64_t)(int64_t)(distance < 0 ? distance - 0.5 : distance + 0.5);
}
