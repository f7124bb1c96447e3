// SPDX-License-Identifier: Apache-2.0
// Which stack an event is on. Where stacks are, events do not say: their slots do. A slot that is open says it exactly.
// Else it is the stack whose next slot further out is nearest, among the one that the thread is on and those that
// nobody is on (coroutines that wait). What is further in on that stack is over; but if the first way through the
// events found that some of it returns later, it was no part of this stack: it becomes one of its own, that waits.
#include <stdlib.h>

#include "tracer/call_times/inside.h"

enum {
    WAITING_MAX = 1 << 17,             // stacks; of more, what is open there is given up
    REACH_BYTES = 8 << 20,             // of one call's frames that are not traced, at most: a usual stack's size
    REACH_OF_WAITING_BYTES = 64 << 10, // the same, where the stack is one of several that may be near
};

bool call_times_stacks_begin(struct call_times_stacks *stacks)
{
    const size_t count = stacks->calls->threads.count + 1;
    stacks->stack_of = malloc(count * sizeof *stacks->stack_of);
    stacks->losses = calloc(count, sizeof *stacks->losses);
    for (size_t i = 0; stacks->stack_of && i < count; i++)
        stacks->stack_of[i] = CALL_TIMES_NO_STACK;
    return stacks->stack_of && stacks->losses;
}

void call_times_stacks_free(struct call_times_stacks *stacks)
{
    for (size_t i = 0; i < stacks->all.count; i++) {
        base_vector_free(&stacks->all.items[i]->open.vector);
        free(stacks->all.items[i]);
    }
    base_vector_free(&stacks->all.vector);
    base_vector_free(&stacks->unused.vector);
    base_vector_free(&stacks->waiting.vector);
    call_times_slots_free(&stacks->slots);
    free(stacks->stack_of);
    free(stacks->losses);
}

static void leave(struct call_times_stacks *stacks, struct call_times_stack *stack, enum call_times_how how,
                  uint64_t ns)
{
    struct call_times_call *call = &stack->open.items[--stack->open.count];
    struct call_times_call *outer = stack->open.count ? call - 1 : NULL;
    const bool is_lost = how != CALL_TIMES_RETURNED && stacks->losses[call->thread] != call->losses;
    call->end_ns = ns > call->begin_ns ? ns : call->begin_ns;
    call->how = is_lost ? CALL_TIMES_LOST : how;
    stacks->account->how[call->how]++;
    call_times_slots_remove(&stacks->slots, call->slot);
    stack->home = call->slot;
    if (outer)
        outer->callees_ns += call->end_ns - call->begin_ns;
    if (stacks->visitor->leave)
        stacks->visitor->leave(stacks->visitor->context, call, outer);
}

// ---- stacks that nobody is on

static uint64_t innermost_slot(const struct call_times_stacks *stacks, uint32_t which)
{
    const struct call_times_stack *stack = stacks->all.items[which];
    return stack->open.items[stack->open.count - 1].slot;
}

// The first one that waits whose innermost slot is not below this.
static size_t waiting_from(const struct call_times_stacks *stacks, uint64_t slot)
{
    size_t low = 0, high = stacks->waiting.count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (innermost_slot(stacks, stacks->waiting.items[middle]) < slot)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void give_up(struct call_times_stacks *stacks, uint32_t which)
{
    struct call_times_stack *stack = stacks->all.items[which];
    while (stack->open.count)
        leave(stacks, stack, CALL_TIMES_LOST, 0);
    stacks->unused.items[stacks->unused.count++] = which;
}

static void wait(struct call_times_stacks *stacks, uint32_t which)
{
    if (stacks->waiting.count == WAITING_MAX) {
        give_up(stacks, which);
        return;
    }
    const size_t at = waiting_from(stacks, innermost_slot(stacks, which));
    if (!BASE_RESERVE(&stacks->waiting, 1)) {
        stacks->no_memory = true;
        return;
    }
    uint32_t *items = stacks->waiting.items;
    memmove(items + at + 1, items + at, (stacks->waiting.count++ - at) * sizeof *items);
    items[at] = which;
    stacks->all.items[which]->is_waiting = true;
}

static void wait_no_more(struct call_times_stacks *stacks, uint32_t which)
{
    const size_t at = waiting_from(stacks, innermost_slot(stacks, which));
    uint32_t *items = stacks->waiting.items;
    memmove(items + at, items + at + 1, (--stacks->waiting.count - at) * sizeof *items);
    stacks->all.items[which]->is_waiting = false;
}

static uint32_t new_stack(struct call_times_stacks *stacks)
{
    if (stacks->unused.count) {
        const uint32_t which = stacks->unused.items[--stacks->unused.count];
        stacks->all.items[which]->home = 0;
        stacks->all.items[which]->number = stacks->numbers++;
        return which;
    }
    struct call_times_stack *stack = calloc(1, sizeof *stack);
    struct call_times_stack **place = stack ? BASE_ADD(&stacks->all) : NULL;
    // So that giving one back cannot fail.
    if (!place || !BASE_RESERVE(&stacks->unused, stacks->all.count - stacks->unused.count)) {
        if (place)
            stacks->all.count--;
        free(stack);
        stacks->no_memory = true;
        return CALL_TIMES_NO_STACK;
    }
    stack->thread = CALL_EVENTS_NONE;
    stack->number = stacks->numbers++;
    *place = stack;
    return (uint32_t)stacks->all.count - 1;
}

static void leave_stack(struct call_times_stacks *stacks, uint32_t thread)
{
    const uint32_t which = stacks->stack_of[thread];
    if (which == CALL_TIMES_NO_STACK)
        return;
    stacks->stack_of[thread] = CALL_TIMES_NO_STACK;
    stacks->all.items[which]->thread = CALL_EVENTS_NONE;
    if (stacks->all.items[which]->open.count)
        wait(stacks, which);
    else
        stacks->unused.items[stacks->unused.count++] = which;
}

static void go_to(struct call_times_stacks *stacks, uint32_t thread, uint32_t which)
{
    if (which == CALL_TIMES_NO_STACK || stacks->stack_of[thread] == which)
        return;
    struct call_times_stack *stack = stacks->all.items[which];
    leave_stack(stacks, thread);
    if (stack->is_waiting)
        wait_no_more(stacks, which);
    if (stack->thread != CALL_EVENTS_NONE)
        stacks->stack_of[stack->thread] = CALL_TIMES_NO_STACK;
    stack->thread = thread;
    stacks->stack_of[thread] = which;
}

// ---- calls of a stack

// How many of its calls are at this slot or further out.
static size_t count_out(const struct call_times_stack *stack, uint64_t slot)
{
    size_t low = 0, high = stack->open.count;
    if (high && stack->open.items[high - 1].slot >= slot) // as it is nearly always
        return high;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (stack->open.items[middle].slot >= slot)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

// The first call from `kept` on that is no part of this stack, since it, or one further in, returns later. Those before
// it were unwound: where the one stack ends and the other begins is taken to be the widest gap. All of them: none is.
static size_t first_elsewhere(const struct call_times_stack *stack, size_t kept)
{
    const struct call_times_call *open = stack->open.items;
    size_t returns = kept, widest = kept;
    while (returns < stack->open.count && !open[returns].will_return)
        returns++;
    if (returns == stack->open.count || !kept)
        return returns == stack->open.count ? returns : 0;
    for (size_t i = kept; i <= returns; i++)
        if (open[i - 1].slot - open[i].slot > open[widest - 1].slot - open[widest].slot)
            widest = i;
    return widest;
}

// Calls from that one on become a stack that waits.
static void split(struct call_times_stacks *stacks, uint32_t which, size_t from)
{
    const uint32_t made = new_stack(stacks);
    if (made == CALL_TIMES_NO_STACK)
        return;
    struct call_times_stack *stack = stacks->all.items[which], *other = stacks->all.items[made];
    const size_t count = stack->open.count - from;
    if (!BASE_RESERVE(&other->open, count)) {
        stacks->no_memory = true;
        return;
    }
    memcpy(other->open.items, stack->open.items + from, count * sizeof *other->open.items);
    other->open.count = count;
    stack->open.count = from;
    for (size_t i = 0; i < count; i++) {
        other->open.items[i].depth = (uint32_t)i;
        other->open.items[i].stack = other->number;
        *call_times_slots_find(&stacks->slots, other->open.items[i].slot) = made;
    }
    wait(stacks, made);
}

// Ends what is further in than the outermost `kept`, or finds that it is elsewhere. How many ended.
static size_t end_inner(struct call_times_stacks *stacks, uint32_t which, size_t kept, uint64_t ns)
{
    struct call_times_stack *stack = stacks->all.items[which];
    if (stack->open.count == kept)
        return 0;
    const size_t elsewhere = first_elsewhere(stack, kept), ended = elsewhere - kept;
    if (elsewhere < stack->open.count)
        split(stacks, which, elsewhere);
    while (stack->open.count > kept && !stacks->no_memory)
        leave(stacks, stack, CALL_TIMES_UNWOUND, ns);
    return ended;
}

// ---- events

// The stack that a thread is on when it enters a function at a slot where nothing is open; what is further in there has
// ended.
static uint32_t find_stack(struct call_times_stacks *stacks, const struct call_times_event *event)
{
    const uint64_t slot = event->event.slot;
    const uint32_t own = stacks->stack_of[event->thread];
    const struct call_times_stack *stack = own == CALL_TIMES_NO_STACK ? NULL : stacks->all.items[own];
    const size_t out = stack ? count_out(stack, slot) : 0, waiting = waiting_from(stacks, slot);
    const uint64_t distance = out                           ? stack->open.items[out - 1].slot - slot
                              : !stack || stack->open.count ? UINT64_MAX
                              : stack->home > slot          ? stack->home - slot
                                                            : slot - stack->home;
    if (waiting < stacks->waiting.count) {
        const uint32_t other = stacks->waiting.items[waiting];
        const uint64_t to_other = innermost_slot(stacks, other) - slot;
        if (to_other < distance && to_other <= REACH_OF_WAITING_BYTES)
            return other;
    }
    if (stack && !stack->open.count)
        return own;
    if (!stack)
        return new_stack(stacks);
    if (out && distance <= REACH_BYTES) {
        end_inner(stacks, own, out, event->ns);
        return own;
    }
    // Further out than all that is open.
    if (!out && slot - stack->open.items[0].slot <= REACH_BYTES && first_elsewhere(stack, 0) != 0) {
        end_inner(stacks, own, 0, event->ns);
        return own;
    }
    return new_stack(stacks);
}

void call_times_stacks_enter(struct call_times_stacks *stacks, const struct call_times_event *event, uint64_t number,
                             bool will_return)
{
    const uint64_t slot = event->event.slot, *known = call_times_slots_find(&stacks->slots, slot);
    uint32_t which;
    if (known) {
        // What is there has been left, by a jump to this function; or it was unwound, and something has been called
        // anew. Files that do not say which are guessed at.
        which = (uint32_t)*known;
        struct call_times_stack *stack = stacks->all.items[which];
        go_to(stacks, event->thread, which);
        const size_t ended = end_inner(stacks, which, count_out(stack, slot), event->ns);
        const struct call_times_call *last = &stack->open.items[stack->open.count - 1];
        const bool tells_tails = stacks->calls->told.flags & QUT_TRACE_FILE_CALLS_TAILS;
        const bool is_tail = tells_tails ? event->event.is_tail : !ended && last->function != event->event.function;
        leave(stacks, stack, is_tail ? CALL_TIMES_TAIL : CALL_TIMES_UNWOUND, event->ns);
    } else {
        which = find_stack(stacks, event);
        go_to(stacks, event->thread, which);
    }
    struct call_times_stack *stack = which == CALL_TIMES_NO_STACK ? NULL : stacks->all.items[which];
    struct call_times_call *call = stack ? BASE_ADD(&stack->open) : NULL;
    if (!call || !call_times_slots_set(&stacks->slots, slot, which)) {
        stacks->no_memory = true;
        return;
    }
    *call = (struct call_times_call){.number = number,
                                     .begin_ns = event->ns,
                                     .slot = slot,
                                     .function = event->event.function,
                                     .thread = event->thread,
                                     .depth = (uint32_t)stack->open.count - 1,
                                     .stack = stack->number,
                                     .losses = stacks->losses[event->thread],
                                     .will_return = will_return};
    if (stacks->visitor->enter)
        stacks->visitor->enter(stacks->visitor->context, call, stack->open.count > 1 ? call - 1 : NULL);
}

void call_times_stacks_exit(struct call_times_stacks *stacks, const struct call_times_event *event)
{
    const uint64_t *known = call_times_slots_find(&stacks->slots, event->event.slot);
    if (!known) {
        stacks->account->exits_alone++;
        return;
    }
    const uint32_t which = (uint32_t)*known;
    struct call_times_stack *stack = stacks->all.items[which];
    go_to(stacks, event->thread, which);
    end_inner(stacks, which, count_out(stack, event->event.slot), event->ns);
    const struct call_times_call *last = &stack->open.items[stack->open.count - 1];
    const bool is_its = last->function == event->event.function && last->will_return;
    stacks->account->exits_alone += !is_its;
    leave(stacks, stack, is_its ? CALL_TIMES_RETURNED : CALL_TIMES_UNWOUND, event->ns);
}

void call_times_stacks_thread_ends(struct call_times_stacks *stacks, uint32_t thread, uint64_t ns)
{
    const uint32_t which = stacks->stack_of[thread];
    if (which == CALL_TIMES_NO_STACK)
        return;
    end_inner(stacks, which, 0, ns);
    leave_stack(stacks, thread);
}

void call_times_stacks_end(struct call_times_stacks *stacks, uint64_t ns)
{
    for (size_t i = 0; i < stacks->all.count; i++)
        while (stacks->all.items[i]->open.count)
            leave(stacks, stacks->all.items[i], CALL_TIMES_OPEN, ns);
}
