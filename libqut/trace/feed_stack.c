// SPDX-License-Identifier: Apache-2.0
// Addresses -> nodes. Only what has changed since the thread's last stack is looked up:
//
//   the walk's memory   remembered frames carry their nodes with them (tiers.h): nothing is compared
//   the last stack      else its pcs are compared, from the outermost frame on
//
#include "libqut/javascript/javascript.h"
#include "libqut/modules/jit.h"
#include "libqut/python/python.h"
#include "libqut/runtime/tiers.h"
#include "libqut/trace/feed.h"

static_assert(CPYTHON_NUMBER_BASE >> QUT_TRACE_NUMBER_SHIFT == QUT_TRACE_NUMBER_PYTHON, "as readers know it");
static_assert(V8_NUMBER_BASE >> QUT_TRACE_NUMBER_SHIFT == QUT_TRACE_NUMBER_SCRIPT, "as readers know it");

// Frames with one of these are no plain callers.
enum { SPECIAL = QUT_FRAME_INTERRUPTED | QUT_FRAME_SIGNAL | QUT_FRAME_GUESSED | QUT_FRAME_DEX | QUT_FRAME_JIT };

// ---- one frame

// Known, and what the list says it is.
static inline const struct module *find_module(struct feed_stack *stack, uintptr_t pc)
{
    const struct module *module = stack->last;
    if (module && pc >= module->start && pc < module->end)
        return module;
    module = stack->modules ? modules_at(stack->modules, pc) : NULL;
    if (!module || module->code_base == 0 ||
        ((!stack->is_up_to_date || module->unlisted) && !module_confirm(module, pc)))
        return NULL;
    stack->last = module;
    return module;
}

// The fast ways of walks do not say.
static bool is_jit(const struct feed_stack *stack, uintptr_t pc, unsigned frame_flags)
{
    const void *found = NULL;
    struct runtime_code code;
    return (frame_flags & QUT_FRAME_JIT) ||
           (stack->modules && (modules_jit_find(pc, &found, &code) ||
                               (modules_machine_find(pc, &code) && (code.frame_flags & QUT_FRAME_JIT))));
}

__attribute__((noinline)) static uint32_t raw_node(struct feed_stack *stack, uint32_t parent, uintptr_t pc,
                                                   unsigned frame_flags, unsigned bits)
{
    struct feed *feed = stack->feed;
    unsigned class = QUT_TRACE_CLASS_RAW;
    if (frame_flags & QUT_FRAME_DEX)
        class = QUT_TRACE_CLASS_DEX;
    else if (is_jit(stack, pc, frame_flags))
        class = QUT_TRACE_CLASS_JIT;
    uint32_t index = segment_raw(&feed->segment, pc);
    if (index == 0) {
        stack->cut = QUT_TRACE_CUT_RAW;
        return 0;
    }
    if (class == QUT_TRACE_CLASS_DEX && !cpython_is_number(pc) && !v8_is_number(pc))
        feed_tell_raw(feed, index, pc);
    return segment_child(&feed->segment, parent, index, class << QUT_TRACE_CLASS_SHIFT | bits);
}

// The parent is 0 or was given by this.
static inline uint32_t frame_node(struct feed_stack *stack, uint32_t parent, uintptr_t pc, unsigned frame_flags)
{
    unsigned bits = (frame_flags & QUT_FRAME_INTERRUPTED ? QUT_TRACE_NODE_EXACT : 0u) |
                    (frame_flags & QUT_FRAME_GUESSED ? QUT_TRACE_NODE_GUESSED : 0u);
    const struct module *module = frame_flags & QUT_FRAME_DEX ? NULL : find_module(stack, pc);
    stack->cut = QUT_TRACE_CUT_TREE;
    if (!module)
        return raw_node(stack, parent, pc, frame_flags, bits);
    unsigned class = frame_flags & QUT_FRAME_SIGNAL ? QUT_TRACE_CLASS_SIGNAL : QUT_TRACE_CLASS_CODE;
    return segment_child(&stack->feed->segment, parent, pc - module->start + module->code_base,
                         class << QUT_TRACE_CLASS_SHIFT | bits);
}

uint32_t feed_frame_node(struct feed_stack *stack, uint32_t parent, uintptr_t pc, unsigned frame_flags)
{
    const struct segment *segment = &stack->feed->segment;
    if (parent > segment->node_mask || (parent && !__atomic_load_n(&segment->nodes[parent], __ATOMIC_ACQUIRE)))
        return 0;
    return frame_node(stack, parent, pc, frame_flags);
}

void feed_begin_stack(struct feed_stack *stack)
{
    stack->is_up_to_date = !stack->modules || modules_up_to_date(stack->modules);
    stack->last = NULL;
}

static inline unsigned flags_of(const struct feed_stack *stack, size_t frame)
{
    unsigned flags = frame < stack->noted_count ? stack->flags[frame] & (unsigned)SPECIAL : 0;
    return frame == 0 && stack->is_interrupted ? flags | QUT_FRAME_INTERRUPTED : flags;
}

void feed_add_functions(struct feed_scratch *scratch, const void *ucontext, const struct arch_capture *capture)
{
    struct feed_stack *stack = &scratch->stack;
    size_t count = 0;
    if (python_is_there())
        count = python_merge(&scratch->notes, stack->count, capture, ucontext, stack->feed->generation);
    if (count == 0 && javascript_is_there())
        count = javascript_merge(&scratch->notes, stack->count, ucontext != NULL, stack->feed->generation);
    if (count == 0)
        return;
    stack->count = count;
    stack->thread = NULL;
}

// ---- with the walk's memory

// Frames from *next inwards have to be looked up; what they hang from is returned.
static uint32_t take_remembered(const struct feed_stack *stack, const struct runtime_last_walk *last, uint32_t base,
                                size_t *next)
{
    size_t first = last->frame_count - last->kept_count;
    // A frame that is remembered may have been found by a rule then, and by a guess now.
    for (size_t i = stack->noted_count; i-- > first;)
        if (stack->flags[i] & QUT_FRAME_GUESSED)
            first = i + 1;
    if (first < stack->skip_count)
        first = stack->skip_count;
    while (first < last->frame_count && *runtime_last_walk_node(last, first) == 0)
        first++;
    *next = first;
    return first < last->frame_count ? *runtime_last_walk_node(last, first) : base;
}

// ---- with the last stack

// How many frames, from the outermost on, are plain callers, wanted, and fit.
static size_t cacheable_count(const struct feed_stack *stack, size_t depth_max)
{
    size_t special = stack->noted_count < stack->count ? stack->noted_count : stack->count;
    while (special > 0 && flags_of(stack, special - 1) == 0)
        special--;
    if (special == 0 && stack->is_interrupted && stack->count)
        special = 1;
    if (special < stack->skip_count)
        special = stack->skip_count;
    size_t plain_count = stack->count - special;
    return plain_count < depth_max ? plain_count : depth_max;
}

// What both stacks begin with, at their outermost frames.
static size_t common_count(const uintptr_t *cached, const uintptr_t *outermost, size_t count)
{
    size_t i = 0;
    for (; count - i >= 4; i += 4) {
        uintptr_t differ = (cached[i] ^ outermost[-(ptrdiff_t)i]) | (cached[i + 1] ^ outermost[-(ptrdiff_t)i - 1]) |
                           (cached[i + 2] ^ outermost[-(ptrdiff_t)i - 2]) |
                           (cached[i + 3] ^ outermost[-(ptrdiff_t)i - 3]);
        if (differ)
            break;
    }
    while (i < count && cached[i] == outermost[-(ptrdiff_t)i])
        i++;
    return i;
}

static uint32_t add_and_cache(struct feed_stack *stack, uint32_t base, bool *is_cut)
{
    struct feed_scratch *scratch = stack->scratch;
    uint32_t epoch = stack->modules ? stack->modules->epoch : 0;
    size_t cacheable = stack->is_up_to_date ? cacheable_count(stack, stack->feed->depth_max) : 0;
    if (scratch->cached_base != base || scratch->cached_epoch != epoch) {
        scratch->cached_count = 0;
        atomic_signal_fence(memory_order_seq_cst);
        scratch->cached_base = base;
        scratch->cached_epoch = epoch;
    }
    size_t most = scratch->cached_count < cacheable ? scratch->cached_count : cacheable;
    size_t done = most ? common_count(scratch->cached_pcs, stack->pcs + stack->count - 1, most) : 0;
    uint32_t parent = done ? scratch->cached_nodes[done - 1] : base;
    while (done < stack->count - stack->skip_count) {
        size_t frame = stack->count - 1 - done;
        uint32_t node = frame_node(stack, parent, stack->pcs[frame], flags_of(stack, frame));
        if (node == 0) {
            *is_cut = true;
            break;
        }
        // A jump out of this leaves it as true as it was.
        if (done < cacheable) {
            scratch->cached_count = (uint32_t)done;
            atomic_signal_fence(memory_order_seq_cst);
            scratch->cached_pcs[done] = stack->pcs[frame];
            scratch->cached_nodes[done] = node;
            atomic_signal_fence(memory_order_seq_cst);
            scratch->cached_count = (uint32_t)done + 1;
        }
        parent = node;
        done++;
    }
    return parent;
}

// ---- both

// The walk's memory may know the frames and not their nodes: it was of no use for a while, and recorded them anew. Then
// the last stack has most of them.
static uint32_t add_from_cache(struct feed_stack *stack, const struct runtime_last_walk *last, size_t unknown_count,
                               uint32_t base, bool *is_cut)
{
    const struct feed_scratch *scratch = stack->scratch;
    uint32_t node = add_and_cache(stack, base, is_cut);
    if (*is_cut) // then what is cached further in is of the stack before
        return node;
    size_t cached_count = cacheable_count(stack, stack->feed->depth_max);
    if (cached_count > scratch->cached_count)
        cached_count = scratch->cached_count;
    for (size_t i = stack->count - unknown_count; i < cached_count; i++)
        *runtime_last_walk_node(last, stack->count - 1 - i) = scratch->cached_nodes[i];
    return node;
}

static uint32_t add_and_remember(struct feed_stack *stack, const struct runtime_last_walk *last, uint32_t base,
                                 bool *is_cut)
{
    enum { UNKNOWN_FEW = 8 };
    size_t next;
    uint32_t parent = take_remembered(stack, last, base, &next);
    if (next - stack->skip_count > UNKNOWN_FEW)
        return add_from_cache(stack, last, next, base, is_cut);
    bool is_guessed = false; // and so what hangs from it
    while (next-- > stack->skip_count) {
        unsigned flags = flags_of(stack, next);
        uint32_t node = frame_node(stack, parent, stack->pcs[next], flags);
        if (node == 0) {
            *is_cut = true;
            break;
        }
        is_guessed = is_guessed || (flags & QUT_FRAME_GUESSED);
        *runtime_last_walk_node(last, next) = is_guessed ? 0 : node;
        parent = node;
    }
    return parent;
}

uint32_t feed_stack_node(struct feed_stack *stack, uint32_t base, bool *is_cut)
{
    struct runtime_thread *thread = stack->thread;
    struct runtime_last_walk last;
    *is_cut = false;
    feed_begin_stack(stack);
    // The memory is the outermost walk's.
    if (!thread || base != 0 || !stack->is_up_to_date ||
        atomic_load_explicit(&thread->walking, memory_order_relaxed) != 1)
        return add_and_cache(stack, base, is_cut);
    if (thread->node_generation != stack->feed->generation) {
        thread->node_generation = 0;
        runtime_last_walk_forget(thread);
        thread->node_generation = stack->feed->generation;
    }
    if (!runtime_last_walk_inside(thread, &last) || last.frame_count != stack->count)
        return add_and_cache(stack, base, is_cut);
    return add_and_remember(stack, &last, base, is_cut);
}
