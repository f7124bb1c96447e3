// SPDX-License-Identifier: Apache-2.0
// A thread's functions among the frames of its walk. The thread reads its own state: nothing of it changes meanwhile,
// but it may be half made (libqut/cpython/frames.c), so nothing is read that the kernel has not looked at first.
#include <string.h>

#include "libqut/host/host.h"
#include "libqut/modules/own_memory.h"
#include "libqut/os/task.h"
#include "libqut/python/inside.h"

static _Atomic uint64_t counts[PYTHON_COUNTS];

void python_add_count(enum python_count which)
{
    atomic_fetch_add_explicit(&counts[which], 1, memory_order_relaxed);
}

static uint64_t count_of(enum python_count which)
{
    return atomic_load_explicit(&counts[which], memory_order_relaxed);
}

struct python_sums python_sums(void)
{
    return (struct python_sums){
        .merged = count_of(PYTHON_MERGED),
        .uncertain = count_of(PYTHON_UNCERTAIN) + count_of(PYTHON_UNKNOWN) + count_of(PYTHON_BUSY),
    };
}

struct functions_rooms python_rooms = {.room_bytes = sizeof(struct python_room)};
static_assert(offsetof(struct python_room, room) == 0, "taken by its first part");

void python_after_fork(void)
{
    functions_rooms_after_fork(&python_rooms);
    functions_table_after_fork(&python_functions);
}

// ---- whether there is something to do

static bool knows(const struct python_known *known, uint32_t tid)
{
    for (size_t i = 0; i < known->runtime.thread_count; i++)
        if (known->threads[i].tid == (int32_t)tid)
            return true;
    return false;
}

static bool runs(const struct walk_noted_walk *notes, size_t count, uint64_t start, uint64_t end)
{
    for (size_t i = 0; i < count; i++)
        if (notes->pcs[i] - start < end - start)
            return true;
    return false;
}

// As far as it is one piece: compilers put what is rarely run, or most often, elsewhere. Debian's 3.14 runs nearly all
// of it outside of the symbol.
static bool runs_evaluator(const struct python_known *known, const struct walk_noted_walk *notes, size_t count)
{
    return runs(notes, count, known->runtime.evaluator_start, known->runtime.evaluator_end);
}

// ---- functions

static unsigned slot_of(uint64_t address)
{
    return (unsigned)((address >> 4) * UINT64_C(0x9e3779b97f4a7c15) >> 56);
}
static_assert(PYTHON_SLOTS == 256 && PYTHON_CODES_MAX < PYTHON_SLOTS, "a search ends");

// Its number among those that are looked at, from 1 on; 0: it is not there, and *slot is where it would be.
static unsigned code_at(const struct python_room *room, uint64_t address, unsigned *slot)
{
    for (*slot = slot_of(address); room->slots[*slot]; *slot = (*slot + 1) % PYTHON_SLOTS)
        if (room->codes[room->slots[*slot] - 1].address == address)
            return room->slots[*slot];
    return 0;
}

// The code objects of the frames from `first` on, each once, as many as there is room for. Where that ends.
static size_t gather_codes(struct python_room *room, size_t first, size_t code_bytes)
{
    const struct cpython_stack *stack = &room->stack;
    memset(room->slots, 0, sizeof room->slots);
    room->code_count = 0;
    for (size_t i = first; i < stack->frame_count; i++) {
        unsigned slot;
        if (code_at(room, stack->frames[i].code, &slot))
            continue;
        if (room->code_count == PYTHON_CODES_MAX)
            return i;
        unsigned number = room->code_count++;
        room->codes[number] = (struct cpython_code){.address = stack->frames[i].code};
        room->parts[number] = (struct os_part){.address = (uintptr_t)stack->frames[i].code, .size = code_bytes};
        room->slots[slot] = (uint8_t)(number + 1);
    }
    return stack->frame_count;
}

// What they are: in one system call, but where one cannot be read.
static void read_codes(const struct python_known *known, struct python_room *room, size_t code_bytes)
{
    uint8_t *heads = &room->heads[0][0];
    memset(room->is_code, 0, sizeof room->is_code);
    for (unsigned first = 0; first < room->code_count;) {
        size_t got = os_read_parts(&room->parts[first], room->code_count - first, heads + first * code_bytes);
        unsigned end = first + (unsigned)(got / code_bytes);
        for (unsigned i = first; i < end; i++) {
            struct cpython_code code;
            room->is_code[i] =
                cpython_code_of(&known->runtime, room->codes[i].address, heads + i * code_bytes, code_bytes, &code);
            if (room->is_code[i])
                room->codes[i] = code;
        }
        first = end + 1; // that one could not be read
    }
}

static void number_codes(const struct python_known *known, struct python_room *room)
{
    memset(room->numbers, 0, sizeof room->numbers);
    if (!known->runtime.layout.code_version)
        python_find_unversioned(known, room, room->mark);
    for (unsigned i = 0; i < room->code_count; i++) {
        if (!room->is_code[i])
            continue;
        if (cpython_is_internal(&room->codes[i]))
            room->numbers[i] = PYTHON_INTERNAL_NUMBER;
        else if (room->numbers[i] == PYTHON_NONE)
            room->numbers[i] = python_function_of(known, room, &room->codes[i], room->mark);
    }
}
static_assert(PYTHON_NONE == 0, "cleared");

static uint64_t pc_of(const struct python_known *known, struct python_room *room, const struct cpython_frame *frame,
                      bool *is_missing)
{
    unsigned slot, at = code_at(room, frame->code, &slot);
    uint32_t number = at ? room->numbers[at - 1] : PYTHON_NONE, line = 0;
    if (number == PYTHON_INTERNAL_NUMBER)
        return 0;
    if (number != PYTHON_NONE)
        line = python_line_of(known, room, &room->codes[at - 1], number, frame->instruction);
    *is_missing = *is_missing || number == PYTHON_NONE;
    return CPYTHON_NUMBER_BASE | (uint64_t)number << CPYTHON_LINE_BITS | line;
}

// The frames' pcs. Whether some are not known.
static bool know_functions(const struct python_known *known, struct python_room *room)
{
    const struct cpython_stack *stack = &room->stack;
    size_t code_bytes = cpython_code_bytes(&known->runtime);
    bool is_missing = false;
    for (size_t first = 0, end; first < stack->frame_count && code_bytes <= CPYTHON_CODE_BYTES; first = end) {
        end = gather_codes(room, first, code_bytes);
        read_codes(known, room, code_bytes);
        number_codes(known, room);
        for (size_t i = first; i < end; i++)
            room->pcs[i] = pc_of(known, room, &stack->frames[i], &is_missing);
    }
    return is_missing;
}

// ---- both

struct putting {
    struct functions_putting all;
    struct python_room *room;
};

static bool put(void *context, const struct cpython_item *item)
{
    struct putting *putting = context;
    const struct python_room *room = putting->room;
    if (!item->is_function) {
        const struct qut_frame *native = &room->native[item->index];
        return functions_put(&putting->all, native->lookup_pc, native->flags);
    }
    uint64_t pc = room->pcs[item->index];
    return pc == 0 || functions_put(&putting->all, pc, QUT_FRAME_DEX | (item->is_guessed ? QUT_FRAME_GUESSED : 0u));
}

static size_t merge_in(const struct python_known *known, struct python_room *room, struct walk_noted_walk *notes,
                       size_t count, bool is_uncertain)
{
    struct cpython_merging *merging = &room->merging;
    merging->runtime = &known->runtime;
    merging->text_start = known->text_start;
    merging->text_end = known->text_end;
    merging->taken = &room->stack;
    merging->native = room->native;
    merging->count = count;
    merging->is_whole = notes->end.reason == QUT_END_OUTERMOST;
    bool is_certain = cpython_place(merging);
    if (!is_certain || is_uncertain || room->stack.fault != CPYTHON_FINE)
        python_add_count(PYTHON_UNCERTAIN);
    // The thread may be in an interpreter that was not there when states were listed.
    if (!is_certain && os_now_ns() >= known->look_again_ns)
        python_want_look();
    if (room->stack.frame_count == 0 || merging->has_unplaced)
        return 0;
    struct putting putting = {{.notes = notes}, room};
    cpython_each_merged(merging, put, &putting);
    python_add_count(PYTHON_MERGED);
    return functions_put_all(&putting.all);
}

static size_t take_and_merge(const struct python_known *known, struct python_room *room, uint32_t tid,
                             struct walk_noted_walk *notes, size_t count, const struct arch_capture *capture,
                             const void *ucontext)
{
    struct cpython_stack *stack = &room->stack;
    stack->view = &room->view;
    stack->frames = room->frames;
    stack->groups = room->groups;
    cpython_take(&known->runtime, &modules_own_memory, (int32_t)tid, stack);
    if (stack->group_count == 0 && !runs_evaluator(known, notes, count))
        return 0;
    bool is_missing = know_functions(known, room);
    if (!walk_note_frames(notes, count, capture, ucontext, &room->cursor, room->native)) {
        python_add_count(PYTHON_UNCERTAIN);
        return 0;
    }
    return merge_in(known, room, notes, count, is_missing);
}

size_t python_merge(struct walk_noted_walk *notes, size_t count, const struct arch_capture *capture,
                    const void *ucontext, uint32_t mark)
{
    const struct python_known *known = atomic_load_explicit(&python_known, memory_order_seq_cst);
    if (!known || count == 0 || count > WALK_NOTED_MAX || !notes->modules)
        return 0;
    uint32_t tid = os_thread_id();
    bool is_known = knows(known, tid);
    // Whatever is the interpreter's may be an evaluator, of a thread that was not there when states were listed.
    bool has_evaluator = is_known || runs_evaluator(known, notes, count);
    if (!has_evaluator && !runs(notes, count, known->text_start, known->text_end))
        return 0;
    if (os_now_ns() >= (is_known ? known->look_each_ns : known->look_again_ns))
        python_want_look();
    if (!has_evaluator)
        return 0;
    struct python_room *room = is_known ? functions_room_take(&python_rooms, tid) : NULL;
    if (!room) {
        python_add_count(is_known ? PYTHON_BUSY : PYTHON_UNKNOWN);
        return 0;
    }
    room->mark = mark;
    size_t merged = take_and_merge(known, room, tid, notes, count, capture, ucontext);
    functions_room_give(&room->room);
    return merged;
}
