// SPDX-License-Identifier: Apache-2.0
// The calls that a block's code knows to be open: what both the writer and the reader of CALL_EVENTS keep, by the same
// rules (formats/qut_trace_file.md).
#ifndef TRACER_CALL_EVENTS_OPEN_LIST_INLINE_H
#define TRACER_CALL_EVENTS_OPEN_LIST_INLINE_H

#include "tracer/call_events/events.h"

enum { CALL_SLOT_BYTES = 8 }; // what slots are multiples of
enum { CALL_LIST_REACH_BYTES = 64 << 10, CALL_LIST_MASK = QUT_TRACE_FILE_CALL_OPEN_MAX - 1 };
static_assert((QUT_TRACE_FILE_CALL_OPEN_MAX & CALL_LIST_MASK) == 0, "a power of two");

struct call_list {
    struct call_list_item {
        uint64_t slot;
        uint32_t id;
    } items[QUT_TRACE_FILE_CALL_OPEN_MAX]; // a ring
    uint32_t end;                          // where the next one goes, & CALL_LIST_MASK
    uint32_t count;
    uint64_t last_slot; // of the event before
};

static inline void call_list_clear(struct call_list *list)
{
    list->end = list->count = 0;
    list->last_slot = 0;
}

static inline const struct call_list_item *call_list_last(const struct call_list *list)
{
    return list->count ? &list->items[(list->end - 1) & CALL_LIST_MASK] : NULL;
}

static inline void call_list_drop(struct call_list *list)
{
    list->end--;
    list->count--;
}

static inline uint64_t call_list_reference(const struct call_list *list)
{
    const struct call_list_item *last = call_list_last(list);
    return last ? last->slot : list->last_slot;
}

static inline void call_list_enter(struct call_list *list, uint32_t id, uint64_t slot)
{
    for (const struct call_list_item *last;
         (last = call_list_last(list)) != NULL && last->slot <= slot && slot - last->slot <= CALL_LIST_REACH_BYTES;)
        call_list_drop(list);
    list->items[list->end++ & CALL_LIST_MASK] = (struct call_list_item){slot, id};
    if (list->count < QUT_TRACE_FILE_CALL_OPEN_MAX)
        list->count++;
    list->last_slot = slot;
}

static inline void call_list_exit_last(struct call_list *list)
{
    list->last_slot = call_list_last(list)->slot;
    call_list_drop(list);
}

static inline void call_list_exit(struct call_list *list, uint64_t slot)
{
    uint32_t behind = 0;
    list->last_slot = slot;
    while (behind < list->count && list->items[(list->end - 1 - behind) & CALL_LIST_MASK].slot != slot)
        behind++;
    if (behind == list->count)
        return;
    list->end -= behind + 1;
    list->count -= behind + 1;
}

#endif
