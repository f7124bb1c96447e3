// SPDX-License-Identifier: Apache-2.0
// Two ways through the events. The first finds which entries have an exit: at one slot, an exit belongs to the entry
// before it, whatever else happened, since what is at a slot must be entered again before it can be left again. The
// second keeps the stacks (stacks.c), which then need not guess whether a call that is further in is gone, or waits on
// a stack of its own.
#include "tracer/call_times/walk.h"

#include <stdlib.h>

#include "tracer/call_times/inside.h"

const char *call_times_how_name(enum call_times_how how)
{
    static const char *const names[] = {[CALL_TIMES_RETURNED] = "returned",
                                        [CALL_TIMES_TAIL] = "tail call",
                                        [CALL_TIMES_UNWOUND] = "unwound",
                                        [CALL_TIMES_OPEN] = "open",
                                        [CALL_TIMES_LOST] = "lost"};
    return names[how];
}

struct fates {
    uint8_t *bits; // by the entry's number: whether its exit is there
};

static bool find_fates(const struct call_events *calls, struct fates *fates)
{
    struct call_times_slots slots = {0};
    struct call_times_merged *merged = call_times_merged_begin(calls);
    struct call_times_event event;
    bool has_memory = merged != NULL;
    uint64_t number = 0;
    fates->bits = calloc((size_t)(calls->enters / 8) + 1, 1);
    if (!fates->bits)
        has_memory = false;
    while (has_memory && call_times_merged_next(merged, &event)) {
        const uint64_t slot = event.event.slot, function = event.event.function;
        if (!event.event.is_exit) {
            has_memory = call_times_slots_set(&slots, slot, number << QUT_TRACE_FILE_CALL_ID_BITS | function);
            number++;
            continue;
        }
        const uint64_t *open = call_times_slots_find(&slots, slot);
        if (open && (*open & ((1u << QUT_TRACE_FILE_CALL_ID_BITS) - 1)) == function) {
            const uint64_t which = *open >> QUT_TRACE_FILE_CALL_ID_BITS;
            fates->bits[which / 8] |= (uint8_t)(1u << which % 8);
        }
        if (open)
            call_times_slots_remove(&slots, slot);
    }
    if (merged)
        call_times_merged_end(merged);
    call_times_slots_free(&slots);
    return has_memory;
}

static void keep_stacks(struct call_times_stacks *stacks, struct call_times_merged *merged, const struct fates *fates)
{
    struct call_times_account *account = stacks->account;
    const struct call_events *calls = stacks->calls;
    struct call_times_event event = {.ns = calls->told.begin_ns};
    while (!stacks->no_memory && call_times_merged_next(merged, &event)) {
        const struct call_events_thread *thread = &calls->threads.items[event.thread];
        if (!account->enters && !account->exits)
            account->begin_ns = event.ns;
        stacks->losses[event.thread] += event.event.after_loss;
        if (event.event.is_exit) {
            account->exits++;
            call_times_stacks_exit(stacks, &event);
        } else {
            const uint64_t number = account->enters++;
            call_times_stacks_enter(stacks, &event, number, fates->bits[number / 8] >> number % 8 & 1);
        }
        if (!event.is_last)
            continue;
        stacks->losses[event.thread] += thread->ends_in_loss;
        if (thread->end_ns != UINT64_MAX)
            call_times_stacks_thread_ends(stacks, event.thread, thread->end_ns > event.ns ? thread->end_ns : event.ns);
    }
    account->end_ns = event.ns > calls->told.end_ns ? event.ns : calls->told.end_ns;
    call_times_stacks_end(stacks, account->end_ns);
}

int call_times_walk(const struct call_events *calls, const struct call_times_visitor *visitor,
                    struct call_times_account *account, struct base_error *error)
{
    struct fates fates = {0};
    struct call_times_stacks stacks = {.calls = calls, .visitor = visitor, .account = account};
    struct call_times_merged *merged = NULL;
    *account = (struct call_times_account){0};
    bool has_memory = find_fates(calls, &fates) && call_times_stacks_begin(&stacks);
    if (has_memory && (merged = call_times_merged_begin(calls)) != NULL) {
        keep_stacks(&stacks, merged, &fates);
        call_times_merged_end(merged);
    }
    has_memory = has_memory && merged && !stacks.no_memory;
    call_times_stacks_free(&stacks);
    free(fates.bits);
    return has_memory
               ? 0
               : base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "no memory for %zu threads' calls", calls->threads.count);
}
