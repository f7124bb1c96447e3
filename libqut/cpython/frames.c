// SPDX-License-Identifier: Apache-2.0
// The frames of a thread. It may have been stopped between any two instructions of the evaluator, so what is innermost
// may be half made, or half given up. Where these moments are, by version:
//
//   3.11, 3.12  an evaluator's record is linked before it names its frame: for some instructions the frame it names is
//               what stood on the stack there, mostly an older frame. Such a one does not lead to the frame that the
//               record before has, or it lies in memory that has been given up, behind `top`
//   3.11        a frame is given up before its caller takes its place: it lies behind `top`, and the rest is right
//   3.13        one store makes, and one ends, a frame
#include "libqut/cpython/inside.h"

enum {
    PAGE_BYTES = CPYTHON_PAGE_BYTES,
    FRAME_BYTES = 80,         // what all versions have of an interpreter's frame
    FRAME_OBJECT_BYTES = 112, // of a frame object
};

// Frames lie near each other: memory is read by pages, which are kept as long as the thread stands still. Those that
// the thread needed last time are read first, all at once.
static void view_begin(struct cpython_view *view, const struct elf_art_memory *memory,
                       const uint64_t pages[CPYTHON_PAGES])
{
    struct elf_art_piece pieces[CPYTHON_PAGES];
    size_t count = 0;
    view->memory = memory;
    view->next = 0;
    for (unsigned i = 0; i < CPYTHON_PAGES; i++) {
        view->starts[i] = 0;
        if (pages[i])
            pieces[count++] = (struct elf_art_piece){.address = pages[i], .bytes = view->bytes[i], .size = PAGE_BYTES};
    }
    elf_art_read_pieces(memory, pieces, count);
    for (size_t i = 0, piece = 0; i < CPYTHON_PAGES; i++)
        if (pages[i] && pieces[piece++].got == PAGE_BYTES)
            view->starts[i] = pages[i];
}

static const uint8_t *view_page(struct cpython_view *view, uint64_t start)
{
    for (unsigned i = 0; i < CPYTHON_PAGES; i++)
        if (view->starts[i] == start)
            return view->bytes[i];
    unsigned i = view->next;
    for (unsigned tried = 0; tried < CPYTHON_PAGES && view->starts[i]; tried++) // an empty place, if there is one
        i = (i + 1) % CPYTHON_PAGES;
    view->next = (i + 1) % CPYTHON_PAGES;
    view->starts[i] = 0;
    if (!elf_art_read(view->memory, start, view->bytes[i], PAGE_BYTES))
        return NULL;
    view->starts[i] = start;
    return view->bytes[i];
}

static bool view_read(struct cpython_view *view, uint64_t address, void *bytes, size_t size)
{
    uint8_t *to = bytes;
    while (size > 0) {
        uint64_t start = address & ~(uint64_t)(PAGE_BYTES - 1);
        size_t into = (size_t)(address - start), some = size < PAGE_BYTES - into ? size : PAGE_BYTES - into;
        const uint8_t *page = start ? view_page(view, start) : NULL;
        if (page)
            memcpy(to, page + into, some);
        else if (!elf_art_read(view->memory, address, to, some))
            return false;
        address += some;
        to += some;
        size -= some;
    }
    return true;
}

static bool read_word(struct cpython_view *view, uint64_t address, uint64_t *word)
{
    return view_read(view, address, word, sizeof *word);
}

struct taking {
    const struct cpython_layout *layout;
    struct cpython_stack *stack;
    uint64_t chunk, top, limit; // of the memory that frames lie in
    // A list that comes back to where it was.
    uint64_t mark, steps;
    struct cpython_view *view;
};

static bool comes_back(struct taking *taking, uint64_t address)
{
    if (address == taking->mark)
        return true;
    if ((taking->steps & (taking->steps + 1)) == 0)
        taking->mark = address;
    taking->steps++;
    return false;
}

static enum cpython_fault add_frame(struct cpython_stack *stack, uint64_t code, uint64_t instruction)
{
    if (stack->frame_count == CPYTHON_FRAMES_MAX)
        return CPYTHON_TOO_MANY;
    stack->frames[stack->frame_count++] = (struct cpython_frame){.code = code, .instruction = instruction};
    return CPYTHON_FINE;
}

// Of the frames from `first` on.
static enum cpython_fault add_group(struct cpython_stack *stack, uint64_t anchor, size_t first)
{
    if (stack->group_count == CPYTHON_GROUPS_MAX)
        return CPYTHON_TOO_MANY;
    stack->groups[stack->group_count++] = (struct cpython_group){.anchor = anchor,
                                                                 .first = (uint32_t)first,
                                                                 .count = (uint32_t)(stack->frame_count - first),
                                                                 .state = stack->state_count};
    return CPYTHON_FINE;
}

// ---- 3.8 to 3.10

static enum cpython_fault take_objects(struct taking *taking, uint64_t frame)
{
    const struct cpython_layout *layout = taking->layout;
    struct cpython_stack *stack = taking->stack;
    uint8_t bytes[FRAME_OBJECT_BYTES];
    while (frame != 0) {
        if (!cpython_is_pointer(frame) || comes_back(taking, frame))
            return CPYTHON_TORN;
        if (!view_read(taking->view, frame, bytes, sizeof bytes))
            return CPYTHON_UNREADABLE;
        int64_t last = cpython_half(bytes, layout->frame_instruction);
        last *= layout->lines == CPYTHON_LINES_RANGES ? 2 : 1; // 3.10 counts units
        size_t first = stack->frame_count;
        enum cpython_fault fault =
            add_frame(stack, cpython_word(bytes, layout->frame_code), last > 0 ? (uint64_t)last : 0);
        if (fault == CPYTHON_FINE)
            fault = add_group(stack, 0, first);
        if (fault != CPYTHON_FINE)
            return fault;
        frame = cpython_word(bytes, layout->frame_previous);
    }
    return CPYTHON_FINE;
}

// ---- from 3.11 on

struct frame {
    uint64_t code, instruction, previous;
    uint8_t owner;
    bool is_entry;
};

static enum cpython_fault read_frame(struct taking *taking, uint64_t address, struct frame *frame)
{
    const struct cpython_layout *layout = taking->layout;
    uint8_t bytes[FRAME_BYTES];
    if (!cpython_is_pointer(address) || comes_back(taking, address))
        return CPYTHON_TORN;
    if (!view_read(taking->view, address, bytes, sizeof bytes))
        return CPYTHON_UNREADABLE;
    *frame = (struct frame){
        .code = cpython_word(bytes, layout->frame_code),
        .instruction = cpython_word(bytes, layout->frame_instruction),
        .previous = cpython_word(bytes, layout->frame_previous),
        .owner = bytes[layout->frame_owner],
        .is_entry = layout->frame_entry && bytes[layout->frame_entry],
    };
    return CPYTHON_FINE;
}

// A generator's frame that others run on top of is being executed: its state, the last of four bytes in the word before
// the frame, says so. Seen in 3.11: an evaluator that was stopped before it had set whom its frame returns to, and the
// old word led to a generator that was not running.
static bool is_suspended(struct taking *taking, uint64_t address)
{
    enum { STATE_BEFORE_FRAME = 5 };
    uint8_t state;
    return !view_read(taking->view, address - STATE_BEFORE_FRAME, &state, sizeof state) ||
           state != taking->layout->generator_running;
}

// In memory that has been given up.
static bool is_given_up(const struct taking *taking, uint64_t address)
{
    return address >= taking->top && address < taking->limit && address > taking->chunk;
}

// The frames from `address` to the one that C called; *next is what that one returns to. *shim: the frame of no
// function behind it, 0 where the version has none.
static enum cpython_fault take_group(struct taking *taking, uint64_t address, bool is_innermost, uint64_t *next,
                                     uint64_t *shim)
{
    bool has_shims = taking->layout->form != CPYTHON_ENTRY_FRAMES;
    bool may_be_old = is_innermost, is_first = true;
    struct frame frame;
    *shim = 0;
    for (;;) {
        enum cpython_fault fault = read_frame(taking, address, &frame);
        if (fault != CPYTHON_FINE)
            return fault;
        if (frame.owner == CPYTHON_OWNED_BY_GENERATOR && !(is_innermost && is_first) && is_suspended(taking, address))
            return CPYTHON_TORN;
        is_first = false;
        if (has_shims && frame.owner == CPYTHON_OWNED_BY_STACK) {
            *shim = address;
            *next = frame.previous;
            return CPYTHON_FINE;
        }
        may_be_old = may_be_old && is_given_up(taking, address);
        if (!may_be_old) {
            uint64_t code = frame.code & ~(uint64_t)taking->layout->executable_tag;
            fault = add_frame(taking->stack, code, frame.instruction);
            if (fault != CPYTHON_FINE)
                return fault;
        }
        *next = address = frame.previous;
        if (!has_shims && frame.is_entry)
            return CPYTHON_FINE;
    }
}

// One evaluator's, by its record. `expected`: the frame of the record before.
static enum cpython_fault take_recorded(struct taking *taking, uint64_t record, uint64_t frame, uint64_t expected,
                                        bool is_innermost)
{
    struct cpython_stack *stack = taking->stack;
    size_t first = stack->frame_count;
    uint64_t next = 0, shim;
    enum cpython_fault fault = take_group(taking, frame, is_innermost, &next, &shim);
    if (fault == CPYTHON_FINE && next != expected)
        fault = CPYTHON_TORN;
    if (fault == CPYTHON_TOO_MANY) {
        add_group(stack, record, first);
        return fault;
    }
    if (fault != CPYTHON_FINE) {
        stack->frame_count = first;
        if (!is_innermost)
            return fault;
        // The record does not name its frame yet. Its evaluator is known all the same.
        stack->is_entering = true;
        taking->mark = taking->steps = 0;
    }
    return add_group(stack, record, first);
}

static enum cpython_fault take_records(struct taking *taking, uint64_t record, uint64_t root)
{
    const struct cpython_layout *layout = taking->layout;
    bool is_innermost = true;
    uint64_t frame, previous, expected;
    if (record == root)
        return CPYTHON_FINE;
    if (!cpython_is_pointer(record))
        return CPYTHON_TORN;
    if (!read_word(taking->view, record + layout->record_frame, &frame))
        return CPYTHON_UNREADABLE;
    while (record != root) {
        if (!read_word(taking->view, record + layout->record_previous, &previous))
            return CPYTHON_UNREADABLE;
        if (!cpython_is_pointer(previous) || previous == record)
            return CPYTHON_TORN;
        if (!read_word(taking->view, previous + layout->record_frame, &expected))
            return CPYTHON_UNREADABLE;
        enum cpython_fault fault = take_recorded(taking, record, frame, expected, is_innermost);
        if (fault != CPYTHON_FINE)
            return fault;
        record = previous;
        frame = expected;
        is_innermost = false;
    }
    return CPYTHON_FINE;
}

// `base`: the thread's own frame of no function, behind all others.
static enum cpython_fault take_shims(struct taking *taking, uint64_t frame, uint64_t base)
{
    struct cpython_stack *stack = taking->stack;
    while (frame != 0 && frame != base) {
        size_t first = stack->frame_count;
        uint64_t next = 0, shim;
        enum cpython_fault fault = take_group(taking, frame, false, &next, &shim);
        if (fault == CPYTHON_TOO_MANY) { // its evaluator is further out
            add_group(stack, 0, first);
            return fault;
        }
        if (fault == CPYTHON_FINE)
            fault = add_group(stack, shim, first);
        if (fault != CPYTHON_FINE) {
            stack->frame_count = first;
            return fault;
        }
        frame = next;
    }
    return CPYTHON_FINE;
}

static enum cpython_fault take_state(struct taking *taking, uint64_t state, const uint8_t *bytes)
{
    const struct cpython_layout *layout = taking->layout;
    uint64_t frame = cpython_word(bytes, layout->thread_frame);
    taking->mark = taking->steps = 0;
    if (layout->thread_chunk) {
        taking->chunk = cpython_word(bytes, layout->thread_chunk);
        taking->top = cpython_word(bytes, layout->thread_top);
        taking->limit = cpython_word(bytes, layout->thread_limit);
    }
    switch ((enum cpython_form)layout->form) {
    case CPYTHON_FRAME_OBJECTS: return take_objects(taking, frame);
    case CPYTHON_ENTRY_FRAMES:
    case CPYTHON_RECORDED_SHIMS: return take_records(taking, frame, state + layout->thread_root_record);
    case CPYTHON_SHIMS:
        return take_shims(taking, frame,
                          layout->thread_base_frame ? cpython_word(bytes, layout->thread_base_frame) : 0);
    }
    return CPYTHON_UNKNOWN_VERSION;
}

// Whether a state is still the thread's that it was when states were listed.
static bool is_still(const struct taking *taking, const struct cpython_thread *known, const struct cpython_thread *now)
{
    return now->interpreter == known->interpreter && now->descriptor == known->descriptor &&
           now->native == known->native &&
           (taking->layout->thread_native_id ||
            cpython_thread_of_descriptor(taking->view->memory, now->descriptor) == known->tid);
}

void cpython_take(const struct cpython_runtime *runtime, const struct elf_art_memory *memory, int32_t tid,
                  struct cpython_stack *stack)
{
    struct taking taking = {.layout = &runtime->layout, .stack = stack, .view = stack->view};
    if (stack->pages_tid != tid)
        memset(stack->pages, 0, sizeof stack->pages);
    view_begin(taking.view, memory, stack->pages);
    stack->fault = CPYTHON_NO_THREAD;
    stack->frame_count = stack->group_count = 0;
    stack->state_count = 0;
    stack->is_entering = false;
    for (size_t i = 0; i < runtime->thread_count && stack->state_count < CPYTHON_STATES_MAX; i++) {
        const struct cpython_thread *known = &runtime->threads[i];
        uint8_t bytes[CPYTHON_STATE_BYTES];
        struct cpython_thread now;
        if (known->tid != tid)
            continue;
        if (view_read(taking.view, known->state, bytes, sizeof bytes))
            cpython_state_of(&runtime->layout, known->state, bytes, &now);
        else if (!cpython_read_state(&runtime->layout, memory, known->state, bytes, &now))
            continue;
        if (!is_still(&taking, known, &now))
            continue;
        enum cpython_fault fault = take_state(&taking, known->state, bytes);
        if (stack->state_count++ == 0 || fault != CPYTHON_FINE)
            stack->fault = fault;
        if (fault == CPYTHON_TOO_MANY)
            break;
    }
    memcpy(stack->pages, taking.view->starts, sizeof stack->pages);
    stack->pages_tid = tid;
}
